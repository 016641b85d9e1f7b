"""Calls that programs make in loops, which take the fast route: first and later calls, positional and keyword arguments,
every accepted and every refused type, results that do not repeat.
"""

import ctypes
import threading

import pytest
from cuda.bindings import driver, runtime

from helpers.device import check
from helpers.threads import run_all

pytestmark = pytest.mark.strict_abi

E = runtime.cudaError_t
BIG = 2**64


@pytest.fixture
def stream():
    stream = check(runtime.cudaStreamCreate())
    yield stream
    check(runtime.cudaStreamDestroy(stream))


def test_sizes_use_all_bits():
    for call in (runtime.cudaMalloc, runtime.cudaMallocHost, driver.cuMemAlloc):
        for _ in range(3):
            status, address = call(2**63)
            assert status != 0 and not address
            for size in (-1, BIG, BIG + 5, -BIG):
                with pytest.raises((OverflowError, ValueError)):
                    call(size)
            for size in ("1", None, b"1"):
                with pytest.raises(TypeError):
                    call(size)
            with pytest.raises(TypeError):
                call()
            with pytest.raises(TypeError):
                call(1, 2)
    assert runtime.cudaMalloc(BIG - 1)[0] == E.cudaErrorMemoryAllocation


def test_int_subclasses_give_the_same_results():
    """Bools, subclasses of int and objects with __index__ take the general route."""

    class Number(int):
        pass

    class Index:
        def __index__(self):
            return 256

    for size in (256, Number(256), Index(), True):
        memory = check(runtime.cudaMalloc(size))
        assert check(runtime.cudaMemset(memory, True, 1)) is None
        assert runtime.cudaMemset(Number(memory), Number(3), Number(1)) == (E.cudaSuccess,)
        check(runtime.cudaFree(Number(memory)))


def test_signed_and_narrow_parameters():
    memory = check(runtime.cudaMalloc(16))
    for value in (-(2**31), -1, 0, 2**31 - 1):
        assert runtime.cudaMemset(memory, value, 16) == (E.cudaSuccess,)
    for value in (2**31, -(2**31) - 1, 2**63, -BIG):
        with pytest.raises((OverflowError, ValueError)):
            runtime.cudaMemset(memory, value, 16)
    assert runtime.cudaSetDevice(-1) == runtime.cudaSetDevice(2**31 - 1) == (E.cudaErrorInvalidDevice,)
    assert runtime.cudaSetDevice(0) == (E.cudaSuccess,)
    check(runtime.cudaFree(memory))


def test_keyword_and_positional_arguments_agree(stream):
    memory = check(runtime.cudaMalloc(size=64))
    for _ in range(2):
        assert runtime.cudaMemsetAsync(memory, 1, 64, stream) == (E.cudaSuccess,)
        assert runtime.cudaMemsetAsync(devPtr=memory, value=1, count=64, stream=stream) == (E.cudaSuccess,)
        with pytest.raises(TypeError):
            runtime.cudaMemsetAsync(memory, 1, 64)
        with pytest.raises(TypeError):
            runtime.cudaMemsetAsync(memory, 1, 64, stream, stream)
        with pytest.raises(TypeError):
            runtime.cudaMemsetAsync(memory, 1, 64, "stream")
    check(runtime.cudaStreamSynchronize(stream))
    check(runtime.cudaFree(devPtr=memory))


def test_copies_copy(stream):
    source = bytearray(range(256))
    host = check(runtime.cudaMallocHost(256))
    memory = check(runtime.cudaMalloc(256))
    back = bytearray(256)
    kinds = runtime.cudaMemcpyKind
    chars = ctypes.c_char * 256
    there, here = chars.from_buffer(source), chars.from_buffer(back)
    check(runtime.cudaMemcpy(memory, ctypes.addressof(there), 256, kinds.cudaMemcpyHostToDevice))
    check(runtime.cudaMemcpyAsync(host, memory, 256, kinds.cudaMemcpyDeviceToHost, stream))
    check(runtime.cudaStreamSynchronize(stream))
    check(runtime.cudaMemcpy(ctypes.addressof(here), host, 256, 0))
    assert back == source
    pointer = driver.CUdeviceptr(memory)
    check(driver.cuMemsetD8(pointer, 7, 256))
    check(driver.cuMemcpyDtoHAsync(ctypes.addressof(here), pointer, 256, int(stream)))
    check(driver.cuStreamSynchronize(stream))
    assert back == bytes([7]) * 256
    check(driver.cuMemcpyHtoD(pointer, ctypes.addressof(there), 256))
    check(driver.cuMemcpyDtoH(ctypes.addressof(here), pointer, 256))
    assert back == source
    check(runtime.cudaFree(memory))
    check(runtime.cudaFreeHost(host))


def test_results_held_elsewhere_are_not_reused(stream):
    """Results are kept for the next call, except where they are referenced elsewhere or the value differs."""
    for make, drop in (
        (runtime.cudaMalloc, runtime.cudaFree),
        (runtime.cudaMallocHost, runtime.cudaFreeHost),
        (driver.cuMemAlloc, driver.cuMemFree),
        (lambda size: runtime.cudaMallocAsync(size, stream), lambda memory: runtime.cudaFreeAsync(memory, stream)),
        (lambda size: driver.cuMemAllocAsync(size, stream), lambda memory: driver.cuMemFreeAsync(memory, stream)),
        (lambda _: runtime.cudaStreamCreate(), runtime.cudaStreamDestroy),
        (lambda _: runtime.cudaEventCreate(), runtime.cudaEventDestroy),
        (lambda _: driver.cuEventCreate(0), driver.cuEventDestroy),
    ):
        for _ in range(3):
            answers = [make(64) for _ in range(10)]
            assert len({int(answer[1]) for answer in answers}) == 10 and all(answer[0] == 0 for answer in answers)
            values = [int(answer[1]) for answer in answers]
            for answer in answers:
                assert len(drop(answer[1])) == 1
            assert [int(answer[1]) for answer in answers] == values
    check(runtime.cudaStreamSynchronize(stream))


def test_failures_between_successes():
    event = check(runtime.cudaEventCreate())
    other = check(runtime.cudaEventCreate())
    for _ in range(3):
        # One of them was not recorded.
        assert runtime.cudaEventElapsedTime(event, other) == (E.cudaErrorInvalidResourceHandle, None)
        check(runtime.cudaEventRecord(event, 0))
        check(runtime.cudaEventRecord(other, 0))
        check(runtime.cudaEventSynchronize(other))
        assert check(runtime.cudaEventElapsedTime(event, other)) >= 0
        check(runtime.cudaEventDestroy(event))
        event = check(runtime.cudaEventCreate())
    check(runtime.cudaEventDestroy(event))
    check(runtime.cudaEventDestroy(other))
    assert runtime.cudaFree(None) == runtime.cudaFree(0) == (E.cudaSuccess,)


def test_threads_share_function_objects(stream):
    failures = []

    def work(number):
        try:
            for size in range(1, 60):
                memory = check(runtime.cudaMalloc(size * (number + 1)))
                check(runtime.cudaMemsetAsync(memory, number, size, stream))
                event = check(runtime.cudaEventCreate())
                check(runtime.cudaEventRecord(event, stream))
                check(runtime.cudaEventSynchronize(event))
                check(runtime.cudaEventDestroy(event))
                check(runtime.cudaFree(memory))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    run_all(threads)
    assert not failures
