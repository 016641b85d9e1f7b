// A shared library with device code.
#include "check.h"

__device__ int calls = 0;
__global__ void call(int *out) { *out = ++calls; }

__global__ void scale(float *x, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}

// Scales an array of the caller in the caller's stream.
extern "C" int scale_array(float *x, int n, float by, cudaStream_t stream) {
    scale<<<(n + 127) / 128, 128, 0, stream>>>(x, n, by);
    return cudaGetLastError();
}

extern "C" int run() {
    int *out, host;
    CHECK(cudaMalloc(&out, sizeof host));
    call<<<1, 1>>>(out);
    CHECK(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(out));
    return host;
}
