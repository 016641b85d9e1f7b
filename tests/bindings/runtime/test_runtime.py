"""The runtime API on both devices: the current device, errors, memory, copies, streams, events, kernels."""

import ctypes
import threading
import time

import numpy as np
import pytest
from cuda.bindings import driver, runtime

from helpers.device import check, on_cpu_device
from helpers.programs import output
from helpers.threads import run_all

E = runtime.cudaError_t
KIND = runtime.cudaMemcpyKind
TO_DEVICE, TO_HOST, ON_DEVICE, BY_ADDRESS = (
    KIND.cudaMemcpyHostToDevice,
    KIND.cudaMemcpyDeviceToHost,
    KIND.cudaMemcpyDeviceToDevice,
    KIND.cudaMemcpyDefault,
)
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .b32 total[3];
.visible .entry iota(.param .u64 to, .param .u32 first)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [first];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd3, %rd1, %rd2;
    add.u32 %r3, %r2, %r1;
    st.global.u32 [%rd3], %r3;
    ret;
}
.visible .entry wild()
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    mov.u64 %rd1, 64;
    mov.u32 %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}
\0"""


@pytest.fixture(autouse=True)
def clean():
    """Every test starts without a pending error, in the primary context."""
    check(runtime.cudaSetDevice(0))
    runtime.cudaGetLastError()
    yield
    check(runtime.cudaDeviceSynchronize())


def address(array):
    return array.ctypes.data


def fetch(pointer, count, dtype=np.uint8):
    """Copies `count` elements from the device."""
    out = np.empty(count, dtype)
    check(runtime.cudaMemcpy(address(out), int(pointer), out.nbytes, TO_HOST))
    return out


class Memory:
    """Device memory with an array's contents; freed at the end of the `with` block."""

    def __init__(self, array):
        self.array = np.ascontiguousarray(array)

    def __enter__(self):
        self.pointer = check(runtime.cudaMalloc(self.array.nbytes))
        check(runtime.cudaMemcpy(self.pointer, address(self.array), self.array.nbytes, TO_DEVICE))
        return self

    def __exit__(self, *_):
        check(runtime.cudaFree(self.pointer))

    def get(self):
        return fetch(self.pointer, self.array.size, self.array.dtype).reshape(self.array.shape)


class Library:
    """PTX as a library."""

    def __enter__(self):
        self.handle = check(runtime.cudaLibraryLoadData(PTX, [], [], 0, [], [], 0))
        return self

    def __exit__(self, *_):
        check(runtime.cudaLibraryUnload(self.handle))

    def kernel(self, name):
        return check(runtime.cudaLibraryGetKernel(self.handle, name))


def launch(kernel, threads, arguments, stream=0):
    """Launches a kernel: a runtime kernel is a driver function."""
    check(driver.cuLaunchKernel(int(kernel), 1, 1, 1, threads, 1, 1, 0, int(stream), arguments, 0))


def in_a_process(body):
    """The output of Python lines that run in another process, with the runtime imported."""
    head = "from cuda.bindings import driver, runtime\nE = runtime.cudaError_t\n"
    return output(head + body, options=("-W", "ignore")).split()


# ---------------------------------------------------------------------------------------------------------------------
# Errors


def test_failure_is_the_last_error_of_its_thread():
    assert runtime.cudaGetLastError() == (E.cudaSuccess,)
    assert runtime.cudaSetDevice(99) == (E.cudaErrorInvalidDevice,)
    check(runtime.cudaFree(0))
    seen = []
    thread = threading.Thread(target=lambda: seen.append(runtime.cudaPeekAtLastError()))
    run_all([thread])
    assert seen == [(E.cudaSuccess,)]
    assert runtime.cudaPeekAtLastError() == (E.cudaErrorInvalidDevice,)
    assert runtime.cudaGetLastError() == (E.cudaErrorInvalidDevice,)
    assert runtime.cudaGetLastError() == (E.cudaSuccess,)


