// Compiled with -G, which inlines no function.
#include <cooperative_groups.h>
#include <cuda/barrier>

namespace cg = cooperative_groups;

__device__ __noinline__ unsigned together() { return cg::coalesced_threads().size(); }

// Each lane's number of lanes in each branch, and behind the branches.
extern "C" __global__ void branches(unsigned* out)
{
    unsigned n = threadIdx.x, inside;
    if (n % 32 < 10)
        inside = together();
    else
        inside = together() + 100;
    out[2 * n] = inside;
    out[2 * n + 1] = together();
}

// Sums of the neighbours' values, exchanged in shared memory, n times.
extern "C" __global__ void exchange(int* out, int n)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ int values[2][1024];
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    int value = threadIdx.x;
    for (int k = 0; k < n; k++) {
        values[k & 1][threadIdx.x] = value;
        barrier.arrive_and_wait();
        value += values[k & 1][(threadIdx.x + 1) % blockDim.x];
    }
    out[threadIdx.x] = value;
}
