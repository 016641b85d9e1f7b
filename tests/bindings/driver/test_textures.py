"""Texture and surface objects: fetches compared with helpers/texture_reference.py, surfaces, and descriptors.

Filtered fetches use coordinates whose weights and products have at most eight bits: multiples of 1/128 of a texel in
one dimension, of 1/16 in two, of 1/4 in three. There every device returns the guide's value; elsewhere hardware also
rounds the products of weights.
"""

import itertools

import numpy as np
import pytest

from helpers import texture_reference as reference
from helpers.arrays import (
    BORDER,
    CLAMP,
    CUBEMAP,
    FORMAT,
    FORMATS,
    GATHER,
    LAYERED,
    MIRROR,
    NORMALIZED,
    READ_AS_INTEGER,
    SEAMLESS,
    SRGB,
    SURFACE,
    WRAP,
    Array,
    Mipmapped,
    linear_resource,
    make_texture,
    pitched_resource,
    read_box,
    resource,
    resource_view,
    texture_descriptor,
)
from helpers.device import DeviceArray, Module, check, driver, synchronize

pytestmark = pytest.mark.usefixtures("shared_context")
R = driver.CUresult
INVALID_VALUE = R.CUDA_ERROR_INVALID_VALUE

FETCHES = {
    "tex1d": "tex1D<V>(t, x[i])",
    "tex2d": "tex2D<V>(t, x[i], y[i])",
    "tex3d": "tex3D<V>(t, x[i], y[i], z[i])",
    "tex1d_layered": "tex1DLayered<V>(t, x[i], (int)z[i])",
    "tex2d_layered": "tex2DLayered<V>(t, x[i], y[i], (int)z[i])",
    "cube": "texCubemap<V>(t, x[i], y[i], z[i])",
    "cube_layered": "texCubemapLayered<V>(t, x[i], y[i], z[i], (int)l[i])",
    "lod1d": "tex1DLod<V>(t, x[i], l[i])",
    "lod2d": "tex2DLod<V>(t, x[i], y[i], l[i])",
    "lod3d": "tex3DLod<V>(t, x[i], y[i], z[i], l[i])",
    "grad2d": "tex2DGrad<V>(t, x[i], y[i], make_float2(l[i], 0), make_float2(0, l[i]))",
    "buffer": "tex1Dfetch<V>(t, (int)x[i])",
    **{f"gather{c}": f"tex2Dgather<V>(t, x[i], y[i], {c})" for c in range(4)},
}
SURFACES = {
    "1d": ("surf1D{}({}s, (x + {}) * (int)sizeof(T){})", "x"),
    "2d": ("surf2D{}({}s, (x + {}) * (int)sizeof(T), y{})", "y"),
    "3d": ("surf3D{}({}s, (x + {}) * (int)sizeof(T), y, z{})", "z"),
    "1d_layered": ("surf1DLayered{}({}s, (x + {}) * (int)sizeof(T), z{})", "z"),
    "2d_layered": ("surf2DLayered{}({}s, (x + {}) * (int)sizeof(T), y, z{})", "z"),
    "cube": ("surfCubemap{}({}s, (x + {}) * (int)sizeof(T), y, z{})", "z"),
}


def fetch_source():
    lines = []
    for name, expression in FETCHES.items():
        lines.append(f"""
template <class V> __global__ void {name}(cudaTextureObject_t t, int n, const float *x, const float *y, const float *z,
                                          const float *l, V *out) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = {expression};
}}""")
    return "".join(lines)


def surface_source():
    lines = []
    for name, (call, _) in SURFACES.items():
        read = call.format("read<T>", "", "dx", ", mode")
        write = call.format("write", "in[i], ", "dx", ", mode")
        lines.append(f"""
template <class T, cudaSurfaceBoundaryMode mode> __global__ void read_{name}(cudaSurfaceObject_t s, int w, int h, int d,
                                                                             int dx, T *out) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= w * h * d) return;
    int x = i % w, y = i / w % h, z = i / (w * h);
    out[i] = {read};
}}
template <class T, cudaSurfaceBoundaryMode mode> __global__ void write_{name}(cudaSurfaceObject_t s, int w, int h, int d,
                                                                              int dx, const T *in) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= w * h * d) return;
    int x = i % w, y = i / w % h, z = i / (w * h);
    {write};
}}""")
    return "".join(lines)


INTEGER_FETCHES = ("tex1d", "tex2d", "tex3d", "buffer", "gather0")


@pytest.fixture(scope="module")
def fetches(shared_context):
    names = [f"{f}<float4>" for f in FETCHES]
    names += [f"{f}<{v}>" for f in INTEGER_FETCHES for v in ("int4", "uint4") if not f.startswith("gather")]
    return Module.from_source(fetch_source(), names)


