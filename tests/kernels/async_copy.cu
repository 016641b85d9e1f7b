// cp.async, memory barriers, prefetch, cache hints and fences.
#if __CUDA_ARCH__ >= 800
extern "C" __global__ void copy_pipeline(const float* in, float* out, int n)
{
    __shared__ __align__(16) float tile[2][256];
    __shared__ __align__(8) unsigned long long bar;
    int t = threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(&tile[0][4 * t]), b = (unsigned)__cvta_generic_to_shared(&bar);
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(b), "r"(blockDim.x) : "memory");
    __syncthreads();
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(at), "l"(in + 4 * t) : "memory");
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4, %2;" : : "r"(at + 1024), "l"(in + 4 * t), "r"(t & 1 ? 4 : 0) : "memory");
    asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;\n\tcp.async.wait_all;" : : : "memory");
    unsigned long long token;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(b) : "memory");
    unsigned done;
    asm volatile("{\n\t.reg .pred p;\n$wait:\n\tmbarrier.test_wait.shared.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t@!p bra $wait;\n}" : "=r"(done) : "r"(b), "l"(token) : "memory");
    for (int k = 0; k < 4; k++) if (4 * t + k < n) out[4 * t + k] = tile[0][(4 * t + k) ^ 4] + done;
}
#endif

extern "C" __global__ void fences(int* data, int* flag)
{
    asm volatile("prefetch.global.L2 [%0];\n\tprefetch.global.L1 [%0+64];" : : "l"(data));
    int v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(data));
    asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(flag), "r"(v) : "memory");
    __threadfence_block(); __threadfence(); __threadfence_system();
    asm volatile("fence.acq_rel.gpu;\n\tfence.sc.cta;\n\tfence.proxy.alias;" : : : "memory");
    asm volatile("ld.global.cv.u32 %0, [%1];" : "=r"(v) : "l"(data));
    data[1] = __ldg(data) + __ldcg(data + 2) + __ldcs(data + 3) + v;
    __stwt(data + 4, 7);
    asm volatile("ldu.global.u32 %0, [%1];" : "=r"(v) : "l"(data));
    data[5] = v;
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) clusters(int* out)
{
    __shared__ int mine;
    unsigned rank, there; int v;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) mine = 100 + rank;
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" : : : "memory");
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((unsigned)__cvta_generic_to_shared(&mine)), "r"(rank ^ 1));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(there));
    asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" : : : "memory");
    if (threadIdx.x == 0) out[blockIdx.x] = v;
    unsigned p;
    asm volatile("{\n\t.reg .pred q;\n\telect.sync _|q, 0xffffffff;\n\tselp.u32 %0, 1, 0, q;\n}" : "=r"(p));
    asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" : : : "memory");
    out[2 + p] = p;
}
#endif
