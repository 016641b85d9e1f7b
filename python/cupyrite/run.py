"""Run a program in which everything that loads the CUDA driver finds the chosen device.

Programs and packages that load `libcuda.so.1` or `libcudart.so.13` themselves (numba-cuda, NVIDIA's own bindings, C programs,
programs of `nvcc -cudart shared`) know nothing of CUPYRITE_DEVICE. This command puts the folder with the CPU device's
`libcuda.so.1`, `libcudart.so.13`, `libcudart.so.12` and `libnvidia-ml.so.1` first in LD_LIBRARY_PATH, sets CUPYRITE_DEVICE, and
replaces this process by the program: child processes inherit both. Triton finds the CPU device's `ptxas` by variables of its own.
"""

import os
import sys

#: The folder with the CPU device as the driver's libraries.
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "cpu")
FILES = (
    "libcuda.so.1", "libcudart.so.13", "libcudart.so.12", "libnvidia-ml.so.1", "libcupyrite_cpu_device.so", "ptxas",
)  # fmt: skip
#: Variables of Triton: the assemblers of its cubins and the folder of libcuda.so.1, each with its path in `FOLDER`.
TRITON_VARIABLES = {"TRITON_PTXAS_PATH": "ptxas", "TRITON_PTXAS_BLACKWELL_PATH": "ptxas", "TRITON_LIBCUDA_PATH": ""}
DEVICES = ("auto", "cpu", "gpu")
ENDINGS = (".py", ".pyw", ".pyc", ".pyz", ".zip")
USAGE = """\
usage: {name} [--device DEVICE] PROGRAM [ARGUMENT ...]
       {name} [--device DEVICE] -m MODULE [ARGUMENT ...]
       {name} [--device DEVICE] -c CODE [ARGUMENT ...]
       {name} [--device DEVICE] --print-libdir
"""
HELP = f"""\
{USAGE}
Run a program in which everything that loads libcuda.so.1 finds the chosen device.

PROGRAM is a Python file, or a folder or archive with a __main__.py, which this interpreter runs with the options that it was
given itself; or any other program: a path, or a name on PATH. What follows it goes to it.

options:
  --device DEVICE  cpu: the CPU device, also where there is a GPU. gpu: NVIDIA's driver; an error where it is missing.
                   auto: NVIDIA's driver if it is installed, else the CPU device. Default: CUPYRITE_DEVICE, else auto
  --print-libdir   print the folder with the CPU device's libcuda.so.1, libcudart.so.13 and libcudart.so.12, for LD_LIBRARY_PATH
                   and linking (-L); -lcudart of CUDA 12 is in its folder cuda12
  --               end of the options
  -h, --help       show this text

Exit status: the program's. 1: the device is not there; 2: invalid command line; 126: the program cannot be executed; 127: it
does not exist.
"""


class Refused(Exception):
    """The reason why nothing is run, and the exit status."""

    def __init__(self, message, status=2):
        super().__init__(message)
        self.status = status


def name():
    """This command as the user started it."""
    from .command_line import program

    return f"{program()} run"


def parse(argv):
    """(device or None, whether to print the folder, words of the program); raises Refused."""
    device, show, rest = None, False, list(argv)
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "-m", "-c"):
        word = rest.pop(0)
        name, given, value = word.partition("=")
        if word == "--":
            if rest and rest[0] in ("-m", "-c"):
                raise Refused(f"a program must follow --, not {rest[0]}")
            break
        if name == "--device":
            if not given:
                if not rest:
                    raise Refused(f"--device: expected {', '.join(DEVICES)}")
                value = rest.pop(0)
            if value not in DEVICES:
                raise Refused(f"--device '{value}': expected {', '.join(DEVICES)}")
            device = value
        elif word == "--print-libdir":
            show = True
        else:
            raise Refused(f"unknown option {word}; options of the program follow its name")
    if show and rest:
        raise Refused("--print-libdir: expected no program")
    if show and device == "gpu":
        raise Refused("--print-libdir: --device 'gpu' has no folder; expected auto, cpu")
    if not show and not rest:
        raise Refused("the program is missing")
    if rest and rest[0] in ("-m", "-c") and len(rest) < 2:
        raise Refused(f"{rest[0]}: the {'module' if rest[0] == '-m' else 'code'} is missing")
    return device, show, rest


def asks_for_help(argv):
    """Whether an option before the program asks for the help text."""
    words = iter(argv)
    for word in words:
        if word in ("-h", "--help"):
            return True
        if not word.startswith("-") or word in ("-", "-m", "-c", "--"):
            return False
        if word == "--device" and next(words, None) in ("-h", "--help"):
            return True
    return False


def interpreter(arguments):
    """This interpreter with the options that it was started with, without `-m cupyrite run` (or the console script) and its
    `arguments`."""
    if not sys.executable:
        raise Refused("the interpreter does not know its own path", 1)
    words = sys.orig_argv[1:]
    tail = ["run", *arguments]
    if words[-len(tail) :] != tail:
        return [sys.executable]
    words = words[: -len(tail)]
    if words[-2:] == ["-m", "cupyrite"]:
        words = words[:-2]
    elif words[-1:] == ["-mcupyrite"]:
        words = words[:-1]
    elif len(words) > 1 and words[-1] == "cupyrite" and words[-2].startswith("-") and words[-2].endswith("m"):
        words = [*words[:-2], words[-2][:-1]]
    elif words and words[-1] == sys.argv[0] and os.path.basename(words[-1]) == "cupyrite":
        # The console script.
        words = words[:-1]
    else:
        return [sys.executable]
    return [sys.executable, *words]


