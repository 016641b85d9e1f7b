"""Runs the test suite against a built wheel on the GPU of this machine.

    python tests/run_gpu.py --wheel cupyrite-...whl [--listings FOLDER] [--device auto|gpu|cpu] [PYTEST ARGUMENT ...]

Needs no network, no Rust and no installation: the wheel (or the only one of cupyrite in a folder) and the stand-ins that
it carries are unpacked into a temporary folder that comes first on the module path, ahead of any other `cuda.bindings`.
The interpreter provides pytest, NumPy and hypothesis; NVRTC is found as usual (wheels, conda, CUDA_PATH, /usr/local/cuda).
"""

import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

from helpers.wheels import find_wheel, unpack

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEEDED = ("pytest", "numpy", "hypothesis")


def call(title, command, environment):
    """Runs one command between two lines of output; returns whether it succeeded."""
    print(f"== {title}", flush=True)
    status = subprocess.run(command, env=environment, cwd=ROOT).returncode
    print(f"== {title}: {'ok' if status == 0 else f'exit status {status}'}", flush=True)
    return status == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=pathlib.Path, required=True, help="the wheel to test, or its folder")
    parser.add_argument("--listings", type=pathlib.Path, help="a folder of listings to run too (01_*.py)")
    parser.add_argument("--device", default="gpu", choices=("auto", "gpu", "cpu"), help="CUPYRITE_DEVICE (gpu)")
    options, rest = parser.parse_known_args()
    try:
        find_wheel(options.wheel)
    except ValueError as error:
        parser.error(f"--wheel {error}")
    if sys.version_info < (3, 11):
        parser.error(f"needs Python 3.11 or newer; this is {sys.version.split()[0]} ({sys.executable})")
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        parser.error(f"{sys.executable} lacks {', '.join(missing)}: pip install {' '.join(missing)}")

    with tempfile.TemporaryDirectory(prefix="cupyrite-wheel-") as folder:
        unpack(options.wheel, folder)
        environment = dict(os.environ, CUPYRITE_DEVICE=options.device, PYTHONDONTWRITEBYTECODE="1")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
        where = "import cuda.bindings as b, sys; print(b.__file__); sys.exit(not b.__file__.startswith(sys.argv[1]))"
        if not call("the wheel's modules are the ones imported", [sys.executable, "-c", where, folder], environment):
            return 1
        good = call("demo", [sys.executable, "-m", "cupyrite.demo"], environment)
        good &= call(
            "tests", [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(rest or ["tests"])], environment
        )
        for listing in sorted(options.listings.glob("01_*.py")) if options.listings else ():
            good &= call(listing.name, [sys.executable, str(listing)], environment)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
