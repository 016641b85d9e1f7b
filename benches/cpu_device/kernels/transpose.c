/* out = transpose of in, n x n, n a multiple of TILE. A block of TILE x ROWS threads moves a tile through shared memory. */

#define TILE 32
#define ROWS 8

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)

extern "C" __global__ void transpose(const float *in, float *out, int n)
{
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

#elif defined(__OPENCL_VERSION__)

__kernel void transpose(__global const float *in, __global float *out, int n)
{
    __local float tile[TILE][TILE + 1];
    int tx = get_local_id(0), ty = get_local_id(1);
    int x = get_group_id(0) * TILE + tx, y = get_group_id(1) * TILE + ty;
    for (int j = 0; j < TILE; j += ROWS)
        tile[ty + j][tx] = in[(y + j) * n + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    x = get_group_id(1) * TILE + tx;
    y = get_group_id(0) * TILE + ty;
    for (int j = 0; j < TILE; j += ROWS)
        out[(y + j) * n + x] = tile[tx][ty + j];
}

#else

void transpose(const float *restrict in, float *restrict out, int n)
{
#pragma omp parallel for
    for (int top = 0; top < n; top += TILE)
        for (int left = 0; left < n; left += TILE)
            for (int y = top; y < top + TILE; y++)
                for (int x = left; x < left + TILE; x++)
                    out[y * n + x] = in[x * n + y];
}

#endif
