"""`ResourceDescriptor`, `TextureObject`, `SurfaceObject`: options, kernels that read and write, lifetime."""

import copy
import gc
import weakref

import numpy
import pytest
from cuda.bindings import driver
from cuda.core import LaunchConfig, Program, ProgramOptions, launch
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.texture import (
    MipmappedArrayOptions,
    OpaqueArrayOptions,
    ResourceDescriptor,
    SurfaceObject,
    TextureObject,
    TextureObjectOptions,
)
from cuda.core.typing import AddressModeType, ArrayFormatType, FilterModeType, ReadModeType

from helpers.device import check, on_cpu_device

SOURCE = """
extern "C" __global__ void read_1d(cudaTextureObject_t t, float *out, int n) {
    int i = threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<float>(t, i);
}
extern "C" __global__ void read_2d(cudaTextureObject_t t, float *out, int w, int h, float x0, float y0, float step) {
    int i = threadIdx.x;
    if (i < w * h) out[i] = tex2D<float>(t, x0 + (i % w) * step, y0 + (i / w) * step);
}
extern "C" __global__ void read_level(cudaTextureObject_t t, float *out, float level) {
    out[threadIdx.x] = tex2DLod<float>(t, 0.5f, 0.5f, level + threadIdx.x);
}
extern "C" __global__ void read_layer(cudaTextureObject_t t, float *out) {
    out[threadIdx.x] = tex2DLayered<float>(t, 1.5f, 0.5f, threadIdx.x);
}
extern "C" __global__ void read_face(cudaTextureObject_t t, float *out) {
    float v[6][3] = {{1,0,0},{-1,0,0},{0,1,0},{0,-1,0},{0,0,1},{0,0,-1}};
    float *d = v[threadIdx.x];
    out[threadIdx.x] = texCubemap<float>(t, d[0], d[1], d[2]);
}
extern "C" __global__ void fill(cudaSurfaceObject_t s, int w) {
    int x = threadIdx.x % w, y = threadIdx.x / w;
    surf2Dwrite((float)(100 * y + x), s, x * 4, y);
}
"""


@pytest.fixture(scope="module")
def code(device):
    options = ProgramOptions(arch=f"sm_{device.arch}")
    return Program(SOURCE, "c++", options).compile("cubin")


def run(device, stream, kernel, first, size, *more):
    """Launches `kernel(first, out, *more)` with one thread per element of `out`, and returns what it wrote."""
    out = device.allocate(4 * size, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=size), kernel, first, out, *more)
    back = numpy.zeros(size, numpy.float32)
    out.copy_to(back, stream=stream)
    stream.sync()
    return back


def picture(device, stream, width=8, height=4, **more):
    """A float array with the value 10 * y + x, and this value as a NumPy array."""
    data = (10 * numpy.arange(height)[:, None] + numpy.arange(width)).astype(numpy.float32)
    array = device.create_opaque_array(OpaqueArrayOptions((width, height), "float32", 1, **more))
    array.copy_from(data, stream=stream)
    return array, data


