"""Memory: allocation, copies of every shape, attributes, and invalid addresses."""

import ctypes

import numpy as np
import pytest

from helpers.device import DeviceArray, check, driver, synchronize

pytestmark = pytest.mark.usefixtures("shared_context")
R = driver.CUresult
ATTRIBUTE = driver.CUpointer_attribute


def test_allocation_sizes():
    assert driver.cuMemAlloc(0)[0] == R.CUDA_ERROR_INVALID_VALUE
    assert driver.cuMemAlloc(1 << 62)[0] == R.CUDA_ERROR_OUT_OF_MEMORY
    free, total = check(driver.cuMemGetInfo())
    assert 0 < free <= total
    pointer = check(driver.cuMemAlloc(1000))
    assert int(pointer) % 256 == 0
    base, size = check(driver.cuMemGetAddressRange(int(pointer) + 10))
    assert int(base) == int(pointer) and size == 1000
    check(driver.cuMemFree(pointer))
    assert driver.cuMemGetAddressRange(pointer)[0] in (R.CUDA_ERROR_NOT_FOUND, R.CUDA_ERROR_INVALID_VALUE)


def test_freeing_unknown_addresses_is_refused():
    check(driver.cuMemFree(0))
    pointer = check(driver.cuMemAlloc(64))
    check(driver.cuMemFree(pointer))
    assert driver.cuMemFree(pointer)[0] == R.CUDA_ERROR_INVALID_VALUE
    assert driver.cuMemFree(12345)[0] == R.CUDA_ERROR_INVALID_VALUE


@pytest.mark.parametrize(
    "bits, dtype, value", [(8, np.uint8, 0xAB), (16, np.uint16, 0xABCD), (32, np.uint32, 0xABCDEF01)]
)
def test_memset(bits, dtype, value):
    a = DeviceArray(np.zeros(100, dtype))
    size = a.host.itemsize
    check(getattr(driver, f"cuMemsetD{bits}")(a.address + 10 * size, value, 50))
    synchronize()
    want = np.zeros(100, dtype)
    want[10:60] = value
    np.testing.assert_array_equal(a.get(), want)
    grid = DeviceArray(np.zeros((8, 32), dtype))
    check(getattr(driver, f"cuMemsetD2D{bits}")(grid.address, 32 * size, value, 5, 4))
    synchronize()
    want = np.zeros((8, 32), dtype)
    want[:4, :5] = value
    np.testing.assert_array_equal(grid.get(), want)


def test_plain_and_peer_copies():
    a, b = DeviceArray(np.arange(50, dtype=np.int32)), DeviceArray(np.zeros(50, np.int32))
    check(driver.cuMemcpy(b.pointer, a.pointer, 200))
    np.testing.assert_array_equal(b.get(), np.arange(50))
    b.set(np.zeros(50))
    check(driver.cuMemcpyDtoD(b.pointer, a.pointer, 100))
    synchronize()
    assert b.get().sum() == sum(range(25))
    ctx = check(driver.cuCtxGetCurrent())
    check(driver.cuMemcpyPeer(b.pointer, ctx, a.pointer, ctx, 200))
    synchronize()
    np.testing.assert_array_equal(b.get(), np.arange(50))


def test_two_dimensional_copies():
    host = np.arange(6 * 10, dtype=np.uint8).reshape(6, 10)
    pitched, pitch = check(driver.cuMemAllocPitch(10, 6, 4))
    assert pitch >= 10
    kinds = driver.CUmemorytype
    copy = driver.CUDA_MEMCPY2D()
    copy.srcMemoryType, copy.srcHost, copy.srcPitch = kinds.CU_MEMORYTYPE_HOST, host.ctypes.data, 10
    copy.dstMemoryType, copy.dstDevice, copy.dstPitch = kinds.CU_MEMORYTYPE_DEVICE, pitched, pitch
    copy.WidthInBytes, copy.Height = 10, 6
    check(driver.cuMemcpy2D(copy))
    out = np.zeros((6, 12), np.uint8)
    back = driver.CUDA_MEMCPY2D()
    back.srcMemoryType, back.srcDevice, back.srcPitch = kinds.CU_MEMORYTYPE_DEVICE, pitched, pitch
    back.dstMemoryType, back.dstHost, back.dstPitch = kinds.CU_MEMORYTYPE_HOST, out.ctypes.data, 12
    back.WidthInBytes, back.Height, back.srcXInBytes, back.dstY = 4, 3, 2, 1
    check(driver.cuMemcpy2DAsync(back, 0))
    synchronize()
    want = np.zeros((6, 12), np.uint8)
    want[1:4, :4] = host[:3, 2:6]
    np.testing.assert_array_equal(out, want)
    check(driver.cuMemFree(pitched))


