"""Explain a status of a CUDA library, an environment variable, a problem of the doctor, or a page of the documentation."""

import os
import re
import sys

#: The pages, in an installed package; a clone has them in `docs/`.
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_pages")
#: Page -> what it is about. `assemble.py` puts these files into the wheel.
PAGES = {
    "clients": "packages that use Cupyrite: numba-cuda, CuPy, PyTorch and others",
    "core": "cuda.core",
    "cpu-device": "the CPU device, and the functions that it lacks",
    "cython": "Cython extensions",
    "distributions": "installation beside other packages, and back to NVIDIA's",
    "doctor": "the doctor's problems and its JSON",
    "environment": "the environment variables",
    "libraries": "how CUDA's libraries are found",
    "numerics": "where the CPU device computes other bits than a GPU",
    "runtime": "cuda.bindings.runtime",
}
TITLES = {
    "driver": "CUDA driver API",
    "runtime": "CUDA runtime API",
    "nvrtc": "NVRTC",
    "nvjitlink": "nvJitLink",
    "nvvm": "libNVVM",
    "nvfatbin": "nvFatbin",
    "nvml": "NVML",
    "cufile": "cuFile",
    "cudla": "cuDLA",
}
#: Beginnings of C names that a user may leave out.
PREFIXES = (
    "CUDA_ERROR_",
    "CUDA_",
    "cudaError",
    "cuda",
    "NVRTC_ERROR_",
    "NVRTC_",
    "NVJITLINK_ERROR_",
    "NVVM_ERROR_",
    "NVFATBIN_ERROR_",
    "NVML_ERROR_",
    "CU_FILE_",
    "cudlaError",
)
#: More statuses than these are listed in one line each.
MOST = 3
WIDTH = 100


class Unknown(Exception):
    """Nothing has the name; the message says what is close to it."""


class Status:
    """A status of a library."""

    def __init__(self, library, enum, row):
        self.library = library
        self.c_name, self.member, self.value, self.meaning = row
        self.python = f"cuda.bindings.{enum}.{self.member}"

    def names(self):
        """Every name that it can be found by."""
        found = {self.c_name, self.member, self.python, self.python.partition("bindings.")[2]}
        found |= {self.c_name.removeprefix(prefix) for prefix in PREFIXES}
        return {name for name in found if not name.isdigit()}

    def advice(self):
        """What to do, as paragraphs; empty where there is nothing to add to the meaning."""
        from .advice import ADVICE
        from .command_line import program

        found = ADVICE.get(self.c_name)
        if found is None and self.library == "runtime":
            twin = [other for other in statuses() if other.library == "driver" and other.value == self.value]
            found = ADVICE.get(twin[0].c_name) if twin else None
        return [text.format(program=program()) for text in found or ()]


def statuses():
    """All statuses."""
    from .generated.statuses import STATUSES

    found = [Status(library, enum, row) for library, (enum, rows) in STATUSES.items() for row in rows]
    try:
        from cupyrite._native.core import _explanation
    except ImportError:
        # The generated meanings remain, so that a damaged installation can be read about.
        return found
    for status in found:
        # As in the text of an error with this status.
        if status.library in ("driver", "runtime"):
            status.meaning = _explanation(status.value) or status.meaning
    return found


def folded(name):
    """The name without case and punctuation: CUDA_ERROR_NOT_READY, cuda-error-not-ready and cudaErrorNotReady are alike."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def find_statuses(text):
    """The statuses that the text names: a name, a number, a library and one of these, or a whole error message."""
    every = statuses()
    library, given, rest = text.replace(":", " ", 1).replace(".", " ", 1).partition(" ")
    if given and library.lower() in TITLES:
        every = [status for status in every if status.library == library.lower()]
        text = rest
    text = text.strip()
    if re.fullmatch(r"[+-]?\d+|0[xX][0-9a-fA-F]+", text):
        found = [status for status in every if status.value == int(text, 0 if text[:2].lower() == "0x" else 10)]
        if not found:
            libraries = list(dict.fromkeys(TITLES[status.library] for status in every))
            raise Unknown(
                f"{libraries[0]} has no status {text}" if len(libraries) == 1 else f"no library has a status {text}"
            )
        return found
    by_name = {}
    for status in every:
        for name in status.names():
            by_name.setdefault(folded(name), {})[status.python] = status
    if folded(text) in by_name:
        return list(by_name[folded(text)].values())
    # An error message or a repr: the C name in it.
    exact = {status.c_name: status for status in every} | {status.python: status for status in every}
    for word in re.findall(r"[A-Za-z_][\w.]*", text):
        word = word.strip(".")
        if word in exact:
            return [exact[word]]
        parts = [status for status in every if word.endswith(f".{status.member}") and status.python.endswith(word)]
        if parts:
            return parts
    return []


def page_path(name):
    """Path of a page; None if this installation has none."""
    here = os.path.realpath(__file__)
    clone = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(here))), "docs")
    for folder in (FOLDER, clone):
        path = os.path.join(folder, f"{name}.md")
        if os.path.isfile(path):
            return path
    return None


def page(name):
    """The text of a page for a terminal; raises Unknown if the installation lacks it."""
    from .command_line import program

    path = page_path(name)
    if path is None:
        raise Unknown(f"this installation lacks the page '{name}': install Cupyrite's wheel again")
    with open(path, encoding="utf-8") as file:
        text = file.read()

    def link(match):
        label, target = match[1], match[2].partition("#")[0].removesuffix(".md")
        if target in PAGES:
            command = f"{program()} explain {target}"
            return command if label == match[2] else f"{label} ({command})"
        return f"{label} ({match[2]})" if match[2].startswith("https:") else label

    text = re.sub(r"<!--.*?-->\n*", "", text, flags=re.DOTALL)
    return re.sub(r"\[([^\]\n]+)\]\(([^)\s]+)\)", link, text)


def rows(name):
    """The tables' rows of a page, by the code in their first cell: other cells with their headings."""
    found, heading = {}, None
    try:
        lines = page(name).splitlines()
    except Unknown:
        return found
    for line in lines:
        if not line.startswith("|"):
            heading = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if heading is None:
            heading = cells
        elif not set(line) <= set("|- :"):
            for key in re.findall(r"`([\w-]+)`", cells[0]) if cells[0].startswith("`") else ():
                found[key] = list(zip(heading[1:], cells[1:]))
    return found


