// Arrays, texture objects and surface objects.
#include "check.h"

__global__ void fetch(cudaTextureObject_t texture, float *out) {
    out[threadIdx.x] = tex2D<float>(texture, threadIdx.x + 1.0f, 1.0f);
}
__global__ void store(cudaSurfaceObject_t surface) {
    surf2Dwrite(float(10 * threadIdx.y + threadIdx.x), surface, threadIdx.x * sizeof(float), threadIdx.y);
}

int main() {
    cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
    EXPECT(channels.x == 32 && channels.y == 0 && channels.f == cudaChannelFormatKindFloat);
    channels = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    EXPECT(channels.x == 32 && channels.w == 0 && channels.f == cudaChannelFormatKindFloat);
    cudaArray_t array;
    CHECK(cudaMallocArray(&array, &channels, 4, 4, cudaArraySurfaceLoadStore));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    store<<<1, dim3(4, 4)>>>(surface);
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    how.filterMode = cudaFilterModeLinear;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    float *out, read[3], rows[16];
    CHECK(cudaMalloc(&out, sizeof read));
    fetch<<<1, 3>>>(texture, out);
    CHECK(cudaMemcpy(read, out, sizeof read, cudaMemcpyDeviceToHost));
    EXPECT(read[0] == 5.5f && read[1] == 6.5f && read[2] == 7.5f);
    CHECK(cudaMemcpy2DFromArray(rows, 16, array, 0, 0, 16, 4, cudaMemcpyDeviceToHost));
    EXPECT(rows[7] == 13);
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaFreeArray(array));
    std::puts("done");
}
