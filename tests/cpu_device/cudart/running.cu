// Ends while a kernel runs that never ends.
#include "check.h"

__device__ int flag;
__global__ void forever() { while (atomicAdd(&flag, 0) == 0) {} }

int main() {
    forever<<<1, 1>>>();
    CHECK(cudaGetLastError());
    EXPECT(cudaStreamQuery(0) == cudaErrorNotReady);
    std::puts("done");
}
