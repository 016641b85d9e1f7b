"""cuda.core: Buffer, its copies and fills, its life."""

import array
import copy
import ctypes
import gc
import os
import pathlib
import pickle
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import LEGACY_DEFAULT_STREAM, Buffer, Device, DeviceMemoryResource, MemoryResource
from cuda.core._memory._copy_enums import CopyOptions, MemcpyOverlapMode, MemcpySrcAccessOrder
from support import check


@pytest.fixture(scope="module")
def device():
    device = Device(0)
    device.set_current()
    return device


@pytest.fixture
def stream(device):
    stream = device.create_stream()
    yield stream
    stream.sync()
    stream.close()


@pytest.fixture
def pool(device):
    """A pool of the test's own, so that its figures are the test's."""
    return DeviceMemoryResource(device, {})


def contents(buffer, stream):
    out = np.empty(buffer.size, np.uint8)
    buffer.copy_to(out, stream=stream)
    stream.sync()
    return bytes(out)


class Host(MemoryResource):
    """Plain memory of the host, and a record of what was asked."""

    is_device_accessible = False
    is_host_accessible = True
    device_id = -1

    def __init__(self):
        self.live = {}
        self.log = []

    def allocate(self, size, *, stream=None):
        memory = (ctypes.c_char * max(size, 1))()
        address = ctypes.addressof(memory)
        self.live[address] = memory
        self.log.append(("allocate", size, stream))
        return Buffer.from_handle(address, size, mr=self)

    def deallocate(self, ptr, size, *, stream=None):
        self.log.append(("deallocate", ptr, size, stream))
        del self.live[ptr]


# Facts --------------------------------------------------------------------------------------------


def test_it_says_what_it_is(device, stream):
    buffer = device.allocate(1000, stream=stream)
    assert buffer.handle != 0 and type(buffer.handle) is int
    assert buffer.size == 1000 and buffer.device_id == 0
    assert (buffer.is_device_accessible, buffer.is_host_accessible) == (True, False)
    assert (buffer.is_managed, buffer.is_mapped, buffer.is_closed) == (False, False, False)
    assert buffer.memory_resource is device.memory_resource and buffer.owner is None
    assert repr(buffer) == f"<Buffer ptr={buffer.handle:#x} size=1000>"
    assert weakref.ref(buffer)() is buffer
    buffer.close()


def test_the_class_makes_none():
    with pytest.raises(RuntimeError, match="allocate"):
        Buffer()
    with pytest.raises(RuntimeError, match="allocate"):
        Buffer(1, size=2)


def test_equality_is_of_address_and_size(device, stream):
    buffer = device.allocate(64, stream=stream)
    same = Buffer.from_handle(buffer.handle, 64)
    assert buffer == same and hash(buffer) == hash(same) == hash((buffer.handle, 64))
    assert buffer != Buffer.from_handle(buffer.handle, 63)
    assert buffer != buffer.handle and (buffer == 3) is False
    with pytest.raises(TypeError):
        buffer < same  # noqa: B015


def test_a_closed_buffer_says_so(device, stream):
    buffer, other = device.allocate(64, stream=stream), device.allocate(64, stream=stream)
    buffer.close()
    buffer.close()
    buffer.close(stream)
    assert buffer.is_closed and (buffer.handle, buffer.size) == (0, 0)
    assert buffer.memory_resource is None and buffer.owner is None
    assert repr(buffer) == "<Buffer ptr=0x0 size=0>" and hash(buffer) == hash((0, 0))
    uses = [
        lambda: buffer.device_id,
        lambda: buffer.is_device_accessible,
        lambda: buffer.is_host_accessible,
        lambda: buffer.is_managed,
        lambda: buffer.ipc_descriptor,
        lambda: buffer.copy_to(other, stream=stream),
        lambda: buffer.copy_to(stream=stream),
        lambda: buffer.copy_from(other, stream=stream),
        lambda: other.copy_to(buffer, stream=stream),
        lambda: other.copy_from(buffer, stream=stream),
        lambda: buffer.fill(0, stream=stream),
        lambda: buffer.set_deallocation_stream(stream),
        lambda: buffer.__dlpack__(),
        lambda: buffer.__dlpack_device__(),
        lambda: pickle.dumps(buffer),
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="was closed"):
            use()


