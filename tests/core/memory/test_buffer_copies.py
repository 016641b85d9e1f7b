"""cuda.core.Buffer: copies and fills, to and from objects with the buffer protocol or an array interface."""

import array
import ctypes
import gc
import weakref

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import LEGACY_DEFAULT_STREAM, Buffer
from cuda.core._memory._copy_enums import CopyOptions, MemcpyOverlapMode, MemcpySrcAccessOrder

from helpers.buffers import contents
from helpers.device import check

pytestmark = pytest.mark.strict_abi


# Copies -------------------------------------------------------------------------------------------


def test_copies_between_buffers(device, stream):
    a, b = device.allocate(256, stream=stream), device.allocate(256, stream=stream)
    a.copy_from(bytes(range(256)), stream=stream)
    assert a.copy_to(b, stream=stream) is b
    assert contents(b, stream) == bytes(range(256))
    c = b.copy_to(stream=stream)
    assert c.memory_resource is b.memory_resource and c.handle != b.handle
    assert contents(c, stream) == bytes(range(256))
    c.fill(0, stream=stream)
    assert c.copy_from(b, stream=stream) is None
    assert contents(c, stream) == bytes(range(256))
    assert c.copy_to(c, stream=stream) is c


@pytest.mark.parametrize(
    "source",
    [
        bytes(range(24)),
        bytearray(range(24)),
        memoryview(bytes(range(24))),
        array.array("B", range(24)),
        (ctypes.c_uint8 * 24)(*range(24)),
        np.arange(24, dtype=np.uint8),
        np.arange(24, dtype=np.uint8).view(np.float64),
        np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
        np.arange(24, dtype=np.uint8).view("M8[s]"),
        np.arange(24, dtype=np.uint8).view([("O", "i4"), ("b", "f4")]),
    ],
    ids=lambda source: type(source).__name__ + str(getattr(source, "dtype", "")),
)
def test_buffer_protocol_as_source(device, stream, source):
    buffer = device.allocate(24, stream=stream)
    buffer.copy_from(source, stream=stream)
    assert contents(buffer, stream) == bytes(range(24))


@pytest.mark.parametrize(
    "make",
    [
        lambda: bytearray(24),
        lambda: memoryview(bytearray(24)),
        lambda: array.array("d", [0, 0, 0]),
        lambda: (ctypes.c_uint16 * 12)(),
        lambda: np.zeros((2, 3), np.float32),
        lambda: np.zeros(3, "m8[ns]"),
        lambda: np.zeros((3, 1, 8), np.int8)[:, ::-1],
    ],
)
def test_writable_buffer_protocol_as_destination(device, stream, make):
    buffer = device.allocate(24, stream=stream)
    buffer.copy_from(bytes(range(24)), stream=stream)
    out = make()
    assert buffer.copy_to(out, stream=stream) is out
    stream.sync()
    assert bytes(memoryview(out.view(np.uint8)) if isinstance(out, np.ndarray) else out) == bytes(range(24))


class Interface:
    """An object with only an array interface."""

    def __init__(self, name, keep, **fields):
        self.keep = keep
        setattr(self, name, {"version": 3, **fields})


def test_array_interfaces_as_source_and_destination(device, stream):
    buffer = device.allocate(24, stream=stream)
    host = np.arange(24, dtype=np.uint8)
    there = dict(shape=(6,), typestr="<i4")
    for data in ((host.ctypes.data, False), (host.ctypes.data, True), host):
        buffer.fill(0, stream=stream)
        buffer.copy_from(Interface("__array_interface__", host, data=data, **there), stream=stream)
        assert contents(buffer, stream) == bytes(range(24))
    strided = Interface("__array_interface__", host, data=(host.ctypes.data, False), strides=(4,), **there)
    buffer.copy_from(strided, stream=stream)
    offset = Interface("__array_interface__", host, data=np.arange(30, dtype=np.uint8), offset=6, **there)
    buffer.copy_from(offset, stream=stream)
    assert contents(buffer, stream) == bytes(range(6, 30))
    # Text has four bytes a character.
    text = np.array(["abcdef"])
    buffer.copy_from(
        Interface("__array_interface__", text, data=(text.ctypes.data, True), shape=(), typestr="<U6"), stream=stream
    )
    assert contents(buffer, stream) == text.tobytes()
    other = device.allocate(24, stream=stream)
    made_on = device.create_stream()
    for extra in ({}, {"stream": int(made_on.handle)}, {"stream": None}, {"stream": 1}):
        foreign = Interface("__cuda_array_interface__", other, data=(other.handle, False), **there, **extra)
        other.fill(9, stream=made_on)
        if extra.get("stream") in (None, 1):
            made_on.sync()
        else:
            # The copy waits for the interface's stream.
            buffer.copy_from(foreign, stream=stream)
            assert contents(buffer, stream) == b"\t" * 24
        buffer.fill(7, stream=stream)
        assert buffer.copy_to(foreign, stream=stream) is foreign
        assert contents(other, stream) == b"\7" * 24


