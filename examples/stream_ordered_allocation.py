"""Stream-ordered memory from a pool that keeps it for reuse.

Temporary memory for each step of a pipeline is allocated and freed in the stream, without synchronizing. The pool's
counters show the effect of a release threshold: without one the pool releases everything on synchronization, with one
the second round needs no new memory.
"""

import numpy as np
from cuda.bindings import driver
from sample import Kernels, Skip, attribute, check, run, verify

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


def counter(pool, name):
    return int(
        check(driver.cuMemPoolGetAttribute(pool, getattr(driver.CUmemPool_attribute, f"CU_MEMPOOL_ATTR_{name}")))
    )


def steps(kernels, stream, pool, n, rounds):
    """Sums `rounds` temporary arrays; returns the sum. Only the last line waits for the device."""
    grid = -(-n // 256)
    total = check(driver.cuMemAllocFromPoolAsync(4 * n, pool, stream))
    check(driver.cuMemsetD32Async(total, 0, n, stream))
    for value in range(rounds):
        temporary = check(driver.cuMemAllocFromPoolAsync(4 * n, pool, stream))
        kernels["fill"](grid, 256, temporary, np.float32(value), np.int32(n), stream=stream)
        kernels["accumulate"](grid, 256, temporary, total, np.int32(n), stream=stream)
        check(driver.cuMemFreeAsync(temporary, stream))
    out = np.empty(n, np.float32)
    check(driver.cuMemcpyDtoHAsync(out.ctypes.data, total, out.nbytes, stream))
    check(driver.cuMemFreeAsync(total, stream))
    check(driver.cuStreamSynchronize(stream))
    return out


def main():
    if not attribute("MEMORY_POOLS_SUPPORTED"):
        raise Skip("the device does not support memory pools")
    n, rounds = 1 << 18, 8
    kernels = Kernels(SOURCE)
    stream = check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    properties = driver.CUmemPoolProps()
    properties.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = 0
    pool = check(driver.cuMemPoolCreate(properties))
    wanted = rounds * (np.arange(n) % 7) + sum(range(rounds))

    verify((steps(kernels, stream, pool, n, rounds) == wanted).all(), "the sum without a threshold")
    without = counter(pool, "RESERVED_MEM_CURRENT")
    verify(counter(pool, "USED_MEM_CURRENT") == 0, "freed memory is still counted as used")

    name = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    check(driver.cuMemPoolSetAttribute(pool, name, driver.cuuint64_t(2**64 - 1)))
    for _ in range(2):
        verify((steps(kernels, stream, pool, n, rounds) == wanted).all(), "the sum with a threshold")
    kept = counter(pool, "RESERVED_MEM_CURRENT")
    verify(kept >= 8 * n, "the pool kept less than its threshold")
    print(
        f"in use at most {counter(pool, 'USED_MEM_HIGH') >> 10} KiB; kept after synchronising: {without >> 10} KiB "
        f"without a threshold, {kept >> 10} KiB with one"
    )
    check(driver.cuMemPoolTrimTo(pool, 0))
    verify(counter(pool, "RESERVED_MEM_CURRENT") < kept, "trimming released nothing")
    check(driver.cuMemPoolDestroy(pool))
    check(driver.cuStreamDestroy(stream))


if __name__ == "__main__":
    run(main)
