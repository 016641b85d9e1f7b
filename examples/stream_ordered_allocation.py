"""Stream-ordered memory from a pool that keeps it for reuse.

Temporary memory for each step of a pipeline is allocated and freed in the stream, without synchronizing. The pool's
counters show the effect of a release threshold: without one the pool releases everything on synchronization, with one
the second round needs no new memory.
"""

import sys

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, DeviceMemoryResource, LaunchConfig, Program, launch

SOURCE = r"""
extern "C" __global__ void fill(float *out, float value, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = value + i % 7;
}

extern "C" __global__ void accumulate(const float *in, float *sum, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        sum[i] += in[i];
}
"""


def skip(reason):
    """Ends with status 77, which test programs count as skipped."""
    print(f"skipped: {reason}")
    sys.exit(77)


def first_device():
    """The first device, made current."""
    try:
        device = Device(0)
        device.set_current()
    except Exception as reason:
        skip(f"no device: {reason}")
    print(f"on {device.name}")
    return device


def verify(holds, what):
    """Ends the program with an error unless the result is right."""
    if not holds:
        sys.exit(f"wrong result: {what}")


def pipeline(kernels, pool, stream, n, rounds):
    """Sums `rounds` temporary arrays; returns the sum. Only the last line waits for the device."""
    config = LaunchConfig(grid=-(-n // 256), block=256)
    fill, accumulate = kernels.get_kernel("fill"), kernels.get_kernel("accumulate")
    total = pool.allocate(4 * n, stream=stream)
    total.fill(0, stream=stream)
    for value in range(rounds):
        temporary = pool.allocate(4 * n, stream=stream)
        launch(stream, config, fill, temporary, np.float32(value), np.int32(n))
        launch(stream, config, accumulate, temporary, total, np.int32(n))
        temporary.close()  # Freed in the stream, after the kernels.
    out = np.empty(n, np.float32)
    total.copy_to(out, stream=stream)
    total.close()
    stream.sync()
    return out


def set_release_threshold(pool, size):
    """cuda.core's pools keep all memory; the driver changes that."""
    name = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    (status,) = driver.cuMemPoolSetAttribute(pool.handle, name, driver.cuuint64_t(size))
    if status != 0:
        raise RuntimeError(repr(status))


def main():
    device = first_device()
    if not device.properties.memory_pools_supported:
        skip("the device does not support memory pools")
    n, rounds = 1 << 18, 8
    stream = device.create_stream()
    kernels = Program(SOURCE, "c++").compile("cubin")
    pool = DeviceMemoryResource(device, {})
    wanted = rounds * (np.arange(n) % 7) + sum(range(rounds))

    set_release_threshold(pool, 0)
    verify((pipeline(kernels, pool, stream, n, rounds) == wanted).all(), "the sum without a threshold")
    without = pool.attributes.reserved_mem_current
    verify(pool.attributes.used_mem_current == 0, "freed memory is still counted as used")

    set_release_threshold(pool, 2**64 - 1)
    for _ in range(2):
        verify((pipeline(kernels, pool, stream, n, rounds) == wanted).all(), "the sum with a threshold")
    kept = pool.attributes.reserved_mem_current
    verify(kept >= 8 * n, "the pool kept less than its threshold")
    print(
        f"in use at most {pool.attributes.used_mem_high >> 10} KiB; kept after synchronizing: {without >> 10} KiB "
        f"without a threshold, {kept >> 10} KiB with one"
    )
    print("done: the results are right")


if __name__ == "__main__":
    main()
