"""A texture object as a kernel argument: as an integer in NumPy, and as it is in a ctypes pair."""

import ctypes

import numpy as np
from common import check, load_kernel, read
from cuda.bindings import driver, runtime

SOURCE = """
extern "C" __global__ void mirror(float *out, int width, cudaTextureObject_t texture)
{
    int x = threadIdx.x;
    if (x < width)
        out[x] = tex1D<float>(texture, width - x - 0.5f);
}
"""
WIDTH = 48

module, kernel = load_kernel(SOURCE, b"mirror")
texels = np.square(np.arange(WIDTH, dtype=np.float32))
floats = runtime.cudaChannelFormatKind.cudaChannelFormatKindFloat
array = check(runtime.cudaMallocArray(check(runtime.cudaCreateChannelDesc(32, 0, 0, 0, floats)), WIDTH, 0, 0))
to_device = runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
size = texels.nbytes
check(runtime.cudaMemcpy2DToArray(array, 0, 0, texels.ctypes.data, size, size, 1, to_device))

resource = runtime.cudaResourceDesc()
resource.resType = runtime.cudaResourceType.cudaResourceTypeArray
resource.res.array.array = array
sampling = runtime.cudaTextureDesc()
sampling.addressMode[0] = runtime.cudaTextureAddressMode.cudaAddressModeClamp
sampling.filterMode = runtime.cudaTextureFilterMode.cudaFilterModePoint
sampling.readMode = runtime.cudaTextureReadMode.cudaReadModeElementType
texture = check(runtime.cudaCreateTextureObject(resource, sampling, None))
out = check(runtime.cudaMalloc(size))

numpy_values = (np.array([out], np.intp), np.array(WIDTH, np.uint32), np.array([int(texture)], np.intp))
for kind, arguments in {
    "NumPy": np.array([value.ctypes.data for value in numpy_values], np.intp),
    "ctypes": ((out, WIDTH, texture), (ctypes.c_void_p, ctypes.c_int, None)),
}.items():
    check(runtime.cudaMemset(out, 0xFF, size))
    check(driver.cuLaunchKernel(kernel, 1, 1, 1, WIDTH, 1, 1, 0, 0, arguments, 0))
    assert np.array_equal(read(out, np.float32, WIDTH), texels[::-1])
    print(kind, "arguments: mirrored", WIDTH, "texels")
