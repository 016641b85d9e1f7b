// Streams, events, host functions and threads; also compiled for the per-thread default stream.
#include <thread>
#include <vector>
#include "check.h"

__global__ void add(int *x, int by) { atomicAdd(x, by); }
// Ends when the host sets the flag.
__global__ void wait(volatile int *flag) { while (*flag == 0) {} }

int main() {
    int *x;
    CHECK(cudaMalloc(&x, sizeof *x));
    CHECK(cudaMemset(x, 0, sizeof *x));
    CHECK(cudaDeviceSynchronize());
    cudaStream_t first, second;
    cudaEvent_t begin, end;
    CHECK(cudaStreamCreate(&first));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(begin, first));
    add<<<1, 32, 0, first>>>(x, 1);
    CHECK(cudaEventRecord(end, first));
    CHECK(cudaStreamWaitEvent(second, end));
    int host = 0;
    CHECK(cudaMemcpyAsync(&host, x, sizeof host, cudaMemcpyDeviceToHost, second));
    int seen = 0, *target = &seen;
    CHECK(cudaLaunchHostFunc(second, [](void *data) { ++**static_cast<int **>(data); }, &target));
    CHECK(cudaStreamSynchronize(second));
    EXPECT(host == 32 && seen == 1);
    float milliseconds = -1;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    EXPECT(milliseconds >= 0);

    // Only the legacy default stream waits for other streams.
    int *flag, *on_device;
    CHECK(cudaHostAlloc(&flag, sizeof *flag, cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&on_device, flag, 0));
    *flag = 0;
    wait<<<1, 1, 0, first>>>(on_device);
    add<<<1, 1>>>(x, 100);
    cudaError_t expected = cudaErrorNotReady;
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    CHECK(cudaStreamSynchronize(0));
    expected = cudaSuccess;
#endif
    EXPECT(cudaStreamQuery(0) == expected);
    EXPECT(cudaStreamQuery(first) == cudaErrorNotReady);
    *flag = 1;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&host, x, sizeof host, cudaMemcpyDeviceToHost));
    EXPECT(host == 132);

    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++) {
        threads.emplace_back([=] {
            for (int j = 0; j < 20; j++) add<<<1, 1>>>(x, 1);
            CHECK(cudaGetLastError());
            CHECK(cudaStreamSynchronize(0));
        });
    }
    for (auto &thread : threads) thread.join();
    CHECK(cudaMemcpy(&host, x, sizeof host, cudaMemcpyDeviceToHost));
    EXPECT(host == 292);
    CHECK(cudaStreamDestroy(first));
    CHECK(cudaStreamDestroy(second));
    std::puts("done");
}
