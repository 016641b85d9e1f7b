"""`OpaqueArray` and `MipmappedArray`: options, copies, lifetime."""

import gc
import os
import threading
import weakref

import numpy
import pytest
from cuda.bindings import driver
from cuda.core import Buffer
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.texture import (
    MipmappedArray,
    MipmappedArrayOptions,
    OpaqueArray,
    OpaqueArrayOptions,
)
from cuda.core.typing import ArrayFormatType
from cuda.core.utils import StridedMemoryView

from helpers.device import check, on_cpu_device
from helpers.threads import join_all


def plain(shape, format="float32", num_channels=1, **more):
    return OpaqueArrayOptions(shape, format, num_channels, **more)


def data_for(array):
    """Bytes for all elements of an array, all different modulo 251."""
    return (numpy.arange(array.size_bytes, dtype=numpy.int64) % 251).astype(numpy.uint8)


def contents(array, stream):
    out = numpy.zeros(array.size_bytes, numpy.uint8)
    assert array.copy_to(out, stream=stream) is out
    stream.sync()
    return out


class TestOptions:
    @pytest.mark.parametrize(
        "given", ["float32", ArrayFormatType.FLOAT32, numpy.float32, numpy.dtype("f4"), numpy.dtype(numpy.float32)]
    )
    def test_formats(self, given):
        assert plain((4,), given).format is ArrayFormatType.FLOAT32

    def test_fields_as_given_are_kept(self):
        shape = (8, 4)
        options = plain(shape, ArrayFormatType.FLOAT32, 2)
        assert options.shape is shape and options.format is ArrayFormatType.FLOAT32 and options.num_channels == 2
        with pytest.raises(AttributeError, match="formt"):
            options.formt = "uint8"

    def test_subclass_with_a_property(self):
        class Named(OpaqueArrayOptions):
            @property
            def format(self):
                return self._given

            @format.setter
            def format(self, value):
                self._given = value

        assert Named((4,), "uint8", 1).format is ArrayFormatType.UINT8

    def test_shape_becomes_a_tuple(self):
        options = plain([numpy.int64(8), 4])
        assert options.shape == (8, 4)
        assert options == plain((8, 4))
        assert repr(options) == (
            "OpaqueArrayOptions(shape=(8, 4), format=<ArrayFormatType.FLOAT32: 'float32'>, num_channels=1, "
            "is_surface_load_store=False)"
        )
        assert "is_layered=True" in repr(plain((8, 4), is_layered=True))

    @pytest.mark.parametrize(
        "shape, error, text",
        [
            ((), ValueError, "not 0"),
            ((1, 2, 3, 4), ValueError, "not 4"),
            ((0,), ValueError, r"shape\[0\] is 0"),
            ((8, -1), ValueError, r"shape\[1\] is -1"),
            (8, TypeError, "shape is 8"),
            ((8.5,), TypeError, "8.5"),
            ("88", TypeError, "'88'"),
            (None, TypeError, "None"),
        ],
    )
    def test_wrong_shapes(self, shape, error, text):
        with pytest.raises(error, match=text):
            plain(shape)
        with pytest.raises(error, match=text):
            MipmappedArrayOptions(shape, "float32", 1, 1)

    @pytest.mark.parametrize("format", ["f4", "float64", "FLOAT32", numpy.float64, None, 7, object()])
    def test_wrong_formats(self, format):
        with pytest.raises(ValueError, match="format is .*expected an ArrayFormatType"):
            plain((8,), format)

    @pytest.mark.parametrize("channels", [0, 3, 5, -1, "1", True, None])
    def test_wrong_channels(self, channels):
        with pytest.raises(ValueError, match="num_channels is .*expected 1, 2 or 4"):
            plain((8,), num_channels=channels)

    @pytest.mark.parametrize("levels, error", [(0, ValueError), (-1, ValueError), (2.5, TypeError), ("x", TypeError)])
    def test_wrong_levels(self, levels, error):
        with pytest.raises(error, match="num_levels is"):
            MipmappedArrayOptions((8,), "float32", 1, levels)

    def test_options_changed_later_are_checked_again(self, device):
        options = plain((8,))
        options.shape = (8, "x")
        with pytest.raises(TypeError, match="an extent is 'x'"):
            device.create_opaque_array(options)
        options.shape = (2**70,)
        with pytest.raises(OverflowError, match="extent"):
            device.create_opaque_array(options)


