"""`cuMemBatchDecompressAsync`, on the CPU device: GPUs have it from compute capability 10.0 on."""

import ctypes
import os
import zlib

import numpy as np
import pytest
from cuda.bindings import driver

from helpers.device import check, on_cpu_device
from helpers.programs import output
from helpers.virtual_memory import access, properties

pytestmark = pytest.mark.skipif(not on_cpu_device(), reason="needs the CPU device")

Algorithm = driver.CUmemDecompressAlgorithm
DEFLATE = Algorithm.CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE
SNAPPY = Algorithm.CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY
LZ4 = Algorithm.CU_MEM_DECOMPRESS_ALGORITHM_LZ4
INVALID = driver.CUresult.CUDA_ERROR_INVALID_VALUE
TEXT = b"abcdefgh" * 500 + bytes(range(256))


def deflate(data):
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    return stream.compress(data) + stream.flush()


def literal_lz4(data):
    """A block of literals only."""
    rest, lengths = len(data) - 15, b""
    while rest >= 255:
        rest, lengths = rest - 255, lengths + b"\xff"
    return b"\xf0" + lengths + bytes([rest]) + data


def literal_snappy(data):
    """A length, and a literal with a length of two bytes."""
    n = len(data)
    return bytes([n & 0x7F | 0x80, n >> 7]) + b"\xf4" + (n - 1).to_bytes(2, "little") + data


COMPRESSED = [(DEFLATE, deflate(TEXT)), (LZ4, literal_lz4(TEXT)), (SNAPPY, literal_snappy(TEXT))]


class Memory:
    """Device memory that is freed at the end."""

    def __init__(self, size=1 << 16):
        self.pointer = int(check(driver.cuMemAlloc(size)))

    def write(self, data, at=0):
        check(driver.cuMemcpyHtoD(self.pointer + at, data, len(data)))

    def read(self, size, at=0):
        out = np.zeros(size, np.uint8)
        check(driver.cuMemcpyDtoH(out.ctypes.data, self.pointer + at, size))
        return out.tobytes()

    def close(self):
        check(driver.cuMemFree(self.pointer))


@pytest.fixture
def memory(context):
    blocks = [Memory() for _ in range(3)]
    yield blocks
    for block in blocks:
        block.close()


def operation(source, size, target, room, count, algorithm):
    params = driver.CUmemDecompressParams()
    params.srcNumBytes, params.dstNumBytes = size, room
    params.src, params.dst = source, target
    # A pointer to an integer, which the class has no setter for.
    ctypes.c_uint64.from_address(params.getPtr() + 16).value = count
    params.algo = algorithm
    return params


def decompress(operations, count=None, flags=0, index=None):
    """Queues a batch; returns the status. Calls the C function, because the binding takes one operation."""
    size = 64
    batch = ctypes.create_string_buffer(size * len(operations))
    for n, one in enumerate(operations):
        ctypes.memmove(ctypes.addressof(batch) + size * n, one.getPtr(), size)
    address, _ = check(driver.cuGetProcAddress(b"cuMemBatchDecompressAsync", 12060, 0))
    words = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p]
    function = ctypes.CFUNCTYPE(ctypes.c_int, *words)(int(address))
    at = None if index is None else ctypes.addressof(index)
    return driver.CUresult(function(batch, len(operations) if count is None else count, flags, at, None))


def test_a_batch_decompresses_every_algorithm(memory):
    source, target, counts = memory
    batch = []
    for n, (algorithm, data) in enumerate(COMPRESSED):
        source.write(data, 8192 * n)
        room = len(TEXT) + 100 * n
        at = 8192 * n
        batch.append(
            operation(source.pointer + at, len(data), target.pointer + at, room, counts.pointer + 4 * n, algorithm)
        )
    assert decompress(batch) == driver.CUresult.CUDA_SUCCESS
    check(driver.cuStreamSynchronize(0))
    for n in range(len(COMPRESSED)):
        assert target.read(len(TEXT), 8192 * n) == TEXT
    assert np.frombuffer(counts.read(12), np.uint32).tolist() == [len(TEXT)] * 3


