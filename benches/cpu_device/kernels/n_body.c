/* Accelerations of n bodies (x, y, z, mass) that attract each other, n a multiple of BLOCK. One thread a body. */

#define BLOCK 256

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)

extern "C" __global__ void n_body(const float4 *bodies, float4 *accelerations, int n, float softening)
{
    __shared__ float4 tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float4 mine = bodies[i];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int first = 0; first < n; first += BLOCK) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < BLOCK; j++) {
            float4 other = tile[j];
            float dx = other.x - mine.x, dy = other.y - mine.y, dz = other.z - mine.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
            float pull = other.w * inverse * inverse * inverse;
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
        __syncthreads();
    }
    accelerations[i] = make_float4(ax, ay, az, 0.0f);
}

#elif defined(__OPENCL_VERSION__)

__kernel void n_body(__global const float4 *bodies, __global float4 *accelerations, int n, float softening)
{
    __local float4 tile[BLOCK];
    int i = get_global_id(0), t = get_local_id(0);
    float4 mine = bodies[i];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int first = 0; first < n; first += BLOCK) {
        tile[t] = bodies[first + t];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < BLOCK; j++) {
            float4 other = tile[j];
            float dx = other.x - mine.x, dy = other.y - mine.y, dz = other.z - mine.z;
            float inverse = rsqrt(dx * dx + dy * dy + dz * dz + softening);
            float pull = other.w * inverse * inverse * inverse;
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    accelerations[i] = (float4)(ax, ay, az, 0.0f);
}

#else

#include <math.h>

struct body {
    float x, y, z, w;
};

void n_body(const struct body *restrict bodies, struct body *restrict accelerations, int n, float softening)
{
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        struct body mine = bodies[i];
        float ax = 0.0f, ay = 0.0f, az = 0.0f;
        for (int j = 0; j < n; j++) {
            float dx = bodies[j].x - mine.x, dy = bodies[j].y - mine.y, dz = bodies[j].z - mine.z;
            float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + softening);
            float pull = bodies[j].w * inverse * inverse * inverse;
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
        accelerations[i] = (struct body){ax, ay, az, 0.0f};
    }
}

#endif
