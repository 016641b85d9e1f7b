// Kernels that launch kernels: a quicksort, streams and tail launches of kernels, and addresses of kernels in variables.
#include <algorithm>
#include <vector>

#include "check.h"

__global__ void insertion_sort(int *values, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && values[k] < values[k - 1]; k--) {
            int former = values[k];
            values[k] = values[k - 1];
            values[k - 1] = former;
        }
}

__global__ void quicksort(int *values, int n, int depth)
{
    if (n <= 32 || depth >= 16) {
        insertion_sort<<<1, 1>>>(values, n);
        return;
    }
    int pivot = values[n / 2], left = 0, right = n - 1;
    while (left <= right) {
        while (values[left] < pivot) left++;
        while (values[right] > pivot) right--;
        if (left <= right) {
            int former = values[left];
            values[left++] = values[right];
            values[right--] = former;
        }
    }
    cudaStream_t lower, upper;
    cudaStreamCreateWithFlags(&lower, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&upper, cudaStreamNonBlocking);
    if (right > 0) quicksort<<<1, 1, 0, lower>>>(values, right + 1, depth + 1);
    if (left < n - 1) quicksort<<<1, 1, 0, upper>>>(values + left, n - left, depth + 1);
    cudaStreamDestroy(lower);
    cudaStreamDestroy(upper);
}

typedef void (*Step)(int *);
__global__ void twice(int *p) { *p *= 2; }
template <int N> __global__ void plus(int *p) { *p += N; }
__device__ Step steps[2] = {twice, plus<5>};

__global__ void run_steps(int *p)
{
    for (Step step : steps) step<<<1, 1>>>(p);
    plus<100><<<1, 1, 0, cudaStreamTailLaunch>>>(p);
}

__global__ void refused(int *status)
{
    twice<<<1, 2000>>>(status + 1);
    *status = cudaGetLastError();
}

int main()
{
    std::vector<int> values(3000);
    unsigned random = 1;
    for (int &v : values) v = int((random = random * 1664525 + 1013904223) >> 8);
    int *device;
    CHECK(cudaMalloc(&device, values.size() * sizeof(int)));
    CHECK(cudaMemcpy(device, values.data(), values.size() * sizeof(int), cudaMemcpyHostToDevice));
    quicksort<<<1, 1>>>(device, int(values.size()), 0);
    CHECK(cudaGetLastError());
    std::vector<int> sorted(values.size());
    CHECK(cudaMemcpy(sorted.data(), device, values.size() * sizeof(int), cudaMemcpyDeviceToHost));
    std::sort(values.begin(), values.end());
    EXPECT(values == sorted);

    int number = 4;
    CHECK(cudaMemcpy(device, &number, sizeof number, cudaMemcpyHostToDevice));
    run_steps<<<1, 1>>>(device);
    CHECK(cudaMemcpy(&number, device, sizeof number, cudaMemcpyDeviceToHost));
    EXPECT(number == 4 * 2 + 5 + 100);

    refused<<<1, 1>>>(device);
    CHECK(cudaMemcpy(&number, device, sizeof number, cudaMemcpyDeviceToHost));
    EXPECT(number == cudaErrorInvalidConfiguration);
    CHECK(cudaFree(device));
    std::puts("done");
}
