/* The number of steps, at most `most`, until the orbit of each pixel leaves the circle of radius 2. One thread a pixel. */

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)

extern "C" __global__ void mandelbrot(int *steps, int width, int height, float left, float top, float step, int most)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height)
        return;
    float a = left + column * step, b = top - row * step, x = 0.0f, y = 0.0f;
    int n = 0;
    while (n < most && x * x + y * y <= 4.0f) {
        float next = x * x - y * y + a;
        y = 2.0f * x * y + b;
        x = next;
        n++;
    }
    steps[row * width + column] = n;
}

#elif defined(__OPENCL_VERSION__)

__kernel void mandelbrot(__global int *steps, int width, int height, float left, float top, float step, int most)
{
    int column = get_global_id(0), row = get_global_id(1);
    if (column >= width || row >= height)
        return;
    float a = left + column * step, b = top - row * step, x = 0.0f, y = 0.0f;
    int n = 0;
    while (n < most && x * x + y * y <= 4.0f) {
        float next = x * x - y * y + a;
        y = 2.0f * x * y + b;
        x = next;
        n++;
    }
    steps[row * width + column] = n;
}

#else

void mandelbrot(int *steps, int width, int height, float left, float top, float step, int most)
{
#pragma omp parallel for schedule(dynamic, 8)
    for (int row = 0; row < height; row++)
        for (int column = 0; column < width; column++) {
            float a = left + column * step, b = top - row * step, x = 0.0f, y = 0.0f;
            int n = 0;
            while (n < most && x * x + y * y <= 4.0f) {
                float next = x * x - y * y + a;
                y = 2.0f * x * y + b;
                x = next;
                n++;
            }
            steps[row * width + column] = n;
        }
}

#endif
