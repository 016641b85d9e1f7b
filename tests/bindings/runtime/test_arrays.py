"""The runtime's arrays, textures and surfaces: descriptors, every copy, fetches."""

import numpy as np
import pytest
from cuda.bindings import driver, runtime

from helpers.device import Module, check, on_cpu_device

E = runtime.cudaError_t
K = runtime.cudaMemcpyKind
TO_DEVICE, TO_HOST, ON_DEVICE, BY_ADDRESS = (
    K.cudaMemcpyHostToDevice,
    K.cudaMemcpyDeviceToHost,
    K.cudaMemcpyDeviceToDevice,
    K.cudaMemcpyDefault,
)
SIGNED, UNSIGNED, FLOAT = (
    runtime.cudaChannelFormatKind.cudaChannelFormatKindSigned,
    runtime.cudaChannelFormatKind.cudaChannelFormatKindUnsigned,
    runtime.cudaChannelFormatKind.cudaChannelFormatKindFloat,
)
LAYERED, SURFACE, CUBEMAP = 1, 2, 4


@pytest.fixture(autouse=True)
def primary():
    """The primary context, current, without a pending error."""
    check(runtime.cudaSetDevice(0))
    runtime.cudaGetLastError()
    yield
    check(runtime.cudaDeviceSynchronize())


def channel(dtype, channels=1):
    dtype = np.dtype(dtype)
    bits = [8 * dtype.itemsize] * channels + [0] * (4 - channels)
    return check(runtime.cudaCreateChannelDesc(*bits, {"f": FLOAT, "i": SIGNED, "u": UNSIGNED}[dtype.kind]))


def fields(desc):
    return desc.x, desc.y, desc.z, desc.w, desc.f


def info(array):
    desc, extent, flags = check(runtime.cudaArrayGetInfo(array))
    return fields(desc), (extent.width, extent.height, extent.depth), flags


def filled(shape, dtype=np.float32):
    """A C-contiguous array in which neighbouring elements differ."""
    return (np.arange(int(np.prod(shape))) * 7 % 113).astype(dtype).reshape(shape)


def array_2d(data, flags=0):
    array = check(runtime.cudaMallocArray(channel(data.dtype), data.shape[1], data.shape[0], flags))
    pitch = data.strides[0]
    check(runtime.cudaMemcpy2DToArray(array, 0, 0, data.ctypes.data, pitch, pitch, data.shape[0], TO_DEVICE))
    return array


def contents_2d(array, shape, dtype=np.float32):
    out = np.zeros(shape, dtype)
    pitch = out.strides[0]
    check(runtime.cudaMemcpy2DFromArray(out.ctypes.data, pitch, array, 0, 0, pitch, shape[0], TO_HOST))
    return out


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize(
    "dtype",
    [np.uint8, np.uint16, np.uint32, np.int8, np.int16, np.int32, np.float16, np.float32],
    ids=lambda t: t.__name__,
)
def test_channel_descriptors_round_trip(dtype, channels):
    desc = channel(dtype, channels)
    array = check(runtime.cudaMallocArray(desc, 5, 3, 0))
    assert fields(check(runtime.cudaGetChannelDesc(array))) == fields(desc)
    assert info(array) == (fields(desc), (5, 3, 0), 0)
    check(runtime.cudaFreeArray(array))


@pytest.mark.parametrize(
    "bits, kind",
    [
        ((0, 0, 0, 0), FLOAT),
        ((8, 16, 0, 0), SIGNED),
        ((8, 0, 8, 0), SIGNED),
        ((8, 0, 0, 0), FLOAT),
        ((64, 0, 0, 0), UNSIGNED),
        ((12, 0, 0, 0), UNSIGNED),
    ],
)
def test_empty_channel_descriptors(bits, kind):
    desc = check(runtime.cudaCreateChannelDesc(*bits, kind))
    assert fields(desc) == (*bits, kind)
    status, array = runtime.cudaMallocArray(desc, 4, 4, 0)
    assert status != E.cudaSuccess and array is None
    assert runtime.cudaGetLastError() == (status,)


