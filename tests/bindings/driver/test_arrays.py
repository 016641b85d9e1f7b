"""Arrays and mipmapped arrays: creation, descriptors, and every copy to and from them."""

import ctypes

import numpy as np
import pytest

from helpers.arrays import (
    CUBEMAP,
    FORMAT,
    FORMATS,
    GATHER,
    LAYERED,
    SURFACE,
    Array,
    array_descriptor,
    copy_3d,
    described,
)
from helpers.device import DeviceArray, check, driver, synchronize
from helpers.programs import python

pytestmark = pytest.mark.usefixtures("shared_context")
R = driver.CUresult
INVALID_VALUE = R.CUDA_ERROR_INVALID_VALUE
FLOAT = FORMAT.CU_AD_FORMAT_FLOAT


def attribute(name):
    full = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_MAXIMUM_{name}")
    return check(driver.cuDeviceGetAttribute(full, check(driver.cuDeviceGet(0))))


def numbers(shape, dtype):
    """An array in which neighbouring elements differ."""
    n = int(np.prod(shape))
    return (np.arange(n) * 7 % 113).astype(dtype).reshape(shape)


# ---- what can be made

SHAPES = {
    "1d": ((16, 0, 0), 0),
    "2d": ((16, 8, 0), 0),
    "3d": ((16, 8, 4), 0),
    "1d layered": ((16, 0, 4), LAYERED),
    "2d layered": ((16, 8, 4), LAYERED),
    "cubemap": ((8, 8, 6), CUBEMAP),
    "cubemap layered": ((8, 8, 12), CUBEMAP | LAYERED),
    "gather": ((16, 8, 0), GATHER),
    "surface": ((16, 8, 0), SURFACE),
}


@pytest.mark.parametrize("size, flags", SHAPES.values(), ids=SHAPES)
def test_array_reports_its_descriptor(size, flags):
    array = check(driver.cuArray3DCreate(array_descriptor(*size, FLOAT, 2, flags)))
    assert described(array) == (*size, FLOAT, 2, flags)
    flat = check(driver.cuArrayGetDescriptor(array))
    assert (flat.Width, flat.Height, flat.Format, flat.NumChannels) == (*size[:2], FLOAT, 2)
    check(driver.cuArrayDestroy(array))


def test_two_dimensional_descriptors():
    d = driver.CUDA_ARRAY_DESCRIPTOR()
    d.Width, d.Height, d.Format, d.NumChannels = 5, 3, FORMAT.CU_AD_FORMAT_SIGNED_INT16, 4
    array = check(driver.cuArrayCreate(d))
    assert described(array) == (5, 3, 0, FORMAT.CU_AD_FORMAT_SIGNED_INT16, 4, 0)
    check(driver.cuArrayDestroy(array))


@pytest.mark.parametrize(
    "size, flags",
    [
        ((0, 0, 0), 0),
        ((0, 4, 0), 0),
        ((8, 0, 2), 0),
        ((8, 0, 0), LAYERED),
        ((8, 4, 0), LAYERED),
        ((8, 4, 6), CUBEMAP),
        ((8, 8, 0), CUBEMAP),
        ((8, 8, 12), CUBEMAP),
        ((8, 8, 7), CUBEMAP | LAYERED),
        ((8, 0, 0), GATHER),
        ((8, 4, 2), GATHER),
        ((8, 4, 2), GATHER | LAYERED),
        ((8, 4, 0), 0x10),
        ((8, 4, 0), 0x20),
        ((8, 4, 0), 0x200),
    ],
)
def test_extents_that_contradict_the_flags_are_refused(size, flags):
    assert driver.cuArray3DCreate(array_descriptor(*size, FLOAT, 1, flags)) == (INVALID_VALUE, None)


