"""Streams that wait for and write values in memory; managed memory: advice, prefetching, range attributes."""

import ctypes
import time

import numpy as np
import pytest
from cuda.bindings import driver

from helpers.device import check, synchronize

WAIT = driver.CUstreamWaitValue_flags
ADVICE = driver.CUmem_advise
RANGE = driver.CUmem_range_attribute
INVALID = driver.CUresult.CUDA_ERROR_INVALID_VALUE


@pytest.fixture
def word(context):
    """Eight bytes of page-locked host memory, and their device address."""
    pointer = check(driver.cuMemHostAlloc(4096, 0))
    ctypes.memset(int(pointer), 0, 4096)
    yield ctypes.c_uint32.from_address(int(pointer)), int(pointer)
    driver.cuMemFreeHost(pointer)


def stream():
    return check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))


def test_stream_waits_until_the_host_writes(word):
    value, address = word
    waiting = stream()
    out = check(driver.cuMemAlloc(4))
    check(driver.cuMemsetD32(out, 1, 1))
    check(driver.cuCtxSynchronize())
    check(driver.cuStreamWaitValue32(waiting, address, 3, WAIT.CU_STREAM_WAIT_VALUE_GEQ))
    check(driver.cuMemsetD32Async(out, 2, 1, waiting))
    time.sleep(0.02)
    assert driver.cuStreamQuery(waiting)[0] == driver.CUresult.CUDA_ERROR_NOT_READY
    value.value = 2
    time.sleep(0.02)
    assert driver.cuStreamQuery(waiting)[0] == driver.CUresult.CUDA_ERROR_NOT_READY
    value.value = 4
    check(driver.cuStreamSynchronize(waiting))
    got = np.zeros(1, np.uint32)
    check(driver.cuMemcpyDtoH(got.ctypes.data, out, 4))
    assert got[0] == 2


def test_streams_wait_for_each_other(context):
    one, two = stream(), stream()
    flag = int(check(driver.cuMemAlloc(16)))
    check(driver.cuMemsetD32(flag, 0, 4))
    synchronize()
    check(driver.cuStreamWaitValue32(two, flag, 5, WAIT.CU_STREAM_WAIT_VALUE_EQ))
    check(driver.cuStreamWriteValue32(two, flag + 4, 6, 0))
    check(driver.cuStreamWriteValue32(one, flag, 5, 0))
    check(driver.cuStreamSynchronize(two))
    out = np.zeros(4, np.uint32)
    check(driver.cuMemcpyDtoH(out.ctypes.data, flag, 16))
    assert list(out) == [5, 6, 0, 0]


def test_batched_operations(context):
    queue = stream()
    flag = int(check(driver.cuMemAlloc(16)))
    check(driver.cuMemsetD32(flag, 0, 4))
    synchronize()
    write, wait, wide = (driver.CUstreamBatchMemOpParams() for _ in range(3))
    write.writeValue.operation = driver.CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WRITE_VALUE_32
    write.writeValue.address, write.writeValue.value = flag, 9
    wait.waitValue.operation = driver.CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WAIT_VALUE_32
    wait.waitValue.address, wait.waitValue.value = flag, 8
    wait.waitValue.flags = WAIT.CU_STREAM_WAIT_VALUE_AND
    wide.writeValue.operation = driver.CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WRITE_VALUE_64
    wide.writeValue.address, wide.writeValue.value64 = flag + 8, 0x123456789
    check(driver.cuStreamBatchMemOp(queue, 3, [write, wait, wide], 0))
    check(driver.cuStreamSynchronize(queue))
    out = np.zeros(2, np.uint64)
    check(driver.cuMemcpyDtoH(out.ctypes.data, flag, 16))
    assert [int(v) for v in out] == [9, 0x123456789]


@pytest.mark.cpu
def test_invalid_stream_memory_operations_are_refused(context):
    queue = stream()
    flag = int(check(driver.cuMemAlloc(16)))
    for address in (0, 8, flag + 2, flag + 16):
        assert driver.cuStreamWaitValue32(queue, address, 0, 0)[0] == INVALID
        assert driver.cuStreamWriteValue32(queue, address, 0, 0)[0] == INVALID
    assert driver.cuStreamWriteValue64(queue, flag + 4, 0, 0)[0] == INVALID
    assert driver.cuStreamWaitValue32(queue, flag, 0, 4)[0] == INVALID
    assert driver.cuStreamWaitValue32(queue, flag, 0, 1 << 30)[0] == driver.CUresult.CUDA_ERROR_NOT_SUPPORTED
    assert driver.cuStreamWriteValue32(queue, flag, 0, 8)[0] == INVALID
    op = driver.CUstreamBatchMemOpParams()
    op.writeValue.operation = driver.CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WRITE_VALUE_32
    assert driver.cuStreamBatchMemOp(queue, 1, [op], 0)[0] == INVALID
    op.writeValue.address = flag
    assert driver.cuStreamBatchMemOp(queue, 1, [op], 1)[0] == INVALID
    check(driver.cuStreamBatchMemOp(queue, 1, [op], 0))
    check(driver.cuStreamSynchronize(queue))


def place(kind, number=0):
    location = driver.CUmemLocation()
    location.type = getattr(driver.CUmemLocationType, f"CU_MEM_LOCATION_TYPE_{kind}")
    location.id = number
    return location


def told(name, address, size, bytes_=4):
    return check(driver.cuMemRangeGetAttribute(bytes_, getattr(RANGE, f"CU_MEM_RANGE_ATTRIBUTE_{name}"), address, size))


