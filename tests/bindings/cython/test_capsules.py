"""The capsules of the Cython modules: called as an extension calls them, through addresses found by the C type's text."""

import ctypes
import importlib

import pytest
from cuda.bindings import cydriver, cynvrtc, cyruntime

from helpers import programs

MODULES = ["cydriver", "cyruntime", "cynvrtc", "cynvml", "cynvjitlink", "cynvvm", "cynvfatbin", "cycufile", "cycudla"]

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

LOOKUP = """
        import ctypes
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        def function(module, name, signature, result, *arguments):
            address = pointer(module.__pyx_capi__[name], signature.encode())
            return ctypes.PYFUNCTYPE(result, *arguments)(address)
"""


def function(module, name, signature, result, *arguments):
    """A C function, called with the GIL; an exception that the call leaves behind is raised."""
    address = pointer(module.__pyx_capi__[name], signature.encode())
    return ctypes.PYFUNCTYPE(result, *arguments)(address)


class Extent(ctypes.Structure):
    _fields_ = [("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t)]


class PitchedPtr(ctypes.Structure):
    _fields_ = [("ptr", ctypes.c_void_p), ("pitch", ctypes.c_size_t), ("x", ctypes.c_size_t), ("y", ctypes.c_size_t)]


class ChannelFormat(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int), ("y", ctypes.c_int), ("z", ctypes.c_int), ("w", ctypes.c_int), ("f", ctypes.c_int)]


@pytest.mark.parametrize("name", MODULES)
def test_every_function_has_an_address_of_its_own(name):
    capsules = importlib.import_module(f"cuda.bindings.{name}").__pyx_capi__
    text = ctypes.pythonapi.PyCapsule_GetName
    text.restype, text.argtypes = ctypes.c_char_p, [ctypes.py_object]
    addresses = {pointer(capsule, text(capsule)) for capsule in capsules.values()}
    assert len(addresses) == len(capsules) and 0 not in addresses


def test_another_c_type_is_refused():
    with pytest.raises(ValueError, match="incorrect name"):
        function(cydriver, "cuInit", "CUresult (int)", ctypes.c_int)


def test_driver_and_runtime_functions_are_called():
    init = function(cydriver, "cuInit", "CUresult (unsigned int)", ctypes.c_int, ctypes.c_uint)
    assert init(0) == 0
    assert init(1) == 1  # CUDA_ERROR_INVALID_VALUE, also on the second call
    version = ctypes.c_int()
    get = function(cyruntime, "cudaRuntimeGetVersion", "cudaError_t (int *)", ctypes.c_int, ctypes.c_void_p)
    assert get(ctypes.byref(version)) == 0 and version.value >= 12000
    name = function(cyruntime, "cudaGetErrorName", "char const *(cudaError_t)", ctypes.c_char_p, ctypes.c_int)
    assert name(2) == b"cudaErrorMemoryAllocation"


def test_nvrtc_is_called():
    major, minor = ctypes.c_int(), ctypes.c_int()
    signature = "nvrtcResult (int *, int *)"
    version = function(cynvrtc, "nvrtcVersion", signature, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    assert version(ctypes.byref(major), ctypes.byref(minor)) == 0 and major.value >= 12


def test_arguments_beyond_the_registers_arrive():
    """A 2-D copy between host buffers has eight arguments: two of them on the stack."""
    signature = "cudaError_t (void *, size_t, void const *, size_t, size_t, size_t, enum cudaMemcpyKind, cudaStream_t)"
    types = [ctypes.c_void_p, ctypes.c_size_t] * 2 + [ctypes.c_size_t] * 2 + [ctypes.c_int, ctypes.c_void_p]
    copy = function(cyruntime, "cudaMemcpy2DAsync", signature, ctypes.c_int, *types)
    source, target = (ctypes.c_char * 12)(*b"abcdefghijkl"), (ctypes.c_char * 12)()
    assert copy(target, 4, source, 4, 3, 3, 0, None) == 0
    synchronize = function(cyruntime, "cudaDeviceSynchronize", "cudaError_t (void)", ctypes.c_int)
    assert synchronize() == 0
    assert target.raw == b"abc\0efg\0ijk\0"


def test_structs_are_returned_by_value():
    size = ctypes.c_size_t
    extent = function(cyruntime, "make_cudaExtent", "struct cudaExtent (size_t, size_t, size_t)", Extent, *[size] * 3)
    got = extent(1, 2, 3)
    assert (got.width, got.height, got.depth) == (1, 2, 3)
    signature = "struct cudaPitchedPtr (void *, size_t, size_t, size_t)"
    pitched = function(cyruntime, "make_cudaPitchedPtr", signature, PitchedPtr, ctypes.c_void_p, *[size] * 3)
    got = pitched(64, 5, 6, 7)
    assert (got.ptr, got.pitch, got.x, got.y) == (64, 5, 6, 7)
    signature = "struct cudaChannelFormatDesc (int, int, int, int, enum cudaChannelFormatKind)"
    channel = function(cyruntime, "cudaCreateChannelDesc", signature, ChannelFormat, *[ctypes.c_int] * 5)
    got = channel(8, 16, 32, 0, 2)
    assert (got.x, got.y, got.z, got.w, got.f) == (8, 16, 32, 0, 2)


def test_missing_library_raises():
    code = (
        LOOKUP
        + """
        from cuda.bindings import cycudla, cycufile
        from cuda.pathfinder import DynamicLibNotFoundError
        version = function(cycudla, "cudlaGetVersion", "cudlaStatus (uint64_t *const )", ctypes.c_int, ctypes.c_void_p)
        for _ in range(2):  # not remembered: the library may be installed meanwhile
            try:
                version(None)
            except DynamicLibNotFoundError as e:
                print("libcudla" in str(e))
    """
    )
    assert programs.output(code).split() == ["True", "True"]


def test_a_thread_that_python_does_not_know_gets_the_status():
    code = (
        LOOKUP
        + """
        from cuda.bindings import cycudla
        libc = ctypes.CDLL(None)
        address = pointer(cycudla.__pyx_capi__["cudlaGetVersion"], b"cudlaStatus (uint64_t *const )")
        thread, result = ctypes.c_ulong(), ctypes.c_void_p()
        assert libc.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(address), None) == 0
        assert libc.pthread_join(thread, ctypes.byref(result)) == 0
        print(ctypes.c_int(result.value & 0xFFFFFFFF).value)
    """
    )
    assert programs.output(code).strip() == "-42"


def test_threads_resolve_one_function_at_once():
    code = (
        LOOKUP
        + """
        import threading
        from cuda.bindings import cydriver, cyruntime
        start, failed = threading.Barrier(16), []
        functions = [
            function(cydriver, "cuDriverGetVersion", "CUresult (int *)", ctypes.c_int, ctypes.c_void_p),
            function(cyruntime, "cudaRuntimeGetVersion", "cudaError_t (int *)", ctypes.c_int, ctypes.c_void_p),
        ]
        free = [ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(ctypes.cast(f, ctypes.c_void_p).value) for f in functions]
        def run(f):
            version = ctypes.c_int()
            start.wait()
            if f(ctypes.byref(version)) != 0 or version.value < 12000:
                failed.append(version.value)
        threads = [threading.Thread(target=run, args=(f,)) for f in (functions + free) * 4]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(failed)
    """
    )
    for _ in range(5):
        assert programs.output(code, environment={"CUPYRITE_DEVICE": "cpu"}).strip() == "[]"


def test_importing_again_gives_the_same_addresses():
    code = (
        LOOKUP
        + """
        import importlib, sys
        from cuda.bindings import cydriver
        def address(module):
            return pointer(module.__pyx_capi__["cuInit"], b"CUresult (unsigned int)")
        before = address(cydriver)
        del sys.modules["cuda.bindings.cydriver"]
        print(address(importlib.import_module("cuda.bindings.cydriver")) == before)
    """
    )
    assert programs.output(code).strip() == "True"


def test_modules_build_nothing_before_they_are_imported():
    code = """
        import sys
        import cuda.bindings.driver
        print([m for m in sys.modules if m.startswith("cuda.bindings.cy")])
    """
    assert programs.output(code).strip() == "[]"
