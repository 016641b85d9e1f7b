"""Buffers that die after a kernel's fault, or after their context was reset: each in a process of its own."""

import os
import subprocess
import sys

import pytest

SETUP = """
import gc, sys
from cuda.bindings import driver
from cuda.core import *
device = Device()
device.set_current()
stream = device.create_stream()
code = 'extern "C" __global__ void store(int *x) { *x = 1; }'
kernel = Program(code, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("store")

def buffers():
    resources = [device.memory_resource, LegacyPinnedMemoryResource(), PinnedMemoryResource()]
    return [resource.allocate(64, stream=stream) for resource in resources for _ in range(2)]

def fault():
    launch(stream, LaunchConfig(grid=1, block=1), kernel, 0)
    try:
        stream.sync()
    except Exception as error:
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in str(error), error
        error.__traceback__ = None
    else:
        sys.exit("no fault")

seen = []
sys.unraisablehook = lambda found: seen.append(str(found.exc_value))
kept = buffers()
"""


def run(code):
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SETUP + code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_frees_after_a_reported_fault_report_nothing():
    run("fault(); del kept; gc.collect(); assert not seen, seen")


def test_an_explicit_close_after_a_fault_raises():
    run("""
fault()
for buffer in kept:
    try:
        buffer.close()
    except Exception as error:
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in str(error), error
    else:
        assert False, buffer
""")


def test_a_fault_that_no_call_has_reported_is_reported_once():
    """Otherwise nothing would tell that the kernel failed."""
    run("""
launch(stream, LaunchConfig(grid=1, block=1), kernel, 0)
while driver.cuStreamQuery(stream.handle)[0] == driver.CUresult.CUDA_ERROR_NOT_READY:
    pass
del kept
gc.collect()
assert len(seen) == 1 and "CUDA_ERROR_ILLEGAL_ADDRESS" in seen[0], seen
""")


def test_a_resource_of_the_program_that_passes_the_fault_on_reports_nothing():
    run("""
class Passes(MemoryResource):
    is_device_accessible, is_host_accessible, device_id = True, False, 0
    failure = None

    def allocate(self, size, *, stream=None):
        return Buffer.from_handle(int(kept[0].handle), size, mr=self)

    def deallocate(self, address, size, *, stream=None):
        if self.failure is not None:
            raise self.failure
        stream.sync()

resource = Passes()
mine = [resource.allocate(64, stream=stream) for _ in range(3)]
fault()
del mine[0]
assert not seen, seen
# Other exceptions are reported as ever.
resource.failure = KeyError("mine")
del mine[0]
assert seen == ["'mine'"], seen
""")


@pytest.mark.cpu
@pytest.mark.parametrize("faults", [True, False])
def test_frees_after_a_reset_report_nothing(faults):
    """At exit as well. On a GPU, a fault makes the device unusable for the process."""
    done = run(f"""
if {faults}:
    fault()
at_exit = kept[::2]
status, = driver.cuDevicePrimaryCtxReset(device.device_id)
assert status == 0, status
device.set_current()
del kept
gc.collect()
assert not seen, seen
stream = device.create_stream()
fresh = buffers()
del fresh
gc.collect()
assert not seen, seen
sys.unraisablehook = sys.__unraisablehook__
""")
    assert "CUDAError" not in done.stderr, done.stderr


@pytest.mark.cpu
def test_memory_that_another_library_has_freed_is_still_reported():
    """Also after a reset, for memory that was allocated later."""
    run("""
import ctypes
status, = driver.cuDevicePrimaryCtxReset(device.device_id)
assert status == 0, status
device.set_current()
stream = device.create_stream()
kept = None
assert not seen, seen
buffer = LegacyPinnedMemoryResource().allocate(64, stream=stream)
from cupyrite.run import FOLDER
assert ctypes.CDLL(FOLDER + "/libcuda.so.1").cuMemFreeHost(ctypes.c_void_p(int(buffer.handle))) == 0
del buffer
gc.collect()
assert len(seen) == 1 and "CUDA_ERROR_INVALID_VALUE" in seen[0], seen
""")
