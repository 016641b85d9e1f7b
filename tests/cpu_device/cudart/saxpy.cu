// A launch, copies and printf.
#include "check.h"

__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
    if (i == 0) printf("kernel of %d blocks\n", gridDim.x);
}

int main() {
    const int n = 1000;
    float hx[n], hy[n], *x, *y;
    for (int i = 0; i < n; i++) hx[i] = i, hy[i] = 1;
    CHECK(cudaMalloc(&x, sizeof hx));
    CHECK(cudaMalloc(&y, sizeof hy));
    CHECK(cudaMemcpy(x, hx, sizeof hx, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(y, hy, sizeof hy, cudaMemcpyHostToDevice));
    saxpy<<<(n + 255) / 256, 256>>>(n, 2, x, y);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(hy, y, sizeof hy, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(hy[i] == 2 * i + 1);
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    std::puts("done");
}
