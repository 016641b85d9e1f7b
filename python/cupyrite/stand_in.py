"""Install the stand-ins for NVIDIA's packages from this installation of Cupyrite.

`cuda-bindings`, `cuda-core`, `cuda-pathfinder` and `cuda-python` are also the names of Cupyrite's distributions with the
modules below `cuda`, so that an installer never puts NVIDIA's beside them. The package `cupyrite` carries their wheels.
"""

import os
import subprocess
import sys

#: Folder with the wheels.
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_stand_ins")
#: The wheels' names begin with these.
NAMES = ("cuda_pathfinder", "cuda_bindings", "cuda_core", "cuda_python")


def wheels():
    """Paths of the wheels, one for each name. Raises FileNotFoundError if one is missing."""
    try:
        files = os.listdir(FOLDER)
    except OSError as error:
        raise FileNotFoundError(
            f"{FOLDER} cannot be read ({error.strerror}): only an installed Cupyrite has stand-ins; in a clone of its "
            "repository run: pip install '.[all]'"
        ) from error
    found = []
    for name in NAMES:
        matching = [file for file in files if file.startswith(f"{name}-") and file.endswith(".whl")]
        if len(matching) != 1:
            raise FileNotFoundError(
                f"{FOLDER} has {len(matching)} wheels of {name}, expected 1: install Cupyrite's wheel again"
            )
        found.append(os.path.join(FOLDER, matching[0]))
    return found


def installer():
    """The command that installs packages for this interpreter: pip's, or uv's where pip is missing; None without both."""
    import importlib.util
    import shutil

    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install"]
    uv = shutil.which("uv")
    return [uv, "pip", "install", "--python", sys.executable] if uv else None


def source():
    """The path or URL that `cupyrite` was installed from; None if an index or nothing is recorded (PEP 610)."""
    import json
    from importlib import metadata
    from urllib import parse, request

    try:
        text = metadata.distribution("cupyrite").read_text("direct_url.json")
        url = json.loads(text)["url"] if text else None
    except (metadata.PackageNotFoundError, OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(url, str) or not url.startswith("file:"):
        return url if isinstance(url, str) else None
    path = request.url2pathname(parse.urlsplit(url).path)
    return path if os.path.exists(path) else None


def main(argv=None):
    """Entry point; returns the exit status."""
    import argparse

    from .command_line import program

    parser = argparse.ArgumentParser(
        prog=f"{program()} stand-in",
        description=(__doc__ or "").partition("\n")[0],
        epilog="Further arguments go to pip (or uv): --user, --target FOLDER, --break-system-packages, --dry-run.",
    )
    parser.add_argument(
        "--print-folder", action="store_true", help="print the folder of the wheels and install nothing"
    )
    options, rest = parser.parse_known_args(argv)
    try:
        files = wheels()
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    if options.print_folder:
        if rest:
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        print(FOLDER)
        return 0
    command = installer()
    if command is None:
        print(
            f"{sys.executable} has no pip, and PATH has no uv. Install one of them, or install the wheels in {FOLDER} "
            "with your installer.",
            file=sys.stderr,
        )
        return 1
    # The wheels require only each other and `cupyrite`. What NVIDIA's packages of the same names left is replaced.
    command += ["--no-index", "--no-deps", "--force-reinstall", *rest, *files]
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main())
