"""cuda.core: long chains and cycles of objects, numbers beyond every limit, arrays of references to Python objects."""

import array
import ctypes
import gc
import inspect
import sys
import weakref

import numpy as np
import pytest
from cuda.core import (
    Buffer,
    Device,
    DeviceMemoryResource,
    Host,
    ManagedMemoryResource,
    PinnedMemoryResource,
    VirtualMemoryResource,
)
from cuda.core.utils import StridedMemoryView

HUGE = 10**5000
"""Python does not print it."""


@pytest.fixture(autouse=True)
def nothing_is_swallowed(monkeypatch):
    """Asserts that no exception is swallowed."""
    lost = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    yield
    gc.collect()
    assert not lost, lost[0].exc_value


# Chains and cycles


@pytest.mark.parametrize("how", ["parts", "owners", "views"])
def test_long_chains_of_buffers(device, stream, how):
    """Buffers that own buffers: destruction does not recurse."""
    pool = DeviceMemoryResource(device, {})
    last = pool.allocate(4096, stream=stream)
    first = weakref.ref(last)
    address, count = int(last.handle), 0
    gc.disable()  # It would walk along the chain again and again.
    try:
        for _ in range(60_000):
            if how == "parts":
                last = last[:]
            elif how == "owners":
                last = Buffer.from_handle(address, 4096, owner=last)
            else:
                view = StridedMemoryView.from_buffer(last, (4096,), itemsize=1)
                last = Buffer.from_handle(address, 4096, owner=view)
            count += 1
        last.fill(3, stream=stream)
        assert (last.device_id, last.is_mapped, int(last.handle)) == (device.device_id, False, address)
        assert last.__cuda_array_interface__["data"][0] == address
        assert first() is not None and pool.attributes.used_mem_current > 0
        view = None
        del last
        assert first() is None
    finally:
        gc.enable()
    stream.sync()
    assert pool.attributes.used_mem_current == 0


def test_slices_of_slices_keep_the_whole_alive(device, stream):
    pool = DeviceMemoryResource(device, {})
    whole = pool.allocate(4096, stream=stream)
    part = whole[1024:]
    inner = part[1024:2048]
    assert inner.owner is part and part.owner is whole
    part.close()
    whole.close()
    stream.sync()
    assert pool.attributes.used_mem_current > 0  # Until the last slice is destroyed.
    inner.fill(7, stream=stream)
    out = bytearray(1024)
    inner.copy_to(out, stream=stream)
    stream.sync()
    assert out == b"\x07" * 1024
    with pytest.raises(RuntimeError, match="closed"):
        part[:]
    deeper = inner[512:]
    inner.close()
    assert deeper.size == 512
    deeper.close()
    stream.sync()
    assert pool.attributes.used_mem_current == 0


class Bytes(bytearray):
    """Exposes memory through the buffer protocol, and can hold references."""


class Record(ctypes.Structure):
    """A type that only NumPy can describe."""

    _fields_ = [("number", ctypes.c_int), ("value", ctypes.c_double)]


class Interface:
    """Exposes memory through an array interface with a custom description."""

    def __init__(self):
        self.memory = ctypes.create_string_buffer(16)
        self.description = [("a", "<i4")]
        self.__array_interface__ = {
            "version": 3,
            "shape": (4,),
            "typestr": "|V4",
            "descr": self.description,
            "data": (ctypes.addressof(self.memory), False),
        }


@pytest.mark.parametrize("make", [lambda: Bytes(16), Record, Interface])
def test_cycles_through_views_are_collected(make):
    """An array that refers to a view of itself is collected with it, whatever else the view keeps alive."""
    exporter = make()
    exporter.view = StridedMemoryView.from_any_interface(exporter, -1)
    exporter.part = exporter.view.view(exporter.view._layout)
    assert exporter.view.dtype is not None
    if isinstance(exporter, Interface):
        exporter.description.append(exporter)
    alive = weakref.ref(exporter)
    del exporter
    gc.collect()
    assert alive() is None


def test_view_outlives_its_cycle():
    exporter = Bytes(b"0123456789abcdef")
    exporter.view = view = StridedMemoryView.from_any_interface(exporter, -1)
    alive = weakref.ref(exporter)
    del exporter
    gc.collect()
    assert alive() is not None and bytes(memoryview(view)) == b"0123456789abcdef"
    del view
    gc.collect()
    assert alive() is None


# Numbers


