// Compiled with -G, which inlines no function.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ __noinline__ unsigned together() { return cg::coalesced_threads().size(); }

// Each lane's number of lanes in each branch, and behind the branches.
extern "C" __global__ void branches(unsigned* out)
{
    unsigned n = threadIdx.x, inside;
    if (n % 32 < 10)
        inside = together();
    else
        inside = together() + 100;
    out[2 * n] = inside;
    out[2 * n + 1] = together();
}
