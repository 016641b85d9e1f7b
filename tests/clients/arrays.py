"""Arrays, kernels and streams that the checks of several clients share. Uses `cuda.core` alone."""

import ctypes

import numpy as np

DOUBLE = r"""
extern "C" __global__ void twice(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * in[i];
}
"""
SPIN = r"""
extern "C" __global__ void late(float *out, int n, long long cycles)
{
    long long start = clock64();
    while (clock64() - start < cycles) {}
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3;
}
"""


class Foreign:
    """A stream of another library, as any object with `__cuda_stream__`."""

    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return 0, self.handle


def device():
    from cuda.core import Device

    device = Device()
    device.set_current()
    return device


def kernel(source, name):
    from cuda.core import Program, ProgramOptions

    options = ProgramOptions(std="c++17", arch=f"sm_{device().arch}")
    return Program(source, "c++", options).compile("cubin").get_kernel(name)


def twice(stream, source, target, n):
    """Launches `target[i] = 2 * source[i]` for device pointers."""
    from cuda.core import LaunchConfig, launch

    launch(
        stream, LaunchConfig(grid=(n + 127) // 128, block=128), kernel(DOUBLE, "twice"), source, target, ctypes.c_int(n)
    )


def late(stream, target, n, cycles=200_000_000):
    """Launches a kernel that writes 3 into `target` about 0.1 s later: whoever does not wait for `stream` reads the old values."""
    from cuda.core import LaunchConfig, launch

    config = LaunchConfig(grid=(n + 127) // 128, block=128)
    launch(stream, config, kernel(SPIN, "late"), target, ctypes.c_int(n), ctypes.c_longlong(cycles))


class Array:
    """A NumPy array in device memory of `cuda.core`, with the CUDA Array Interface."""

    def __init__(self, values):
        self.values = np.ascontiguousarray(values)
        device_, stream = device(), None
        stream = device_.create_stream()
        self.buffer = device_.allocate(max(self.values.nbytes, 1), stream=stream)
        self._copy("cuMemcpyHtoDAsync", int(self.buffer.handle), self.values.ctypes.data, stream)
        self.__cuda_array_interface__ = {
            "shape": self.values.shape,
            "typestr": self.values.dtype.str,
            "data": (int(self.buffer.handle), False),
            "strides": None,
            "version": 3,
        }
        self.dtype, self.shape, self.size = self.values.dtype, self.values.shape, self.values.size

    def _copy(self, name, target, source, stream):
        from cuda.bindings import driver

        (status,) = getattr(driver, name)(target, source, self.values.nbytes, stream.handle)
        assert status == driver.CUresult.CUDA_SUCCESS, f"{name}: {status.name}"
        stream.sync()

    @property
    def pointer(self):
        return int(self.buffer.handle)

    def get(self):
        """The values now, as a NumPy array."""
        found = np.empty_like(self.values)
        device_ = device()
        device_.sync()
        self._copy("cuMemcpyDtoHAsync", found.ctypes.data, self.pointer, device_.create_stream())
        return found
