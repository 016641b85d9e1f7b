"""NVRTC to a running kernel through the driver: every step from cuInit to cuCtxDestroy."""

import numpy as np
from common import check, compile_ptx
from cuda.bindings import driver, nvrtc

THREADS = 256
BLOCKS = 4096
KERNEL = """
extern "C" __global__ void blend(float weight, const float *from, const float *to, float *out, size_t count)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = from[i] + weight * (to[i] - from[i]);
}
"""

check(driver.cuInit(0))
device = check(driver.cuDeviceGet(0))
ptx = compile_ptx(KERNEL, b"--fmad=false")

# The two-argument form of CUDA 12; that of CUDA 13 has a leading parameter block.
context = check(driver.cuCtxCreate(0, device))
# An address instead of a bytes object.
image = np.char.array(ptx)
module = check(driver.cuModuleLoadData(image.ctypes.data))
kernel = check(driver.cuModuleGetFunction(module, b"blend"))

count = np.array(THREADS * BLOCKS, np.uint64)
weight = np.array([0.25], np.float32)
size = int(count) * weight.itemsize
start = np.linspace(0, 1, int(count), dtype=np.float32)
end = np.linspace(5, 4, int(count), dtype=np.float32)
out = np.zeros_like(start)

memory = [check(driver.cuMemAlloc(size)) for _ in range(3)]
stream = check(driver.cuStreamCreate(0))
for pointer, values in zip(memory, (start, end)):
    check(driver.cuMemcpyHtoDAsync(pointer, values.ctypes.data, size, stream))
arguments = [weight, *(np.array([int(pointer)], np.uint64) for pointer in memory), count]
addresses = np.array([argument.ctypes.data for argument in arguments], np.uint64)
check(driver.cuLaunchKernel(kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, addresses.ctypes.data, 0))
check(driver.cuMemcpyDtoHAsync(out.ctypes.data, memory[2], size, stream))
check(driver.cuStreamSynchronize(stream))
assert np.allclose(out, start + weight * (end - start))
print("blended", int(count), "numbers")

check(driver.cuStreamDestroy(stream))
for pointer in memory:
    check(driver.cuMemFree(pointer))
check(driver.cuModuleUnload(module))
check(driver.cuCtxDestroy(context))

status, name = driver.cuGetErrorName(driver.CUresult.CUDA_ERROR_INVALID_VALUE)
assert status == driver.CUresult.CUDA_SUCCESS
print("driver:", name.decode())
print("nvrtc:", nvrtc.nvrtcGetErrorString(nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION)[1].decode())
