"""Stream-ordered allocation: pools, their attributes, reuse, thresholds, access."""

import ctypes

import numpy as np
import pytest
from cuda.bindings import driver

from helpers.device import Module, check, on_cpu_device

ATTRIBUTE = driver.CUmemPool_attribute
SIZE = 1 << 20


def properties(location=driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, number=0, most=0):
    props = driver.CUmemPoolProps()
    props.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    props.location.type = location
    props.location.id = number
    props.maxSize = most
    return props


def attribute(pool, name):
    return int(check(driver.cuMemPoolGetAttribute(pool, getattr(ATTRIBUTE, f"CU_MEMPOOL_ATTR_{name}"))))


def set_attribute(pool, name, value, kind=driver.cuuint64_t):
    check(driver.cuMemPoolSetAttribute(pool, getattr(ATTRIBUTE, f"CU_MEMPOOL_ATTR_{name}"), kind(value)))


@pytest.fixture
def pool(context):
    made = check(driver.cuMemPoolCreate(properties()))
    yield made
    driver.cuMemPoolDestroy(made)


@pytest.fixture
def stream(context):
    return check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))


def test_pool_memory_works_and_is_counted(pool, stream):
    before = attribute(pool, "USED_MEM_CURRENT")
    assert before == 0
    pointer = check(driver.cuMemAllocFromPoolAsync(SIZE, pool, stream))
    assert attribute(pool, "USED_MEM_CURRENT") >= SIZE
    assert attribute(pool, "RESERVED_MEM_CURRENT") >= attribute(pool, "USED_MEM_CURRENT")
    check(driver.cuMemsetD32Async(pointer, 0x01020304, SIZE // 4, stream))
    out = np.zeros(SIZE // 4, np.uint32)
    check(driver.cuMemcpyDtoHAsync(out.ctypes.data, pointer, SIZE, stream))
    check(driver.cuMemFreeAsync(pointer, stream))
    check(driver.cuStreamSynchronize(stream))
    assert (out == 0x01020304).all()
    assert attribute(pool, "USED_MEM_CURRENT") == 0
    assert attribute(pool, "USED_MEM_HIGH") >= SIZE
    set_attribute(pool, "USED_MEM_HIGH", 0)
    assert attribute(pool, "USED_MEM_HIGH") == 0
    (status,) = driver.cuMemPoolSetAttribute(pool, ATTRIBUTE.CU_MEMPOOL_ATTR_USED_MEM_HIGH, driver.cuuint64_t(5))
    assert status == driver.CUresult.CUDA_ERROR_INVALID_VALUE


def test_pool_reuses_memory_below_its_threshold(pool, stream):
    set_attribute(pool, "RELEASE_THRESHOLD", 2**64 - 1)
    first = check(driver.cuMemAllocFromPoolAsync(SIZE, pool, stream))
    check(driver.cuMemFreeAsync(first, stream))
    check(driver.cuStreamSynchronize(stream))
    reserved = attribute(pool, "RESERVED_MEM_CURRENT")
    assert reserved >= SIZE
    second = check(driver.cuMemAllocFromPoolAsync(SIZE, pool, stream))
    assert int(second) == int(first)
    assert attribute(pool, "RESERVED_MEM_CURRENT") == reserved
    check(driver.cuMemFreeAsync(second, stream))
    check(driver.cuStreamSynchronize(stream))
    check(driver.cuMemPoolTrimTo(pool, 0))
    assert attribute(pool, "RESERVED_MEM_CURRENT") == 0
    assert attribute(pool, "RESERVED_MEM_HIGH") >= reserved


def test_pool_without_threshold_releases_on_synchronization(pool, stream):
    assert attribute(pool, "RELEASE_THRESHOLD") == 0
    pointer = check(driver.cuMemAllocFromPoolAsync(SIZE, pool, stream))
    check(driver.cuMemFreeAsync(pointer, stream))
    check(driver.cuStreamSynchronize(stream))
    assert attribute(pool, "RESERVED_MEM_CURRENT") == 0


def test_default_and_current_pools(context, pool, stream):
    device = check(driver.cuDeviceGet(0))
    default = check(driver.cuDeviceGetDefaultMemPool(device))
    assert int(check(driver.cuDeviceGetMemPool(device))) == int(default)
    assert driver.cuMemPoolDestroy(default)[0] != driver.CUresult.CUDA_SUCCESS
    check(driver.cuDeviceSetMemPool(device, pool))
    try:
        pointer = check(driver.cuMemAllocAsync(SIZE, stream))
        found = check(
            driver.cuPointerGetAttribute(driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, pointer)
        )
        assert int(found) == int(pool)
        assert attribute(pool, "USED_MEM_CURRENT") >= SIZE
        # Freeing without a stream is allowed.
        check(driver.cuMemFree(pointer))
        # A GPU's driver counts it until later.
        if on_cpu_device():
            assert attribute(pool, "USED_MEM_CURRENT") == 0
    finally:
        check(driver.cuDeviceSetMemPool(device, default))
    assert int(check(driver.cuDeviceGetMemPool(device))) == int(default)


def test_destroyed_pool_outlives_its_allocations(context, stream):
    made = check(driver.cuMemPoolCreate(properties()))
    device = check(driver.cuDeviceGet(0))
    default = check(driver.cuDeviceGetDefaultMemPool(device))
    check(driver.cuDeviceSetMemPool(device, made))
    pointer = check(driver.cuMemAllocFromPoolAsync(SIZE, made, stream))
    check(driver.cuMemPoolDestroy(made))
    # The default pool is current again.
    assert int(check(driver.cuDeviceGetMemPool(device))) == int(default)
    check(driver.cuMemsetD8Async(pointer, 7, SIZE, stream))
    check(driver.cuMemFreeAsync(pointer, stream))
    check(driver.cuStreamSynchronize(stream))


def test_pool_attributes(pool):
    assert attribute(pool, "REUSE_FOLLOW_EVENT_DEPENDENCIES") == 1
    set_attribute(pool, "REUSE_FOLLOW_EVENT_DEPENDENCIES", 0, int)
    assert attribute(pool, "REUSE_FOLLOW_EVENT_DEPENDENCIES") == 0
    location = driver.CUmemLocation()
    location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    location.id = 0
    assert (
        check(driver.cuMemPoolGetAccess(pool, location)) == driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    )


@pytest.mark.cpu
def test_maximum_size_is_enforced(context, stream):
    made = check(driver.cuMemPoolCreate(properties(most=4 * SIZE)))
    pointers = [check(driver.cuMemAllocFromPoolAsync(SIZE, made, stream)) for _ in range(4)]
    assert driver.cuMemAllocFromPoolAsync(SIZE, made, stream)[0] == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    for pointer in pointers:
        check(driver.cuMemFreeAsync(pointer, stream))
    check(driver.cuMemPoolDestroy(made))


@pytest.mark.cpu
def test_pools_of_host_memory(context, stream):
    made = check(driver.cuMemPoolCreate(properties(driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST)))
    pointer = check(driver.cuMemAllocFromPoolAsync(SIZE, made, stream))
    kind = check(driver.cuPointerGetAttribute(driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer))
    assert kind == driver.CUmemorytype.CU_MEMORYTYPE_HOST
    assert driver.cuDeviceSetMemPool(0, made)[0] == driver.CUresult.CUDA_ERROR_INVALID_VALUE
    check(driver.cuMemFreeAsync(pointer, stream))
    check(driver.cuMemPoolDestroy(made))


@pytest.mark.cpu
def test_freed_pointer_is_detected_until_its_memory_is_reused(context, pool, stream):
    set_attribute(pool, "RELEASE_THRESHOLD", 2**64 - 1)
    pointer = check(driver.cuMemAllocFromPoolAsync(256, pool, stream))
    check(driver.cuMemFreeAsync(pointer, stream))
    check(driver.cuStreamSynchronize(stream))
    module = Module.from_source('extern "C" __global__ void touch(int *p) { *p = 1; }')
    module.launch("touch", 1, 1, np.uint64(int(pointer)), stream=int(stream))
    assert driver.cuStreamSynchronize(stream)[0] == driver.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS


@pytest.mark.cpu
def test_invalid_requests_are_refused(context, pool, stream):
    invalid = driver.CUresult.CUDA_ERROR_INVALID_VALUE
    props = properties()
    props.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_INVALID
    assert driver.cuMemPoolCreate(props)[0] == invalid
    assert driver.cuMemPoolCreate(properties(number=77))[0] == invalid
    assert driver.cuMemPoolCreate(properties(driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_INVALID))[0] == invalid
    props = properties()
    props.handleTypes = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_FABRIC
    assert driver.cuMemPoolCreate(props)[0] == driver.CUresult.CUDA_ERROR_NOT_SUPPORTED
    for bad in (0, 1, 0x1234, int(stream)):
        bad = driver.CUmemoryPool(bad)
        assert driver.cuMemPoolTrimTo(bad, 0)[0] == invalid
        assert driver.cuMemAllocFromPoolAsync(64, bad, stream)[0] == invalid
        assert driver.cuMemPoolDestroy(bad)[0] == invalid
    assert driver.cuMemFreeAsync(12345, stream)[0] == invalid
    pointer = check(driver.cuMemAllocFromPoolAsync(4096, pool, stream))
    assert driver.cuMemFreeAsync(int(pointer) + 512, stream)[0] == invalid
    check(driver.cuMemFreeAsync(pointer, stream))
    check(driver.cuStreamSynchronize(stream))
    assert driver.cuMemFreeAsync(pointer, stream)[0] == invalid
    # Twice, while the stream is still busy.
    pointer = check(driver.cuMemAllocFromPoolAsync(4096, pool, stream))
    flag = check(driver.cuMemHostAlloc(8, 0))
    ctypes.memset(int(flag), 0, 8)
    check(driver.cuStreamWaitValue32(stream, int(flag), 1, driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ))
    check(driver.cuMemFreeAsync(pointer, stream))
    (again,) = driver.cuMemFreeAsync(pointer, stream)
    ctypes.memset(int(flag), 1, 1)
    assert again == invalid
    check(driver.cuStreamSynchronize(stream))
    status, huge = driver.cuMemAllocFromPoolAsync(1 << 60, pool, stream)
    assert status == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY and huge is None
