"""`--cuda-device=both`: the whole run once on the GPU and once on the CPU device.

A process uses one device, so each run is a process of its own, with the same command line. Its exit status and the tests that
failed are combined here.
"""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
from typing import Any

import pytest

from ._session import VARIABLE, environment_for

ORDER = ("gpu", "cpu")
OUTCOMES = ("passed", "failed", "error", "skipped", "deselected", "xfailed", "xpassed")
STOP = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)


def run(config: pytest.Config) -> int:
    """Runs both and returns the exit status. Raises UsageError if this process's command line is unknown."""
    command = _command(config)
    reports: dict[str, dict[str, Any]] = {}
    statuses: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="cupyrite-pytest-") as folder:
        for device in ORDER:
            summary = pathlib.Path(folder) / device
            print(f"\ncuda: running on the {device} device ({ORDER.index(device) + 1} of {len(ORDER)})", flush=True)
            statuses[device] = _run(command, _environment(config, device, summary), config)
            if summary.exists():
                reports[device] = json.loads(summary.read_text("utf-8"))
            if statuses[device] in STOP or (statuses[device] and config.getoption("maxfail", 0)):
                break
    _print(statuses, reports)
    return combined(list(statuses.values()))


def combined(statuses: list[int]) -> int:
    """The exit status of several runs: the first failure; "no tests collected" only if that is all."""
    failures = [status for status in statuses if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)]
    if failures:
        # A process that a signal ended: as a shell reports it.
        return failures[0] if failures[0] > 0 else 128 - failures[0]
    return min(statuses)


def _command(config: pytest.Config) -> list[str]:
    arguments = [str(argument) for argument in config.invocation_params.args]
    words = list(sys.orig_argv[1:])
    if len(words) > len(arguments) and words[len(words) - len(arguments) :] == arguments:
        return [sys.executable, *words]
    if any(not isinstance(plugin, str) for plugin in config.invocation_params.plugins or ()):
        raise pytest.UsageError("--cuda-device=both: pytest.main() with plugin objects cannot run in other processes")
    return [sys.executable, "-m", "pytest", *arguments]


def _environment(config: pytest.Config, device: str, summary: pathlib.Path) -> dict[str, str]:
    environment = environment_for(device)
    before = environment.get("PYTEST_ADDOPTS")
    # --last-failed for each device, and one measurement of both.
    options = []
    if config.pluginmanager.hasplugin("cacheprovider"):
        options += ["-o", f"cache_dir={os.path.join(str(config.getini('cache_dir')), device)}"]
    if config.pluginmanager.hasplugin("_cov") and config.getoption("cov_source", None) and device != ORDER[0]:
        options.append("--cov-append")
    environment["PYTEST_ADDOPTS"] = shlex.join([*shlex.split(before or ""), *options])
    message: dict[str, Any] = {"parent": os.getpid(), "device": device, "summary": str(summary), "addopts": before}
    if path := config.getoption("xmlpath", None):
        root, ending = os.path.splitext(path)
        message["junit"] = f"{root}-{device}{ending}"
    return {**environment, VARIABLE: json.dumps(message)}


def _run(command: list[str], environment: dict[str, str], config: pytest.Config) -> int:
    process = subprocess.Popen(command, env=environment, cwd=config.invocation_params.dir)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # The terminal has interrupted that process too; it prints its summary.
            continue


def _print(statuses: dict[str, int], reports: dict[str, dict[str, Any]]) -> None:
    print("\ncuda: both devices")
    for device, status in statuses.items():
        counts = reports.get(device, {}).get("counts", {})
        text = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts.get(name))
        print(f"  {device}: {text or 'no tests ran'} (exit status {status})")
    for device in ORDER[len(statuses) :]:
        print(f"  {device}: not run")
    failed = {device: set(report["failed"]) for device, report in reports.items()}
    if len(failed) == len(ORDER):
        for device, other in (ORDER, ORDER[::-1]):
            for name in sorted(failed[device] - failed[other]):
                print(f"  failed on the {device} device only: {name}")
    sys.stdout.flush()