LIMITS = {
    "TEXTURE1D_WIDTH": lambda n: ((n, 0, 0), 0),
    "TEXTURE2D_WIDTH": lambda n: ((n, 1, 0), 0),
    "TEXTURE2D_HEIGHT": lambda n: ((1, n, 0), 0),
    "TEXTURE3D_WIDTH": lambda n: ((n, 1, 1), 0),
    "TEXTURE1D_LAYERED_WIDTH": lambda n: ((n, 0, 1), LAYERED),
    "TEXTURE1D_LAYERED_LAYERS": lambda n: ((1, 0, n), LAYERED),
    "TEXTURE2D_LAYERED_WIDTH": lambda n: ((n, 1, 1), LAYERED),
    "TEXTURE2D_LAYERED_HEIGHT": lambda n: ((1, n, 1), LAYERED),
    "TEXTURE2D_LAYERED_LAYERS": lambda n: ((1, 1, n), LAYERED),
    "TEXTURE2D_GATHER_WIDTH": lambda n: ((n, 1, 0), GATHER),
    "SURFACE1D_WIDTH": lambda n: ((n, 0, 0), SURFACE),
    "SURFACE2D_HEIGHT": lambda n: ((1, n, 0), SURFACE),
}


@pytest.mark.parametrize("name", LIMITS)
def test_device_limits_of_array_sizes(name):
    most = attribute(name)
    for n, works in ((most, True), (most + 1, False)):
        size, flags = LIMITS[name](n)
        status, array = driver.cuArray3DCreate(array_descriptor(*size, FORMAT.CU_AD_FORMAT_UNSIGNED_INT8, 1, flags))
        assert status == (R.CUDA_SUCCESS if works else INVALID_VALUE), n
        if works:
            check(driver.cuArrayDestroy(array))


def test_formats_and_channels():
    works = {(f, n) for f in FORMATS.values() for n in (1, 2, 4)}
    works |= {
        (getattr(FORMAT, f"CU_AD_FORMAT_{s}NORM_INT{b}X{n}"), n) for s in "US" for b in (8, 16) for n in (1, 2, 4)
    }
    works |= {
        (FORMAT.CU_AD_FORMAT_BC1_UNORM, 4),
        (FORMAT.CU_AD_FORMAT_BC4_SNORM, 1),
        (FORMAT.CU_AD_FORMAT_BC5_UNORM, 2),
    }
    formats = {f for f, _ in works}
    for f in formats:
        for n in (0, 1, 2, 3, 4, 5):
            status, array = driver.cuArray3DCreate(array_descriptor(64, 32, 0, f, n))
            assert status == (R.CUDA_SUCCESS if (f, n) in works else INVALID_VALUE), (f, n)
            if array is not None:
                assert described(array) == (64, 32, 0, f, n, 0)
                check(driver.cuArrayDestroy(array))
    # Block-compressed arrays are two-dimensional and cannot be written texel by texel.
    assert driver.cuArray3DCreate(array_descriptor(64, 0, 0, FORMAT.CU_AD_FORMAT_BC4_SNORM, 1))[0] == INVALID_VALUE
    stored = array_descriptor(64, 64, 0, FORMAT.CU_AD_FORMAT_BC4_SNORM, 1, SURFACE)
    assert driver.cuArray3DCreate(stored)[0] == R.CUDA_ERROR_NOT_SUPPORTED


ACCOUNT = """
from helpers.arrays import FORMAT, array_descriptor
from helpers.device import check, driver
check(driver.cuInit(0))
check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(check(driver.cuDeviceGet(0))))))
def free():
    return check(driver.cuMemGetInfo())[0]
before = free()
array = check(driver.cuArray3DCreate(array_descriptor(4096, 4096, 0, FORMAT.CU_AD_FORMAT_FLOAT, 1)))
during = free()
check(driver.cuArrayDestroy(array))
print(before - during, before - free())
"""


@pytest.mark.cpu
def test_array_memory_is_accounted_and_freed():
    # Not on a GPU: other processes allocate and free memory meanwhile. Less memory than the host has: what is free there is a
    # bound as well.
    done = python(ACCOUNT, environment={"CUPYRITE_CPU_MEMORY": str(1 << 30)})
    taken, kept = map(int, done.stdout.split())
    assert taken >= 64 << 20 and kept <= 1 << 20


def test_too_large_arrays_are_refused():
    huge = array_descriptor(16384, 16384, 16384, FLOAT, 4)
    assert driver.cuArray3DCreate(huge)[0] in (R.CUDA_ERROR_OUT_OF_MEMORY, INVALID_VALUE)


