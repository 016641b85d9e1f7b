// Clocks and sleeping. out: elapsed clock64, elapsed clock, elapsed globaltimer in ns, whether all went forward
extern "C" __global__ void timers(long long* out, unsigned sleep_ns)
{
    unsigned long long g0, g1;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g0));
    long long c0 = clock64();
    unsigned s0 = clock();
#if __CUDA_ARCH__ >= 700
    __nanosleep(sleep_ns);
#endif
    long long c1 = clock64();
    unsigned s1 = clock();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g1));
    if (threadIdx.x == 0) {
        out[0] = c1 - c0;
        out[1] = s1 - s0;
        out[2] = (long long)(g1 - g0);
        out[3] = c1 >= c0 && g1 >= g0;
    }
}
