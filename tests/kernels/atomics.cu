// Every atomic of every type on one cell each; the host checks the final values. n threads in all.
extern "C" __global__ void atomics_u32(unsigned* out, unsigned* old, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v = 1u << (i & 31);
    old[i] = atomicAdd(&out[0], 1u);
    atomicSub(&out[1], 3u);
    atomicMin(&out[2], (unsigned)i);
    atomicMax(&out[3], (unsigned)i);
    atomicInc(&out[4], 99u);
    atomicDec(&out[5], 99u);
    atomicAnd(&out[6], ~v);
    atomicOr(&out[7], v);
    atomicXor(&out[8], v);
    atomicExch(&out[9], 7u);
    atomicCAS(&out[10], 5u, 6u);
    atomicMin((int*)&out[11], -i);
    atomicMax((int*)&out[12], i - 100);
    atomicAdd_system(&out[13], 2u);
    atomicAdd_block(&out[14], 2u);
}

extern "C" __global__ void atomics_u64(unsigned long long* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long v = 1ull << (i & 63);
    atomicAdd(&out[0], 1ull << 33);
    atomicMin(&out[1], v);
    atomicMax(&out[2], v);
    atomicAnd(&out[3], ~v);
    atomicOr(&out[4], v);
    atomicXor(&out[5], v);
    atomicExch(&out[6], 7ull);
    atomicCAS(&out[7], 5ull, 6ull);
    atomicMin((long long*)&out[8], (long long)-i);
    atomicMax((long long*)&out[9], (long long)i - 100);
}

extern "C" __global__ void atomics_float(float* f, double* d, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(&f[0], 0.5f);
    atomicExch(&f[1], 3.0f);
    atomicAdd(&d[0], 0.25);
#if __CUDA_ARCH__ >= 900
    atomicAdd((float2*)&f[2], make_float2(1.0f, 2.0f));
    atomicAdd((float4*)&f[4], make_float4(1.0f, 2.0f, 3.0f, 4.0f));
#endif
}

extern "C" __global__ void atomics_shared(int* out)
{
    __shared__ int s[8];
    __shared__ unsigned long long w[2];
    __shared__ float f;
    if (threadIdx.x < 8) s[threadIdx.x] = threadIdx.x == 3 ? 1000 : 0;
    if (threadIdx.x < 2) w[threadIdx.x] = 0;
    if (threadIdx.x == 0) f = 0.0f;
    __syncthreads();
    atomicAdd(&s[0], 1);
    atomicMax(&s[1], (int)threadIdx.x);
    atomicOr(&s[2], 1 << (threadIdx.x & 31));
    atomicMin(&s[3], (int)threadIdx.x + 5);
    atomicExch(&s[4], 9);
    atomicCAS(&s[5], 0, 4);
    atomicInc((unsigned*)&s[6], 9u);
    atomicAdd(&w[0], 1ull);
    atomicAdd(&f, 1.0f);
    __syncthreads();
    if (threadIdx.x < 8) out[threadIdx.x] = s[threadIdx.x];
    if (threadIdx.x == 0) { out[8] = (int)w[0]; out[9] = (int)f; }
}

extern "C" __global__ void atomics_u16(unsigned short* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned short old = *(volatile unsigned short*)out, seen;
    do {
        seen = old;
        old = atomicCAS(out, seen, (unsigned short)(seen + 1));
    } while (old != seen);
}
