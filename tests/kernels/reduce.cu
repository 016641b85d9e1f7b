// Sums over a block by warp shuffles, then over the grid by an atomic. Block size: a multiple of 32, at most 1024.
__device__ float warp_sum(float v)
{
    for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
    return v;
}

extern "C" __global__ void sum_f32(const float* in, float* out, int n)
{
    __shared__ float part[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float v = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += in[i];
    v = warp_sum(v);
    if (lane == 0) part[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = lane < (blockDim.x + 31) / 32 ? part[lane] : 0.0f;
        v = warp_sum(v);
        if (lane == 0) atomicAdd(out, v);
    }
}

#if __CUDA_ARCH__ >= 800
// out[0] += sum, out[1] = max (signed), out[2] |= or, out[3] &= and
extern "C" __global__ void reduce_sync(const int* in, int* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? in[i] : 0;
    int sum = __reduce_add_sync(0xffffffffu, v);
    int most = __reduce_max_sync(0xffffffffu, v);
    int least = __reduce_min_sync(0xffffffffu, v);
    unsigned any = __reduce_or_sync(0xffffffffu, (unsigned)v);
    unsigned all = __reduce_and_sync(0xffffffffu, (unsigned)v);
    unsigned odd = __reduce_xor_sync(0xffffffffu, (unsigned)v);
    if ((threadIdx.x & 31) == 0) {
        atomicAdd(&out[0], sum);
        atomicMax(&out[1], most);
        atomicMin(&out[2], least);
        atomicOr((unsigned*)&out[3], any);
        atomicAnd((unsigned*)&out[4], all);
        atomicXor((unsigned*)&out[5], odd);
    }
}
#endif

// Counts positive elements by ballots; writes each warp's mask too.
extern "C" __global__ void count_positive(const float* in, unsigned* masks, int* count, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool p = i < n && in[i] > 0.0f;
    unsigned mask = __ballot_sync(0xffffffffu, p);
    if ((threadIdx.x & 31) == 0) {
        masks[i / 32] = mask;
        atomicAdd(count, __popc(mask));
    }
}

// Inclusive prefix sum within each block of 1024 or fewer threads.
extern "C" __global__ void block_scan(const int* in, int* out, int n)
{
    __shared__ int sums[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int v = i < n ? in[i] : 0;
    for (int d = 1; d < 32; d <<= 1) {
        int t = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d) v += t;
    }
    if (lane == 31) sums[warp] = v;
    __syncthreads();
    if (warp == 0) {
        int s = sums[lane];
        for (int d = 1; d < 32; d <<= 1) {
            int t = __shfl_up_sync(0xffffffffu, s, d);
            if (lane >= d) s += t;
        }
        sums[lane] = s;
    }
    __syncthreads();
    if (warp > 0) v += sums[warp - 1];
    if (i < n) out[i] = v;
}