@pytest.mark.parametrize(
    "fields, error, text",
    [
        ({"strides": (8,)}, BufferError, "contiguous"),
        ({"data": (1, True)}, BufferError, "read-only"),
        ({"data": None}, TypeError, "data"),
        ({"data": 5}, TypeError, "data"),
        ({"shape": None}, TypeError, "shape"),
        ({"shape": (-1,)}, TypeError, "shape"),
        ({"shape": (1 << 62, 4)}, TypeError, "shape"),
        ({"typestr": "f"}, TypeError, "typestr"),
        ({"typestr": "|O8"}, TypeError, "Python objects"),
        ({"strides": (4, 4)}, TypeError, "strides"),
        ({"stream": 0}, TypeError, "stream"),
    ],
)
def test_incomplete_interfaces_raise(device, stream, fields, error, text):
    buffer, other = device.allocate(24, stream=stream), device.allocate(24, stream=stream)
    given = {"shape": (6,), "typestr": "<i4", "data": (other.handle, False), **fields}
    with pytest.raises(error, match=text):
        buffer.copy_to(Interface("__cuda_array_interface__", other, **given), stream=stream)
    with pytest.raises(TypeError, match="is not a dict"):
        foreign = Interface("x", None)
        foreign.__cuda_array_interface__ = 3
        buffer.copy_from(foreign, stream=stream)


def test_invalid_copies_raise(device, stream):
    buffer, small = device.allocate(24, stream=stream), device.allocate(8, stream=stream)
    with pytest.raises(ValueError, match="24 bytes.* 8"):
        buffer.copy_to(small, stream=stream)
    with pytest.raises(ValueError, match="8 bytes.* 24"):
        buffer.copy_from(small, stream=stream)
    with pytest.raises(ValueError, match="25 bytes.* 24"):
        buffer.copy_from(bytes(25), stream=stream)
    with pytest.raises(ValueError, match="24 bytes.* 0"):
        buffer.copy_to(bytearray(), stream=stream)
    for wrong in (5, "a" * 24, None, object(), [1] * 24):
        with pytest.raises(TypeError, match="'src'.*buffer protocol"):
            buffer.copy_from(wrong, stream=stream)
    with pytest.raises(TypeError, match="'dst'"):
        buffer.copy_to(5, stream=stream)
    square = np.zeros((4, 6), np.uint8)
    for strided in (square.T, square[:, ::2], square[::-1], np.zeros(48, np.uint8)[::2]):
        with pytest.raises(BufferError, match="ascontiguousarray"):
            buffer.copy_from(strided, stream=stream)
        with pytest.raises(BufferError, match="contiguous"):
            buffer.copy_to(strided, stream=stream)
    constant = np.zeros(24, np.uint8)
    constant.flags.writeable = False
    for fixed in (bytes(24), memoryview(bytes(24)), constant):
        with pytest.raises(BufferError, match="read-only"):
            buffer.copy_to(fixed, stream=stream)
    for objects in (np.array([1, "a", None]), np.zeros(2, [("a", "O"), ("b", "i4")])):
        with pytest.raises(TypeError, match="Python objects"):
            buffer.copy_from(objects, stream=stream)
    with pytest.raises(ValueError, match="dst"):
        Buffer.from_handle(buffer.handle, 24).copy_to(stream=stream)


def test_stream_arguments(device, stream):
    a, b = device.allocate(8, stream=stream), device.allocate(8, stream=stream)

    class Protocol:
        def __cuda_stream__(self):
            return (0, int(stream.handle))

    closed = device.create_stream()
    closed.close()
    uses = [
        lambda s: a.copy_to(b, stream=s),
        lambda s: a.copy_from(b, stream=s),
        lambda s: a.fill(0, stream=s),
        lambda s: device.memory_resource.allocate(1, stream=s),
        lambda s: a.set_deallocation_stream(s),
        lambda s: a.close(s),
    ]
    for use in uses:
        for wrong in (5, "s", Protocol()):
            with pytest.raises(TypeError, match="Stream"):
                use(wrong)
        with pytest.raises(RuntimeError, match="closed"):
            use(closed)
        assert not a.is_closed
    for use in (a.copy_to, lambda: a.copy_from(b), lambda: a.fill(0)):
        with pytest.raises(TypeError, match="stream"):
            use()


def test_array_may_be_destroyed_after_the_call(device, stream):
    buffer = device.allocate(1 << 20, stream=stream)
    for round in range(4):
        array = np.full(1 << 20, round, np.uint8)
        reference = weakref.ref(array)
        buffer.copy_from(array, stream=stream)
        del array
        assert contents(buffer, stream) == bytes([round]) * (1 << 20)
        buffer.copy_from(buffer, stream=stream)
        gc.collect()
        assert reference() is None


