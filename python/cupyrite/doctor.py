"""Report the CUDA installation, whether kernels can be compiled and run, and how to fix problems.

Exit status: 0 if a kernel was compiled, loaded and launched and Python imports Cupyrite's modules; 1 otherwise; 2 for an
invalid command line.
"""

import os
import sys

FORMAT = 1
WIDTH = 100


def parse_arguments(argv):
    """Parse the command line; exits with status 2 if it is invalid."""
    import argparse

    from .command_line import program

    parser = argparse.ArgumentParser(
        prog=f"{program()} doctor",
        description=(__doc__ or "").partition("\n")[0],
        epilog=f"{program()} explain doctor describes the problems and the JSON.",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--demo", action="store_true", help="run the demo after the report; both must succeed")
    parser.add_argument(
        "--deadline",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="time limit for the driver, NVRTC and the kernel together (60)",
    )
    options = parser.parse_args(argv)
    if not 0 < options.deadline <= 86400:
        parser.error(f"--deadline {options.deadline}: expected seconds, more than 0 and at most 86400")
    return options


def interpreter_facts(options):
    """Facts about the interpreter that the native module cannot determine."""
    from importlib import machinery

    from . import __version__

    path = []
    for entry in sys.path:
        if isinstance(entry, str):
            try:  # noqa: SIM105 (contextlib is imported later, where it is needed)
                path.append(os.path.abspath(entry))
            except (OSError, ValueError):
                pass  # The working directory was removed, or the entry contains a NUL: it cannot be imported from.
    version = sys.version_info
    release = "" if version.releaselevel == "final" else f"{version.releaselevel[0]}{version.serial}"
    known = {
        "implementation": {"cpython": "CPython", "pypy": "PyPy"}.get(sys.implementation.name, sys.implementation.name),
        "version": f"{version.major}.{version.minor}.{version.micro}{release}",
        "prefix": sys.prefix,
        "package": os.path.dirname(os.path.abspath(__file__)),
        "package_version": __version__,
        "path": path,
        # In the import system's search order; all_suffixes() lists source files first.
        "suffixes": [*machinery.EXTENSION_SUFFIXES, *machinery.SOURCE_SUFFIXES, *machinery.BYTECODE_SUFFIXES],
        "demo": options.demo,
        "deadline": options.deadline,
    }
    if sys.executable:
        known["executable"] = sys.executable
    return known


def output_width():
    """Width of the terminal, at most WIDTH; WIDTH for a pipe or a file."""
    import shutil

    return min(shutil.get_terminal_size((WIDTH, 24)).columns, WIDTH)


def use_colours():
    """Whether standard output is a terminal that supports colours."""
    try:
        terminal = sys.stdout.isatty()
    except (AttributeError, ValueError):
        return False
    return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in (None, "", "dumb")


def write(text):
    """Write to standard output in any encoding. A closed pipe (`| head`) is not an error."""
    stream = sys.stdout
    if stream is None:
        return
    try:
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding, "replace"))
        stream.flush()
    except (OSError, ValueError):
        discard_output()


def discard_output():
    """Redirect standard output to the null device, so that the flush at interpreter exit does not fail."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (AttributeError, OSError, ValueError):
        sys.stdout = None


def import_failure_report(error, options):
    """Report for a native module that cannot be imported, or that refuses the value of an environment variable."""
    from . import __version__

    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        files = sorted(name for name in os.listdir(folder) if name.startswith("_native."))
    except OSError as problem:
        files = [f"the folder cannot be read: {problem}"]
    from . import stand_in

    words, command = "", None
    origin, installer = stand_in.source(), stand_in.installer()
    if origin and installer:
        import shlex

        command = shlex.join([*installer, "--force-reinstall", "--no-deps", origin])
    else:
        words = "install Cupyrite's wheel again from where it came, with the options --force-reinstall --no-deps"
    why = f"{type(error).__name__}: {error}. Native files in {folder}: {', '.join(files) or 'none'}."
    what, code = "Cupyrite's native module cannot be imported", "native-module"
    if isinstance(error, ValueError):
        # The message starts with the variable's name, "=" and its value.
        what, code = str(error), "variable-value"
        why = "The native module reads this variable when it is imported."
        words, command = "", f"unset {what.partition('=')[0]}"
    problem = {
        "code": code,
        "severity": "error",
        "what": what,
        "why": why,
        "fix": [{"words": words, "command": command}],
    }
    if options.json:
        import json

        report = {
            "format": FORMAT,
            "ok": False,
            "cupyrite": {"version": __version__, "location": folder},
            "problems": [problem],
        }
        return json.dumps(report, indent=2) + "\n"
    return (
        f"Cupyrite {__version__}\n\n  1. error: {problem['what']} [{problem['code']}]\n     {why}\n"
        f"     fix: {command or words}\n\nKernels cannot be compiled and run here.\n"
    )


def run_demo(options):
    """Run the demo and return its exit status. With --json it prints to standard error."""
    import contextlib

    from . import demo as module

    write("" if options.json else "\n")
    target = sys.stderr if options.json else sys.stdout
    if target is None:
        target = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (open until the process exits)
    with contextlib.redirect_stdout(target):
        return module.main([])


def main(argv=None):
    """Entry point; returns the exit status."""
    options = parse_arguments(sys.argv[1:] if argv is None else argv)
    try:
        from . import _native
    except (ImportError, ValueError) as error:
        write(import_failure_report(error, options))
        return 1
    ok, ran, hung, text = _native.doctor(
        interpreter_facts(options), json=options.json, width=output_width(), colours=use_colours()
    )
    write(text)
    if hung:
        # A driver call hangs in this process; normal exit handlers would wait for it.
        os._exit(1)
    status = 0 if ok else 1
    if options.demo and not ran:
        print("The demo did not run.", file=sys.stderr)
    elif options.demo:
        status = run_demo(options) or status
    return status