def test_with_closes_it(device, stream):
    with device.allocate(64, stream=stream) as buffer:
        assert not buffer.is_closed
    assert buffer.is_closed
    with pytest.raises(ZeroDivisionError), device.allocate(64, stream=stream) as buffer:
        _ = 1 / 0
    assert buffer.is_closed


def test_no_process_gets_it(device, stream):
    buffer = device.allocate(64, stream=stream)
    for use in (pickle.dumps, copy.copy, lambda b: b.ipc_descriptor):
        with pytest.raises(RuntimeError, match="IPC"):
            use(buffer)
    with pytest.raises(TypeError, match="ipc_descriptor"):
        Buffer.from_ipc_descriptor(device.memory_resource, None, stream=stream)


def test_no_bytes_are_no_error(device, stream):
    buffer = device.allocate(0, stream=stream)
    assert (buffer.handle, buffer.size, buffer.is_closed) == (0, 0, False)
    buffer.fill(1, stream=stream)
    buffer.copy_from(b"", stream=stream)
    buffer.copy_to(np.empty(0), stream=stream)
    assert buffer.copy_to(stream=stream).size == 0
    buffer.close()
    assert buffer.is_closed


# Copies -------------------------------------------------------------------------------------------


def test_buffers_are_copied(device, stream):
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
def test_anything_with_the_buffer_protocol_is_a_source(device, stream, source):
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
def test_anything_writable_with_the_buffer_protocol_is_a_destination(device, stream, make):
    buffer = device.allocate(24, stream=stream)
    buffer.copy_from(bytes(range(24)), stream=stream)
    out = make()
    assert buffer.copy_to(out, stream=stream) is out
    stream.sync()
    assert bytes(memoryview(out.view(np.uint8)) if isinstance(out, np.ndarray) else out) == bytes(range(24))


class Interface:
    """An object with an array interface and nothing else."""

    def __init__(self, name, keep, **fields):
        self.keep = keep
        setattr(self, name, {"version": 3, **fields})


def test_array_interfaces_are_sources_and_destinations(device, stream):
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
            # The interface's stream is waited for.
            buffer.copy_from(foreign, stream=stream)
            assert contents(buffer, stream) == b"\t" * 24
        buffer.fill(7, stream=stream)
        assert buffer.copy_to(foreign, stream=stream) is foreign
        assert contents(other, stream) == b"\7" * 24


@pytest.mark.parametrize(
    ("fields", "error", "text"),
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
def test_what_an_interface_lacks_is_said(device, stream, fields, error, text):
    buffer, other = device.allocate(24, stream=stream), device.allocate(24, stream=stream)
    given = {"shape": (6,), "typestr": "<i4", "data": (other.handle, False), **fields}
    with pytest.raises(error, match=text):
        buffer.copy_to(Interface("__cuda_array_interface__", other, **given), stream=stream)
    with pytest.raises(TypeError, match="no dictionary"):
        foreign = Interface("x", None)
        foreign.__cuda_array_interface__ = 3
        buffer.copy_from(foreign, stream=stream)


def test_what_cannot_be_copied_is_said(device, stream):
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


def test_streams_are_streams(device, stream):
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


def test_an_array_may_go_when_the_call_is_over(device, stream):
    buffer = device.allocate(1 << 20, stream=stream)
    for round in range(4):
        array = np.full(1 << 20, round, np.uint8)
        gone = weakref.ref(array)
        buffer.copy_from(array, stream=stream)
        del array
        assert contents(buffer, stream) == bytes([round]) * (1 << 20)
        buffer.copy_from(buffer, stream=stream)
        gc.collect()
        assert gone() is None


def test_page_locked_arrays_are_kept_until_the_copy_is_done(device, stream):
    size = 1 << 16
    pointer = check(driver.cuMemHostAlloc(size, 0))
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(pointer))

    class Array(np.ndarray):
        pass

    memory = memory.view(Array)
    memory[:] = 5
    gone = weakref.ref(memory)
    buffer = device.allocate(size, stream=stream)
    buffer.copy_from(memory, stream=stream)
    del memory
    assert contents(buffer, stream) == b"\5" * size
    # Whoever copies next lets go of it.
    buffer.fill(0, stream=stream)
    buffer.copy_to(buffer, stream=stream)
    gc.collect()
    assert gone() is None
    check(driver.cuMemFreeHost(pointer))