def test_null_handles_are_refused():
    for call in (driver.cuArrayDestroy, driver.cuArray3DGetDescriptor, driver.cuArrayGetDescriptor):
        assert call(driver.CUarray(0))[0] == R.CUDA_ERROR_INVALID_HANDLE
    assert driver.cuMipmappedArrayDestroy(driver.CUmipmappedArray(0))[0] == R.CUDA_ERROR_INVALID_HANDLE
    assert driver.cuMipmappedArrayGetLevel(driver.CUmipmappedArray(0), 0)[0] == R.CUDA_ERROR_INVALID_HANDLE


@pytest.mark.cpu
def test_destroyed_and_foreign_handles_are_detected():
    array = check(driver.cuArray3DCreate(array_descriptor(4)))
    check(driver.cuArrayDestroy(array))
    stream = check(driver.cuStreamCreate(0))
    for bad in (int(array), 1, 0xDEADBEEF, (1 << 64) - 1, int(stream)):
        handle = driver.CUarray(bad)
        assert driver.cuArrayDestroy(handle)[0] == R.CUDA_ERROR_INVALID_HANDLE
        assert driver.cuArray3DGetDescriptor(handle)[0] == R.CUDA_ERROR_INVALID_HANDLE
        assert driver.cuMemcpyHtoA(handle, 0, bytes(4), 4)[0] == INVALID_VALUE
        assert copy_3d(handle, handle, (4, 1, 1))[0] == INVALID_VALUE
    check(driver.cuStreamDestroy(stream))


def test_plain_arrays_have_no_planes_tiles_or_deferred_memory():
    array = check(driver.cuArray3DCreate(array_descriptor(16, 8)))
    device = check(driver.cuDeviceGet(0))
    assert driver.cuArrayGetPlane(array, 0)[0] == INVALID_VALUE
    assert driver.cuArrayGetSparseProperties(array)[0] == INVALID_VALUE
    assert driver.cuArrayGetMemoryRequirements(array, device)[0] == INVALID_VALUE
    check(driver.cuArrayDestroy(array))


# ---- mipmapped arrays


@pytest.mark.parametrize(
    "size, flags, levels",
    [
        ((16, 8, 0), 0, [(16, 8, 0), (8, 4, 0), (4, 2, 0), (2, 1, 0), (1, 1, 0)]),
        ((5, 0, 0), 0, [(5, 0, 0), (2, 0, 0), (1, 0, 0)]),
        ((8, 4, 16), 0, [(8, 4, 16), (4, 2, 8), (2, 1, 4), (1, 1, 2), (1, 1, 1)]),
        ((4, 2, 3), LAYERED, [(4, 2, 3), (2, 1, 3), (1, 1, 3)]),
        ((4, 4, 6), CUBEMAP, [(4, 4, 6), (2, 2, 6), (1, 1, 6)]),
        ((4, 0, 5), LAYERED, [(4, 0, 5), (2, 0, 5), (1, 0, 5)]),
    ],
)
def test_mipmap_level_counts(size, flags, levels):
    # Counts beyond the maximum are clamped to it; zero means one level.
    for requested in (0, 1, len(levels), 20):
        mipmapped = check(driver.cuMipmappedArrayCreate(array_descriptor(*size, FLOAT, 1, flags), requested))
        made = levels[: max(1, requested)]
        for n, level in enumerate(made):
            array = check(driver.cuMipmappedArrayGetLevel(mipmapped, n))
            assert described(array) == (*level, FLOAT, 1, flags)
        assert driver.cuMipmappedArrayGetLevel(mipmapped, len(made)) == (INVALID_VALUE, None)
        check(driver.cuMipmappedArrayDestroy(mipmapped))


def test_each_level_is_an_array_with_its_own_data():
    mipmapped = check(driver.cuMipmappedArrayCreate(array_descriptor(8, 4), 4))
    arrays = [check(driver.cuMipmappedArrayGetLevel(mipmapped, n)) for n in range(4)]
    assert int(arrays[1]) == int(check(driver.cuMipmappedArrayGetLevel(mipmapped, 1)))
    sizes = [(8, 4), (4, 2), (2, 1), (1, 1)]
    data = [numbers((h, w), np.float32) + 1000 * n for n, (w, h) in enumerate(sizes)]
    for array, values in zip(arrays, data):
        check(copy_3d((values.ctypes.data, values.shape[1] * 4, 0), array, (values.shape[1] * 4, values.shape[0], 1)))
    for array, values in zip(arrays, data):
        back = np.empty_like(values)
        check(copy_3d(array, (back.ctypes.data, values.shape[1] * 4, 0), (values.shape[1] * 4, values.shape[0], 1)))
        np.testing.assert_array_equal(back, values)
    check(driver.cuMipmappedArrayDestroy(mipmapped))


