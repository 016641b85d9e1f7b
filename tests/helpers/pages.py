"""Runs the code blocks of Markdown pages and compares what they print with what the page shows.

`python tests/helpers/pages.py [--write] PAGE ...` does so for single pages; with `--write` it puts the output into them.

The Python blocks of a page run one after the other in one process, as a reader would type them. A `text` block that
follows is the output. An HTML comment before a block changes that:

    <!-- run: alone -->         a program of its own
    <!-- run: fails -->         a program of its own that ends with an error
    <!-- run: file NAME -->     not run, but written to a file for the following console blocks
    <!-- run: console -->       the commands of a `console` block, in a shell; their output is below each
    <!-- run: WORDS, needs NAME -->  as above, where NAME is a program on PATH or an importable module
    <!-- from: FILE -->         not run: the block is a part of a file of the repository that is tested elsewhere
    <!-- not run: REASON -->    not run, for a reason
"""

import doctest
import functools
import importlib.util
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Languages whose blocks are run, or have a mark.
CHECKED = ("python", "rust", "c")
#: What pages show instead of the device's name.
DEVICE = "CPU: Intel(R) Xeon(R) Processor"
#: Seconds for one page.
LIMIT = 120
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
MARK = re.compile(r"<!-- (?P<kind>run|from|not run): (?P<words>[^>]*?) -->\s*\Z")
#: What differs between runs: durations, rates and addresses.
VARIABLE = [
    (re.compile(r"0x[0-9a-f]{8,}"), "0x(address)"),
    (re.compile(r"\b\d[\d,]*(\.\d+)?(e-?\d+)? ?(ns|µs|us|ms|s|GB/s|MB/s)\b"), "(number) \\3"),
    (re.compile(r"={3,}"), "==="),
]

#: Runs in the child: blocks come as JSON, and so does what each printed.
CHILD = r"""
import json, os, sys, tempfile, traceback
blocks = json.load(sys.stdin)
namespace = {"__name__": "__main__"}
keep, results = os.dup(1), []
for page, line, code in blocks:
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1), os.dup2(file.fileno(), 2)
        failed = False
        try:
            exec(compile("\n" * line + code, page, "exec"), namespace)
        except BaseException:
            failed = True
            traceback.print_exc()
        sys.stdout.flush(), sys.stderr.flush()
        file.seek(0)
        results.append((file.read().decode(errors="replace"), failed))
    if failed:
        break
os.write(keep, json.dumps(results).encode())
"""


@dataclass
class Block:
    """A fenced block."""

    page: str
    line: int
    language: str
    text: str
    mark: str = ""
    words: str = ""
    #: The block with the output, and where its text is in the page.
    output: str | None = None
    span: tuple[int, int] = (0, 0)

    def __str__(self):
        return f"{self.page}:{self.line}"


@dataclass
class Page:
    """The blocks of a page that are checked, and what was wrong with them."""

    path: Path
    blocks: list[Block] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    #: Blocks that were not run, with the reasons.
    left_out: list[tuple[Block, str]] = field(default_factory=list)
    #: Replacements of shown outputs: place in the text, and the new text.
    outputs: list[tuple[tuple[int, int], str]] = field(default_factory=list)


def read(path: Path) -> Page:
    """Finds the blocks of a page."""
    source, page = path.read_text(), Page(path)
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
    last, end = None, 0
    for found in FENCE.finditer(source):
        between, text = source[end : found.start()], _dedent(found["text"], found["indent"])
        line = source.count("\n", 0, found.start()) + 1
        end = found.end()
        if last and last.language != "console" and found["language"] in ("", "text") and not between.strip():
            last.output, last.span = text, found.span("text")
            last = None
            continue
        mark = MARK.search(between)
        last = Block(name, line, found["language"], text, span=found.span("text"))
        if mark:
            last.mark, last.words = mark["kind"], mark["words"]
        if mark or last.language in CHECKED:
            page.blocks.append(last)
        else:
            last = None
    return page


def _dedent(text: str, indent: str) -> str:
    return "".join(line.removeprefix(indent) for line in text.splitlines(keepends=True))


def check(path: Path) -> Page:
    """Runs the blocks of a page."""
    page = read(path)
    with tempfile.TemporaryDirectory() as folder:
        _run_together(page, Path(folder))
        files: dict[str, Block] = {}
        for block in page.blocks:
            words, _, need = block.words.partition(", needs ")
            kind, _, rest = words.partition(" ") if block.mark == "run" else (block.mark, "", "")
            if block.mark == "not run":
                page.left_out.append((block, block.words))
            elif need and not (shutil.which(need) or importlib.util.find_spec(need)):
                page.left_out.append((block, f"{need} is not installed"))
                if kind == "console":
                    files.clear()
            elif kind == "file":
                files[rest] = block
                (Path(folder) / rest).write_text(block.text)
            elif kind == "console":
                used = _run_console(page, block, Path(folder))
                for name in [name for name in files if name in used]:
                    del files[name]
            elif kind in ("alone", "fails"):
                _run_alone(page, block, Path(folder), fails=kind == "fails")
            elif kind == "from":
                _compare_source(page, block)
            elif block.mark == "run":
                page.problems.append(f"{block}: unknown mark 'run: {block.words}'")
            elif block.language != "python" and not block.mark:
                page.problems.append(f"{block}: a {block.language} block needs a mark (tests/helpers/pages.py)")
        page.problems += [f"{block}: no console block uses the file {name}" for name, block in files.items()]
    return page


