// Variables of device code by their symbols: copies, addresses, sizes, and managed variables.
#include "check.h"

__device__ int counter = 5;
__device__ int list[8];
__constant__ float factors[4] = {1, 2, 3, 4};
__managed__ int total = 7;
__managed__ double pair[2] = {1.5, 2.5};
namespace {
__device__ long long hidden = -1;
}
int unregistered;

__global__ void use(float *out) {
    atomicAdd(&counter, 1);
    total += counter;
    pair[1] += pair[0];
    hidden = 3;
    list[threadIdx.x] += threadIdx.x;
    if (threadIdx.x < 4) out[threadIdx.x] = factors[threadIdx.x];
}

int main() {
    EXPECT(total == 7 && pair[0] == 1.5);
    total = 100;
    float *out, read[4];
    CHECK(cudaMalloc(&out, sizeof read));
    int values[8] = {10, 20, 30, 40, 50, 60, 70, 80};
    CHECK(cudaMemcpyToSymbol(list, values, sizeof values));
    float better[2] = {20, 30};
    CHECK(cudaMemcpyToSymbol(factors, better, sizeof better, sizeof(float)));
    use<<<1, 1>>>(out);
    CHECK(cudaDeviceSynchronize());
    EXPECT(total == 106 && pair[1] == 4.0);
    use<<<1, 8>>>(out);
    int count;
    CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    EXPECT(count == 14);
    CHECK(cudaMemcpy(read, out, sizeof read, cudaMemcpyDeviceToHost));
    EXPECT(read[0] == 1 && read[1] == 20 && read[2] == 30 && read[3] == 4);
    int last;
    CHECK(cudaMemcpyFromSymbol(&last, list, sizeof last, 7 * sizeof last));
    EXPECT(last == 87);

    size_t bytes;
    CHECK(cudaGetSymbolSize(&bytes, list));
    EXPECT(bytes == sizeof values);
    CHECK(cudaGetSymbolSize(&bytes, pair));
    EXPECT(bytes == 16);
    void *address;
    CHECK(cudaGetSymbolAddress(&address, hidden));
    long long three;
    CHECK(cudaMemcpy(&three, address, sizeof three, cudaMemcpyDeviceToHost));
    EXPECT(three == 3);
    // A managed variable is its own symbol on both sides.
    CHECK(cudaGetSymbolAddress(&address, total));
    EXPECT(address == &total);
    int hundred = 1000;
    CHECK(cudaMemcpyToSymbol(total, &hundred, sizeof hundred));
    EXPECT(total == 1000);
    // From device to device, and in a stream.
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaGetSymbolAddress(&address, counter));
    CHECK(cudaMemcpyToSymbolAsync(list, address, sizeof count, 4, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaMemcpyFromSymbolAsync(values, list, sizeof values, 0, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(values[1] == 14 && values[7] == 87);

    EXPECT(cudaMemcpyToSymbol(unregistered, &count, 4) == cudaErrorInvalidSymbol);
    EXPECT(cudaGetLastError() == cudaErrorInvalidSymbol && cudaGetLastError() == cudaSuccess);
    EXPECT(cudaMemcpyToSymbol(counter, values, 8) == cudaErrorInvalidValue);
    EXPECT(cudaMemcpyToSymbol(counter, values, 4, 1) == cudaErrorInvalidValue);
    EXPECT(cudaMemcpyToSymbol(counter, values, 4, 0, cudaMemcpyDeviceToHost) == cudaErrorInvalidMemcpyDirection);
    EXPECT(cudaMemcpyFromSymbol(values, counter, 4, 0, cudaMemcpyHostToDevice) == cudaErrorInvalidMemcpyDirection);
    std::puts("done");
}
