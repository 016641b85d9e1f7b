"""All-reduce by NCCL over all GPUs of this machine: measured, and predicted by model.py for a ring of NVLinks.

    python benches/scaling/all_reduce.py [--sizes BYTES ...] [--turns N] [--double]

A process for each device, as in examples/nccl/all_reduce.py, which `--double` runs with the test double of NCCL, on CPU
devices too. The time is that of an all-reduce of floats in place, between two events around 20 of them; of the slowest rank.
"""

import argparse
import importlib
import multiprocessing
import sys

import model
import numpy as np
from cuda.core import Device
from cuda.core.utils import StridedMemoryView

REPETITIONS = 20


def seconds(communicator, operation, device, stream, size, turns):
    """The smallest mean of some turns; one more turn warms up."""
    with device.allocate(size, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        view = StridedMemoryView.from_buffer(buffer, (size // model.FLOAT,), dtype=np.float32)
        means = []
        for _ in range(turns + 1):
            start = stream.record(options={"timing_enabled": True})
            for _ in range(REPETITIONS):
                communicator.allreduce(view, view, operation, stream=stream)
            end = stream.record(options={"timing_enabled": True})
            end.sync()
            means.append((end - start) / 1e3 / REPETITIONS)
    return min(means[1:])


def work(module, rank, ranks, unique_id, options, results):
    """The process of a rank: puts its seconds, by size."""
    nccl = importlib.import_module(module)
    device = Device(rank)
    device.set_current()
    stream = device.create_stream()
    communicator = nccl.Communicator.init(ranks, rank, nccl.UniqueId.from_bytes(unique_id))
    results.put(
        [seconds(communicator, nccl.SUM, device, stream, size, options.turns) for size in options.sizes],
    )
    communicator.destroy()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[4 << 10, 1 << 20, 64 << 20, 1 << 30], metavar="BYTES")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--double", action="store_true", help="use Cupyrite's test double instead of NCCL")
    options = parser.parse_args()
    devices = Device.get_all_devices()
    ranks = len(devices)
    module = "cupyrite.nccl_double" if options.double else "nccl.core"
    unique_id = bytes(importlib.import_module(module).get_unique_id())
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    arguments = [(module, rank, ranks, unique_id, options, results) for rank in range(ranks)]
    workers = [context.Process(target=work, args=each, daemon=True) for each in arguments]
    for worker in workers:
        worker.start()
    # A rank that fails leaves the others waiting: they end with this process.
    columns = [results.get(timeout=300) for _ in workers]
    for worker in workers:
        worker.join(60)
        if worker.exitcode != 0:
            sys.exit(f"a rank ended with status {worker.exitcode}")
    print(f"{ranks} times {devices[0].name}, by {module}")
    print(f"{'bytes':>14} {'predicted us':>13} {'measured us':>12} {'GB/s':>7}")
    for size, measured in zip(options.sizes, map(max, zip(*columns))):
        predicted = model.ring_all_reduce(ranks, size, model.NVLINK)
        # The bytes that a device sends in a ring.
        sent = 2 * (ranks - 1) * size / ranks
        print(f"{size:14,} {1e6 * predicted:13.1f} {1e6 * measured:12.1f} {sent / measured / 1e9:7.1f}")


if __name__ == "__main__":
    main()
