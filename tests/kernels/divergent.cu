// Divergent control flow.
extern "C" __global__ void collatz(const unsigned* in, unsigned* steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long v = in[i];
    unsigned s = 0;
    while (v != 1) {
        if (v & 1) v = 3 * v + 1; else v >>= 1;
        s++;
        if (s == 1000) return;      // early exit: steps[i] stays as it was
    }
    steps[i] = s;
}

extern "C" __global__ void mandelbrot(unsigned char* out, int w, int h, int limit)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float cr = 3.5f * x / w - 2.5f, ci = 2.0f * y / h - 1.0f, zr = 0, zi = 0;
    int k = 0;
    for (; k < limit; k++) {
        float r2 = zr * zr, i2 = zi * zi;
        if (r2 + i2 > 4.0f) break;
        zi = 2.0f * zr * zi + ci;
        zr = r2 - i2 + cr;
    }
    out[y * w + x] = (unsigned char)k;
}

// Nested loops with break and continue, and a reconvergence that every lane must reach.
extern "C" __global__ void nested(const int* in, int* out, int n)
{
    __shared__ int reached;
    if (threadIdx.x == 0) reached = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    if (i < n) {
        for (int a = 0; a < in[i] % 9; a++) {
            if (a == 3) continue;
            for (int b = 0; b < 5; b++) {
                if ((a + b + i) % 4 == 3) break;
                sum += a * b + 1;
            }
        }
    }
    atomicAdd(&reached, 1);
    __syncthreads();
    if (i < n) out[i] = sum * 10000 + reached;
}

extern "C" __global__ void never_ends(volatile int* flag)
{
    while (*flag == 0) { }
}

extern "C" __global__ void gcd_all(const unsigned* a, const unsigned* b, unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i];
    while (y) { unsigned t = x % y; x = y; y = t; }
    out[i] = x;
}
