/* saxpy: out = a * x + y. One thread an element. */

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a * x[i] + y[i];
}

#elif defined(__OPENCL_VERSION__)

__kernel void saxpy(float a, __global const float *x, __global const float *y, __global float *out, int n)
{
    int i = get_global_id(0);
    if (i < n)
        out[i] = a * x[i] + y[i];
}

#else

void saxpy(float a, const float *restrict x, const float *restrict y, float *restrict out, int n)
{
#pragma omp parallel for simd
    for (int i = 0; i < n; i++)
        out[i] = a * x[i] + y[i];
}

#endif
