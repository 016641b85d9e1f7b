"""`TensorMapDescriptor`: options, the rules of the driver's manual by parameter, lifetime."""

import gc
import os
import pathlib
import subprocess
import sys
import weakref

import numpy
import pytest
from cuda.bindings import driver
from cuda.core import Buffer, TensorMapDescriptor, TensorMapDescriptorOptions
from cuda.core._tensor_map import (
    TensorMapDataType,
    TensorMapIm2ColWideMode,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)
from cuda.core.utils import StridedMemoryView

from helpers.device import on_cpu_device

FLOAT = numpy.dtype("float32")


@pytest.fixture(scope="module")
def can_encode(device):
    """NVIDIA's driver encodes maps for compute capability 9.0 and later, the CPU device always."""
    if not on_cpu_device() and device.compute_capability < (9, 0):
        pytest.skip("needs compute capability 9.0")


@pytest.fixture
def buffer(device, stream):
    return device.allocate(1 << 16, stream=stream)


@pytest.fixture
def view(buffer):
    return StridedMemoryView.from_buffer(buffer, (32, 64), dtype=FLOAT)


class TestOptions:
    def test_normalised(self):
        options = TensorMapDescriptorOptions([numpy.int64(4), 8], element_strides=[1, 2], data_type="float32")
        assert options.box_dim == (4, 8) and options.element_strides == (1, 2) and options.data_type == FLOAT
        assert options.swizzle is TensorMapSwizzle.NONE
        assert options == TensorMapDescriptorOptions((4, 8), (1, 2), numpy.float32)

    @pytest.mark.parametrize(
        "fields",
        [
            {"box_dim": 4},
            {"box_dim": None},
            {"box_dim": "44"},
            {"box_dim": (4.5,)},
            {"element_strides": 1},
            {"data_type": 7},
            {"data_type": "no type"},
            {"swizzle": 3},
            {"swizzle": "128B"},
            {"interleave": None},
            {"l2_promotion": TensorMapSwizzle.NONE},
            {"oob_fill": 1},
        ],
    )
    def test_wrong_types(self, fields):
        (name,) = fields
        with pytest.raises(TypeError, match=name):
            TensorMapDescriptorOptions(**{"box_dim": (4, 8), **fields})

    def test_one_or_the_other(self, view):
        options = TensorMapDescriptorOptions((4, 8))
        for more in ({"box_dim": (4, 8)}, {"swizzle": TensorMapSwizzle.NONE}, {"element_strides": (1, 1)}):
            with pytest.raises(TypeError, match="not both"):
                view.as_tensor_map(options=options, **more)
        with pytest.raises(TypeError, match="box_dim"):
            view.as_tensor_map()
        for wrong in (5, (4, 8), "x"):
            with pytest.raises(TypeError, match="'options'"):
                view.as_tensor_map(options=wrong)
        with pytest.raises(TypeError):
            view.as_tensor_map(options={"box": (4, 8)})

    def test_cannot_be_instantiated(self):
        with pytest.raises(RuntimeError, match="as_tensor_map"):
            TensorMapDescriptor()