def test_error_codes_have_names_and_texts():
    for code in E:
        status, name = runtime.cudaGetErrorName(code)
        if name == b"unrecognized error code" and runtime.getLocalRuntimeVersion()[1] < 13050:
            continue  # Newer than the installed libcudart.
        assert status == E.cudaSuccess and name == code.name.encode()
        status, text = runtime.cudaGetErrorString(code)
        assert status == E.cudaSuccess and len(text) > 3


def test_illegal_access_is_sticky_until_device_reset():
    out = in_a_process(f"""
runtime.cudaFree(0)
lib = runtime.cudaLibraryLoadData({PTX!r}, [], [], 0, [], [], 0)[1]
kernel = runtime.cudaLibraryGetKernel(lib, b"wild")[1]
assert int(driver.cuLaunchKernel(int(kernel), 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)[0]) == 0
print(int(runtime.cudaDeviceSynchronize()[0]), int(runtime.cudaGetLastError()[0]))
print(int(runtime.cudaMalloc(64)[0]), int(runtime.cudaDeviceSynchronize()[0]))
""")
    assert out == ["700"] * 4


# ---------------------------------------------------------------------------------------------------------------------
# Devices and contexts


def test_devices_have_properties_and_attributes():
    count = check(runtime.cudaGetDeviceCount())
    assert count >= 1
    properties = check(runtime.cudaGetDeviceProperties(0))
    names = runtime.cudaDeviceAttr

    def attribute(which):
        return check(runtime.cudaDeviceGetAttribute(which, 0))

    assert properties.major == attribute(names.cudaDevAttrComputeCapabilityMajor)
    assert properties.minor == attribute(names.cudaDevAttrComputeCapabilityMinor)
    assert properties.multiProcessorCount == attribute(names.cudaDevAttrMultiProcessorCount)
    assert properties.sharedMemPerBlockOptin == attribute(names.cudaDevAttrMaxSharedMemoryPerBlockOptin)
    assert list(properties.maxThreadsDim) == [
        attribute(getattr(names, f"cudaDevAttrMaxBlockDim{axis}")) for axis in "XYZ"
    ]
    assert properties.warpSize == 32 and properties.totalGlobalMem > 0 and properties.unifiedAddressing == 1
    device = check(driver.cuDeviceGet(0))
    assert properties.name.rstrip(b"\0") == check(driver.cuDeviceGetName(256, device)).rstrip(b"\0")
    assert properties.uuid.bytes == check(driver.cuDeviceGetUuid(device)).bytes
    for ordinal in (-1, count, 1000):
        assert runtime.cudaGetDeviceProperties(ordinal)[0] == E.cudaErrorInvalidDevice
        assert runtime.cudaDeviceGetAttribute(names.cudaDevAttrWarpSize, ordinal)[0] == E.cudaErrorInvalidDevice
    assert check(runtime.cudaChooseDevice(properties)) == 0


def test_pci_bus_id_finds_the_device():
    bus = check(runtime.cudaDeviceGetPCIBusId(20, 0)).split(b"\0")[0]
    assert check(runtime.cudaDeviceGetByPCIBusId(bus)) == 0
    assert runtime.cudaDeviceGetByPCIBusId(b"nonsense")[0] in (E.cudaErrorInvalidValue, E.cudaErrorInvalidDevice)
    assert runtime.cudaDeviceGetPCIBusId(20, 99)[0] == E.cudaErrorInvalidDevice


def test_limits_and_flags():
    limit = runtime.cudaLimit.cudaLimitStackSize
    before = check(runtime.cudaDeviceGetLimit(limit))
    check(runtime.cudaDeviceSetLimit(limit, before + 1024))
    assert check(runtime.cudaDeviceGetLimit(limit)) >= before + 1024
    check(runtime.cudaDeviceSetLimit(limit, before))
    check(runtime.cudaSetDeviceFlags(runtime.cudaDeviceScheduleBlockingSync))
    assert (
        check(runtime.cudaGetDeviceFlags()) & runtime.cudaDeviceScheduleMask == runtime.cudaDeviceScheduleBlockingSync
    )
    check(runtime.cudaSetDeviceFlags(0))
    assert runtime.cudaSetDeviceFlags(3) == (E.cudaErrorInvalidValue,)
    least, greatest = check(runtime.cudaDeviceGetStreamPriorityRange())
    assert greatest <= 0 <= least


