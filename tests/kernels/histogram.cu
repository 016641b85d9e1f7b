// Histograms of bytes: 256 bins.
extern "C" __global__ void histogram(const unsigned char* in, unsigned* bins, int n)
{
    __shared__ unsigned local[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) local[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[in[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        if (local[b]) atomicAdd(&bins[b], local[b]);
}

// A product by compare-and-swap on the bits of a float; the maximum of floats likewise.
extern "C" __global__ void cas_loops(const float* in, float* product, float* most, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int* p = (int*)product;
    int old = *p, seen;
    do {
        seen = old;
        old = atomicCAS(p, seen, __float_as_int(__int_as_float(seen) * in[i]));
    } while (old != seen);
    int* m = (int*)most;
    old = *m;
    while (__int_as_float(old) < in[i]) {
        seen = old;
        old = atomicCAS(m, seen, __float_as_int(in[i]));
        if (old == seen) break;
    }
}

// A spin lock acquired by one thread of each block in turn.
__device__ int lock;
extern "C" __global__ void locked_increment(long long* counter)
{
    if (threadIdx.x == 0) {
        while (atomicCAS(&lock, 0, 1) != 0) { }
        __threadfence();
        *(volatile long long*)counter = *(volatile long long*)counter + 1;
        __threadfence();
        atomicExch(&lock, 0);
    }
}