SURFACE_TYPES = {np.uint8: "unsigned char", np.uint16: "unsigned short", np.uint32: "unsigned int"}


@pytest.fixture(scope="module")
def surface_kernels(shared_context):
    types = [*SURFACE_TYPES.values(), "float2", "float4"]
    modes = ("cudaBoundaryModeZero", "cudaBoundaryModeClamp")
    names = [f"{d}_{s}<{t}, {m}>" for d in ("read", "write") for s in SURFACES for t in types for m in modes]
    return Module.from_source(surface_source(), names)


def run(module, kind, texture, *coordinates, vector="float4"):
    """Fetches at the coordinates (x, y, z, level); four components each."""
    n = len(np.atleast_1d(coordinates[0]))
    rows = [DeviceArray(np.broadcast_to(np.asarray(c, np.float32), (n,))) for c in coordinates]
    rows += [rows[0]] * (4 - len(rows))
    dtype = {"float4": np.float32, "int4": np.int32, "uint4": np.uint32}[vector]
    out = DeviceArray(np.zeros((n, 4), dtype))
    module.launch(f"{kind}<{vector}>", (n + 127) // 128, 128, np.uint64(int(texture)), np.int32(n), *rows, out)
    synchronize()
    result = out.get()
    for array in {id(a): a for a in (*rows, out)}.values():
        array.free()
    return result


# One-dimensional textures have a second dimension, in which the border halves all weights.
PARTS = {1: 128, 2: 16, 3: 4}


def places(length, count, seed, parts=256):
    """Positions in texels, in and around a texture, as multiples of 1/parts: corners, centers and random ones."""
    rng = np.random.default_rng(seed)
    special = [
        0,
        0.5,
        1,
        length / 2,
        length - 1,
        length - 0.5,
        length,
        length + 0.5,
        -0.5,
        -1,
        -length,
        2 * length,
        3 * length + 0.25,
    ]
    return np.concatenate(
        [special, rng.integers(-2 * length * parts, 3 * length * parts, count - len(special)) / parts]
    )


def values(shape, dtype, seed=1):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return rng.integers(-1000, 1000, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, endpoint=True, dtype=dtype)


MODES = {"wrap": WRAP, "clamp": CLAMP, "mirror": MIRROR, "border": BORDER}
IMAGES = {"tex1d": (16, 1), "tex2d": (8, 16, 1), "tex3d": (4, 8, 16, 1)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("linear", [False, True], ids=["point", "linear"])
@pytest.mark.parametrize("normalized", [False, True], ids=["texels", "normalized"])
@pytest.mark.parametrize("kind", IMAGES)
def test_filter_and_address_modes(fetches, kind, normalized, linear, mode):
    if mode in ("wrap", "mirror") and not normalized:
        pytest.skip("the guide defines wrap and mirror for normalized coordinates only")
    shape = IMAGES[kind]
    array = Array(values(shape, np.float32))
    border = (10.0, 20.0, 30.0, 40.0)
    address = MODES[mode]
    flags = NORMALIZED if normalized else 0
    texture = make_texture(array, address=address, linear=linear, flags=flags, border=border)
    lengths = shape[:-1][::-1]
    parts = PARTS[len(lengths)]
    coordinates = [places(n, 600, seed, parts) / (n if normalized else 1) for seed, n in enumerate(lengths)]
    if not linear:
        # Exactly between texels the last bit of the product decides, which the guide's formula does not model.
        coordinates = [c + 1 / 512 / (n if normalized else 1) for c, n in zip(coordinates, lengths)]
    got = run(fetches, kind, texture, *coordinates)
    want = reference.Texture(array.data, address, linear, normalized, border=border).fetch(*coordinates)
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-3 if linear else 0)
    check(driver.cuTexObjectDestroy(texture))
    array.destroy()


def test_filter_weights_have_eight_bits(fetches):
    """One texel of one among zeros: the fetched value is the weight."""
    data = np.zeros((8, 1), np.float32)
    data[4] = 1
    array = Array(data)
    texture = make_texture(array, linear=True)
    x = np.linspace(3, 6, 3 * 4096 + 1, dtype=np.float32)
    got = run(fetches, "tex1d", texture, x)[:, 0]
    assert set((got * 256).tolist()) == set(range(257))
    weight = 1 - np.abs(x - 4.5)
    assert np.abs(got - np.clip(weight, 0, 1)).max() <= 1 / 512 + 1e-7
    check(driver.cuTexObjectDestroy(texture))
    array.destroy()


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("dtype", list(FORMATS), ids=str)
def test_unnormalized_reads_of_every_format(fetches, dtype, channels):
    """Every element with every value of its channels: floats as floats, integers as integers."""
    data = values((8, 16, channels), dtype)
    array = Array(data)
    texture = make_texture(array, flags=READ_AS_INTEGER)
    y, x = (c.reshape(-1) + 0.5 for c in np.mgrid[:8, :16])
    vector = {"f": "float4", "i": "int4", "u": "uint4"}[dtype.kind]
    got = run(fetches, "tex2d", texture, x, y, vector=vector)
    want = reference.four_components(data.reshape(-1, channels))
    np.testing.assert_array_equal(got, want)
    check(driver.cuTexObjectDestroy(texture))
    array.destroy()


@pytest.mark.parametrize("linear", [False, True], ids=["point", "linear"])
@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16], ids=lambda t: t.__name__)
def test_normalized_reads(fetches, dtype, channels, linear):
    data = values((8, 16, channels), dtype)
    least = np.iinfo(dtype).min
    if linear:
        # The value of the most negative integer in a sum is unspecified.
        data = np.maximum(data, least + 1)
    else:
        data[0, :4] = [[least], [np.iinfo(dtype).max], [0], [least + 1]]
    array = Array(data)
    # Border colors are quantized to the format; these are exact in every format.
    border = (1, 0, 0, 1)
    texture = make_texture(array, linear=linear, address=BORDER, border=border)
    if linear:
        x, y = places(16, 500, 1, 16), places(8, 500, 2, 16)
    else:
        y, x = (c.reshape(-1) + 0.5 for c in np.mgrid[-2:10, -2:18])
    got = run(fetches, "tex2d", texture, x, y)
    want = reference.Texture(data, BORDER, linear, normalized_read=True, border=border).fetch(x, y)
    # Sums of integers have about sixteen bits.
    np.testing.assert_allclose(got, want, rtol=0, atol=4e-5 if linear else 1e-7)
    check(driver.cuTexObjectDestroy(texture))
    array.destroy()


