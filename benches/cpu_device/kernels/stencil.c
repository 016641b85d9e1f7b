/* One step of the heat equation on a grid: the mean of each interior point and its four neighbours, with weights. */

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)

extern "C" __global__ void stencil(const float *in, float *out, int width, int height, float rate)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1)
        return;
    int i = y * width + x;
    out[i] = in[i] + rate * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width] - 4.0f * in[i]);
}

#elif defined(__OPENCL_VERSION__)

__kernel void stencil(__global const float *in, __global float *out, int width, int height, float rate)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1)
        return;
    int i = y * width + x;
    out[i] = in[i] + rate * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width] - 4.0f * in[i]);
}

#else

void stencil(const float *restrict in, float *restrict out, int width, int height, float rate)
{
#pragma omp parallel for
    for (int y = 1; y < height - 1; y++)
        for (int x = 1; x < width - 1; x++) {
            int i = y * width + x;
            out[i] = in[i] + rate * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width] - 4.0f * in[i]);
        }
}

#endif
