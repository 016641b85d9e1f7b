"""cuda.bindings.runtime: conversion of arguments and results, independent of the device."""

import ctypes

import numpy as np
import pytest
from cuda.bindings import driver, runtime

from helpers.device import check
from helpers.programs import output

E = runtime.cudaError_t
HANDLES = {
    "cudaEglStreamConnection": "CUeglStreamConnection",
    "cudaEvent_t": "CUevent",
    "cudaFunction_t": "CUfunction",
    "cudaGraphExec_t": "CUgraphExec",
    "cudaGraphNode_t": "CUgraphNode",
    "cudaGraph_t": "CUgraph",
    "cudaMemPool_t": "CUmemoryPool",
    "cudaStream_t": "CUstream",
    "cudaUserObject_t": "CUuserObject",
}


# ---------------------------------------------------------------- classes


@pytest.mark.parametrize("name, base", HANDLES.items())
def test_handles_shared_with_the_driver(name, base):
    ours, theirs = getattr(runtime, name), getattr(driver, base)
    assert ours.__mro__ == (ours, theirs, object) and ours.__module__ == "cuda.bindings.runtime"
    assert ours(5) == theirs(5) and theirs(5) == ours(5) and hash(ours(5)) == hash(theirs(5)) and ours(5) != theirs(6)
    assert repr(ours(5)) == f"<{base} 0x5>" and int(ours(theirs(7))) == 7 and runtime.sizeof(ours) == 8
    assert ctypes.c_uint64.from_address(ours(9).getPtr()).value == 9


def test_handles_of_the_runtime():
    assert runtime.cudaArray_t(3) == runtime.cudaArray_t(3) != runtime.cudaArray_t(4)
    assert runtime.cudaArray_t(3) != driver.CUarray(3) and runtime.cudaKernel_t(3) != driver.CUkernel(3)
    assert (
        repr(runtime.cudaArray_t(3)) == "<cudaArray_t 0x3>"
        and repr(runtime.cudaTextureObject_t(3)) == "<cudaTextureObject_t 3>"
    )
    assert runtime.cudaStream_t(5).__cuda_stream__() == (0, 5)


def test_streams_and_events_of_both_modules_are_accepted():
    stream, event = check(runtime.cudaStreamCreate()), check(runtime.cudaEventCreate())
    assert type(stream) is runtime.cudaStream_t and type(event) is runtime.cudaEvent_t
    for s in (stream, driver.CUstream(stream), int(stream)):
        for e in (event, driver.CUevent(event), int(event)):
            check(runtime.cudaEventRecord(e, s))
    check(driver.cuStreamSynchronize(stream))
    check(driver.cuEventQuery(event))
    assert runtime.cudaStreamSynchronize(None) == runtime.cudaStreamSynchronize(0) == (E.cudaSuccess,)
    with pytest.raises(TypeError):
        runtime.cudaStreamSynchronize("0")
    check(runtime.cudaEventDestroy(event))
    check(runtime.cudaStreamDestroy(stream))


def test_dim3_defaults_to_one():
    dim = runtime.dim3()
    assert (dim.x, dim.y, dim.z) == (1, 1, 1)
    params = runtime.cudaKernelNodeParams()
    assert (params.gridDim.x, params.gridDim.z, params.blockDim.y) == (1, 1, 1)
    # As a member of a union in C++ it is not initialized.
    assert runtime.cudaGraphNodeParams().kernel.gridDim.x == 0 and runtime.cudaKernelNodeParamsV2().gridDim.x == 0


def test_device_name_ends_at_the_nul():
    properties = runtime.cudaDeviceProp()
    assert properties.name == b"" and len(properties.luid) == 8
    properties.name = b"device"
    assert properties.name == b"device"
    properties.name = b"x" * 256
    assert properties.name == b"x" * 256
    for wrong, error in ((b"x" * 257, ValueError), ("text", TypeError), (None, TypeError), (5, TypeError)):
        with pytest.raises(error, match="name"):
            properties.name = wrong


