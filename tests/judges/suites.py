"""Judges with a test runner of their own: their reports become results."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

from processes import execute
from results import FAILED, PASSED, TOO_SLOW, WAIVED, Result

SECONDS_BUILD = 1200


def ptx_tests(root, options):
    """`ptx_tests` of the ZLUDA project: single instructions against the host. Needs cargo, and crates.io to build."""
    variables = dict(options.variables, RUSTC_BOOTSTRAP="1")  # it uses unstable features of Rust
    status, _, output = execute(["cargo", "build", "--release"], root, variables, SECONDS_BUILD)
    if status != 0:
        raise ValueError(f"{root}: cargo build failed: {output.strip().splitlines()[-1:]}")
    programs = [path for path in (root / "target" / "release").iterdir() if path.is_file() and os.access(path, os.X_OK)]
    programs = [path for path in programs if path.suffix == ""]
    library = options.libraries / "libcuda.so.1" if options.libraries else "libcuda.so.1"
    listed = execute([programs[0], "--list"], root, variables, 60)[2].split()
    results = []
    # Each in a process of its own: a fault ends the context of its process.
    for name in (name for name in listed if options.wanted(name)):
        command = [*options.launcher, programs[0], "--filter", f"^{re.escape(name)}$", library]
        status, seconds, output = execute(command, root, variables, options.limit)
        lines = output.strip().splitlines() or [""]
        outcome = TOO_SLOW if status is None else PASSED if status == 0 and lines[0].endswith(": OK") else FAILED
        results.append(Result(name, outcome, seconds, " ".join(lines)[:200]))
        options.progress(results[-1])
    return results


def ctest(root, options):
    """The tests of a build folder of CMake, such as CUB's, Thrust's or CUTLASS's, that used the judges' `nvcc`."""
    if not (root / "CTestTestfile.cmake").exists():
        raise ValueError(f"{root}: expected a build folder of CMake with tests (no CTestTestfile.cmake)")
    report = root / "judge.xml"
    report.unlink(missing_ok=True)
    words = ["ctest", "--test-dir", root, "--timeout", int(options.limit), "--output-junit", report]
    words += ["--tests-regex", options.only] if options.only else []
    execute([*options.launcher, *words], root, options.variables, options.total)
    return junit(report, options)


def pytest(root, options):
    """The tests of a folder of Python tests, such as Triton's or numba-cuda-mlir's, with the packages of `--with`."""
    report = options.work / "judge.xml"
    report.unlink(missing_ok=True)
    words = [options.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}", root]
    words += ["-k", options.only] if options.only else []
    words += [f"--timeout={int(options.limit)}"]
    execute([*options.launcher, *words], options.work, options.variables, options.total)
    return junit(report, options)


def stumpy(root, options):
    """The CUDA tests of stumpy, which its own CI runs on the simulator of Numba; that run is timed too."""
    results = []
    for path in sorted((root / "tests").glob("test_gpu_*.py")):
        if not options.wanted(path.stem):
            continue
        for name, launcher, simulator in ((path.stem, options.launcher, "0"), (f"{path.stem} (simulator)", [], "1")):
            variables = dict(options.variables, NUMBA_ENABLE_CUDASIM=simulator)
            command = [*launcher, options.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-x", path]
            status, seconds, output = execute(command, root, variables, options.limit)
            last = (output.strip().splitlines() or [""])[-1].strip("= ")
            outcome = TOO_SLOW if status is None else PASSED if status == 0 else WAIVED if status == 5 else FAILED
            results.append(Result(name, outcome, seconds, last[:200]))
            options.progress(results[-1])
    return results


def junit(report, options):
    """The results in a JUnit report."""
    if not report.exists():
        raise ValueError(f"{report}: the test runner wrote no report within {options.total:.0f} s")
    results = []
    for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
        name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
        tags = {child.tag: child for child in case}
        bad = tags.get("failure", tags.get("error"))
        detail, outcome = "", PASSED
        if bad is not None:
            text = (bad.get("message") or bad.text or "").strip()
            detail, outcome = (text.splitlines() or [""])[0][:200], FAILED
            if re.search(r"\btimed? ?out\b", text, re.I):
                outcome = TOO_SLOW
        elif "skipped" in tags:
            detail, outcome = (tags["skipped"].get("message") or "")[:200], WAIVED
        results.append(Result(name, outcome, float(case.get("time") or 0), detail))
        if outcome != PASSED:
            options.progress(results[-1])
    return results


SUITES = {"ptx_tests": ptx_tests, "ctest": ctest, "pytest": pytest, "stumpy": stumpy}
# What a suite's environment has beside Cupyrite and the requirements of `--with`.
REQUIREMENTS = {
    "cuda-samples": () if shutil.which("cmake") else ("cmake",),
    "pytest": ("pytest", "pytest-timeout", "pytest-xdist"),
    "stumpy": ("pytest", "numba-cuda[cu13]", "numba", "numpy", "scipy", "pandas", "dask", "distributed"),
}


def python(folder, requirements, wheels):
    """The interpreter of an environment with the requirements and the wheels, which is filled once."""
    place = folder / "bin" / "python"
    stamp = folder / ".requirements"
    files = sorted(wheels.glob("*.whl")) if wheels else []
    wanted = "\n".join([*requirements, *(f"{path.name} {path.stat().st_mtime_ns}" for path in files)])
    if stamp.exists() and stamp.read_text() == wanted:
        return place
    if not place.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [place, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if files:
        subprocess.run([*pip, "--no-deps", "--force-reinstall", *files], check=True)
        subprocess.run([*pip, "--find-links", wheels, *files, *requirements], check=True)
    else:
        subprocess.run([*pip, *requirements], check=True)
    stamp.write_text(wanted)
    return pathlib.Path(place)