class TestDescriptor:
    def test_kinds(self, device, stream):
        array, _ = picture(device, stream)
        mipmapped = device.create_mipmapped_array(MipmappedArrayOptions((8, 4), "int8", 2, 2))
        buffer = device.allocate(1024, stream=stream)
        made = [
            ResourceDescriptor.from_opaque_array(array),
            ResourceDescriptor.from_mipmapped_array(mipmapped),
            ResourceDescriptor.from_linear(buffer, format="uint8", num_channels=4, size_bytes=64),
            ResourceDescriptor.from_pitch2d(
                buffer, format=numpy.float16, num_channels=1, width=5, height=4, pitch_bytes=256
            ),
        ]
        assert [of.kind for of in made] == ["array", "mipmapped_array", "linear", "pitch2d"]
        assert [of.source for of in made] == [array, mipmapped, buffer, buffer]
        assert [of.format for of in made] == [None, None, ArrayFormatType.UINT8, ArrayFormatType.FLOAT16]
        assert [of.num_channels for of in made] == [None, None, 4, 1]
        assert [of.size_bytes for of in made] == [None, None, 64, None]
        assert [(of.width, of.height, of.pitch_bytes) for of in made] == [(None,) * 3] * 3 + [(5, 4, 256)]
        assert [repr(of) for of in made] == [
            "ResourceDescriptor(kind='array')",
            "ResourceDescriptor(kind='mipmapped_array')",
            "ResourceDescriptor(kind='linear', format=UINT8, num_channels=4, size_bytes=64)",
            "ResourceDescriptor(kind='pitch2d', format=FLOAT16, num_channels=1, width=5, height=4, pitch_bytes=256)",
        ]
        whole = ResourceDescriptor.from_linear(buffer, format="uint8", num_channels=1)
        assert whole.size_bytes == 1024

    def test_wrong_sources(self, device, stream):
        array, _ = picture(device, stream)
        buffer = device.allocate(64, stream=stream)
        for make, given in [
            (ResourceDescriptor.from_opaque_array, buffer),
            (ResourceDescriptor.from_opaque_array, None),
            (ResourceDescriptor.from_mipmapped_array, array),
            (lambda of: ResourceDescriptor.from_linear(of, format="int8", num_channels=1), array),
        ]:
            with pytest.raises(TypeError, match="is of type"):
                make(given)
        with pytest.raises(RuntimeError, match="from_opaque_array"):
            ResourceDescriptor()
        array.close()
        buffer.close()
        with pytest.raises(RuntimeError, match="closed"):
            ResourceDescriptor.from_opaque_array(array)
        with pytest.raises(RuntimeError, match="closed"):
            ResourceDescriptor.from_linear(buffer, format="int8", num_channels=1)

    @pytest.mark.parametrize(
        "size, error, text",
        [(65, ValueError, "65"), (0, ValueError, "0"), (-1, ValueError, "-1"), (7, ValueError, "7"), ("8", TypeError, "'8'"),
         (2**70, OverflowError, "size_bytes")],
    )  # fmt: skip
    def test_wrong_linear_sizes(self, device, stream, size, error, text):
        buffer = device.allocate(64, stream=stream)
        with pytest.raises(error, match=f"size_bytes is .*{text}|size_bytes is"):
            ResourceDescriptor.from_linear(buffer, format="float32", num_channels=1, size_bytes=size)

    @pytest.mark.parametrize(
        "change, error, text",
        [
            ({"width": 0}, ValueError, "width is 0"),
            ({"height": -1}, ValueError, "height is -1"),
            ({"width": "8"}, TypeError, "width is '8'"),
            ({"pitch_bytes": 16}, ValueError, "pitch_bytes is 16.*32"),
            ({"height": 40}, ValueError, r"pitch_bytes \* height is 1280, the buffer has 256"),
            ({"num_channels": 3}, ValueError, "num_channels"),
            ({"format": "x"}, ValueError, "format"),
            ({"width": 2**64 - 1}, ValueError, "pitch_bytes"),
            ({"height": 2**64 - 1}, ValueError, "the buffer has"),
        ],
    )
    def test_wrong_pictures(self, device, stream, change, error, text):
        buffer = device.allocate(256, stream=stream)
        fields = {"format": "float32", "num_channels": 1, "width": 8, "height": 8, "pitch_bytes": 32}
        with pytest.raises(error, match=text):
            ResourceDescriptor.from_pitch2d(buffer, **{**fields, **change})

    def test_copy_and_cycles(self, device, stream):
        array, _ = picture(device, stream)
        made = ResourceDescriptor.from_opaque_array(array)
        with pytest.raises(TypeError):
            copy.deepcopy(made)


