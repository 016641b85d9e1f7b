"""Pools destroyed while streams still have pending frees of their memory.

NVIDIA's driver 580 crashes or hangs where such a pool is destroyed at once; with several processes on the GPU this
takes seconds. For an imported pool the device memory remains allocated until the importing process ends. Cupyrite
destroys a pool when its memory is free.
"""

import contextlib
import ctypes
import signal
import subprocess
import time
import warnings

import pytest
from cuda.bindings import driver
from cuda.core import Device, DeviceMemoryResource, DeviceMemoryResourceOptions
from cuda.core._utils.cuda_utils import reset_fork_warning
from cupyrite._native.core import _deferred_pool_count as deferred_pool_count

from helpers.device import check, on_cpu_device
from helpers.processes import process
from helpers.programs import start
from helpers.threads import in_a_thread

# The CPU device is not affected. A duration and not a number of rounds: how many rounds fit depends on the load of the
# GPU.
PROCESSES, SECONDS = (1, 0.5) if on_cpu_device() else (4, 4)
LIMIT = 120
PROGRAM = """
import faulthandler
import itertools
import sys
import time

from cuda.core import Device, DeviceMemoryResource, DeviceMemoryResourceOptions

faulthandler.enable()
device = Device(0)
device.set_current()
former = ()
end = time.monotonic() + float(sys.argv[1])
for number in itertools.count():
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
    print(number, flush=True)
    if number >= 20 and time.monotonic() > end:
        break
print("through")
"""


def outcome(running, limit):
    """The last line and status of a program; for one that hangs, its stacks."""
    try:
        text, _ = running.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        # faulthandler writes the stacks of all Python threads.
        running.send_signal(signal.SIGABRT)
        text, _ = running.communicate(timeout=30)
        return f"nothing for {limit:.0f} s: {text[-2000:]}", running.returncode
    return text if running.returncode else text.splitlines()[-1], running.returncode


def test_streams_destroyed_after_a_pool_with_pending_frees():
    running = [start(PROGRAM, SECONDS, options=("-W", "ignore"), stderr=subprocess.STDOUT) for _ in range(PROCESSES)]
    begun = time.monotonic()
    try:
        ends = [outcome(one, max(1, begun + LIMIT - time.monotonic())) for one in running]
    finally:
        for one in running:
            one.kill()
            one.wait()
    assert ends == [("through", 0)] * PROCESSES


def in_a_strange_thread(work):
    """`work()` in a thread that never used a device."""

    def run():
        assert int(check(driver.cuCtxGetCurrent())) == 0
        work()

    in_a_thread(run)


@contextlib.contextmanager
def capture(stream):
    """Captures a stream; fails if the capture is invalidated or records a node."""
    handle = driver.CUstream(int(stream.handle))
    check(driver.cuStreamBeginCapture(handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    try:
        yield
    finally:
        ended = driver.cuStreamEndCapture(handle)
    graph = check(ended)
    assert check(driver.cuGraphGetNodes(graph))[1] == 0
    check(driver.cuGraphDestroy(graph))


def test_pool_destroyed_during_a_capture(device):
    """The graph is unaffected."""
    stream, other = device.create_stream(), device.create_stream()
    idle, busy = (DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25)) for _ in range(2))
    buffer = busy.allocate(64, stream=other)
    buffer.fill(0, stream=other)
    buffer.close()
    with capture(stream):
        idle.close()
        busy.close()
    # The destruction of the second pool waits for this.
    device.sync()
    assert deferred_pool_count() == 0


def test_pool_destroyed_without_a_current_context(device):
    """Threads that never used a device destroy pools, too."""
    pools = [DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25)) for _ in range(3)]
    stream = device.create_stream()
    for pool in pools:
        pool.allocate(64, stream=stream).close()
    device.sync()
    del pool

    def close():
        pools.pop().close()
        assert deferred_pool_count() == 0

    for _ in range(3):
        in_a_strange_thread(close)
    assert not pools


def test_unfreed_memory_keeps_its_pool(device):
    """Memory allocated through the driver; once it is freed, the next wait destroys the pool."""
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25))
    stream = device.create_stream()
    handle = driver.CUstream(int(stream.handle))
    taken = check(driver.cuMemAllocFromPoolAsync(64, driver.CUmemoryPool(int(pool.handle)), handle))
    pool.close()
    for _ in range(40):
        device.sync()
        stream.sync()
        assert deferred_pool_count() == 1
    check(driver.cuMemFreeAsync(taken, handle))
    device.sync()
    assert deferred_pool_count() == 0


# Pools of another process


@pytest.fixture
def sharing(device):
    if not device.properties.memory_pools_supported or not device.properties.mempool_supported_handle_types & 1:
        pytest.skip("needs memory pools that are shared as file descriptors")
    with warnings.catch_warnings():
        # These processes use another start method than the global one.
        warnings.filterwarnings("ignore", message=".*fork.*", category=UserWarning)
        yield device
    reset_fork_warning()


