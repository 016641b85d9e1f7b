"""The examples with Dask: workers in processes of one machine, with the real package."""

import os
import pathlib
import subprocess
import sys

import pytest
from cuda.core import Device

from helpers.device import on_cpu_device

pytest.importorskip("distributed")

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "examples" / "dask" / "map_reduce.py"

pytestmark = pytest.mark.timeout(150)


def run(*arguments, devices="4"):
    several = {"CUPYRITE_CPU_DEVICES": devices} if on_cpu_device() else {}
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **several)
    command = [sys.executable, str(PROGRAM), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=140)


def confirm(done):
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("done: the results are right\n"), done.stdout


@pytest.mark.cpu
@pytest.mark.parametrize("workers", ["2", "4"])
def test_workers_compute_what_a_killed_one_had(workers):
    done = run("--workers", workers)
    confirm(done)
    assert f"{workers} workers" in done.stdout and "one worker was killed" in done.stdout, done.stdout
    assert " 0 results moved" not in done.stdout, done.stdout


def test_one_worker_computes_more_than_its_device_holds():
    done = run("--workers", "1")
    confirm(done)
    assert "no worker was killed" in done.stdout and " 0 results moved" not in done.stdout, done.stdout


def test_without_a_limit_all_blocks_stay_on_the_devices():
    done = run("--workers", "1", "--limit", "1 GiB", "--blocks", "7", "--no-kill")
    confirm(done)
    assert " 0 results moved to the host" in done.stdout, done.stdout


def test_more_workers_than_devices_are_skipped():
    devices = 2 if on_cpu_device() else len(Device.get_all_devices())
    done = run("--workers", str(devices + 1), devices="2")
    assert done.returncode == 77, done.stdout + done.stderr
    assert f"skipped: {devices + 1} workers need a device each; there are {devices}" in done.stdout