@pytest.mark.parametrize(
    "size, flags",
    [
        ((16, 0, 0), 0),
        ((16, 8, 0), 0),
        ((16, 8, 4), 0),
        ((16, 0, 4), LAYERED),
        ((16, 8, 4), LAYERED),
        ((8, 8, 6), CUBEMAP),
        ((8, 8, 12), CUBEMAP | LAYERED),
        ((16, 8, 0), SURFACE),
    ],
)
def test_array_shapes(size, flags):
    array = check(runtime.cudaMalloc3DArray(channel(np.float32), runtime.make_cudaExtent(*size), flags))
    assert info(array)[1:] == (size, flags)
    check(runtime.cudaFreeArray(array))


def test_invalid_arrays_are_refused():
    desc = channel(np.float32)
    for size, flags in (((0, 0, 0), 0), ((8, 4, 6), CUBEMAP), ((8, 8, 7), CUBEMAP | LAYERED)):
        assert runtime.cudaMalloc3DArray(desc, runtime.make_cudaExtent(*size), flags) == (E.cudaErrorInvalidValue, None)
    check(runtime.cudaFreeArray(runtime.cudaArray_t(0)))
    check(runtime.cudaFreeMipmappedArray(runtime.cudaMipmappedArray_t(0)))


def test_mipmap_levels():
    extent = runtime.make_cudaExtent(16, 8, 0)
    mipmapped = check(runtime.cudaMallocMipmappedArray(channel(np.float32), extent, 3, 0))
    sizes = [(16, 8), (8, 4), (4, 2)]
    data = [filled(size[::-1]) + 1000 * n for n, size in enumerate(sizes)]
    levels = [check(runtime.cudaGetMipmappedArrayLevel(mipmapped, n)) for n in range(3)]
    for level, values, size in zip(levels, data, sizes):
        assert info(level)[1] == (*size, 0)
        pitch = values.strides[0]
        check(runtime.cudaMemcpy2DToArray(level, 0, 0, values.ctypes.data, pitch, pitch, size[1], TO_DEVICE))
    for level, values in zip(levels, data):
        np.testing.assert_array_equal(contents_2d(level, values.shape), values)
    assert runtime.cudaGetMipmappedArrayLevel(mipmapped, 3)[0] == E.cudaErrorInvalidValue
    check(runtime.cudaFreeMipmappedArray(mipmapped))


# ---- copies


def test_two_dimensional_copies():
    data = filled((8, 16))
    array, other = array_2d(data), array_2d(np.zeros_like(data))
    np.testing.assert_array_equal(contents_2d(array, (8, 16)), data)
    # A part of another array, and back into rows with a pitch.
    check(runtime.cudaMemcpy2DArrayToArray(other, 12, 1, array, 8, 2, 40, 5, ON_DEVICE))
    want = np.zeros_like(data)
    want[1:6, 3:13] = data[2:7, 2:12]
    np.testing.assert_array_equal(contents_2d(other, (8, 16)), want)
    wide = np.zeros((3, 32), np.float32)
    check(runtime.cudaMemcpy2DFromArray(wide.ctypes.data, 128, other, 12, 1, 40, 3, TO_HOST))
    np.testing.assert_array_equal(wide[:, :10], want[1:4, 3:13])
    assert not wide[:, 10:].any()
    memory = check(runtime.cudaMalloc(1024))
    check(runtime.cudaMemcpy2DFromArray(memory, 128, array, 0, 0, 64, 8, ON_DEVICE))
    check(runtime.cudaMemcpy2DToArray(other, 0, 0, memory, 128, 64, 8, BY_ADDRESS))
    np.testing.assert_array_equal(contents_2d(other, (8, 16)), data)
    stream = check(runtime.cudaStreamCreate())
    pinned = check(runtime.cudaMallocHost(512))
    check(runtime.cudaMemcpy2DToArrayAsync(other, 0, 0, memory, 0x80, 64, 1, ON_DEVICE, stream))
    check(runtime.cudaMemcpy2DFromArrayAsync(pinned, 64, other, 0, 0, 64, 8, TO_HOST, stream))
    check(runtime.cudaStreamSynchronize(stream))
    back = np.zeros_like(data)
    check(runtime.cudaMemcpy(back.ctypes.data, pinned, 512, BY_ADDRESS))
    np.testing.assert_array_equal(back, data)
    check(runtime.cudaStreamDestroy(stream))
    check(runtime.cudaFreeHost(pinned))
    check(runtime.cudaFree(memory))
    for a in (array, other):
        check(runtime.cudaFreeArray(a))


