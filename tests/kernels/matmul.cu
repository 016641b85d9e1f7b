// c (m x n) = a (m x k) * b (k x n), row major, 16 x 16 tiles, any size.
#define TILE 16
extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k)
{
    __shared__ float as[TILE][TILE];
    __shared__ float bs[TILE][TILE + 1];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float acc = 0.0f;
    for (int t = 0; t < (k + TILE - 1) / TILE; t++) {
        int ac = t * TILE + tx, br = t * TILE + ty;
        as[ty][tx] = row < m && ac < k ? a[row * k + ac] : 0.0f;
        bs[ty][tx] = br < k && col < n ? b[br * n + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++) acc += as[ty][i] * bs[i][tx];
        __syncthreads();
    }
    if (row < m && col < n) c[row * n + col] = acc;
}

extern "C" __global__ void matmul_f64(const double* a, const double* b, double* c, int n)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n || col >= n) return;
    double acc = 0.0;
    for (int i = 0; i < n; i++) acc += a[row * n + i] * b[i * n + col];
    c[row * n + col] = acc;
}

// out (n x m) = in (m x n) transposed, 32 x 8 threads a 32 x 32 tile.
extern "C" __global__ void transpose(const float* in, float* out, int m, int n)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < n && y + j < m) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < m && y + j < n) out[(y + j) * m + x] = tile[threadIdx.x][threadIdx.y + j];
}
