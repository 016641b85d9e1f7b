"""The examples with Ray, on CPU devices or on the GPUs of the machine."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

from helpers.device import on_cpu_device

pytest.importorskip("ray")

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "ray" / "actors.py"
SKIPPED = 77

pytestmark = pytest.mark.timeout(200)


def run(folder, *arguments, devices="3", **more):
    """Runs a copy of the example in the folder."""
    shutil.copy(EXAMPLE, folder)
    several = {"CUPYRITE_CPU_DEVICES": devices} if on_cpu_device() else {}
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "RAY_USAGE_STATS_ENABLED": "0", **several, **more}
    if on_cpu_device():
        environment.pop("CUDA_VISIBLE_DEVICES", None)
    command = [sys.executable, EXAMPLE.name, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=180)


def confirm(done):
    output = done.stdout + done.stderr
    if done.returncode == SKIPPED and not on_cpu_device():
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, output
    assert done.stdout.endswith("done: the results are right\n"), output


def processes_in(folder):
    """Command lines of the processes whose current folder is `folder`."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == folder:
                found.append((process / "cmdline").read_bytes())
    return found


@pytest.mark.skipif(not pathlib.Path("/proc/self/cwd").exists(), reason="needs /proc")
def test_an_actor_that_is_killed_computes_its_steps_again_and_no_process_is_left(tmp_path):
    done = run(tmp_path)
    confirm(done)
    # Step 50 again, from the rows of step 40.
    assert "actor 1 was started again, and computed 9 steps again" in done.stdout, done.stdout
    assert "100 steps by 3 actors" in done.stdout, done.stdout
    deadline = time.monotonic() + 20
    while (left := processes_in(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left, "a process of Ray outlives the program"


def test_bands_of_one_row_are_computed_without_a_crash(tmp_path):
    done = run(tmp_path, "--workers", "2", "--size", "4", "--steps", "5", "--every", "2", "--no-crash")
    confirm(done)
    assert "started again" not in done.stdout, done.stdout


@pytest.mark.cpu
def test_more_actors_than_devices_are_refused_once(tmp_path):
    done = run(tmp_path, "--workers", "3", devices="2")
    assert done.returncode == SKIPPED, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("skipped: ")]
    assert len(lines) == 1 and "3 devices are needed, and there are 2" in lines[0], done.stdout


@pytest.mark.cpu
def test_the_example_is_skipped_without_a_device(tmp_path):
    done = run(tmp_path, CUPYRITE_DEVICE="gpu", CUPYRITE_LIB_CUDA="/no/libcuda.so.1")
    assert done.returncode == SKIPPED and "skipped: no device: " in done.stdout, done.stdout + done.stderr


def test_the_example_is_skipped_without_ray(tmp_path):
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError(\"No module named 'ray'\", name='ray')")
    done = run(tmp_path)
    assert done.returncode == SKIPPED, done.stdout + done.stderr
    assert "skipped: cupyrite.ray needs Ray: pip install 'cupyrite[ray]'" in done.stdout, done.stdout


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["--workers", "0"], "--workers 0: expected at least 1"),
        (["--size", "4"], "--size 4: expected at least 5, a row for each actor and two edges"),
        (["--every", "0"], "--every 0: expected at least 1"),
    ],
)
def test_sizes_that_cannot_be_divided_are_refused(arguments, expected, tmp_path):
    done = run(tmp_path, *arguments)
    assert done.returncode == 2 and expected in done.stderr, done.stdout + done.stderr