def test_a_bytearray_can_be_resized_after_the_copy(device, stream):
    data = bytearray(range(64))
    buffer = device.allocate(64, stream=stream)
    buffer.copy_from(data, stream=stream)
    stream.sync()
    buffer.copy_to(buffer, stream=stream)
    data.append(1)
    assert contents(buffer, stream) == bytes(range(64))


def test_options_say_how_it_is_copied(device, stream):
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


def test_copy_options_are_values():
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
    ("value", "pattern"),
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
def test_patterns(device, stream, value, pattern):
    buffer = device.allocate(12, stream=stream)
    assert buffer.fill(value, stream=stream) is None
    assert contents(buffer, stream) == pattern * (12 // len(pattern))


def test_what_is_no_pattern_is_said(device, stream):
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


# Memory of others ---------------------------------------------------------------------------------


def test_memory_of_nobody():
    buffer = Buffer.from_handle(0x1000, 16)
    assert (buffer.handle, buffer.size, buffer.device_id) == (0x1000, 16, -1)
    assert (buffer.is_device_accessible, buffer.is_host_accessible) == (False, True)
    assert buffer.memory_resource is None and buffer.owner is None
    assert buffer.__dlpack_device__() == (1, 0)
    buffer.close()
    assert buffer.is_closed


def test_memory_with_an_owner(device, stream):
    class Owner:
        pass

    array, owner = np.arange(16, dtype=np.uint8), Owner()
    gone = weakref.ref(owner)
    buffer = Buffer.from_handle(array.ctypes.data, 16, owner=owner)
    assert buffer.owner is owner
    del owner
    assert gone() is not None
    buffer.close()
    assert gone() is None and buffer.owner is None
    cycle = Owner()
    cycle.buffer = Buffer.from_handle(array.ctypes.data, 16, owner=cycle)
    gone = weakref.ref(cycle)
    del cycle
    gc.collect()
    assert gone() is None


def test_memory_of_the_driver(device, stream):
    pointer = check(driver.cuMemAlloc(64))
    buffer = Buffer.from_handle(pointer, 64)
    assert (buffer.device_id, buffer.is_device_accessible, buffer.is_host_accessible) == (0, True, False)
    buffer.fill(3, stream=stream)
    assert contents(buffer, stream) == b"\3" * 64
    buffer.close()
    check(driver.cuMemFree(pointer))
    pinned = check(driver.cuMemHostAlloc(64, 0))
    buffer = Buffer.from_handle(pinned, 64)
    assert (buffer.is_device_accessible, buffer.is_host_accessible, buffer.is_managed) == (True, True, False)
    assert buffer.__dlpack_device__() == (3, 0)
    check(driver.cuMemFreeHost(pinned))
    managed = check(driver.cuMemAllocManaged(64, 1))
    buffer = Buffer.from_handle(managed, 64)
    assert (buffer.is_device_accessible, buffer.is_host_accessible, buffer.is_managed) == (True, True, True)
    assert buffer.__dlpack_device__() == (13, 0)
    check(driver.cuMemFree(managed))


def test_a_thread_without_a_context_is_told_the_same(device, stream):
    memory = device.allocate(64, stream=stream)
    buffer = Buffer.from_handle(memory.handle, 64)
    answers = []

    def work():
        answers.append((buffer.device_id, buffer.is_device_accessible))
        answers.append(Buffer.from_handle(0x1000, 1).device_id)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert answers == [(0, True), -1]


def test_what_is_no_handle_is_said(device, stream):
    for wrong in ("a", None, 1.0, [1]):
        with pytest.raises(TypeError, match="'ptr'"):
            Buffer.from_handle(wrong, 1)
    for wrong in (-1, 1 << 64):
        with pytest.raises(OverflowError, match="'ptr'"):
            Buffer.from_handle(wrong, 1)
        with pytest.raises(OverflowError, match="'size'"):
            Buffer.from_handle(1, wrong)
    for wrong in ("a", None, 1.5):
        with pytest.raises(TypeError, match="'size'"):
            Buffer.from_handle(1, wrong)
    with pytest.raises(TypeError, match="'mr'"):
        Buffer.from_handle(1, 1, mr=5)
    with pytest.raises(ValueError, match="not both"):
        Buffer.from_handle(1, 1, mr=Host(), owner=3)
    with pytest.raises(ValueError, match="'stream'"):
        Buffer.from_handle(1, 1, stream=stream)
    with pytest.raises(TypeError, match="'stream'"):
        Buffer.from_handle(1, 1, mr=Host(), stream=3)
    assert Buffer.from_handle(driver.CUdeviceptr(4096), np.int64(8)).handle == 4096


def test_a_resource_frees_its_memory_once(device, stream):
    resource = Host()
    buffer = resource.allocate(10)
    address = buffer.handle
    assert buffer.memory_resource is resource and buffer.device_id == -1 and not buffer.is_managed
    buffer.close(stream)
    buffer.close()
    del buffer
    assert resource.log[1:] == [("deallocate", address, 10, stream)]
    buffer = resource.allocate(10)
    address = buffer.handle
    del buffer
    assert resource.log[-1] == ("deallocate", address, 10, device.default_stream)
    buffer = resource.allocate(10)
    buffer.set_deallocation_stream(stream)
    buffer.close()
    assert resource.log[-1][3] is stream
    memory = (ctypes.c_char * 4)()
    resource.live[ctypes.addressof(memory)] = memory
    buffer = Buffer.from_handle(ctypes.addressof(memory), 4, resource, stream=stream)
    buffer.close()
    assert resource.log[-1][3] is stream and not resource.live


def test_what_a_resource_raises_is_not_lost(device, monkeypatch):
    class Broken(Host):
        def deallocate(self, ptr, size, *, stream=None):
            raise ValueError("not today")

    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(unraisable.exc_value))
    resource = Broken()
    buffer = resource.allocate(10)
    buffer.close()
    assert buffer.is_closed
    buffer = resource.allocate(10)
    try:
        raise KeyError("on its way")
    except KeyError as error:
        del buffer
        assert error.args == ("on its way",)
    assert [str(error) for error in seen] == ["not today", "not today"]


