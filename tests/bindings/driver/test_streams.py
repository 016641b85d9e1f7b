"""Streams, events, copies: asynchrony, ordering, elapsed times."""

import ctypes
import threading
import time

import numpy as np
import pytest

from helpers.device import DeviceArray, Module, callback, check, driver, synchronize
from helpers.threads import run_all

pytestmark = pytest.mark.usefixtures("shared_context")
R = driver.CUresult
DEFAULT, NON_BLOCKING = 0, 1
LEGACY, PER_THREAD = 1, 2

WAIT = """
extern "C" __global__ void wait(volatile int *flag) { while (*flag == 0) { } }
extern "C" __global__ void add(int *p, int v) { atomicAdd(p, v); }
extern "C" __global__ void copy(const volatile int *from, int *to) { *to = *from; }
"""


@pytest.fixture(scope="module")
def module(shared_context):
    """A module whose kernels have all run once: a GPU loads code at the first launch, which may wait for the device."""
    module = Module.from_source(WAIT)
    word = DeviceArray(np.ones(1, np.int32))
    module.launch("wait", 1, 1, word)
    module.launch("add", 1, 1, word, np.int32(0))
    module.launch("copy", 1, 1, word, word)
    synchronize()
    return module


class Gate:
    """A flag in mapped host memory that a kernel waits for."""

    def __init__(self, module):
        self.memory = check(driver.cuMemHostAlloc(64, 2))
        self.word = ctypes.c_int.from_address(int(self.memory))
        self.word.value = 0
        self.module = module

    def hold(self, stream):
        self.module.launch("wait", 1, 1, np.uint64(int(self.memory)), stream=stream)

    def open(self):
        self.word.value = 1


@pytest.fixture
def gate(module):
    gate = Gate(module)
    yield gate
    gate.open()
    synchronize()
    check(driver.cuMemFreeHost(gate.memory))


@pytest.fixture
def streams():
    made = [check(driver.cuStreamCreate(NON_BLOCKING)) for _ in range(2)]
    yield made
    for stream in made:
        check(driver.cuStreamDestroy(stream))


def test_launch_returns_before_the_kernel_ends(gate, streams):
    gate.hold(streams[0])
    assert driver.cuStreamQuery(streams[0])[0] == R.CUDA_ERROR_NOT_READY
    assert driver.cuStreamQuery(streams[1])[0] == R.CUDA_SUCCESS
    gate.open()
    check(driver.cuStreamSynchronize(streams[0]))
    assert driver.cuStreamQuery(streams[0])[0] == R.CUDA_SUCCESS


def test_streams_run_concurrently(gate, streams, module):
    out = DeviceArray(np.zeros(1, np.int32))
    gate.hold(streams[0])
    module.launch("add", 1, 1, out, np.int32(5), stream=streams[1])
    check(driver.cuStreamSynchronize(streams[1]))
    assert driver.cuStreamQuery(streams[0])[0] == R.CUDA_ERROR_NOT_READY


def test_events_order_streams(gate, streams, module):
    a, b = streams
    out = DeviceArray(np.zeros(2, np.int32))
    first, second = np.uint64(out.address), np.uint64(out.address + 4)
    event = check(driver.cuEventCreate(0))
    gate.hold(a)
    module.launch("add", 1, 1, first, np.int32(7), stream=a)
    check(driver.cuEventRecord(event, a))
    check(driver.cuStreamWaitEvent(b, event, 0))
    module.launch("copy", 1, 1, first, second, stream=b)
    assert driver.cuStreamQuery(b)[0] == R.CUDA_ERROR_NOT_READY
    assert driver.cuEventQuery(event)[0] == R.CUDA_ERROR_NOT_READY
    gate.open()
    check(driver.cuStreamSynchronize(b))
    assert out.get().tolist() == [7, 7]
    check(driver.cuEventSynchronize(event))
    check(driver.cuEventDestroy(event))


def test_legacy_and_blocking_streams_wait_for_each_other(gate, module):
    blocking, free = (check(driver.cuStreamCreate(flags)) for flags in (DEFAULT, NON_BLOCKING))
    gate.hold(blocking)
    module.launch("wait", 1, 1, np.uint64(int(gate.memory)), stream=LEGACY)
    assert driver.cuStreamQuery(LEGACY)[0] == R.CUDA_ERROR_NOT_READY
    assert driver.cuStreamQuery(free)[0] == R.CUDA_SUCCESS
    # Later work in a blocking stream waits for the legacy stream.
    module.launch("wait", 1, 1, np.uint64(int(gate.memory)), stream=blocking)
    gate.open()
    check(driver.cuStreamSynchronize(LEGACY))
    check(driver.cuStreamSynchronize(blocking))
    for stream in (blocking, free):
        check(driver.cuStreamDestroy(stream))


def test_async_copies_are_stream_ordered(streams, module):
    n = 1 << 16
    source = np.arange(n, dtype=np.int32)
    target = np.zeros(n, np.int32)
    a, b = DeviceArray(np.zeros(n, np.int32)), DeviceArray(np.zeros(n, np.int32))
    s = streams[0]
    check(driver.cuMemcpyHtoDAsync(a.pointer, source.ctypes.data, source.nbytes, s))
    check(driver.cuMemcpyDtoDAsync(b.pointer, a.pointer, source.nbytes, s))
    check(driver.cuMemsetD32Async(a.pointer, 9, n, s))
    check(driver.cuMemcpyDtoHAsync(target.ctypes.data, b.pointer, source.nbytes, s))
    check(driver.cuStreamSynchronize(s))
    np.testing.assert_array_equal(target, source)
    assert (a.get() == 9).all()


