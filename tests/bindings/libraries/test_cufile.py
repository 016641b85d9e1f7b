"""cuda.bindings.cufile without GPUDirect Storage, including a call that does not return."""

import pickle
import signal
import subprocess

import pytest
from cuda import pathfinder
from cuda.bindings import cufile

from helpers.programs import start
from helpers.waits import until_blocked


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Skips the test where cuFile is not installed. Its log is written to the working directory."""
    monkeypatch.chdir(tmp_path)
    try:
        return cufile.get_version()
    except pathfinder.DynamicLibNotFoundError as error:
        pytest.skip(str(error).splitlines()[0])


def test_version(library):
    assert type(library) is int and library >= 1000


def test_parameters(library):
    value = cufile.get_parameter_size_t(cufile.SizeTConfigParameter.PROFILE_STATS)
    assert type(value) is int
    assert type(cufile.get_parameter_bool(cufile.BoolConfigParameter.PROPERTIES_ALLOW_COMPAT_MODE)) is bool
    with pytest.raises(cufile.cuFileError) as caught:
        cufile.get_parameter_size_t(10_000)
    assert caught.value.status == cufile.OpError.INVALID_VALUE and caught.value.cuda_error is None


def test_errors_without_the_library():
    error = cufile.cuFileError(5022)
    assert error.status == 5022 and str(error).startswith("INVALID_VALUE (5022): ")
    error = cufile.cuFileError(5011, 2)
    assert str(error).endswith("CUDA status: CUDA_ERROR_OUT_OF_MEMORY (2)") and int(error.cuda_error) == 2
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.status, str(again)) == (cufile.cuFileError, 5011, str(error))
    with pytest.raises(ValueError):
        cufile.cuFileError(1)


def test_wrong_arguments_raise(library):
    for wrong in (None, "x", b"x", 1.5, []):
        with pytest.raises(TypeError):
            cufile.handle_deregister(wrong)
    for wrong in (None, [], b"", 0):
        with pytest.raises(TypeError):
            cufile.readv(0, wrong, 1)


OPEN = """
import signal, sys, time
from cuda.bindings import cufile
{before}
print("ready", flush=True)
try:
    cufile.driver_open()
except KeyboardInterrupt:
    print("interrupted", flush=True)
except cufile.cuFileError as error:
    print("failed", error, flush=True)
else:
    print("opened", flush=True)
{after}
"""


def open_driver(before="", after=""):
    """Starts a child that opens the driver; returns after its first line."""
    child = start(OPEN.format(before=before, after=after), stderr=None)
    assert child.stdout.readline() == "ready\n"
    return child


def wait(child, seconds):
    """The child's remaining output; fails if it does not exit."""
    try:
        return child.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        pytest.fail(f"the interpreter did not exit within {seconds} s")


def test_opening_the_driver_can_be_interrupted(library):
    child = open_driver(after="print(cufile.get_version() > 0, flush=True)")
    until_blocked(child.pid, child.pid)
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
    out = wait(child, 20)
    # Where cuFile works the call has returned or failed by now; otherwise Ctrl-C ends the wait.
    assert out.split()[0] in ("interrupted", "opened", "failed"), out
    assert child.returncode == 0 and out.split()[-1] == "True"


def test_gil_is_released_while_the_driver_opens(library):
    before = """
import os, threading
from helpers.waits import until_blocked
def tick():
    until_blocked(os.getpid())
    print("tick", flush=True)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=tick, daemon=True).start()
"""
    out = wait(open_driver(before=before), 20)
    # Where cuFile never returns, only the thread can end the process.
    assert out.split()[0] in ("tick", "opened", "failed"), out
