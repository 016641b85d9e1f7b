/* y = A * x for a sparse matrix in rows (CSR) whose columns follow a rule instead of an array. One thread a row.
 *
 * Nonzero k of the matrix, in row r, is in column (r * 17 + k * 1031) modulo the number of columns, which is not a power
 * of two.
 */

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)

extern "C" __global__ void spmv(const unsigned int *starts, const float *values, const float *x, float *y,
                                unsigned int rows, unsigned int columns)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    unsigned int end = starts[row + 1];
    float sum = 0.0f;
    for (unsigned int k = starts[row]; k < end; k++)
        sum += values[k] * x[(row * 17u + k * 1031u) % columns];
    y[row] = sum;
}

#elif defined(__OPENCL_VERSION__)

__kernel void spmv(__global const uint *starts, __global const float *values, __global const float *x,
                   __global float *y, uint rows, uint columns)
{
    uint row = get_global_id(0);
    if (row >= rows)
        return;
    uint end = starts[row + 1];
    float sum = 0.0f;
    for (uint k = starts[row]; k < end; k++)
        sum += values[k] * x[(row * 17u + k * 1031u) % columns];
    y[row] = sum;
}

#else

void spmv(const unsigned int *restrict starts, const float *restrict values, const float *restrict x,
          float *restrict y, unsigned int rows, unsigned int columns)
{
#pragma omp parallel for
    for (unsigned int row = 0; row < rows; row++) {
        float sum = 0.0f;
        for (unsigned int k = starts[row]; k < starts[row + 1]; k++)
            sum += values[k] * x[(row * 17u + k * 1031u) % columns];
        y[row] = sum;
    }
}

#endif
