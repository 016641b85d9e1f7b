"""Asynchronous copies from global to shared memory.

A tiled matrix product, twice: once with ordinary loads, and once with a pipeline that copies the next tiles
(`cp.async`) while the current ones are multiplied. The kernel issues the copies in inline PTX, so that no header is
needed.
"""

import sys

import numpy as np
from cuda.core import Device, LaunchConfig, Program, launch

SOURCE = r"""
constexpr int TILE = 16;

extern "C" __global__ void plain(const float *a, const float *b, float *c, int n)
{
    __shared__ float x[TILE][TILE], y[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int at = 0; at < n; at += TILE) {
        x[threadIdx.y][threadIdx.x] = a[row * n + at + threadIdx.x];
        y[threadIdx.y][threadIdx.x] = b[(at + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += x[threadIdx.y][k] * y[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

// Starts a copy of 16 bytes that the thread does not wait for.
__device__ void start_copy(void *to, const void *from)
{
    unsigned shared = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
}

__device__ void end_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most `Newest` groups are pending.
template <int Newest> __device__ void wait_for_all_but()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Newest) : "memory");
}

extern "C" __global__ void pipelined(const float *a, const float *b, float *c, int n)
{
    constexpr int STAGES = 3;
    __shared__ __align__(16) float x[STAGES][TILE][TILE], y[STAGES][TILE][TILE];
    int thread = threadIdx.y * TILE + threadIdx.x;
    int row = blockIdx.y * TILE, column = blockIdx.x * TILE;

    // Four floats a copy: the first 64 threads fetch a tile of `a`, the next 64 one of `b`.
    auto fetch = [&](int tile) {
        int at = tile * TILE, part = thread % 64, r = part / 4, k = part % 4 * 4;
        if (at < n) {
            if (thread < 64)
                start_copy(&x[tile % STAGES][r][k], &a[(row + r) * n + at + k]);
            else if (thread < 128)
                start_copy(&y[tile % STAGES][r][k], &b[(at + r) * n + column + k]);
        }
        end_group();
    };

    for (int stage = 0; stage < STAGES - 1; stage++)
        fetch(stage);
    float sum = 0;
    for (int tile = 0; tile * TILE < n; tile++) {
        wait_for_all_but<STAGES - 2>();
        // All threads' copies are complete, and no thread reads the buffer that is filled next.
        __syncthreads();
        fetch(tile + STAGES - 1);
        for (int k = 0; k < TILE; k++)
            sum += x[tile % STAGES][threadIdx.y][k] * y[tile % STAGES][k][threadIdx.x];
    }
    c[(row + threadIdx.y) * n + column + threadIdx.x] = sum;
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


def main():
    device = first_device()
    if device.compute_capability < (8, 0):
        skip("asynchronous copies need compute capability 8.0")
    stream = device.create_stream()
    kernels = Program(SOURCE, "c++", {"std": "c++17"}).compile("cubin")
    n = 128
    random = np.random.default_rng(3)
    # Small whole numbers: the product is exact in any order of summation.
    a, b = (random.integers(-4, 5, (n, n)).astype(np.float32) for _ in range(2))
    found = np.empty_like(a)

    left, right, product = (device.allocate(a.nbytes, stream=stream) for _ in range(3))
    left.copy_from(a, stream=stream)
    right.copy_from(b, stream=stream)
    config = LaunchConfig(grid=(n // 16, n // 16), block=(16, 16))
    timed = {"timing_enabled": True}
    for name in ("plain", "pipelined"):
        product.fill(0xFF, stream=stream)
        start = stream.record(options=timed)
        launch(stream, config, kernels.get_kernel(name), left, right, product, np.int32(n))
        end = stream.record(options=timed)
        product.copy_to(found, stream=stream)
        stream.sync()
        if not (found == a @ b).all():
            sys.exit(f"wrong result: the product of the kernel `{name}`")
        print(f"{name:<10} {end - start:8.3f} ms")
    print("done: the results are right")


if __name__ == "__main__":
    main()
