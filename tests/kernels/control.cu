// Calls, recursion, function pointers, virtual functions, local arrays and switches.
typedef float (*Unary)(float);
__device__ __noinline__ float twice(float x) { return 2.0f * x; }
__device__ __noinline__ float square(float x) { return x * x; }
__device__ __noinline__ float minus(float x) { return -x; }
__device__ Unary table[3] = { twice, square, minus };

extern "C" __global__ void through_pointers(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = table[i % 3](in[i]);
}

__device__ __noinline__ long long fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__device__ __noinline__ int ackermann(int m, int n)
{
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}
extern "C" __global__ void recursion(long long* fib, int* ack)
{
    fib[threadIdx.x] = fibonacci(threadIdx.x % 15);
    ack[threadIdx.x] = ackermann(2, threadIdx.x % 5);
}

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual int corners() const { return 0; }
};
struct Circle : Shape {
    float r;
    __device__ Circle(float r) : r(r) {}
    __device__ float area() const override { return 3.0f * r * r; }
};
struct Box : Shape {
    float w, h;
    __device__ Box(float w, float h) : w(w), h(h) {}
    __device__ float area() const override { return w * h; }
    __device__ int corners() const override { return 4; }
};
__device__ __noinline__ float describe(const Shape* s) { return s->area() + s->corners(); }
extern "C" __global__ void virtual_calls(float* out)
{
    Circle c(threadIdx.x);
    Box b(threadIdx.x, 2.0f);
    const Shape* s = (threadIdx.x & 1) ? (const Shape*)&c : (const Shape*)&b;
    out[threadIdx.x] = describe(s);
}

extern "C" __global__ void switches(const int* in, int* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = in[i], r;
    switch (v) {
    case 0: r = 10; break;
    case 1: r = v * 3 + i; break;
    case 2: r = -1; // falls through
    case 3: r = v ^ 0x55; break;
    case 4: r = i / 3; break;
    case 5: r = i % 7; break;
    case 6: r = out[i] + 1; break;
    case 100: r = 1000; break;
    default: r = v > 50 ? 2 : 3;
    }
    out[i] = r;
}

// A local array indexed at run time: in the thread's local memory.
extern "C" __global__ void local_array(const int* index, int* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int a[32];
    for (int k = 0; k < 32; k++) a[k] = k * k + i;
    if (i >= n) return;
    a[index[i] & 31] = -1;
    int s = 0;
    for (int k = 0; k < 32; k++) s += a[(k * 5 + index[i]) & 31] * (k + 1);
    out[i] = s;
}

// Insertion sort of eight numbers a thread in local memory.
extern "C" __global__ void sort_local(const int* in, int* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int a[8];
    for (int k = 0; k < 8; k++) a[k] = in[8 * i + k];
    for (int k = 1; k < 8; k++) {
        int v = a[k], j = k - 1;
        while (j >= 0 && a[j] > v) { a[j + 1] = a[j]; j--; }
        a[j + 1] = v;
    }
    for (int k = 0; k < 8; k++) out[8 * i + k] = a[k];
}

// The heap of the device.
extern "C" __global__ void heap(int* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int* p = (int*)malloc(4 * sizeof(int));
    if (!p) { out[i] = -1; return; }
    for (int k = 0; k < 4; k++) p[k] = i + k;
    out[i] = p[0] + p[1] + p[2] + p[3];
    free(p);
}
