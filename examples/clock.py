"""The duration of each block of a kernel, measured with the device's clock.

Each block computes the minimum of its numbers in shared memory and reads the clock at its start and end. This measures
parts of a kernel, which events around a launch cannot.
"""

import numpy as np
from cuda.bindings import driver
from sample import Kernels, attribute, check, download, run, upload, verify

SOURCE = r"""
extern "C" __global__ void smallest(const float *in, float *out, long long *begin, long long *end)
{
    extern __shared__ float numbers[];
    unsigned thread = threadIdx.x, size = blockDim.x;
    if (thread == 0)
        begin[blockIdx.x] = clock64();
    numbers[thread] = in[thread];
    numbers[thread + size] = in[thread + size];
    for (unsigned half = size; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half)
            numbers[thread] = fminf(numbers[thread], numbers[thread + half]);
    }
    if (thread == 0)
        out[blockIdx.x] = numbers[0];
    __syncthreads();
    if (thread == 0)
        end[blockIdx.x] = clock64();
}
"""


def main():
    blocks, threads = 64, 256
    numbers = np.random.default_rng(2).random(2 * threads, np.float32)
    kernels = Kernels(SOURCE)
    source, target = upload(numbers), upload(np.zeros(blocks, np.float32))
    begin, end = (upload(np.zeros(blocks, np.int64)) for _ in range(2))
    kernels["smallest"](blocks, threads, source, target, begin, end, shared=8 * threads)
    found = download(target, np.zeros(blocks, np.float32))
    ticks = download(end, np.zeros(blocks, np.int64)) - download(begin, np.zeros(blocks, np.int64))
    for pointer in (source, target, begin, end):
        check(driver.cuMemFree(pointer))
    verify((found == numbers.min()).all(), "a block computed a wrong minimum")
    verify((ticks > 0).all(), "a block measured no time")
    print(
        f"a block took {ticks.mean():.0f} ticks on average, from {ticks.min()} to {ticks.max()}, "
        f"on {attribute('MULTIPROCESSOR_COUNT')} multiprocessors"
    )


if __name__ == "__main__":
    run(main)