def _run_together(page: Page, folder: Path) -> None:
    blocks = [block for block in page.blocks if block.language == "python" and not block.mark]
    if not blocks:
        return
    request = json.dumps([(block.page, block.line, block.text) for block in blocks])
    done = _child([sys.executable, "-c", CHILD], folder, input=request)
    try:
        results = json.loads(done.stdout)
    except ValueError:
        page.problems.append(f"{page.path}: the interpreter died: {done.returncode}\n{done.stdout}{done.stderr}")
        return
    for block, (text, failed) in zip(blocks, results):
        if failed:
            page.problems.append(f"{block}: failed\n{text}")
        else:
            _compare(page, block, text, folder)


def _run_alone(page: Page, block: Block, folder: Path, fails: bool) -> None:
    (folder / "program.py").write_text(block.text)
    done = _child([sys.executable, "program.py"], folder, stderr=subprocess.STDOUT)
    if (done.returncode != 0) != fails:
        page.problems.append(f"{block}: exit status {done.returncode}\n{done.stdout}")
    else:
        _compare(page, block, done.stdout, folder)


def _run_console(page: Page, block: Block, folder: Path) -> str:
    """Runs the lines that begin with `$ `; what follows each is its output. Returns the commands."""
    parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)[1:]
    text = ""
    for command in parts[::2]:
        done = _child(["sh", "-c", command], folder, stderr=subprocess.STDOUT)
        text += f"$ {command}\n{done.stdout}"
    block.output = block.text
    _compare(page, block, text, folder)
    return " ".join(parts[::2])


def _child(command: list[str], folder: Path, **options) -> subprocess.CompletedProcess:
    """Runs a command in the folder; `python` is this interpreter there."""
    programs = folder / ".bin"
    if not programs.exists():
        programs.mkdir()
        python = programs / "python"
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(python.stat().st_mode | stat.S_IXUSR)
    environment = dict(
        os.environ, PATH=f"{programs}{os.pathsep}{os.environ.get('PATH', '')}", NO_COLOR="1", COLUMNS="80"
    )
    environment |= {
        "CUPYRITE_DEVICE": "cpu",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_ADDOPTS": "-p no:cacheprovider",
        "XDG_CACHE_HOME": str(folder),
    }
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, timeout=LIMIT, check=False, **options
    )


def _compare(page: Page, block: Block, text: str, folder: Path) -> None:
    text = text.replace(device_name(), DEVICE).replace(f"{folder}/", "")
    if block.output is None:
        if text.strip():
            page.problems.append(f"{block}: prints what the page does not show:\n{text}")
        return
    if not same(block.output, text):
        page.problems.append(f"{block}: the page shows\n{block.output}\nand the output is\n{text}")
        page.outputs.append((block.span, text.rstrip("\n") + "\n"))


def same(shown: str, text: str) -> bool:
    """Whether an output is the one shown: apart from durations, rates, addresses, and what `...` stands for."""
    shown, text = (functools.reduce(lambda t, rule: rule[0].sub(rule[1], t), VARIABLE, t) for t in (shown, text))
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.DONT_ACCEPT_BLANKLINE
    return doctest.OutputChecker().check_output(shown.strip() + "\n", text.strip() + "\n", flags)


@functools.cache
def device_name() -> str:
    """The name of device 0, from a process of its own: callers need not use the device."""
    code = "import cuda.core; print(cuda.core.Device(0).name)"
    environment = dict(os.environ, CUPYRITE_DEVICE="cpu")
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def _compare_source(page: Page, block: Block) -> None:
    """Parts of a file, separated by `// ...`. Indentation and comments may differ."""

    def squeezed(text: str) -> str:
        return " ".join(re.sub(r"^//! ?| // .*|^ *// .*", "", text, flags=re.MULTILINE).split())

    source = squeezed((ROOT / block.words).read_text())
    for part in block.text.split("// ...\n"):
        if squeezed(part) not in source:
            page.problems.append(f"{block}: not in {block.words}:\n{part}")


def main(arguments: list[str]) -> int:
    """The program: 1 if a page is wrong."""
    wrong = 0
    for name in [argument for argument in arguments if not argument.startswith("-")]:
        page = check(Path(name).resolve())
        if "--write" in arguments:
            text = page.path.read_text()
            for (start, stop), output in sorted(page.outputs, reverse=True):
                text = text[:start] + output + text[stop:]
            page.path.write_text(text)
        print("\n".join([*page.problems, f"{name}: {len(page.blocks)} blocks, {len(page.problems)} problems"]))
        wrong |= bool(page.problems)
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