def test_versions():
    assert check(runtime.cudaRuntimeGetVersion()) // 1000 in (12, 13)
    assert check(runtime.cudaDriverGetVersion()) == check(driver.cuDriverGetVersion())


def test_context_is_created_on_demand():
    out = in_a_process("""
driver.cuInit(0)
device = driver.cuDeviceGet(0)[1]
active = lambda: driver.cuDevicePrimaryCtxGetState(device)[2]
runtime.cudaGetDeviceCount(); runtime.cudaGetDevice(); runtime.cudaGetDeviceProperties(0)
print(active(), int(driver.cuCtxGetCurrent()[1]) != 0)
runtime.cudaFree(0)
print(active(), int(driver.cuCtxGetCurrent()[1]) != 0)
""")
    assert out == ["0", "False", "1", "True"]


def test_threads_start_on_device_0_and_share_its_memory():
    with Memory(np.arange(100)) as memory:
        seen = []

        def work():
            seen.append(check(runtime.cudaGetDevice()))
            seen.append(fetch(memory.pointer, 100, memory.array.dtype).sum())

        thread = threading.Thread(target=work)
        run_all([thread])
    assert seen == [0, 4950]


def test_current_driver_context_is_used():
    context = check(driver.cuCtxCreate(None, 0, check(driver.cuDeviceGet(0))))
    try:
        pointer = check(runtime.cudaMalloc(64))
        which = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT
        assert int(check(driver.cuPointerGetAttribute(which, int(pointer)))) == int(context)
        assert int(check(driver.cuCtxGetCurrent())) == int(context)
        check(runtime.cudaFree(pointer))
    finally:
        check(driver.cuCtxDestroy(context))


def test_device_reset_destroys_everything_and_starts_anew():
    out = in_a_process("""
stream = runtime.cudaStreamCreate()[1]
pointer = runtime.cudaMalloc(64)[1]
print(int(runtime.cudaDeviceReset()[0]))
status, again = runtime.cudaMalloc(64)
print(int(status), int(runtime.cudaMemset(again, 0, 64)[0]), int(runtime.cudaDeviceSynchronize()[0]))
print(int(runtime.cudaFree(again)[0]))
""")
    assert out == ["0"] * 5


# ---------------------------------------------------------------------------------------------------------------------
# Memory


def test_allocation_sizes():
    assert int(check(runtime.cudaMalloc(0))) == 0
    assert runtime.cudaMalloc(1 << 60)[0] == E.cudaErrorMemoryAllocation
    free, total = check(runtime.cudaMemGetInfo())
    assert 0 < free <= total
    check(runtime.cudaFree(0))
    check(runtime.cudaFreeHost(0))
    pointer = check(runtime.cudaMalloc(64))
    assert int(pointer) % 256 == 0
    check(runtime.cudaFree(pointer))
    assert runtime.cudaFree(pointer) == (E.cudaErrorInvalidValue,)
    assert runtime.cudaFree(0x1234) == (E.cudaErrorInvalidValue,)


