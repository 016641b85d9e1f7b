// Half and bfloat16: out has one row of n for each expression.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#define PUT(e) out[(k++) * n + i] = (e)
extern "C" __global__ void half_ops(const __half* a, const __half* b, __half* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half x = a[i], y = b[i];
    int k = 0;
    PUT(__hadd(x, y)); PUT(__hsub(x, y)); PUT(__hmul(x, y)); PUT(__hdiv(x, y)); PUT(__hfma(x, y, x)); PUT(__hneg(x)); PUT(__habs(x));
    PUT(__hadd_sat(x, y)); PUT(__hmin(x, y)); PUT(__hmax(x, y)); PUT(hsqrt(__habs(x))); PUT(hrcp(y)); PUT(hexp(__hmul(x, __float2half(0.1f))));
    PUT(hlog(__hadd(__habs(x), __float2half(0.5f)))); PUT(hsin(x)); PUT(hcos(x)); PUT(hfloor(x)); PUT(hceil(x)); PUT(hrint(x)); PUT(htrunc(x));
    PUT(__float2half(__half2float(x) * 1.5f)); PUT(__float2half_rz(__half2float(x) * 1.3f)); PUT(__int2half_rn(__half2int_rz(x))); PUT(__hgt(x, y) ? x : y);
    PUT(__ushort2half_rn(__half2ushort_rz(__habs(x)))); PUT(__hfma_relu(x, y, x));
}

extern "C" __global__ void half2_ops(const __half2* a, const __half2* b, __half2* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half2 x = a[i], y = b[i];
    int k = 0;
    PUT(__hadd2(x, y)); PUT(__hsub2(x, y)); PUT(__hmul2(x, y)); PUT(__h2div(x, y)); PUT(__hfma2(x, y, x)); PUT(__hmin2(x, y)); PUT(__hmax2(x, y));
    PUT(__hgt2(x, y)); PUT(__hneg2(x)); PUT(__lows2half2(x, y)); PUT(__highs2half2(x, y)); PUT(__float22half2_rn(__half22float2(x))); PUT(h2sqrt(__habs2(x)));
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void bf16_ops(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_bfloat16 x = a[i], y = b[i];
    int k = 0;
    PUT(__hadd(x, y)); PUT(__hsub(x, y)); PUT(__hmul(x, y)); PUT(__hdiv(x, y)); PUT(__hfma(x, y, x)); PUT(__hneg(x)); PUT(__habs(x));
    PUT(__hmin(x, y)); PUT(__hmax(x, y)); PUT(__float2bfloat16(__bfloat162float(x) * 1.5f)); PUT(__float2bfloat16_rz(__bfloat162float(x) * 1.3f));
    PUT(__hlt(x, y) ? x : y); PUT(hsqrt(__habs(x))); PUT(__int2bfloat16_rn(__bfloat162int_rz(x)));
}

extern "C" __global__ void bf162_ops(const __nv_bfloat162* a, const __nv_bfloat162* b, __nv_bfloat162* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_bfloat162 x = a[i], y = b[i];
    int k = 0;
    PUT(__hadd2(x, y)); PUT(__hmul2(x, y)); PUT(__hfma2(x, y, x)); PUT(__hmax2(x, y)); PUT(__float22bfloat162_rn(__bfloat1622float2(x)));
}
#endif

extern "C" __global__ void half_atomics(__half* h, __half2* h2, __nv_bfloat16* b, __nv_bfloat162* b2)
{
    atomicAdd(h, __float2half(1.0f));
    atomicAdd(h2, __floats2half2_rn(1.0f, 2.0f));
#if __CUDA_ARCH__ >= 800
    atomicAdd(b, __float2bfloat16(1.0f));
    atomicAdd(b2, __floats2bfloat162_rn(1.0f, 2.0f));
#endif
}

extern "C" __global__ void half_saxpy(__half a, const __half* x, __half* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
