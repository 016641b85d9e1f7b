"""The sum of two vectors: the smallest complete program.

Allocates memory on the device, copies two arrays there, adds them with a kernel, and copies the sum back.
"""

import numpy as np
from cuda.bindings import driver
from sample import Kernels, check, download, run, upload, verify

SOURCE = r"""
extern "C" __global__ void add(const float *a, const float *b, float *sum, int n)
{
    // A loop over the grid's stride: right for any number of elements and any size of the grid.
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum[i] = a[i] + b[i];
}
"""


def main():
    n = 1_000_003
    random = np.random.default_rng(1)
    a, b = random.random(n, np.float32), random.random(n, np.float32)
    kernels = Kernels(SOURCE)
    on_device = [upload(a), upload(b), check(driver.cuMemAlloc(a.nbytes))]
    kernels["add"](256, 256, *on_device, np.int32(n))
    total = download(on_device[2], a)
    for pointer in on_device:
        check(driver.cuMemFree(pointer))
    verify((total == a + b).all(), "a sum differs from the host's")
    print(f"added {n} pairs of numbers")


if __name__ == "__main__":
    run(main)