@pytest.mark.parametrize("kind", ["by name", "by address"])
def test_copies_in_every_direction(kind):
    to_device, to_host, on_device = (TO_DEVICE, TO_HOST, ON_DEVICE) if kind == "by name" else (BY_ADDRESS,) * 3
    source = np.arange(1000, dtype=np.int32)
    out = np.zeros_like(source)
    a, b = check(runtime.cudaMalloc(4000)), check(runtime.cudaMalloc(4000))
    check(runtime.cudaMemcpy(a, address(source), 4000, to_device))
    check(runtime.cudaMemcpy(b, a, 4000, on_device))
    check(runtime.cudaMemcpy(address(out), b, 4000, to_host))
    np.testing.assert_array_equal(out, source)
    out[:] = 0
    check(runtime.cudaMemcpy(address(out), address(source), 4000, KIND.cudaMemcpyHostToHost))
    np.testing.assert_array_equal(out, source)
    out[:] = 0
    stream = check(runtime.cudaStreamCreate())
    check(runtime.cudaMemsetAsync(a, 1, 4000, stream))
    check(runtime.cudaMemcpyAsync(b, a, 2000, on_device, stream))
    check(runtime.cudaMemcpyAsync(address(out), b, 4000, to_host, stream))
    check(runtime.cudaStreamSynchronize(stream))
    np.testing.assert_array_equal(out[:500], 0x01010101)
    np.testing.assert_array_equal(out[500:], source[500:])
    check(runtime.cudaStreamDestroy(stream))
    check(runtime.cudaFree(a))
    check(runtime.cudaFree(b))


def test_empty_and_invalid_copies():
    check(runtime.cudaMemcpy(0, 0, 0, TO_DEVICE))
    host = np.zeros(8, np.uint8)
    assert runtime.cudaMemcpy(64, address(host), 8, TO_DEVICE) == (E.cudaErrorInvalidValue,)
    assert runtime.cudaGetLastError() == (E.cudaErrorInvalidValue,)


def test_pitched_memory():
    pointer, pitch = check(runtime.cudaMallocPitch(100, 7))
    assert pitch >= 100
    check(runtime.cudaMemset2D(pointer, pitch, 0x11, 100, 7))
    check(runtime.cudaMemset2DAsync(int(pointer) + 10, pitch, 0x22, 20, 3, 0))
    rows = np.zeros((7, 100), np.uint8)
    check(runtime.cudaMemcpy2D(address(rows), 100, pointer, pitch, 100, 7, TO_HOST))
    want = np.full((7, 100), 0x11, np.uint8)
    want[:3, 10:30] = 0x22
    np.testing.assert_array_equal(rows, want)
    new = np.arange(700, dtype=np.uint8).reshape(7, 100)
    check(runtime.cudaMemcpy2DAsync(pointer, pitch, address(new), 100, 60, 5, TO_DEVICE, 0))
    check(runtime.cudaMemcpy2D(address(rows), 100, pointer, pitch, 100, 7, BY_ADDRESS))
    want[:5, :60] = new[:5, :60]
    np.testing.assert_array_equal(rows, want)
    bad = runtime.cudaMemcpy2D(address(rows), 99, pointer, pitch, 100, 7, TO_HOST)
    assert bad == (E.cudaErrorInvalidPitchValue,)
    check(runtime.cudaFree(pointer))


def test_three_dimensional_copies():
    made = check(runtime.cudaMalloc3D(runtime.make_cudaExtent(10, 5, 4)))
    assert (made.xsize, made.ysize) == (10, 5) and made.pitch >= 10
    check(runtime.cudaMemset3D(made, 3, runtime.make_cudaExtent(10, 5, 4)))
    check(runtime.cudaMemset3DAsync(made, 9, runtime.make_cudaExtent(4, 2, 3), 0))
    host = np.zeros((4, 5, 10), np.uint8)
    copy = runtime.cudaMemcpy3DParms()
    copy.srcPtr = made
    copy.dstPtr = runtime.make_cudaPitchedPtr(address(host), 10, 10, 5)
    copy.dstPos = runtime.make_cudaPos(1, 0, 1)
    copy.extent = runtime.make_cudaExtent(9, 5, 3)
    copy.kind = TO_HOST
    check(runtime.cudaMemcpy3D(copy))
    want = np.zeros_like(host)
    want[1:, :, 1:] = 3
    want[1:, :2, 1:5] = 9
    np.testing.assert_array_equal(host, want)
    copy.srcPtr = runtime.make_cudaPitchedPtr(0, 0, 0, 0)
    assert runtime.cudaMemcpy3D(copy) == (E.cudaErrorInvalidValue,)
    check(runtime.cudaFree(made.ptr))