@pytest.mark.usefixtures("can_encode")
class TestEncoding:
    def test_properties(self, device, view):
        made = view.as_tensor_map((4, 8))
        assert type(made) is TensorMapDescriptor
        assert made.device is device
        assert repr(made) == "TensorMapDescriptor(tiled, rank=2, dtype=FLOAT32, swizzle=NONE)"
        assert len(bytes(made)) == 128

    def test_ways(self, view):
        one = bytes(view.as_tensor_map((4, 8), swizzle=TensorMapSwizzle.SWIZZLE_32B))
        options = TensorMapDescriptorOptions((4, 8), swizzle=TensorMapSwizzle.SWIZZLE_32B)
        assert bytes(view.as_tensor_map(options=options)) == one
        assert bytes(view.as_tensor_map([4, 8], swizzle=TensorMapSwizzle.SWIZZLE_32B)) == one
        named = {"box_dim": (4, 8), "swizzle": TensorMapSwizzle.SWIZZLE_32B}
        assert bytes(view.as_tensor_map(options=named)) == one
        assert bytes(TensorMapDescriptor._from_tiled(view, **named)) == one
        assert bytes(view.as_tensor_map((4, 8))) != one

    @pytest.mark.parametrize(
        "dtype", ["uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"]
    )
    def test_same_bytes_however_the_box_is_given(self, buffer, dtype):
        # A tuple of ints is converted without Python code, everything else by `cuda.core._tensor_map`.
        dtype = numpy.dtype(dtype)
        view = StridedMemoryView.from_buffer(buffer, (16, 64), dtype=dtype)
        plain = view.as_tensor_map((4, 32))
        kind = TensorMapDataType[dtype.name.upper()]
        for other in (
            view.as_tensor_map([4, 32]),
            view.as_tensor_map((numpy.int8(4), 32)),
            view.as_tensor_map((4, 32), data_type=kind),
            view.as_tensor_map(options=TensorMapDescriptorOptions((4, 32))),
        ):
            assert bytes(other) == bytes(plain) and repr(other) == repr(plain)

    @pytest.mark.parametrize("box", [(4,), (4, 8, 1), (0, 8), (-1, 8), (4, 512), (4, 1 << 32), (4, 1 << 70), (4, 3)])
    def test_same_error_however_the_box_is_given(self, view, box):
        messages = set()
        for given in (box, list(box)):
            with pytest.raises(ValueError, match="box_dim") as raised:
                view.as_tensor_map(given)
            messages.add(str(raised.value))
        assert len(messages) == 1

    def test_subclass_of_views(self, buffer):
        class Halves(StridedMemoryView):
            dtype = numpy.dtype("int32")

        view = Halves.from_buffer(buffer, (16, 64), dtype=FLOAT)
        assert "dtype=INT32" in repr(view.as_tensor_map((4, 32)))

    def test_same_bytes_as_the_driver(self, buffer, view):
        """The axes of a view are those of the driver in reverse order."""
        names = driver
        status, expected = driver.cuTensorMapEncodeTiled(
            names.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            2,
            int(buffer.handle),
            [names.cuuint64_t(64), names.cuuint64_t(32)],
            [names.cuuint64_t(256)],
            [names.cuuint32_t(8), names.cuuint32_t(4)],
            [names.cuuint32_t(1), names.cuuint32_t(2)],
            names.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            names.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
            names.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            names.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        assert int(status) == 0
        made = view.as_tensor_map((4, 8), element_strides=(2, 1), l2_promotion=TensorMapL2Promotion.L2_128B)
        words = numpy.frombuffer(bytes(made), numpy.uint64).tolist()
        assert words == [int(word) for word in expected.opaque]

    @pytest.mark.parametrize("dtype", "uint8 uint16 uint32 int32 uint64 int64 float16 float32 float64".split())
    def test_types(self, buffer, dtype):
        view = StridedMemoryView.from_buffer(buffer, (16, 32), dtype=numpy.dtype(dtype))
        assert f"dtype={dtype.upper()}" in repr(view.as_tensor_map((4, 32)))

    def test_named_types(self, view):
        for kind in (TensorMapDataType.TFLOAT32, TensorMapDataType.FLOAT32_FTZ, numpy.int32):
            assert "dtype=" in repr(view.as_tensor_map((4, 8), data_type=kind))
        with pytest.raises(ValueError, match="data_type has elements of 2 bytes, the view of 4"):
            view.as_tensor_map((4, 8), data_type=TensorMapDataType.FLOAT16)

    @pytest.mark.parametrize("dtype", ["bool", "int8", "complex64", "int16", ">f4"])
    def test_types_without_tensor_maps(self, buffer, dtype):
        view = StridedMemoryView.from_buffer(buffer, (16, 32), dtype=numpy.dtype(dtype))
        with pytest.raises(ValueError, match="data_type"):
            view.as_tensor_map((4, 32))

    @pytest.mark.parametrize(
        "arguments, text",
        [
            ({"box_dim": (4,)}, "box_dim has 1 numbers"),
            ({"box_dim": (257, 8)}, r"box_dim\[0\] is 257"),
            ({"box_dim": (4, 0)}, r"box_dim\[1\] is 0"),
            ({"box_dim": (4, -8)}, r"box_dim\[1\] is -8"),
            ({"box_dim": (4, 2**40)}, r"box_dim\[1\]"),
            ({"box_dim": (3, 3)}, r"box_dim\[1\] spans 12 bytes; expected a multiple of 16"),
            ({"element_strides": (1,)}, "element_strides has 1"),
            ({"element_strides": (9, 1)}, r"element_strides\[0\] is 9; expected 1 to 8"),
            ({"element_strides": (1, 0)}, r"element_strides\[1\] is 0"),
            ({"swizzle": TensorMapSwizzle.SWIZZLE_32B, "box_dim": (4, 16)}, r"box_dim\[1\] spans 64 bytes.*32 bytes"),
            ({"interleave": TensorMapInterleave.INTERLEAVE_16B}, "the number of dimensions is 2; expected 3"),
            ({"data_type": numpy.int32, "oob_fill": TensorMapOOBFill.NAN_REQUEST_ZERO_FMA}, "oob_fill"),
        ],
    )
    def test_rules_of_options(self, view, arguments, text):
        with pytest.raises(ValueError, match=text):
            view.as_tensor_map(**{"box_dim": (4, 8), **arguments})

    @pytest.mark.parametrize(
        "shape, strides, box, text",
        [
            ((), None, (), "0 dimensions"),
            ((2,) * 6, None, (1,) * 6, "6 dimensions"),
            ((8, 63), None, (4, 8), r"strides\[0\] is 252 bytes; expected a multiple of 16"),
            ((8, 32), (64, 2), (4, 8), r"strides\[-1\] is 8 bytes"),
            ((0, 32), None, (4, 8), r"shape\[0\] is 0"),
        ],
    )
    def test_rules_of_views(self, buffer, shape, strides, box, text):
        view = StridedMemoryView.from_buffer(buffer, shape, strides, dtype=FLOAT)
        with pytest.raises(ValueError, match=text):
            view.as_tensor_map(box)

    def test_interleaved(self, buffer):
        view = StridedMemoryView.from_buffer(buffer, (4, 8, 16), dtype=FLOAT)
        layout = {"interleave": TensorMapInterleave.INTERLEAVE_32B}
        with pytest.raises(ValueError, match="swizzle must be 32B or NONE"):
            view.as_tensor_map((2, 4, 8), swizzle=TensorMapSwizzle.SWIZZLE_64B, **layout)
        view.as_tensor_map((2, 4, 8), swizzle=TensorMapSwizzle.SWIZZLE_32B, **layout)
        # The manual requires the swizzle; the driver does not.
        view.as_tensor_map((2, 4, 8), **layout)

    def test_misaligned_address(self, buffer):
        view = StridedMemoryView.from_buffer(buffer[4:], (8, 16), dtype=FLOAT)
        with pytest.raises(ValueError, match="the address is 0x.*multiple of 16"):
            view.as_tensor_map((4, 8))

    def test_dimensions_of_one_element_have_any_stride(self, buffer):
        view = StridedMemoryView.from_buffer(buffer, (1, 8, 16), (3, 16, 1), dtype=FLOAT)
        assert repr(view.as_tensor_map((1, 4, 8))) == "TensorMapDescriptor(tiled, rank=3, dtype=FLOAT32, swizzle=NONE)"

    def test_host_memory(self):
        with pytest.raises(ValueError, match="host memory"):
            StridedMemoryView.from_any_interface(numpy.zeros((8, 8), FLOAT), -1).as_tensor_map((4, 8))


@pytest.mark.usefixtures("can_encode")
class TestIm2col:
    @pytest.mark.parametrize("rank, most", [(3, 32767), (4, 127), (5, 15)])
    def test_corners(self, buffer, rank, most):
        view = StridedMemoryView.from_buffer(buffer, (2,) * (rank - 1) + (16,), dtype=FLOAT)
        spatial = rank - 2
        TensorMapDescriptor._from_im2col(view, (-most - 1,) * spatial, (most,) * spatial, 16, 4)
        with pytest.raises(ValueError, match=r"pixel_box_lower_corner\[0\]"):
            TensorMapDescriptor._from_im2col(view, (-most - 2, *(0,) * (spatial - 1)), (0,) * spatial, 16, 4)
        with pytest.raises(ValueError, match=r"pixel_box_upper_corner\[" + str(spatial - 1)):
            TensorMapDescriptor._from_im2col(view, (0,) * spatial, (*(0,) * (spatial - 1), most + 1), 16, 4)

    @pytest.mark.parametrize(
        "change, error, text",
        [
            ({"channels_per_pixel": 257}, ValueError, "channels_per_pixel is 257"),
            ({"channels_per_pixel": 3}, ValueError, "channels_per_pixel spans 12"),
            ({"channels_per_pixel": "x"}, TypeError, "channels_per_pixel"),
            ({"pixels_per_column": 1025}, ValueError, "pixels_per_column is 1025"),
            ({"pixels_per_column": 0}, ValueError, "pixels_per_column is 0"),
            ({"pixel_box_lower_corner": (0,)}, ValueError, "pixel_box_lower_corner has 1"),
            ({"pixel_box_upper_corner": 0}, TypeError, "pixel_box_upper_corner is 0"),
            ({"swizzle": 3}, TypeError, "swizzle"),
        ],
    )
    def test_rules(self, buffer, change, error, text):
        view = StridedMemoryView.from_buffer(buffer, (2, 8, 8, 16), dtype=FLOAT)
        arguments = {
            "pixel_box_lower_corner": (0, 0),
            "pixel_box_upper_corner": (0, 0),
            "channels_per_pixel": 16,
            "pixels_per_column": 4,
        }
        with pytest.raises(error, match=text):
            TensorMapDescriptor._from_im2col(view, **{**arguments, **change})

    def test_two_dimensions(self, view):
        with pytest.raises(ValueError, match="the number of dimensions is 2; expected 3 to 5 in im2col mode"):
            TensorMapDescriptor._from_im2col(view, (), (), 16, 4)

    def test_wide(self, device, buffer):
        if not on_cpu_device() and device.compute_capability < (10, 0):
            pytest.skip("needs compute capability 10.0")
        view = StridedMemoryView.from_buffer(buffer, (2, 8, 8, 16), dtype=FLOAT)
        made = TensorMapDescriptor._from_im2col_wide(view, -1, 1, 16, 4)
        other = TensorMapDescriptor._from_im2col_wide(view, -1, 1, 16, 4, mode=TensorMapIm2ColWideMode.W128)
        assert bytes(made) != bytes(other)
        with pytest.raises(ValueError, match="pixel_box_lower_corner_width"):
            TensorMapDescriptor._from_im2col_wide(view, -40000, 1, 16, 4)
        with pytest.raises(TypeError, match="mode"):
            TensorMapDescriptor._from_im2col_wide(view, -1, 1, 16, 4, mode=1)


@pytest.mark.usefixtures("can_encode")
class TestReplaceAddress:
    def test_other_memory(self, device, stream, view):
        made = view.as_tensor_map((4, 8))
        before = bytes(made)
        other = device.allocate(1 << 16, stream=stream)
        made.replace_address(StridedMemoryView.from_buffer(other, (32, 64), dtype=FLOAT))
        expected = StridedMemoryView.from_buffer(other, (32, 64), dtype=FLOAT).as_tensor_map((4, 8))
        assert bytes(made) == bytes(expected) != before
        made.replace_address(view)
        assert bytes(made) == before
        made.replace_address(other)
        assert bytes(made) == bytes(expected)

    @pytest.mark.parametrize(
        "make, error, text",
        [
            (lambda buffer: 5, BufferError, "'tensor' is of type int"),
            (lambda buffer: None, BufferError, "'tensor' is of type NoneType"),
            (lambda buffer: numpy.zeros((32, 64), FLOAT), ValueError, "host memory"),
            (lambda buffer: buffer[:1024], ValueError, "has 1024 bytes, the tensor spans 8192"),
            (lambda buffer: buffer[4:], ValueError, "multiple of 16"),
        ],
    )
    def test_refused(self, buffer, view, make, error, text):
        made = view.as_tensor_map((4, 8))
        before = bytes(made)
        with pytest.raises(error, match=text):
            made.replace_address(make(buffer))
        assert bytes(made) == before


@pytest.mark.usefixtures("can_encode")
class TestLifetime:
    def test_the_view_is_kept(self, device, stream):
        buffer = device.allocate(4096, stream=stream)
        view = StridedMemoryView.from_buffer(buffer, (32, 32), dtype=FLOAT)
        reference = weakref.ref(view)
        made = view.as_tensor_map((4, 8))
        del view
        gc.collect()
        assert reference() is not None
        made.replace_address(buffer)
        gc.collect()
        assert reference() is None

    def test_foreign_memory(self, buffer):
        foreign = Buffer.from_handle(int(buffer.handle), 4096)
        view = StridedMemoryView.from_buffer(foreign, (32, 32), dtype=FLOAT)
        assert view.as_tensor_map((4, 8)).device.device_id == foreign.device_id

    def test_bindings_replace_an_address(self, buffer, view):
        if not on_cpu_device():
            pytest.skip("about the CPU device")
        made = driver.CUtensorMap()
        (status,) = driver.cuTensorMapReplaceAddress(made, int(buffer.handle))
        assert status == driver.CUresult.CUDA_ERROR_INVALID_VALUE


@pytest.mark.cpu
def test_copies_with_compute_capability_9(device):
    """The tests of copies, in a process whose device has compute capability 9.0."""
    if device.compute_capability >= (9, 0):
        pytest.skip("the tests run in this process")
    file = pathlib.Path(__file__).with_name("test_copies.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    environment = dict(os.environ, CUPYRITE_CPU_COMPUTE_CAPABILITY="9.0")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout and "skipped" not in done.stdout