def test_elapsed_time(streams, module):
    source = """extern "C" __global__ void spin(long long ns)
    { unsigned long long a, b; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(a));
      do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(b)); } while (b - a < ns); }"""
    spin = Module.from_source(source)
    before, after = (check(driver.cuEventCreate(0)) for _ in range(2))
    spin.launch("spin", 1, 1, np.int64(0), stream=streams[0])
    check(driver.cuEventRecord(before, streams[0]))
    spin.launch("spin", 1, 1, np.int64(50_000_000), stream=streams[0])
    check(driver.cuEventRecord(after, streams[0]))
    assert driver.cuEventElapsedTime(before, after)[0] == R.CUDA_ERROR_NOT_READY
    check(driver.cuEventSynchronize(after))
    assert 45 < check(driver.cuEventElapsedTime(before, after)) < 5000
    fresh = check(driver.cuEventCreate(0))
    assert driver.cuEventElapsedTime(before, fresh)[0] == R.CUDA_ERROR_INVALID_HANDLE
    untimed = check(driver.cuEventCreate(2))
    check(driver.cuEventRecord(untimed, streams[0]))
    check(driver.cuEventSynchronize(untimed))
    assert driver.cuEventElapsedTime(before, untimed)[0] == R.CUDA_ERROR_INVALID_HANDLE
    for event in (before, after, fresh, untimed):
        check(driver.cuEventDestroy(event))


def test_destroyed_stream_finishes_its_work(gate, module):
    stream = check(driver.cuStreamCreate(NON_BLOCKING))
    out = DeviceArray(np.zeros(1, np.int32))
    gate.hold(stream)
    module.launch("add", 1, 1, out, np.int32(3), stream=stream)
    check(driver.cuStreamDestroy(stream))
    gate.open()
    synchronize()
    assert out.get()[0] == 3


def test_host_functions_run_in_order(streams):
    seen = []
    calls = [callback(lambda data, k=k: seen.append((k, data))) for k in range(3)]
    for k, (_, address) in enumerate(calls):
        check(driver.cuLaunchHostFunc(streams[0], driver.CUhostFn(address), 100 + k))
    check(driver.cuStreamSynchronize(streams[0]))
    assert seen == [(0, 100), (1, 101), (2, 102)]


def test_host_function_runs_while_other_threads_hold_the_gil(streams):
    done = threading.Event()
    keep, address = callback(lambda data: done.set())
    stop = []

    def busy():
        while not stop:
            sum(range(1000))

    workers = [threading.Thread(target=busy) for _ in range(3)]
    for w in workers:
        w.start()
    try:
        check(driver.cuLaunchHostFunc(streams[0], driver.CUhostFn(address), None))
        check(driver.cuStreamSynchronize(streams[0]))
        assert done.wait(20)
    finally:
        stop.append(1)
        for w in workers:
            w.join()
    assert keep is not None


def test_waiting_releases_the_gil(gate, streams):
    gate.hold(streams[0])
    ticks = []

    def open_later():
        for _ in range(5):
            ticks.append(time.monotonic())
            time.sleep(0.01)
        gate.open()

    thread = threading.Thread(target=open_later)
    thread.start()
    check(driver.cuStreamSynchronize(streams[0]))
    thread.join()
    assert len(ticks) == 5


def test_per_thread_default_stream_is_separate(gate, module):
    gate.hold(PER_THREAD)
    assert driver.cuStreamQuery(PER_THREAD)[0] == R.CUDA_ERROR_NOT_READY
    status = []
    context = check(driver.cuCtxGetCurrent())

    def other():
        check(driver.cuCtxSetCurrent(context))
        status.append(driver.cuStreamQuery(PER_THREAD)[0])

    thread = threading.Thread(target=other)
    run_all([thread])
    assert status == [R.CUDA_SUCCESS]
    gate.open()
    check(driver.cuStreamSynchronize(PER_THREAD))


def test_threads_share_a_context(module):
    context = check(driver.cuCtxGetCurrent())
    total = DeviceArray(np.zeros(1, np.int32))
    failures = []

    def work():
        try:
            check(driver.cuCtxSetCurrent(context))
            stream = check(driver.cuStreamCreate(NON_BLOCKING))
            for _ in range(50):
                module.launch("add", 1, 1, total, np.int32(1), stream=stream)
                own = check(driver.cuMemAlloc(1000))
                check(driver.cuMemsetD8Async(own, 1, 1000, stream))
                check(driver.cuStreamSynchronize(stream))
                check(driver.cuMemFree(own))
            check(driver.cuStreamDestroy(stream))
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work) for _ in range(8)]
    run_all(threads)
    assert not failures
    assert total.get()[0] == 400


def test_priorities_and_flags():
    least, greatest = check(driver.cuCtxGetStreamPriorityRange())
    assert greatest <= 0 <= least
    stream = check(driver.cuStreamCreateWithPriority(NON_BLOCKING, greatest))
    assert check(driver.cuStreamGetPriority(stream)) == greatest
    assert check(driver.cuStreamGetFlags(stream)) == NON_BLOCKING
    assert int(check(driver.cuStreamGetCtx(stream))) == int(check(driver.cuCtxGetCurrent()))
    check(driver.cuStreamDestroy(stream))
