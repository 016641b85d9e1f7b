// Single-precision functions: out has one row of n for each expression.
#define PUT(e) out[(k++) * n + i] = (e)
extern "C" __global__ void math_f32(const float* in, const float* in2, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i], y = in2[i];
    int k = 0;
    PUT(sinf(x)); PUT(cosf(x)); PUT(tanf(x)); PUT(asinf(x / 100.0f)); PUT(acosf(x / 100.0f)); PUT(atanf(x)); PUT(atan2f(x, y));
    PUT(sinhf(x / 10.0f)); PUT(coshf(x / 10.0f)); PUT(tanhf(x)); PUT(expf(x / 10.0f)); PUT(exp2f(x / 10.0f)); PUT(exp10f(x / 20.0f)); PUT(expm1f(x / 10.0f));
    PUT(logf(fabsf(x) + 1e-3f)); PUT(log2f(fabsf(x) + 1e-3f)); PUT(log10f(fabsf(x) + 1e-3f)); PUT(log1pf(fabsf(x)));
    PUT(powf(fabsf(x), y / 20.0f)); PUT(sqrtf(fabsf(x))); PUT(rsqrtf(fabsf(x) + 0.5f)); PUT(cbrtf(x)); PUT(hypotf(x, y));
    PUT(erff(x / 20.0f)); PUT(erfcf(x / 20.0f)); PUT(tgammaf(fabsf(x) / 20.0f + 0.5f)); PUT(lgammaf(fabsf(x) + 0.5f));
    PUT(fmaf(x, y, 1.5f)); PUT(fmodf(x, y)); PUT(remainderf(x, y)); PUT(floorf(x)); PUT(ceilf(x)); PUT(truncf(x)); PUT(rintf(x)); PUT(roundf(x));
    PUT(fminf(x, y)); PUT(fmaxf(x, y)); PUT(fabsf(x)); PUT(copysignf(x, y)); PUT(ldexpf(x, 3)); PUT(x / y); PUT(1.0f / y);
}

extern "C" __global__ void rounding_f32(const float* in, const float* in2, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i], y = in2[i];
    int k = 0;
    PUT(__fadd_rn(x, y)); PUT(__fadd_rz(x, y)); PUT(__fadd_ru(x, y)); PUT(__fadd_rd(x, y));
    PUT(__fmul_rn(x, y)); PUT(__fmul_rz(x, y)); PUT(__fmul_ru(x, y)); PUT(__fmul_rd(x, y));
    PUT(__fmaf_rn(x, y, x)); PUT(__fmaf_rz(x, y, x)); PUT(__fmaf_ru(x, y, x)); PUT(__fmaf_rd(x, y, x));
    PUT(__fdiv_rn(x, y)); PUT(__fdiv_rz(x, y)); PUT(__fdiv_ru(x, y)); PUT(__fdiv_rd(x, y));
    PUT(__fsqrt_rn(fabsf(x))); PUT(__fsqrt_rz(fabsf(x))); PUT(__fsqrt_ru(fabsf(x))); PUT(__fsqrt_rd(fabsf(x)));
    PUT(__frcp_rn(y)); PUT(__frcp_rz(y)); PUT(__frcp_ru(y)); PUT(__frcp_rd(y)); PUT(__frsqrt_rn(fabsf(x) + 0.5f));
}

// The hardware approximations; -use_fast_math turns the first kernel into these.
extern "C" __global__ void approx_f32(const float* in, const float* in2, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i], y = in2[i], s, c;
    int k = 0;
    PUT(__sinf(x)); PUT(__cosf(x)); PUT(__tanf(x / 100.0f)); PUT(__expf(x / 10.0f)); PUT(__exp10f(x / 20.0f));
    PUT(__logf(fabsf(x) + 1e-3f)); PUT(__log2f(fabsf(x) + 1e-3f)); PUT(__log10f(fabsf(x) + 1e-3f)); PUT(__powf(fabsf(x), y / 20.0f));
    PUT(__fdividef(x, y)); PUT(__saturatef(x)); PUT(rsqrtf(fabsf(x) + 0.5f));
    __sincosf(x, &s, &c); PUT(s + c);
    asm("tanh.approx.f32 %0, %1;" : "=f"(s) : "f"(x)); PUT(s);
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(s) : "f"(y)); PUT(s);
    asm("sqrt.approx.f32 %0, %1;" : "=f"(s) : "f"(fabsf(x))); PUT(s);
}

extern "C" __global__ void convert_f32(const float* in, int* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i];
    int k = 0;
    PUT((int)x); PUT((unsigned)x); PUT(__float2int_rn(x)); PUT(__float2int_ru(x)); PUT(__float2int_rd(x)); PUT(__float2uint_rn(x));
    PUT((int)__float2ll_rn(x)); PUT((short)x); PUT((unsigned char)x); PUT(lrintf(x)); PUT(lroundf(x)); PUT(ilogbf(x)); PUT(__float_as_int(x));
    PUT(__float_as_int(__int2float_rz(__float_as_int(x)))); PUT(__float_as_int(__uint2float_ru(__float_as_uint(x)))); PUT(isnan(x)); PUT(isinf(x)); PUT(signbit(x) != 0);
    PUT(isfinite(x));
}
