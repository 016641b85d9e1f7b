"""Shared by the programs of cuda.bindings: checking results, compiling, reading device memory."""

import numpy as np
from cuda.bindings import driver, nvrtc, runtime


def check(result):
    """The outputs of a call: None, one value or a tuple. A status other than success raises."""
    status, *outputs = result
    if status.value:
        raise RuntimeError(repr(status))
    return None if not outputs else outputs[0] if len(outputs) == 1 else tuple(outputs)


def compile_ptx(source, *options):
    """PTX of CUDA C++ source for device 0, padded as nvrtcGetPTX writes it into a bytes object."""
    device = check(driver.cuDeviceGet(0))
    names = driver.CUdevice_attribute
    major = check(driver.cuDeviceGetAttribute(names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    minor = check(driver.cuDeviceGetAttribute(names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
    options = [*options, f"--gpu-architecture=compute_{major}{minor}".encode()]
    program = check(nvrtc.nvrtcCreateProgram(source.encode(), b"program.cu", 0, [], []))
    check(nvrtc.nvrtcCompileProgram(program, len(options), options))
    ptx = b" " * check(nvrtc.nvrtcGetPTXSize(program))
    check(nvrtc.nvrtcGetPTX(program, ptx))
    check(nvrtc.nvrtcDestroyProgram(program))
    return ptx


def load_kernel(source, name):
    """(module, kernel) in the primary context of device 0, which becomes current."""
    check(driver.cuInit(0))
    check(runtime.cudaSetDevice(0))
    check(runtime.cudaFree(0))
    module = check(driver.cuModuleLoadData(compile_ptx(source)))
    return module, check(driver.cuModuleGetFunction(module, name))


def read(pointer, dtype, count=1):
    """Device memory as a NumPy array."""
    out = np.zeros(count, dtype)
    check(runtime.cudaMemcpy(out.ctypes.data, pointer, out.nbytes, runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost))
    return out


# Writes each of its parameters: an int, a float and a struct.
RECORD = """
struct Celsius { int degrees; };

extern "C" __global__ void record(int number, int *numbers, float ratio, float *ratios, Celsius warm, Celsius *all)
{
    numbers[0] = number;
    ratios[0] = ratio;
    all[0].degrees = warm.degrees;
}
"""