def test_pointer_attributes():
    kinds = runtime.cudaMemoryType
    device = check(runtime.cudaMalloc(64))
    host = check(runtime.cudaHostAlloc(64, runtime.cudaHostAllocMapped))
    managed = check(runtime.cudaMallocManaged(64, runtime.cudaMemAttachGlobal))
    mine = np.zeros(8)
    for pointer, kind, has_device, has_host in [
        (int(device) + 8, kinds.cudaMemoryTypeDevice, True, False),
        (int(host), kinds.cudaMemoryTypeHost, True, True),
        (int(managed), kinds.cudaMemoryTypeManaged, True, True),
    ]:
        attributes = check(runtime.cudaPointerGetAttributes(pointer))
        assert attributes.type == kind and attributes.device == 0
        assert (int(attributes.devicePointer) == pointer) == has_device
        assert (int(attributes.hostPointer) == pointer) == has_host
    assert check(runtime.cudaPointerGetAttributes(address(mine))).type == kinds.cudaMemoryTypeUnregistered
    check(runtime.cudaFree(device))
    check(runtime.cudaFree(managed))
    check(runtime.cudaFreeHost(host))


def test_host_memory():
    pointer = check(runtime.cudaHostAlloc(4096, runtime.cudaHostAllocPortable | runtime.cudaHostAllocMapped))
    array = np.frombuffer((ctypes.c_uint8 * 4096).from_address(int(pointer)), np.uint8)
    array[:] = 7
    on_device = check(runtime.cudaHostGetDevicePointer(pointer, 0))
    assert (fetch(on_device, 4096) == 7).all()
    flags = check(runtime.cudaHostGetFlags(pointer))
    assert flags & runtime.cudaHostAllocMapped
    check(runtime.cudaFreeHost(pointer))
    mine = np.zeros(3 * 4096, np.uint8)
    start = (address(mine) + 4095) & ~4095
    check(runtime.cudaHostRegister(start, 4096, runtime.cudaHostRegisterMapped))
    assert runtime.cudaHostRegister(start, 4096, 0) == (E.cudaErrorHostMemoryAlreadyRegistered,)
    check(runtime.cudaMemset(check(runtime.cudaHostGetDevicePointer(start, 0)), 5, 4096))
    check(runtime.cudaDeviceSynchronize())
    assert mine.sum() == 5 * 4096
    check(runtime.cudaHostUnregister(start))
    assert runtime.cudaHostUnregister(start) == (E.cudaErrorHostMemoryNotRegistered,)


def test_managed_memory():
    pointer = check(runtime.cudaMallocManaged(4096, runtime.cudaMemAttachGlobal))
    array = np.frombuffer((ctypes.c_uint8 * 4096).from_address(int(pointer)), np.uint8)
    check(runtime.cudaMemset(pointer, 3, 4096))
    check(runtime.cudaDeviceSynchronize())
    assert array.sum() == 3 * 4096
    assert runtime.cudaMallocManaged(64, 0)[0] == E.cudaErrorInvalidValue
    check(runtime.cudaFree(pointer))


