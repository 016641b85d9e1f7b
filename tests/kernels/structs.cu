// Structures by value and by pointer.
struct Small { signed char tag; short s; int i; };                 // 8 bytes
struct Mixed { double d; signed char c; float f[3]; long long l; }; // 32 bytes
struct alignas(16) Wide { float v[8]; };                    // 32 bytes
struct Node { int value; Node* next; };
struct Empty {};

extern "C" __global__ void by_value(Small s, Mixed m, Wide w, double* out)
{
    if (threadIdx.x == 0) {
        out[0] = s.tag; out[1] = s.s; out[2] = s.i;
        out[3] = m.d; out[4] = m.c; out[5] = m.f[0]; out[6] = m.f[1]; out[7] = m.f[2]; out[8] = (double)m.l;
    }
    if (threadIdx.x < 8) out[9 + threadIdx.x] = w.v[threadIdx.x];
}

extern "C" __global__ void by_pointer(const Mixed* in, Mixed* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Mixed m = in[i];
    m.d *= 2.0;
    m.c += 1;
    for (int k = 0; k < 3; k++) m.f[k] += (float)k;
    m.l = ~m.l;
    out[i] = m;
}

// Walks a linked list built by the host (device pointers inside the nodes).
extern "C" __global__ void list_sum(const Node* head, long long* sum)
{
    long long s = 0;
    for (const Node* n = head; n; n = n->next) s += n->value;
    *sum = s;
}

struct Vec3 { float x, y, z; };
__device__ __noinline__ Vec3 cross(Vec3 a, Vec3 b)
{
    return { a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x };
}
extern "C" __global__ void cross_all(const Vec3* a, const Vec3* b, Vec3* out, int n, Empty)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = cross(a[i], b[i]);
}
