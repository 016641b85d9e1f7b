// Algorithms of Thrust and CUB.
#include <cub/cub.cuh>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <vector>
#include "check.h"

int main() {
    const int n = 5000;
    std::vector<int> values(n), sorted(n);
    long long expected = 0;
    for (int i = 0; i < n; i++) expected += values[i] = (i * 7919) % 5003;
    thrust::device_vector<int> device(values.begin(), values.end());
    thrust::sort(device.begin(), device.end());
    thrust::copy(device.begin(), device.end(), sorted.begin());
    for (int i = 1; i < n; i++) EXPECT(sorted[i - 1] <= sorted[i]);
    EXPECT(thrust::reduce(device.begin(), device.end(), 0LL) == expected);
    thrust::inclusive_scan(device.begin(), device.end(), device.begin());
    EXPECT(device.back() == expected);

    thrust::device_vector<int> input(values.begin(), values.end()), greatest(1);
    void *storage = nullptr;
    size_t bytes = 0;
    CHECK(cub::DeviceReduce::Max(storage, bytes, input.data().get(), greatest.data().get(), n));
    CHECK(cudaMalloc(&storage, bytes));
    CHECK(cub::DeviceReduce::Max(storage, bytes, input.data().get(), greatest.data().get(), n));
    EXPECT(greatest[0] == 5002);
    CHECK(cudaFree(storage));
    std::puts("done");
}
