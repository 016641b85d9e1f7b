"""cuda.core.utils.StridedMemoryView: arrays of any library through every protocol, valid and invalid."""

import array
import contextlib
import copy
import ctypes
import gc
import io
import pickle
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest
from cuda.core import Buffer
from cuda.core._layout import _StridedLayout
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.utils import StridedMemoryView, args_viewable_as_strided_memory

from helpers.array_interface import Ai, Cai, facts, floats
from helpers.dlpack import Exporter
from helpers.threads import run_all

pytestmark = pytest.mark.strict_abi

# NumPy and the host


@pytest.mark.parametrize("how", ["from_dlpack", "from_any_interface", "from_array_interface"])
def test_numpy_array(how):
    source = floats()
    arguments = () if how == "from_array_interface" else (-1,)
    view = getattr(StridedMemoryView, how)(source, *arguments)
    strides = None if how == "from_array_interface" else (4, 1)
    assert facts(view) == (source.ctypes.data, (3, 4), strides, 12, np.float32, -1, False)
    assert view.exporting_obj is source and view.readonly is False
    assert view.__dlpack_device__() == (1, 0)
    back = np.from_dlpack(view)
    back[1, 2] = 77
    assert source[1, 2] == 77


def test_strides_count_elements():
    source = floats()
    for part in (source.T, source[::-1], source[:, ::2], source[1:, 1:]):
        for view in (StridedMemoryView.from_dlpack(part, -1), StridedMemoryView.from_array_interface(part)):
            assert view.ptr == part.ctypes.data and view.shape == part.shape
            assert view.strides == tuple(s // 4 for s in part.strides)
            assert np.array_equal(np.from_dlpack(view), part)
            assert np.array_equal(np.asarray(view), part)


@pytest.mark.parametrize("shape", [(), (0,), (0, 4), (4, 0), (1, 1, 1)])
def test_unusual_shapes(shape):
    source = np.ones(shape)
    for view in (StridedMemoryView.from_dlpack(source, -1), StridedMemoryView.from_array_interface(source)):
        assert view.shape == shape and view.size == source.size
        assert np.from_dlpack(view).shape == shape
        assert np.asarray(memoryview(view)).shape == shape


@pytest.mark.parametrize("name", "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split())
def test_types_round_trip(name):
    source = np.ones(5, dtype=name)
    for view in (StridedMemoryView.from_dlpack(source, -1), StridedMemoryView.from_array_interface(source)):
        assert view.dtype == source.dtype and view.dtype is view.dtype
        assert np.from_dlpack(view).dtype == source.dtype
        assert np.asarray(memoryview(view)).dtype == source.dtype
        assert np.array_equal(np.asarray(view), source)
        again = StridedMemoryView.from_any_interface(view, -1)
        assert facts(again)[:2] == facts(view)[:2] and again.dtype == source.dtype


@pytest.mark.parametrize("name", [">f4", "S3", "U2", "M8[s]", "O", "g", "V4"])
def test_types_without_dlpack_representation(name):
    source = np.zeros(2, dtype=name)
    view = StridedMemoryView.from_array_interface(source)
    assert view.dtype == source.dtype and view._layout.itemsize == source.itemsize
    with pytest.raises(BufferError):
        view.__dlpack__()
    with pytest.raises(BufferError):
        memoryview(view)


def test_structured_types():
    plain = np.dtype([("x", "f4"), ("y", "i4")])
    padded = np.dtype({"names": ["a", "b"], "formats": ["u1", "f8"], "offsets": [0, 8], "itemsize": 24})
    for dtype in (plain, padded):
        source = np.zeros(3, dtype=dtype)
        view = StridedMemoryView.from_array_interface(source)
        assert view.dtype.names == dtype.names and view.dtype.itemsize == dtype.itemsize
        assert [view.dtype.fields[n][1] for n in dtype.names] == [dtype.fields[n][1] for n in dtype.names]
        np.asarray(view)[dtype.names[0]][1] = 5
        assert source[dtype.names[0]][1] == 5
        with pytest.raises(BufferError, match="no type"):
            view.__dlpack__()
    # A description that contradicts the size is refused.
    assert (
        StridedMemoryView.from_array_interface(Ai(np.zeros(99), typestr="|V8", descr=[("x", "f8"), ("y", "f8")])).dtype
        == "V8"
    )


def test_read_only_arrays():
    source = floats()
    source.flags.writeable = False
    for view in (StridedMemoryView.from_dlpack(source, -1), StridedMemoryView.from_array_interface(source)):
        assert view.readonly is True and view.view(view._layout[1:]).readonly is True
        assert np.from_dlpack(view).flags.writeable is False
        assert memoryview(view).readonly and np.asarray(view).flags.writeable is False
    assert StridedMemoryView.from_any_interface(b"abc", -1).readonly is True


def test_buffer_protocol_export():
    numbers = array.array("h", [1, 2, 3])
    view = StridedMemoryView.from_any_interface(numbers, -1)
    assert view.shape == (3,) and view.dtype == np.int16 and view.exporting_obj is numbers
    np.from_dlpack(view)[1] = 9
    assert numbers[1] == 9
    with pytest.raises(BufferError):
        numbers.append(4)  # The memory is exported.
    del view
    gc.collect()
    numbers.append(4)
    two = memoryview(bytearray(24)).cast("i", (2, 3))
    assert StridedMemoryView.from_any_interface(two, -1).shape == (2, 3)

    class Point(ctypes.Structure):
        _fields_ = [("x", ctypes.c_float), ("y", ctypes.c_int)]

    points = StridedMemoryView.from_any_interface((Point * 2)(), -1)
    assert points.shape == (2,) and points.dtype.names == ("x", "y")


def test_memoryview_of_a_view_honours_the_flags():
    source = floats()
    shown = memoryview(StridedMemoryView.from_array_interface(source))
    assert shown.format == "f" and shown.shape == (3, 4) and shown.strides == (16, 4) and shown.nbytes == 48
    shown[2, 3] = 5.5
    assert source[2, 3] == 5.5
    with pytest.raises(BufferError, match="contiguous"):
        io.BytesIO().write(StridedMemoryView.from_array_interface(source.T))
    assert io.BytesIO().write(StridedMemoryView.from_array_interface(source)) == 48
    assert memoryview(StridedMemoryView.from_array_interface(source.T)).strides == (4, 16)
    assert bytes(StridedMemoryView.from_any_interface(b"abc", -1)) == b"abc"


# __array_interface__


@pytest.mark.parametrize(
    "changes, error",
    [
        ({"version": 2}, BufferError),
        ({"version": ...}, BufferError),
        ({"version": "x"}, TypeError),
        ({"mask": 3}, BufferError),
        ({"shape": ...}, KeyError),
        ({"shape": [3, 4]}, TypeError),
        ({"shape": 3}, TypeError),
        ({"shape": (-3, 4)}, ValueError),
        ({"shape": ("x",)}, TypeError),
        ({"shape": (1 << 70,)}, OverflowError),
        ({"shape": (1 << 62, 1 << 62)}, ValueError),
        ({"shape": (1,) * 65}, ValueError),
        ({"strides": (16,)}, ValueError),
        ({"strides": (15, 4)}, ValueError),
        ({"strides": "ab"}, TypeError),
        ({"strides": (1 << 62, 4)}, ValueError),
        ({"typestr": ...}, KeyError),
        ({"typestr": "zz"}, TypeError),
        ({"typestr": "<f"}, TypeError),
        ({"typestr": "<f99999999999999999999"}, TypeError),
        ({"typestr": "|V0"}, ValueError),
        ({"typestr": 3}, TypeError),
        ({"data": ...}, KeyError),
        ({"data": None}, TypeError),
        ({"data": 3}, TypeError),
        ({"data": (0, False)}, BufferError),
        ({"data": (1, False, 2)}, ValueError),
        ({"data": ("x", False)}, TypeError),
        ({"data": (-1, False)}, OverflowError),
        ({"data": bytearray(47)}, ValueError),
        ({"data": bytearray(48), "offset": 1}, ValueError),
        ({"data": bytearray(48), "offset": -1}, OverflowError),
        ({"data": bytearray(480), "strides": (-16, 4)}, ValueError),
    ],
)
def test_invalid_array_interfaces_are_refused(changes, error, buffer):
    source = floats()
    with pytest.raises(error):
        StridedMemoryView.from_array_interface(Ai(source, **changes))
    if "offset" not in changes and not isinstance(changes.get("data"), bytearray):
        with pytest.raises(error):
            StridedMemoryView.from_cuda_array_interface(Cai(buffer, **changes), -1)


def test_array_interface_with_a_memory_object():
    memory = bytearray(64)
    view = StridedMemoryView.from_array_interface(Ai(floats(), data=memory, offset=16))
    np.from_dlpack(view)[0, 0] = 1
    assert memory[16:20] == np.float32(1).tobytes()


def test_objects_without_a_protocol_raise():
    class Half:
        def __dlpack_device__(self):
            return 1, 0

    class Off:
        __dlpack__ = __dlpack_device__ = __cuda_array_interface__ = None

    for nothing in (3, None, "text", [1.0], Half(), Off(), object()):
        with pytest.raises(BufferError, match=type(nothing).__name__):
            StridedMemoryView.from_any_interface(nothing, -1)
    for method in ("from_dlpack", "from_cuda_array_interface"):
        with pytest.raises(AttributeError):
            getattr(StridedMemoryView, method)(3, -1)
    with pytest.raises(AttributeError):
        StridedMemoryView.from_array_interface(3)


# Streams


@pytest.mark.parametrize("method", ["from_dlpack", "from_cuda_array_interface", "from_any_interface"])
def test_stream_ptr_is_required(method, buffer, stream):
    make = getattr(StridedMemoryView, method)
    source = Cai(buffer) if "cuda" in method else buffer
    for arguments in ((), (None,)):
        with pytest.raises(BufferError, match="stream_ptr"):
            make(source, *arguments)
    for wrong in ("x", 1.5, [], object()):
        with pytest.raises(TypeError, match="stream_ptr"):
            make(source, wrong)
    for wrong in (-2, 1 << 64):
        with pytest.raises(ValueError, match="stream_ptr"):
            make(source, wrong)
    for right in (-1, 0, 1, int(stream.handle), stream, stream.handle):
        assert make(source, stream_ptr=right).ptr == int(buffer.handle)


def test_dlpack_receives_the_stream(stream):
    source = floats()
    requested = {}
    for given in (-1, 0, 1, 2, int(stream.handle)):
        exporter = Exporter(source, says=(13, 0), device=(13, 0))
        StridedMemoryView.from_dlpack(exporter, given)
        requested[given] = exporter.calls
    assert requested == {
        given: [{"stream": None if given == 0 else given, "max_version": (1, 3)}] for given in requested
    }
    host = Exporter(source)
    StridedMemoryView.from_dlpack(host, 1)
    assert host.calls == [{"stream": None, "max_version": (1, 3)}]


def test_exporters_before_version_1():
    source = floats()

    class Old(Exporter):
        def __dlpack__(self, *, stream):
            return super().__dlpack__(stream=stream)

    old = Old(source)
    assert StridedMemoryView.from_dlpack(old, -1).shape == (3, 4)
    assert old.calls == [{"stream": None}]


def test_view_waits_for_the_interfaces_stream(device, buffer, stream):
    other = device.create_stream()
    # The producer's queued work completes before the consumer's runs.
    for producer, consumer in ((stream, other), (other, stream)):
        for value in range(20):
            buffer.fill(value, stream=producer)
            view = StridedMemoryView.from_cuda_array_interface(
                Cai(buffer, stream=int(producer.handle)), int(consumer.handle)
            )
            out = np.zeros(96, dtype=np.uint8)
            buffer.copy_to(out, stream=consumer)
            consumer.sync()
            assert (out == value).all() and view.ptr == int(buffer.handle)
    StridedMemoryView.from_cuda_array_interface(Cai(buffer, stream=1), int(stream.handle))
    StridedMemoryView.from_cuda_array_interface(Cai(buffer, stream=12345), -1)
    for wrong, error in ((0, ValueError), (-1, ValueError), ("x", TypeError)):
        with pytest.raises(error, match="stream"):
            StridedMemoryView.from_cuda_array_interface(Cai(buffer, stream=wrong), int(stream.handle))
    other.close()


# Device memory


def test_cuda_array_interface(buffer, device):
    view = StridedMemoryView.from_cuda_array_interface(Cai(buffer), -1)
    assert facts(view) == (int(buffer.handle), (3, 4), None, 12, np.float32, device.device_id, True)
    assert view.__dlpack_device__() == (2, device.device_id)
    assert StridedMemoryView.from_cuda_array_interface(Cai(buffer, strides=(4, 12)), -1).strides == (1, 3)
    assert StridedMemoryView.from_cuda_array_interface(Cai(buffer, data=(int(buffer.handle), 1)), -1).readonly is True
    empty = StridedMemoryView.from_cuda_array_interface(Cai(buffer, shape=(0, 4), data=(0, False)), -1)
    assert empty.ptr == 0 and empty.size == 0 and empty.is_device_accessible


def test_device_memory_is_not_exported_to_the_host(buffer):
    view = StridedMemoryView.from_dlpack(buffer, -1)
    assert not hasattr(view, "__array_interface__")
    with pytest.raises(BufferError, match="device"):
        memoryview(view)
    assert not hasattr(StridedMemoryView.from_array_interface(floats()), "__cuda_array_interface__")


def test_exported_cuda_array_interface(buffer, stream):
    view = StridedMemoryView.from_buffer(buffer, (2, 3), (4, 1), dtype=np.dtype("f4"))
    given = view.__cuda_array_interface__
    assert given == {
        "shape": (2, 3),
        "typestr": "<f4",
        "data": (int(buffer.handle), False),
        "version": 3,
        "strides": (16, 4),
        "stream": int(stream.handle),
    }
    again = StridedMemoryView.from_cuda_array_interface(view, int(stream.handle))
    assert facts(again) == facts(view)


@pytest.mark.cpu
def test_addresses_unknown_to_the_driver_raise(buffer):
    for address in (1234, floats().ctypes.data):
        with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
            StridedMemoryView.from_cuda_array_interface(Cai(buffer, data=(address, False)), -1)


# from_buffer and view


def test_from_buffer(buffer):
    view = StridedMemoryView.from_buffer(buffer, (3, 4), dtype=np.dtype("f4"))
    assert facts(view) == (int(buffer.handle), (3, 4), None, 12, np.float32, 0, True)
    assert view.exporting_obj is buffer and view.readonly is False
    assert StridedMemoryView.from_buffer(buffer, (3, 4), (8, 1), itemsize=4).strides == (8, 1)
    assert StridedMemoryView.from_buffer(buffer, (3, 4), itemsize=4).dtype is None
    assert StridedMemoryView.from_buffer(buffer, shape=(3,), dtype="f8", is_readonly=True).readonly is True
    for arguments, keywords, error in (
        (((3, 4),), {}, ValueError),
        (((3, 4),), {"itemsize": 8, "dtype": "f4"}, ValueError),
        (((3, 4),), {"itemsize": 0}, ValueError),
        (((3, 40),), {"itemsize": 4}, ValueError),
        (((3, 4), (-4, 1)), {"itemsize": 4}, ValueError),
        (((3, 4), (4,)), {"itemsize": 4}, ValueError),
        (((-3,),), {"itemsize": 4}, ValueError),
        (([3, 4],), {"itemsize": 4}, TypeError),
        (((3, 4), [4, 1]), {"itemsize": 4}, TypeError),
        (((3, 4),), {"itemsize": "4"}, TypeError),
        (((3, 4),), {"dtype": "nonsense"}, TypeError),
    ):
        with pytest.raises(error):
            StridedMemoryView.from_buffer(buffer, *arguments, **keywords)
    with pytest.raises(TypeError, match="buffer"):
        StridedMemoryView.from_buffer(floats(), (3,), itemsize=4)


def test_view_keeps_its_memory_alive(device, stream):
    buffer = device.allocate(64, stream=stream)
    buffer.fill(7, stream=stream)
    view = StridedMemoryView.from_buffer(buffer, (64,), dtype="u1")
    address = int(buffer.handle)
    buffer.close()
    assert view.ptr == address
    out = np.zeros(64, dtype=np.uint8)
    StridedMemoryView.from_array_interface(out).copy_from(view, stream)
    assert (out == 7).all()
    with pytest.raises(RuntimeError, match="closed"):
        StridedMemoryView.from_buffer(buffer, (1,), itemsize=1)


def test_views_of_a_view_stay_inside(buffer):
    whole = StridedMemoryView.from_buffer(buffer, (3, 4), dtype="f4")
    assert whole.view() is whole
    assert whole.view(_StridedLayout((24,), None, 4)).size == 24  # The whole buffer.
    with pytest.raises(ValueError, match="0 to 96"):
        whole.view(_StridedLayout((25,), None, 4))
    source = floats()
    view = StridedMemoryView.from_array_interface(source)
    part = view.view(view._layout[1:, ::2])
    assert part.ptr == source[1:, ::2].ctypes.data and part.exporting_obj is source
    assert np.array_equal(np.from_dlpack(part), source[1:, ::2])
    again = part.view(part._layout[1:])  # Layouts count from the same base.
    assert np.array_equal(np.from_dlpack(again), source[2:, ::2])
    for outside in (_StridedLayout((13,), None, 4), _StridedLayout((3,), (-1,), 4)):
        with pytest.raises(ValueError):
            view.view(outside)
    back = StridedMemoryView.from_array_interface(source[::-1])
    assert np.array_equal(np.from_dlpack(back.view(back._layout[::-1])), source)


def test_a_layout_is_one_object_in_all_views_to_which_it_is_applied(buffer):
    view = StridedMemoryView.from_buffer(buffer, (4, 4), dtype=np.dtype("f4"))
    for layout in (view._layout[1:, ::2], view._layout[::-1], _StridedLayout((4, 4), None, 4)):
        part = view.view(layout)
        assert part._layout is layout and part.ptr - view.ptr == layout.slice_offset_in_bytes
        assert part.view()._layout is layout and part.view(dtype=np.dtype("i4"))._layout is layout
        assert view.view(part._layout, np.dtype("i4"))._layout is layout
    source = np.arange(12, dtype="i4")[::-1]
    back = StridedMemoryView.from_any_interface(source, -1)
    layout = back._layout[2:]
    assert layout.slice_offset == -2 and layout.slice_offset_in_bytes == -8
    part = back.view(layout)
    assert part._layout is layout and part.ptr == back.ptr - 8
    assert np.array_equal(np.from_dlpack(part), source[2:])


def test_view_as_another_type(buffer):
    source = floats()
    view = StridedMemoryView.from_array_interface(source)
    assert np.array_equal(np.from_dlpack(view.view(dtype="i4")), source.view("i4"))
    assert view.view(dtype=np.int32).dtype == np.int32
    packed = view.view(view._layout.repacked(8), np.complex64)
    assert np.array_equal(np.from_dlpack(packed), source.view("c8"))
    for layout, dtype in ((None, "f8"), (view._layout.repacked(8), None), (view._layout, "f8")):
        with pytest.raises(ValueError):
            view.view(layout, dtype)
    for wrong in (3, (4, 3)):
        with pytest.raises(TypeError, match="layout"):
            view.view(wrong)
    untyped = StridedMemoryView.from_buffer(buffer, (4,), itemsize=4)
    with pytest.raises(BufferError, match="dtype"):
        untyped.__dlpack__()
    assert untyped.view(dtype="f4").dtype == np.float32 and untyped.view(_StridedLayout((2,), None, 8)).dtype is None


# Copies


@pytest.mark.parametrize("shape", [(), (0, 4), (5,), (3, 4), (2, 3, 4), (2, 3, 4, 5)])
def test_copies_between_layouts(device, stream, shape):
    rng = np.random.default_rng(3)
    source = rng.integers(0, 1000, shape, dtype=np.int32)
    buffer = device.allocate(max(source.nbytes, 1) * 2, stream=stream)
    axes = tuple(reversed(range(len(shape))))
    for make in (
        lambda a: a,
        lambda a: a.T.copy().T,
        lambda a: a[..., ::-1] if a.ndim else a,
        lambda a: np.repeat(a, 2, -1)[..., ::2] if a.ndim else a,
    ):
        for order in (None, _StridedLayout.dense(shape, 4, axes).strides):
            given = make(source)
            there = StridedMemoryView.from_buffer(buffer, shape, order, dtype=np.dtype("i4"))
            there.copy_from(StridedMemoryView.from_array_interface(given), stream)
            back = make(np.zeros(shape, dtype=np.int32))
            there.copy_to(StridedMemoryView.from_array_interface(back), stream)
            assert np.array_equal(back, given)
    other = device.allocate(max(source.nbytes, 1), stream=stream)
    flat = StridedMemoryView.from_buffer(other, shape, dtype="i4")
    there = StridedMemoryView.from_buffer(buffer, shape, dtype="i4")
    there.copy_from(StridedMemoryView.from_array_interface(source), stream)
    flat.copy_from(there, stream)
    back = np.zeros(shape, dtype=np.int32)
    flat.copy_to(StridedMemoryView.from_array_interface(back), stream, blocking=True)
    assert np.array_equal(back, source)
    buffer.close()
    other.close()


def test_invalid_copies_raise(device, stream, buffer):
    there = StridedMemoryView.from_buffer(buffer, (3, 4), dtype="f4")
    here = StridedMemoryView.from_array_interface(floats())
    for other in (floats(), None, buffer):
        with pytest.raises(TypeError, match="other"):
            there.copy_from(other, stream)
    for wrong in (
        StridedMemoryView.from_array_interface(floats().reshape(4, 3)),
        StridedMemoryView.from_array_interface(floats().astype("i4")),
        StridedMemoryView.from_array_interface(floats().astype("f8")),
    ):
        with pytest.raises(ValueError):
            there.copy_from(wrong, stream)
    with pytest.raises(ValueError, match="read-only"):
        StridedMemoryView.from_buffer(buffer, (3, 4), dtype="f4", is_readonly=True).copy_from(here, stream)
    with pytest.raises(ValueError, match="share"):
        StridedMemoryView.from_buffer(buffer, (3, 4), (0, 1), dtype="f4").copy_from(here, stream)
    for keywords in ({"blocking": 3}, {"allocator": 3}):
        with pytest.raises(TypeError):
            there.copy_from(here, stream, **keywords)
    with pytest.raises(TypeError):
        there.copy_from(here)
    with pytest.raises(TypeError, match="stream"):
        there.copy_from(here, 3)


def test_copies_keep_their_memory_alive(device, stream):
    buffer = device.allocate(1 << 16, stream=stream)
    there = StridedMemoryView.from_buffer(buffer, (1 << 16,), dtype="u1")
    source = np.full(1 << 16, 9, dtype=np.uint8)
    life = weakref.ref(source)
    there.copy_from(StridedMemoryView.from_array_interface(source), stream, blocking=False)
    del source
    out = np.zeros(1 << 16, dtype=np.uint8)
    there.copy_to(StridedMemoryView.from_array_interface(out), stream)
    assert (out == 9).all()
    stream.sync()
    buffer.copy_to(out, stream=stream)  # A later call releases completed copies.
    gc.collect()
    assert life() is None
    buffer.close()


# The decorator


def test_args_viewable_as_strided_memory(buffer):
    @args_viewable_as_strided_memory((1,))
    def function(x, y, z=3):
        """Doc."""
        return y

    source = floats()
    assert function.__name__ == "function" and function.__doc__ == "Doc." and function.__wrapped__
    proxy = function(1, source)
    assert proxy.obj is source and proxy.has_dlpack is True
    assert proxy.view(-1).shape == (3, 4)
    assert function(1, Cai(buffer)).has_dlpack is False
    assert function(1, Cai(buffer)).view(-1).ptr == int(buffer.handle)
    assert function(1, y=source).view(stream_ptr=-1).shape == (3, 4)
    for view in (proxy.view, lambda: proxy.view(None)):
        with pytest.raises(BufferError):
            view()
    with pytest.raises(BufferError, match="int"):
        function(1, 3)
    with pytest.raises(TypeError, match="missing"):
        function(1)
    both = args_viewable_as_strided_memory((0, -1, 0))(lambda *a: a)
    assert [p.obj for p in both(source, buffer)] == [source, buffer]
    default = args_viewable_as_strided_memory((1,))(lambda a, b=None: b)
    assert default(1) is None
    with pytest.raises(IndexError, match="5"):
        args_viewable_as_strided_memory((5,))(lambda a: a)(source)
    for wrong in ([0], 0, None):
        with pytest.raises(TypeError, match="arg_indices"):
            args_viewable_as_strided_memory(wrong)
    with pytest.raises(TypeError):
        args_viewable_as_strided_memory(("x",))(lambda a: a)(source)


# The object


def test_class_attributes(buffer):
    view = StridedMemoryView.from_array_interface(floats())
    assert repr(view) == (
        f"StridedMemoryView(ptr={view.ptr},\n                  shape=(3, 4),\n                  strides=None,\n"
        "                  itemsize=4,\n                  dtype=numpy.dtypes.Float32DType,\n"
        "                  device_id=-1,\n                  is_device_accessible=False,\n"
        "                  readonly=False,\n                  exporting_obj=numpy.ndarray)"
    )
    assert view.shape is view.shape and view._layout is view._layout
    assert view == view and hash(view) and view != StridedMemoryView.from_array_interface(floats())
    assert weakref.ref(view)() is view
    for name in (
        "ptr",
        "shape",
        "strides",
        "dtype",
        "device_id",
        "is_device_accessible",
        "readonly",
        "exporting_obj",
        "new",
    ):
        with pytest.raises(AttributeError):
            setattr(view, name, 3)
    for function in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            function(view)


def test_derived_classes(buffer):
    class Mine(StridedMemoryView):
        pass

    made = [
        Mine.from_dlpack(buffer, -1),
        Mine.from_any_interface(buffer, -1),
        Mine.from_cuda_array_interface(Cai(buffer), -1),
        Mine.from_array_interface(floats()),
        Mine.from_buffer(buffer, (4,), itemsize=4),
    ]
    made.append(made[-1].view(dtype="f4"))
    for view in made:
        assert type(view) is Mine
        view.more = 3


def test_constructor_is_deprecated(buffer):
    with pytest.warns(DeprecationWarning):
        assert StridedMemoryView(buffer, -1).size == 96
    with pytest.warns(DeprecationWarning):
        assert StridedMemoryView(Cai(buffer), stream_ptr=-1).size == 12
    with pytest.warns(DeprecationWarning):
        empty = StridedMemoryView()
    assert (empty.ptr, empty.size, empty.dtype, empty.exporting_obj) == (0, 0, None, None)
    with pytest.warns(DeprecationWarning), pytest.raises(BufferError):
        StridedMemoryView(buffer)
    for other in (3, b"abc", Ai(floats())):
        with pytest.raises(BufferError):
            StridedMemoryView(other, -1)


def test_invalid_constructor_arguments_raise_before_the_warning(buffer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError, match="stream_ptr"):
            StridedMemoryView(Cai(buffer), "x")
        with pytest.raises(BufferError, match="exposes no memory"):
            StridedMemoryView(3)
        with pytest.raises(BufferError, match="from_any_interface"):
            StridedMemoryView(b"abc")


def test_zero_dimensional_tensor_has_no_strides(buffer):
    view = StridedMemoryView.from_buffer(buffer, (), dtype="f4")
    again = StridedMemoryView.from_dlpack(view, -1)
    assert again.strides is None and again.shape == () and again.ptr == view.ptr


def test_cycles_are_collected():
    class Exporting:
        pass

    source = Exporting()
    life = weakref.ref(source)
    source.__array_interface__ = Ai(floats()).__array_interface__
    source.view = StridedMemoryView.from_array_interface(source)
    del source
    gc.collect()
    assert life() is None


def test_views_do_not_leak(buffer):
    source = floats()
    view = StridedMemoryView.from_dlpack(source, -1)
    interface = Cai(buffer)

    def once():
        StridedMemoryView.from_dlpack(source, -1)
        StridedMemoryView.from_dlpack(view, -1)
        StridedMemoryView.from_dlpack(buffer, -1)
        StridedMemoryView.from_array_interface(source)
        StridedMemoryView.from_cuda_array_interface(interface, -1)
        StridedMemoryView.from_any_interface(b"abc", -1)
        view.view(view._layout[1:])
        view.__dlpack__(max_version=(1, 0))
        np.from_dlpack(view)
        memoryview(view)
        view.dtype, view.shape, view.strides, repr(view)
        with contextlib.suppress(BufferError):
            StridedMemoryView.from_dlpack(Exporter(source, ndim=-1), -1)

    for _ in range(100):
        once()
    gc.collect()
    counted = [sys.getrefcount(o) for o in (source, buffer, view, interface, source.dtype, StridedMemoryView)]
    blocks = sys.getallocatedblocks()
    for _ in range(500):
        once()
    gc.collect()
    assert [sys.getrefcount(o) for o in (source, buffer, view, interface, source.dtype, StridedMemoryView)] == counted
    # A leak of one block per round would be 500; the interpreter's caches grow by some.
    assert sys.getallocatedblocks() - blocks < 300


def test_threads_share_views(buffer):
    source = floats()
    view = StridedMemoryView.from_array_interface(source)
    errors = []

    def work():
        try:
            for _ in range(200):
                assert np.from_dlpack(view).shape == (3, 4)
                assert StridedMemoryView.from_dlpack(view, -1).view(view._layout[1:]).size == 8
                assert StridedMemoryView.from_dlpack(buffer, -1).dtype == np.int8
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    run_all(threads)
    assert not errors


def test_views_of_host_buffers():
    source = np.zeros(64, dtype=np.uint8)
    buffer = Buffer.from_handle(source.ctypes.data, 64, owner=source)
    view = StridedMemoryView.from_buffer(buffer, (4, 4), dtype="f4")
    assert view.device_id == -1 and view.__dlpack_device__() == (1, 0)
    np.from_dlpack(view)[:] = 1
    assert (source.view("f4")[:16] == 1).all()


def test_our_objects_are_viewed_like_any_other(buffer, stream):
    class Plain:
        """Forwards the protocol's methods only."""

        def __init__(self, obj):
            self.__dlpack__, self.__dlpack_device__ = obj.__dlpack__, obj.__dlpack_device__

    part = StridedMemoryView.from_buffer(buffer, (3, 4), dtype="f4", is_readonly=True)
    part = part.view(part._layout[1:, ::2])
    for obj in (buffer, part, StridedMemoryView.from_array_interface(floats().T)):
        for consumer in (-1, 0, int(stream.handle)):
            own = StridedMemoryView.from_dlpack(obj, consumer)
            foreign = StridedMemoryView.from_dlpack(Plain(obj), consumer)
            assert facts(own) == facts(foreign) and own.readonly == foreign.readonly
            assert own.exporting_obj is obj and own._layout == foreign._layout
    with pytest.raises(BufferError, match="dtype"):
        StridedMemoryView.from_dlpack(StridedMemoryView.from_buffer(buffer, (3,), itemsize=4), -1)
    closed = Buffer.from_handle(int(buffer.handle), 8)
    closed.close()
    with pytest.raises(RuntimeError, match="closed"):
        StridedMemoryView.from_dlpack(closed, -1)


def test_buffers_are_viewed_as_bytes(buffer, stream):
    assert buffer.__cuda_array_interface__ == {
        "shape": (96,),
        "typestr": "|u1",
        "data": (int(buffer.handle), False),
        "strides": None,
        "version": 3,
        "stream": int(stream.handle),
    }
    assert not hasattr(buffer, "__array_interface__")
    with pytest.raises(BufferError, match="device"):
        memoryview(buffer)
    source = np.arange(64, dtype=np.uint8)
    host = Buffer.from_handle(source.ctypes.data, 64, owner=source)
    assert not hasattr(host, "__cuda_array_interface__")
    shown = memoryview(host)
    assert shown.format == "B" and shown.nbytes == 64 and not shown.readonly
    assert np.array_equal(np.asarray(host), source) and bytes(host) == source.tobytes()
    life = weakref.ref(source)
    host.close()
    del source
    gc.collect()
    assert shown[5] == 5 and life() is not None  # The memory stays allocated while it is exported.
    shown.release()
    gc.collect()
    assert life() is None
    for name in ("__array_interface__", "__cuda_array_interface__"):
        with pytest.raises(RuntimeError, match="closed"):
            getattr(host, name)
    with pytest.raises(RuntimeError, match="closed"):
        memoryview(host)


def test_arguments_of_from_any_interface():
    array, make = np.zeros((2, 3)), StridedMemoryView.from_any_interface
    # A keyword created at run time is an equal but different object.
    name = "_".join(("stream", "ptr"))
    for view in (make(array, -1), make(array, stream_ptr=0), make(stream_ptr=-1, obj=array), make(array, **{name: 0})):
        assert view.shape == (2, 3) and view.exporting_obj is array
    for arguments, keywords in (((array,), {}), ((array, None), {}), ((), {"obj": array})):
        with pytest.raises(BufferError, match="stream_ptr"):
            make(*arguments, **keywords)
    for arguments, keywords, text in (
        ((), {}, "obj"),
        ((), {"stream_ptr": -1}, "obj"),
        ((array, -1, 0), {}, "3"),
        ((array,), {"obj": array}, "obj"),
        ((array, -1), {"stream_ptr": -1}, "stream_ptr"),
        ((array,), {"stream": 1}, "stream"),
        ((array, "1"), {}, "stream_ptr"),
    ):
        with pytest.raises(TypeError, match=text):
            make(*arguments, **keywords)

    class Derived(StridedMemoryView):
        pass

    assert type(Derived.from_any_interface(array, -1)) is Derived
    with pytest.raises(TypeError):
        StridedMemoryView.__dict__["from_any_interface"].__get__(None, int)(array)