def test_three_dimensional_copies():
    host = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(3, 4, 5)
    device = DeviceArray(np.zeros((3, 4, 8), np.uint8))
    kinds = driver.CUmemorytype
    copy = driver.CUDA_MEMCPY3D()
    copy.srcMemoryType, copy.srcHost, copy.srcPitch, copy.srcHeight = kinds.CU_MEMORYTYPE_HOST, host.ctypes.data, 5, 4
    copy.dstMemoryType, copy.dstDevice, copy.dstPitch, copy.dstHeight = kinds.CU_MEMORYTYPE_DEVICE, device.pointer, 8, 4
    copy.WidthInBytes, copy.Height, copy.Depth = 5, 4, 3
    check(driver.cuMemcpy3D(copy))
    np.testing.assert_array_equal(device.get()[:, :, :5], host)
    assert not device.get()[:, :, 5:].any()


def test_host_memory():
    pointer = check(driver.cuMemHostAlloc(4096, 2))
    view = (ctypes.c_ubyte * 4096).from_address(int(pointer))
    view[5] = 77
    device = check(driver.cuMemHostGetDevicePointer(pointer, 0))
    back = bytearray(8)
    check(driver.cuMemcpyDtoH(back, device, 8))
    assert back[5] == 77
    assert check(driver.cuMemHostGetFlags(pointer)) & 2
    kind = check(driver.cuPointerGetAttribute(ATTRIBUTE.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, int(pointer)))
    assert int(kind) == int(driver.CUmemorytype.CU_MEMORYTYPE_HOST)
    check(driver.cuMemFreeHost(pointer))
    assert driver.cuMemFreeHost(pointer)[0] == R.CUDA_ERROR_INVALID_VALUE
    pointer = check(driver.cuMemAllocHost(100))
    check(driver.cuMemFreeHost(pointer))


def test_registered_memory():
    host = np.zeros(1 << 16, np.uint8)
    check(driver.cuMemHostRegister(host.ctypes.data, host.nbytes, 2))
    device = check(driver.cuMemHostGetDevicePointer(host.ctypes.data, 0))
    check(driver.cuMemsetD8(device, 3, 100))
    synchronize()
    assert host[:101].sum() == 300
    assert driver.cuMemHostRegister(host.ctypes.data, host.nbytes, 0)[0] == R.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
    check(driver.cuMemHostUnregister(host.ctypes.data))
    assert driver.cuMemHostUnregister(host.ctypes.data)[0] in (
        R.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
        R.CUDA_ERROR_INVALID_VALUE,
    )


def test_managed_memory():
    pointer = check(driver.cuMemAllocManaged(400, 1))
    view = (ctypes.c_int * 100).from_address(int(pointer))
    check(driver.cuMemsetD32(pointer, 5, 100))
    synchronize()
    assert sum(view) == 500
    assert check(driver.cuPointerGetAttribute(ATTRIBUTE.CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer)) == 1
    check(driver.cuMemFree(pointer))


def test_pointer_attributes():
    a = DeviceArray(np.zeros(100, np.uint8))

    def get(name, pointer=a.address + 5):
        return check(driver.cuPointerGetAttribute(getattr(ATTRIBUTE, "CU_POINTER_ATTRIBUTE_" + name), pointer))

    assert int(get("MEMORY_TYPE")) == int(driver.CUmemorytype.CU_MEMORYTYPE_DEVICE)
    assert int(get("CONTEXT")) == int(check(driver.cuCtxGetCurrent()))
    assert int(get("DEVICE_POINTER")) == a.address + 5
    assert get("DEVICE_ORDINAL") == 0
    assert get("RANGE_SIZE") == 100
    assert int(get("RANGE_START_ADDR")) == a.address
    assert get("IS_MANAGED") == 0
    assert get("BUFFER_ID") > 0
    several = check(
        driver.cuPointerGetAttributes(
            2, [ATTRIBUTE.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ATTRIBUTE.CU_POINTER_ATTRIBUTE_MEMORY_TYPE], a.pointer
        )
    )
    assert [int(v) for v in several] == [0, 2]
    host = np.zeros(4)
    assert (
        driver.cuPointerGetAttribute(ATTRIBUTE.CU_POINTER_ATTRIBUTE_CONTEXT, host.ctypes.data)[0]
        == R.CUDA_ERROR_INVALID_VALUE
    )


