"""Virtual memory management: reserving, creating, mapping, access, sharing."""

import os

import numpy as np
import pytest
from cuda.bindings import driver

from helpers.device import Module, check, on_cpu_device
from helpers.programs import output
from helpers.virtual_memory import DESCRIPTOR, DEVICE, NONE, READ, READ_WRITE, access, properties

INVALID = driver.CUresult.CUDA_ERROR_INVALID_VALUE


def supported():
    name = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
    return check(driver.cuDeviceGetAttribute(name, 0))


def here(device=0):
    location = driver.CUmemLocation()
    location.type = DEVICE
    location.id = device
    return location


@pytest.fixture
def unit(context):
    if not supported():
        pytest.skip("this device has no virtual memory management")
    option = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    size = int(check(driver.cuMemGetAllocationGranularity(properties(), option)))
    assert size > 0 and size & (size - 1) == 0
    return size


def fill(address, size, value):
    check(driver.cuMemsetD32(address, value, size // 4))


def read(address, size):
    out = np.zeros(size // 4, np.uint32)
    check(driver.cuMemcpyDtoH(out.ctypes.data, address, size))
    return out


def test_allocation_grows_in_place(unit):
    base = check(driver.cuMemAddressReserve(4 * unit, 0, 0, 0))
    mapped = 0
    for step in range(4):
        handle = check(driver.cuMemCreate(unit, properties(), 0))
        check(driver.cuMemMap(int(base) + mapped, unit, 0, handle, 0))
        check(driver.cuMemRelease(handle))
        check(driver.cuMemSetAccess(int(base) + mapped, unit, [access()], 1))
        fill(int(base) + mapped, unit, step + 1)
        mapped += unit
    # One copy, one memset and one kernel across all mappings.
    assert [int(v) for v in read(base, 4 * unit)[:: unit // 4]] == [1, 2, 3, 4]
    module = Module.from_source(
        'extern "C" __global__ void bump(unsigned *p) { p[blockIdx.x * blockDim.x + threadIdx.x] += 10; }'
    )
    module.launch("bump", 4 * unit // 4 // 256, 256, np.uint64(int(base)))
    assert [int(v) for v in np.unique(read(base, 4 * unit))] == [11, 12, 13, 14]
    fill(base, 4 * unit, 5)
    assert (read(base, 4 * unit) == 5).all()
    check(driver.cuMemUnmap(base, 4 * unit))
    check(driver.cuMemAddressFree(base, 4 * unit))


def test_memory_mapped_at_two_addresses(unit):
    handle = check(driver.cuMemCreate(unit, properties(), 0))
    one, two = (check(driver.cuMemAddressReserve(unit, 0, 0, 0)) for _ in range(2))
    for base in (one, two):
        check(driver.cuMemMap(base, unit, 0, handle, 0))
        check(driver.cuMemSetAccess(base, unit, [access()], 1))
    fill(one, unit, 77)
    check(driver.cuCtxSynchronize())
    assert (read(two, unit) == 77).all()
    again = check(driver.cuMemRetainAllocationHandle(int(two)))
    assert int(again) == int(handle)
    found = check(driver.cuMemGetAllocationPropertiesFromHandle(handle))
    assert found.location.type == DEVICE and found.location.id == 0
    for base in (one, two):
        check(driver.cuMemUnmap(base, unit))
        check(driver.cuMemAddressFree(base, unit))
    check(driver.cuMemRelease(again))
    check(driver.cuMemRelease(handle))
    assert driver.cuMemRelease(handle)[0] == INVALID


def test_access_flags_are_set_and_reported(unit):
    base = check(driver.cuMemAddressReserve(unit, 0, 0, 0))
    handle = check(driver.cuMemCreate(unit, properties(), 0))
    check(driver.cuMemMap(base, unit, 0, handle, 0))
    assert int(check(driver.cuMemGetAccess(here(), base))) == int(NONE)
    check(driver.cuMemSetAccess(base, unit, [access()], 1))
    assert int(check(driver.cuMemGetAccess(here(), base))) == int(READ_WRITE)
    name = driver.CUpointer_attribute
    query = lambda which: check(driver.cuPointerGetAttribute(which, int(base)))  # noqa: E731
    assert query(name.CU_POINTER_ATTRIBUTE_MEMORY_TYPE) == driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    assert query(name.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) == 0
    assert int(query(name.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)) == int(base)
    assert int(query(name.CU_POINTER_ATTRIBUTE_RANGE_SIZE)) == unit
    check(driver.cuMemUnmap(base, unit))
    check(driver.cuMemRelease(handle))
    check(driver.cuMemAddressFree(base, unit))


def refused(result):
    """Whether a call failed: with CUDA_ERROR_INVALID_VALUE on the CPU device, with any error on a GPU."""
    return result[0] == INVALID if on_cpu_device() else result[0] != driver.CUresult.CUDA_SUCCESS


def test_invalid_requests_are_refused(unit):
    assert refused(driver.cuMemCreate(unit + 1, properties(), 0))
    assert refused(driver.cuMemCreate(unit, properties(), 1))
    base = check(driver.cuMemAddressReserve(2 * unit, 0, 0, 0))
    handle = check(driver.cuMemCreate(2 * unit, properties(), 0))
    assert refused(driver.cuMemMap(base, unit + 1, 0, handle, 0))
    if on_cpu_device():
        # A GPU's driver rounds reservations up and does not always notice.
        assert refused(driver.cuMemMap(int(base) + unit, 2 * unit, 0, handle, 0))
    assert refused(driver.cuMemSetAccess(base, unit, [access()], 1))
    check(driver.cuMemMap(base, 2 * unit, 0, handle, 0))
    assert refused(driver.cuMemMap(base, 2 * unit, 0, handle, 0))
    assert refused(driver.cuMemUnmap(base, unit))
    assert driver.cuMemAddressFree(base, 2 * unit)[0] != driver.CUresult.CUDA_SUCCESS
    check(driver.cuMemUnmap(base, 2 * unit))
    # Nothing remains mapped.
    check(driver.cuMemUnmap(base, 2 * unit))
    check(driver.cuMemRelease(handle))
    check(driver.cuMemAddressFree(base, 2 * unit))
    assert refused(driver.cuMemAddressFree(base, 2 * unit))


@pytest.mark.cpu
def test_invalid_handles_and_addresses_are_refused(unit):
    for bad in (0, 1, 2**63, 2**64 - 1):
        assert driver.cuMemRelease(bad)[0] == INVALID
        assert driver.cuMemMap(0, unit, 0, bad, 0)[0] == INVALID
        assert driver.cuMemUnmap(bad, unit)[0] == INVALID
        assert driver.cuMemAddressFree(bad, unit)[0] == INVALID
        assert driver.cuMemRetainAllocationHandle(bad)[0] == INVALID
        assert driver.cuMemGetAllocationPropertiesFromHandle(bad)[0] == INVALID
        assert driver.cuMemGetAccess(here(), bad)[0] == INVALID
    assert driver.cuMemAddressReserve(unit // 2, 0, 0, 0)[0] == INVALID
    assert driver.cuMemAddressReserve(unit, 3, 0, 0)[0] == INVALID
    prop = properties()
    prop.location.id = 99
    assert driver.cuMemCreate(unit, prop, 0)[0] == driver.CUresult.CUDA_ERROR_INVALID_DEVICE
    assert driver.cuMemCreate(1 << 50, properties(), 0)[0] == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY


@pytest.mark.cpu
def test_copies_without_access_are_refused(unit):
    base = int(check(driver.cuMemAddressReserve(2 * unit, 0, 0, 0)))
    handle = check(driver.cuMemCreate(unit, properties(), 0))
    check(driver.cuMemMap(base, unit, 0, handle, 0))
    out = np.zeros(16, np.uint8)
    for address in (base, base + unit):
        assert driver.cuMemcpy(out.ctypes.data, address, 16)[0] == INVALID
        assert driver.cuMemcpyDtoH(out.ctypes.data, address, 16)[0] == INVALID
        assert driver.cuMemsetD8(address, 1, 16)[0] == INVALID
    # A copy beyond the mapped range.
    check(driver.cuMemSetAccess(base, unit, [access()], 1))
    assert driver.cuMemcpyDtoH(out.ctypes.data, base + unit - 8, 16)[0] == INVALID
    check(driver.cuMemUnmap(base, unit))
    check(driver.cuMemRelease(handle))
    check(driver.cuMemAddressFree(base, 2 * unit))


@pytest.mark.cpu
@pytest.mark.parametrize("rights", [NONE, READ])
def test_kernel_without_access_faults(unit, rights, capfd):
    base = check(driver.cuMemAddressReserve(unit, 0, 0, 0))
    handle = check(driver.cuMemCreate(unit, properties(), 0))
    check(driver.cuMemMap(base, unit, 0, handle, 0))
    check(driver.cuMemSetAccess(base, unit, [access(rights)], 1))
    module = Module.from_source(
        'extern "C" __global__ void load(int *p, int *q) { if (*p == 1234567) *q = 0; }\n'
        'extern "C" __global__ void store(int *p) { *p = 1; }'
    )
    if rights == READ:
        module.launch("load", 1, 1, np.uint64(int(base)), np.uint64(0))
        check(driver.cuCtxSynchronize())
    module.launch("store", 1, 1, np.uint64(int(base)))
    assert driver.cuCtxSynchronize()[0] == driver.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    assert ("read-only" if rights == READ else "cuMemSetAccess") in capfd.readouterr().err
    check(driver.cuMemUnmap(base, unit))
    check(driver.cuMemRelease(handle))
    check(driver.cuMemAddressFree(base, unit))


IMPORTER = """
import sys
import numpy as np
from cuda.bindings import driver
from helpers.device import check
from helpers.virtual_memory import DESCRIPTOR, access

descriptor, unit = map(int, sys.argv[1:])
check(driver.cuInit(0))
check(driver.cuCtxCreate(None, 0, 0))
handle = check(driver.cuMemImportFromShareableHandle(descriptor, DESCRIPTOR))
base = check(driver.cuMemAddressReserve(unit, 0, 0, 0))
check(driver.cuMemMap(base, unit, 0, handle, 0))
check(driver.cuMemSetAccess(base, unit, [access()], 1))
out = np.zeros(4, np.uint32)
check(driver.cuMemcpyDtoH(out.ctypes.data, base, 16))
assert (out == 41).all(), out
check(driver.cuMemsetD32(base, 42, 4))
check(driver.cuCtxSynchronize())
"""


def test_another_process_maps_the_same_memory(unit):
    name = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
    if not check(driver.cuDeviceGetAttribute(name, 0)):
        pytest.skip("needs memory shared as file descriptors")
    handle = check(driver.cuMemCreate(unit, properties(DESCRIPTOR), 0))
    base = check(driver.cuMemAddressReserve(unit, 0, 0, 0))
    check(driver.cuMemMap(base, unit, 0, handle, 0))
    check(driver.cuMemSetAccess(base, unit, [access()], 1))
    fill(base, unit, 41)
    check(driver.cuCtxSynchronize())
    descriptor = int(check(driver.cuMemExportToShareableHandle(handle, DESCRIPTOR, 0)))
    try:
        output(IMPORTER, descriptor, unit, pass_fds=[descriptor])
    finally:
        os.close(descriptor)
    assert [int(v) for v in read(base, 32)] == [42] * 4 + [41] * 4
    check(driver.cuMemUnmap(base, unit))
    check(driver.cuMemRelease(handle))
    check(driver.cuMemAddressFree(base, unit))


@pytest.mark.cpu
def test_only_exported_memory_is_imported(unit):
    with open(__file__, "rb") as file:
        assert driver.cuMemImportFromShareableHandle(file.fileno(), DESCRIPTOR)[0] == INVALID
    for bad in (987654, 2**31, 2**64 - 1):
        assert driver.cuMemImportFromShareableHandle(bad, DESCRIPTOR)[0] == INVALID
    handle = check(driver.cuMemCreate(unit, properties(), 0))
    assert driver.cuMemExportToShareableHandle(handle, DESCRIPTOR, 0)[0] == INVALID
    check(driver.cuMemRelease(handle))
