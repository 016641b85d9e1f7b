// Integer work in all widths. out has one row of n for each result.
extern "C" __global__ void int64_ops(const long long* a, const long long* b, long long* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long x = a[i], y = b[i];
    unsigned long long u = x, v = y;
    int k = 0;
#define PUT(e) out[(k++) * n + i] = (long long)(e)
    PUT(x + y); PUT(x - y); PUT(x * y); PUT(y ? x / y : 0); PUT(y ? x % y : 0);
    PUT(v ? u / v : 0); PUT(v ? u % v : 0);
    PUT(__mul64hi(x, y)); PUT(__umul64hi(u, v));
    PUT(x & y); PUT(x | y); PUT(x ^ y); PUT(~x);
    PUT(u << (v & 63)); PUT(x >> (v & 63)); PUT(u >> (v & 63));
    PUT(min(x, y)); PUT(max(x, y)); PUT(min(u, v)); PUT(max(u, v)); PUT(llabs(x));
    PUT(__popcll(u)); PUT(__clzll(x)); PUT(__ffsll(x)); PUT(__brevll(u));
    PUT(x < y); PUT(u < v); PUT(x == y); PUT(x != 0 && y != 0);
    PUT((double)x); PUT((long long)(float)x); PUT((unsigned)u); PUT((short)x); PUT((signed char)x);
}

extern "C" __global__ void int32_ops(const int* a, const int* b, int* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i], y = b[i];
    unsigned u = x, v = y;
    int k = 0;
#undef PUT
#define PUT(e) out[(k++) * n + i] = (int)(e)
    PUT(x + y); PUT(x - y); PUT(x * y); PUT(y && !(x == (int)0x80000000 && y == -1) ? x / y : 0);
    PUT(y && !(x == (int)0x80000000 && y == -1) ? x % y : 0); PUT(v ? u / v : 0); PUT(v ? u % v : 0);
    PUT(__mulhi(x, y)); PUT(__umulhi(u, v)); PUT(__mul24(x, y)); PUT(__umul24(u, v));
    PUT(u << (v & 31)); PUT(x >> (v & 31)); PUT(u >> (v & 31));
    PUT(min(x, y)); PUT(max(x, y)); PUT(umin(u, v)); PUT(umax(u, v)); PUT(abs(x));
    PUT(__popc(u)); PUT(__clz(x)); PUT(__ffs(x)); PUT(__brev(u));
    PUT(__byte_perm(u, v, 0x5140)); PUT(__funnelshift_l(u, v, 7)); PUT(__funnelshift_r(u, v, v));
    PUT(__funnelshift_lc(u, v, 40)); PUT(__sad(x, y, 5)); PUT(__usad(u, v, 5)); PUT(__hadd(x, y)); PUT(__rhadd(x, y));
    PUT(__uhadd(u, v)); PUT(x & ~y | (x ^ 0x5a5a5a5a)); PUT((u >> 5) & 0x1ff); PUT((x << 9) >> 21);
    PUT((short)x * (short)y); PUT((unsigned char)x + (signed char)y); PUT(x / 7); PUT(u / 10u); PUT(u % 1000u);
}

// 128-bit arithmetic with carries: (lo, hi) pairs; NVRTC wants --device-int128 for it.
#ifdef __SIZEOF_INT128__
extern "C" __global__ void int128_ops(const unsigned long long* a, const unsigned long long* b, unsigned long long* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned __int128 x = ((unsigned __int128)a[2 * i + 1] << 64) | a[2 * i], y = ((unsigned __int128)b[2 * i + 1] << 64) | b[2 * i];
    unsigned __int128 s = x + y, d = x - y, p = x * y, q = x >> (int)(b[2 * i] & 127);
    unsigned long long* o = out + 8 * i;
    o[0] = (unsigned long long)s; o[1] = (unsigned long long)(s >> 64);
    o[2] = (unsigned long long)d; o[3] = (unsigned long long)(d >> 64);
    o[4] = (unsigned long long)p; o[5] = (unsigned long long)(p >> 64);
    o[6] = (unsigned long long)q; o[7] = (unsigned long long)(q >> 64);
}
#endif

// A 64-bit hash of each element (xorshift-multiply) and a modular power.
extern "C" __global__ void mix(const unsigned long long* in, unsigned long long* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long x = in[i];
    x ^= x >> 30; x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27; x *= 0x94d049bb133111ebull;
    x ^= x >> 31;
    out[i] = x;
    unsigned long long base = in[i] % 1000003ull, r = 1, e = 65537;
    while (e) { if (e & 1) r = r * base % 1000003ull; base = base * base % 1000003ull; e >>= 1; }
    out[n + i] = r;
}