def test_arrays_of_structs_and_handles_in_a_struct():
    frame = runtime.cudaEglFrame()
    memory = bytearray(16)
    pitched = [runtime.make_cudaPitchedPtr(n, 2, 3, 4) for n in (1, 2, 3)]
    pitched[1].ptr = memory
    frame.frame.pPitch = pitched
    del pitched
    assert [p.pitch for p in frame.frame.pPitch] == [2, 2, 2] and frame.frame.pPitch[2].ptr == 3
    frame.frame.pArray = [1, runtime.cudaArray_t(2), 3]
    assert frame.frame.pArray == [runtime.cudaArray_t(n) for n in (1, 2, 3)]
    frame.planeDesc = [runtime.cudaEglPlaneDesc()] * 3
    for wrong, error in (
        ([1, 2, 3], TypeError),
        ([runtime.cudaEglPlaneDesc()], IndexError),
        (None, TypeError),
        ([runtime.dim3()] * 3, TypeError),
    ):
        with pytest.raises(error, match="planeDesc"):
            frame.planeDesc = wrong


def test_lists_keep_their_elements_alive():
    params = runtime.cudaExternalSemaphoreSignalNodeParams()
    params.extSemArray = [runtime.cudaExternalSemaphore_t(n) for n in (4, 5)]
    params.numExtSems = 2
    assert [int(s) for s in params.extSemArray] == [4, 5]
    params.numExtSems = 3
    with pytest.raises(ValueError):
        runtime.cudaGraphAddExternalSemaphoresSignalNode(0, None, 0, params)


# ---------------------------------------------------------------- functions without a C function behind them


def test_functions_that_build_structs():
    extent = runtime.make_cudaExtent(1, 2, 2**40)
    assert (type(extent), extent.width, extent.height, extent.depth) == (runtime.cudaExtent, 1, 2, 2**40)
    pos = runtime.make_cudaPos(x=3, y=4, z=5)
    assert (type(pos), pos.x, pos.y, pos.z) == (runtime.cudaPos, 3, 4, 5)
    pointer = runtime.make_cudaPitchedPtr(0x1000, 2, 3, 4)
    assert (pointer.ptr, pointer.pitch, pointer.xsize, pointer.ysize) == (0x1000, 2, 3, 4)
    memory = bytearray(64)
    assert runtime.make_cudaPitchedPtr(memory, 8, 8, 8).ptr == ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert runtime.make_cudaPitchedPtr(None, 0, 0, 0).ptr == 0
    for wrong, error in ((-1, OverflowError), (2**64, OverflowError), ("1", TypeError), (None, TypeError)):
        with pytest.raises(error, match="make_cudaPos"):
            runtime.make_cudaPos(0, wrong, 0)
    with pytest.raises(TypeError):
        runtime.make_cudaExtent(1, 2)


def test_channel_descriptor():
    status, desc = runtime.cudaCreateChannelDesc(8, 16, 32, 0, runtime.cudaChannelFormatKind.cudaChannelFormatKindFloat)
    assert status is E.cudaSuccess and type(desc) is runtime.cudaChannelFormatDesc
    assert (desc.x, desc.y, desc.z, desc.w) == (8, 16, 32, 0)
    assert desc.f is runtime.cudaChannelFormatKind.cudaChannelFormatKindFloat
    assert runtime.cudaCreateChannelDesc(-1, 0, 0, 0, 1)[1].x == -1
    with pytest.raises(OverflowError):
        runtime.cudaCreateChannelDesc(2**31, 0, 0, 0, 1)


def test_every_error_has_a_name_and_text():
    for error in E:
        status, name = runtime.cudaGetErrorName(error)
        if name == b"unrecognized error code" and runtime.getLocalRuntimeVersion()[1] < 13050:
            continue  # Newer than the installed libcudart.
        assert (status, name.decode()) == (E.cudaSuccess, error.name)
        assert runtime.cudaGetErrorString(error)[1] not in (None, b"", b"unrecognized error code")
    assert runtime.cudaGetErrorName(12345) == (E.cudaSuccess, b"unrecognized error code")


def test_version_of_the_installed_library():
    from cuda import pathfinder

    try:
        status, version = runtime.getLocalRuntimeVersion()
    except pathfinder.DynamicLibNotFoundError as error:
        assert "cudart" in str(error)
    else:
        assert status is E.cudaSuccess and version // 1000 in (12, 13)


def test_struct_sizes():
    assert runtime.sizeof(runtime.cudaDeviceProp) == 1008 and runtime.sizeof(runtime.cudaLaunchAttributeValue) == 64
    for wrong in (int, E, 5, runtime.dim3()):
        with pytest.raises(TypeError):
            runtime.sizeof(wrong)


# ---------------------------------------------------------------- arguments


