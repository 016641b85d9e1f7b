"""Pools that end while streams still have memory of theirs to free.

NVIDIA's driver 580 crashes or hangs where such a pool is destroyed at once; with several processes on the GPU that takes
seconds. Cupyrite destroys it when its memory is free.
"""

import subprocess
import sys
import threading

import pytest
from cuda.bindings import driver
from cuda.core import Device, DeviceMemoryResource, DeviceMemoryResourceOptions
from cupyrite._native.core import _pools_kept_aside as kept_aside
from support import check, on_cpu_device

# The CPU device never had that trouble.
PROCESSES, ROUNDS = (1, 50) if on_cpu_device() else (4, 1000)
PROGRAM = """
import faulthandler
import sys

from cuda.core import Device, DeviceMemoryResource, DeviceMemoryResourceOptions

faulthandler.enable()
device = Device(0)
device.set_current()
former = ()
for number in range(int(sys.argv[1])):
    options = DeviceMemoryResourceOptions(max_size=1 << 25)
    ending, staying = (DeviceMemoryResource(device, options) for _ in range(2))
    first, second = device.create_stream(), device.create_stream()
    here, there = ending.allocate(64, stream=first), staying.allocate(64, stream=second)
    here.fill(0, stream=first)
    there.fill(0, stream=second)
    first.wait(second)
    second.wait(first)
    # The streams of the round before end after its pool, which had memory to free on both of them.
    for one in former:
        one.close()
    for _ in range(1 + number % 20):
        there.fill(1, stream=second)
        ending.allocate(4, stream=second).close()
        here.fill(2, stream=first)
    here.close()
    ending.close()
    former = there, first, second, staying
    if number % 3:
        device.sync()
print("through")
"""


def test_streams_that_end_after_a_pool_that_they_have_memory_of():
    words = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(ROUNDS)]
    running = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(PROCESSES)
    ]
    try:
        ends = [(one.communicate(timeout=120)[0], one.returncode) for one in running]
    finally:
        for one in running:
            one.kill()
            one.wait()
    assert ends == [("through\n", 0)] * PROCESSES


@pytest.fixture
def device():
    device = Device(0)
    device.set_current()
    return device


def test_a_pool_that_ends_while_its_thread_captures(device):
    """A graph has nothing to do with it."""
    stream, other = device.create_stream(), device.create_stream()
    idle, busy = (DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25)) for _ in range(2))
    buffer = busy.allocate(64, stream=other)
    buffer.fill(0, stream=other)
    buffer.close()
    handle = driver.CUstream(int(stream.handle))
    check(driver.cuStreamBeginCapture(handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    try:
        idle.close()
        busy.close()
    finally:
        ended = driver.cuStreamEndCapture(handle)
    check(driver.cuGraphDestroy(check(ended)))
    # What is left of the second one waits for this.
    device.sync()
    assert kept_aside() == 0


def test_a_pool_without_a_current_context(device):
    """Threads that never used a device end pools, too."""
    pools = [DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25)) for _ in range(3)]
    stream = device.create_stream()
    for pool in pools:
        pool.allocate(64, stream=stream).close()
    device.sync()
    del pool
    failed = []

    def close():
        try:
            pools.pop().close()
            assert kept_aside() == 0
        except BaseException as error:
            failed.append(error)

    for _ in range(3):
        thread = threading.Thread(target=close)
        thread.start()
        thread.join()
    assert not failed and not pools


def test_memory_that_nobody_frees_keeps_its_pool(device):
    """It was taken by the driver's own calls; once it is freed, the next wait ends the pool."""
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25))
    stream = device.create_stream()
    handle = driver.CUstream(int(stream.handle))
    taken = check(driver.cuMemAllocFromPoolAsync(64, driver.CUmemoryPool(int(pool.handle)), handle))
    pool.close()
    for _ in range(40):
        device.sync()
        stream.sync()
        assert kept_aside() == 1
    check(driver.cuMemFreeAsync(taken, handle))
    device.sync()
    assert kept_aside() == 0
