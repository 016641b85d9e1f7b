"""A cubemap texture: six faces around a point, looked up by direction.

Every face gets its own values. A kernel looks from the middle of the cube at the centre of each texel, and must find exactly
that texel; filtered looks between two texels must find what lies between them.
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
    """Through (u, v) of each face, from -1 to 1: arrays of shape (6, ..., 3), in the order +x, -x, +y, -y, +z, -z.

    How a face's own axes lie is in the CUDA programming guide, "Cubemap Textures".
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
        raise Skip("the device has no cubemap arrays")
    check((status,))

    # A number a texel: its face, row and column, exact in single precision and even under the filter's weights.
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
    verify((found == faces).all(), "a look at a texel's centre found another texel")

    # Half way between two columns of a row: the mean of the two, as exactly as the filter's weights are (1/256).
    between = centres[:-1] + 1 / width
    v, u = np.meshgrid(centres, between, indexing="ij")
    found = look(driver.CUfilter_mode.CU_TR_FILTER_MODE_LINEAR, directions(u, v))
    wanted = (faces[:, :, :-1] + faces[:, :, 1:]) / 2
    # A row apart means `width`: a weight that is off by one 256th in the row's direction shows up as that.
    verify(abs(found - wanted).max() <= 2 * (width + 1) / 256, "a filtered look between two texels")
    check(driver.cuArrayDestroy(array))
    print(f"{faces.size} texels of six faces found, and {found.size} places between them")


if __name__ == "__main__":
    run(main)
