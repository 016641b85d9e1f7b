"""Collective operations of NCCL between kernels of a stream: a process for each device, with nccl4py.

Each rank computes numbers, adds them up over all ranks (`allreduce`), and squares the sums. The last rank broadcasts its squares,
and neighbours in a ring exchange their numbers (`send` and `recv` in a group). All of it is queued in one stream, for which the host
waits once.

    python all_reduce.py [--ranks N] [--numbers N] [--timeout S]
    CUPYRITE_DEVICE=cpu CUPYRITE_CPU_DEVICES=4 python all_reduce.py --double

NCCL needs a GPU for each rank. `--double` runs the same calls with Cupyrite's test double of NCCL, on CPU devices too. The main
process sends the unique id to all ranks. If a rank fails, dies or does not finish in time, it ends the others and says why.
"""

import argparse
import importlib
import multiprocessing
import multiprocessing.connection
import sys
import time
import traceback

import numpy as np
from cuda.core import Device, LaunchConfig, Program, launch
from cuda.core.utils import StridedMemoryView

SOURCE = r"""
extern "C" __global__ void fill(long long *numbers, long long n, int rank)
{
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x)
        numbers[i] = (rank + 1) * (i % 1000) + rank;
}

extern "C" __global__ void square(const long long *numbers, long long *squares, long long n)
{
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x)
        squares[i] = numbers[i] * numbers[i];
}
"""
CONFIG = LaunchConfig(grid=256, block=256)


def skip(reason):
    """Ends with status 77, which test programs count as skipped."""
    print(f"skipped: {reason}")
    sys.exit(77)


def numbers_of(rank, count):
    """What a rank's first kernel computes."""
    return (rank + 1) * (np.arange(count) % 1000) + rank


def compute(nccl, rank, ranks, unique_id, count):
    """One rank. Returns its results: the broadcast squares, and the numbers of its left neighbour."""
    device = Device(rank)
    device.set_current()
    stream = device.create_stream()
    code = Program(SOURCE, "c++").compile("cubin")
    fill, square = code.get_kernel("fill"), code.get_kernel("square")
    mine, sums, squares, received = (device.allocate(8 * count, stream=stream) for _ in range(4))
    # A Buffer is bytes. A view has the type of the elements.
    view = {b: StridedMemoryView.from_buffer(b, (count,), dtype=np.int64) for b in (mine, sums, squares, received)}

    communicator = nccl.Communicator.init(ranks, rank, unique_id)
    launch(stream, CONFIG, fill, mine, np.int64(count), np.int32(rank))
    communicator.allreduce(view[mine], view[sums], nccl.SUM, stream=stream)
    launch(stream, CONFIG, square, sums, squares, np.int64(count))
    if rank != ranks - 1:
        # These are overwritten by the last rank's.
        squares.fill(0xFF, stream=stream)
    communicator.broadcast(view[squares], view[squares], ranks - 1, stream=stream)
    with nccl.group():
        communicator.send(view[mine], (rank + 1) % ranks, stream=stream)
        communicator.recv(view[received], (rank - 1) % ranks, stream=stream)

    results = [buffer.copy_to(np.empty(count, np.int64), stream=stream) for buffer in (squares, received)]
    stream.sync()
    communicator.destroy()
    return results


def work(module, rank, ranks, unique_id, count, main):
    """The process of a rank: sends `None` and its results, or the reason why it failed."""
    try:
        nccl = importlib.import_module(module)
        main.send((None, compute(nccl, rank, ranks, nccl.UniqueId.from_bytes(unique_id), count)))
    except Exception as error:
        traceback.print_exc()
        main.send((f"{type(error).__name__}: {error}", None))


def run(module, ranks, unique_id, count, timeout):
    """The results of all ranks. Ends the program if a rank fails or takes too long."""
    context = multiprocessing.get_context("spawn")
    workers, connections = [], {}
    for rank in range(ranks):
        mine, theirs = context.Pipe(duplex=False)
        arguments = (module, rank, ranks, unique_id, count, theirs)
        workers.append(context.Process(target=work, args=arguments, daemon=True))
        workers[-1].start()
        theirs.close()
        connections[mine] = rank
    deadline = time.monotonic() + timeout
    results, reason = {}, None
    while connections and not reason:
        ready = multiprocessing.connection.wait(connections, max(0, deadline - time.monotonic()))
        if not ready:
            reason = f"ranks {sorted(connections.values())} did not finish within {timeout:g} s"
        for connection in ready:
            rank = connections.pop(connection)
            try:
                failure, results[rank] = connection.recv()
                reason = reason or (failure and f"rank {rank} failed: {failure}")
            except EOFError:
                workers[rank].join(1)
                reason = reason or f"rank {rank} ended with status {workers[rank].exitcode}"
    for rank, worker in enumerate(workers):
        if not reason:
            worker.join(max(0, deadline - time.monotonic()))
            if worker.exitcode != 0:
                reason = f"rank {rank} did not end well: status {worker.exitcode}"
        # A rank that waits in NCCL does not react to SIGTERM.
        worker.kill()
        worker.join()
    if reason:
        sys.exit(reason)
    return [results[rank] for rank in range(ranks)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=0, help="number of ranks (default: all devices)")
    parser.add_argument("--numbers", type=int, default=100_003, help="how many numbers each rank has")
    parser.add_argument("--timeout", type=float, default=120, help="seconds after which all ranks are ended")
    parser.add_argument("--double", action="store_true", help="use Cupyrite's test double instead of NCCL")
    options = parser.parse_args()
    for name, least in (("ranks", 0), ("numbers", 1), ("timeout", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name} {getattr(options, name)}: expected at least {least}")
    try:
        devices = Device.get_all_devices()
        names = [device.name for device in devices]
        on_cpu = names[0].startswith("CPU")
    except Exception as reason:
        skip(f"no device: {str(reason).splitlines()[0]}")
    ranks = options.ranks or len(devices)
    if ranks > len(devices):
        skip(f"{ranks} devices are needed, and there are {len(devices)} (CUPYRITE_CPU_DEVICES configures CPU devices)")
    if not options.double and on_cpu:
        skip("NCCL needs GPUs, and the device is the CPU device (--double uses a test double)")
    module = "cupyrite.nccl_double" if options.double else "nccl.core"
    try:
        nccl = importlib.import_module(module)
        unique_id = nccl.get_unique_id()
    except Exception as reason:
        skip(f"nccl4py or NCCL is not installed: {str(reason).splitlines()[0]}")
    print(f"on {', '.join(names[:ranks])}")
    results = run(module, ranks, bytes(unique_id), options.numbers, options.timeout)
    parts = [numbers_of(rank, options.numbers) for rank in range(ranks)]
    for rank, (squares, received) in enumerate(results):
        if not np.array_equal(squares, sum(parts) ** 2):
            sys.exit(f"wrong result: the squares on rank {rank}")
        if not np.array_equal(received, parts[rank - 1]):
            sys.exit(f"wrong result: the neighbour's numbers on rank {rank}")
    print(f"{ranks} ranks of {options.numbers} numbers, by {'the test double' if options.double else 'NCCL'}")
    print("done: the results are right")


if __name__ == "__main__":
    main()
