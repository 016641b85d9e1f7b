"""A system of linear equations solved in a single launch: conjugate gradients with cooperative groups.

Each step of the method needs sums over the whole vector before it continues. In a cooperative launch all blocks are
resident and synchronize inside the kernel (`grid.sync()`), so that one launch replaces several launches per step.
"""

import sys

import numpy as np
from cuda import pathfinder
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

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


def skip(reason):
    """Ends with status 77, which test programs count as skipped."""
    print(f"skipped: {reason}")
    sys.exit(77)


def first_device():
    """The first device, made current."""
    try:
        device = Device(0)
        device.set_current()
    except Exception as reason:
        skip(f"no device: {reason}")
    print(f"on {device.name}")
    return device


def headers():
    """The folders of CUDA's headers; empty where they are not installed."""
    found = (pathfinder.find_nvidia_header_directory(library) for library in ("cudart", "cccl"))
    return [folder for folder in found if folder]


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
    device = first_device()
    if not device.properties.cooperative_launch:
        skip("the device does not support cooperative launches")
    folders = headers()
    if not folders:
        skip("the cooperative groups headers are not installed (nvidia-cuda-runtime, nvidia-cuda-cccl)")
    stream = device.create_stream()
    options = ProgramOptions(std="c++17", include_path=folders)
    solve = Program(SOURCE, "c++", options).compile("cubin").get_kernel("solve")
    side, threads = 32, 128
    matrix = poisson(side)
    n = side * side
    b = np.random.default_rng(4).standard_normal(n)

    # All resident blocks, but no more than there is work for.
    resident = solve.occupancy.max_active_blocks_per_multiprocessor(threads, 0)
    blocks = min(resident * device.properties.multiprocessor_count, -(-n // threads))

    def upload(array):
        buffer = device.allocate(array.nbytes, stream=stream)
        buffer.copy_from(array, stream=stream)
        return buffer

    rows, columns, values = (upload(part) for part in matrix)
    solution, taken = np.zeros(n), np.zeros(1, np.int32)
    x, r, p, product = upload(solution), upload(b), upload(b), upload(solution)
    sums, steps = upload(np.zeros(3)), upload(taken)
    arguments = [rows, columns, values, np.int32(n), x, r, p, product, sums, 1e-9, np.int32(1000), steps]
    launch(stream, LaunchConfig(grid=blocks, block=threads, is_cooperative=True), solve, *arguments)
    x.copy_to(solution, stream=stream)
    steps.copy_to(taken, stream=stream)
    stream.sync()

    rest = np.linalg.norm(multiply(matrix, solution) - b)
    if not (0 < taken[0] < 1000 and rest < 1e-7):
        sys.exit(f"wrong result: the residual is {rest:.2e} after {taken[0]} steps")
    print(f"{n} equations solved in {taken[0]} steps and one launch of {blocks} blocks; residual {rest:.1e}")
    print("done: the results are right")


if __name__ == "__main__":
    main()
