"""Calls that programs make in loops, which take the fast route: first and later calls, positional and keyword arguments,
every accepted and every refused type, results that do not repeat.
"""

import ctypes
import threading

import pytest
from cuda.bindings import driver, nvml, nvrtc, runtime

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


@pytest.fixture
def nvml_device():
    nvml.init_v2()
    yield nvml.device_get_handle_by_index_v2(0)
    nvml.shutdown()


def test_functions_that_raise_return_values(nvml_device):
    """One word, an enum member, a bool-like state, two words, nothing."""
    for _ in range(3):
        assert nvml.device_get_index(nvml_device) == 0
        assert nvml.device_get_index(device=nvml_device) == 0
        assert nvml.device_get_handle_by_index_v2(0) == nvml_device
        assert nvml.system_get_cuda_driver_version() > 12000
        assert nvml.init_v2() is None
        assert nvml.shutdown() is None
    results = [nvml.device_get_index(nvml_device) for _ in range(3)]
    assert results == [0, 0, 0] and all(type(result) is int for result in results)


def test_functions_that_raise_alternate_between_results_and_errors(nvml_device):
    count = nvml.device_get_count_v2()
    for index in (0, count, 0, count + 5, 0):
        if index < count:
            assert nvml.device_get_index(nvml.device_get_handle_by_index_v2(index)) == index
        else:
            with pytest.raises(nvml.InvalidArgumentError) as caught:
                nvml.device_get_handle_by_index_v2(index)
            assert caught.value.status == nvml.Return.ERROR_INVALID_ARGUMENT
    with pytest.raises(nvml.InvalidArgumentError):
        nvml.device_get_index(0)
    assert nvml.device_get_index(nvml_device) == 0


def test_functions_that_raise_refuse_what_is_no_address(nvml_device):
    for wrong in (None, 1.0, "0", b"0", [], 2**64):
        with pytest.raises((TypeError, OverflowError, ValueError)):
            nvml.device_get_index(wrong)
        with pytest.raises((TypeError, OverflowError, ValueError)):
            nvml.device_get_index(device=wrong)
    with pytest.raises(TypeError):
        nvml.device_get_index()
    with pytest.raises(TypeError):
        nvml.device_get_index(nvml_device, 1)
    with pytest.raises(TypeError):
        nvml.device_get_index(nvml_device, device=nvml_device)
    with pytest.raises(TypeError):
        nvml.device_get_index(handle=nvml_device)

    class Index:
        def __index__(self):
            return nvml_device

    assert nvml.device_get_index(Index()) == 0


def test_an_error_before_the_first_success_raises():
    """`shutdown` without `init` fails; the same function object then succeeds."""
    while True:  # another test may have left NVML initialised
        try:
            nvml.shutdown()
        except nvml.UninitializedError:
            break
    for _ in range(2):
        with pytest.raises(nvml.UninitializedError):
            nvml.device_get_count_v2()
        with pytest.raises(nvml.UninitializedError):
            nvml.shutdown()
        nvml.init_v2()
        assert nvml.device_get_count_v2() >= 1
        assert nvml.shutdown() is None


def test_nvrtc_calls_return_statuses():
    status, major, minor = nvrtc.nvrtcVersion()
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS and major >= 12
    assert nvrtc.nvrtcVersion() == (status, major, minor)
    status, program = nvrtc.nvrtcCreateProgram(b"", b"empty.cu", 0, [], [])
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS
    for _ in range(2):
        assert nvrtc.nvrtcGetProgramLogSize(program)[0] == nvrtc.nvrtcResult.NVRTC_SUCCESS
        assert nvrtc.nvrtcGetProgramLogSize(prog=program) == nvrtc.nvrtcGetProgramLogSize(program)
        assert nvrtc.nvrtcGetProgramLogSize(0)[0] == nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_PROGRAM
    assert nvrtc.nvrtcDestroyProgram(program)[0] == nvrtc.nvrtcResult.NVRTC_SUCCESS


def test_keywords_in_any_order(stream):
    memory = check(runtime.cudaMalloc(64))
    for _ in range(2):
        assert runtime.cudaMemsetAsync(stream=stream, count=64, value=1, devPtr=memory) == (E.cudaSuccess,)
        assert runtime.cudaMemsetAsync(memory, 1, stream=stream, count=64) == (E.cudaSuccess,)
        with pytest.raises(TypeError):
            runtime.cudaMemsetAsync(memory, 1, 64, count=64, stream=stream)
        with pytest.raises((OverflowError, ValueError)):
            runtime.cudaMemsetAsync(devPtr=memory, value=2**31, count=64, stream=stream)
    check(runtime.cudaStreamSynchronize(stream))
    check(runtime.cudaFree(memory))
