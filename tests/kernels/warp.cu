// Warp collectives; one warp per 32 elements, block size a multiple of 32.
extern "C" __global__ void shuffles(const int* in, int* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    int v = in[i];
    out[0 * n + i] = __shfl_sync(0xffffffffu, v, (lane * 7 + 3) & 31);
    out[1 * n + i] = __shfl_up_sync(0xffffffffu, v, 3);
    out[2 * n + i] = __shfl_down_sync(0xffffffffu, v, 5);
    out[3 * n + i] = __shfl_xor_sync(0xffffffffu, v, 9);
    out[4 * n + i] = __shfl_sync(0xffffffffu, v, lane, 8);
    out[5 * n + i] = __shfl_up_sync(0xffffffffu, v, 2, 8);
    out[6 * n + i] = __shfl_down_sync(0xffffffffu, v, 2, 16);
    out[7 * n + i] = (int)__shfl_xor_sync(0xffffffffu, (long long)v << 4, 1);
}

extern "C" __global__ void votes(const int* in, unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = in[i];
    out[0 * n + i] = __all_sync(0xffffffffu, v > 0);
    out[1 * n + i] = __any_sync(0xffffffffu, v > 0);
    out[2 * n + i] = __ballot_sync(0xffffffffu, v & 1);
    out[3 * n + i] = __activemask();
#if __CUDA_ARCH__ >= 700
    int same;
    out[4 * n + i] = __match_any_sync(0xffffffffu, v);
    out[5 * n + i] = __match_all_sync(0xffffffffu, v, &same);
    out[6 * n + i] = same;
    out[7 * n + i] = __match_any_sync(0xffffffffu, (long long)v << 33);
#endif
}

// Collectives under divergence: odd and even lanes vote among themselves.
extern "C" __global__ void partial(const int* in, unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x & 1) {
        out[i] = __ballot_sync(0xaaaaaaaau, in[i] > 0);
    } else {
        out[i] = __shfl_down_sync(0x55555555u, in[i], 2);
    }
    __syncwarp();
    unsigned m = __activemask();
    if ((threadIdx.x & 31) < 20) m = __ballot_sync(0xfffffu, in[i] & 2);
    out[n + i] = m;
}

// The special registers of a thread.
extern "C" __global__ void specials(unsigned* out)
{
    unsigned t = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned block = blockDim.x * blockDim.y * blockDim.z;
    unsigned id = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned* o = out + 16 * (t * block + id);
    unsigned r;
    o[0] = threadIdx.x; o[1] = threadIdx.y; o[2] = threadIdx.z;
    o[3] = blockIdx.x; o[4] = blockIdx.y; o[5] = blockIdx.z;
    o[6] = blockDim.x; o[7] = gridDim.x;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(r)); o[8] = r;
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(r)); o[9] = r;
    asm volatile("mov.u32 %0, %%nwarpid;" : "=r"(r)); o[10] = r;
    asm volatile("mov.u32 %0, %%lanemask_eq;" : "=r"(r)); o[11] = r;
    asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(r)); o[12] = r;
    asm volatile("mov.u32 %0, %%lanemask_ge;" : "=r"(r)); o[13] = r;
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(r)); o[14] = r;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(r)); o[15] = r;
}
