"""Sparse arrays and arrays with deferred mapping: properties, mapping by tile, mip tail and as a whole."""

import numpy as np
import pytest

from helpers.arrays import FORMAT, LAYERED, SURFACE, array_descriptor, copy_3d
from helpers.device import check, driver, synchronize

pytestmark = pytest.mark.usefixtures("shared_context")
R = driver.CUresult
INVALID_VALUE = R.CUDA_ERROR_INVALID_VALUE
SPARSE, DEFERRED = 0x40, 0x80
TILE, POOL = 64 << 10, 2 << 20
ARRAY, MIPMAPPED = driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY, driver.CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
LEVEL, TAIL = (
    driver.CUarraySparseSubresourceType.CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL,
    driver.CUarraySparseSubresourceType.CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL,
)


@pytest.fixture
def pool():
    p = driver.CUmemAllocationProp()
    p.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    p.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    p.allocFlags.usage = driver.CU_MEM_CREATE_USAGE_TILE_POOL
    handle = check(driver.cuMemCreate(POOL, p, 0))
    yield handle
    check(driver.cuMemRelease(handle))


@pytest.fixture
def stream():
    made = check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    yield made
    check(driver.cuStreamDestroy(made))


def create(*size, flags, format=FORMAT.CU_AD_FORMAT_FLOAT, channels=1):
    return check(driver.cuArray3DCreate(array_descriptor(*size, format=format, channels=channels, flags=flags)))


def operation(kind, resource, memory=None, offset=0):
    info = driver.CUarrayMapInfo()
    info.resourceType = kind
    if kind == ARRAY:
        info.resource.array = resource
    else:
        info.resource.mipmap = resource
    info.deviceBitMask = 1
    info.memHandleType = driver.CUmemHandleType.CU_MEM_HANDLE_TYPE_GENERIC
    names = driver.CUmemOperationType
    info.memOperationType = names.CU_MEM_OPERATION_TYPE_UNMAP if memory is None else names.CU_MEM_OPERATION_TYPE_MAP
    if memory is not None:
        info.memHandle.memHandle = memory
        info.offset = offset
    return info


def tiles(resource, at, extent, memory=None, offset=0, level=0, layer=0, kind=ARRAY):
    info = operation(kind, resource, memory, offset)
    info.subresourceType = LEVEL
    s = info.subresource.sparseLevel
    s.level, s.layer = level, layer
    s.offsetX, s.offsetY, s.offsetZ = at
    s.extentWidth, s.extentHeight, s.extentDepth = extent
    return info


def tail(resource, offset_in_tail, size, memory=None, offset=0, layer=0):
    info = operation(MIPMAPPED, resource, memory, offset)
    info.subresourceType = TAIL
    s = info.subresource.miptail
    s.layer, s.offset, s.size = layer, offset_in_tail, size
    return info


def change(stream, *infos):
    return driver.cuMemMapArrayAsync(list(infos), len(infos), stream)[0]


def write(array, data):
    height, width = data.shape
    check(copy_3d((data.ctypes.data, 4 * width, height), array, (4 * width, height, 1)))


def read(array, width, height):
    data = np.full((height, width), -1, np.float32)
    check(copy_3d(array, (data.ctypes.data, 4 * width, height), (4 * width, height, 1)))
    return data


TILES = {
    1: ((256, 256, 1), (64, 32, 32)),
    2: ((256, 128, 1), (32, 32, 32)),
    4: ((128, 128, 1), (32, 32, 16)),
    8: ((128, 64, 1), (32, 16, 16)),
    16: ((64, 64, 1), (16, 16, 16)),
}


