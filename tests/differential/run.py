"""Runs the whole comparison: records both sides, one module after the other, and prints the differences.

    python tests/differential/run.py --peer PYTHON [--ours PYTHON | --wheel FILE] [--recorders FOLDER] [MODULE ...]

`PYTHON` is an interpreter with NVIDIA's package; ``--peer-path FOLDER`` (an unpacked package, first on the peer's
module path) serves where none is installed. Real libraries are used, or with ``--recorders`` the recording ones that
recorder.py built in FOLDER/MODULE. The module `core` is `cuda.core` (core.py) and needs a device. Nothing else is
needed: no Rust, no network. Records stay in ``--out``.
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from helpers.wheels import unpack

REAL = (
    "driver",
    "runtime",
    "nvrtc",
    "nvvm",
    "nvjitlink",
    "nvfatbin",
    "nvml",
    "cufile",
    "driver_v2",
    "nvrtc_v2",
    "core",
)
RECORDED = ("driver", "runtime", "nvrtc", "cudla", "cufile", "nvml", "driver_v2", "nvrtc_v2")


def record(side, python, path, module, options):
    """Runs record.py or core.py; returns the file, or None with the reason printed."""
    out = options.out / f"{side}_{module}.json"
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    if path:
        environment["PYTHONPATH"] = os.pathsep.join(map(str, path))
    command = [python, HERE / "record.py", "--module", module, "--out", out]
    if module == "core":
        command = [python, HERE / "core.py", "--out", out, "--limit", options.limit, *options.group]
        if options.jobs:
            command += ["--jobs", options.jobs]
    elif options.recorders:
        command += ["--recorder", options.recorders / module]
        # The recording libraries stand in for a GPU.
        environment["CUPYRITE_DEVICE"] = "gpu"
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
    if done.returncode:
        print(f"{module}: {side} cannot be recorded:\n{done.stderr[-2000:]}", flush=True)
        return None
    if done.stdout:
        print(f"{module}: {side}: {done.stdout.strip()}", flush=True)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    parser.add_argument("--peer", default=os.environ.get("CUPYRITE_PEER_PYTHON", sys.executable), metavar="PYTHON")
    parser.add_argument("--peer-path", type=pathlib.Path, action="append", default=[], metavar="FOLDER")
    parser.add_argument("--ours", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--ours-path", type=pathlib.Path, action="append", default=[], metavar="FOLDER")
    parser.add_argument("--wheel", type=pathlib.Path, help="Cupyrite's wheel, to be unpacked and used")
    parser.add_argument("--recorders", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--out", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--group", action="append", default=[], help="of `core`: only groups whose names begin so")
    parser.add_argument("--jobs", type=int, help="of `core`: groups at a time")
    parser.add_argument("--limit", type=float, default=1800, help="of `core`: seconds for one side")
    parser.add_argument("--full", action="store_true", help="show both outcomes of each example")
    options = parser.parse_args()
    options.out = options.out or pathlib.Path(tempfile.mkdtemp(prefix="cupyrite-differential-"))
    options.out.mkdir(parents=True, exist_ok=True)
    ours_path = list(options.ours_path)
    if options.wheel:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="cupyrite-wheel-"))
        unpack(options.wheel, folder)
        ours_path.insert(0, folder)
    good = True
    for module in options.modules or (RECORDED if options.recorders else REAL):
        sides = (("peer", options.peer, options.peer_path), ("ours", options.ours, ours_path))
        # `core` waits for processes most of the time: both sides run at once. Calls of other modules could affect each
        # other.
        with concurrent.futures.ThreadPoolExecutor(2 if module == "core" else 1) as pool:
            peer, ours = pool.map(lambda side: record(*side, module, options), sides)
        if peer and ours:
            flags = ["--full"] if options.full else []
            compare = HERE / ("core_compare.py" if module == "core" else "compare.py")
            good &= subprocess.run([sys.executable, compare, *flags, peer, ours]).returncode == 0
        else:
            good = False
        print(flush=True)
    print(f"records: {options.out}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
