// Kernels by their host functions: attributes, occupancy, the ways to launch, and errors.
#include <cooperative_groups.h>
#include <string>
#include "check.h"

template <typename T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }
static __global__ void __launch_bounds__(128) reversed(int *x, int n) {
    extern __shared__ int part[];
    part[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = part[n - 1 - threadIdx.x];
}
__global__ void sums(int *x, int *out) {
    x[blockIdx.x] = blockIdx.x + 1;
    cooperative_groups::this_grid().sync();
    if (blockIdx.x == 0) for (unsigned i = 0; i < gridDim.x; i++) *out += x[i];
}
__global__ void set(int *x, int to) { *x = to; }

// Launches a kernel while the configuration of another one is pushed.
int nested(int *x) {
    set<<<1, 1>>>(x + 1, 11);
    return 10;
}

int main() {
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, reversed));
    EXPECT(attributes.maxThreadsPerBlock == 128);
    CHECK(cudaFuncGetAttributes(&attributes, scale<double>));
    EXPECT(attributes.maxThreadsPerBlock >= 256);
    int blocks, grid, block;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale<float>, 128, 0));
    EXPECT(blocks > 0);
    CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, reversed));
    EXPECT(grid > 0 && block > 0 && block <= 128);

    int *x, host[64];
    CHECK(cudaMalloc(&x, sizeof host));
    for (int i = 0; i < 64; i++) host[i] = i;
    CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaFuncSetAttribute(reversed, cudaFuncAttributeMaxDynamicSharedMemorySize, 16384));
    CHECK(cudaFuncGetAttributes(&attributes, reversed));
    EXPECT(attributes.maxDynamicSharedSizeBytes == 16384);
    int n = 64;
    void *arguments[] = {&x, &n};
    CHECK(cudaLaunchKernel(reversed, dim3(1), dim3(64), arguments, sizeof host, 0));
    cudaLaunchConfig_t config = {};
    config.gridDim = 1, config.blockDim = 64;
    CHECK(cudaLaunchKernelEx(&config, scale<int>, x, 3));
    CHECK(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++) EXPECT(host[i] == 3 * (63 - i));

    int *out;
    CHECK(cudaMalloc(&out, sizeof *out));
    CHECK(cudaMemset(out, 0, sizeof *out));
    void *both[] = {&x, &out};
    CHECK(cudaLaunchCooperativeKernel(sums, 4, 1, both, 0, 0));
    CHECK(cudaMemcpy(host, out, sizeof *out, cudaMemcpyDeviceToHost));
    EXPECT(host[0] == 10);

    set<<<1, 1>>>(x, nested(x));
    CHECK(cudaMemcpy(host, x, 8, cudaMemcpyDeviceToHost));
    EXPECT(host[0] == 10 && host[1] == 11);

    cudaKernel_t kernel;
    CHECK(cudaGetKernel(&kernel, set));
    int value = 12;
    void *more[] = {&x, &value};
    CHECK(cudaLaunchKernel((void *)kernel, 1, 1, more, 0, 0));
    cudaFunction_t function;
    CHECK(cudaGetFuncBySymbol(&function, (void *)set));
    CHECK(cudaMemcpy(host, x, 4, cudaMemcpyDeviceToHost));
    EXPECT(host[0] == 12);
    const char *name;
    CHECK(cudaFuncGetName(&name, (void *)set));
    EXPECT(std::string(name).find("set") != std::string::npos);

    EXPECT(cudaLaunchKernel((void *)main, 1, 1, more, 0, 0) != cudaSuccess);
    EXPECT(cudaGetLastError() != cudaSuccess);
    EXPECT(cudaGetKernel(&kernel, (void *)main) == cudaErrorInvalidDeviceFunction);
    cudaGetLastError();
    set<<<1, 2048>>>(x, 1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    set<<<0, 1>>>(x, 1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    CHECK(cudaDeviceReset());
    CHECK(cudaMalloc(&x, 8));
    set<<<1, 1>>>(x, 13);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host, x, 4, cudaMemcpyDeviceToHost));
    EXPECT(host[0] == 13);
    std::puts("done");
}
