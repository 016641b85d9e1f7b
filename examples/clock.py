"""The duration of each block of a kernel, measured with the device's clock.

Each block computes the minimum of its numbers in shared memory and reads the clock at its start and end. This measures
parts of a kernel, which events around a launch cannot.
"""

import sys

import numpy as np
from cuda.core import Device, LaunchConfig, Program, launch

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


def first_device():
    """The first device, made current. Exit status 77 means "skipped" to test programs."""
    try:
        device = Device(0)
        device.set_current()
    except Exception as reason:
        print(f"skipped: no device: {reason}")
        sys.exit(77)
    print(f"on {device.name}")
    return device


def main():
    device = first_device()
    stream = device.create_stream()
    smallest = Program(SOURCE, "c++").compile("cubin").get_kernel("smallest")
    blocks, threads = 64, 256
    numbers = np.random.default_rng(2).random(2 * threads, np.float32)

    source = device.allocate(numbers.nbytes, stream=stream)
    source.copy_from(numbers, stream=stream)
    results = [np.empty(blocks, np.float32), np.empty(blocks, np.int64), np.empty(blocks, np.int64)]
    targets = [device.allocate(result.nbytes, stream=stream) for result in results]
    config = LaunchConfig(grid=blocks, block=threads, shmem_size=numbers.nbytes)
    launch(stream, config, smallest, source, *targets)
    for target, result in zip(targets, results):
        target.copy_to(result, stream=stream)
    stream.sync()

    found, begin, end = results
    ticks = end - begin
    if not (found == numbers.min()).all():
        sys.exit("wrong result: a block computed a wrong minimum")
    if not (ticks > 0).all():
        sys.exit("wrong result: a block measured no time")
    print(
        f"a block took {ticks.mean():.0f} ticks on average, from {ticks.min()} to {ticks.max()}, "
        f"on {device.properties.multiprocessor_count} multiprocessors"
    )
    print("done: the results are right")


if __name__ == "__main__":
    main()
