"""Arrays, textures and surfaces: descriptors from Python values, and 3-D copies checked against NumPy."""

import numpy as np
from cuda.bindings import driver

from helpers.device import check

FORMAT = driver.CUarray_format
LAYERED, SURFACE, CUBEMAP, GATHER = 1, 2, 4, 8

# dtype of a channel -> array format
FORMATS = {
    np.dtype(np.uint8): FORMAT.CU_AD_FORMAT_UNSIGNED_INT8,
    np.dtype(np.uint16): FORMAT.CU_AD_FORMAT_UNSIGNED_INT16,
    np.dtype(np.uint32): FORMAT.CU_AD_FORMAT_UNSIGNED_INT32,
    np.dtype(np.int8): FORMAT.CU_AD_FORMAT_SIGNED_INT8,
    np.dtype(np.int16): FORMAT.CU_AD_FORMAT_SIGNED_INT16,
    np.dtype(np.int32): FORMAT.CU_AD_FORMAT_SIGNED_INT32,
    np.dtype(np.float16): FORMAT.CU_AD_FORMAT_HALF,
    np.dtype(np.float32): FORMAT.CU_AD_FORMAT_FLOAT,
}


def array_descriptor(width, height=0, depth=0, format=FORMAT.CU_AD_FORMAT_FLOAT, channels=1, flags=0):
    d = driver.CUDA_ARRAY3D_DESCRIPTOR()
    d.Width, d.Height, d.Depth = width, height, depth
    d.Format, d.NumChannels, d.Flags = FORMAT(format), channels, flags
    return d


def described(array):
    """(width, height, depth, format, channels, flags) as the driver reports them."""
    d = check(driver.cuArray3DGetDescriptor(array))
    return d.Width, d.Height, d.Depth, d.Format, d.NumChannels, d.Flags


class Array:
    """A CUDA array that holds a NumPy array of shape ([layers | depth,] [height,] width, channels)."""

    def __init__(self, data, dimensions=None, flags=0, format=None):
        self.data = np.ascontiguousarray(data)
        *lengths, self.channels = self.data.shape
        dimensions = dimensions or len(lengths)
        lengths = lengths[::-1]
        if flags & (LAYERED | CUBEMAP):
            layers = lengths.pop()
            size = (*lengths, *(0,) * (2 - len(lengths)), layers)
        else:
            size = (*lengths, *(0,) * (3 - len(lengths)))
        self.size = size
        self.format = FORMATS[self.data.dtype] if format is None else format
        self.handle = check(driver.cuArray3DCreate(array_descriptor(*size, self.format, self.channels, flags)))
        self.put(self.data)

    @property
    def element(self):
        return self.data.itemsize * self.channels

    def put(self, data):
        write_box(self.handle, np.ascontiguousarray(data), self.element)

    def get(self):
        return read_box(self.handle, np.empty_like(self.data), self.element)

    def destroy(self):
        check(driver.cuArrayDestroy(self.handle))


def box(data, element):
    """(bytes of a row, rows, slices) of a C-contiguous NumPy array, whatever its rank."""
    lengths = data.shape[:-1][::-1]
    width, height, depth = (*lengths, *(1,) * (3 - len(lengths)))
    # The layers of a one-dimensional layered array are slices of one row each.
    return width * element, height, depth


def copy_3d(source, target, extent, source_at=(0, 0, 0), target_at=(0, 0, 0), stream=None):
    """cuMemcpy3D; each end is an array's handle or (address, pitch, rows) of host memory."""
    c = driver.CUDA_MEMCPY3D()
    for prefix, end, (x, y, z) in (("src", source, source_at), ("dst", target, target_at)):
        if isinstance(end, tuple):
            address, pitch, rows = end
            setattr(c, f"{prefix}MemoryType", driver.CUmemorytype.CU_MEMORYTYPE_HOST)
            setattr(c, f"{prefix}Host", address)
            setattr(c, f"{prefix}Pitch", pitch)
            setattr(c, f"{prefix}Height", rows)
        else:
            setattr(c, f"{prefix}MemoryType", driver.CUmemorytype.CU_MEMORYTYPE_ARRAY)
            setattr(c, f"{prefix}Array", end)
        setattr(c, f"{prefix}XInBytes", x)
        setattr(c, f"{prefix}Y", y)
        setattr(c, f"{prefix}Z", z)
    c.WidthInBytes, c.Height, c.Depth = extent
    if stream is None:
        return driver.cuMemcpy3D(c)
    return driver.cuMemcpy3DAsync(c, stream)


