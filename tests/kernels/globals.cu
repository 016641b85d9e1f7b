// Module-scope variables, read and written by host and device.
__constant__ float coefficients[4];
__constant__ int primes[8] = { 2, 3, 5, 7, 11, 13, 17, 19 };
__device__ int counter = 5;
__device__ double table[16] = { 1.5, -2.25 };           // the rest is zero
__device__ unsigned char bytes[5] = { 1, 2, 3, 4, 255 };
__device__ float matrix[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
__device__ const char* names[3] = { "zero", "one", "two" };
__device__ int target = 77;
__device__ int* pointer = &target;
__device__ int* pointer_inside = &((int*)matrix)[2];
__managed__ int shared_with_host = 11;
struct Config { int a; float b; const char* name; short c[3]; };
__device__ Config config = { 3, 0.5f, "config", { 7, 8, 9 } };
__constant__ Config constant_config = { 4, 0.25f, "constant", { 1, 2 } };
extern "C" __device__ int visible_name = 42;

extern "C" __global__ void polynomial(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float r = 0.0f;
    for (int k = 3; k >= 0; k--) r = r * x[i] + coefficients[k];
    y[i] = r;
}

extern "C" __global__ void read_globals(double* out)
{
    out[0] = counter; out[1] = table[0]; out[2] = table[1]; out[3] = table[15]; out[4] = bytes[4];
    out[5] = matrix[1][2]; out[6] = names[1][0]; out[7] = *pointer; out[8] = *pointer_inside; out[9] = shared_with_host;
    out[10] = config.a; out[11] = config.b; out[12] = config.name[0]; out[13] = config.c[2];
    out[14] = constant_config.b; out[15] = constant_config.name[7]; out[16] = visible_name;
    double p = 0;
    for (int i = 0; i < 8; i++) p += primes[i];
    out[17] = p;
}

extern "C" __global__ void write_globals(int v)
{
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        visible_name = v;
        shared_with_host = v + 1;
        table[3] = v * 0.5;
        pointer = &visible_name;
    }
}

extern "C" __global__ void count_calls()
{
    atomicAdd(&counter, 1);
}