@pytest.mark.parametrize(
    "format, channels, size",
    [
        (FORMAT.CU_AD_FORMAT_UNSIGNED_INT8, 1, 1),
        (FORMAT.CU_AD_FORMAT_HALF, 1, 2),
        (FORMAT.CU_AD_FORMAT_UNSIGNED_INT8, 4, 4),
        (FORMAT.CU_AD_FORMAT_FLOAT, 2, 8),
        (FORMAT.CU_AD_FORMAT_FLOAT, 4, 16),
    ],
)
def test_tiles_have_the_extent_of_their_format(format, channels, size):
    for extent, want in zip(((1024, 1024, 0), (256, 256, 64)), TILES[size], strict=True):
        array = create(*extent, flags=SPARSE, format=format, channels=channels)
        p = check(driver.cuArrayGetSparseProperties(array))
        found = p.tileExtent.width, p.tileExtent.height, p.tileExtent.depth
        assert (found, p.miptailFirstLevel, p.miptailSize, p.flags) == (want, 0, 0, 0)
        check(driver.cuArrayDestroy(array))


@pytest.mark.parametrize(
    "size, flags, levels, want",
    [
        ((1024, 1024, 0), 0, 11, (4, TILE, 0)),
        ((1000, 700, 0), 0, 10, (3, 2 * TILE, 0)),
        ((256, 256, 64), 0, 9, (3, TILE, 0)),
        ((1024, 1024, 0), 0, 2, (2, 0, 0)),
        ((64, 64, 0), 0, 7, (0, TILE, 1)),
        ((64, 64, 3), LAYERED, 7, (0, 2 * TILE, 1)),
    ],
)
def test_mip_tail(size, flags, levels, want):
    array = check(driver.cuMipmappedArrayCreate(array_descriptor(*size, flags=flags | SPARSE), levels))
    p = check(driver.cuMipmappedArrayGetSparseProperties(array))
    assert (p.miptailFirstLevel, p.miptailSize, p.flags) == want
    check(driver.cuMipmappedArrayDestroy(array))


def test_tiles_are_mapped_and_unmapped(pool, stream):
    array = create(512, 128, flags=SPARSE)
    data = np.arange(512 * 128, dtype=np.float32).reshape(128, 512) + 1
    write(array, data)
    assert not read(array, 512, 128).any()
    one = (128, 128, 1)
    mapped = tiles(array, (0, 0, 0), one, pool), tiles(array, (256, 0, 0), one, pool, TILE)
    assert change(stream, *mapped) == R.CUDA_SUCCESS
    synchronize()
    write(array, data)
    want = data.copy()
    want[:, 128:256] = want[:, 384:] = 0
    assert np.array_equal(read(array, 512, 128), want)
    # The same memory in two tiles.
    assert change(stream, tiles(array, (384, 0, 0), one, pool)) == R.CUDA_SUCCESS
    assert change(stream, tiles(array, (256, 0, 0), one)) == R.CUDA_SUCCESS
    synchronize()
    want[:, 384:] = want[:, :128]
    want[:, 256:384] = 0
    assert np.array_equal(read(array, 512, 128), want)
    check(driver.cuArrayDestroy(array))


def test_levels_are_mapped_by_tile_and_tail(pool, stream):
    array = check(driver.cuMipmappedArrayCreate(array_descriptor(256, 256, flags=SPARSE), 9))
    levels = [check(driver.cuMipmappedArrayGetLevel(array, n)) for n in range(4)]
    one = (128, 128, 1)
    assert (
        change(
            stream,
            tiles(array, (128, 0, 0), one, pool, level=0, kind=MIPMAPPED),
            tiles(array, (0, 0, 0), one, pool, TILE, level=1, kind=MIPMAPPED),
        )
        == R.CUDA_SUCCESS
    )
    # In a call of its own: driver 580 does not map a mip tail that follows levels in one list.
    assert change(stream, tail(array, 0, TILE, pool, 2 * TILE)) == R.CUDA_SUCCESS
    synchronize()
    for n, level in enumerate(levels):
        side = 256 >> n
        data = np.full((side, side), n + 1, np.float32)
        write(level, data)
        if n == 0:
            data[128:] = data[:, :128] = 0
        assert np.array_equal(read(level, side, side), data)
    assert change(stream, tiles(levels[0], (0, 0, 0), one, pool)) == INVALID_VALUE
    assert change(stream, tiles(array, (0, 0, 0), one, pool, level=2, kind=MIPMAPPED)) == INVALID_VALUE
    for offset, size, layer in ((TILE, TILE, 0), (1, TILE, 0), (0, 1, 0), (0, 0, 0), (0, TILE, 1)):
        assert change(stream, tail(array, offset, size, pool, layer=layer)) == INVALID_VALUE
    check(driver.cuMipmappedArrayDestroy(array))


