"""Runs the kernels of helpers/random_programs.py on the GPU of this machine and writes the digests of their results to
tests/golden/random_programs.json.

    python tests/golden/record_random_programs.py [--count N] [--processes N] [--seconds N] [--out FILE]
    CUPYRITE_DEVICE=cpu python tests/golden/record_random_programs.py --compare

The second command runs all recorded kernels again and lists the batches whose digests differ; CI runs a part of them.
Works with any installed `cuda.bindings`, NVIDIA's included. A kernel that fails on the GPU has no digest: the driver's compiler
translates a few of them into accesses out of bounds.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from cuda.bindings import driver

from helpers.device import check, on_cpu_device
from helpers.random_programs import BATCH, KERNELS_PER_MODULE, digests, fold, version

# Kernels whose digests are recorded one by one; of the others, each batch has one digest.
SINGLE = 4000
# Kernels of one process.
CHUNK = 1000
SECONDS_CHUNK = 120


def current():
    """Makes the primary context current. Returns the device's name."""
    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(device))))
    return check(driver.cuDeviceGetName(256, device)).split(b"\0")[0].decode()


def worker(first, end, per_module):
    """Prints the digests of the kernels of each module as soon as they have run."""
    current()
    for seed in range(first, end, per_module):
        print(*digests(range(seed, min(seed + per_module, end)), per_module), sep="\n", flush=True)


def run(first, end, per_module):
    """What a process of its own prints of the kernels, until one fails."""
    command = [sys.executable, __file__, "--worker", str(first), str(end), str(per_module)]
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_CHUNK).stdout
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode()
    return [int(line) for line in output.splitlines() if line.isdigit()]


def chunk(first, end, stop):
    """The digests of some kernels; None for one that fails, as that ends the context of its process."""
    found = []
    while len(found) < end - first and time.monotonic() < stop:
        found += run(first + len(found), end, KERNELS_PER_MODULE)
        if len(found) < end - first:
            # One of the next module fails: each in a module of its own.
            single = min(first + len(found) + KERNELS_PER_MODULE, end)
            found += run(first + len(found), single, 1)
            if first + len(found) < single:
                found.append(None)
    return found


def record(count, processes, seconds):
    """The digests of the kernels, up to the first chunk that the seconds did not allow."""
    stop = time.monotonic() + seconds
    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        starts = range(0, count, CHUNK)
        chunks = list(pool.map(lambda start: chunk(start, min(start + CHUNK, count), stop), starts))
    found = []
    for start, part in zip(starts, chunks, strict=True):
        found += part
        if len(part) < min(CHUNK, count - start):
            break
    return found


def compare(file):
    """Whether all recorded kernels give the recorded digests here."""
    golden = json.loads(file.read_text())
    if version() != golden["version"]:
        sys.exit("the recorded digests belong to another version of the generator: record again")
    current()
    singles = digests(range(len(golden["kernels"])))
    differing = [f"kernel {i}" for i, found in enumerate(singles) if text(found) != golden["kernels"][i]]
    for i, recorded in enumerate(golden["batches"]):
        first = SINGLE + i * BATCH
        if f"{fold(digests(range(first, first + BATCH))):08x}" != recorded:
            differing.append(f"one of kernels {first} to {first + BATCH - 1}")
    print(*differing, f"{len(differing)} differ", sep="\n")
    return not differing


def text(digest):
    return "failed" if digest is None else f"{digest:08x}"


def main():
    if sys.argv[1:2] == ["--worker"]:
        return worker(*map(int, sys.argv[2:]))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--out", type=pathlib.Path, default=TESTS / "golden" / "random_programs.json")
    parser.add_argument("--compare", action="store_true", help="compare with the recorded digests instead")
    options = parser.parse_args()
    if options.compare:
        sys.exit(not compare(options.out))
    if on_cpu_device() and options.out == parser.get_default("out"):
        parser.error("this process runs on the CPU device; golden values come from a GPU")
    found = record(options.count, options.processes, options.seconds)
    name = current()
    golden = {
        "made_by": f"{name}, driver {check(driver.cuDriverGetVersion())}",
        "version": version(),
        "kernels": [text(digest) for digest in found[:SINGLE]],
        "batches": [f"{fold(found[i : i + BATCH]):08x}" for i in range(SINGLE, len(found), BATCH)],
        "failed": [i for i, digest in enumerate(found) if digest is None],
    }
    options.out.write_text(json.dumps(golden, indent=0) + "\n")
    print(f"{len(found)} kernels, {len(golden['failed'])} failed")
    return None


if __name__ == "__main__":
    main()