class TestOptions:
    def test_defaults(self):
        options = TextureObjectOptions()
        assert options.address_mode is AddressModeType.CLAMP
        assert options.filter_mode is FilterModeType.POINT
        assert options.read_mode is ReadModeType.ELEMENT_TYPE
        assert options.border_color is None

    def test_names_become_members(self):
        options = TextureObjectOptions(filter_mode="linear", read_mode="normalized_float", mipmap_filter_mode="linear")
        assert options.filter_mode is FilterModeType.LINEAR
        assert options.read_mode is ReadModeType.NORMALIZED_FLOAT
        assert options.mipmap_filter_mode is FilterModeType.LINEAR

    @pytest.mark.parametrize("field", ["filter_mode", "read_mode", "mipmap_filter_mode"])
    @pytest.mark.parametrize("wrong", ["x", None, "LINEAR", 1])
    def test_wrong_members(self, field, wrong):
        with pytest.raises(ValueError, match=f"{field} is"):
            TextureObjectOptions(**{field: wrong})

    @pytest.mark.parametrize(
        "given, modes",
        [
            ("wrap", [0, 0, 0]),
            (("wrap",), [0, 0, 0]),
            (("wrap", "mirror"), [0, 2, 2]),
            (["wrap", "mirror", AddressModeType.BORDER], [0, 2, 3]),
        ],
    )
    def test_address_modes(self, device, stream, given, modes):
        array, _ = picture(device, stream)
        resource = ResourceDescriptor.from_opaque_array(array)
        with device.create_texture_object(resource=resource, options=TextureObjectOptions(given)) as texture:
            found = check(driver.cuTexObjectGetTextureDesc(texture.handle))
            assert [int(mode) for mode in found.addressMode] == modes

    def test_everything_reaches_the_driver(self, device, stream):
        array, _ = picture(device, stream)
        texture = device.create_texture_object(
            resource=ResourceDescriptor.from_opaque_array(array),
            options=TextureObjectOptions(
                filter_mode="linear",
                read_mode="normalized_float",
                normalized_coords=True,
                srgb=True,
                disable_trilinear_optimization=True,
                max_anisotropy=3,
                mipmap_filter_mode="linear",
                mipmap_level_bias=0.5,
                min_mipmap_level_clamp=0.25,
                max_mipmap_level_clamp=2,
                border_color=[1, 2, 3, 4],
            ),
        )
        found = check(driver.cuTexObjectGetTextureDesc(texture.handle))
        assert (int(found.filterMode), int(found.mipmapFilterMode), found.flags, found.maxAnisotropy) == (
            1,
            1,
            2 | 16 | 32,
            3,
        )
        assert (found.mipmapLevelBias, found.minMipmapLevelClamp, found.maxMipmapLevelClamp) == (0.5, 0.25, 2)
        if on_cpu_device():  # An H200's driver returns zeros; test_filter_and_border shows that kernels read the color.
            assert list(found.borderColor) == [1, 2, 3, 4]

    @pytest.mark.parametrize(
        "field, wrong, error",
        [
            ("address_mode", "x", ValueError),
            ("address_mode", (), ValueError),
            ("address_mode", ("wrap",) * 4, ValueError),
            ("address_mode", ("wrap", 1), ValueError),
            ("address_mode", 1, TypeError),
            ("border_color", (1, 2, 3), ValueError),
            ("border_color", (1, "x", 3, 4), TypeError),
            ("border_color", 1, TypeError),
            ("max_anisotropy", -1, ValueError),
            ("max_anisotropy", 2**32, OverflowError),
            ("max_anisotropy", 2**70, OverflowError),
            ("max_anisotropy", "x", TypeError),
            ("mipmap_level_bias", "x", TypeError),
        ],
    )
    def test_wrong_values(self, device, stream, field, wrong, error):
        array, _ = picture(device, stream)
        resource = ResourceDescriptor.from_opaque_array(array)
        with pytest.raises(error, match=field):
            device.create_texture_object(resource=resource, options={field: wrong})


