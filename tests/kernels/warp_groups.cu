// Collectives whose member mask differs between the lanes of one warp. n is a multiple of 32.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void by_key(const int* key, const int* value, unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    unsigned m = __match_any_sync(0xffffffffu, key[i]);
    int leader = __ffs(m) - 1;
    out[0 * n + i] = m;
    out[1 * n + i] = __ballot_sync(m, value[i] & 1);
    out[2 * n + i] = __all_sync(m, value[i] > 0);
    out[3 * n + i] = __any_sync(m, value[i] > 50);
    out[4 * n + i] = __reduce_add_sync(m, value[i]);
    out[5 * n + i] = __reduce_max_sync(m, value[i]);
    out[6 * n + i] = __reduce_or_sync(m, (unsigned)value[i]);
    out[7 * n + i] = __shfl_sync(m, value[i], leader);
    __syncwarp(m);
    out[8 * n + i] = __match_any_sync(m, value[i] & 1);
    int same;
    out[9 * n + i] = __match_all_sync(m, key[i], &same) + lane * same;
}

// Each group takes another branch, so that the lanes of different groups arrive one after the other.
extern "C" __global__ void by_key_diverged(const int* key, const int* value, unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, steps = 0;
    unsigned m = __match_any_sync(0xffffffffu, key[i]);
    for (int k = 0; k < value[i] % 7; k++) {
        steps += k * k;
        asm volatile("" : "+r"(steps));
    }
    out[i] = __reduce_add_sync(m, steps);
    if (value[i] & 1) return;
    out[n + i] = __ballot_sync(m, 1);
}

extern "C" __global__ void partitions(const int* key, const int* value, int* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto group = cg::labeled_partition(warp, key[i]);
    out[0 * n + i] = group.size();
    out[1 * n + i] = group.thread_rank();
    out[2 * n + i] = cg::reduce(group, value[i], cg::plus<int>());
    out[3 * n + i] = group.shfl(value[i], 0);
    group.sync();
    auto half = cg::binary_partition(group, value[i] & 1);
    out[4 * n + i] = half.size();
    out[5 * n + i] = cg::reduce(half, value[i], cg::greater<int>());
}

// One atomic operation for each key of a warp; the keys are 0 to 9.
extern "C" __global__ void aggregate(const int* key, int* counts, int* position, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (key[i] == 3) return;
    auto group = cg::labeled_partition(cg::coalesced_threads(), key[i]);
    int base = 0;
    if (group.thread_rank() == 0) base = atomicAdd(&counts[key[i]], group.size());
    position[i] = group.shfl(base, 0) + group.thread_rank();
}
