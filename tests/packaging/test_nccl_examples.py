"""The examples with NCCL and NVSHMEM: on GPUs with nccl4py and nvshmem4py, on CPU devices with doubles of both."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from helpers.device import on_cpu_device

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples"
ALL_REDUCE, EXCHANGE = FOLDER / "nccl" / "all_reduce.py", FOLDER / "nvshmem" / "exchange.py"
SKIPPED = 77

# A main program around an example whose rank 1 goes wrong. Its processes import it, too.
WRONG = """
import os, signal, sys, time
import all_reduce

right = all_reduce.compute

def compute(nccl, rank, *more):
    if rank == 1:
        {what}
    return right(nccl, rank, *more)

all_reduce.compute = compute
if __name__ == "__main__":
    all_reduce.main()
"""

# What the example uses of nvshmem.core, for processes on CPU devices. Symmetric memory is files that all of them map. Calls wait for
# the stream. With delays, PEs run ahead of each other as far as they can.
NVSHMEM = """
import ctypes, enum, mmap, os, random, time
from cuda.bindings import driver
from cuda.core import Buffer

SignalOp = enum.IntEnum("SignalOp", {"SIGNAL_SET": 9})
ComparisonType = enum.IntEnum("ComparisonType", {"CMP_GE": 5})
memory, barriers = {}, 0

def get_unique_id():
    return "job"

def init(*, device, uid, rank, nranks, initializer_method):
    global me, count, flags
    assert uid == "job" and initializer_method == "uid"
    me, count = rank, nranks
    flags = [attach(f"barrier-{pe}", 8)[0] for pe in range(count)]
    random.seed(rank)

def attach(name, size):
    file = os.open(name, os.O_CREAT | os.O_RDWR)
    os.ftruncate(file, size)
    mapped = mmap.mmap(file, size)
    return ctypes.c_uint64.from_buffer(mapped), mapped

def buffer(size):
    parts = [attach(f"{len(memory)}-{pe}", size) for pe in range(count)]
    address = ctypes.addressof(parts[me][0])
    (status,) = driver.cuMemHostRegister(address, size, 0)
    assert status == 0, status
    memory[address] = parts
    return Buffer.from_handle(address, size)

def wait(word, value):
    end = time.monotonic() + 30
    while word.value < value:
        assert time.monotonic() < end, "no signal"
        time.sleep(0)

def put_signal(dst, src, signal_var, signal_val, signal_op, remote_pe, stream):
    assert signal_op == SignalOp.SIGNAL_SET
    stream.sync()
    time.sleep(random.choice([0, 0, 0.004]))
    memory[dst.handle][remote_pe][1][:] = ctypes.string_at(src.handle, src.size)
    memory[signal_var.handle][remote_pe][0].value = signal_val

def signal_wait(signal_var, signal_val, signal_op, stream):
    assert signal_op == ComparisonType.CMP_GE
    stream.sync()
    wait(memory[signal_var.handle][me][0], signal_val)
    # The left neighbour may already run ahead.
    time.sleep(random.choice([0, 0, 0.004]))

def barrier_all(stream):
    global barriers
    stream.sync()
    barriers += 1
    flags[me].value = barriers
    for flag in flags:
        wait(flag, barriers)

def free(buffer):
    assert driver.cuMemHostUnregister(buffer.handle)[0] == 0
    del memory[buffer.handle]

def finalize():
    assert not memory
"""
EXCHANGE_WITH_DOUBLE = """
import sys
import numpy as np
import exchange

if __name__ == "__main__":
    pes, rounds, count = 3, 40, 1000
    for pe, found in enumerate(exchange.run(pes, rounds, count, 60)):
        assert np.array_equal(found, exchange.numbers_of((pe - rounds) % pes, count) + rounds), pe
    print("right")
"""

pytestmark = pytest.mark.timeout(200)


def run(program, *arguments, folder, devices="4", **more):
    """Runs a copy of the program in the folder."""
    if program.parent != folder:
        shutil.copy(program, folder)
    several = {"CUPYRITE_CPU_DEVICES": devices} if on_cpu_device() else {}
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **several, **more)
    command = [sys.executable, program.name, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=180)


def confirm(done):
    if done.returncode == SKIPPED:
        assert done.stdout.startswith("skipped: ") and done.stdout.count("\n") == 1, done.stdout
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("on ") and done.stdout.endswith("done: the results are right\n"), done.stdout


def nothing_left(folder):
    """Whether no process of the program is left."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == folder:
                return False
        except OSError:
            pass
    return True


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_by_the_double(ranks, tmp_path):
    done = run(ALL_REDUCE, "--double", "--ranks", str(ranks), folder=tmp_path)
    confirm(done)
    assert f"{ranks} ranks of 100003 numbers, by the test double" in done.stdout


def test_all_devices_are_ranks(tmp_path):
    done = run(ALL_REDUCE, "--double", "--numbers", "7", folder=tmp_path, devices="3")
    confirm(done)
    assert not on_cpu_device() or "3 ranks of 7 numbers" in done.stdout, done.stdout