class TestTexture:
    def test_properties(self, device, stream):
        array, _ = picture(device, stream)
        resource = ResourceDescriptor.from_opaque_array(array)
        options = TextureObjectOptions()
        texture = device.create_texture_object(resource=resource, options=options)
        assert type(texture) is TextureObject
        assert texture.resource is resource and texture.options is options and texture.device is device
        assert repr(texture) == f"TextureObject(handle={texture.handle:#x})"
        texture.close()
        texture.close()
        assert (texture.handle, texture.is_closed, texture.resource) == (0, True, None)
        assert texture.options is options and repr(texture) == "TextureObject(handle=0x0)"
        with pytest.raises(RuntimeError, match="create_texture_object"):
            TextureObject()

    def test_array(self, device, stream, code):
        array, data = picture(device, stream)
        resource = ResourceDescriptor.from_opaque_array(array)
        texture = device.create_texture_object(resource=resource)
        found = run(device, stream, code.get_kernel("read_2d"), texture, 32, 8, 4, *map(numpy.float32, (0.5, 0.5, 1)))
        assert (found.reshape(4, 8) == data).all()
        by_handle = run(
            device, stream, code.get_kernel("read_2d"), texture.handle, 32, 8, 4, *map(numpy.float32, (0.5, 0.5, 1))
        )
        assert (by_handle == found).all()

    def test_filter_and_border(self, device, stream, code):
        array, _ = picture(device, stream)
        resource = ResourceDescriptor.from_opaque_array(array)
        options = {"filter_mode": "linear", "address_mode": "border", "border_color": (7.0, 0, 0, 0)}
        texture = device.create_texture_object(resource=resource, options=options)
        half = run(device, stream, code.get_kernel("read_2d"), texture, 1, 1, 1, *map(numpy.float32, (2.0, 2.0, 1)))
        assert half.tolist() == [16.5]
        outside = run(device, stream, code.get_kernel("read_2d"), texture, 1, 1, 1, *map(numpy.float32, (-9, -9, 1)))
        assert outside.tolist() == [7.0]

    def test_linear_memory(self, device, stream, code):
        buffer = device.allocate(256, stream=stream)
        buffer.copy_from(numpy.arange(64, dtype=numpy.float32), stream=stream)
        resource = ResourceDescriptor.from_linear(buffer, format="float32", num_channels=1, size_bytes=64)
        texture = device.create_texture_object(resource=resource)
        # The texture keeps the memory.
        buffer.close()
        found = run(device, stream, code.get_kernel("read_1d"), texture, 20, 20)
        assert found.tolist() == [*range(16), 0, 0, 0, 0]

    def test_memory_is_freed_after_the_launch(self, device, stream, code):
        """A texture that is passed to a launch and dropped: its buffer is freed in the order of that stream."""
        other = device.create_stream()
        buffer = device.allocate(256, stream=other)
        buffer.copy_from(numpy.arange(64, dtype=numpy.float32), stream=other)
        other.sync()
        texture = device.create_texture_object(
            resource=ResourceDescriptor.from_linear(buffer, format="float32", num_channels=1)
        )
        buffer.close()
        out = device.allocate(256, stream=stream)
        launch(stream, LaunchConfig(grid=1, block=64), code.get_kernel("read_1d"), texture, out, 64)
        stream.sync()
        texture.close()
        back = numpy.zeros(64, numpy.float32)
        out.copy_to(back, stream=stream)
        stream.sync()
        assert back.tolist() == list(range(64))

    def test_picture_of_linear_memory(self, device, stream, code):
        data = numpy.arange(4 * 128, dtype=numpy.float32).reshape(4, 128)
        buffer = device.allocate(data.nbytes, stream=stream)
        buffer.copy_from(data, stream=stream)
        resource = ResourceDescriptor.from_pitch2d(
            buffer, format="float32", num_channels=1, width=8, height=4, pitch_bytes=512
        )
        texture = device.create_texture_object(resource=resource)
        found = run(device, stream, code.get_kernel("read_2d"), texture, 32, 8, 4, *map(numpy.float32, (0.5, 0.5, 1)))
        assert (found.reshape(4, 8) == data[:, :8]).all()

    def test_levels(self, device, stream, code):
        array = device.create_mipmapped_array(MipmappedArrayOptions((8, 8), "float32", 1, 4))
        for number in range(4):
            level = array.get_level(number)
            level.copy_from(numpy.full(level.size_bytes // 4, 10.0 + number, numpy.float32), stream=stream)
        texture = device.create_texture_object(
            resource=ResourceDescriptor.from_mipmapped_array(array),
            options=TextureObjectOptions(normalized_coords=True, max_mipmap_level_clamp=3),
        )
        array.close()
        found = run(device, stream, code.get_kernel("read_level"), texture, 4, numpy.float32(0))
        assert found.tolist() == [10, 11, 12, 13]

    def test_layers(self, device, stream, code):
        data = numpy.arange(3 * 2 * 4, dtype=numpy.float32).reshape(3, 2, 4)
        array = device.create_opaque_array(OpaqueArrayOptions((4, 2, 3), "float32", 1, is_layered=True))
        array.copy_from(data, stream=stream)
        texture = device.create_texture_object(resource=ResourceDescriptor.from_opaque_array(array))
        found = run(device, stream, code.get_kernel("read_layer"), texture, 3)
        assert found.tolist() == data[:, 0, 1].tolist()

    def test_cube(self, device, stream, code):
        data = numpy.repeat(numpy.arange(6, dtype=numpy.float32), 16)
        array = device.create_opaque_array(OpaqueArrayOptions((4, 4, 6), "float32", 1, is_cubemap=True))
        array.copy_from(data, stream=stream)
        texture = device.create_texture_object(
            resource=ResourceDescriptor.from_opaque_array(array), options={"seamless_cubemap": True}
        )
        assert run(device, stream, code.get_kernel("read_face"), texture, 6).tolist() == [0, 1, 2, 3, 4, 5]

    def test_refused_by_the_driver(self, device, stream):
        array, _ = picture(device, stream)
        resource = ResourceDescriptor.from_opaque_array(array)
        with pytest.raises(CUDAError, match="(?s)CUDA_ERROR_INVALID_VALUE.*needs an array that is a cube"):
            device.create_texture_object(resource=resource, options={"seamless_cubemap": True})
        buffer = device.allocate(1024, stream=stream)
        odd = ResourceDescriptor.from_pitch2d(buffer, format="int8", num_channels=1, width=5, height=7, pitch_bytes=33)
        with pytest.raises(CUDAError, match="(?s)CUDA_ERROR_INVALID_VALUE.*pitch is 0x21"):
            device.create_texture_object(resource=odd)

    @pytest.mark.parametrize("wrong", [None, 5, "array"])
    def test_wrong_resource(self, device, wrong):
        for create in (device.create_texture_object, device.create_surface_object):
            with pytest.raises(TypeError, match="'resource' is of type"):
                create(resource=wrong)

    def test_closed_resource(self, device, stream):
        array, _ = picture(device, stream)
        resource = ResourceDescriptor.from_opaque_array(array)
        array.close()
        with pytest.raises(RuntimeError, match="closed"):
            device.create_texture_object(resource=resource)

    def test_closed_texture_is_no_argument(self, device, stream, code):
        array, _ = picture(device, stream)
        texture = device.create_texture_object(resource=ResourceDescriptor.from_opaque_array(array))
        texture.close()
        with pytest.raises(RuntimeError, match="argument 1 .*closed TextureObject|closed TextureObject"):
            run(device, stream, code.get_kernel("read_1d"), texture, 1, 1)


class TestSurface:
    def test_write(self, device, stream, code):
        array, _ = picture(device, stream, is_surface_load_store=True)
        surface = device.create_surface_object(resource=ResourceDescriptor.from_opaque_array(array))
        assert type(surface) is SurfaceObject and surface.device is device and surface.resource.source is array
        launch(stream, LaunchConfig(grid=1, block=32), code.get_kernel("fill"), surface, 8)
        found = numpy.zeros((4, 8), numpy.float32)
        array.copy_to(found, stream=stream)
        stream.sync()
        assert (found == 100 * numpy.arange(4)[:, None] + numpy.arange(8)).all()
        surface.close()
        surface.close()
        assert (surface.handle, surface.is_closed, surface.resource) == (0, True, None)
        with pytest.raises(RuntimeError, match="closed SurfaceObject"):
            launch(stream, LaunchConfig(grid=1, block=32), code.get_kernel("fill"), surface, 8)

    def test_a_level(self, device, stream, code):
        array = device.create_mipmapped_array(MipmappedArrayOptions((8, 8), "float32", 1, 2, True))
        level = array.get_level(1)
        with device.create_surface_object(resource=ResourceDescriptor.from_opaque_array(level)) as surface:
            array.close()
            launch(stream, LaunchConfig(grid=1, block=16), code.get_kernel("fill"), surface, 4)
            stream.sync()
        found = numpy.zeros((4, 4), numpy.float32)
        level.copy_to(found, stream=stream)
        stream.sync()
        assert found[3].tolist() == [300, 301, 302, 303]

    def test_wrong_resources(self, device, stream):
        array, _ = picture(device, stream)
        buffer = device.allocate(64, stream=stream)
        mipmapped = device.create_mipmapped_array(MipmappedArrayOptions((8, 8), "float32", 1, 2, True))
        for resource, text in [
            (ResourceDescriptor.from_opaque_array(array), "surface_load_store"),
            (ResourceDescriptor.from_mipmapped_array(mipmapped), "mipmapped_array"),
            (ResourceDescriptor.from_linear(buffer, format="int8", num_channels=1), "linear"),
        ]:
            with pytest.raises(ValueError, match=text):
                device.create_surface_object(resource=resource)


class TestLifetime:
    def test_texture_outlives_everything_else(self, device, stream, code):
        array, data = picture(device, stream)
        texture = device.create_texture_object(resource=ResourceDescriptor.from_opaque_array(array))
        array.close()
        del array
        gc.collect()
        found = run(device, stream, code.get_kernel("read_2d"), texture, 32, 8, 4, *map(numpy.float32, (0.5, 0.5, 1)))
        assert (found.reshape(4, 8) == data).all()

    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
    def test_dropped_in_any_order(self, device, stream, order):
        array, _ = picture(device, stream, is_surface_load_store=True)
        resource = ResourceDescriptor.from_opaque_array(array)
        objects = [
            array,
            device.create_texture_object(resource=resource),
            device.create_surface_object(resource=resource),
        ]
        alive = [weakref.ref(it) for it in objects]
        del array, resource
        for index in order:
            objects[index] = None
            gc.collect()
        assert [it() for it in alive] == [None] * 3

    def test_destroyed_by_the_program(self, device, stream):
        array, _ = picture(device, stream, is_surface_load_store=True)
        resource = ResourceDescriptor.from_opaque_array(array)
        texture = device.create_texture_object(resource=resource)
        surface = device.create_surface_object(resource=resource)
        check(driver.cuTexObjectDestroy(texture.handle))
        check(driver.cuSurfObjectDestroy(surface.handle))
        # The driver may give the handles to these; closing the former objects must not destroy them.
        again = device.create_texture_object(resource=resource), device.create_surface_object(resource=resource)
        texture.close()
        surface.close()
        check(driver.cuTexObjectGetTextureDesc(again[0].handle))
        check(driver.cuSurfObjectGetResourceDesc(again[1].handle))

    def test_cycles_are_collected(self, device, stream):
        class Kept(TextureObjectOptions):
            pass

        array, _ = picture(device, stream)
        options = Kept()
        texture = device.create_texture_object(resource=ResourceDescriptor.from_opaque_array(array), options=options)
        options.texture = texture
        handle = texture.handle
        import weakref

        reference = weakref.ref(texture)
        del texture, options
        gc.collect()
        assert reference() is None and handle
