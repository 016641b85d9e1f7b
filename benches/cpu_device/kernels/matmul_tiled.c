/* c = a * b for n x n matrices, n a multiple of TILE. Tiles of both matrices are in shared memory; one thread an element. */

#define TILE 16

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)

extern "C" __global__ void matmul_tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx;
    float sum = 0.0f;
    for (int first = 0; first < n; first += TILE) {
        tile_a[ty][tx] = a[row * n + first + tx];
        tile_b[ty][tx] = b[(first + ty) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += tile_a[ty][k] * tile_b[k][tx];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

#elif defined(__OPENCL_VERSION__)

__kernel void matmul_tiled(__global const float *a, __global const float *b, __global float *c, int n)
{
    __local float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int tx = get_local_id(0), ty = get_local_id(1);
    int row = get_global_id(1), column = get_global_id(0);
    float sum = 0.0f;
    for (int first = 0; first < n; first += TILE) {
        tile_a[ty][tx] = a[row * n + first + tx];
        tile_b[ty][tx] = b[(first + ty) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; k++)
            sum += tile_a[ty][k] * tile_b[k][tx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}

#else

/* TILE rows of b stay in the L1 cache while TILE rows of c are updated. */
void matmul_tiled(const float *restrict a, const float *restrict b, float *restrict c, int n)
{
#pragma omp parallel for
    for (int top = 0; top < n; top += TILE) {
        for (int i = top * n; i < (top + TILE) * n; i++)
            c[i] = 0.0f;
        for (int first = 0; first < n; first += TILE)
            for (int i = top; i < top + TILE; i++)
                for (int k = first; k < first + TILE; k++) {
                    float factor = a[i * n + k];
                    for (int j = 0; j < n; j++)
                        c[i * n + j] += factor * b[k * n + j];
                }
    }
}

#endif
