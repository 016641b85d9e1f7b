"""numba-cuda: its own test suite, or a selection of it.

    python tests/clients/client_numba_cuda.py [--full] [--processes N] [FILE ...]

The installed package holds the tests. pytest looks at a copy, because it derives module names from folders that have an
`__init__.py`, and would import the package a second time under another name (see `numba_cuda_fixture.py`). Each file has a process of its own: an invalid
access ends the context of its process, and all later tests there would fail.
"""

import argparse
import collections
import concurrent.futures
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from checks import count, on_cpu_device

# Tests without which the suite does not collect.
NEEDED = ("pytest", "filecheck", "psutil", "cffi", "ml_dtypes", "pytest_benchmark", "pytest_timeout")
SECONDS_PER_TEST = 300
# Some minutes of the suite: the driver's objects, streams, linking, memory and the array interface.
SELECTION = ("cudadrv", "cudapy/test_array.py", "cudapy/test_cuda_array_interface.py", "cudapy/test_constmem.py")
SECONDS_PER_FILE = 1500
# Tests that are not run on the CPU device, each with its reason; all others must pass there.
LEFT_OUT = pathlib.Path(__file__).with_name("numba_cuda_cpu.txt")


def left_out():
    """Tests that are not run on the CPU device: `FILE::CLASS::TEST  # reason` a line."""
    lines = (line.partition("  #") for line in LEFT_OUT.read_text().splitlines() if not line.startswith("#"))
    return {test.strip(): reason.strip() for test, _, reason in lines if test.strip()}


def files(folder, full, asked):
    """The test files to run, relative to the folder `tests`."""
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("test_*.py"))
    if asked:
        return [name for name in found if any(name == a or name.startswith(a.rstrip("/") + "/") for a in asked)]
    return found if full else [name for name in found if name.startswith(SELECTION)]


def results(report):
    """Name, result and message of each test in a JUnit report. A test of which a part failed has failed."""
    found = {}
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name', '')}"
        bad = next((child for child in case if child.tag in ("failure", "error")), None)
        if bad is not None:
            found[name] = ("failed", (bad.get("message") or "").strip().partition("\n")[0])
        elif name not in found:
            skipped = any(child.tag == "skipped" for child in case)
            found[name] = ("skipped" if skipped else "passed", "")
    return found


def run_file(folder, name, without):
    """Runs one file. Returns the results of its tests by name; a process that died is the failed test `process`."""
    report = folder / (name.replace("/", "-") + ".xml")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "numba_cuda_fixture"]
    command += ["--timeout", str(SECONDS_PER_TEST), "--tb=short", f"--rootdir={folder}", f"--junitxml={report}"]
    command.append(f"tests/{name}")
    command += [f"--deselect=tests/{test}" for test in without if test.startswith(f"{name}::")]
    path = os.pathsep.join(filter(None, (str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH"))))
    try:
        process = subprocess.run(
            command,
            cwd=folder,
            env=dict(os.environ, PYTHONPATH=path),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS_PER_FILE,
        )
        status, output = process.returncode, process.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as error:
        status, output = "timeout", (error.stdout or b"").decode(errors="replace")
    found = results(report) if report.exists() else {}
    if status not in (0, 1, 5) or (status == 1 and not any(result == "failed" for result, _ in found.values())):
        last = " | ".join(output.strip().splitlines()[-3:])
        found["process"] = ("failed", f"pytest ended with {status}: {last}")
    return name, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="the whole suite")
    parser.add_argument("--processes", type=int, default=min(8, os.cpu_count() or 2), help="files at a time")
    parser.add_argument("files", nargs="*", metavar="FILE", help="files or folders below numba_cuda/numba/cuda/tests")
    options = parser.parse_args()
    if importlib.util.find_spec("numba_cuda") is None:
        print("skipped the suite: numba-cuda is not installed")
        return count(0, 0, 1)
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"FAILED  the suite needs {', '.join(missing)}")
        return count(0, 1, 0)
    package = pathlib.Path(importlib.util.find_spec("numba_cuda").origin).parent
    without = left_out() if on_cpu_device() else {}
    totals = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="numba-cuda-tests-") as folder:
        folder = pathlib.Path(folder)
        shutil.copytree(package / "numba" / "cuda" / "tests", folder / "tests")
        for place in (folder / "tests").rglob("test_*.py"):
            # Without it the file is no part of a package, and its relative imports fail.
            (place.parent / "__init__.py").touch()
        chosen = files(folder / "tests", options.full, options.files)
        with concurrent.futures.ThreadPoolExecutor(options.processes) as pool:
            for name, found in pool.map(lambda name: run_file(folder, name, without), chosen):
                counted = collections.Counter(result for result, _ in found.values())
                totals += counted
                line = ", ".join(f"{counted[result]} {result}" for result in ("passed", "failed", "skipped"))
                print(f"{'FAILED' if counted['failed'] else 'ok':7} {name}: {line}", flush=True)
                for test, (result, message) in found.items():
                    if result == "failed":
                        print(f"        failed {name}::{test}: {message[:300]}", flush=True)
                for test, reason in without.items():
                    if test.startswith(f"{name}::"):
                        totals["skipped"] += 1
                        print(f"        left out {test}: {reason}", flush=True)
    print(f"{sum(totals.values())} tests in {len(chosen)} files")
    return count(totals["passed"], totals["failed"], totals["skipped"])


if __name__ == "__main__":
    sys.exit(main())
