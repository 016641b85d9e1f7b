// out[i] = a * x[i] + y[i]
extern "C" __global__ void saxpy(float a, const float* x, const float* y, float* out, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = a * x[i] + y[i];
    }
}

// The same with a grid-stride loop, four elements at a time where the length allows it.
extern "C" __global__ void saxpy_stride(float a, const float* x, const float* y, float* out, int n)
{
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        out[i] = fmaf(a, x[i], y[i]);
    }
}

extern "C" __global__ void saxpy_vec4(float a, const float4* x, const float4* y, float4* out, int n4)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    float4 p = x[i], q = y[i];
    out[i] = make_float4(a * p.x + q.x, a * p.y + q.y, a * p.z + q.z, a * p.w + q.w);
}