def test_memory_arguments_of_every_kind():
    device = check(runtime.cudaMalloc(64))
    assert type(device) is int
    kind = runtime.cudaMemcpyKind
    host = np.arange(16, dtype=np.int32)
    check(runtime.cudaMemcpy(device, host, 64, kind.cudaMemcpyHostToDevice))
    for back in (np.zeros(16, np.int32), bytearray(64), (ctypes.c_int * 16)()):
        check(runtime.cudaMemcpy(back, driver.CUdeviceptr(device), 64, kind.cudaMemcpyDeviceToHost))
        assert bytes(back) == host.tobytes()
    taken = np.zeros(16, np.int32)
    check(runtime.cudaMemcpy(taken.ctypes.data, device, 64, kind.cudaMemcpyDefault))
    assert (taken == host).all()
    check(runtime.cudaFree(device))
    check(runtime.cudaFree(None))
    check(runtime.cudaFree(0))
    for wrong in ("text", 1.5, [1], object()):
        with pytest.raises(TypeError, match="devPtr"):
            runtime.cudaFree(wrong)


def test_buffers_shorter_than_the_copy_are_refused():
    device = check(runtime.cudaMalloc(64))
    short = np.zeros(3, np.int32)
    kind = runtime.cudaMemcpyKind
    with pytest.raises(ValueError, match="12 bytes, but count is 64"):
        runtime.cudaMemcpy(short, device, 64, kind.cudaMemcpyDeviceToHost)
    with pytest.raises(ValueError, match="src"):
        runtime.cudaMemcpyAsync(device, short, 64, kind.cudaMemcpyHostToDevice, 0)
    with pytest.raises(ValueError, match="ptr"):
        runtime.cudaHostRegister(short, 64, 0)
    for call in (
        lambda: runtime.cudaMemcpy2D(short, 8, device, 8, 4, 3, kind.cudaMemcpyDeviceToHost),
        lambda: runtime.cudaMemcpy2D(device, 8, short, 2**63, 4, 3, kind.cudaMemcpyHostToDevice),
        lambda: runtime.cudaMemcpy2DAsync(device, 8, short, 8, 5, 2, kind.cudaMemcpyHostToDevice, 0),
        lambda: runtime.cudaMemset2D(short, 8, 0, 8, 2),
    ):
        with pytest.raises(ValueError, match="rows"):
            call()
    check(runtime.cudaMemcpy2D(short, 8, device, 8, 4, 2, kind.cudaMemcpyDeviceToHost))
    check(runtime.cudaFree(device))