def is_elf(path):
    """Whether the file is machine code; False if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def command_of(rest, arguments):
    """The program's path and words; raises Refused."""
    first = rest[0]
    if not first:
        raise Refused("the program's name is empty")
    if first in ("-m", "-c", "-") or os.path.isdir(first) or first.endswith(ENDINGS):
        if first not in ("-m", "-c", "-") and not os.path.exists(first):
            raise Refused(f"'{first}' does not exist", 127)
        return [*interpreter(arguments), *rest]
    import shutil

    if found := shutil.which(first):
        return [found, *rest[1:]]
    if os.path.isfile(first):
        if is_elf(first):
            # A compiled program in the working directory, named without `./`, or one without permission to execute.
            return [os.path.abspath(first), *rest[1:]]
        # As `python FILE`: a script needs neither an ending nor a permission.
        return [*interpreter(arguments), *rest]
    if os.sep in first:
        raise Refused(f"'{first}' does not exist", 127)
    raise Refused(f"'{first}': there is no such file, and PATH has no program of that name", 127)


def check_files() -> None:
    """Raises Refused if the installation is incomplete."""
    for name in FILES:
        path = os.path.join(FOLDER, name)
        if not os.path.isfile(path):
            raise Refused(
                f"{path} does not exist. Install Cupyrite again: pip install --force-reinstall --no-deps cupyrite; "
                "in a clone of its repository: python distributions/cpu_device.py",
                1,
            )


def library_path(first: str | None = None) -> str | None:
    """LD_LIBRARY_PATH without the CPU device's folder, and with `first` at its start; None if nothing is left."""
    # An empty entry is the working directory: entries that are there are kept as they are.
    value = os.environ.get("LD_LIBRARY_PATH")
    entries = value.split(os.pathsep) if value else []
    entries = [entry for entry in entries if not entry or os.path.realpath(entry) != os.path.realpath(FOLDER)]
    if first is not None:
        entries.insert(0, first)
    return os.pathsep.join(entries) or None


def triton_variables(device):
    """The values of Triton's variables for "cpu" or "gpu"; None for a variable to be removed."""
    values = {name: os.path.join(FOLDER, file).rstrip(os.sep) for name, file in TRITON_VARIABLES.items()}
    if device == "cpu":
        return values
    # Those of an outer run; others are the user's.
    return {name: None for name, value in values.items() if os.environ.get(name) == value}


def set_variables(values):
    """Sets environment variables; removes those whose value is None."""
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def chosen_device(device, arguments):
    """ "cpu" or "gpu"; raises Refused if there is no such device."""
    if device is not None:
        os.environ["CUPYRITE_DEVICE"] = device
    if os.environ.get("CUPYRITE_DEVICE", "").strip().lower() == "cpu":
        return "cpu"
    cleaned = library_path()
    if cleaned != (os.environ.get("LD_LIBRARY_PATH") or None):
        # This process found the CPU device as the driver. The loader reads the variable when a process starts.
        set_variables({"LD_LIBRARY_PATH": cleaned})
        execute([*interpreter(arguments), "-m", "cupyrite", "run", *arguments])
    import warnings

    try:
        from . import _native

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reason = _native.device_reason()
        device = _native.device()
    except (ImportError, RuntimeError, ValueError) as error:
        raise Refused(str(error), 1) from None
    if device == "cpu":
        print(f"{name()}: {reason}", file=sys.stderr)
    return device


def execute(words):
    """Replaces this process; raises Refused if that fails."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    try:
        os.execv(words[0], words)
    except (OSError, ValueError) as error:
        raise Refused(f"{words[0]} cannot be executed: {getattr(error, 'strerror', None) or error}", 126) from None


def restore_signals():
    """Undoes what the interpreter has set and other programs would inherit."""
    import signal

    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def main(argv=None):
    """Entry point. Returns the exit status if no program was started."""
    argv = list(sys.argv[2:] if argv is None else argv)
    if asks_for_help(argv):
        print(HELP.format(name=name()), end="")
        return 0
    try:
        device, show, rest = parse(argv)
        if show:
            check_files()
            print(FOLDER)
            return 0
        words = command_of(rest, argv)
        device = chosen_device(device, argv)
        if device == "cpu":
            check_files()
            if os.pathsep in FOLDER:
                raise Refused(f"{FOLDER}: LD_LIBRARY_PATH cannot hold a folder with '{os.pathsep}' in its name", 1)
        path = library_path(FOLDER if device == "cpu" else None)
        set_variables({"LD_LIBRARY_PATH": path, "CUPYRITE_DEVICE": device, **triton_variables(device)})
        if words[0] != sys.executable:
            restore_signals()
        execute(words)
    except Refused as problem:
        usage = USAGE.format(name=name()) if problem.status == 2 else ""
        print(f"{usage}{name()}: error: {problem}", file=sys.stderr)
        return problem.status