def test_the_last_tile_ends_with_the_array(pool, stream):
    array = create(1000, 700, flags=SPARSE)
    assert change(stream, tiles(array, (896, 640, 0), (104, 60, 1), pool)) == R.CUDA_SUCCESS
    assert change(stream, tiles(array, (896, 640, 0), (128, 128, 1), pool)) == INVALID_VALUE
    assert change(stream, tiles(array, (0, 0, 0), (1000, 700, 1))) == R.CUDA_SUCCESS
    synchronize()
    check(driver.cuArrayDestroy(array))


@pytest.mark.parametrize(
    "size, flags, want",
    [
        ((1024, 0, 0), 0, TILE),
        ((1024, 1024, 0), SURFACE, 4 << 20),
        ((100, 100, 3), LAYERED, 3 * TILE),
        ((64, 64, 64), 0, 1 << 20),
    ],
)
def test_deferred_arrays_require_memory(size, flags, want):
    array = create(*size, flags=flags | DEFERRED)
    r = check(driver.cuArrayGetMemoryRequirements(array, check(driver.cuDeviceGet(0))))
    assert (r.size, r.alignment) == (want, TILE)
    assert driver.cuArrayGetSparseProperties(array)[0] == INVALID_VALUE
    check(driver.cuArrayDestroy(array))


def test_deferred_array_is_mapped_as_a_whole(pool, stream):
    array = create(256, 256, flags=DEFERRED)
    data = np.arange(65536, dtype=np.float32).reshape(256, 256)
    assert change(stream, operation(ARRAY, array, pool, POOL)) == INVALID_VALUE
    assert change(stream, operation(ARRAY, array, pool, 1)) == INVALID_VALUE
    assert change(stream, operation(ARRAY, array, pool, TILE)) == R.CUDA_SUCCESS
    synchronize()
    write(array, data)
    assert np.array_equal(read(array, 256, 256), data)
    assert change(stream, operation(ARRAY, array)) == R.CUDA_SUCCESS
    assert change(stream, operation(ARRAY, array, pool, TILE)) == R.CUDA_SUCCESS
    synchronize()
    assert np.array_equal(read(array, 256, 256), data)
    check(driver.cuArrayDestroy(array))


def test_only_memory_for_tiles_is_mapped(pool, stream):
    plain = driver.CUmemAllocationProp()
    plain.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    plain.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    other = check(driver.cuMemCreate(POOL, plain, 0))
    array = create(512, 128, flags=SPARSE)
    assert change(stream, tiles(array, (0, 0, 0), (128, 128, 1), other)) == INVALID_VALUE
    address = check(driver.cuMemAddressReserve(POOL, 0, 0, 0))
    assert driver.cuMemMap(address, POOL, 0, pool, 0)[0] == INVALID_VALUE
    check(driver.cuMemAddressFree(address, POOL))
    check(driver.cuMemRelease(other))
    check(driver.cuArrayDestroy(array))


@pytest.mark.parametrize(
    "size, flags", [((512, 0, 0), SPARSE), ((512, 512, 0), SPARSE | SURFACE), ((512, 512, 0), SPARSE | DEFERRED)]
)
def test_invalid_arrays_are_refused(size, flags):
    assert driver.cuArray3DCreate(array_descriptor(*size, flags=flags))[0] == INVALID_VALUE