def topics():
    """Name -> function that returns its text."""
    found = {name: (lambda name=name: page(name).rstrip("\n")) for name in PAGES}
    for source in ("environment", "doctor"):
        for key, cells in rows(source).items():
            # Other tables, such as that of the JSON's fields, are read in the page.
            if cells[0][0] not in ("values", "severity"):
                continue
            found.setdefault(key, lambda key=key, cells=cells: row_text(key, cells))
    return found


def row_text(key, cells):
    """The text for a row of a table, for a problem of the doctor with what to do."""
    from .advice import PROBLEMS
    from .command_line import program

    lines = [key, *(wrapped(f"{heading}: {cell}", "  ", hanging="    ") for heading, cell in cells)]
    if advice := PROBLEMS.get(key):
        for text in advice:
            lines += ["", wrapped(text.format(program=program()), "  ")]
        lines += ["", wrapped(f"{program()} doctor prints the command for this machine.", "  ")]
    return "\n".join(lines)


def wrapped(text, indent, hanging=None):
    """The text in lines of at most WIDTH columns."""
    import textwrap

    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def status_text(status, advice):
    """A status with its meaning and, if not None, what to do."""
    lines = [
        f"{status.c_name} = {status.value}",
        wrapped(status.meaning, "  "),
        f"  {TITLES[status.library]}; in Python: {status.python}",
    ]
    for paragraph in advice or ():
        lines += ["", wrapped(paragraph, "  ")]
    return "\n".join(lines)


def statuses_text(found):
    """The text for several statuses. Statuses with the same advice share it."""
    if len(found) > MOST:
        width = max(len(status.c_name) for status in found)
        lines = [f"{status.c_name:<{width}}  {TITLES[status.library]}: {status.meaning}" for status in found]
        return "\n".join([*lines, "", "Name one of them to read what to do."])
    parts = []
    for index, status in enumerate(found):
        advice = status.advice()
        following = found[index + 1].advice() if index + 1 < len(found) else None
        parts.append(status_text(status, None if advice == following else advice))
    return "\n\n".join(parts)


def explain(text):
    """The explanation; raises Unknown."""
    known = topics()
    by_name = {name.lower(): name for name in known}
    name = by_name.get(text.strip().lower().removesuffix(".md").removeprefix("docs/"))
    if name is not None:
        return known[name]()
    found = find_statuses(text)
    if found:
        return statuses_text(found)
    raise Unknown(f"nothing has the name '{text}'{suggestion(text, known)}")


def suggestion(text, known):
    """The nearest names, as the end of a message."""
    import difflib

    names = {}
    for name in known:
        names.setdefault(folded(name), []).append(name)
    for status in statuses():
        for prefix in ("", *PREFIXES):
            names.setdefault(folded(status.c_name.removeprefix(prefix)), []).append(status.c_name)
    near = []
    for key in difflib.get_close_matches(folded(text), names, n=3, cutoff=0.7):
        # The driver and the runtime have statuses of the same name: the one in the user's spelling.
        alike = [name for name in names[key] if ("_" in name) == ("_" in text)] or names[key]
        near += [name for name in alike[:1] if name not in near]
    return (
        f"; did you mean {' or '.join(near)}?"
        if near
        else "; expected the name or number of a status, or a topic (--help lists them)"
    )


def help_text():
    """The text of `--help`."""
    from .command_line import program

    name = f"{program()} explain"
    width = max(map(len, PAGES))
    return "\n".join(
        [
            f"usage: {name} STATUS",
            f"       {name} TOPIC",
            "",
            "STATUS: a name or number of any CUDA library's status, in any spelling, or an error message with one:",
            f"  {name} CUDA_ERROR_ILLEGAL_ADDRESS",
            f"  {name} cudaErrorMemoryAllocation",
            f"  {name} 700",
            f"  {name} nvrtc 6",
            "Libraries: " + ", ".join(TITLES),
            "",
            "TOPIC: an environment variable (CUPYRITE_DEVICE), a problem of the doctor (driver-missing), or a page:",
            *(f"  {page:<{width}}  {text}" for page, text in PAGES.items()),
            "",
        ]
    )


def main(argv=None):
    """Entry point; returns the exit status."""
    from .command_line import program
    from .doctor import write

    argv = list(sys.argv[1:] if argv is None else argv)
    if argv and argv[0] in ("-h", "--help"):
        write(help_text())
        return 0
    if not "".join(argv).strip():
        print(f"{help_text()}\n{program()} explain: error: the status or topic is missing", file=sys.stderr)
        return 2
    try:
        write(explain(" ".join(argv)) + "\n")
    except Unknown as error:
        print(f"{program()} explain: error: {error}", file=sys.stderr)
        return 1
    return 0
