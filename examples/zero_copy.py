"""Kernels that work on the host's memory, without a copy.

Two ways lead there: memory that is allocated page-locked and mapped for the device, and ordinary memory of the program
that is page-locked afterwards. A kernel reads one and writes the other.
"""

import numpy as np
from cuda.bindings import driver

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
    kernels = Kernels(SOURCE)

    # Allocated page-locked: the host writes into it like into any array.
    allocated = check(driver.cuMemHostAlloc(8 * n, driver.CU_MEMHOSTALLOC_DEVICEMAP))
    source = view(allocated, n, np.float64)
    source[:] = np.arange(n)

    # Page-locked afterwards: an array that NumPy allocated.
    target = np.zeros(n)
    check(driver.cuMemHostRegister(target.ctypes.data, target.nbytes, driver.CU_MEMHOSTREGISTER_DEVICEMAP))
    try:
        # The device may know both under other addresses than the host.
        device_in = check(driver.cuMemHostGetDevicePointer(int(allocated), 0))
        device_out = check(driver.cuMemHostGetDevicePointer(target.ctypes.data, 0))
        kernels["scale"](-(-n // 256), 256, device_in, device_out, np.float64(0.5), np.int32(n))
        # Nothing copies, so nothing waits: the host must.
        check(driver.cuCtxSynchronize())
        verify((target == np.arange(n) * 0.5).all(), "the array that the kernel wrote")
    finally:
        check(driver.cuMemHostUnregister(target.ctypes.data))
        del source
        check(driver.cuMemFreeHost(allocated))
    print(f"a kernel read and wrote {n} numbers of the host's memory")


if __name__ == "__main__":
    run(main)
