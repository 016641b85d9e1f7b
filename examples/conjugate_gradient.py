"""A system of linear equations solved in a single launch: conjugate gradients with cooperative groups.

Each step of the method needs sums over the whole vector before it continues. In a cooperative launch all blocks are
resident and synchronize inside the kernel (`grid.sync()`), so that one launch replaces several launches per step.
"""

import numpy as np
from cuda.bindings import driver
from sample import Kernels, Skip, attribute, check, download, headers, run, upload, verify

SOURCE = r"""
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// The sum of one number of each thread of the grid, added to `*sum`.
__device__ void add_up(const cg::thread_block &block, double mine, double *sum)
{
    auto warp = cg::tiled_partition<32>(block);
    for (int distance = 16; distance > 0; distance /= 2)
        mine += warp.shfl_down(mine, distance);
    if (warp.thread_rank() == 0)
        atomicAdd(sum, mine);
}

// Solves A x = b for a symmetric, positive definite matrix in compressed rows. x begins as zero, r and p as b.
// sums[0] is r.r of the current step, sums[1] p.Ap, sums[2] r.r of the next one.
extern "C" __global__ void solve(const int *rows, const int *columns, const double *values, int n, double *x, double *r,
                                 double *p, double *product, double *sums, double tolerance, int most, int *steps)
{
    auto grid = cg::this_grid();
    auto block = cg::this_thread_block();
    int first = grid.thread_rank(), stride = grid.size();

    double mine = 0;
    for (int i = first; i < n; i += stride)
        mine += r[i] * r[i];
    add_up(block, mine, &sums[0]);
    grid.sync();

    double residual = sums[0];
    int step = 0;
    while (residual > tolerance * tolerance && step < most) {
        mine = 0;
        for (int i = first; i < n; i += stride) {
            double sum = 0;
            for (int k = rows[i]; k < rows[i + 1]; k++)
                sum += values[k] * p[columns[k]];
            product[i] = sum;
            mine += p[i] * sum;
        }
        add_up(block, mine, &sums[1]);
        grid.sync();

        double alpha = residual / sums[1];
        mine = 0;
        for (int i = first; i < n; i += stride) {
            x[i] += alpha * p[i];
            double rest = r[i] - alpha * product[i];
            r[i] = rest;
            mine += rest * rest;
        }
        add_up(block, mine, &sums[2]);
        grid.sync();

        double next = sums[2];
        for (int i = first; i < n; i += stride)
            p[i] = r[i] + next / residual * p[i];
        residual = next;
        step++;
        // Everybody has read the sums; one thread clears them before anybody adds again.
        grid.sync();
        if (first == 0)
            sums[1] = sums[2] = 0;
        grid.sync();
    }
    if (first == 0)
        *steps = step;
}
"""


def poisson(side):
    """The five-point matrix of a square grid with `side` points per side, in compressed rows."""
    rows, columns, values = [0], [], []
    for y in range(side):
        for x in range(side):
            for there, value in (((y - 1, x), -1), ((y, x - 1), -1), ((y, x), 4.5), ((y, x + 1), -1), ((y + 1, x), -1)):
                if 0 <= there[0] < side and 0 <= there[1] < side:
                    columns.append(there[0] * side + there[1])
                    values.append(value)
            rows.append(len(columns))
    return np.array(rows, np.int32), np.array(columns, np.int32), np.array(values, np.float64)


def multiply(matrix, x):
    rows, columns, values = matrix
    return np.add.reduceat(values * x[columns], rows[:-1])


def main():
    if not attribute("COOPERATIVE_LAUNCH"):
        raise Skip("the device does not support cooperative launches")
    options = headers()
    if not options:
        raise Skip("the cooperative groups headers are not installed (nvidia-cuda-runtime, nvidia-cuda-cccl)")
    side, threads = 32, 128
    matrix = poisson(side)
    n = side * side
    b = np.random.default_rng(4).standard_normal(n)
    kernels = Kernels(SOURCE, options)

    # All resident blocks, but no more than there is work for.
    function = kernels.function("solve")
    resident = check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, 0))
    blocks = min(resident * attribute("MULTIPROCESSOR_COUNT"), -(-n // threads))

    zeros = np.zeros(n)
    x, r, p, product = upload(zeros), upload(b), upload(b), upload(zeros)
    sums, steps = upload(np.zeros(3)), upload(np.zeros(1, np.int32))
    on_device = [upload(part) for part in matrix]
    kernels["solve"](
        blocks,
        threads,
        *on_device,
        np.int32(n),
        x,
        r,
        p,
        product,
        sums,
        np.float64(1e-9),
        np.int32(1000),
        steps,
        cooperative=True,
    )
    solution = download(x, zeros)
    taken = int(download(steps, np.zeros(1, np.int32))[0])
    for pointer in (x, r, p, product, sums, steps, *on_device):
        check(driver.cuMemFree(pointer))
    rest = np.linalg.norm(multiply(matrix, solution) - b)
    verify(0 < taken < 1000 and rest < 1e-7, f"the residual is {rest:.2e} after {taken} steps")
    print(f"{n} equations solved in {taken} steps and one launch of {blocks} blocks; residual {rest:.1e}")


if __name__ == "__main__":
    run(main)