class TestArray:
    def test_properties(self, device):
        array = device.create_opaque_array(plain((8, 4), "int16", 2, is_surface_load_store=True))
        assert type(array) is OpaqueArray
        assert (array.shape, array.format, array.num_channels) == ((8, 4), ArrayFormatType.INT16, 2)
        assert (array.element_bytes, array.size_bytes) == (4, 128)
        assert array.is_surface_load_store is True
        assert array.device is device
        assert isinstance(array.handle, int) and array.handle != 0
        assert array.is_closed is False
        assert repr(array) == "OpaqueArray(shape=(8, 4), format=INT16, num_channels=2)"
        found = check(driver.cuArray3DGetDescriptor(array.handle))
        assert (found.Width, found.Height, found.Depth, found.NumChannels) == (8, 4, 0, 2)
        array.close()
        array.close()
        assert (array.handle, array.is_closed, array.shape) == (0, True, (8, 4))
        with pytest.raises(RuntimeError, match="closed"):
            array.copy_from(bytes(128), stream=device.default_stream)

    def test_dict_of_options(self, device):
        with device.create_opaque_array({"shape": (8,), "format": "uint8", "num_channels": 1}) as array:
            assert array.shape == (8,)
        assert array.is_closed

    @pytest.mark.parametrize("given", [None, 5, "x", [], {"foo": 1}])
    def test_wrong_options(self, device, given):
        with pytest.raises(TypeError):
            device.create_opaque_array(given)
        with pytest.raises(TypeError):
            device.create_mipmapped_array(given)

    def test_cannot_be_instantiated(self):
        for cls in (OpaqueArray, MipmappedArray):
            with pytest.raises(RuntimeError, match="create_"):
                cls()

    def test_too_large(self, device):
        with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
            device.create_opaque_array(plain((2**40,)))
        with pytest.raises(ValueError, match="more memory"):
            device.create_opaque_array(plain((2**62, 2**62)))

    @pytest.mark.parametrize(
        "shape, more, expected",
        [
            ((5,), {}, (5, 0, 0)),
            ((5, 3), {"is_layered": True}, (5, 0, 3)),
            ((5, 4, 3), {"is_layered": True}, (5, 4, 3)),
            ((4, 4, 6), {"is_cubemap": True}, (4, 4, 6)),
            ((4, 4, 12), {"is_cubemap": True, "is_layered": True}, (4, 4, 12)),
        ],
    )
    def test_layers_and_faces(self, device, stream, shape, more, expected):
        array = device.create_opaque_array(plain(shape, "uint8", **more))
        found = check(driver.cuArray3DGetDescriptor(array.handle))
        assert (found.Width, found.Height, found.Depth) == expected
        data = data_for(array)
        array.copy_from(data, stream=stream)
        assert (contents(array, stream) == data).all()

    @pytest.mark.parametrize(
        "shape, more",
        [((4,), {"is_layered": True}), ((4, 3, 6), {"is_cubemap": True}), ((4, 4, 5), {"is_cubemap": True})],
    )
    def test_wrong_layers_and_faces(self, device, shape, more):
        with pytest.raises(ValueError, match="shape"):
            device.create_opaque_array(plain(shape, **more))


SHAPES = [(7,), (7, 5), (7, 5, 3)]


