// Graphs: captured launches, kernel nodes by host function, copies to and from variables.
#include "check.h"

__device__ int variable = 1;
__global__ void twice(int *x) { *x = 2 * *x + variable; }
__global__ void thrice(int *x) { *x *= 3; }

int main() {
    int *x, host = 5;
    CHECK(cudaMalloc(&x, sizeof *x));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    // The first launch of each kernel, which loads it.
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemcpyAsync(x, &host, sizeof host, cudaMemcpyHostToDevice, stream));
    twice<<<1, 1, 0, stream>>>(x);
    thrice<<<1, 1, 0, stream>>>(x);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamEndCapture(stream, &graph));
    size_t count = 3;
    cudaGraphNode_t nodes[3];
    CHECK(cudaGraphGetNodes(graph, nodes, &count));
    EXPECT(count == 3);
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    int result;
    CHECK(cudaMemcpy(&result, x, sizeof result, cudaMemcpyDeviceToHost));
    EXPECT(result == 33);

    cudaGraph_t explicitly;
    cudaGraphNode_t to, node, from;
    int four = 4, back = 0;
    CHECK(cudaGraphCreate(&explicitly, 0));
    CHECK(cudaGraphAddMemcpyNodeToSymbol(&to, explicitly, nullptr, 0, variable, &four, 4, 0, cudaMemcpyHostToDevice));
    void *arguments[] = {&x};
    cudaKernelNodeParams params = {};
    params.func = (void *)thrice;
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&node, explicitly, &to, 1, &params));
    CHECK(cudaGraphAddMemcpyNodeFromSymbol(&from, explicitly, &node, 1, &back, variable, 4, 0, cudaMemcpyDeviceToHost));
    cudaKernelNodeParams told = {};
    CHECK(cudaGraphKernelNodeGetParams(node, &told));
    EXPECT(told.func == (void *)thrice);
    cudaGraphExec_t second;
    CHECK(cudaGraphInstantiate(&second, explicitly, 0));
    params.func = (void *)twice;
    CHECK(cudaGraphExecKernelNodeSetParams(second, node, &params));
    CHECK(cudaGraphLaunch(second, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(&result, x, sizeof result, cudaMemcpyDeviceToHost));
    EXPECT(result == 70 && back == 4);
    EXPECT(cudaGraphAddMemcpyNodeToSymbol(&to, explicitly, nullptr, 0, host, &four, 4, 0, cudaMemcpyHostToDevice) == cudaErrorInvalidSymbol);
    std::puts("done");
}
