// Functions and structures of CUDA 12 that CUDA 13 changed or dropped. Compiled with CUDA 12's headers only.
#include "check.h"
#include <cstring>
#include <cuda_runtime.h>

static_assert(CUDART_VERSION / 1000 == 12, "the signatures are those of CUDA 12");

__global__ void fill(int *to, int value) { to[threadIdx.x] = value + threadIdx.x; }
__global__ void sample(cudaTextureObject_t texture, float *to) { to[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x); }

// A structure followed by bytes that a function must not write.
template <typename T> struct Guarded {
    T value = {};
    unsigned char guard[256];
    Guarded() { std::memset(guard, 0xAB, sizeof guard); }
    bool intact() const {
        for (unsigned char byte : guard)
            if (byte != 0xAB) return false;
        return true;
    }
};

static void properties() {
    int version = 0, value = 0;
    CHECK(cudaRuntimeGetVersion(&version));
    EXPECT(version >= CUDART_VERSION && version / 1000 == 12);
    Guarded<cudaDeviceProp> of;
    CHECK(cudaGetDeviceProperties(&of.value, 0));
    EXPECT(of.intact());
    auto attribute = [&](cudaDeviceAttr which) {
        CHECK(cudaDeviceGetAttribute(&value, which, 0));
        return value;
    };
    EXPECT(of.value.clockRate == attribute(cudaDevAttrClockRate));
    EXPECT(of.value.memoryClockRate == attribute(cudaDevAttrMemoryClockRate));
    EXPECT(of.value.computeMode == attribute(cudaDevAttrComputeMode));
    EXPECT(of.value.major == attribute(cudaDevAttrComputeCapabilityMajor) && of.value.warpSize == 32);
    EXPECT(of.value.multiProcessorCount == attribute(cudaDevAttrMultiProcessorCount));
    EXPECT(of.value.clusterLaunch == attribute(cudaDevAttrClusterLaunch) && of.value.hostRegisterSupported == 1);
    int chosen = -1;
    CHECK(cudaChooseDevice(&chosen, &of.value));
    EXPECT(chosen == 0);
    cudaFuncAttributes kernel;
    CHECK(cudaFuncGetAttributes(&kernel, fill));
    EXPECT(kernel.maxThreadsPerBlock == 1024 && kernel.reserved[0] == 0 && kernel.reserved[1] == 0);
}

static void memory() {
    int *data = nullptr;
    CHECK(cudaMallocManaged(&data, 32 * sizeof(int)));
    CHECK(cudaMemAdvise(data, 32 * sizeof(int), cudaMemAdviseSetPreferredLocation, 0));
    CHECK(cudaMemPrefetchAsync(data, 32 * sizeof(int), 0, nullptr));
    fill<<<1, 32>>>(data, 5);
    CHECK(cudaMemPrefetchAsync(data, 32 * sizeof(int), cudaCpuDeviceId, nullptr));
    cudaMemLocation location = {cudaMemLocationTypeDevice, 0};
    CHECK(cudaMemPrefetchAsync_v2(data, 32 * sizeof(int), location, 0, nullptr));
    CHECK(cudaDeviceSynchronize());
    EXPECT(data[31] == 36);
    Guarded<cudaPointerAttributes> attributes;
    CHECK(cudaPointerGetAttributes(&attributes.value, data));
    EXPECT(attributes.intact() && attributes.value.type == cudaMemoryTypeManaged && attributes.value.hostPointer == data);
    CHECK(cudaFree(data));
}

static void textures() {
    float values[32], *from = nullptr, *to = nullptr;
    for (int i = 0; i < 32; i++) values[i] = i * 0.5f;
    CHECK(cudaMalloc(&from, sizeof values));
    CHECK(cudaMalloc(&to, sizeof values));
    CHECK(cudaMemcpy(from, values, sizeof values, cudaMemcpyHostToDevice));
    Guarded<cudaResourceDesc> resource, back;
    resource.value.resType = cudaResourceTypeLinear;
    resource.value.res.linear.devPtr = from;
    resource.value.res.linear.desc = cudaCreateChannelDesc<float>();
    resource.value.res.linear.sizeInBytes = sizeof values;
    cudaTextureDesc description = {};
    description.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture = 0;
    CHECK(cudaCreateTextureObject(&texture, &resource.value, &description, nullptr));
    sample<<<1, 32>>>(texture, to);
    float results[32];
    CHECK(cudaMemcpy(results, to, sizeof results, cudaMemcpyDeviceToHost));
    EXPECT(std::memcmp(values, results, sizeof values) == 0);
    CHECK(cudaGetTextureObjectResourceDesc(&back.value, texture));
    EXPECT(back.intact() && back.value.res.linear.devPtr == from && back.value.res.linear.sizeInBytes == sizeof values);
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFree(from));
    CHECK(cudaFree(to));
}