def test_wrong_types_raise_before_the_call():
    kind = runtime.cudaMemcpyKind.cudaMemcpyDefault
    for call in (
        lambda: runtime.cudaMemcpy(0, 0, "1", kind),
        lambda: runtime.cudaMemcpy(0, 0, 0, None),
        lambda: runtime.cudaMemcpy3D(runtime.dim3()),
        lambda: runtime.cudaMemset3D(None, 0, runtime.cudaExtent()),
        lambda: runtime.cudaMalloc(None),
        lambda: runtime.cudaGetDeviceProperties("0"),
        lambda: runtime.cudaLibraryGetKernel(0, "name"),
        lambda: runtime.cudaIpcOpenMemHandle(None, 0),
        lambda: runtime.cudaStreamSetAttribute(0, 1, runtime.dim3()),
        lambda: runtime.cudaLaunchHostFunc(0, "callable", 0),
        lambda: runtime.cudaGetDeviceCount(1),
        lambda: runtime.cudaSetDevice(),
        lambda: runtime.cudaSetDevice(dev=0),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(OverflowError):
        runtime.cudaSetDevice(2**31)
    with pytest.raises(OverflowError):
        runtime.cudaMalloc(-1)


def test_attribute_values_have_the_type_of_their_attribute():
    pool = check(runtime.cudaDeviceGetDefaultMemPool(0))
    assert type(pool) is runtime.cudaMemPool_t
    attributes = runtime.cudaMemPoolAttr
    threshold = attributes.cudaMemPoolAttrReleaseThreshold
    before = check(runtime.cudaMemPoolGetAttribute(pool, threshold))
    assert type(before) is driver.cuuint64_t
    for value in (driver.cuuint64_t(1 << 20), 1 << 21):
        check(runtime.cudaMemPoolSetAttribute(pool, threshold, value))
        assert int(check(runtime.cudaMemPoolGetAttribute(driver.CUmemoryPool(pool), threshold))) == int(value)
    check(runtime.cudaMemPoolSetAttribute(pool, threshold, before))
    assert type(check(runtime.cudaMemPoolGetAttribute(pool, attributes.cudaMemPoolReuseAllowOpportunistic))) is int
    for wrong in (0, 99, -1):
        with pytest.raises(TypeError, match="cudaMemPoolAttr"):
            runtime.cudaMemPoolGetAttribute(pool, wrong)
        with pytest.raises(TypeError, match="cudaMemPoolAttr"):
            runtime.cudaMemPoolSetAttribute(pool, wrong, 1)


def test_option_values_have_the_type_of_their_option():
    jit, library = runtime.cudaJitOption, runtime.cudaLibraryOption
    for options, values in (
        ([jit.cudaJitMaxRegisters], ["x"]),
        ([jit.cudaJitWallTime], [b"1"]),
        ([jit.cudaJitInfoLogBuffer], [5]),
        ([99], [1]),
        ([8], [1]),
    ):
        with pytest.raises(TypeError):
            runtime.cudaLibraryLoadData(b"", options, values, 1, None, None, 0)
    with pytest.raises(TypeError):
        runtime.cudaLibraryLoadData(b"", None, None, 0, [library.cudaLibraryHostUniversalFunctionAndDataTable], [1], 1)
    with pytest.raises(ValueError, match="log buffer"):
        runtime.cudaLibraryLoadData(
            b"", [jit.cudaJitErrorLogBuffer, jit.cudaJitErrorLogBufferSizeBytes], [bytearray(8), 64], 2, None, None, 0
        )
    with pytest.raises(ValueError):
        runtime.cudaLibraryLoadData(b"", [jit.cudaJitMaxRegisters], [32], 2, None, None, 0)


PTX = b"""
.version 8.0
.target sm_52
.address_size 64
.global .align 4 .u32 number = 7;
.visible .entry nothing() { ret; }
"""


def test_library_and_its_kernels():
    log = bytearray(256)
    jit = runtime.cudaJitOption
    loaded = check(
        runtime.cudaLibraryLoadData(
            PTX, [jit.cudaJitErrorLogBuffer, jit.cudaJitErrorLogBufferSizeBytes], [log, len(log)], 2, None, None, 0
        )
    )
    assert type(loaded) is runtime.cudaLibrary_t
    kernel = check(runtime.cudaLibraryGetKernel(loaded, b"nothing"))
    assert type(kernel) is runtime.cudaKernel_t
    assert check(runtime.cudaLibraryGetKernelCount(loaded)) == 1
    assert check(runtime.cudaLibraryEnumerateKernels(1, loaded)) == [kernel]
    address, size = check(runtime.cudaLibraryGetGlobal(loaded, b"number"))
    assert type(address) is int and size == 4
    value = bytearray(4)
    check(runtime.cudaMemcpy(value, address, 4, runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost))
    assert value == b"\x07\0\0\0"
    attributes = check(runtime.cudaFuncGetAttributes(kernel))
    assert type(attributes) is runtime.cudaFuncAttributes and attributes.maxThreadsPerBlock > 0
    check(driver.cuLaunchKernel(int(kernel), 1, 1, 1, 1, 1, 1, 0, 0, 0, 0))
    check(runtime.cudaDeviceSynchronize())
    check(runtime.cudaLibraryUnload(loaded))


def test_range_attributes():
    kinds = runtime.cudaMemRangeAttribute
    status, memory = runtime.cudaMallocManaged(4096, runtime.cudaMemAttachGlobal)
    if status is not E.cudaSuccess:
        pytest.skip(f"no managed memory: {status!r}")
    assert check(runtime.cudaMemRangeGetAttribute(4, kinds.cudaMemRangeAttributeReadMostly, memory, 4096)) == 0
    devices = check(runtime.cudaMemRangeGetAttribute(8, kinds.cudaMemRangeAttributeAccessedBy, memory, 4096))
    assert len(devices) == 2 and all(type(d) is int for d in devices)
    several = check(
        runtime.cudaMemRangeGetAttributes(
            [4, 4],
            [kinds.cudaMemRangeAttributeReadMostly, kinds.cudaMemRangeAttributePreferredLocation],
            2,
            memory,
            4096,
        )
    )
    assert several[0] == 0 and len(several) == 2
    with pytest.raises(ValueError):
        runtime.cudaMemRangeGetAttributes([4], [kinds.cudaMemRangeAttributeReadMostly], 2, memory, 4096)
    check(runtime.cudaFree(memory))


# ---------------------------------------------------------------- results


def test_failures_return_none_for_outputs():
    status, properties = runtime.cudaGetDeviceProperties(10**6)
    assert status is E.cudaErrorInvalidDevice and properties is None
    assert runtime.cudaGetLastError() == (E.cudaErrorInvalidDevice,)
    assert runtime.cudaGetLastError() == runtime.cudaPeekAtLastError() == (E.cudaSuccess,)
    assert runtime.cudaDeviceGetPCIBusId(64, 10**6) == (E.cudaErrorInvalidDevice, None)
    runtime.cudaGetLastError()


def test_device_properties():
    properties = check(runtime.cudaGetDeviceProperties(0))
    assert type(properties) is runtime.cudaDeviceProp
    assert properties.name == check(driver.cuDeviceGetName(256, 0)).rstrip(b"\0")
    assert properties.warpSize == 32 and properties.totalGlobalMem > 0 and len(properties.maxGridSize) == 3
    assert len(properties.uuid.bytes) == 16
    major = check(runtime.cudaDeviceGetAttribute(runtime.cudaDeviceAttr.cudaDevAttrComputeCapabilityMajor, 0))
    assert (properties.major, type(major)) == (major, int)
    bus = check(runtime.cudaDeviceGetPCIBusId(32, 0))
    assert type(bus) is bytes and len(bus) == 32 and b":" in bus


# ---------------------------------------------------------------- where the calls go


def fresh(script, **environment):
    """The output of a fresh interpreter."""
    return output(script, options=("-W", "ignore"), environment=environment).strip()


VERSION = "from cuda.bindings import runtime as r\nprint(r.cudaRuntimeGetVersion(), r.cudaGetDeviceCount()[0].name)"


def test_built_in_runtime_can_be_selected_on_any_device():
    assert fresh(VERSION, CUPYRITE_RUNTIME="own") == "(<cudaError_t.cudaSuccess: 0>, 13050) cudaSuccess"


def test_invalid_runtime_selection_raises():
    script = """
from cuda.bindings import runtime
try:
    runtime.cudaGetDeviceCount()
except ValueError as error:
    print(error)
"""
    assert "CUPYRITE_RUNTIME" in fresh(script, CUPYRITE_RUNTIME="both")
    assert "CUPYRITE_DEVICE" in fresh(script, CUPYRITE_DEVICE="tpu")


@pytest.mark.cpu
@pytest.mark.parametrize("which", ["own", "cudart"])
def test_missing_driver_is_a_status(which):
    """As in NVIDIA's package: the runtime loads and returns an error."""
    script = """
from cuda import pathfinder
from cuda.bindings import driver, runtime as r
try:
    driver.cuInit(0)
except pathfinder.DynamicLibNotFoundError:
    try:
        r.cudaGetDeviceCount()
    except pathfinder.DynamicLibNotFoundError:
        print("no libcudart")
        raise SystemExit
    calls = [r.cudaGetDeviceCount(), r.cudaMalloc(16), r.cudaFree(0), r.cudaStreamCreate(), r.cudaSetDevice(0),
             r.cudaDeviceSynchronize(), r.cudaGetDeviceProperties(0), r.cudaGetLastError()]
    print({int(c[0]) for c in calls}, all(v is None for c in calls for v in c[1:]), r.cudaDriverGetVersion()[1])
else:
    print("there is a driver")
"""
    reported = fresh(script, CUPYRITE_DEVICE="gpu", CUPYRITE_RUNTIME=which)
    if reported in ("there is a driver", "no libcudart"):
        pytest.skip(reported)
    assert reported == f"{{{int(E.cudaErrorInsufficientDriver)}}} True 0"


@pytest.mark.parametrize("own", [0, 1])
def test_per_thread_default_stream_can_be_selected(own):
    script = """
from cuda.bindings import runtime as r
null, legacy, own = (r.cudaStreamGetId(stream)[1] for stream in (0, r.cudaStreamLegacy, r.cudaStreamPerThread))
print(null == legacy, null == own)
"""
    assert fresh(script, CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM=str(own)) == f"{not own} {bool(own)}"


def test_docstrings_name_types():
    text = runtime.cudaMemcpyAsync.__doc__
    assert "CUstream or cudaStream_t" in text and "cudaError_t" in text and "cuda-runtime-api" in text
    assert runtime.make_cudaPos.__doc__.count("cudaPos") >= 1 and "cudaError_t" not in runtime.make_cudaPos.__doc__
    assert runtime.cudaGraphGetNodes.__text_signature__ == "(graph, numNodes=0)"