def test_page_locked_array_stays_alive_until_the_copy_completes(device, stream):
    size = 1 << 16
    pointer = check(driver.cuMemHostAlloc(size, 0))
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(pointer))

    class Array(np.ndarray):
        pass

    memory = memory.view(Array)
    memory[:] = 5
    reference = weakref.ref(memory)
    buffer = device.allocate(size, stream=stream)
    buffer.copy_from(memory, stream=stream)
    del memory
    assert contents(buffer, stream) == b"\5" * size
    # The next copy releases it.
    buffer.fill(0, stream=stream)
    buffer.copy_to(buffer, stream=stream)
    gc.collect()
    assert reference() is None
    check(driver.cuMemFreeHost(pointer))


def test_bytearray_can_be_resized_after_the_copy(device, stream):
    data = bytearray(range(64))
    buffer = device.allocate(64, stream=stream)
    buffer.copy_from(data, stream=stream)
    stream.sync()
    buffer.copy_to(buffer, stream=stream)
    data.append(1)
    assert contents(buffer, stream) == bytes(range(64))


def test_copy_options(device, stream):
    a, b = device.allocate(64, stream=stream), device.allocate(64, stream=stream)
    a.copy_from(bytes(range(64)), stream=stream)
    for options in (
        None,
        CopyOptions(),
        CopyOptions(src_access_order="during_api_call"),
        CopyOptions(src_access_order=MemcpySrcAccessOrder.ANY, src_location_hint=device),
        CopyOptions(overlap_mode="prefer_overlap_with_compute"),
    ):
        for on in (stream, LEGACY_DEFAULT_STREAM):
            b.fill(0, stream=on)
            a.copy_to(b, stream=on, options=options)
            device.sync()
            assert contents(b, stream) == bytes(range(64))
    data = bytearray(b"a" * 64)
    a.copy_from(data, stream=stream, options=CopyOptions(src_access_order="during_api_call"))
    data[:] = b"b" * 64
    assert contents(a, stream) == b"a" * 64
    for wrong in (3, {"src_access_order": "any"}, "any"):
        with pytest.raises(TypeError, match="CopyOptions"):
            a.copy_to(b, stream=stream, options=wrong)
    with pytest.raises(TypeError, match="location_hint"):
        a.copy_to(b, stream=stream, options=CopyOptions(dst_location_hint=3))


def test_copy_options_are_value_objects():
    options = CopyOptions()
    assert options.src_access_order is MemcpySrcAccessOrder.STREAM
    assert options.overlap_mode is MemcpyOverlapMode.DEFAULT
    assert options == CopyOptions(src_access_order="stream") and hash(options) == hash(CopyOptions())
    with pytest.raises(AttributeError):
        options.overlap_mode = "default"
    for wrong in ({"src_access_order": "later"}, {"src_access_order": 1}, {"overlap_mode": "never"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            CopyOptions(**wrong)


# Fills --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, pattern",
    [
        (0, b"\0"),
        (255, b"\xff"),
        (True, b"\1"),
        (b"\7", b"\7"),
        (b"ab", b"ab"),
        (b"abcd", b"abcd"),
        (bytearray(b"xy"), b"xy"),
        (memoryview(b"wxyz"), b"wxyz"),
        (np.uint8(3), b"\3"),
        (np.uint16(3), b"\3\0"),
        (np.int32(-1), b"\xff" * 4),
        (np.float32(1), np.float32(1).tobytes()),
        (np.array([1, 2], np.uint8), b"\1\2"),
        (ctypes.c_uint32(7), b"\7\0\0\0"),
    ],
)
def test_fill_patterns(device, stream, value, pattern):
    buffer = device.allocate(12, stream=stream)
    assert buffer.fill(value, stream=stream) is None
    assert contents(buffer, stream) == pattern * (12 // len(pattern))


def test_invalid_patterns_raise(device, stream):
    buffer = device.allocate(7, stream=stream)
    for value in (256, -1, 1 << 40):
        with pytest.raises(OverflowError, match="0 to 255"):
            buffer.fill(value, stream=stream)
    for value in (1.0, "a", None, [1]):
        with pytest.raises(TypeError, match="'value'"):
            buffer.fill(value, stream=stream)
    for value in (b"", b"abc", b"12345678", np.float64(1), np.zeros(100)):
        with pytest.raises(ValueError, match="1, 2 or 4"):
            buffer.fill(value, stream=stream)
    for value in (b"ab", b"abcd"):
        with pytest.raises(ValueError, match="multiple"):
            buffer.fill(value, stream=stream)
    with pytest.raises(BufferError):
        buffer.fill(memoryview(b"12341234")[::2], stream=stream)
    shifted = Buffer.from_handle(buffer.handle + 1, 4)
    with pytest.raises(ValueError, match="aligned"):
        shifted.fill(b"abcd", stream=stream)
    shifted.fill(b"a", stream=stream)
