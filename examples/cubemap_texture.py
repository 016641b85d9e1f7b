"""A cubemap texture: six faces around a point, fetched by direction.

Every face has its own values. A kernel fetches in the direction of each texel's center and must get exactly that texel;
filtered fetches between two texels must return their mean.
"""

import numpy as np
from cuda.bindings import driver
from sample import Kernels, Skip, check, download, run, upload, verify

SOURCE = r"""
// Looks along `direction` (three floats a thread).
extern "C" __global__ void look(cudaTextureObject_t cube, const float *direction, float *found, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        found[i] = texCubemap<float>(cube, direction[3 * i], direction[3 * i + 1], direction[3 * i + 2]);
}
"""


def directions(u, v):
    """Directions through (u, v) of each face, from -1 to 1: arrays of shape (6, ..., 3), in the order +x, -x, +y, -y,
    +z, -z.

    The CUDA programming guide defines the axes of each face, "Cubemap Textures".
    """
    one = np.ones_like(u)
    faces = [(one, -v, -u), (-one, -v, u), (u, one, v), (u, -one, -v), (u, -v, one), (-u, -v, -one)]
    return np.stack([np.stack(face, axis=-1) for face in faces]).astype(np.float32)


def texture_of(array, mode):
    resource = driver.CUDA_RESOURCE_DESC()
    resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
    resource.res.array.hArray = array
    description = driver.CUDA_TEXTURE_DESC()
    description.filterMode = mode
    description.addressMode = [driver.CUaddress_mode.CU_TR_ADDRESS_MODE_CLAMP] * 3
    description.flags = driver.CU_TRSF_NORMALIZED_COORDINATES
    return check(driver.cuTexObjectCreate(resource, description, None))


def main():
    width = 16
    shape = driver.CUDA_ARRAY3D_DESCRIPTOR()
    shape.Width = shape.Height = width
    shape.Depth = 6
    shape.Format = driver.CUarray_format.CU_AD_FORMAT_FLOAT
    shape.NumChannels = 1
    shape.Flags = driver.CUDA_ARRAY3D_CUBEMAP
    status, array = driver.cuArray3DCreate(shape)
    if status == driver.CUresult.CUDA_ERROR_NOT_SUPPORTED:
        raise Skip("the device does not support cubemap arrays")
    check((status,))

    # One number per texel: its face, row and column, exact in single precision and with the filter's weights.
    faces = np.arange(6 * width * width, dtype=np.float32).reshape(6, width, width)
    copy = driver.CUDA_MEMCPY3D()
    copy.srcMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_HOST
    copy.srcHost = faces.ctypes.data
    copy.srcPitch, copy.srcHeight = 4 * width, width
    copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_ARRAY
    copy.dstArray = array
    copy.WidthInBytes, copy.Height, copy.Depth = 4 * width, width, 6
    check(driver.cuMemcpy3D(copy))

    kernels = Kernels(SOURCE)

    def look(mode, towards):
        texture = texture_of(array, mode)
        n = towards.size // 3
        there, out = upload(towards), upload(np.zeros(n, np.float32))
        kernels["look"](-(-n // 128), 128, np.uint64(int(texture)), there, out, np.int32(n))
        found = download(out, np.zeros(n, np.float32)).reshape(towards.shape[:-1])
        for pointer in (there, out):
            check(driver.cuMemFree(pointer))
        check(driver.cuTexObjectDestroy(texture))
        return found

    centres = (np.arange(width) + 0.5) / width * 2 - 1
    v, u = np.meshgrid(centres, centres, indexing="ij")
    found = look(driver.CUfilter_mode.CU_TR_FILTER_MODE_POINT, directions(u, v))
    verify((found == faces).all(), "a fetch at a texel's center returned another texel")

    # Half way between two columns of a row: the mean of the two, up to the precision of the filter's weights (1/256).
    between = centres[:-1] + 1 / width
    v, u = np.meshgrid(centres, between, indexing="ij")
    found = look(driver.CUfilter_mode.CU_TR_FILTER_MODE_LINEAR, directions(u, v))
    wanted = (faces[:, :, :-1] + faces[:, :, 1:]) / 2
    # Adjacent rows differ by `width`: a weight off by 1/256 in the direction of rows shows up as that.
    verify(abs(found - wanted).max() <= 2 * (width + 1) / 256, "a filtered fetch between two texels")
    check(driver.cuArrayDestroy(array))
    print(f"{faces.size} texels of six faces fetched, and {found.size} points between them")


if __name__ == "__main__":
    run(main)