def test_wrong_arguments_name_the_operation(memory):
    source, target, counts = memory
    data = COMPRESSED[0][1]
    source.write(data)
    good = {
        "source": source.pointer,
        "size": len(data),
        "target": target.pointer,
        "room": len(TEXT),
        "count": counts.pointer,
        "algorithm": DEFLATE,
    }
    host = np.zeros(1 << 16, np.uint8)
    for wrong in (
        {"source": 0},
        {"target": 0},
        {"count": 0},
        {"source": host.ctypes.data},
        {"target": host.ctypes.data},
        {"source": source.pointer + (1 << 16) - 4},
        {"target": target.pointer + (1 << 16) - 4},
        {"count": counts.pointer + 2},
        {"size": 0},
        {"room": 0},
        {"size": 1 << 40},
        {"room": 1 << 40},
        {"algorithm": Algorithm.CU_MEM_DECOMPRESS_UNSUPPORTED},
    ):
        batch = [operation(**good), operation(**{**good, **wrong})]
        index = ctypes.c_size_t(77)
        assert decompress(batch, index=index) == INVALID, wrong
        assert index.value == 1, wrong
    good = [operation(**good)]
    index = ctypes.c_size_t(77)
    assert decompress(good, flags=1, index=index) == INVALID
    assert index.value == 2**64 - 1
    assert driver.cuMemBatchDecompressAsync(good[0], 1, 1, 0)[0] == INVALID
    assert decompress(good, count=0) == INVALID
    # Nothing ran, and the context is usable.
    check(driver.cuCtxSynchronize())
    assert target.read(16) != TEXT[:16]


def test_memory_must_be_created_for_decompression(memory):
    source, target, counts = memory
    attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE
    data = COMPRESSED[0][1]
    for usage in (0, 2):
        prop = properties()
        prop.allocFlags.usage = usage
        handle = check(driver.cuMemCreate(2 << 20, prop, 0))
        address = int(check(driver.cuMemAddressReserve(2 << 20, 0, 0, 0)))
        check(driver.cuMemMap(address, 2 << 20, 0, handle, 0))
        check(driver.cuMemSetAccess(address, 2 << 20, [access()], 1))
        check(driver.cuMemcpyHtoD(address, data, len(data)))
        assert bool(check(driver.cuPointerGetAttribute(attribute, address))) == bool(usage)
        batch = [operation(address, len(data), target.pointer, len(TEXT), counts.pointer, DEFLATE)]
        status = decompress(batch)
        assert status == (driver.CUresult.CUDA_SUCCESS if usage else INVALID)
        check(driver.cuCtxSynchronize())
        check(driver.cuMemUnmap(address, 2 << 20))
        check(driver.cuMemAddressFree(address, 2 << 20))
        check(driver.cuMemRelease(handle))
    assert target.read(len(TEXT)) == TEXT
    assert check(driver.cuPointerGetAttribute(attribute, source.pointer))


def test_the_device_states_algorithms_and_length(context):
    names = driver.CUdevice_attribute
    assert check(driver.cuDeviceGetAttribute(names.CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, 0)) == 7
    assert check(driver.cuDeviceGetAttribute(names.CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH, 0)) == 4 << 20


@pytest.mark.parametrize("algorithm, data", [
    (DEFLATE, b"\xff" * 50),
    (DEFLATE, deflate(TEXT)[:40]),
    (DEFLATE, deflate(TEXT * 2)),
    (LZ4, b"\xf0\xff\xff"),
    (LZ4, literal_lz4(TEXT * 2)),
    (SNAPPY, b"\xff\xff\xff\xff\x0f\x00"),
    (SNAPPY, literal_snappy(TEXT)[:300]),
])  # fmt: skip
def test_wrong_data_fail_the_context_and_not_the_other_operations(tmp_path, algorithm, data):
    program = f"""
        import sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import test_decompress as t
        from cuda.bindings import driver
        from helpers.device import check
        check(driver.cuInit(0))
        check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(0))))
        source, target, counts = [t.Memory() for _ in range(3)]
        source.write({data!r})
        good = t.COMPRESSED[0][1]
        source.write(good, 32768)
        host = check(driver.cuMemHostAlloc(16, 0))
        batch = [
            t.operation(source.pointer, {len(data)}, target.pointer, len(t.TEXT), counts.pointer, t.Algorithm({int(algorithm)})),
            t.operation(source.pointer + 32768, len(good), target.pointer, len(t.TEXT), counts.pointer + 4, t.DEFLATE),
        ]
        assert t.decompress(batch) == 0
        print(int(driver.cuCtxSynchronize()[0]))
    """
    log = tmp_path / "log"
    assert output(program, environment={"CUDA_LOG_FILE": log}).split() == ["719"]
    assert "operation 0 of a batch cannot decompress" in log.read_text()
    assert "operation 1 of a batch" not in log.read_text()