def test_ranks_by_nccl(tmp_path):
    done = run(ALL_REDUCE, folder=tmp_path)
    confirm(done)
    assert ", by NCCL" in done.stdout


def test_exchange_by_nvshmem(tmp_path):
    confirm(run(EXCHANGE, folder=tmp_path))


@pytest.mark.cpu
def test_exchange_with_a_double_of_nvshmem(tmp_path):
    (tmp_path / "nvshmem").mkdir()
    (tmp_path / "nvshmem" / "core.py").write_text(NVSHMEM)
    (tmp_path / "main.py").write_text(EXCHANGE_WITH_DOUBLE)
    shutil.copy(EXCHANGE, tmp_path)
    done = run(tmp_path / "main.py", folder=tmp_path)
    assert done.returncode == 0 and done.stdout == "right\n", done.stdout + done.stderr


@pytest.mark.cpu
@pytest.mark.parametrize(
    "what, timeout, expected",
    [
        ("import atexit; atexit.register(os._exit, 7)", "60", ("rank 1 did not end well: status 7",)),
        ("time.sleep(100)", "5", ("did not finish within 5 s",)),
        # Rank 0 may report the loss first.
        ("os.kill(os.getpid(), signal.SIGKILL)", "60", ("rank 1 ended with status -9", "rank 1 left")),
        ("raise ValueError('planned')", "60", ("rank 1 failed: ValueError: planned",)),
    ],
)
def test_rank_that_goes_wrong_ends_all(what, timeout, expected, tmp_path):
    (tmp_path / "main.py").write_text(WRONG.format(what=what))
    shutil.copy(ALL_REDUCE, tmp_path)
    arguments = ("--double", "--ranks", "3", "--timeout", timeout)
    done = run(tmp_path / "main.py", *arguments, folder=tmp_path)
    assert done.returncode == 1 and "done" not in done.stdout, done.stdout + done.stderr
    assert any(text in done.stderr.splitlines()[-1] for text in expected), done.stderr
    assert nothing_left(tmp_path), "a rank outlives the program"


@pytest.mark.cpu
def test_wrong_sums_are_found(tmp_path):
    text = ALL_REDUCE.read_text()
    assert "nccl.SUM" in text
    (tmp_path / "wrong.py").write_text(text.replace("nccl.SUM", "nccl.MAX"))
    done = run(tmp_path / "wrong.py", "--double", "--ranks", "2", folder=tmp_path)
    assert done.returncode == 1 and "wrong result: the squares on rank 0" in done.stderr, done.stdout + done.stderr


@pytest.mark.cpu
@pytest.mark.parametrize("program, name", [(ALL_REDUCE, "NCCL"), (EXCHANGE, "NVSHMEM")])
def test_cpu_device_is_skipped(program, name, tmp_path):
    done = run(program, folder=tmp_path)
    assert done.returncode == SKIPPED and done.stdout.startswith(f"skipped: {name} needs GPUs"), (
        done.stdout + done.stderr
    )
    assert done.stdout.count("\n") == 1


@pytest.mark.cpu
@pytest.mark.parametrize("program", [ALL_REDUCE, EXCHANGE])
def test_machine_without_a_device_is_skipped(program, tmp_path):
    done = run(program, folder=tmp_path, CUPYRITE_DEVICE="gpu", CUPYRITE_LIB_CUDA="/no/libcuda.so.1")
    assert done.returncode == SKIPPED and done.stdout.startswith("skipped: no device: "), done.stdout + done.stderr
    assert done.stdout.count("\n") == 1


@pytest.mark.skipif(on_cpu_device(), reason="needs a GPU")
@pytest.mark.parametrize("program, package", [(ALL_REDUCE, "nccl"), (EXCHANGE, "nvshmem")])
def test_missing_package_is_skipped(program, package, tmp_path):
    (tmp_path / f"{package}.py").write_text("raise ImportError('hidden')")
    done = run(program, folder=tmp_path)
    assert done.returncode == SKIPPED and f"{package}4py or " in done.stdout and "hidden" in done.stdout, done.stdout


@pytest.mark.cpu
def test_fewer_devices_than_ranks_are_skipped(tmp_path):
    done = run(ALL_REDUCE, "--double", "--ranks", "3", folder=tmp_path, devices="2")
    assert done.returncode == SKIPPED and "3 devices are needed, and there are 2" in done.stdout, done.stdout


@pytest.mark.parametrize(
    "program, arguments, expected",
    [
        (ALL_REDUCE, ["--ranks", "-1"], "--ranks -1: expected at least 0"),
        (ALL_REDUCE, ["--numbers", "0"], "--numbers 0: expected at least 1"),
        (EXCHANGE, ["--rounds", "0"], "--rounds 0: expected at least 1"),
        (EXCHANGE, ["--timeout", "0"], "--timeout 0.0: expected at least 1"),
    ],
)
def test_invalid_sizes_are_refused(program, arguments, expected, tmp_path):
    done = run(program, *arguments, folder=tmp_path)
    assert done.returncode == 2 and expected in done.stderr, done.stdout + done.stderr