def test_sizes_beyond_the_signed_range():
    """A buffer of 2**63 bytes or more is not exposed as a smaller or negative size."""
    memory = ctypes.create_string_buffer(16)
    buffer = Buffer.from_handle(ctypes.addressof(memory), 2**63)
    assert buffer.size == 2**63
    for use in (memoryview, Buffer.__dlpack__, lambda b: StridedMemoryView.from_any_interface(b, -1)):
        with pytest.raises(BufferError, match=str(2**63)):
            use(buffer)
    address = ctypes.addressof(memory)
    for key in (
        slice(None),
        slice(4),
        slice(-4, None),
        slice(2**63 - 1, 2**63 + 1),
        slice(5, 2),
        slice(-(2**70), 2**70),
    ):
        expected = range(2**63)[key]
        part = buffer[key]
        assert (int(part.handle), part.size) == (address + expected.start, max(expected.stop - expected.start, 0))
    with pytest.raises(ValueError, match="step"):
        buffer[::2]
    assert StridedMemoryView.from_buffer(buffer, (4,), dtype="u1").size == 4
    most = Buffer.from_handle(ctypes.addressof(memory), 2**63 - 1)
    assert memoryview(most).nbytes == most[:].size == 2**63 - 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="requesting flags from Python needs Python 3.12")
@pytest.mark.parametrize("shape", [(), (12,), (3, 4), (0, 3), (1,) * 9])
def test_buffer_protocol_flags(shape):
    """A consumer that does not request shape and strides gets null."""
    array = np.zeros(shape, "f4")
    view = StridedMemoryView.from_any_interface(array, -1)
    for flags in (inspect.BufferFlags.SIMPLE, inspect.BufferFlags.WRITABLE, inspect.BufferFlags.FORMAT):
        shown = view.__buffer__(flags)
        assert (shown.ndim, shown.nbytes, shown.itemsize) == (min(len(shape), 1), array.nbytes, 4)
        assert shown.shape == ((array.size,) if shape else ())
        shown.release()
    for flags in (inspect.BufferFlags.ND, inspect.BufferFlags.STRIDES, inspect.BufferFlags.FULL):
        shown = view.__buffer__(flags)
        assert (shown.shape, shown.nbytes) == (shape, array.nbytes)
        view.__release_buffer__(shown)
        shown.release()


@pytest.mark.parametrize(
    "shape, strides", [((2,), (-(2**63),)), ((2, 2), (-(2**62), -(2**62))), ((3,), (-(2**62),)), ((2,), (2**63 - 1,))]
)
def test_layouts_that_cannot_be_reversed(shape, strides):
    interface = {"version": 3, "shape": shape, "strides": strides, "typestr": "|u1", "data": (1 << 16, False)}
    exporter = type("Exporter", (), {"__array_interface__": interface})()
    with pytest.raises(ValueError, match="memory"):
        StridedMemoryView.from_array_interface(exporter)
    # Values just within the limits work in both directions.
    interface["shape"], interface["strides"] = (2,), (-(2**63) + 1,)
    view = StridedMemoryView.from_array_interface(exporter)
    back = view._layout[::-1]
    assert (back.strides, back.slice_offset, back[::-1].strides) == ((2**63 - 1,), 1 - 2**63, (1 - 2**63,))
    with pytest.raises(ValueError, match="before"):
        view._layout.required_size_in_bytes()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda d, s: d.allocate(HUGE, stream=s), "size"),
        (lambda d, s: d.allocate(-HUGE, stream=s), "size"),
        (lambda d, s: Buffer.from_handle(HUGE, 1), "ptr"),
        (lambda d, s: Buffer.from_handle(1, HUGE), "size"),
        (lambda d, s: d.allocate(4, stream=s).fill(HUGE, stream=s), "value"),
        (lambda d, s: d.allocate(4, stream=s).__dlpack__(stream=HUGE), "stream"),
        (lambda d, s: d.allocate(4, stream=s).__dlpack__(max_version=(HUGE, 0)), "max_version"),
        (lambda d, s: d.allocate(4, stream=s).__dlpack__(dl_device=(2, HUGE)), "dl_device"),
        (lambda d, s: DeviceMemoryResource(d, {"max_size": HUGE}), "max_size"),
        (lambda d, s: PinnedMemoryResource({"max_size": -HUGE}), "max_size"),
        (lambda d, s: PinnedMemoryResource({"numa_id": HUGE}), "numa_id"),
        (lambda d, s: ManagedMemoryResource({"preferred_location": HUGE}), "preferred_location"),
        (lambda d, s: VirtualMemoryResource(d, {"addr_hint": HUGE}), "addr_hint"),
        (lambda d, s: DeviceMemoryResource.from_allocation_handle(d, HUGE), "descriptor"),
        (lambda d, s: StridedMemoryView.from_any_interface(b"", HUGE), "stream_ptr"),
        (lambda d, s: StridedMemoryView.from_buffer(d.allocate(4, stream=s), (HUGE,), itemsize=1), "shape"),
        (lambda d, s: d.create_stream(options={"priority": HUGE}), "priority"),
        (lambda d, s: Device(HUGE), "device_id"),
    ],
)
def test_numbers_too_large_to_print(device, stream, call, words):
    with pytest.raises((OverflowError, ValueError, TypeError, BufferError, OSError), match=words) as raised:
        call(device, stream)
    assert "long repr" in str(raised.value)


