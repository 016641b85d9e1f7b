"""Batched copies, and copies with attributes."""

import numpy as np
import pytest
from cuda.bindings import driver

from helpers.device import check

ORDER = driver.CUmemcpySrcAccessOrder
INVALID = driver.CUresult.CUDA_ERROR_INVALID_VALUE


def attributes(order=ORDER.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, flags=0):
    made = driver.CUmemcpyAttributes()
    made.srcAccessOrder = order
    made.flags = flags
    return made


def pointers(values):
    return [driver.CUdeviceptr(int(v)) for v in values]


@pytest.fixture
def stream(context):
    if check(driver.cuDriverGetVersion()) < 13000:
        pytest.skip("the driver is older than batched copies of CUDA 13")
    return check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))


def test_batch_copies_every_range(stream):
    size = 4096
    source = np.arange(3 * size // 4, dtype=np.uint32)
    device = int(check(driver.cuMemAlloc(3 * size)))
    back = np.zeros_like(source)
    to = pointers(device + i * size for i in range(3))
    kinds = [
        attributes(ORDER.CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL),
        attributes(ORDER.CU_MEMCPY_SRC_ACCESS_ORDER_ANY),
    ]
    start = source.ctypes.data
    parts = pointers(start + i * size for i in range(3))
    check(driver.cuMemcpyBatchAsync(to, parts, [size] * 3, 3, kinds, [0, 2], 2, stream))
    target = pointers(back.ctypes.data + i * size for i in range(3))
    # Rotated on the way back.
    check(driver.cuMemcpyBatchAsync(target, to[1:] + to[:1], [size] * 3, 3, [attributes()], [0], 1, stream))
    check(driver.cuStreamSynchronize(stream))
    assert (back == np.roll(source, -(size // 4))).all()


def test_invalid_batches_are_refused(stream):
    device = check(driver.cuMemAlloc(4096))
    one = [device], [device], [64], 1
    never = attributes(ORDER.CU_MEMCPY_SRC_ACCESS_ORDER_INVALID)
    assert driver.cuMemcpyBatchAsync(*one, [never], [0], 1, stream)[0] == INVALID
    assert driver.cuMemcpyBatchAsync(*one, [attributes()], [1], 1, stream)[0] == INVALID
    assert driver.cuMemcpyBatchAsync(*one, [attributes()] * 2, [0, 0], 2, stream)[0] == INVALID
    # Not in the legacy default stream.
    assert driver.cuMemcpyBatchAsync(*one, [attributes()], [0], 1, 0)[0] == INVALID


@pytest.mark.cpu
def test_invalid_range_queues_no_copy(stream):
    device = int(check(driver.cuMemAlloc(4096)))
    check(driver.cuMemsetD8(device, 1, 4096))
    source = np.full(4096, 2, np.uint8)
    start = source.ctypes.data
    bad = pointers([device, device + 4000]), pointers([start, start]), [64, 100], 2
    assert driver.cuMemcpyBatchAsync(*bad, [attributes()], [0], 1, stream)[0] == INVALID
    check(driver.cuStreamSynchronize(stream))
    out = np.zeros(4096, np.uint8)
    check(driver.cuMemcpyDtoH(out.ctypes.data, device, 4096))
    assert (out == 1).all()


def operand(address, row=0, height=0):
    made = driver.CUmemcpy3DOperand()
    made.type = driver.CUmemcpy3DOperandType.CU_MEMCPY_OPERAND_TYPE_POINTER
    made.op.ptr.ptr = int(address)
    made.op.ptr.rowLength = row
    made.op.ptr.layerHeight = height
    return made


def array_operand(array, x=0, y=0, z=0):
    made = driver.CUmemcpy3DOperand()
    made.type = driver.CUmemcpy3DOperandType.CU_MEMCPY_OPERAND_TYPE_ARRAY
    made.op.array.array = array
    made.op.array.offset.x, made.op.array.offset.y, made.op.array.offset.z = x, y, z
    return made


def box(source, target, width, height, depth):
    made = driver.CUDA_MEMCPY3D_BATCH_OP()
    made.src, made.dst = source, target
    made.extent.width, made.extent.height, made.extent.depth = width, height, depth
    made.srcAccessOrder = ORDER.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    return made


def test_3d_batches_between_memory_and_arrays(stream):
    shape = driver.CUDA_ARRAY3D_DESCRIPTOR()
    shape.Width, shape.Height, shape.Depth = 16, 8, 4
    shape.Format, shape.NumChannels = driver.CUarray_format.CU_AD_FORMAT_FLOAT, 1
    array = check(driver.cuArray3DCreate(shape))
    source = np.arange(4 * 8 * 16, dtype=np.float32).reshape(4, 8, 16)
    into = box(operand(source.ctypes.data, 16, 8), array_operand(array), 16, 8, 4)
    check(driver.cuMemcpy3DBatchAsync(1, [into], 0, stream))
    # A part of it, in elements of the array: 5 x 3 x 2 from (4, 2, 1), into rows of 6 and layers of 4.
    out = np.full((2, 4, 6), -1, np.float32)
    part = box(array_operand(array, 4, 2, 1), operand(out.ctypes.data, 6, 4), 5, 3, 2)
    check(driver.cuMemcpy3DBatchAsync(1, [part], 0, stream))
    check(driver.cuStreamSynchronize(stream))
    wanted = np.full((2, 4, 6), -1, np.float32)
    wanted[:, :3, :5] = source[1:3, 2:5, 4:9]
    assert (out == wanted).all()
    check(driver.cuArrayDestroy(array))


@pytest.mark.cpu
def test_invalid_3d_batches_are_refused(stream):
    device = int(check(driver.cuMemAlloc(4096)))
    good = box(operand(device), operand(device + 2048), 16, 1, 1)
    check(driver.cuMemcpy3DBatchAsync(1, [good], 0, stream))
    assert driver.cuMemcpy3DBatchAsync(1, [good], 1, stream)[0] == INVALID
    assert driver.cuMemcpy3DBatchAsync(0, [good], 0, stream)[0] == INVALID
    assert driver.cuMemcpy3DBatchAsync(1, [box(operand(0), operand(device), 16, 1, 1)], 0, stream)[0] == INVALID
    assert driver.cuMemcpy3DBatchAsync(1, [box(array_operand(77), operand(device), 1, 1, 1)], 0, stream)[0] == INVALID
    assert driver.cuMemcpy3DBatchAsync(1, [driver.CUDA_MEMCPY3D_BATCH_OP()], 0, stream)[0] == INVALID
    check(driver.cuStreamSynchronize(stream))


@pytest.mark.cpu
def test_single_copies_with_attributes(stream):
    source = np.arange(1024, dtype=np.uint32)
    device = check(driver.cuMemAlloc(4096))
    during = attributes(ORDER.CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL)
    check(driver.cuMemcpyWithAttributesAsync(device, source.ctypes.data, 4096, during, stream))
    wanted = source.copy()
    source[:] = 0
    out = np.zeros_like(source)
    part = box(operand(int(device), 128), operand(out.ctypes.data, 128), 128, 32, 1)
    check(driver.cuMemcpy3DWithAttributesAsync(part, 0, stream))
    check(driver.cuStreamSynchronize(stream))
    assert (out == wanted).all()
    bad = attributes(flags=8)
    assert driver.cuMemcpyWithAttributesAsync(device, device, 64, bad, stream)[0] == INVALID
