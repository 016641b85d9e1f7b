// The second file of a program with separate compilation.
#include "check.h"

__device__ int counter = 1;
__device__ int plus(int a, int b) { return a + b; }

int read_counter() {
    int value = 0;
    CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
    return value;
}