def test_formats_that_are_always_normalized(fetches):
    y, x = (c.reshape(-1) + 0.5 for c in np.mgrid[:4, :8])
    for sign, types in (("U", (np.uint8, np.uint16)), ("S", (np.int8, np.int16))):
        for dtype, bits in zip(types, (8, 16)):
            for channels in (1, 2, 4):
                format = getattr(FORMAT, f"CU_AD_FORMAT_{sign}NORM_INT{bits}X{channels}")
                array = Array(values((4, 8, channels), dtype), format=format)
                texture = make_texture(array)
                want = reference.Texture(array.data, normalized_read=True).fetch(x, y)
                np.testing.assert_allclose(run(fetches, "tex2d", texture, x, y), want, rtol=0, atol=1e-7)
                check(driver.cuTexObjectDestroy(texture))
                array.destroy()


def test_srgb(fetches):
    data = np.arange(256, dtype=np.uint8).reshape(8, 8, 4)
    array = Array(data)
    texture = make_texture(array, flags=SRGB)
    y, x = (c.reshape(-1) + 0.5 for c in np.mgrid[:8, :8])
    want = data.reshape(-1, 4) / 255
    # Alpha is linear.
    want[:, :3] = reference.srgb_to_linear(want[:, :3])
    # Hardware uses a table with eight significant bits, in steps of 2**-14 at least.
    got = run(fetches, "tex2d", texture, x, y)
    np.testing.assert_allclose(got[:, 3], want[:, 3], rtol=0, atol=1e-7)
    np.testing.assert_allclose(got, want, rtol=2**-8, atol=2**-15)
    steps = got[:, :3] * 2**14
    assert (steps == np.round(steps)).all()
    # Codes 1, 188 and 252: the last is not the nearer of the two steps around 249.2.
    assert [got[0, 1], got[47, 0], got[63, 0]] == [5 / 2**14, 129 / 256, 250 / 256]
    check(driver.cuTexObjectDestroy(texture))
    array.destroy()


@pytest.mark.parametrize("kind, shape", [("tex1d_layered", (5, 16, 1)), ("tex2d_layered", (5, 8, 16, 1))])
def test_layers(fetches, kind, shape):
    array = Array(values(shape, np.float32), flags=LAYERED)
    texture = make_texture(array, linear=True)
    x, y = places(16, 400, 1, 16), places(8, 400, 2, 16)
    # Layer indices are clamped.
    layer = np.random.default_rng(3).integers(0, 8, 400)
    got = run(fetches, kind, texture, x, y, layer)
    used = np.minimum(layer, 4)
    for n in range(5):
        image = reference.Texture(array.data[n], CLAMP, True)
        at = used == n
        want = image.fetch(*(c[at] for c in (x, y)[: len(shape) - 2]))
        np.testing.assert_allclose(got[at], want, rtol=0, atol=2e-3)
    check(driver.cuTexObjectDestroy(texture))
    array.destroy()