def test_copies_beyond_an_allocation_are_refused():
    a = DeviceArray(np.zeros(100, np.uint8))
    host = np.zeros(1 << 20, np.uint8)
    assert driver.cuMemcpyHtoD(a.address + 50, host.ctypes.data, 1 << 20)[0] == R.CUDA_ERROR_INVALID_VALUE


@pytest.mark.cpu
def test_copies_one_byte_beyond_an_allocation_are_refused():
    a = DeviceArray(np.zeros(100, np.uint8))
    host = np.zeros(200, np.uint8)
    assert driver.cuMemcpyHtoD(a.address, host.ctypes.data, 101)[0] == R.CUDA_ERROR_INVALID_VALUE
    assert driver.cuMemcpyDtoH(host.ctypes.data, a.address + 1, 100)[0] == R.CUDA_ERROR_INVALID_VALUE
    assert driver.cuMemsetD8(a.address + 99, 0, 2)[0] == R.CUDA_ERROR_INVALID_VALUE
    check(driver.cuMemcpyHtoD(a.address, host.ctypes.data, 100))


@pytest.mark.cpu
@pytest.mark.parametrize("address", [1, 4096, 0xDEADBEEF, 2**47, 2**63, 2**64 - 8])
def test_invalid_host_addresses_are_refused(address):
    a = DeviceArray(np.zeros(100, np.uint8))
    assert driver.cuMemcpyHtoD(a.pointer, address, 64)[0] == R.CUDA_ERROR_INVALID_VALUE
    assert driver.cuMemcpyDtoH(address, a.pointer, 64)[0] == R.CUDA_ERROR_INVALID_VALUE
    assert driver.cuMemcpyDtoD(a.pointer, address, 64)[0] == R.CUDA_ERROR_INVALID_VALUE


@pytest.mark.cpu
@pytest.mark.parametrize("handle", [1, 5, 12345, 2**48 + 8, 2**64 - 1])
def test_invalid_handles_are_refused(handle):
    for call in (
        lambda: driver.cuModuleUnload(handle),
        lambda: driver.cuModuleGetFunction(handle, b"k"),
        lambda: driver.cuEventRecord(handle, 0),
        lambda: driver.cuEventDestroy(handle),
        lambda: driver.cuCtxSetCurrent(handle),
        lambda: driver.cuCtxDestroy(handle),
        lambda: driver.cuFuncGetAttribute(driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, handle),
        lambda: driver.cuLaunchKernel(handle, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0),
        lambda: driver.cuLibraryUnload(handle),
        lambda: driver.cuStreamDestroy(handle) if handle > 2 else (R.CUDA_ERROR_INVALID_HANDLE,),
    ):
        assert call()[0] in (R.CUDA_ERROR_INVALID_HANDLE, R.CUDA_ERROR_INVALID_CONTEXT, R.CUDA_ERROR_INVALID_VALUE)


@pytest.mark.cpu
def test_destroyed_handles_are_refused():
    stream = check(driver.cuStreamCreate(0))
    check(driver.cuStreamDestroy(stream))
    event = check(driver.cuEventCreate(0))
    check(driver.cuEventDestroy(event))
    for call in (
        lambda: driver.cuStreamSynchronize(stream),
        lambda: driver.cuStreamDestroy(stream),
        lambda: driver.cuEventRecord(event, 0),
        lambda: driver.cuEventQuery(event),
    ):
        assert call()[0] in (R.CUDA_ERROR_INVALID_HANDLE, R.CUDA_ERROR_CONTEXT_IS_DESTROYED)
