"""Checks of one client: a line for each, counts at the end, the exit status. Standard library only.

A script decorates functions with `check` and ends with `finish()`. A check that raises has failed; one that raises `Skip`
says why it cannot run here.
"""

import sys
import traceback

CHECKS = []


class Skip(Exception):
    """The check cannot run here, for the reason given."""


def check(function):
    """Registers a check. Its name, with spaces, is the line that is printed."""
    CHECKS.append((function.__name__.replace("_", " "), function))
    return function


def need(*names):
    """Imports modules, or skips. Returns the module, or a list of them."""
    import importlib

    found = []
    for name in names:
        try:
            found.append(importlib.import_module(name))
        except ModuleNotFoundError as error:
            # A module of ours that is missing is a failure, not a client that is not installed.
            if error.name and error.name.partition(".")[0] in ("cuda", "cupyrite") and name != error.name:
                raise
            raise Skip(f"{name} is not installed") from error
    return found[0] if len(found) == 1 else found


def on_cpu_device():
    """Whether device 0 is Cupyrite's CPU device."""
    from cuda.bindings import driver

    driver.cuInit(0)
    status, name = driver.cuDeviceGetName(64, 0)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"cuDeviceGetName: {status.name}")
    return name.startswith(b"CPU")


def need_gpu(reason):
    """Skips on the CPU device."""
    if on_cpu_device():
        raise Skip(f"the CPU device: {reason}")


def count(passed, failed, skipped):
    """The last line of a script, which the runner reads."""
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed or not passed + skipped else 0


def finish():
    """Runs the checks and exits."""
    results = {"ok": 0, "FAILED": 0, "skipped": 0}
    for name, function in CHECKS:
        note, trace = "", ""
        try:
            function()
            result = "ok"
        except Skip as reason:
            result, note = "skipped", f": {reason}"
        except Exception as error:
            result, note, trace = "FAILED", f": {type(error).__name__}: {error}", traceback.format_exc()
        results[result] += 1
        print(f"{result:7} {name}{note}", flush=True)
        if trace:
            print(trace, file=sys.stderr, flush=True)
    sys.exit(count(results["ok"], results["FAILED"], results["skipped"]))