class Asked:
    """A number that raises when its value is read."""

    def __init__(self, error):
        self.error = error

    def __index__(self):
        raise self.error

    __int__ = __index__


@pytest.mark.parametrize(
    "call",
    [
        lambda d, s, n: d.allocate(n, stream=s),
        lambda d, s, n: d.memory_resource.allocate(n, stream=s),
        lambda d, s, n: d.memory_resource.deallocate(n, 4, stream=s),
        lambda d, s, n: Buffer.from_handle(n, 4),
        lambda d, s, n: Buffer.from_handle(4, n),
        lambda d, s, n: Device(n),
        lambda d, s, n: DeviceMemoryResource(n),
    ],
)
def test_exceptions_of_numbers_propagate(device, stream, call):
    with pytest.raises(KeyboardInterrupt):
        call(device, stream, Asked(KeyboardInterrupt()))
    with pytest.raises(ZeroDivisionError, match="mine"):
        call(device, stream, Asked(ZeroDivisionError("mine")))
    # A value that is not a number gets the usual message.
    for none in (Asked(TypeError("odd")), np.zeros(3), int, None, "12", 1.5):
        if none is None and call.__code__.co_names[0] in ("Device", "DeviceMemoryResource"):
            continue  # The current device.
        with pytest.raises(TypeError, match="is of type"):
            call(device, stream, none)


@pytest.mark.parametrize("text", [b"123", bytearray(b"123"), memoryview(b"123"), array.array("b", b"123"), "123"])
def test_text_is_not_an_address(device, stream, text):
    with pytest.raises(TypeError, match="'ptr' is of type"):
        Buffer.from_handle(text, 4)
    with pytest.raises((TypeError, ValueError), match="'alloc_handle' is of type"):
        DeviceMemoryResource.from_allocation_handle(device, text)


# References to Python objects


def objects():
    return np.array([object(), [], {}], dtype=object)


@pytest.mark.parametrize(
    "make",
    [
        objects,
        lambda: memoryview(objects()),
        lambda: np.array([(object(), 1)] * 3, dtype=[("a", "O"), ("b", "i4")]),
        lambda: (ctypes.py_object * 3)(*objects()),
    ],
)
def test_arrays_of_references_are_not_copied(stream, make):
    """Only Python may copy references: they are counted."""
    source, target = make(), make()
    view, other = (StridedMemoryView.from_any_interface(array, -1) for array in (source, target))
    for call in (lambda: other.copy_from(view, stream), lambda: other.copy_to(view)):
        with pytest.raises(TypeError, match="references"):
            call()
    numbers = StridedMemoryView.from_any_interface(np.zeros(3, f"V{np.asarray(source).itemsize}"), -1)
    for call in (lambda: numbers.copy_from(view, stream), lambda: numbers.copy_to(view)):
        with pytest.raises((TypeError, ValueError), match="references|types"):
            call()
    with pytest.raises(TypeError, match="references"):
        view.view(dtype=f"V{np.asarray(source).itemsize}")


def test_memory_is_not_interpreted_as_references(device, stream):
    """Bytes are not taken for references."""
    buffer = Buffer.from_handle(ctypes.addressof(ctypes.create_string_buffer(24)), 24)
    for dtype in (object, "O", [("a", "O"), ("b", "i8")]):
        with pytest.raises(TypeError, match="references"):
            StridedMemoryView.from_buffer(buffer, (1,), dtype=dtype)
        with pytest.raises(TypeError, match="references"):
            StridedMemoryView.from_any_interface(np.zeros(3), -1).view(dtype=dtype)
    with pytest.raises(ValueError, match="numa_id"):
        Host(-1)