def test_stream_ordered_memory_and_pools():
    stream = check(runtime.cudaStreamCreate())
    pointer = check(runtime.cudaMallocAsync(1 << 16, stream))
    check(runtime.cudaMemsetAsync(pointer, 5, 1 << 16, stream))
    out = np.zeros(10, np.uint8)
    check(runtime.cudaMemcpyAsync(address(out), int(pointer) + 99, 10, TO_HOST, stream))
    check(runtime.cudaFreeAsync(pointer, stream))
    check(runtime.cudaStreamSynchronize(stream))
    assert (out == 5).all()
    properties = runtime.cudaMemPoolProps()
    properties.allocType = runtime.cudaMemAllocationType.cudaMemAllocationTypePinned
    properties.location.type = runtime.cudaMemLocationType.cudaMemLocationTypeDevice
    properties.location.id = 0
    pool = check(runtime.cudaMemPoolCreate(properties))
    pointer = check(runtime.cudaMallocFromPoolAsync(4096, pool, stream))
    used = runtime.cudaMemPoolAttr.cudaMemPoolAttrUsedMemCurrent
    assert int(check(runtime.cudaMemPoolGetAttribute(pool, used))) >= 4096
    check(runtime.cudaFreeAsync(pointer, stream))
    check(runtime.cudaStreamSynchronize(stream))
    assert int(check(runtime.cudaMemPoolGetAttribute(pool, used))) == 0
    threshold = runtime.cudaMemPoolAttr.cudaMemPoolAttrReleaseThreshold
    check(runtime.cudaMemPoolSetAttribute(pool, threshold, driver.cuuint64_t(1 << 20)))
    assert int(check(runtime.cudaMemPoolGetAttribute(pool, threshold))) == 1 << 20
    before = check(runtime.cudaDeviceGetMemPool(0))
    check(runtime.cudaDeviceSetMemPool(0, pool))
    assert int(check(runtime.cudaDeviceGetMemPool(0))) == int(pool)
    check(runtime.cudaDeviceSetMemPool(0, before))
    check(runtime.cudaMemPoolDestroy(pool))
    assert int(check(runtime.cudaDeviceGetDefaultMemPool(0))) != 0
    check(runtime.cudaStreamDestroy(stream))


# ---------------------------------------------------------------------------------------------------------------------
# Streams and events


def test_stream_properties():
    _least, greatest = check(runtime.cudaDeviceGetStreamPriorityRange())
    stream = check(runtime.cudaStreamCreateWithPriority(runtime.cudaStreamNonBlocking, greatest))
    assert check(runtime.cudaStreamGetFlags(stream)) == runtime.cudaStreamNonBlocking
    assert check(runtime.cudaStreamGetPriority(stream)) == greatest
    other = check(runtime.cudaStreamCreate())
    assert check(runtime.cudaStreamGetId(stream)) != check(runtime.cudaStreamGetId(other))
    assert runtime.cudaStreamCreateWithFlags(8)[0] == E.cudaErrorInvalidValue
    for default in (0, 1, 2):
        check(runtime.cudaStreamSynchronize(default))
        assert runtime.cudaStreamDestroy(default) == (E.cudaErrorInvalidResourceHandle,)
    for made in (stream, other):
        check(runtime.cudaStreamDestroy(made))


def test_host_functions_are_stream_ordered():
    order = []

    @HOST_FUNCTION
    def append(value):
        time.sleep(0.02)
        order.append(value)

    function = ctypes.cast(append, ctypes.c_void_p).value
    first, second = check(runtime.cudaStreamCreate()), check(runtime.cudaStreamCreateWithFlags(1))
    event = check(runtime.cudaEventCreateWithFlags(runtime.cudaEventDisableTiming))
    for value in (1, 2, 3):
        check(runtime.cudaLaunchHostFunc(first, function, value))
    check(runtime.cudaEventRecord(event, first))
    assert runtime.cudaStreamQuery(first) == (E.cudaErrorNotReady,)
    assert runtime.cudaEventQuery(event) == (E.cudaErrorNotReady,)
    check(runtime.cudaStreamWaitEvent(second, event, 0))
    check(runtime.cudaLaunchHostFunc(second, function, 4))
    check(runtime.cudaStreamSynchronize(second))
    assert order == [1, 2, 3, 4]
    check(runtime.cudaEventQuery(event))
    check(runtime.cudaEventDestroy(event))
    for stream in (first, second):
        check(runtime.cudaStreamDestroy(stream))