static void graphs() {
    int *data = nullptr, result[32];
    CHECK(cudaMalloc(&data, sizeof result));
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    int value = 7;
    void *arguments[] = {&data, &value};
    cudaGraphNodeParams parameters = {cudaGraphNodeTypeKernel};
    parameters.kernel.func = reinterpret_cast<void *>(fill);
    parameters.kernel.gridDim = dim3(1);
    parameters.kernel.blockDim = dim3(32);
    parameters.kernel.kernelParams = arguments;
    cudaGraphNode_t kernel, copy, from[2], to[2];
    CHECK(cudaGraphAddNode(&kernel, graph, nullptr, 0, &parameters));
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, result, data, sizeof result, cudaMemcpyDeviceToHost));
    CHECK(cudaGraphAddDependencies(graph, &kernel, &copy, 1));
    size_t count = 2;
    CHECK(cudaGraphGetEdges(graph, from, to, &count));
    EXPECT(count == 1 && from[0] == kernel && to[0] == copy);
    count = 2;
    CHECK(cudaGraphNodeGetDependencies(copy, from, &count));
    EXPECT(count == 1 && from[0] == kernel);
    count = 2;
    CHECK(cudaGraphNodeGetDependentNodes(kernel, to, &count));
    EXPECT(count == 1 && to[0] == copy);
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, nullptr));
    CHECK(cudaStreamSynchronize(nullptr));
    EXPECT(result[0] == 7 && result[31] == 38);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphRemoveDependencies(graph, &kernel, &copy, 1));
    CHECK(cudaGraphDestroy(graph));

    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    fill<<<1, 32, 0, stream>>>(data, 1);
    cudaStreamCaptureStatus state;
    unsigned long long id = 0;
    const cudaGraphNode_t *dependencies = nullptr;
    CHECK(cudaStreamGetCaptureInfo(stream, &state, &id, &graph, &dependencies, &count));
    EXPECT(state == cudaStreamCaptureStatusActive && id != 0 && count == 1);
    cudaGraphNode_t empty;
    CHECK(cudaGraphAddEmptyNode(&empty, graph, dependencies, 1));
    CHECK(cudaStreamUpdateCaptureDependencies(stream, &empty, 1, cudaStreamSetCaptureDependencies));
    CHECK(cudaStreamEndCapture(stream, &graph));
    count = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &count));
    EXPECT(count == 2);
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(data));
}

static void batches() {
#if CUDART_VERSION >= 12080
    int from[2] = {1, 2}, *to = nullptr, back[2] = {};
    CHECK(cudaMalloc(&to, sizeof from));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    void *tos[] = {to}, *froms[] = {from};
    size_t sizes[] = {sizeof from}, indices[] = {0}, failed = 0;
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    CHECK(cudaMemcpyBatchAsync(tos, froms, sizes, 1, &attributes, indices, 1, &failed, stream));
    CHECK(cudaMemcpyAsync(back, to, sizeof back, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(back[0] == 1 && back[1] == 2);
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(to));
#endif
}

static void former_names() {
    cudaEvent_t start, end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(start));
    CHECK(cudaEventRecord(end));
    CHECK(cudaThreadSynchronize());
    float milliseconds = -1;
    CHECK(cudaEventElapsedTime(&milliseconds, start, end));
    EXPECT(milliseconds >= 0);
    size_t limit = 0;
    CHECK(cudaThreadGetLimit(&limit, cudaLimitStackSize));
    CHECK(cudaThreadSetLimit(cudaLimitStackSize, limit));
    double number = 1.5;
    CHECK(cudaSetDoubleForDevice(&number));
    CHECK(cudaSetDoubleForHost(&number));
    EXPECT(number == 1.5);
    EXPECT(cudaLaunchCooperativeKernelMultiDevice(nullptr, 0, 0) == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaThreadExit());
}

int main() {
    properties();
    memory();
    textures();
    graphs();
    batches();
    former_names();
    std::puts("done");
}
