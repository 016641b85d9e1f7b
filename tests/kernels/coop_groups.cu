// Cooperative groups: tiles, block, grid.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void tile_sums(const int* in, int* out)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    int v = in[blockIdx.x * blockDim.x + block.thread_rank()];
    for (int d = tile.size() / 2; d > 0; d /= 2) v += tile.shfl_down(v, d);
    if (tile.thread_rank() == 0) out[(blockIdx.x * blockDim.x + threadIdx.x) / 8] = v;
    block.sync();
}

// Compacts positive elements: one atomic for each group of converged threads.
extern "C" __global__ void compact(const int* in, int* out, int* count, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] > 0) {
        cg::coalesced_group g = cg::coalesced_threads();
        int base = 0;
        if (g.thread_rank() == 0) base = atomicAdd(count, g.size());
        out[g.shfl(base, 0) + g.thread_rank()] = in[i];
    }
}

// Needs a cooperative launch: two passes with a grid barrier between them. out[i] = sum of in over the grid's threads + i
extern "C" __global__ void grid_sum(const int* in, int* partial, int* out, int n)
{
    cg::grid_group grid = cg::this_grid();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) partial[blockIdx.x] = 0;
    __syncthreads();
    if (i < n) atomicAdd(&partial[blockIdx.x], in[i]);
    grid.sync();
    int s = 0;
    for (unsigned b = 0; b < gridDim.x; b++) s += partial[b];
    if (i < n) out[i] = s + i;
}