def test_linear_copies_continue_in_the_next_row():
    data = filled((5, 8), np.uint8) + 1
    array = array_2d(data)
    flat = data.reshape(-1)
    for start, count in ((0, 40), (3, 4), (3, 20), (8, 16), (7, 33), (39, 1)):
        out = np.zeros(40, np.uint8)
        check(runtime.cudaMemcpyFromArray(out.ctypes.data, array, start % 8, start // 8, count, TO_HOST))
        np.testing.assert_array_equal(out[:count], flat[start : start + count])
        other = array_2d(np.zeros((7, 6), np.uint8))
        check(runtime.cudaMemcpyArrayToArray(other, 2, 0, array, start % 8, start // 8, count, ON_DEVICE))
        want = np.zeros(42, np.uint8)
        want[2 : 2 + count] = flat[start : start + count]
        np.testing.assert_array_equal(contents_2d(other, (7, 6), np.uint8).reshape(-1), want)
        check(runtime.cudaFreeArray(other))
        fresh = np.arange(200, 200 + count, dtype=np.uint8)
        check(runtime.cudaMemcpyToArray(array, start % 8, start // 8, fresh.ctypes.data, count, TO_DEVICE))
        flat[start : start + count] = fresh
        np.testing.assert_array_equal(contents_2d(array, (5, 8), np.uint8), data)
    assert runtime.cudaMemcpyToArray(array, 0, 0, flat.ctypes.data, 41, TO_DEVICE)[0] == E.cudaErrorInvalidValue
    check(runtime.cudaFreeArray(array))


def box(source, target, extent, kind, source_at=(0, 0, 0), target_at=(0, 0, 0)):
    """cudaMemcpy3D; each end is an array, or (address, pitch, width, height) of memory."""
    p = runtime.cudaMemcpy3DParms()
    for prefix, end, at in (("src", source, source_at), ("dst", target, target_at)):
        if isinstance(end, tuple):
            setattr(p, f"{prefix}Ptr", runtime.make_cudaPitchedPtr(*end))
        else:
            setattr(p, f"{prefix}Array", end)
        setattr(p, f"{prefix}Pos", runtime.make_cudaPos(*at))
    p.extent, p.kind = runtime.make_cudaExtent(*extent), kind
    return runtime.cudaMemcpy3D(p)


@pytest.mark.parametrize("flags", [0, LAYERED])
def test_three_dimensional_copies(flags):
    """Positions and extents count elements where an array takes part."""
    data = filled((4, 8, 16))
    desc, extent = channel(np.float32), runtime.make_cudaExtent(16, 8, 4)
    array, other = (check(runtime.cudaMalloc3DArray(desc, extent, flags)) for _ in range(2))
    host = (data.ctypes.data, 64, 16, 8)
    check(box(host, array, (16, 8, 4), TO_DEVICE))
    zeros = np.zeros_like(data)
    check(box((zeros.ctypes.data, 64, 16, 8), other, (16, 8, 4), TO_DEVICE))
    check(box(array, other, (5, 3, 2), ON_DEVICE, (2, 4, 1), (7, 1, 2)))
    want = np.zeros_like(data)
    want[2:4, 1:4, 7:12] = data[1:3, 4:7, 2:7]
    back = np.zeros_like(data)
    check(box(other, (back.ctypes.data, 64, 16, 8), (16, 8, 4), TO_HOST))
    np.testing.assert_array_equal(back, want)
    for extent, at in (
        ((17, 1, 1), (0, 0, 0)),
        ((1, 9, 1), (0, 0, 0)),
        ((1, 1, 5), (0, 0, 0)),
        ((1, 1, 1), (16, 0, 0)),
        ((1, 1, 1), (0, 0, 4)),
    ):
        assert box(host, array, extent, TO_DEVICE, target_at=at)[0] == E.cudaErrorInvalidValue
    for a in (array, other):
        check(runtime.cudaFreeArray(a))


def test_copy_directions_and_pitches():
    data = filled((8, 16))
    array = array_2d(data)
    address = data.ctypes.data
    wrong = {
        "to an array from the device to the host": runtime.cudaMemcpy2DToArray(
            array, 0, 0, address, 64, 64, 8, TO_HOST
        ),
        "from an array to the device": runtime.cudaMemcpy2DFromArray(address, 64, array, 0, 0, 64, 8, TO_DEVICE),
        "between arrays, to the host": runtime.cudaMemcpy2DArrayToArray(array, 0, 0, array, 0, 0, 4, 1, TO_HOST),
    }
    assert {k: v[0] for k, v in wrong.items()} == dict.fromkeys(wrong, E.cudaErrorInvalidMemcpyDirection)
    assert runtime.cudaMemcpy2DToArray(array, 0, 0, address, 32, 64, 2, TO_DEVICE)[0] == E.cudaErrorInvalidPitchValue
    for x, y, width, height in ((4, 0, 64, 1), (0, 1, 64, 8), (64, 0, 4, 1), (0, 8, 4, 1)):
        assert (
            runtime.cudaMemcpy2DToArray(array, x, y, address, 64, width, height, TO_DEVICE)[0]
            == E.cudaErrorInvalidValue
        )
    np.testing.assert_array_equal(contents_2d(array, (8, 16)), data)
    check(runtime.cudaFreeArray(array))


# ---- textures and surfaces

SOURCE = """
extern "C" __global__ void fetch(cudaTextureObject_t t, float *out) {
    int x = threadIdx.x, y = blockIdx.x;
    out[y * 16 + x] = tex2D<float>(t, x + 0.5f, y + 0.5f);
}
extern "C" __global__ void halfway(cudaTextureObject_t t, float *out) {
    int x = threadIdx.x, y = blockIdx.x;
    out[y * 16 + x] = tex2D<float>(t, (x + 1.0f) / 16, (y + 0.5f) / 8);
}
extern "C" __global__ void add_one(cudaSurfaceObject_t s) {
    int x = threadIdx.x * 4, y = blockIdx.x;
    surf2Dwrite(surf2Dread<float>(s, x, y) + 1, s, x, y);
}
"""


def resource(array):
    r = runtime.cudaResourceDesc()
    r.resType = runtime.cudaResourceType.cudaResourceTypeArray
    r.res.array.array = array
    return r


def texture_description(**settings):
    t = runtime.cudaTextureDesc()
    t.addressMode = [runtime.cudaTextureAddressMode.cudaAddressModeClamp] * 3
    t.readMode = runtime.cudaTextureReadMode.cudaReadModeElementType
    for name, value in settings.items():
        setattr(t, name, value)
    return t


def run(module, kernel, handle, shape):
    memory = check(runtime.cudaMalloc(4 * int(np.prod(shape))))
    module.launch(kernel, shape[0], shape[1], np.uint64(int(handle)), np.uint64(int(memory)))
    out = np.zeros(shape, np.float32)
    check(runtime.cudaMemcpy(out.ctypes.data, memory, out.nbytes, TO_HOST))
    check(runtime.cudaFree(memory))
    return out


def test_texture_fetches_and_surface_stores():
    module = Module.from_source(SOURCE)
    data = filled((8, 16))
    array = array_2d(data, SURFACE)
    texture = check(runtime.cudaCreateTextureObject(resource(array), texture_description(), None))
    np.testing.assert_array_equal(run(module, "fetch", texture, (8, 16)), data)
    surface = check(runtime.cudaCreateSurfaceObject(resource(array)))
    module.launch("add_one", 8, 16, np.uint64(int(surface)))
    np.testing.assert_array_equal(run(module, "fetch", texture, (8, 16)), data + 1)
    np.testing.assert_array_equal(contents_2d(array, (8, 16)), data + 1)
    check(runtime.cudaDestroySurfaceObject(surface))
    check(runtime.cudaDestroyTextureObject(texture))
    linear = runtime.cudaTextureFilterMode.cudaFilterModeLinear
    texture = check(
        runtime.cudaCreateTextureObject(
            resource(array), texture_description(filterMode=linear, normalizedCoords=1), None
        )
    )
    got = run(module, "halfway", texture, (8, 16))
    right = np.concatenate([data[:, 1:], data[:, -1:]], axis=1)
    np.testing.assert_allclose(got, (data + right) / 2 + 1, rtol=0, atol=1e-3)
    check(runtime.cudaDestroyTextureObject(texture))
    check(runtime.cudaFreeArray(array))
    module.unload()


def test_normalized_reads_of_linear_memory():
    source = """extern "C" __global__ void fetch(cudaTextureObject_t t, float *out) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        out[i] = tex1Dfetch<float>(t, i);
    }"""
    module = Module.from_source(source)
    data = np.arange(128, dtype=np.uint8) * 2 + 1
    memory = check(runtime.cudaMalloc(128))
    check(runtime.cudaMemcpy(memory, data.ctypes.data, 128, TO_DEVICE))
    r = runtime.cudaResourceDesc()
    r.resType = runtime.cudaResourceType.cudaResourceTypeLinear
    r.res.linear.devPtr, r.res.linear.sizeInBytes = memory, 128
    r.res.linear.desc = channel(np.uint8)
    read = runtime.cudaTextureReadMode.cudaReadModeNormalizedFloat
    texture = check(runtime.cudaCreateTextureObject(r, texture_description(readMode=read), None))
    np.testing.assert_allclose(run(module, "fetch", texture, (8, 16)).reshape(-1), data / 255, rtol=0, atol=1e-7)
    back = check(runtime.cudaGetTextureObjectResourceDesc(texture))
    assert back.resType == r.resType and back.res.linear.sizeInBytes == 128
    assert fields(back.res.linear.desc) == fields(channel(np.uint8))
    check(runtime.cudaDestroyTextureObject(texture))
    check(runtime.cudaFree(memory))
    module.unload()


def test_descriptors_are_returned():
    array = array_2d(filled((8, 16)))
    mirror = runtime.cudaTextureAddressMode.cudaAddressModeMirror
    linear = runtime.cudaTextureFilterMode.cudaFilterModeLinear
    wanted = {
        "addressMode": [mirror] * 3,
        "filterMode": linear,
        "mipmapFilterMode": linear,
        "normalizedCoords": 1,
        "mipmapLevelBias": 0.5,
        "minMipmapLevelClamp": 0.25,
        "maxMipmapLevelClamp": 3.0,
    }
    t = texture_description(**wanted)
    texture = check(runtime.cudaCreateTextureObject(resource(array), t, None))
    back = check(runtime.cudaGetTextureObjectTextureDesc(texture))
    for name, value in wanted.items():
        got = getattr(back, name)
        assert (list(got) if isinstance(value, list) else got) == value, name
    assert back.readMode == runtime.cudaTextureReadMode.cudaReadModeElementType
    assert (
        check(runtime.cudaGetTextureObjectResourceDesc(texture)).resType
        == runtime.cudaResourceType.cudaResourceTypeArray
    )
    check(runtime.cudaDestroyTextureObject(texture))
    check(runtime.cudaFreeArray(array))


def test_invalid_texture_descriptors_are_refused():
    array = array_2d(filled((8, 16)))
    nothing = runtime.cudaArray_t(0)
    assert runtime.cudaCreateTextureObject(resource(nothing), texture_description(), None)[0] != E.cudaSuccess
    if on_cpu_device():
        # The manual requires zero; libcudart does not check.
        flagged = resource(array)
        flagged.flags = 1
        assert runtime.cudaCreateTextureObject(flagged, texture_description(), None)[0] != E.cudaSuccess
    assert runtime.cudaCreateSurfaceObject(resource(nothing))[0] != E.cudaSuccess
    assert (
        runtime.cudaCreateTextureObject(resource(array), texture_description(seamlessCubemap=1), None)[0]
        == E.cudaErrorInvalidValue
    )
    check(runtime.cudaDestroyTextureObject(runtime.cudaTextureObject_t(0)))
    check(runtime.cudaDestroySurfaceObject(runtime.cudaSurfaceObject_t(0)))
    check(runtime.cudaFreeArray(array))


def test_driver_sees_the_same_arrays():
    data = filled((8, 16))
    array = array_2d(data)
    seen = check(driver.cuArray3DGetDescriptor(driver.CUarray(int(array))))
    assert (seen.Width, seen.Height, seen.NumChannels) == (16, 8, 1)
    back = np.zeros(16, np.float32)
    check(driver.cuMemcpyAtoH(back.ctypes.data, driver.CUarray(int(array)), 0, 64))
    np.testing.assert_array_equal(back, data[0])
    check(runtime.cudaFreeArray(array))
