/* Plain C counterpart of the kernel in saxpy_cpu.py: cc -O3 -shared -fPIC -o saxpy.so saxpy.c */
#include <stddef.h>

void saxpy(float a, const float *restrict x, const float *restrict y, float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = a * x[i] + y[i];
}
