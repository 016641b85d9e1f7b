// Templates, instantiated through NVRTC's name expressions:
//   transform<Square, float>, transform<Negate, double>, transform<AddOne, int>,
//   zip<float>, zip<double>, zip<int>, zip<long long>, convert<float, unsigned char>, convert<double, int>,
//   convert<signed char, double>, convert<unsigned short, float>
struct Square { template <class T> static __device__ T f(T x) { return x * x; } };
struct Negate { template <class T> static __device__ T f(T x) { return -x; } };
struct AddOne { template <class T> static __device__ T f(T x) { return x + T(1); } };

template <class Op, class T>
__global__ void transform(const T* in, T* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = Op::f(in[i]);
}

// out = a + b, a - b, a * b, a / b in four consecutive arrays of n
template <class T>
__global__ void zip(const T* a, const T* b, T* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = a[i] + b[i];
    out[n + i] = a[i] - b[i];
    out[2 * n + i] = a[i] * b[i];
    out[3 * n + i] = a[i] / b[i];
}

template <class From, class To>
__global__ void convert(const From* in, To* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (To)in[i];
}

template __global__ void transform<Square, float>(const float*, float*, int);
template __global__ void transform<Negate, double>(const double*, double*, int);
template __global__ void transform<AddOne, int>(const int*, int*, int);
template __global__ void zip<float>(const float*, const float*, float*, int);
template __global__ void zip<double>(const double*, const double*, double*, int);
template __global__ void zip<int>(const int*, const int*, int*, int);
template __global__ void zip<long long>(const long long*, const long long*, long long*, int);
template __global__ void convert<float, unsigned char>(const float*, unsigned char*, int);
template __global__ void convert<double, int>(const double*, int*, int);
template __global__ void convert<signed char, double>(const signed char*, double*, int);
template __global__ void convert<unsigned short, float>(const unsigned short*, float*, int);