@pytest.fixture
def managed(context):
    names = driver.CUdevice_attribute
    if not check(driver.cuDeviceGetAttribute(names.CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0)):
        pytest.skip("this device takes no advice on managed memory")
    size = 4 << 20
    pointer = check(driver.cuMemAllocManaged(size, int(driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL)))
    yield int(pointer), size
    driver.cuMemFree(pointer)


def test_advice_is_reported(managed):
    address, size = managed
    half = size // 2
    assert told("READ_MOSTLY", address, size) == 0
    assert told("PREFERRED_LOCATION", address, size) == -2
    assert told("LAST_PREFETCH_LOCATION", address, size) == -2
    check(driver.cuMemAdvise(address, size, ADVICE.CU_MEM_ADVISE_SET_READ_MOSTLY, place("DEVICE")))
    assert told("READ_MOSTLY", address, size) == 1
    check(driver.cuMemAdvise(address, half, ADVICE.CU_MEM_ADVISE_UNSET_READ_MOSTLY, place("DEVICE")))
    assert told("READ_MOSTLY", address, size) == 0
    assert told("READ_MOSTLY", address + half, half) == 1
    check(driver.cuMemAdvise(address, size, ADVICE.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, place("DEVICE")))
    assert told("PREFERRED_LOCATION", address, size) == 0
    check(driver.cuMemAdvise(address, half, ADVICE.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, place("HOST")))
    assert told("PREFERRED_LOCATION", address, half) == -1
    assert told("PREFERRED_LOCATION", address, size) == -2
    check(driver.cuMemAdvise(address, size, ADVICE.CU_MEM_ADVISE_SET_ACCESSED_BY, place("DEVICE")))
    assert list(told("ACCESSED_BY", address, size, 12)) == [0, -2, -2]
    check(driver.cuMemAdvise(address, size, ADVICE.CU_MEM_ADVISE_UNSET_ACCESSED_BY, place("DEVICE")))
    assert list(told("ACCESSED_BY", address, size, 8)) == [-2, -2]


def test_prefetch_location_is_reported(managed):
    address, size = managed
    queue = stream()
    check(driver.cuMemPrefetchAsync(address, size, place("DEVICE"), 0, queue))
    check(driver.cuStreamSynchronize(queue))
    assert told("LAST_PREFETCH_LOCATION", address, size) == 0
    check(driver.cuMemPrefetchAsync(address, size, place("HOST"), 0, queue))
    check(driver.cuStreamSynchronize(queue))
    assert told("LAST_PREFETCH_LOCATION", address, size) == -1


@pytest.mark.cpu
def test_batched_ranges(managed):
    address, size = managed
    queue, half = stream(), size // 2
    pointer = driver.CUdeviceptr
    ranges = [pointer(address), pointer(address + half)], [half, half], 2
    places = [place("DEVICE"), place("HOST")]
    check(driver.cuMemPrefetchBatchAsync(*ranges, places, [0, 1], 2, 0, queue))
    assert told("LAST_PREFETCH_LOCATION", address, half) == 0
    assert told("LAST_PREFETCH_LOCATION", address + half, half) == -1
    check(driver.cuMemDiscardAndPrefetchBatchAsync(*ranges, places[:1], [0], 1, 0, queue))
    assert told("LAST_PREFETCH_LOCATION", address, size) == 0
    check(driver.cuMemDiscardBatchAsync(*ranges, 0, queue))
    check(driver.cuStreamSynchronize(queue))
    assert driver.cuMemPrefetchBatchAsync(*ranges, places, [1, 0], 2, 0, queue)[0] == INVALID
    assert driver.cuMemPrefetchBatchAsync(*ranges, places, [0, 2], 2, 0, queue)[0] == INVALID
    assert driver.cuMemPrefetchBatchAsync(*ranges, places, [0, 1], 2, 0, 0)[0] == INVALID
    assert driver.cuMemDiscardBatchAsync([pointer(address)], [size + 1], 1, 0, queue)[0] == INVALID
    plain = check(driver.cuMemAlloc(4096))
    assert driver.cuMemDiscardBatchAsync([plain], [4096], 1, 0, queue)[0] == INVALID


def test_invalid_advice_is_refused(managed):
    address, size = managed
    too_much = size + (64 << 20)
    assert driver.cuMemAdvise(address, too_much, ADVICE.CU_MEM_ADVISE_SET_READ_MOSTLY, place("DEVICE"))[0] == INVALID
    beyond = place("DEVICE", 99)
    # The device matters only for advice that names one.
    for advice, status in (
        (ADVICE.CU_MEM_ADVISE_SET_READ_MOSTLY, driver.CUresult.CUDA_SUCCESS),
        (ADVICE.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, INVALID),
        (ADVICE.CU_MEM_ADVISE_SET_ACCESSED_BY, INVALID),
    ):
        assert driver.cuMemAdvise(address, size, advice, beyond)[0] == status
        assert driver.cuMemAdvise(address, size, advice, place("INVALID"))[0] == INVALID
    assert driver.cuMemAdvise(address, size, ADVICE.CU_MEM_ADVISE_SET_ACCESSED_BY, place("HOST_NUMA"))[0] == INVALID
    assert driver.cuMemPrefetchAsync(address, size, beyond, 0, stream())[0] == driver.CUresult.CUDA_ERROR_INVALID_DEVICE
    assert driver.cuMemFreeAsync(address, stream())[0] == driver.CUresult.CUDA_ERROR_NOT_SUPPORTED
