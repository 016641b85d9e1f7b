// Collectives of one warp that lanes in different branches and iterations execute at different instructions.
// n is a multiple of 32. The keys choose the branches.
#define ALL 0xffffffffu
#define AT(row) out[(row) * n + i]

extern "C" __global__ void nested(const int* key, const int* value, unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = value[i], same = 0;
    if (key[i] & 1) {
        if (key[i] & 2) {
            AT(0) = __ballot_sync(ALL, v & 1);
            AT(1) = __match_any_sync(ALL, v % 5);
            AT(2) = __reduce_add_sync(ALL, v);
            AT(3) = __shfl_xor_sync(ALL, v, 1);
            AT(4) = __shfl_sync(ALL, v, v & 31);
            AT(5) = __match_all_sync(ALL, 7, &same);
            AT(6) = __any_sync(ALL, v > 90);
        } else {
            AT(0) = __ballot_sync(ALL, !(v & 2));
            AT(1) = __match_any_sync(ALL, v % 3);
            AT(2) = __reduce_add_sync(ALL, 2 * v);
            AT(3) = __shfl_xor_sync(ALL, v + 1000, 2);
            AT(4) = __shfl_sync(ALL, v + 1000, 3);
            AT(5) = __match_all_sync(ALL, v < 0 ? 8 : 7, &same);
            AT(6) = __any_sync(ALL, v > 97);
        }
    } else if (key[i] & 2) {
        AT(0) = __ballot_sync(ALL, v > 50);
        AT(1) = __match_any_sync(ALL, 2);
        AT(2) = __reduce_add_sync(ALL, -v);
        AT(3) = __shfl_xor_sync(ALL, v + 2000, 16);
        AT(4) = __shfl_sync(ALL, v + 2000, 30);
        AT(5) = __match_all_sync(ALL, 7, &same);
        AT(6) = __any_sync(ALL, 0);
    } else {
        AT(0) = __ballot_sync(ALL, 1);
        AT(1) = __match_any_sync(ALL, v % 4);
        AT(2) = __reduce_add_sync(ALL, 1);
        AT(3) = __shfl_xor_sync(ALL, v + 3000, 31);
        AT(4) = __shfl_sync(ALL, v + 3000, threadIdx.x + 1);
        AT(5) = __match_all_sync(ALL, 7, &same);
        AT(6) = __any_sync(ALL, v == 13);
    }
    AT(5) += same;
}

// Each key has a mask of its own; the value chooses the branch.
extern "C" __global__ void groups_in_branches(const int* key, const int* value, unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = value[i];
    unsigned m = __match_any_sync(ALL, key[i]);
    if (v & 1) {
        AT(0) = __ballot_sync(m, v & 2);
        AT(1) = __reduce_max_sync(m, v);
        AT(2) = __shfl_sync(m, v, __ffs(m) - 1);
    } else {
        AT(0) = __ballot_sync(m, v & 4);
        AT(1) = __reduce_max_sync(m, v + 40);
        AT(2) = __shfl_sync(m, v + 500, 31 - __clz(m));
    }
}

// The halves of a warp have masks of their own; each half diverges in itself.
extern "C" __global__ void halves(const int* key, const int* value, unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = value[i];
    unsigned m = threadIdx.x & 16 ? 0xffff0000u : 0xffffu;
    AT(0) = key[i] & 1 ? __ballot_sync(m, v & 1) : __ballot_sync(m, v > 50);
    if (key[i] & 2) {
        AT(1) = __reduce_add_sync(m, v);
    } else {
        AT(1) = __reduce_add_sync(m, 3 * v);
    }
}

// Lanes with key 0 exit first, those with key 1 after the others have arrived.
extern "C" __global__ void with_exited_lanes(const int* key, const int* value, unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = value[i];
    if (key[i] == 0) return;
    if (key[i] == 1) {
        for (int k = 0; k < 3000; k++) asm volatile("" : "+r"(v));
        return;
    }
    if (v & 1) {
        AT(0) = __ballot_sync(ALL, v & 2);
        AT(1) = __reduce_add_sync(ALL, v);
    } else {
        AT(0) = __ballot_sync(ALL, v & 4);
        AT(1) = __reduce_add_sync(ALL, 2 * v);
    }
}

// Ten rounds: a lane is in the first loop for as many rounds as its key says, and in the second one afterwards.
extern "C" __global__ void in_loops(const int* key, const int* value, unsigned* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = value[i], round = 0;
    unsigned h = 0;
#pragma unroll 1
    for (; round < key[i]; round++) h = 3 * h + __reduce_add_sync(ALL, v) + __shfl_down_sync(ALL, v, 1);
#pragma unroll 1
    for (; round < 10; round++) h = 3 * h + __reduce_add_sync(ALL, round) + __shfl_down_sync(ALL, -v, 1);
    AT(0) = h;
}

// Lanes of both branches exchange values through shared memory.
extern "C" __global__ void exchange(const int* key, const int* value, unsigned* out, int n)
{
    __shared__ volatile int box[1024];
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = value[i];
    if (key[i] & 1) {
        box[threadIdx.x] = v;
        __syncwarp();
        AT(0) = box[threadIdx.x ^ 1];
        __syncwarp();
        box[threadIdx.x] = 7 * v;
        __syncwarp();
        AT(1) = box[threadIdx.x ^ 31];
    } else {
        box[threadIdx.x] = v + 1000;
        __syncwarp();
        AT(0) = box[threadIdx.x ^ 16];
        __syncwarp();
        box[threadIdx.x] = v + 2000;
        __syncwarp();
        AT(1) = box[threadIdx.x ^ 2];
    }
}