class TestCopies:
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("channels", [1, 2, 4])
    def test_round_trip(self, device, stream, shape, channels):
        array = device.create_opaque_array(plain(shape, "uint16", channels))
        data = data_for(array)
        array.copy_from(data, stream=stream)
        assert (contents(array, stream) == data).all()

    @pytest.mark.parametrize("shape", SHAPES)
    def test_buffers(self, device, stream, shape):
        array = device.create_opaque_array(plain(shape))
        data = data_for(array)
        size = array.size_bytes
        source, back = (device.allocate(size + 64, stream=stream) for _ in range(2))
        source[:size].copy_from(data, stream=stream)
        array.copy_from(source, stream=stream)
        assert array.copy_to(back, stream=stream) is back
        # Freed in stream order: the copies are not lost.
        source.close()
        out = numpy.zeros(size, numpy.uint8)
        back[:size].copy_to(out, stream=stream)
        stream.sync()
        assert (out == data).all()

    @pytest.mark.parametrize("kind", ["numpy", "bytes", "memoryview", "view", "device view", "cai"])
    def test_sources(self, device, stream, kind):
        array = device.create_opaque_array(plain((8, 4)))
        data = data_for(array)
        buffer = device.allocate(array.size_bytes, stream=stream)
        buffer.copy_from(data, stream=stream)

        class Cai:
            __cuda_array_interface__ = {
                "shape": (array.size_bytes,),
                "typestr": "|u1",
                "data": (int(buffer.handle), False),
                "version": 3,
                "stream": int(stream.handle),
            }

        source = {
            "numpy": lambda: data.view(numpy.float32).reshape(4, 8),
            "bytes": data.tobytes,
            "memoryview": lambda: memoryview(data),
            "view": lambda: StridedMemoryView.from_any_interface(data, -1),
            "device view": lambda: StridedMemoryView.from_buffer(buffer, (4, 8), itemsize=4),
            "cai": Cai,
        }[kind]()
        array.copy_from(source, stream=stream)
        assert (contents(array, stream) == data).all()

    def test_larger_contiguous_memory(self, device, stream):
        array = device.create_opaque_array(plain((8,), "uint8"))
        array.copy_from(bytes(range(20)), stream=stream)
        assert contents(array, stream).tolist() == list(range(8))
        out = numpy.full(20, 255, numpy.uint8)
        array.copy_to(out, stream=stream)
        stream.sync()
        assert out.tolist() == [*range(8), *[255] * 12]

    def test_pitched_rows(self, device, stream):
        array = device.create_opaque_array(plain((8, 4), "uint8"))
        wide = numpy.arange(80, dtype=numpy.uint8).reshape(4, 20)
        array.copy_from(wide[:, 3:11], stream=stream)
        assert (contents(array, stream).reshape(4, 8) == wide[:, 3:11]).all()
        out = numpy.zeros((4, 20), numpy.uint8)
        array.copy_to(out[:, 5:13], stream=stream)
        stream.sync()
        assert (out[:, 5:13] == wide[:, 3:11]).all() and not out[:, :5].any() and not out[:, 13:].any()

    @pytest.mark.parametrize(
        "cut",
        [
            numpy.s_[:, :, 1:8],  # rows at a pitch
            numpy.s_[:, 1:6, :7],  # slices whose distance is a multiple of the pitch
            numpy.s_[::2, 2:7, 3:10],  # every other slice
        ],
    )
    @pytest.mark.parametrize("layered", [False, True])
    def test_pitched_slices(self, device, stream, cut, layered):
        whole = (numpy.arange(8 * 9 * 11) % 251).astype(numpy.uint8).reshape(8, 9, 11)
        part = whole[cut]
        array = device.create_opaque_array(plain(part.shape[::-1], "uint8", is_layered=layered))
        array.copy_from(part, stream=stream)
        assert (contents(array, stream).reshape(part.shape) == part).all()
        out = numpy.zeros_like(whole)
        array.copy_to(out[cut], stream=stream)
        stream.sync()
        assert (out[cut] == part).all()
        out[cut] = 0
        assert not out.any()

    def test_slices_at_an_odd_distance(self, device, stream):
        """The distance of slices need not be a multiple of the distance of rows."""
        memory = (numpy.arange(200) % 251).astype(numpy.uint8)
        part = numpy.lib.stride_tricks.as_strided(memory, (3, 4, 5), (47, 8, 1))
        array = device.create_opaque_array(plain((5, 4, 3), "uint8"))
        array.copy_from(part, stream=stream)
        assert (contents(array, stream).reshape(part.shape) == part).all()

    def test_strided_device_memory(self, device, stream):
        buffer = device.allocate(4 * 32, stream=stream)
        buffer.copy_from(numpy.arange(128, dtype=numpy.uint8), stream=stream)
        view = StridedMemoryView.from_buffer(buffer, (4, 8), (32, 1), itemsize=1)
        array = device.create_opaque_array(plain((8, 4), "uint8"))
        array.copy_from(view, stream=stream)
        assert contents(array, stream).reshape(4, 8)[:, 0].tolist() == [0, 32, 64, 96]

    @pytest.mark.parametrize(
        "source, error, text",
        [
            (lambda: bytes(31), ValueError, "31 bytes.*32"),
            (lambda: numpy.zeros((8, 4), numpy.uint8).T, ValueError, "contiguous rows"),
            (lambda: numpy.zeros((4, 16), numpy.uint8)[:, ::2], ValueError, "contiguous rows"),
            (lambda: numpy.zeros((4, 8), numpy.uint8)[::-1], ValueError, "contiguous rows"),
            (lambda: numpy.zeros((5, 16), numpy.uint8)[:, :8], ValueError, "exactly"),
            (lambda: numpy.array([None] * 4), TypeError, "references"),
            (lambda: 5, TypeError, "int"),
            (lambda: None, TypeError, "NoneType"),
        ],
    )
    def test_wrong_sources(self, device, stream, source, error, text):
        array = device.create_opaque_array(plain((8, 4), "uint8"))
        with pytest.raises(error, match=text):
            array.copy_from(source(), stream=stream)

    def test_wrong_destinations(self, device, stream):
        array = device.create_opaque_array(plain((8, 4), "uint8"))
        with pytest.raises(BufferError, match="read-only"):
            array.copy_to(bytes(32), stream=stream)
        with pytest.raises(TypeError, match="OpaqueArray"):
            array.copy_to(array, stream=stream)
        small = device.allocate(31, stream=stream)
        with pytest.raises(ValueError, match="'dst' has 31 bytes"):
            array.copy_to(small, stream=stream)
        small.close()
        with pytest.raises(RuntimeError, match="closed"):
            array.copy_to(small, stream=stream)
        foreign = Buffer.from_handle(0, 0)
        with pytest.raises(ValueError, match="0 bytes"):
            array.copy_to(foreign, stream=stream)

    @pytest.mark.parametrize("wrong", [None, 0, "x", object()])
    def test_stream_is_required(self, device, wrong):
        array = device.create_opaque_array(plain((8,), "uint8"))
        with pytest.raises(TypeError, match="stream"):
            array.copy_from(bytes(8), stream=wrong)
        with pytest.raises(TypeError, match="stream"):
            array.copy_from(bytes(8))

    def test_array_is_dropped_after_a_copy(self, device, stream):
        """Destroying an array waits for its copies."""
        data = numpy.arange(1 << 16, dtype=numpy.float32)
        out = device.allocate(data.nbytes, stream=stream)
        array = device.create_opaque_array(plain((1 << 8, 1 << 8)))
        array.copy_from(data, stream=stream)
        array.copy_to(out, stream=stream)
        array.close()
        back = numpy.zeros_like(data)
        out.copy_to(back, stream=stream)
        stream.sync()
        assert (back == data).all()


