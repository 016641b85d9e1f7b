/* The inclusive prefix sums of each block of BLOCK elements: Hillis and Steele, with two buffers in shared memory. */

#define BLOCK 256

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)

extern "C" __global__ void scan(const float *x, float *out, int n)
{
    __shared__ float buffer[2][BLOCK];
    int t = threadIdx.x, i = blockIdx.x * BLOCK + t, now = 0;
    buffer[0][t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int span = 1; span < BLOCK; span *= 2) {
        float sum = buffer[now][t];
        if (t >= span)
            sum += buffer[now][t - span];
        now = 1 - now;
        buffer[now][t] = sum;
        __syncthreads();
    }
    if (i < n)
        out[i] = buffer[now][t];
}

#elif defined(__OPENCL_VERSION__)

__kernel void scan(__global const float *x, __global float *out, int n)
{
    __local float buffer[2][BLOCK];
    int t = get_local_id(0), i = get_global_id(0), now = 0;
    buffer[0][t] = i < n ? x[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int span = 1; span < BLOCK; span *= 2) {
        float sum = buffer[now][t];
        if (t >= span)
            sum += buffer[now][t - span];
        now = 1 - now;
        buffer[now][t] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < n)
        out[i] = buffer[now][t];
}

#else

void scan(const float *restrict x, float *restrict out, int n)
{
#pragma omp parallel for
    for (int first = 0; first < n; first += BLOCK) {
        int end = first + BLOCK < n ? first + BLOCK : n;
        float sum = 0.0f;
        for (int i = first; i < end; i++) {
            sum += x[i];
            out[i] = sum;
        }
    }
}

#endif
