"""The sum of two vectors: the smallest complete program.

Compiles a kernel, allocates memory on the device, copies two arrays there, adds them, and copies the sum back.
"""

import sys

import numpy as np
from cuda.core import Device, LaunchConfig, Program, launch

SOURCE = r"""
extern "C" __global__ void add(const float *a, const float *b, float *sum, int n)
{
    // A loop over the grid's stride: right for any number of elements and any size of the grid.
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum[i] = a[i] + b[i];
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
    add = Program(SOURCE, "c++").compile("cubin").get_kernel("add")

    n = 1_000_003
    random = np.random.default_rng(1)
    a, b = random.random(n, np.float32), random.random(n, np.float32)
    total = np.empty_like(a)

    # Everything is queued in the stream and happens in this order.
    on_device = [device.allocate(a.nbytes, stream=stream) for _ in range(3)]
    on_device[0].copy_from(a, stream=stream)
    on_device[1].copy_from(b, stream=stream)
    launch(stream, LaunchConfig(grid=256, block=256), add, *on_device, np.int32(n))
    on_device[2].copy_to(total, stream=stream)
    stream.sync()

    if not (total == a + b).all():
        sys.exit("wrong result: a sum differs from the host's")
    print(f"added {n} pairs of numbers")
    print("done: the results are right")


if __name__ == "__main__":
    main()