def directions(count):
    """Directions whose largest component dominates, away from the edges between texels."""
    rng = np.random.default_rng(5)
    d = rng.uniform(-1, 1, (3, 20 * count))
    _face, s, t = reference.cube_face(*d.astype(np.float32))
    clear = (np.abs((s * 8) % 1 - 0.5) < 0.45) & (np.abs((t * 8) % 1 - 0.5) < 0.45)
    clear &= (np.abs(s - 0.5) < 0.49) & (np.abs(t - 0.5) < 0.49)
    d = d[:, clear][:, :count].astype(np.float32)
    assert d.shape[1] == count
    return d


@pytest.mark.parametrize("seamless", [False, True])
def test_cubemaps(fetches, seamless):
    array = Array(values((6, 8, 8, 1), np.float32), flags=CUBEMAP)
    texture = make_texture(array, flags=NORMALIZED | (SEAMLESS if seamless else 0))
    d = directions(600)
    face, s, t = reference.cube_face(*d)
    assert set(face) == set(range(6))
    want = array.data[face, np.floor(t * 8).astype(int), np.floor(s * 8).astype(int), 0]
    np.testing.assert_array_equal(run(fetches, "cube", texture, *d)[:, 0], want)
    # The six axes, which are the centers of the faces.
    axes = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], np.float32).T
    np.testing.assert_array_equal(run(fetches, "cube", texture, *axes)[:, 0], array.data[range(6), 4, 4, 0])
    check(driver.cuTexObjectDestroy(texture))
    array.destroy()


def test_filtered_and_layered_cubemaps(fetches):
    array = Array(values((18, 8, 8, 1), np.float32), flags=CUBEMAP | LAYERED)
    texture = make_texture(array, linear=True, flags=NORMALIZED)
    # Sixteenths of texels, and a largest component of one: the division is exact.
    rng = np.random.default_rng(6)
    s, t = (rng.integers(-60, 60, 300) / 64 for _ in range(2))
    layer = rng.integers(0, 3, 300)
    one = np.ones(300)
    by_face = [(one, -t, -s), (-one, -t, s), (s, one, t), (s, -one, -t), (s, -t, one), (-s, -t, -one)]
    for face, direction in enumerate(by_face):
        got = run(fetches, "cube_layered", texture, *direction, layer)
        for n in range(3):
            image = reference.Texture(array.data[6 * n + face], CLAMP, True, True)
            at = layer == n
            want = image.fetch((s[at] + 1) / 2, (t[at] + 1) / 2)
            np.testing.assert_allclose(got[at], want, rtol=0, atol=2e-3)
    check(driver.cuTexObjectDestroy(texture))
    array.destroy()


