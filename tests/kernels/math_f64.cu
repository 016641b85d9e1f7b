// Double-precision functions: out has one row of n for each expression.
#define PUT(e) out[(k++) * n + i] = (e)
extern "C" __global__ void math_f64(const double* in, const double* in2, double* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = in[i], y = in2[i];
    int k = 0;
    PUT(sin(x)); PUT(cos(x)); PUT(tan(x)); PUT(asin(x / 100.0)); PUT(acos(x / 100.0)); PUT(atan(x)); PUT(atan2(x, y));
    PUT(sinh(x / 10.0)); PUT(cosh(x / 10.0)); PUT(tanh(x)); PUT(exp(x / 10.0)); PUT(exp2(x / 10.0)); PUT(exp10(x / 20.0)); PUT(expm1(x / 10.0));
    PUT(log(fabs(x) + 1e-3)); PUT(log2(fabs(x) + 1e-3)); PUT(log10(fabs(x) + 1e-3)); PUT(log1p(fabs(x)));
    PUT(pow(fabs(x), y / 20.0)); PUT(sqrt(fabs(x))); PUT(rsqrt(fabs(x) + 0.5)); PUT(cbrt(x)); PUT(hypot(x, y));
    PUT(erf(x / 20.0)); PUT(erfc(x / 20.0)); PUT(tgamma(fabs(x) / 20.0 + 0.5)); PUT(lgamma(fabs(x) + 0.5));
    PUT(fma(x, y, 1.5)); PUT(fmod(x, y)); PUT(remainder(x, y)); PUT(floor(x)); PUT(ceil(x)); PUT(trunc(x)); PUT(rint(x)); PUT(round(x));
    PUT(fmin(x, y)); PUT(fmax(x, y)); PUT(fabs(x)); PUT(copysign(x, y)); PUT(ldexp(x, 3)); PUT(x / y); PUT(1.0 / y);
}

extern "C" __global__ void rounding_f64(const double* in, const double* in2, double* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = in[i], y = in2[i];
    int k = 0;
    PUT(__dadd_rn(x, y)); PUT(__dadd_rz(x, y)); PUT(__dadd_ru(x, y)); PUT(__dadd_rd(x, y));
    PUT(__dmul_rn(x, y)); PUT(__dmul_rz(x, y)); PUT(__dmul_ru(x, y)); PUT(__dmul_rd(x, y));
    PUT(__fma_rn(x, y, x)); PUT(__fma_rz(x, y, x)); PUT(__fma_ru(x, y, x)); PUT(__fma_rd(x, y, x));
    PUT(__ddiv_rn(x, y)); PUT(__ddiv_rz(x, y)); PUT(__ddiv_ru(x, y)); PUT(__ddiv_rd(x, y));
    PUT(__dsqrt_rn(fabs(x))); PUT(__dsqrt_rz(fabs(x))); PUT(__dsqrt_ru(fabs(x))); PUT(__dsqrt_rd(fabs(x)));
    PUT(__drcp_rn(y)); PUT(__drcp_rz(y)); PUT(__drcp_ru(y)); PUT(__drcp_rd(y));
}

extern "C" __global__ void convert_f64(const double* in, long long* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = in[i];
    int k = 0;
    PUT((long long)x); PUT((int)x); PUT((unsigned)x); PUT(__double2ll_rn(x)); PUT(__double2ll_ru(x)); PUT(__double2int_rd(x));
    PUT((long long)__double2ull_rz(x)); PUT(__double2hiint(x)); PUT(__double2loint(x)); PUT(__double_as_longlong(x));
    PUT(__float_as_int((float)x)); PUT(__float_as_int(__double2float_ru(x))); PUT(__double_as_longlong(__ll2double_rz(__double_as_longlong(x))));
    PUT(__double_as_longlong(__ull2double_ru((unsigned long long)__double_as_longlong(x)))); PUT(isnan(x)); PUT(isinf(x)); PUT(ilogb(x));
}
