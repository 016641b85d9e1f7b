// 128-bit integers; compiled with --device-int128. x and y are pairs of words, the lower one first, and so are the rows of
// out, one for each result.
typedef unsigned __int128 U;
typedef __int128 S;

extern "C" __global__ void int128_ops(const ulonglong2* x, const ulonglong2* y, ulonglong2* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    U u = (U)x[i].y << 64 | x[i].x, v = (U)y[i].y << 64 | y[i].x;
    S s = (S)u, t = (S)v;
    int k = 0;
#define PUT(e) { U r = (U)(e); out[(k++) * n + i] = make_ulonglong2((unsigned long long)r, (unsigned long long)(r >> 64)); }
    PUT(u + v); PUT(u - v); PUT(u * v); PUT(-u);
    PUT(u / v); PUT(u % v); PUT(s / t); PUT(s % t);
    PUT(u < v); PUT(s < t);
}
