// Tiles of several warps, which keep their barriers and partial results in shared memory that is reserved for the system,
// beside the kernel's own static and dynamic shared memory.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

// out: rows of one word per thread: rank in the tile, the tile's rank in the block, sum, maximum, inclusive sum, the value
// of the tile's last thread, any, all, the static neighbour's value, the dynamic one's, the sum of the tile's partners
// behind tile.sync(), words of shared memory that changed.
template <int N> __global__ void tiles(const int* in, int* out, int words)
{
    __shared__ int fixed[1024];
    extern __shared__ int dynamic[];
    cg::thread_block block = cg::this_thread_block();
    int t = block.thread_rank(), i = blockIdx.x * blockDim.x + t, n = gridDim.x * blockDim.x;
    for (int k = t; k < words; k += blockDim.x) dynamic[k] = 1000000 + k;
    for (int k = t; k < 1024; k += blockDim.x) fixed[k] = 2000000 + k;
    block.sync();
    auto tile = cg::tiled_partition<N>(block);
    int v = in[i], last = tile.size() - 1, changed = 0;
#define ROW(k) out[(k) * n + i]
    ROW(0) = tile.thread_rank();
    ROW(1) = tile.meta_group_rank();
    ROW(2) = cg::reduce(tile, v, cg::plus<int>());
    ROW(3) = cg::reduce(tile, v, cg::greater<int>());
    ROW(4) = cg::inclusive_scan(tile, v, cg::plus<int>());
    ROW(5) = tile.shfl(v, last);
    ROW(6) = tile.any(v > 95);
    ROW(7) = tile.all(v > -40);
    block.sync();
    for (int k = t; k < words; k += blockDim.x) changed += dynamic[k] != 1000000 + k;
    for (int k = t; k < 1024; k += blockDim.x) changed += fixed[k] != 2000000 + k;
    block.sync();
    ROW(11) = changed;
    // Tiles run different numbers of rounds, so that a barrier of the whole block would not do.
    int partner = t - tile.thread_rank() + last - tile.thread_rank(), sum = 0;
    for (unsigned round = 0; round <= tile.meta_group_rank(); round++) {
        fixed[t] = v + round;
        dynamic[t] = v - round;
        tile.sync();
        sum += fixed[partner] * 3 + dynamic[partner];
        tile.sync();
    }
    ROW(8) = fixed[partner];
    ROW(9) = dynamic[partner];
    ROW(10) = sum;
}

// The registers that describe the region, and the size and addresses of the kernel's own shared memory.
extern "C" __global__ void region(unsigned* out)
{
    __shared__ int fixed[16];
    extern __shared__ int dynamic[];
    fixed[threadIdx.x % 16] = dynamic[threadIdx.x % 4] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x) return;
    asm volatile("mov.u32 %0, %%reserved_smem_offset_begin;" : "=r"(out[0]));
    asm volatile("mov.u32 %0, %%reserved_smem_offset_end;" : "=r"(out[1]));
    asm volatile("mov.u32 %0, %%reserved_smem_offset_cap;" : "=r"(out[2]));
    asm volatile("mov.u32 %0, %%reserved_smem_offset_0;" : "=r"(out[3]));
    asm volatile("mov.u32 %0, %%reserved_smem_offset_1;" : "=r"(out[4]));
    asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(out[5]));
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(out[6]));
    out[7] = __cvta_generic_to_shared(fixed);
    out[8] = __cvta_generic_to_shared(dynamic);
}