# ---- copies

DATA = {
    "1d": ((16, 1), 0),
    "2d": ((8, 16, 1), 0),
    "2d of four": ((8, 16, 4), 0),
    "3d": ((4, 8, 16, 2), 0),
    "1d layered": ((5, 16, 1), LAYERED),
    "2d layered": ((3, 8, 16, 1), LAYERED),
    "cubemap": ((6, 8, 8, 1), CUBEMAP),
    "cubemap layered": ((12, 4, 4, 1), CUBEMAP | LAYERED),
}


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.float32], ids=lambda t: t.__name__)
@pytest.mark.parametrize("shape, flags", DATA.values(), ids=DATA)
def test_copies_round_trip(shape, flags, dtype):
    array = Array(numbers(shape, dtype), flags=flags)
    np.testing.assert_array_equal(array.get(), array.data)
    array.destroy()


@pytest.mark.parametrize("shape, flags", DATA.values(), ids=DATA)
def test_3d_copies_between_any_offsets(shape, flags):
    """Host to array, array to array, array to host."""
    rng = np.random.default_rng(len(shape) + flags)
    first, second = (Array(numbers(shape, np.float32) + n, flags=flags) for n in (0, 500))
    # Slices of rows of elements describe every kind of array.
    slices, rows = {2: (1, 1), 3: (1, shape[0]), 4: (shape[0], shape[1])}[len(shape)]
    if flags == LAYERED and len(shape) == 3:
        slices, rows = shape[0], 1
    full = (slices, rows, shape[-2], shape[-1])
    element = first.element
    model = [a.data.reshape(full).copy() for a in (first, second)]
    for _ in range(20):
        at, there, size = [], [], []
        for n in full[:3]:
            length = int(rng.integers(1, n + 1))
            size.append(length)
            at.append(int(rng.integers(0, n - length + 1)))
            there.append(int(rng.integers(0, n - length + 1)))
        extent = (size[2] * element, size[1], size[0])
        place = lambda p: (p[2] * element, p[1], p[0])  # noqa: E731
        window = lambda p: tuple(slice(i, i + n) for i, n in zip(p, size))  # noqa: E731
        fresh = rng.random((*size, full[3]), dtype=np.float32)
        check(copy_3d((fresh.ctypes.data, extent[0], extent[1]), first.handle, extent, target_at=place(at)))
        model[0][window(at)] = fresh
        check(copy_3d(first.handle, second.handle, extent, place(at), place(there)))
        model[1][window(there)] = fresh
        back = np.empty_like(fresh)
        check(copy_3d(second.handle, (back.ctypes.data, extent[0], extent[1]), extent, place(there)))
        np.testing.assert_array_equal(back, fresh)
    for array, expected in zip((first, second), model):
        np.testing.assert_array_equal(array.get().reshape(full), expected)
        array.destroy()


def copy_2d(source, target, width, height, call=driver.cuMemcpy2D, **fields):
    """A 2-D copy; each end is an array's handle, a host address as (address,) or a device pointer."""
    c = driver.CUDA_MEMCPY2D()
    for prefix, end in (("src", source), ("dst", target)):
        if isinstance(end, tuple):
            kind, name, end = "HOST", "Host", end[0]
        elif isinstance(end, driver.CUarray):
            kind, name = "ARRAY", "Array"
        else:
            kind, name = "DEVICE", "Device"
        setattr(c, f"{prefix}MemoryType", getattr(driver.CUmemorytype, f"CU_MEMORYTYPE_{kind}"))
        setattr(c, f"{prefix}{name}", end)
    c.WidthInBytes, c.Height = width, height
    for name, value in fields.items():
        setattr(c, name, value)
    return call(c)


