// Clusters through cooperative groups: their dimensions, the shared memory of other blocks, the barrier.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// Each block owns part of the bins, in its shared memory. The blocks of a cluster add to the bins of all of them.
extern "C" __global__ void histogram(int* bins, int per_block, const int* values, int count)
{
    extern __shared__ int own[];
    cg::cluster_group cluster = cg::this_cluster();
    for (int k = threadIdx.x; k < per_block; k += blockDim.x) own[k] = 0;
    cluster.sync();
    for (int i = cg::this_grid().thread_rank(); i < count; i += cg::this_grid().num_threads()) {
        int bin = values[i];
        int* there = cluster.map_shared_rank(own, bin / per_block);
        atomicAdd(there + bin % per_block, 1);
    }
    // No block may exit, or read its bins, while others add to them.
    cluster.sync();
    int* to = bins + cluster.block_rank() * per_block;
    for (int k = threadIdx.x; k < per_block; k += blockDim.x) atomicAdd(to + k, own[k]);
}

// out: 12 words per block.
__device__ void describe(unsigned* out)
{
    __shared__ unsigned mine;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
    if (threadIdx.x == 0) mine = 1000 * cluster.block_rank() + blockIdx.x;
    // Arrives and waits apart, with work that other blocks do not depend on in between.
    cluster.barrier_arrive();
    unsigned* row = out + 12 * (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    if (threadIdx.x == 0) {
        row[0] = cluster.block_rank();
        row[1] = cluster.num_blocks();
        row[2] = cluster.dim_blocks().x;
        row[3] = cluster.dim_blocks().y;
        row[4] = cluster.dim_blocks().z;
        row[5] = cluster.block_index().x;
        row[6] = cluster.block_index().y;
        row[7] = cluster.block_index().z;
        row[8] = cluster.num_threads();
    }
    if (cluster.thread_rank() == cluster.block_rank() * blockDim.x + blockDim.x - 1) row[9] = cluster.thread_rank();
    cluster.barrier_wait();
    unsigned* there = cluster.map_shared_rank(&mine, next);
    if (threadIdx.x == 0) {
        row[10] = *there;
        row[11] = cluster.query_shared_rank(there);
    }
    cluster.sync();
}

extern "C" __global__ void dimensions(unsigned* out) { describe(out); }
extern "C" __global__ void __cluster_dims__(2, 1, 1) fixed_dimensions(unsigned* out) { describe(out); }

// out: for each cluster, the sum of the ranks of all its threads.
extern "C" __global__ void sum_of_ranks(int* out)
{
    __shared__ int sum;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) sum = 0;
    cluster.sync();
    atomicAdd(cluster.map_shared_rank(&sum, 0), int(cluster.block_rank()));
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0) out[blockIdx.x / cluster.num_blocks()] = sum;
}

// out: for each block, what block 0 of the next cluster has stored before the barrier of the grid. Needs a cooperative launch.
extern "C" __global__ void grid_and_clusters(int* out, int* stored)
{
    __shared__ int sum;
    cg::cluster_group cluster = cg::this_cluster();
    cg::grid_group grid = cg::this_grid();
    int blocks = cluster.num_blocks(), clusters = gridDim.x / blocks, mine = blockIdx.x / blocks;
    if (threadIdx.x == 0) sum = 0;
    cluster.sync();
    if (threadIdx.x == 0) atomicAdd(cluster.map_shared_rank(&sum, 0), blockIdx.x);
    cluster.sync();
    if (threadIdx.x == 0 && cluster.block_rank() == 0) stored[mine] = sum;
    grid.sync();
    if (threadIdx.x == 0) out[blockIdx.x] = stored[(mine + 1) % clusters];
}

// Block 0 reads from a block that has exited.
extern "C" __global__ void late(int* out)
{
    __shared__ int mine;
    cg::cluster_group cluster = cg::this_cluster();
    mine = 1;
    cluster.sync();
    if (cluster.block_rank() != 0) return;
    for (int k = 0; k < 100; k++) __nanosleep(100000);
    out[0] = *cluster.map_shared_rank(&mine, 1);
}
