"""What is here, whether kernels can be compiled and run, and what would fix it if they cannot.

The exit status is 0 only if a kernel was compiled, loaded and launched and Python takes Cupyrite's modules; 1 if
not; 2 if the command line is not understood.
"""

import os
import sys

FORMAT = 1
WIDTH = 100


def arguments(words):
    """The command line as a namespace; leaves with status 2 where it cannot be understood."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m cupyrite", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="the report for programs (docs/doctor.md)")
    parser.add_argument("--demo", action="store_true", help="run the demo after the examination; both must succeed")
    parser.add_argument(
        "--deadline",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="how long the driver, NVRTC and the kernel may take together (60)",
    )
    options = parser.parse_args(words)
    if not 0 < options.deadline <= 86400:
        parser.error(f"--deadline {options.deadline}: seconds, more than 0 and at most 86400")
    return options


def facts(options):
    """What only the interpreter knows."""
    from importlib import machinery

    from . import __version__

    path = []
    for entry in sys.path:
        if isinstance(entry, str):
            try:
                path.append(os.path.abspath(entry))
            except (OSError, ValueError):
                pass  # The working directory is gone, or the entry holds a NUL: nothing can be imported from there.
    version = sys.version_info
    release = "" if version.releaselevel == "final" else f"{version.releaselevel[0]}{version.serial}"
    known = {
        "implementation": {"cpython": "CPython", "pypy": "PyPy"}.get(sys.implementation.name, sys.implementation.name),
        "version": f"{version.major}.{version.minor}.{version.micro}{release}",
        "prefix": sys.prefix,
        "package": os.path.dirname(os.path.abspath(__file__)),
        "package_version": __version__,
        "path": path,
        # The order in which Python tries them; all_suffixes() begins with source files.
        "suffixes": [*machinery.EXTENSION_SUFFIXES, *machinery.SOURCE_SUFFIXES, *machinery.BYTECODE_SUFFIXES],
        "demo": options.demo,
        "deadline": options.deadline,
    }
    if sys.executable:
        known["executable"] = sys.executable
    return known


def columns():
    """The terminal's width; for a pipe or a file the widest."""
    import shutil

    return min(shutil.get_terminal_size((WIDTH, 24)).columns, WIDTH)


def colours():
    """Whether standard output is a terminal that wants them."""
    try:
        terminal = sys.stdout.isatty()
    except (AttributeError, ValueError):
        return False
    return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in (None, "", "dumb")


def write(text):
    """Writes to standard output whatever its encoding. A reader that is gone (`| head`) is no error."""
    stream = sys.stdout
    if stream is None:
        return
    try:
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding, "replace"))
        stream.flush()
    except (OSError, ValueError):
        silence()


def silence():
    """Nothing more can be written: the interpreter must not try again when it ends."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (AttributeError, OSError, ValueError):
        sys.stdout = None


def without_native(error, options):
    """The report where the native module itself cannot be imported."""
    from . import __version__

    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        parts = sorted(name for name in os.listdir(folder) if name.startswith("_native."))
    except OSError as problem:
        parts = [f"the folder cannot be read: {problem}"]
    executable = sys.executable or "python"
    command = f"{executable} -m pip install --force-reinstall --no-deps cupyrite"
    why = f"{type(error).__name__}: {error}. Native files in {folder}: {', '.join(parts) or 'none'}."
    problem = {
        "code": "native-module",
        "severity": "error",
        "what": "Cupyrite's native module cannot be imported",
        "why": why,
        "fix": [{"words": "", "command": command}],
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
        f"     fix: {command}\n\nKernels cannot be compiled and run here.\n"
    )


def demo(options):
    """Runs the demo; its exit status. Beside JSON its lines go to standard error."""
    import contextlib

    from . import demo as module

    write("" if options.json else "\n")
    target = sys.stderr if options.json else sys.stdout
    if target is None:
        target = open(os.devnull, "w", encoding="utf-8")
    with contextlib.redirect_stdout(target):
        return module.main([])


def main(words=None):
    """Entry point; returns the exit status."""
    options = arguments(words)
    try:
        from . import _native
    except ImportError as error:
        write(without_native(error, options))
        return 1
    ok, ran, hung, text = _native.doctor(facts(options), json=options.json, width=columns(), colours=colours())
    write(text)
    if hung:
        # Something of the driver's hangs in this process; its exit handlers would wait for it.
        os._exit(1)
    status = 0 if ok else 1
    if options.demo and not ran:
        print("The demo was not run.", file=sys.stderr)
    elif options.demo:
        try:
            status = demo(options) or status
        except BrokenPipeError:
            silence()
            status = 1
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
