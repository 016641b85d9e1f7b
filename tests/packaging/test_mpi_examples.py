"""The examples with MPI: several ranks on one machine, with mpi4py and an MPI library."""

import os
import pathlib
import subprocess
import sys
import time

import pytest

from helpers.device import on_cpu_device
from helpers.mpi import NO_DEVICE, OPEN_MPI, find_program

pytest.importorskip("mpi4py")

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "mpi"
MPIEXEC = find_program("mpiexec")

pytestmark = [
    pytest.mark.skipif(MPIEXEC is None, reason="needs mpiexec, for example of the wheel mpich"),
    pytest.mark.timeout(150),
]


def ranks(count, *arguments, environment=()):
    """The part of a command line that starts so many ranks. `environment` is for them alone."""
    program = [sys.executable, str(FOLDER / "halo_exchange.py"), *arguments]
    return ["-n", str(count), *(["env", *environment] if environment else []), *program]


def run(*parts, devices="4"):
    """Starts ranks together."""
    command = [MPIEXEC]
    for n, part in enumerate(parts):
        command += [":", *part] if n else part
    several = {"CUPYRITE_CPU_DEVICES": devices} if on_cpu_device() else {}
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **OPEN_MPI, **several)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def confirm(done, count):
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} ranks" in done.stdout and done.stdout.endswith("done: the results are right\n"), done.stdout


@pytest.mark.parametrize("count", [1, 2, 4])
def test_ranks_exchange_edge_rows(count):
    done = run(ranks(count))
    confirm(done, count)
    assert f"messages in {'device' if on_cpu_device() else 'host'} memory" in done.stdout, done.stdout


def test_ranks_exchange_by_host_memory():
    confirm(run(ranks(3, "--messages", "host")), 3)


@pytest.mark.cpu
def test_ranks_share_devices_if_there_are_more():
    confirm(run(ranks(3, "--size", "5", "--steps", "4"), devices="2"), 3)


@pytest.mark.cpu
@pytest.mark.parametrize(
    "kind, rows", [("strong", ["1 ranks, 64", "2 ranks, 64"]), ("weak", ["1 ranks, 64", "2 ranks, 126"])]
)
def test_scaling_is_printed_and_plotted(kind, rows, tmp_path):
    picture = tmp_path / "scaling.png"
    done = run(ranks(2, "--size", "64", "--steps", "5", "--scaling", kind, "--plot", str(picture)))
    confirm(done, 2)
    assert all(row in done.stdout for row in rows), done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG") or "no plot: " in done.stdout


@pytest.mark.cpu
def test_the_rank_without_a_device_says_so_and_all_end():
    done = run(ranks(1), ranks(1, environment=NO_DEVICE), ranks(1))
    assert done.returncode == 77, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if "skipped: " in line]
    assert len(lines) == 1 and lines[0].startswith("skipped: rank 1 on ") and "no device" in lines[0], done.stdout


@pytest.mark.cpu
def test_the_rank_without_a_compiler_says_so_and_all_end():
    done = run(ranks(1), ranks(1, environment=("CUPYRITE_LIB_NVRTC=/no/libnvrtc.so",)), ranks(1))
    assert done.returncode == 1, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("rank ")]
    assert len(lines) == 1 and lines[0].startswith("rank 1 on ") and "nvrtc" in lines[0].lower(), done.stdout


@pytest.mark.cpu
def test_all_ranks_end_if_one_is_killed():
    endless = ("--steps", "1000000000")
    killed = ranks(1, *endless)
    killed[2:2] = ["timeout", "-s", "KILL", "4"]
    start = time.monotonic()
    done = run(ranks(1, *endless), killed, ranks(1, *endless))
    assert done.returncode != 0 and "done: " not in done.stdout, done.stdout + done.stderr
    assert time.monotonic() - start < 60


@pytest.mark.cpu
def test_a_field_that_is_too_small_is_refused_once():
    done = run(ranks(3, "--size", "4"))
    assert done.returncode == 2 and done.stderr.count("--size 4: expected at least 5") == 1, done.stdout + done.stderr