def test_callback_receives_its_stream():
    seen = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    def callback(stream, status, data):
        seen.append((stream, status, data))

    stream = check(runtime.cudaStreamCreate())
    function = ctypes.cast(callback, ctypes.c_void_p).value
    check(runtime.cudaStreamAddCallback(stream, function, 77, 0))
    check(runtime.cudaStreamSynchronize(stream))
    assert seen == [(int(stream), 0, 77)]
    assert runtime.cudaStreamAddCallback(stream, function, 77, 1) == (E.cudaErrorInvalidValue,)
    check(runtime.cudaStreamDestroy(stream))


def test_events_measure_time():
    start, end, untimed = (check(runtime.cudaEventCreateWithFlags(f)) for f in (0, 1, 2))

    @HOST_FUNCTION
    def nap(_):
        time.sleep(0.05)

    check(runtime.cudaEventRecord(start, 0))
    check(runtime.cudaLaunchHostFunc(0, ctypes.cast(nap, ctypes.c_void_p).value, 0))
    check(runtime.cudaEventRecordWithFlags(end, 0, 0))
    check(runtime.cudaEventRecord(untimed, 0))
    check(runtime.cudaEventSynchronize(untimed))
    assert 45 < check(runtime.cudaEventElapsedTime(start, end)) < 5000
    assert runtime.cudaEventElapsedTime(start, untimed)[0] == E.cudaErrorInvalidResourceHandle
    assert runtime.cudaEventCreateWithFlags(8)[0] == E.cudaErrorInvalidValue
    for event in (start, end, untimed):
        check(runtime.cudaEventDestroy(event))


# ---------------------------------------------------------------------------------------------------------------------
# Kernels


def test_library_kernels_run():
    with Library() as library, Memory(np.zeros(100, np.uint32)) as memory:
        pointer, first = ctypes.c_uint64(int(memory.pointer)), ctypes.c_uint32(5)
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(pointer), ctypes.addressof(first))
        launch(library.kernel(b"iota"), 100, ctypes.addressof(arguments))
        check(runtime.cudaDeviceSynchronize())
        np.testing.assert_array_equal(memory.get(), np.arange(5, 105))


def test_libraries_list_their_contents():
    with Library() as library:
        assert check(runtime.cudaLibraryGetKernelCount(library.handle)) == 2
        kernels = check(runtime.cudaLibraryEnumerateKernels(2, library.handle))
        assert {int(k) for k in kernels} == {int(library.kernel(n)) for n in (b"iota", b"wild")}
        pointer, size = check(runtime.cudaLibraryGetGlobal(library.handle, b"total"))
        assert size == 12
        check(runtime.cudaMemset(pointer, 0, size))
        assert runtime.cudaLibraryGetKernel(library.handle, b"none")[0] == E.cudaErrorSymbolNotFound
        assert runtime.cudaLibraryGetGlobal(library.handle, b"none")[0] == E.cudaErrorSymbolNotFound
    assert runtime.cudaLibraryLoadFromFile(b"/does/not/exist", [], [], 0, [], [], 0)[0] in (
        E.cudaErrorFileNotFound,
        E.cudaErrorInvalidValue,
    )


def test_libraries_load_from_files(tmp_path):
    path = tmp_path / "code.ptx"
    path.write_bytes(PTX.rstrip(b"\0"))
    library = check(runtime.cudaLibraryLoadFromFile(str(path).encode(), [], [], 0, [], [], 0))
    assert int(check(runtime.cudaLibraryGetKernel(library, b"iota"))) != 0
    check(runtime.cudaLibraryUnload(library))


def test_kernel_attributes_and_occupancy():
    with Library() as library:
        kernel = library.kernel(b"iota")
        attributes = check(runtime.cudaFuncGetAttributes(int(kernel)))
        assert 256 <= attributes.maxThreadsPerBlock <= 1024 and attributes.ptxVersion == 80
        assert attributes.sharedSizeBytes == 0
        blocks = check(runtime.cudaOccupancyMaxActiveBlocksPerMultiprocessor(int(kernel), 128, 0))
        assert 1 <= blocks <= 64
        largest = runtime.cudaFuncAttribute.cudaFuncAttributeMaxDynamicSharedMemorySize
        check(runtime.cudaFuncSetAttribute(int(kernel), largest, 1024))
        assert check(runtime.cudaFuncGetAttributes(int(kernel))).maxDynamicSharedSizeBytes == 1024
    assert runtime.cudaFuncGetAttributes(0)[0] == E.cudaErrorInvalidDeviceFunction


