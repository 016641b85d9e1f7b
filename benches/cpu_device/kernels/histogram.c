/* Adds the number of bytes of each value to `bins`: counted in shared memory, then added to global memory. */

#define BINS 256

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)

extern "C" __global__ void histogram(const unsigned char *data, unsigned int *bins, int n)
{
    __shared__ unsigned int counts[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        counts[bin] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&counts[data[i]], 1u);
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        atomicAdd(&bins[bin], counts[bin]);
}

#elif defined(__OPENCL_VERSION__)

__kernel void histogram(__global const uchar *data, __global uint *bins, int n)
{
    __local uint counts[BINS];
    for (int bin = get_local_id(0); bin < BINS; bin += get_local_size(0))
        counts[bin] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(&counts[data[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int bin = get_local_id(0); bin < BINS; bin += get_local_size(0))
        atomic_add(&bins[bin], counts[bin]);
}

#else

void histogram(const unsigned char *restrict data, unsigned int *restrict bins, int n)
{
#pragma omp parallel for reduction(+ : bins[:BINS])
    for (int i = 0; i < n; i++)
        bins[data[i]]++;
}

#endif