class TestMipmapped:
    def test_levels(self, device, stream):
        array = device.create_mipmapped_array(MipmappedArrayOptions((8, 4), "uint8", 1, 3, True))
        assert (array.shape, array.num_levels, array.num_channels) == ((8, 4), 3, 1)
        assert array.format is ArrayFormatType.UINT8 and array.is_surface_load_store is True
        assert repr(array) == "MipmappedArray(shape=(8, 4), format=UINT8, num_channels=1, num_levels=3)"
        levels = [array.get_level(n) for n in range(3)]
        assert [level.shape for level in levels] == [(8, 4), (4, 2), (2, 1)]
        for number, level in enumerate(levels):
            level.copy_from(bytes([number + 1] * level.size_bytes), stream=stream)
        for number, level in enumerate(levels):
            assert set(contents(level, stream).tolist()) == {number + 1}
        assert levels[1].is_surface_load_store and levels[1].device is device

    def test_layers_do_not_halve(self, device):
        options = MipmappedArrayOptions((8, 8, 3), "uint8", 1, 4, is_layered=True)
        assert device.create_mipmapped_array(options).get_level(3).shape == (1, 1, 3)
        with pytest.raises(ValueError, match="1 to 4 levels"):
            device.create_mipmapped_array(MipmappedArrayOptions((8, 8, 3), "uint8", 1, 5, is_layered=True))

    @pytest.mark.parametrize(
        "level, error", [(3, ValueError), (-1, ValueError), (2**70, ValueError), ("1", TypeError), (1.0, TypeError)]
    )
    def test_wrong_levels(self, device, level, error):
        array = device.create_mipmapped_array(MipmappedArrayOptions((8, 4), "uint8", 1, 3))
        with pytest.raises(error, match="level"):
            array.get_level(level)

    def test_a_level_outlives_its_array(self, device, stream):
        array = device.create_mipmapped_array(MipmappedArrayOptions((8, 4), "uint8", 1, 3))
        level = array.get_level(1)
        array.close()
        assert array.handle == 0 and array.is_closed
        with pytest.raises(RuntimeError, match="closed"):
            array.get_level(0)
        del array
        gc.collect()
        level.copy_from(bytes(range(8)), stream=stream)
        assert contents(level, stream).tolist() == list(range(8))
        level.close()
        assert level.handle == 0


