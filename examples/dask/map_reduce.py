"""Dask: a histogram of an array that is larger than the device memory of its workers.

    python map_reduce.py [--workers N] [--blocks N] [--elements N] [--limit BYTES] [--no-kill]

Each worker has a device. Blocks of the array are results of tasks, as views of device memory. Two passes read all blocks: the
first finds the extremes, the second counts. `DevicePlugin` limits the device memory for blocks, so that most of them wait in
host memory, or on disk. Partial results are combined in a tree: they move between workers by IPC.

During the second pass one worker is killed. Dask computes its blocks again on the other workers and starts a new worker, which
takes the device that became free.
"""

import argparse
import contextlib
import logging
import os
import signal
import sys
import tempfile
import time

import numpy as np

try:
    from cupyrite.dask import DevicePlugin
    from distributed import Client, LocalCluster
except ImportError as reason:
    print(f"skipped: Dask is not installed: {reason}")
    sys.exit(77)

from cuda.core import Device, LaunchConfig, Program, launch, system
from cuda.core.utils import StridedMemoryView

SOURCE = r"""
typedef unsigned int u32;
typedef unsigned long long u64;

extern "C" __global__ void generate(u32 *values, u64 first, u32 count)
{
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        u64 x = (first + i) * 0x9e3779b97f4a7c15ull;
        x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9ull;
        values[i] = (u32)(x >> 40) + 1000;
    }
}
extern "C" __global__ void extremes(const u32 *values, u32 count, u32 *result)
{
    u32 least = 0xffffffff, most = 0;
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        least = min(least, values[i]);
        most = max(most, values[i]);
    }
    atomicMin(&result[0], least);
    atomicMax(&result[1], most);
}
extern "C" __global__ void histogram(const u32 *values, u32 count, u32 least, u32 width, u64 *bins)
{
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[(values[i] - least) / width], 1ull);
}
extern "C" __global__ void add(u64 *sum, const u64 *other, u32 count)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        sum[i] += other[i];
}
"""
BINS = 65536
CONFIG = LaunchConfig(grid=64, block=256)


def generate(kernel, number, count):
    """Block `number` of the array."""
    device = Device()
    stream = device.create_stream()
    block = StridedMemoryView.from_buffer(device.allocate(4 * count, stream=stream), (count,), dtype=np.uint32)
    launch(stream, CONFIG, kernel, block.ptr, np.uint64(number * count), np.uint32(count))
    # The next task uses another stream.
    stream.sync()
    return block


def extremes(kernel, block):
    """The least and the greatest value of a block."""
    device = Device()
    stream = device.create_stream()
    result = device.allocate(8, stream=stream)
    result.copy_from(np.array([2**32 - 1, 0], np.uint32), stream=stream)
    launch(stream, CONFIG, kernel, block.ptr, np.uint32(block.size), result)
    least_and_most = np.empty(2, np.uint32)
    result.copy_to(least_and_most, stream=stream)
    stream.sync()
    return least_and_most