def test_two_dimensional_copies():
    data = numbers((8, 16, 1), np.float32)
    array = Array(data)
    device = DeviceArray(np.zeros((8, 32), np.float32))
    # With a pitch, between offsets.
    check(copy_2d(array.handle, device.pointer, 40, 5, srcXInBytes=8, srcY=2, dstXInBytes=4, dstY=1, dstPitch=128))
    want = np.zeros((8, 32), np.float32)
    want[1:6, 1:11] = data[2:7, 2:12, 0]
    np.testing.assert_array_equal(device.get(), want)
    check(copy_2d(device.pointer, array.handle, 64, 3, srcPitch=128, dstY=5, call=driver.cuMemcpy2DUnaligned))
    data[5:8, :, 0] = want[:3, :16]
    np.testing.assert_array_equal(array.get(), data)
    # Widths and offsets count bytes, whatever the element size.
    host = np.arange(64, dtype=np.uint8)
    check(copy_2d((host.ctypes.data,), array.handle, 3, 1, dstXInBytes=5))
    data.view(np.uint8).reshape(8, 64)[0, 5:8] = host[:3]
    np.testing.assert_array_equal(array.get().view(np.uint8), data.view(np.uint8))
    array.destroy()
    device.free()


def test_one_dimensional_copies():
    array, other = Array(numbers((16, 1), np.float32)), Array(numbers((32, 1), np.uint8))
    device = DeviceArray(np.arange(16, dtype=np.float32))
    host = np.zeros(16, np.float32)
    check(driver.cuMemcpyAtoH(host.ctypes.data, array.handle, 8, 40))
    np.testing.assert_array_equal(host[:10], array.data[2:12, 0])
    check(driver.cuMemcpyDtoA(array.handle, 4, device.pointer, 32))
    check(driver.cuMemcpyAtoD(device.address + 32, array.handle, 0, 16))
    expected = array.data[:, 0].copy()
    expected[1:9] = np.arange(8)
    np.testing.assert_array_equal(array.get()[:, 0], expected)
    np.testing.assert_array_equal(device.get()[8:12], expected[:4])
    stream = check(driver.cuStreamCreate(0))
    fresh = np.arange(100, 116, dtype=np.float32)
    check(driver.cuMemcpyHtoAAsync(array.handle, 0, fresh.ctypes.data, 64, stream))
    check(driver.cuMemcpyAtoHAsync(host.ctypes.data, array.handle, 0, 64, stream))
    check(driver.cuStreamSynchronize(stream))
    np.testing.assert_array_equal(host, fresh)
    # Between arrays of different formats the copy counts bytes.
    check(driver.cuMemcpyAtoA(other.handle, 8, array.handle, 4, 16))
    synchronize()
    np.testing.assert_array_equal(other.get()[8:24, 0], fresh[1:5].view(np.uint8))
    check(driver.cuStreamDestroy(stream))
    for a in (array, other):
        a.destroy()
    device.free()


@pytest.mark.parametrize("shape, flags", DATA.values(), ids=DATA)
def test_one_dimensional_copies_stay_within_one_row(shape, flags):
    array = Array(numbers(shape, np.float32), flags=flags)
    row = array.size[0] * array.element
    buffer = np.zeros(4 * row, np.uint8)
    check(driver.cuMemcpyAtoH(buffer.ctypes.data, array.handle, 0, row))
    np.testing.assert_array_equal(buffer[:row], array.data.view(np.uint8).reshape(-1)[:row])
    for offset, count in ((0, row + 4), (4, row), (row, 4), (1 << 40, 4), (0, 1 << 40), ((1 << 64) - 4, 8)):
        assert driver.cuMemcpyAtoH(buffer.ctypes.data, array.handle, offset, count)[0] == INVALID_VALUE
        assert driver.cuMemcpyHtoA(array.handle, offset, buffer.ctypes.data, count)[0] == INVALID_VALUE
        assert driver.cuMemcpyAtoA(array.handle, 0, array.handle, offset, count)[0] == INVALID_VALUE
    array.destroy()


