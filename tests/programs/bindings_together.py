"""cuda.bindings: driver, runtime and NVRTC in one program."""

from cuda.bindings import driver, nvrtc, runtime

SUCCESS = runtime.cudaError_t.cudaSuccess

driver.cuInit(0)
status, count = driver.cuDeviceGetCount()
assert count >= 1
status, device = driver.cuDeviceGet(0)
status, name = driver.cuDeviceGetName(256, device)
status, context = driver.cuCtxCreate(0, device)
runtime.cudaSetDevice(0)
status, properties = runtime.cudaGetDeviceProperties(0)
print("same name:", properties.name.rstrip(b"\0") == name.rstrip(b"\0"))

status, pointer = runtime.cudaMalloc(4096)
assert runtime.cudaMemset(pointer, 7, 4096) == (SUCCESS,)
assert runtime.cudaFree(pointer) == (SUCCESS,)

status, program = nvrtc.nvrtcCreateProgram(b'extern "C" __global__ void idle() {}', b"idle.cu", 0, [], [])
assert nvrtc.nvrtcCompileProgram(program, 0, []) == (nvrtc.nvrtcResult.NVRTC_SUCCESS,)
status, size = nvrtc.nvrtcGetPTXSize(program)
ptx = b" " * size
nvrtc.nvrtcGetPTX(program, ptx)
print("compiled:", b".entry idle" in ptx)
nvrtc.nvrtcDestroyProgram(program)
driver.cuCtxDestroy(context)