def pyramid(shape):
    """Images halving in size, down to one texel."""
    levels = []
    while True:
        levels.append(values((*shape, 1), np.float32, seed=len(levels)))
        if max(shape) == 1:
            return levels
        shape = tuple(max(1, n // 2) for n in shape)


@pytest.mark.parametrize("kind, shape", [("lod1d", (16,)), ("lod2d", (8, 16)), ("lod3d", (4, 8, 16))])
@pytest.mark.parametrize("linear", [False, True], ids=["point", "linear"])
@pytest.mark.parametrize("mip_linear", [False, True], ids=["mip point", "mip linear"])
def test_levels_of_detail(fetches, kind, shape, linear, mip_linear):
    levels = pyramid(shape)
    mipmapped = Mipmapped(levels)
    bias, clamp = 0.25, (0.5, 3.75)
    texture = make_texture(mipmapped, linear=linear, mip_linear=mip_linear, flags=NORMALIZED, bias=bias, clamp=clamp)
    # Positions away from the edges between texels in every level.
    rng = np.random.default_rng(8)
    coordinates = [
        (rng.integers(0, 16 * n, 300) + 0.5) / (16 * n) if linear else (rng.integers(0, n, 300) + 0.5) / n
        for n in shape[::-1]
    ]
    requested = rng.integers(-4, 24, 300) / 4 + (0 if mip_linear else 0.0625)
    got = run(fetches, kind, texture, *(coordinates + [0] * (3 - len(shape))), requested)
    level = np.clip(requested + bias, *clamp)
    images = [reference.Texture(image, CLAMP, linear, True) for image in levels]
    stack = np.stack([image.fetch(*coordinates) for image in images])
    lane = np.arange(300)
    if mip_linear:
        first = np.floor(level).astype(int)
        second = np.minimum(first + 1, len(levels) - 1)
        part = (level - first)[:, None]
        want = stack[first, lane] * (1 - part) + stack[second, lane] * part
    else:
        want = stack[np.floor(level + 0.5).astype(int), lane]
    # Coordinates exact in one level are not in the next: one or two steps of a weight are tolerated.
    step = 2000 / 256
    np.testing.assert_allclose(got, want, rtol=0, atol=2 * step if linear else 4e-3 if mip_linear else 0)
    check(driver.cuTexObjectDestroy(texture))
    mipmapped.destroy()


def test_gradients_select_the_level(fetches):
    levels = [np.full((16 >> n, 16 >> n, 1), n, np.float32) for n in range(5)]
    mipmapped = Mipmapped(levels)
    texture = make_texture(mipmapped, mip_linear=True, linear=True, flags=NORMALIZED, clamp=(0, 10))
    # A step of 2^n texels of the finest level selects level n.
    n = np.arange(-2, 7)
    got = run(fetches, "grad2d", texture, np.full(9, 0.5), np.full(9, 0.5), np.zeros(9), 2.0**n / 16)
    np.testing.assert_allclose(got[:, 0], np.clip(n, 0, 4), atol=0.02)
    check(driver.cuTexObjectDestroy(texture))
    mipmapped.destroy()


@pytest.mark.parametrize("component", range(4))
def test_gather(fetches, component):
    array = Array(values((8, 16, 4), np.float32), flags=GATHER)
    texture = make_texture(array, address=BORDER, border=(1, 2, 3, 4))
    # Away from the texel centers, where the set of four texels changes.
    x, y = (places(n, 400, seed) + 1 / 16 for seed, n in enumerate((16, 8)))
    got = run(fetches, f"gather{component}", texture, x, y)
    want = reference.Texture(array.data, BORDER, border=(1, 2, 3, 4)).gather(x, y, component)
    np.testing.assert_array_equal(got, want)
    check(driver.cuTexObjectDestroy(texture))
    array.destroy()


@pytest.mark.parametrize("dtype", [np.float32, np.uint32, np.int32, np.uint8], ids=lambda t: t.__name__)
def test_linear_memory(fetches, dtype):
    data = values((1000,), dtype)
    memory = DeviceArray(data)
    r = linear_resource(memory.address, data.nbytes, FORMATS[data.dtype])
    texture = make_texture(r, flags=READ_AS_INTEGER)
    x = np.concatenate([np.arange(1000), [-1, 1000, 1001, 100000, -100000]])
    vector = {"f": "float4", "i": "int4", "u": "uint4"}[data.dtype.kind]
    got = run(fetches, "buffer", texture, x, vector=vector)
    np.testing.assert_array_equal(got[:1000], reference.four_components(data[:, None]))
    # Reads beyond the end return zero.
    np.testing.assert_array_equal(got[1000:, 0], 0)
    if dtype is np.uint8:
        texture_of_floats = make_texture(r)
        got = run(fetches, "buffer", texture_of_floats, x[:1000])
        np.testing.assert_allclose(got[:, 0], data / 255, rtol=0, atol=1e-7)
        check(driver.cuTexObjectDestroy(texture_of_floats))
    check(driver.cuTexObjectDestroy(texture))
    memory.free()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("linear", [False, True], ids=["point", "linear"])
def test_pitched_memory(fetches, linear, mode):
    data = np.zeros((8, 32), np.float32)
    data[:, :16] = values((8, 16), np.float32)
    memory = DeviceArray(data)
    texture = make_texture(
        pitched_resource(memory.address, 16, 8, 128), linear=linear, address=MODES[mode], flags=NORMALIZED
    )
    x, y = (places(n, 400, seed, 16) / n + (0 if linear else 1 / 512 / n) for seed, n in enumerate((16, 8)))
    want = reference.Texture(data[:, :16, None], MODES[mode], linear, True).fetch(x, y)
    np.testing.assert_allclose(run(fetches, "tex2d", texture, x, y), want, rtol=0, atol=2e-3 if linear else 0)
    check(driver.cuTexObjectDestroy(texture))
    memory.free()


def test_resource_views(fetches):
    data = values((8, 16, 1), np.uint32)
    array = Array(data)
    y, x = (c.reshape(-1) + 0.5 for c in np.mgrid[:8, :16])
    # The same bits as four bytes, and as two signed 16-bit integers.
    texture = make_texture(array, resource_view(0x03, 16, 8), flags=READ_AS_INTEGER)
    got = run(fetches, "tex2d", texture, x, y, vector="uint4")
    np.testing.assert_array_equal(got, data.view(np.uint8).reshape(-1, 4))
    check(driver.cuTexObjectDestroy(texture))
    texture = make_texture(array, resource_view(0x0B, 16, 8), flags=READ_AS_INTEGER)
    got = run(fetches, "tex2d", texture, x, y, vector="int4")
    np.testing.assert_array_equal(got[:, :2], data.view(np.int16).reshape(-1, 2))
    check(driver.cuTexObjectDestroy(texture))
    array.destroy()
    layered = Array(values((5, 8, 16, 1), np.float32), flags=LAYERED)
    texture = make_texture(layered, resource_view(0x16, 16, 8, 5, layers=(1, 3)))
    for layer in range(3):
        got = run(fetches, "tex2d_layered", texture, x, y, np.full(128, layer))
        np.testing.assert_array_equal(got[:, 0].reshape(8, 16), layered.data[layer + 1, :, :, 0])
    check(driver.cuTexObjectDestroy(texture))
    layered.destroy()
    levels = pyramid((16, 16))
    mipmapped = Mipmapped(levels)
    texture = make_texture(mipmapped, resource_view(0x16, 16, 16, levels=(1, 3)), flags=NORMALIZED, clamp=(0, 8))
    for level, want in ((0, 1), (1, 2), (2, 3), (5, 3)):
        got = run(fetches, "lod2d", texture, [0.25], [0.25], [0], [level])
        n = 16 >> want
        assert got[0, 0] == levels[want][n // 4, n // 4, 0]
    check(driver.cuTexObjectDestroy(texture))
    mipmapped.destroy()


# ---- what they are made of


def view_fields(v):
    return int(v.format), v.width, v.height, v.depth, v.firstMipmapLevel, v.lastMipmapLevel, v.firstLayer, v.lastLayer


def test_descriptors_are_returned():
    array = Array(values((8, 16, 1), np.float32))
    t = texture_descriptor((WRAP, CLAMP, MIRROR), True, NORMALIZED | 0x20, mip_linear=True, bias=0.5, clamp=(0.25, 3.0))
    texture = check(driver.cuTexObjectCreate(resource(array), t, resource_view(0x16, 16, 8)))
    back = check(driver.cuTexObjectGetTextureDesc(texture))
    assert list(back.addressMode) == [WRAP, CLAMP, MIRROR] and back.flags == NORMALIZED | 0x20
    assert int(back.filterMode) == int(back.mipmapFilterMode) == 1
    assert (back.mipmapLevelBias, back.minMipmapLevelClamp, back.maxMipmapLevelClamp) == (0.5, 0.25, 3.0)
    assert view_fields(check(driver.cuTexObjectGetResourceViewDesc(texture))) == (0x16, 16, 8, 0, 0, 0, 0, 0)
    r = check(driver.cuTexObjectGetResourceDesc(texture))
    assert r.resType == driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
    check(driver.cuTexObjectDestroy(texture))
    # Without a view the descriptor is zero.
    texture = make_texture(array)
    assert view_fields(check(driver.cuTexObjectGetResourceViewDesc(texture))) == (0,) * 8
    check(driver.cuTexObjectDestroy(texture))
    memory = DeviceArray(np.zeros(256, np.float32))
    texture = make_texture(pitched_resource(memory.address, 16, 8, 64, FORMAT.CU_AD_FORMAT_UNSIGNED_INT8, 4))
    r = check(driver.cuTexObjectGetResourceDesc(texture)).res.pitch2D
    assert (int(r.devPtr), r.width, r.height, r.pitchInBytes, r.numChannels) == (memory.address, 16, 8, 64, 4)
    check(driver.cuTexObjectDestroy(texture))
    memory.free()
    array.destroy()


def wrong_textures(memory, array, layered, cubemap):
    plain = texture_descriptor()
    base = memory.address
    pitch = lambda **k: pitched_resource(**{"address": base, "width": 16, "height": 8, "pitch": 64} | k)  # noqa: E731
    flagged = resource(array)
    flagged.flags = 1
    yield "no array", resource(driver.CUarray(0)), plain, None
    yield "resource flags", flagged, plain, None
    yield "unknown texture flags", resource(array), texture_descriptor(flags=0x80), None
    yield "seamless, no cubemap", resource(array), texture_descriptor(flags=SEAMLESS), None
    yield "linear memory, misaligned", linear_resource(base + 4, 64), plain, None
    yield "linear memory, null", linear_resource(0, 64), plain, None
    yield "linear memory, three channels", linear_resource(base, 96, channels=3), plain, None
    yield "linear memory, too much", linear_resource(base, 1 << 40), plain, None
    yield "linear memory of blocks", linear_resource(base, 64, FORMAT.CU_AD_FORMAT_BC1_UNORM, 4), plain, None
    yield "linear memory, always normalised", linear_resource(base, 64, FORMAT.CU_AD_FORMAT_UNORM_INT8X1), plain, None
    yield "pitch, misaligned address", pitch(address=base + 4), plain, None
    yield "pitch, misaligned pitch", pitch(pitch=72), plain, None
    yield "pitch, too wide", pitch(width=131073, pitch=524320), plain, None
    yield "pitch, too high", pitch(height=65001), plain, None
    yield "pitch, too far apart", pitch(pitch=2097152), plain, None
    yield "view without a format", resource(array), plain, resource_view(0, 16, 8)
    yield "view of another size", resource(array), plain, resource_view(0x16, 8, 8)
    yield "view of size zero", resource(array), plain, resource_view(0x16, 0)
    yield "view with depth", resource(array), plain, resource_view(0x16, 16, 8, 1)
    yield "view of wider elements", resource(array), plain, resource_view(0x17, 16, 8)
    yield "view of blocks", resource(array), plain, resource_view(0x19, 64, 32)
    yield "view with layers of a plain array", resource(array), plain, resource_view(0x16, 16, 8, layers=(0, 2))
    yield "view with levels of a plain array", resource(array), plain, resource_view(0x16, 16, 8, levels=(0, 1))
    yield "view with turned layers", resource(layered), plain, resource_view(0x16, 16, 8, 5, layers=(2, 1))
    yield "view without depth of layers", resource(layered), plain, resource_view(0x16, 16, 8, layers=(0, 4))
    yield "view with faces as layers", resource(cubemap), plain, resource_view(0x16, 8, 8, 6, layers=(0, 5))


def test_invalid_texture_descriptors_are_refused():
    memory = DeviceArray(np.zeros(16384, np.float32))
    array = Array(values((8, 16, 1), np.float32))
    layered = Array(values((5, 8, 16, 1), np.float32), flags=LAYERED)
    cubemap = Array(values((6, 8, 8, 1), np.float32), flags=CUBEMAP)
    for what, r, t, v in wrong_textures(memory, array, layered, cubemap):
        assert driver.cuTexObjectCreate(r, t, v) == (INVALID_VALUE, None), what
    for a in (array, layered, cubemap):
        a.destroy()
    memory.free()


def test_invalid_surface_descriptors_are_refused():
    memory = DeviceArray(np.zeros(256, np.float32))
    mipmapped = Mipmapped(pyramid((16, 16)), flags=SURFACE)
    flagged = resource(mipmapped.level(1))
    flagged.flags = 1
    wrong = [
        flagged,
        resource(mipmapped),
        resource(driver.CUarray(0)),
        linear_resource(memory.address, 64),
        pitched_resource(memory.address, 4, 4, 32),
    ]
    for r in wrong:
        assert driver.cuSurfObjectCreate(r) == (INVALID_VALUE, None)
    surface = check(driver.cuSurfObjectCreate(resource(mipmapped.level(1))))
    assert check(driver.cuSurfObjectGetResourceDesc(surface)).resType == driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
    check(driver.cuSurfObjectDestroy(surface))
    mipmapped.destroy()
    memory.free()


def test_null_handles_are_refused():
    check(driver.cuTexObjectDestroy(driver.CUtexObject(0)))
    check(driver.cuSurfObjectDestroy(driver.CUsurfObject(0)))
    for call in (
        driver.cuTexObjectGetResourceDesc,
        driver.cuTexObjectGetTextureDesc,
        driver.cuTexObjectGetResourceViewDesc,
    ):
        assert call(driver.CUtexObject(12345)) == (INVALID_VALUE, None)
    assert driver.cuSurfObjectGetResourceDesc(driver.CUsurfObject(12345)) == (INVALID_VALUE, None)


@pytest.mark.cpu
def test_handles_are_validated():
    array = Array(values((8, 16, 1), np.float32))
    texture, surface = make_texture(array), check(driver.cuSurfObjectCreate(resource(array)))
    for bad in (12345, int(array.handle), int(surface), (1 << 64) - 1):
        assert driver.cuTexObjectDestroy(driver.CUtexObject(bad))[0] == INVALID_VALUE
    assert driver.cuSurfObjectDestroy(driver.CUsurfObject(int(texture)))[0] == INVALID_VALUE
    check(driver.cuTexObjectDestroy(texture))
    assert driver.cuTexObjectDestroy(texture)[0] == INVALID_VALUE
    check(driver.cuSurfObjectDestroy(surface))
    array.destroy()


@pytest.mark.cpu
def test_texture_keeps_its_array_alive(fetches):
    array = Array(values((16, 1), np.float32))
    texture = make_texture(array)
    array.destroy()
    x = np.arange(16) + 0.5
    np.testing.assert_array_equal(run(fetches, "tex1d", texture, x)[:, 0], array.data[:, 0])
    check(driver.cuTexObjectDestroy(texture))


# ---- surfaces

SURFACE_SHAPES = {
    "1d": ((16, 1), 0),
    "2d": ((8, 16, 1), 0),
    "3d": ((4, 8, 16, 1), 0),
    "1d_layered": ((5, 16, 1), LAYERED),
    "2d_layered": ((3, 8, 16, 1), LAYERED),
    "cube": ((6, 8, 8, 1), CUBEMAP),
}


def surface_extent(kind, shape):
    w = shape[-2]
    if kind == "1d_layered":
        return w, 1, shape[0]
    lengths = shape[:-1][::-1]
    return (*lengths, *(1,) * (3 - len(lengths)))


@pytest.mark.parametrize("dtype", SURFACE_TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("kind", SURFACE_SHAPES)
def test_surface_loads_and_stores(surface_kernels, kind, dtype):
    shape, flags = SURFACE_SHAPES[kind]
    array = Array(values(shape, dtype), flags=flags | SURFACE)
    surface = check(driver.cuSurfObjectCreate(resource(array)))
    extent = surface_extent(kind, shape)
    n = int(np.prod(extent))
    grid = (n + 127) // 128
    out = DeviceArray(np.zeros(n, dtype))
    T = SURFACE_TYPES[dtype]
    fixed = [np.uint64(int(surface)), *(np.int32(e) for e in extent)]
    flat = array.data.reshape(extent[::-1])
    for mode, shift in itertools.product(("Zero", "Clamp"), (0, 3, -2)):
        surface_kernels.launch(f"read_{kind}<{T}, cudaBoundaryMode{mode}>", grid, 128, *fixed, np.int32(shift), out)
        synchronize()
        x = np.arange(extent[0]) + shift
        want = flat[..., np.clip(x, 0, extent[0] - 1)].copy()
        if mode == "Zero":
            want[..., (x < 0) | (x >= extent[0])] = 0
        np.testing.assert_array_equal(out.get().reshape(want.shape), want)
    fresh = DeviceArray(values((n,), dtype, seed=9))
    surface_kernels.launch(f"write_{kind}<{T}, cudaBoundaryModeZero>", grid, 128, *fixed, np.int32(3), fresh)
    synchronize()
    want = flat.copy()
    # Stores outside are dropped.
    want[..., 3:] = fresh.host.reshape(want.shape)[..., :-3]
    np.testing.assert_array_equal(array.get().reshape(want.shape), want)
    check(driver.cuSurfObjectDestroy(surface))
    for memory in (out, fresh):
        memory.free()
    array.destroy()


@pytest.mark.parametrize("channels, T", [(2, "float2"), (4, "float4")])
def test_surfaces_with_several_channels(surface_kernels, channels, T):
    array = Array(values((8, 16, channels), np.float32), flags=SURFACE)
    surface = check(driver.cuSurfObjectCreate(resource(array)))
    fixed = [np.uint64(int(surface)), np.int32(16), np.int32(8), np.int32(1), np.int32(0)]
    out = DeviceArray(np.zeros((8, 16, channels), np.float32))
    surface_kernels.launch(f"read_2d<{T}, cudaBoundaryModeZero>", 1, 128, *fixed, out)
    synchronize()
    np.testing.assert_array_equal(out.get(), array.data)
    fresh = DeviceArray(values((8, 16, channels), np.float32, seed=4))
    surface_kernels.launch(f"write_2d<{T}, cudaBoundaryModeZero>", 1, 128, *fixed, fresh)
    synchronize()
    np.testing.assert_array_equal(array.get(), fresh.host)
    check(driver.cuSurfObjectDestroy(surface))
    for memory in (out, fresh):
        memory.free()
    array.destroy()


def test_texture_reads_what_a_surface_wrote_to_a_level(fetches, surface_kernels):
    mipmapped = Mipmapped(pyramid((16, 16)), flags=SURFACE)
    surface = check(driver.cuSurfObjectCreate(resource(mipmapped.level(1))))
    fresh = DeviceArray(values((8, 8, 1), np.uint32, seed=3))
    fixed = [np.uint64(int(surface)), np.int32(8), np.int32(8), np.int32(1), np.int32(0)]
    surface_kernels.launch("write_2d<unsigned int, cudaBoundaryModeZero>", 1, 128, *fixed, fresh)
    synchronize()
    back = read_box(mipmapped.level(1), np.zeros((8, 8, 1), np.uint32), 4)
    np.testing.assert_array_equal(back, fresh.host)
    texture = make_texture(mipmapped, flags=NORMALIZED, clamp=(0, 10))
    y, x = ((c.reshape(-1) + 0.5) / 8 for c in np.mgrid[:8, :8])
    got = run(fetches, "lod2d", texture, x, y, np.zeros(64), np.ones(64))
    np.testing.assert_array_equal(got[:, 0].copy().view(np.uint32), fresh.host.reshape(-1))
    check(driver.cuTexObjectDestroy(texture))
    check(driver.cuSurfObjectDestroy(surface))
    fresh.free()
    mipmapped.destroy()