# DLPack -------------------------------------------------------------------------------------------


def test_host_memory_is_an_array():
    resource = Host()
    buffer = resource.allocate(16)
    array = np.from_dlpack(buffer)
    assert array.shape == (16,) and array.dtype == np.int8 and array.ctypes.data == buffer.handle
    array[:] = 7
    assert bytes(resource.live[buffer.handle]) == b"\7" * 16
    # The memory stays while the array needs it, whatever becomes of the buffer.
    address = buffer.handle
    buffer.close()
    assert buffer.is_closed and address in resource.live
    del buffer
    gc.collect()
    assert address in resource.live and array[3] == 7
    del array
    gc.collect()
    assert not resource.live


def test_capsules(device, stream):
    buffer = device.allocate(64, stream=stream)
    assert buffer.__dlpack_device__() == (2, 0)
    for arguments, name in [
        ({}, "dltensor"),
        ({"max_version": (0, 8)}, "dltensor"),
        ({"max_version": (1, 0)}, "dltensor_versioned"),
        ({"max_version": (2, 5), "stream": -1}, "dltensor_versioned"),
        ({"stream": 1}, "dltensor"),
        ({"stream": 2}, "dltensor"),
        ({"stream": int(stream.handle), "dl_device": (2, 0), "copy": False}, "dltensor"),
    ]:
        assert f'"{name}"' in repr(buffer.__dlpack__(**arguments))
    for arguments, error in [
        ({"dl_device": (1, 0)}, BufferError),
        ({"dl_device": 3}, TypeError),
        ({"copy": True}, BufferError),
        ({"max_version": 1}, TypeError),
        ({"max_version": (1, 0, 0)}, BufferError),
        ({"stream": stream}, TypeError),
        ({"stream": -2}, TypeError),
    ]:
        with pytest.raises(error, match=next(iter(arguments))):
            buffer.__dlpack__(**arguments)
    gone = weakref.ref(buffer)
    capsule = buffer.__dlpack__()
    del buffer
    assert gone() is not None
    del capsule
    assert gone() is None


