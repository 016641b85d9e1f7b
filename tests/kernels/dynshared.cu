// Dynamic shared memory, one size for several arrays.
extern __shared__ unsigned char raw[];

extern "C" __global__ void reverse_blocks(const int* in, int* out, int n)
{
    int* tile = (int*)raw;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    int from = blockDim.x - 1 - threadIdx.x;
    if (i < n) out[i] = tile[from];
}

// Beside a static array; doubles first, then ints, in one dynamic block of 12 bytes a thread.
extern "C" __global__ void two_arrays(const double* a, const int* b, double* out)
{
    __shared__ int fixed[4];
    double* d = (double*)raw;
    int* k = (int*)(d + blockDim.x);
    if (threadIdx.x < 4) fixed[threadIdx.x] = threadIdx.x * 10;
    d[threadIdx.x] = a[threadIdx.x];
    k[threadIdx.x] = b[threadIdx.x];
    __syncthreads();
    int other = threadIdx.x ^ 1;
    out[threadIdx.x] = d[other] + k[other] + fixed[threadIdx.x & 3];
}

// Bitonic sort of one block's worth of floats.
extern "C" __global__ void bitonic(float* data)
{
    float* s = (float*)raw;
    unsigned t = threadIdx.x;
    s[t] = data[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (unsigned k = 2; k <= blockDim.x; k <<= 1) {
        for (unsigned j = k >> 1; j > 0; j >>= 1) {
            unsigned o = t ^ j;
            if (o > t) {
                bool up = (t & k) == 0;
                if ((s[t] > s[o]) == up) { float x = s[t]; s[t] = s[o]; s[o] = x; }
            }
            __syncthreads();
        }
    }
    data[blockIdx.x * blockDim.x + t] = s[t];
}

#if __CUDA_ARCH__ >= 700
// Barriers that reduce.
extern "C" __global__ void barrier_reductions(const int* in, int* out)
{
    int v = in[threadIdx.x];
    int c = __syncthreads_count(v > 0);
    int a = __syncthreads_and(v > 0);
    int o = __syncthreads_or(v > 5);
    if (threadIdx.x == 0) { out[0] = c; out[1] = a != 0; out[2] = o != 0; }
}
#endif
