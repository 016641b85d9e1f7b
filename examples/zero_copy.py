"""Kernels that access host memory without a copy.

Two ways: memory allocated page-locked and mapped for the device, and ordinary memory that is page-locked afterwards. A
kernel reads one and writes the other. The memory comes from the runtime API, the kernel from the driver API: both use
the device's primary context and can be mixed.
"""

import numpy as np
from cuda.bindings import runtime
from sample import Kernels, Skip, attribute, check, run, verify, view

SOURCE = r"""
extern "C" __global__ void scale(const double *in, double *out, double factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = factor * in[i];
}
"""


def main():
    if not attribute("CAN_MAP_HOST_MEMORY"):
        raise Skip("the device cannot map host memory")
    n = 100_000
    check(runtime.cudaSetDevice(0))
    kernels = Kernels(SOURCE)

    # Allocated page-locked: the host writes to it like to any array.
    allocated = check(runtime.cudaHostAlloc(8 * n, runtime.cudaHostAllocMapped))
    source = view(allocated, n, np.float64)
    source[:] = np.arange(n)

    # Page-locked afterwards: an array allocated by NumPy.
    target = np.zeros(n)
    check(runtime.cudaHostRegister(target.ctypes.data, target.nbytes, runtime.cudaHostRegisterMapped))
    try:
        # The device may use other addresses than the host.
        device_in = check(runtime.cudaHostGetDevicePointer(allocated, 0))
        device_out = check(runtime.cudaHostGetDevicePointer(target.ctypes.data, 0))
        kernels["scale"](-(-n // 256), 256, device_in, device_out, np.float64(0.5), np.int32(n))
        # No copy synchronizes here: the host must.
        check(runtime.cudaDeviceSynchronize())
        verify((target == np.arange(n) * 0.5).all(), "the array that the kernel wrote")
    finally:
        check(runtime.cudaHostUnregister(target.ctypes.data))
        del source
        check(runtime.cudaFreeHost(allocated))
    print(f"a kernel read and wrote {n} numbers of the host's memory")


if __name__ == "__main__":
    run(main)
