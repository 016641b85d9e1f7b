// A shared library with device code.
#include "check.h"

__device__ int calls = 0;
__global__ void call(int *out) { *out = ++calls; }

extern "C" int run() {
    int *out, host;
    CHECK(cudaMalloc(&out, sizeof host));
    call<<<1, 1>>>(out);
    CHECK(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(out));
    return host;
}