def as_slices(data, layered_1d):
    """1-D layers with a row axis of length one, so that layers become slices."""
    return data[:, None] if layered_1d else data


def _is_layered_1d(handle):
    _width, height, depth, *_ = described(handle)
    return height == 0 and depth > 0


def write_box(handle, data, element):
    data = as_slices(data, _is_layered_1d(handle))
    width, height, depth = box(data, element)
    check(copy_3d((data.ctypes.data, width, height), handle, (width, height, depth)))


def read_box(handle, data, element):
    shaped = as_slices(data, _is_layered_1d(handle))
    width, height, depth = box(shaped, element)
    check(copy_3d(handle, (data.ctypes.data, width, height), (width, height, depth)))
    return data


class Mipmapped:
    """A mipmapped CUDA array with one NumPy array per level."""

    def __init__(self, levels, flags=0):
        top = levels[0]
        lengths = top.shape[:-1][::-1]
        size = (*lengths, *(0,) * (3 - len(lengths)))
        if flags & LAYERED and len(lengths) == 2:
            size = (lengths[0], 0, lengths[1])
        self.levels, self.channels = levels, top.shape[-1]
        d = array_descriptor(*size, FORMATS[top.dtype], self.channels, flags)
        self.handle = check(driver.cuMipmappedArrayCreate(d, len(levels)))
        for n, level in enumerate(levels):
            write_box(self.level(n), np.ascontiguousarray(level), level.itemsize * self.channels)

    def level(self, n):
        return check(driver.cuMipmappedArrayGetLevel(self.handle, n))

    def destroy(self):
        check(driver.cuMipmappedArrayDestroy(self.handle))


def resource(of):
    """CUDA_RESOURCE_DESC of an Array, a Mipmapped, or a ready descriptor."""
    r = driver.CUDA_RESOURCE_DESC()
    if isinstance(of, driver.CUDA_RESOURCE_DESC):
        return of
    if isinstance(of, Mipmapped):
        r.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
        r.res.mipmap.hMipmappedArray = of.handle
    else:
        r.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
        r.res.array.hArray = of.handle if isinstance(of, Array) else of
    return r


def linear_resource(address, bytes, format=FORMAT.CU_AD_FORMAT_FLOAT, channels=1):
    r = driver.CUDA_RESOURCE_DESC()
    r.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
    r.res.linear.devPtr, r.res.linear.sizeInBytes = address, bytes
    r.res.linear.format, r.res.linear.numChannels = format, channels
    return r


def pitched_resource(address, width, height, pitch, format=FORMAT.CU_AD_FORMAT_FLOAT, channels=1):
    r = driver.CUDA_RESOURCE_DESC()
    r.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
    p = r.res.pitch2D
    p.devPtr, p.width, p.height, p.pitchInBytes = address, width, height, pitch
    p.format, p.numChannels = format, channels
    return r


WRAP, CLAMP, MIRROR, BORDER = driver.CUaddress_mode
READ_AS_INTEGER, NORMALIZED, SRGB, SEAMLESS = 1, 2, 0x10, 0x40


def texture_descriptor(
    address=CLAMP,
    linear=False,
    flags=0,
    border=(0, 0, 0, 0),
    mip_linear=False,
    bias=0.0,
    clamp=(0.0, 0.0),
    anisotropy=0,
):
    t = driver.CUDA_TEXTURE_DESC()
    t.addressMode = [address] * 3 if isinstance(address, driver.CUaddress_mode) else list(address)
    point, interpolated = driver.CUfilter_mode
    t.filterMode = interpolated if linear else point
    t.mipmapFilterMode = interpolated if mip_linear else point
    t.flags, t.maxAnisotropy = flags, anisotropy
    t.borderColor = [float(b) for b in border]
    t.mipmapLevelBias = bias
    t.minMipmapLevelClamp, t.maxMipmapLevelClamp = clamp
    return t


def make_texture(of, view=None, **settings):
    return check(driver.cuTexObjectCreate(resource(of), texture_descriptor(**settings), view))


def resource_view(format, width, height=0, depth=0, levels=(0, 0), layers=(0, 0)):
    v = driver.CUDA_RESOURCE_VIEW_DESC()
    v.format = driver.CUresourceViewFormat(format)
    v.width, v.height, v.depth = width, height, depth
    v.firstMipmapLevel, v.lastMipmapLevel = levels
    v.firstLayer, v.lastLayer = layers
    return v
