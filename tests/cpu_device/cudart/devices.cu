// Two devices: each has its own variables, except managed ones.
#include "check.h"

__device__ int own = 5;
__managed__ int total = 1;
__global__ void add(int by) {
    own += by;
    total += by;
}

int main() {
    int count, value;
    CHECK(cudaGetDeviceCount(&count));
    EXPECT(count == 2);
    int *address = &total;
    for (int device = 0; device < count; device++) {
        CHECK(cudaSetDevice(device));
        add<<<1, 1>>>(device + 1);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpyFromSymbol(&value, own, sizeof value));
        EXPECT(value == 6 + device);
    }
    EXPECT(total == 4 && &total == address);
    // A reset device starts with the initial values.
    CHECK(cudaSetDevice(0));
    CHECK(cudaDeviceReset());
    CHECK(cudaMemcpyFromSymbol(&value, own, sizeof value));
    EXPECT(value == 5);
    CHECK(cudaSetDevice(1));
    CHECK(cudaMemcpyFromSymbol(&value, own, sizeof value));
    EXPECT(value == 7);
    std::puts("done");
}