def test_memory_of_nobody_is_not_exported():
    class Nowhere(Host):
        is_host_accessible = False

    buffer = Nowhere().allocate(4)
    for use in (buffer.__dlpack__, buffer.__dlpack_device__):
        with pytest.raises(BufferError, match="neither"):
            use()


# Life ---------------------------------------------------------------------------------------------


def used(pool, device):
    device.sync()
    return pool.attributes.used_mem_current


def test_everything_is_freed_in_any_order(device, pool):
    for order in range(6):
        stream, other = device.create_stream(), device.create_stream()
        buffer = pool.allocate(1 << 16, stream=stream)
        buffer.fill(1, stream=other)
        if order == 0:
            buffer.close()
        elif order == 1:
            stream.close()
            buffer.close()
        elif order == 2:
            stream.close()
            other.close()
            del buffer
        elif order == 3:
            buffer.close(other)
            other.close()
        elif order == 4:
            buffer.set_deallocation_stream(other)
            other.close()
            stream.close()
            buffer.close()
        else:
            buffer.copy_to(stream=other).close(stream)
            buffer.close(LEGACY_DEFAULT_STREAM)
        buffer = None
        gc.collect()
        assert used(pool, device) == 0, order
    own = DeviceMemoryResource(device, {})
    buffer = own.allocate(64, stream=device.default_stream)
    own.close()
    del own
    assert buffer.memory_resource.is_closed
    buffer.fill(1, stream=device.default_stream)
    buffer.close()


def test_another_thread_may_free_it(device, pool):
    buffers = [pool.allocate(1 << 10, stream=s) for s in (device.create_stream(), device.default_stream) * 20]

    def work():
        # No context is current here.
        while buffers:
            buffers.pop().close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert used(pool, device) == 0


def test_threads_close_one_buffer_once(device, pool):
    stream = device.create_stream()
    for _ in range(50):
        buffer = pool.allocate(256, stream=stream)
        barrier = threading.Barrier(4)

        def work(buffer=buffer, barrier=barrier):
            barrier.wait()
            try:
                buffer.fill(1, stream=stream)
            except RuntimeError:
                pass
            buffer.close()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert used(pool, device) == 0


def test_memory_stays_flat(device, pool):
    stream = device.create_stream()
    host = np.zeros(256, np.uint8)
    for _ in range(2000):
        with pool.allocate(256, stream=stream) as buffer:
            buffer.copy_from(host, stream=stream)
            buffer.__dlpack__()
    assert used(pool, device) == 0
    assert pool.attributes.reserved_mem_high <= 64 << 20


CHILD = """
    import os, sys
    import numpy as np
    from cuda.core import Device, DeviceMemoryResource, Buffer, MemoryResource

    class Host(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = False, True, -1
        # At the end of the interpreter a module has no names any more.
        def deallocate(self, ptr, size, *, stream, print=print, getpid=os.getpid, parent=os.getpid()):
            print("deallocate in", "child" if getpid() != parent else "parent", flush=True)

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    pool = DeviceMemoryResource(device, {})
    buffer = pool.allocate(64, stream=stream)
    array = np.zeros(64, np.uint8)
    buffer.copy_from(array, stream=stream)
    own = Buffer.from_handle(array.ctypes.data, 64, mr=Host())
    export = buffer.__dlpack__()
"""


def run(code):
    path = os.pathsep.join([str(pathlib.Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore::RuntimeWarning,ignore::DeprecationWarning"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD) + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_the_end_of_the_interpreter():
    assert run("keep = [buffer, pool, stream]; keep.append(keep)") == "deallocate in parent\n"


def test_the_end_of_the_interpreter_in_a_cycle():
    run("import builtins; builtins.keep = (buffer, export, own)")


def test_a_forked_child_frees_nothing():
    out = run(
        """
        child = os.fork()
        if child == 0:
            del export
            buffer.close()
            own.close()
            del buffer, own
            pool.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print("parent", flush=True)
        buffer.fill(1, stream=stream)
        stream.sync()
        buffer.close()
        own.close()
        """
    )
    assert out == "parent\ndeallocate in parent\n"
