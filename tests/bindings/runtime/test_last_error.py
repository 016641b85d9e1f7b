"""The last error of `cuda.bindings.runtime` is kept apart from that of other libraries that call the same `libcudart`."""

import ctypes
import pathlib
import threading

import pytest
from cuda.bindings import cyruntime, runtime
from cuda.bindings._v2 import runtime as runtime_v2

from helpers.array_libraries import module
from helpers.device import check, on_cpu_device
from helpers.programs import output
from helpers.threads import run_all

E = runtime.cudaError_t


def c_function(name, parameters, *types):
    """A function of the runtime library itself, as other libraries call it."""
    signature = f"cudaError_t ({parameters})".encode()
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    pointer = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))
    return ctypes.CFUNCTYPE(ctypes.c_int, *types)(pointer(cyruntime.__pyx_capi__[name], signature))


LIBRARY_GET, LIBRARY_PEEK = c_function("cudaGetLastError", "void"), c_function("cudaPeekAtLastError", "void")
LIBRARY_SET_DEVICE = c_function("cudaSetDevice", "int", ctypes.c_int)


@pytest.fixture(autouse=True)
def clean():
    """No error is pending when a test begins or ends."""
    check(runtime.cudaSetDevice(0))
    runtime.cudaGetLastError()
    LIBRARY_GET()
    yield
    runtime.cudaGetLastError()
    LIBRARY_GET()


def raising(call, *arguments):
    """The status that a function of the second interface raises."""
    with pytest.raises(Exception) as caught:
        call(*arguments)
    return (E(int(caught.value.status)),)


FAILURES = {
    "fast route": (lambda: runtime.cudaSetDevice(99), E.cudaErrorInvalidDevice),
    "one result": (lambda: runtime.cudaMalloc(1 << 60)[:1], E.cudaErrorMemoryAllocation),
    "general route": (lambda: runtime.cudaSetDevice(device=99), E.cudaErrorInvalidDevice),
    "struct": (lambda: runtime.cudaGetDeviceProperties(99)[:1], E.cudaErrorInvalidDevice),
    "text": (lambda: runtime.cudaDeviceGetPCIBusId(32, 99)[:1], E.cudaErrorInvalidDevice),
    "raises": (lambda: raising(runtime_v2.set_device, 99), E.cudaErrorInvalidDevice),
    "name of another error afterwards": (
        lambda: (runtime.cudaSetDevice(99), runtime_v2.get_error_name(2))[0],
        E.cudaErrorInvalidDevice,
    ),
    "raises instead of a result": (lambda: raising(runtime_v2.malloc, 1 << 60), E.cudaErrorMemoryAllocation),
}


@pytest.mark.parametrize("call, status", FAILURES.values(), ids=FAILURES)
def test_a_failure_is_the_last_error_of_the_bindings_only(call, status):
    assert call() == (status,)
    assert LIBRARY_PEEK() == 0
    check(runtime.cudaDeviceSynchronize())
    assert runtime.cudaPeekAtLastError() == (status,)
    assert raising(runtime_v2.peek_at_last_error) == (status,)
    assert runtime.cudaGetLastError() == (status,)
    assert runtime.cudaGetLastError() == runtime.cudaPeekAtLastError() == (E.cudaSuccess,)


def test_the_second_interface_raises_the_last_error_once():
    runtime.cudaSetDevice(99)
    assert raising(runtime_v2.get_last_error) == (E.cudaErrorInvalidDevice,)
    assert runtime_v2.get_last_error() is None


def test_errors_of_other_libraries_stay_theirs():
    assert LIBRARY_SET_DEVICE(99) == E.cudaErrorInvalidDevice
    assert runtime.cudaGetLastError() == runtime.cudaPeekAtLastError() == (E.cudaSuccess,)
    check(runtime.cudaFree(0))
    for name in (runtime.cudaGetErrorName(2)[1].decode(), runtime_v2.get_error_name(2)):
        assert name == "cudaErrorMemoryAllocation"
    assert LIBRARY_GET() == E.cudaErrorInvalidDevice


def test_a_stream_at_work_is_no_error_and_takes_none():
    stream = check(runtime.cudaStreamCreate())
    go = threading.Event()
    wait = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: go.wait(30))
    check(runtime.cudaLaunchHostFunc(stream, ctypes.cast(wait, ctypes.c_void_p).value, 0))
    try:
        assert LIBRARY_SET_DEVICE(99) == E.cudaErrorInvalidDevice
        assert runtime.cudaStreamQuery(stream) == (E.cudaErrorNotReady,)
    finally:
        go.set()
        check(runtime.cudaStreamSynchronize(stream))
    assert runtime.cudaGetLastError() == (E.cudaSuccess,)
    assert LIBRARY_GET() == E.cudaErrorInvalidDevice
    check(runtime.cudaStreamDestroy(stream))


def test_threads_have_their_own():
    seen = {}

    def fail(number):
        runtime.cudaSetDevice(99) if number % 2 else runtime.cudaMalloc(1 << 60)
        barrier.wait(30)
        assert LIBRARY_PEEK() == 0
        seen[number] = runtime.cudaGetLastError()[0], runtime.cudaGetLastError()[0]

    barrier = threading.Barrier(8)
    run_all([threading.Thread(target=fail, args=(number,)) for number in range(8)])
    errors = E.cudaErrorMemoryAllocation, E.cudaErrorInvalidDevice
    assert seen == {number: (errors[number % 2], E.cudaSuccess) for number in range(8)}
    assert runtime.cudaGetLastError() == (E.cudaSuccess,)


def test_without_a_device_each_call_returns_the_reason():
    program = """
    from cuda.bindings import runtime
    for _ in range(2):
        print(*(int(f()[0]) for f in (runtime.cudaGetLastError, runtime.cudaPeekAtLastError, runtime.cudaDeviceSynchronize)))
    """
    environment = {"CUPYRITE_DEVICE": "gpu", "CUPYRITE_RUNTIME": "cudart", "CUDA_VISIBLE_DEVICES": "-1"}
    statuses = set(map(int, output(program, environment=environment).split()))
    assert statuses in ({E.cudaErrorNoDevice}, {E.cudaErrorInsufficientDriver})


@pytest.mark.skipif(on_cpu_device(), reason="PyTorch's arrays are on the GPU; this process runs on the CPU device")
def test_pytorch_does_not_report_our_errors():
    torch = module("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no GPU")
    ones = torch.ones(4, device="cuda")
    mapped = pathlib.Path("/proc/self/maps").read_text().splitlines()
    if len({line.split()[-1] for line in mapped if "libcudart" in line}) != 1:
        pytest.skip("this PyTorch calls another libcudart")
    for call, status in FAILURES.values():
        assert call() == (status,)
        assert (ones + 1).sum().item() == 8
        assert runtime.cudaGetLastError() == (status,)