class TestLifetime:
    def test_weak_references(self, device):
        array = device.create_opaque_array(plain((8,)))
        reference = weakref.ref(array)
        del array
        gc.collect()
        assert reference() is None

    @pytest.mark.skipif(
        "PYTEST_XDIST_WORKER" in os.environ and not on_cpu_device(), reason="other tests use the memory of the GPU"
    )
    def test_nothing_is_leaked(self, device):
        def free():
            device.sync()
            return check(driver.cuMemGetInfo())[0]

        options = plain((256, 256), num_channels=4)
        device.create_opaque_array(options).close()
        before = free()
        for _ in range(200):
            device.create_opaque_array(options)
            device.create_mipmapped_array(MipmappedArrayOptions((256, 256), "float32", 4, 5)).get_level(2)
        gc.collect()
        assert free() > before - (64 << 20)

    def test_destroyed_by_the_program(self, device, stream):
        array = device.create_opaque_array(plain((8,), "uint8"))
        check(driver.cuArrayDestroy(array.handle))
        with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_HANDLE.*\n.*destroyed by the program"):
            array.copy_from(bytes(8), stream=stream)
        array.close()
        mipmapped = device.create_mipmapped_array(MipmappedArrayOptions((8,), "uint8", 1, 2))
        level = mipmapped.get_level(0)
        check(driver.cuMipmappedArrayDestroy(mipmapped.handle))
        with pytest.raises(CUDAError, match="destroyed by the program"):
            mipmapped.get_level(1)
        with pytest.raises(CUDAError, match="destroyed by the program"):
            level.copy_from(bytes(8), stream=stream)

    def test_close_while_other_threads_copy(self, device):
        for _ in range(20):
            array = device.create_opaque_array(plain((64, 64), "uint8"))
            start = threading.Barrier(4)

            def copy(array=array, start=start):
                stream = device.create_stream()
                start.wait()
                try:
                    for _ in range(20):
                        array.copy_from(bytes(4096), stream=stream)
                except RuntimeError as error:
                    assert "closed" in str(error)
                stream.sync()

            def close(array=array, start=start):
                start.wait()
                array.close()

            threads = [threading.Thread(target=copy) for _ in range(3)] + [threading.Thread(target=close)]
            for thread in threads:
                thread.start()
            join_all(threads)