@pytest.mark.parametrize("shape, flags", DATA.values(), ids=DATA)
def test_copies_beyond_the_array_are_refused(shape, flags):
    array = Array(numbers(shape, np.float32), flags=flags)
    element = array.element
    width = array.size[0] * element
    slices = array.size[2] or 1
    rows = array.size[1] or 1
    host = np.zeros(1 << 16, np.uint8)
    end = (host.ctypes.data, 0, 0)
    for at, extent in [
        ((0, 0, 0), (width + element, 1, 1)),
        ((0, 0, 0), (element, rows + 1, 1)),
        ((0, 0, 0), (element, 1, slices + 1)),
        ((width, 0, 0), (element, 1, 1)),
        ((0, rows, 0), (element, 1, 1)),
        ((0, 0, slices), (element, 1, 1)),
        (((1 << 64) - element, 0, 0), (element, 1, 1)),
        ((0, (1 << 64) - 1, 0), (element, 1, 1)),
        ((0, 0, (1 << 64) - 1), (element, 1, 1)),
    ]:
        assert copy_3d(end, array.handle, extent, target_at=at)[0] == INVALID_VALUE, (at, extent)
        assert copy_3d(array.handle, end, extent, source_at=at)[0] == INVALID_VALUE, (at, extent)
    np.testing.assert_array_equal(array.get(), array.data)
    # An empty copy succeeds for any position.
    for extent in ((0, 1, 1), (element, 0, 1), (element, 1, 0)):
        check(copy_3d(end, array.handle, extent))
    array.destroy()


def test_invalid_copy_descriptors_are_refused():
    array = Array(numbers((4, 8, 16, 1), np.float32))
    flat = Array(numbers((8, 16, 1), np.float32))
    host = np.zeros(4096, np.uint8)
    address = host.ctypes.data
    status = {
        "a pitch below the row": copy_2d((address,), flat.handle, 32, 2, srcPitch=16),
        "slices lower than their rows": copy_3d((address, 32, 2), array.handle, (32, 4, 2)),
        "slices lower than their rows, one slice": copy_3d((address, 32, 2), array.handle, (32, 4, 1)),
        "a null address": copy_2d((0,), flat.handle, 32, 2, srcPitch=32),
        "a null array": copy_2d((address,), driver.CUarray(0), 32, 2, srcPitch=32),
    }
    assert {k: v[0] for k, v in status.items()} == dict.fromkeys(status, INVALID_VALUE)
    # Host memory may have any pitch.
    check(copy_2d((address,), flat.handle, 32, 1, srcPitch=1 << 40))
    # The level of detail is checked even where it does not apply.
    for level, status in (("srcLOD", R.CUDA_SUCCESS), ("dstLOD", INVALID_VALUE)):
        c = driver.CUDA_MEMCPY3D()
        c.srcMemoryType, c.srcHost = driver.CUmemorytype.CU_MEMORYTYPE_HOST, address
        c.dstMemoryType, c.dstArray = driver.CUmemorytype.CU_MEMORYTYPE_ARRAY, array.handle
        c.WidthInBytes, c.Height, c.Depth = 4, 1, 1
        setattr(c, level, 1)
        assert driver.cuMemcpy3D(c)[0] == status
    for a in (array, flat):
        a.destroy()


def test_copies_in_a_stream_and_between_contexts():
    data = numbers((4, 8, 16, 1), np.float32)
    array, other = Array(np.zeros_like(data)), Array(np.zeros_like(data))
    stream = check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING.value))
    pinned = check(driver.cuMemAllocHost(data.nbytes))
    ctypes.memmove(int(pinned), data.ctypes.data, data.nbytes)
    check(copy_3d((int(pinned), 64, 8), array.handle, (64, 8, 4), stream=stream))
    check(copy_3d(array.handle, other.handle, (64, 8, 4), stream=stream))
    check(driver.cuStreamSynchronize(stream))
    np.testing.assert_array_equal(other.get(), data)
    context = check(driver.cuCtxGetCurrent())
    peer = driver.CUDA_MEMCPY3D_PEER()
    peer.srcMemoryType = peer.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_ARRAY
    peer.srcArray, peer.dstArray = array.handle, other.handle
    peer.srcContext = peer.dstContext = context
    peer.srcZ, peer.dstZ = 3, 1
    peer.WidthInBytes, peer.Height, peer.Depth = 64, 8, 1
    check(driver.cuMemcpy3DPeer(peer))
    synchronize()
    np.testing.assert_array_equal(other.get()[1], data[3])
    peer.srcZ = 2
    check(driver.cuMemcpy3DPeerAsync(peer, stream))
    check(driver.cuStreamSynchronize(stream))
    np.testing.assert_array_equal(other.get()[1], data[2])
    check(driver.cuStreamDestroy(stream))
    check(driver.cuMemFreeHost(pinned))
    for a in (array, other):
        a.destroy()
