/* The sum of each block of BLOCK elements: a tree with a barrier after each level. */

#define BLOCK 256

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)

extern "C" __global__ void reduce(const float *x, float *sums, int n)
{
    __shared__ float partial[BLOCK];
    int t = threadIdx.x, i = blockIdx.x * BLOCK + t;
    partial[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int span = BLOCK / 2; span > 0; span /= 2) {
        if (t < span)
            partial[t] += partial[t + span];
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = partial[0];
}

#elif defined(__OPENCL_VERSION__)

__kernel void reduce(__global const float *x, __global float *sums, int n)
{
    __local float partial[BLOCK];
    int t = get_local_id(0), i = get_global_id(0);
    partial[t] = i < n ? x[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int span = BLOCK / 2; span > 0; span /= 2) {
        if (t < span)
            partial[t] += partial[t + span];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0)
        sums[get_group_id(0)] = partial[0];
}

#else

void reduce(const float *restrict x, float *restrict sums, int n)
{
#pragma omp parallel for
    for (int first = 0; first < n; first += BLOCK) {
        int end = first + BLOCK < n ? first + BLOCK : n;
        float sum = 0.0f;
        for (int i = first; i < end; i++)
            sum += x[i];
        sums[first / BLOCK] = sum;
    }
}

#endif