SIZE = 1 << 20
# Buffers of a pool, each freed on its own stream.
BUFFERS = 3


def shared_pools(device, stream, count):
    """Pools that can be shared, with their buffers."""
    pools = []
    for _ in range(count):
        pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 24, ipc_enabled=True))
        pools.append((pool, [pool.allocate(SIZE, stream=stream) for _ in range(BUFFERS)]))
    stream.sync()
    return pools


def end_shared(pools, stream):
    """Destroys them here after the other process has released them."""
    for pool, buffers in pools:
        for buffer in buffers:
            buffer.close(stream)
        pool.close()


class Gate:
    """Blocks streams until it is opened."""

    def __init__(self):
        self.address = check(driver.cuMemAllocHost(4))
        self.flag = ctypes.c_uint32.from_address(int(self.address))
        self.flag.value = 0

    def close(self, stream):
        self.flag.value = 0
        handle = driver.CUstream(int(stream.handle))
        # CU_STREAM_WAIT_VALUE_EQ
        check(driver.cuStreamWaitValue32(handle, self.address, 1, 1))

    def open(self):
        self.flag.value = 1


def _end_each(pipe, pools):
    device = Device(0)
    device.set_current()
    first, second, third, other, captured = (device.create_stream() for _ in range(5))
    gate = Gate()
    answers = {}

    def end(pool, buffers):
        for buffer, stream in zip(buffers, (first, second, third), strict=True):
            buffer.close(stream)
        pool.close()

    def use(name, how=lambda work: work()):
        """Destroys a pool with a pending free in one stream."""
        pool, buffers = pools.pop()
        for buffer in buffers:
            buffer.fill(1, stream=second)
        gate.close(second)
        how(lambda: end(pool, buffers))
        ended = deferred_pool_count()
        for _ in range(40):
            other.sync()
        waiting = deferred_pool_count()
        gate.open()
        second.sync()
        # Deferred pools are checked at intervals, or when the device is waited for.
        device.sync()
        answers[name] = ended, waiting, deferred_pool_count()

    def captures(work):
        with capture(captured):
            work()

    # A pool without pending frees is destroyed at once, also during a capture.
    pool, buffers = pools.pop()
    for buffer, stream in zip(buffers, (first, second, third), strict=True):
        buffer.close(stream)
    device.sync()
    with capture(captured):
        pool.close()
    answers["idle"] = deferred_pool_count()
    use("here")
    use("in a thread", in_a_strange_thread)
    use("during a capture", captures)
    use("in a thread during a capture", lambda work: captures(lambda: in_a_strange_thread(work)))
    # Streams destroyed before the pool, and the collector.
    pool, buffers = pools.pop()
    streams = [device.create_stream() for _ in buffers]
    gate.close(streams[0])
    for buffer, stream in zip(buffers, streams, strict=True):
        buffer.close(stream)
        stream.close()
    del pool, buffer, buffers, stream, streams
    answers["forgotten"] = deferred_pool_count()
    gate.open()
    device.sync()
    answers["at last"] = deferred_pool_count()
    pipe.send(answers)


def test_imported_pools_destroyed_with_pending_frees(sharing):
    stream = sharing.create_stream()
    pools = shared_pools(sharing, stream, 6)
    kept = 1, 1, 0
    with process(_end_each, pools) as there:
        assert there.receive() == {
            "idle": 0,
            "here": kept,
            "in a thread": kept,
            "during a capture": kept,
            "in a thread during a capture": kept,
            "forgotten": 1,
            "at last": 0,
        }
    end_shared(pools, stream)


def _end_many(pipe):
    device = Device(0)
    device.set_current()
    for pools in iter(pipe.receive, None):
        for pool, buffers in pools:
            streams = [device.create_stream() for _ in buffers]
            for buffer, stream in zip(buffers, streams, strict=True):
                for number in range(20):
                    buffer.fill(number, stream=stream)
            for buffer, stream in zip(buffers, streams, strict=True):
                buffer.close(stream)
            pool.close()
            for stream in streams:
                stream.close()
        # So that the exporting process can destroy them, too.
        device.sync()
        pipe.send(deferred_pool_count())
        pools = pool = buffers = buffer = None
    pipe.receive()


def used_memory():
    free, total = check(driver.cuMemGetInfo())
    return total - free


def test_imported_pools_leave_no_memory_behind(sharing):
    """A GPU allocates 32 MiB per pool: a leak would exceed what parallel tests allocate, each of which has half a GiB."""
    rounds, most = (2, None) if on_cpu_device() else (80, 16 << 30)
    stream = sharing.create_stream()
    with process(_end_many) as there:
        before = used_memory()
        for _ in range(rounds):
            pools = shared_pools(sharing, stream, 10)
            assert there.ask(pools) == 0
            end_shared(pools, stream)
        there.send(None)
        sharing.sync()
        after = used_memory()
        there.send("end")
    assert most is None or after - before < most
    assert deferred_pool_count() == 0