def test_driver_entry_points():
    found = runtime.cudaDriverEntryPointQueryResult
    address_of, status = check(runtime.cudaGetDriverEntryPoint(b"cuMemAlloc", 0))
    assert address_of and status == found.cudaDriverEntryPointSuccess
    address_of, status = check(runtime.cudaGetDriverEntryPointByVersion(b"cuMemAlloc", 12000, 0))
    assert address_of and status == found.cudaDriverEntryPointSuccess
    status = runtime.cudaGetDriverEntryPoint(b"cuNoSuchThing", 0)
    assert not status[1]


def test_threads_use_their_own_default_streams():
    out = in_a_process(
        """
import os
os.environ["CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"] = "1"
"""
        + """
import ctypes, threading, time
nap = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: time.sleep(0.4))
stream = runtime.cudaStreamCreateWithFlags(1)[1]
runtime.cudaFree(0)
runtime.cudaLaunchHostFunc(stream, ctypes.cast(nap, ctypes.c_void_p).value, 0)
print(int(runtime.cudaStreamQuery(0)[0]), int(runtime.cudaStreamQuery(stream)[0]))
runtime.cudaDeviceSynchronize()
"""
    )
    assert out == ["0", "600"]


@pytest.mark.cpu
def test_missing_features_return_an_error():
    assert runtime.cudaEventCreateFromEGLSync(0, 0)[0] == E.cudaErrorNotSupported
    assert runtime.cudaGetLastError() == (E.cudaErrorNotSupported,)


def test_two_devices():
    if not on_cpu_device() and check(driver.cuDeviceGetCount()) != 2:
        pytest.skip("needs two GPUs")
    out = in_a_process("""
import os
os.environ["CUPYRITE_CPU_DEVICES"] = "2"
import numpy as np
say = lambda *results: print(*(int(r[0]) for r in results))
print(runtime.cudaGetDeviceCount()[1], runtime.cudaGetDevice()[1])
p0 = runtime.cudaMalloc(64)[1]
say(runtime.cudaMemset(p0, 7, 64), runtime.cudaSetDevice(1))
print(runtime.cudaGetDevice()[1])
p1 = runtime.cudaMalloc(64)[1]
print(*(runtime.cudaPointerGetAttributes(p)[1].device for p in (p0, p1)))
print(runtime.cudaDeviceCanAccessPeer(0, 1)[1], runtime.cudaDeviceCanAccessPeer(0, 0)[1])
say(runtime.cudaMemcpyPeer(p1, 1, p0, 0, 64), runtime.cudaMemcpyPeer(p1, 1, p0, 2, 64))
host = np.zeros(64, np.uint8)
say(runtime.cudaMemcpy(host.ctypes.data, p1, 64, runtime.cudaMemcpyKind.cudaMemcpyDefault))
print(host.sum())
say(runtime.cudaDeviceEnablePeerAccess(0, 0), runtime.cudaDeviceEnablePeerAccess(0, 0), runtime.cudaDeviceEnablePeerAccess(1, 0))
say(runtime.cudaDeviceDisablePeerAccess(0), runtime.cudaDeviceDisablePeerAccess(0))
driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])
print(runtime.cudaGetDevice()[1])
say(runtime.cudaDeviceReset(), runtime.cudaSetDevice(1), runtime.cudaMemset(p1, 0, 64), runtime.cudaFree(p1), runtime.cudaFree(p0))
print(runtime.cudaStreamGetDevice(runtime.cudaStreamCreate()[1])[1])
""")
    assert " ".join(out) == "2 0 0 0 1 0 1 1 0 0 101 0 448 0 704 217 0 705 0 0 0 0 0 1 1"
