// Bulk copies of boxes of tensors: needs compute capability 9.0. `ELEMENT` is the element type, a macro of the compilation.

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

__device__ unsigned shared_address(const void *of) { return (unsigned)__cvta_generic_to_shared(of); }

__device__ void init(unsigned long long *barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ void expect(unsigned long long *barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

__device__ void wait(unsigned long long *barrier, unsigned parity) {
    unsigned done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
}

struct Position {
    int at[5];
};

__device__ void load(int rank, void *to, const TensorMap *map, Position p, unsigned long long *barrier) {
    unsigned t = shared_address(to), b = shared_address(barrier);
    const int *c = p.at;
#define LOAD(n, list, ...)                                                                                             \
    case n:                                                                                                            \
        asm volatile("cp.async.bulk.tensor." #n "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "    \
                     "[%1, {" list "}], [%2];" ::"r"(t), "l"(map), "r"(b), __VA_ARGS__ : "memory");                    \
        break;
    switch (rank) {
        LOAD(1, "%3", "r"(c[0]))
        LOAD(2, "%3, %4", "r"(c[0]), "r"(c[1]))
        LOAD(3, "%3, %4, %5", "r"(c[0]), "r"(c[1]), "r"(c[2]))
        LOAD(4, "%3, %4, %5, %6", "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]))
        LOAD(5, "%3, %4, %5, %6, %7", "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]))
    }
}

__device__ void finish() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Copies a box of `count` elements to `out`.
extern "C" __global__ void load_box(const __grid_constant__ TensorMap map, ELEMENT *out, int rank, Position p, int count) {
    __shared__ alignas(1024) ELEMENT tile[16384 / sizeof(ELEMENT)];
    __shared__ unsigned long long barrier;
    for (int i = threadIdx.x; i < 16384 / sizeof(ELEMENT); i += blockDim.x) tile[i] = (ELEMENT)77;
    if (threadIdx.x == 0) init(&barrier, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(&barrier, count * sizeof(ELEMENT));
        load(rank, tile, &map, p, &barrier);
    }
    wait(&barrier, 0);
    for (int i = threadIdx.x; i < 16384 / sizeof(ELEMENT); i += blockDim.x) out[i] = tile[i];
}

// Two phases: the second box replaces the first one.
extern "C" __global__ void load_twice(const __grid_constant__ TensorMap map, ELEMENT *out, Position p, Position q, int count) {
    __shared__ alignas(128) ELEMENT tile[2048 / sizeof(ELEMENT)];
    __shared__ unsigned long long barrier;
    if (threadIdx.x == 0) init(&barrier, 1);
    __syncthreads();
    for (int phase = 0; phase < 2; phase++) {
        if (threadIdx.x == 0) {
            expect(&barrier, count * sizeof(ELEMENT));
            load(2, tile, &map, phase ? q : p, &barrier);
        }
        wait(&barrier, phase & 1);
        for (int i = threadIdx.x; i < count; i += blockDim.x) out[phase * count + i] = tile[i];
        __syncthreads();
    }
}

#define STORE(name, instruction)                                                                                       \
    extern "C" __global__ void name(const __grid_constant__ TensorMap map, const ELEMENT *in, int x, int y, int count) {     \
        __shared__ alignas(1024) ELEMENT tile[16384 / sizeof(ELEMENT)];                                                            \
        for (int i = threadIdx.x; i < count; i += blockDim.x) tile[i] = in[i];                                         \
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                                                   \
        __syncthreads();                                                                                               \
        if (threadIdx.x == 0) {                                                                                        \
            asm volatile(instruction " [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x), "r"(y), "r"(shared_address(tile))   \
                         : "memory");                                                                                  \
            finish();                                                                                                  \
        }                                                                                                              \
    }

STORE(store_box, "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group")
STORE(add_box, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group")
#ifdef INTEGERS
STORE(min_box, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.tile.bulk_group")
STORE(max_box, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile.bulk_group")
STORE(or_box, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.or.tile.bulk_group")
STORE(inc_box, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.inc.tile.bulk_group")

// Linear bulk copies, in and out, and a reduction.
extern "C" __global__ void linear(ELEMENT *out, ELEMENT *sum, const ELEMENT *in, int count) {
    __shared__ alignas(128) ELEMENT tile[1024];
    __shared__ unsigned long long barrier;
    if (threadIdx.x == 0) {
        init(&barrier, 1);
        unsigned t = shared_address(tile), b = shared_address(&barrier);
        // The transactions complete before they are expected.
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(t), "l"(in),
                     "r"((int)(count * sizeof(ELEMENT))), "r"(b)
                     : "memory");
        expect(&barrier, count * sizeof(ELEMENT));
        wait(&barrier, 0);
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out), "r"(t),
                     "r"((int)(count * sizeof(ELEMENT)))
                     : "memory");
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(sum), "r"(t),
                     "r"((int)(count * sizeof(ELEMENT)))
                     : "memory");
        finish();
    }
}

// expect_tx and complete_tx without copies; out[k] tells whether phase 0 was complete after step k.
extern "C" __global__ void transactions(unsigned *out) {
    __shared__ unsigned long long barrier;
    init(&barrier, 1);
    unsigned b = shared_address(&barrier), done;
#define TEST(k)                                                                                                        \
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"          \
                 : "=r"(done)                                                                                          \
                 : "r"(b)                                                                                              \
                 : "memory");                                                                                          \
    out[k] = done;
    TEST(0)
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 100;" ::"r"(b) : "memory");
    TEST(1)
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
    TEST(2)
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 60;" ::"r"(b) : "memory");
    TEST(3)
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 40;" ::"r"(b) : "memory");
    TEST(4)
}
#endif
