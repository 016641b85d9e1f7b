"""The module names of the 11.x and 12.x releases: cuda.cuda, cuda.cudart, cuda.nvrtc."""

from cuda import cuda

(status,) = cuda.cuInit(0)
assert status == cuda.CUresult.CUDA_SUCCESS
status, count = cuda.cuDeviceGetCount()
status, device = cuda.cuDeviceGet(0)
status, name = cuda.cuDeviceGetName(100, device)
print("named:", len(name.rstrip(b"\0")) > 2)

from cuda import cudart, nvrtc  # noqa: E402

print("same count:", cudart.cudaGetDeviceCount()[1] == count)
print("nvrtc:", nvrtc.nvrtcVersion()[0].name)
