// Output and checks from device code. NVRTC declares printf itself; assert is written out, because no host headers are installed.
extern "C" __device__ void __assertfail(const char* message, const char* file, unsigned line, const char* function, size_t char_size);
#define assert(e) ((e) ? (void)0 : __assertfail(#e, __FILE__, __LINE__, __PRETTY_FUNCTION__, sizeof(char)))

extern "C" __global__ void hello(int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) printf("thread %d of %d\n", i, n);
}

extern "C" __global__ void formats(const char* text)
{
    if (threadIdx.x || blockIdx.x) return;
    printf("%d %i %u %x %X %o %c %%\n", -5, 7, 4000000000u, 255, 255, 8, 'z');
    printf("%lld %llu %llx\n", -5000000000ll, 18446744073709551615ull, 0x123456789abcdefull);
    printf("[%5d] [%-5d] [%05d] [%+d] [% d]\n", 42, 42, 42, 42, 42);
    printf("%f %.3f %e %g %10.4f|\n", 3.25, 2.0 / 3.0, 12345.678, 0.0001, -1.5);
    printf("%s and %s\n", "literal", text);
    printf("[%10s] [%-10s] [%.2s]\n", "abc", "abc", "abc");
    printf("%p\n", (void*)0x1234);
    printf("%*d|%-*d|\n", 6, 42, 6, 42);
    printf("no newline");
    printf("\n");
    int r = printf("%d %d %d %d %d %d %d %d %d %d\n", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    printf("returned %d\n", r);
}

extern "C" __global__ void check_positive(const int* in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) assert(in[i] > 0);
}

extern "C" __global__ void trap_if(int condition)
{
    if (condition) __trap();
}
