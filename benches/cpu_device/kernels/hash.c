/* Hashes of 32-bit integers: ROUNDS rounds of multiply, xor and rotate, each with a branch on the hash. */

#define ROUNDS 64

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)

extern "C" __global__ void hash(const unsigned int *keys, unsigned int *hashes, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned int h = keys[i];
    for (unsigned int step = 0; step < ROUNDS; step++) {
        h *= 0x9E3779B1u;
        h ^= h >> 15;
        h = h << 13 | h >> 19;
        if (h & 1u) {
            h = (h ^ step) * 0x85EBCA6Bu;
            h ^= h >> 13;
            h = h * 0xC2B2AE35u + (h >> 16);
        }
    }
    hashes[i] = h;
}

#elif defined(__OPENCL_VERSION__)

__kernel void hash(__global const uint *keys, __global uint *hashes, int n)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    uint h = keys[i];
    for (uint step = 0; step < ROUNDS; step++) {
        h *= 0x9E3779B1u;
        h ^= h >> 15;
        h = rotate(h, 13u);
        if (h & 1u) {
            h = (h ^ step) * 0x85EBCA6Bu;
            h ^= h >> 13;
            h = h * 0xC2B2AE35u + (h >> 16);
        }
    }
    hashes[i] = h;
}

#else

void hash(const unsigned int *restrict keys, unsigned int *restrict hashes, int n)
{
#pragma omp parallel for simd
    for (int i = 0; i < n; i++) {
        unsigned int h = keys[i];
        for (unsigned int step = 0; step < ROUNDS; step++) {
            h *= 0x9E3779B1u;
            h ^= h >> 15;
            h = h << 13 | h >> 19;
            if (h & 1u) {
                h = (h ^ step) * 0x85EBCA6Bu;
                h ^= h >> 13;
                h = h * 0xC2B2AE35u + (h >> 16);
            }
        }
        hashes[i] = h;
    }
}

#endif
