"""The command `cupyrite`, also `python -m cupyrite`.

Belongs here: the choice of the subcommand. Each subcommand has a module with a `main(argv)` that returns the exit status, and is
imported only when it is chosen. Without a subcommand the doctor runs.
"""

import os
import sys

#: Subcommand -> its module, words for the usage line, one line of help.
COMMANDS = {
    "doctor": (
        "doctor",
        "[--json] [--demo] [--deadline SECONDS]",
        "report what is installed, whether kernels run, and how to fix what is wrong",
    ),
    "demo": ("demo", "[--elements N]", "compile a kernel, run it, check its result"),
    "run": (
        "run",
        "[--device DEVICE] PROGRAM ...",
        "run a program in which all that loads the CUDA driver finds the device",
    ),
    "coredump": (
        "coredump",
        "FILE [--json] [--memory ADDRESS [BYTES]]",
        "print a core dump of the CPU device: the fault, the launch, the memory",
    ),
    "explain": (
        "explain",
        "STATUS | TOPIC",
        "what a status, a setting or a problem of the doctor means, and what to do",
    ),
    "stand-in": ("stand_in", "", "install Cupyrite's cuda-bindings, cuda-core, ... in place of NVIDIA's"),
}


def program():
    """How this command was started, for usage lines and advice."""
    return "cupyrite" if os.path.basename(sys.argv[0]) == "cupyrite" else "python -m cupyrite"


def usage():
    """How the command is called, in two lines."""
    return f"usage: {program()} [COMMAND] [ARGUMENT ...]\n       {program()} --version\n"


def help_text():
    """The text of `--help`."""
    entries = {f"{command} {words}".strip(): text for command, (_, words, text) in COMMANDS.items()}
    width = max(map(len, entries))
    lines = [usage(), "commands:", *(f"  {words:<{width}}  {text}" for words, text in entries.items())]
    return "\n".join([*lines, "", "Without a command: doctor.", f"{program()} COMMAND --help describes a command.", ""])


def main(argv=None):
    """Entry point; returns the exit status."""
    argv = list(sys.argv[1:] if argv is None else argv)
    first = argv[0] if argv else "doctor"
    if first in ("-h", "--help", "help"):
        print(help_text(), end="")
        return 0
    if first in ("-V", "--version"):
        from . import __version__

        print(f"cupyrite {__version__}")
        return 0
    if not argv or first.startswith("-"):
        # The doctor's options need no subcommand.
        argv.insert(0, "doctor")
        first = "doctor"
    if first not in COMMANDS:
        import difflib

        near = difflib.get_close_matches(first, COMMANDS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"expected {', '.join(COMMANDS)}"
        print(f"{usage()}{program()}: error: unknown command '{first}': {hint}", file=sys.stderr)
        return 2
    from importlib import import_module

    return import_module(f"cupyrite.{COMMANDS[first][0]}").main(argv[1:])


def script():
    """The console script: `main`, with the shell's exit status for Ctrl-C."""
    try:
        return main()
    except KeyboardInterrupt:
        return 130
