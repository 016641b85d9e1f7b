// The first file of a program with separate compilation.
#include "check.h"

extern __device__ int counter;
extern __device__ int plus(int, int);
int read_counter();

__global__ void sum(int *out) {
    *out = plus(40, 2);
    atomicAdd(&counter, *out);
}

int main() {
    int *out, host = 0;
    CHECK(cudaMalloc(&out, sizeof host));
    sum<<<1, 1>>>(out);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost));
    EXPECT(host == 42 && read_counter() == 43);
    std::puts("done");
}