def histogram(kernel, block, least, width, killed=None):
    """How many values of a block are in each interval. The first worker dies in the middle, and leaves the file `killed`."""
    device = Device()
    stream = device.create_stream()
    bins = device.allocate(8 * BINS, stream=stream)
    bins.fill(0, stream=stream)
    launch(stream, CONFIG, kernel, block.ptr, np.uint32(block.size), np.uint32(least), np.uint32(width), bins)
    if killed is not None:
        with contextlib.suppress(FileExistsError):
            open(killed, "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
    stream.sync()
    return bins


def add(kernel, bins, other):
    """The sum of two histograms, which can come from other workers. Arguments of tasks stay as they are."""
    device = Device()
    stream = device.create_stream()
    total = device.allocate(bins.size, stream=stream)
    total.copy_from(bins, stream=stream)
    launch(stream, LaunchConfig(grid=BINS // 256, block=256), kernel, total, other, np.uint32(BINS))
    stream.sync()
    return total


def to_host(bins):
    stream = Device().create_stream()
    result = np.empty(BINS, np.uint64)
    bins.copy_to(result, stream=stream)
    stream.sync()
    return result


def spilled(dask_worker):
    """How many results of a worker were copied from its device to the host so far."""
    # A worker that was started again can be without its plugin for a moment.
    return getattr(dask_worker.data, "spilled_count", 0)


def expected(blocks, count):
    """The same on the host."""
    with np.errstate(over="ignore"):
        x = np.arange(blocks * count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (x >> np.uint64(40)).astype(np.uint32) + np.uint32(1000)
    least, most = int(values.min()), int(values.max())
    width = (most - least) // BINS + 1
    return least, width, np.bincount((values - least) // width, minlength=BINS).astype(np.uint64)


def compute(client, code, options, killed):
    """The histogram, its first value and the width of its intervals."""
    kernels = {name: code.get_kernel(name) for name in ("generate", "extremes", "histogram", "add")}
    blocks = [
        client.submit(generate, kernels["generate"], number, options.elements, key=f"block-{number}")
        for number in range(options.blocks)
    ]
    found = client.submit(np.stack, [client.submit(extremes, kernels["extremes"], block) for block in blocks])
    found = found.result(timeout=options.timeout)
    least, most = int(found[:, 0].min()), int(found[:, 1].max())
    width = (most - least) // BINS + 1
    parts = [client.submit(histogram, kernels["histogram"], block, least, width, killed) for block in blocks]
    while len(parts) > 1:
        pairs = [client.submit(add, kernels["add"], *parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[len(parts) & ~1 :]
    counts = client.submit(to_host, parts[0]).result(timeout=options.timeout)
    return least, width, counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--workers", type=int, default=system.get_num_devices(), help="number of workers (default: devices)"
    )
    parser.add_argument("--blocks", type=int, default=24)
    parser.add_argument("--elements", type=int, default=1 << 18, help="elements of a block, of 4 bytes")
    parser.add_argument("--limit", default="4 MiB", help="device memory of each worker for blocks")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for each pass until the program gives up")
    parser.add_argument("--no-kill", action="store_true", help="let all workers live")
    options = parser.parse_args()
    devices = system.get_num_devices()
    if options.workers > devices or not devices:
        print(f"skipped: {options.workers} workers need a device each; there are {devices}")
        sys.exit(77)
    for name in ("workers", "blocks", "elements"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} {getattr(options, name)}: expected at least 1")
    if options.workers == 1:
        # No other worker could compute its blocks.
        options.no_kill = True
    device = Device()
    device.set_current()
    code = Program(SOURCE, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin")
    settings = {
        "n_workers": options.workers,
        "threads_per_worker": 1,
        "dashboard_address": None,
        "silence_logs": logging.ERROR,
    }
    with tempfile.TemporaryDirectory() as folder, LocalCluster(**settings) as cluster, Client(cluster) as client:
        # Workers load the code before their first task.
        client.register_plugin(DevicePlugin(device_memory_limit=options.limit, warm=[code]))
        size = options.blocks * options.elements * 4
        print(f"on {device.name}: {options.workers} workers, {size / 2**20:.0f} MiB in {options.blocks} blocks")
        start = time.perf_counter()
        killed = None if options.no_kill else os.path.join(folder, "killed")
        least, width, counts = compute(client, code, options, killed)
        seconds = time.perf_counter() - start
        times = sum(client.run(spilled).values())
    wanted = expected(options.blocks, options.elements)
    if (least, width) != wanted[:2] or not np.array_equal(counts, wanted[2]):
        sys.exit("wrong result: the histogram")
    killed = "no worker was killed" if options.no_kill else "one worker was killed"
    print(f"{counts.sum()} values in {seconds:.1f} s; {times} results moved to the host; {killed}")
    print("done: the results are right")


if __name__ == "__main__":
    main()
