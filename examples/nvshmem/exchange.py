"""One-sided messages in symmetric memory: each process writes into the memory of its right neighbour, with nvshmem4py.

A kernel computes numbers, `put_signal` writes them into the neighbour's inbox and sets a signal there, `signal_wait` lets the stream
wait for the own inbox, and a kernel reads it. In each round, numbers move on by one process. All of it is queued in one stream,
for which the host waits once: no process receives, and none waits for another on the host.

    python exchange.py [--pes N] [--rounds N] [--numbers N] [--timeout S]

NVSHMEM needs a GPU for each process (PE). The first PE makes the unique id and sends it to the others. If a PE fails, dies or does
not finish in time, the main process ends the others and says why.
"""

import argparse
import importlib
import multiprocessing
import multiprocessing.connection
import pickle
import sys
import time
import traceback

import numpy as np
from cuda.core import Device, LaunchConfig, Program, launch

SOURCE = r"""
// Adds one to each number.
extern "C" __global__ void add_one(const int *in, int *out, long long n)
{
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x)
        out[i] = in[i] + 1;
}
"""
CONFIG = LaunchConfig(grid=256, block=256)


def skip(reason):
    """Ends with status 77, which test programs count as skipped."""
    print(f"skipped: {reason}")
    sys.exit(77)


def numbers_of(pe, count):
    """What a PE has at first."""
    return (1000 * pe + np.arange(count) % 1000).astype(np.int32)


def compute(pe, pes, rounds, count, ids, timeout):
    """One PE. Returns its numbers after all rounds."""
    nvshmem = importlib.import_module("nvshmem.core")
    device = Device(pe)
    device.set_current()
    stream = device.create_stream()
    add_one = Program(SOURCE, "c++").compile("cubin").get_kernel("add_one")
    if pe == 0:
        unique_id = nvshmem.get_unique_id()
        for _ in range(pes - 1):
            ids.put(pickle.dumps(unique_id))
    else:
        unique_id = pickle.loads(ids.get(timeout=timeout))
    nvshmem.init(device=device, uid=unique_id, rank=pe, nranks=pes, initializer_method="uid")

    # Symmetric memory: all PEs allocate the same sizes in the same order.
    numbers = nvshmem.buffer(4 * count)
    # A PE can be `pes - 1` rounds ahead of its right neighbour. With `pes` inboxes, it overwrites none that is unread.
    inboxes = [(nvshmem.buffer(4 * count), nvshmem.buffer(8)) for _ in range(pes)]
    for _, signal in inboxes:
        signal.fill(0, stream=stream)
    numbers.copy_from(numbers_of(pe, count), stream=stream)
    # No PE sets a signal before all signals are zero.
    nvshmem.barrier_all(stream)
    right, signal_set, at_least = (pe + 1) % pes, nvshmem.SignalOp.SIGNAL_SET, nvshmem.ComparisonType.CMP_GE
    for number in range(1, rounds + 1):
        inbox, signal = inboxes[number % pes]
        nvshmem.put_signal(inbox, numbers, signal, number, signal_set, remote_pe=right, stream=stream)
        nvshmem.signal_wait(signal, number, at_least, stream=stream)
        launch(stream, CONFIG, add_one, inbox, numbers, np.int64(count))
    nvshmem.barrier_all(stream)
    result = numbers.copy_to(np.empty(count, np.int32), stream=stream)
    stream.sync()

    # Not after an error: all PEs would have to free together.
    for buffer in (numbers, *(buffer for pair in inboxes for buffer in pair)):
        nvshmem.free(buffer)
    nvshmem.finalize()
    return result


def work(pe, pes, rounds, count, ids, timeout, main):
    """The process of a PE: sends `None` and its numbers, or the reason why it failed."""
    try:
        main.send((None, compute(pe, pes, rounds, count, ids, timeout)))
    except Exception as error:
        traceback.print_exc()
        main.send((f"{type(error).__name__}: {error}", None))


def run(pes, rounds, count, timeout):
    """The numbers of all PEs. Ends the program if a PE fails or takes too long."""
    context = multiprocessing.get_context("spawn")
    ids = context.Queue()
    workers, connections = [], {}
    for pe in range(pes):
        mine, theirs = context.Pipe(duplex=False)
        arguments = (pe, pes, rounds, count, ids, timeout, theirs)
        workers.append(context.Process(target=work, args=arguments, daemon=True))
        workers[-1].start()
        theirs.close()
        connections[mine] = pe
    deadline = time.monotonic() + timeout
    results, reason = {}, None
    while connections and not reason:
        ready = multiprocessing.connection.wait(connections, max(0, deadline - time.monotonic()))
        if not ready:
            reason = f"PEs {sorted(connections.values())} did not finish within {timeout:g} s"
        for connection in ready:
            pe = connections.pop(connection)
            try:
                failure, results[pe] = connection.recv()
                reason = reason or (failure and f"PE {pe} failed: {failure}")
            except EOFError:
                workers[pe].join(1)
                reason = reason or f"PE {pe} ended with status {workers[pe].exitcode}"
    for pe, worker in enumerate(workers):
        if not reason:
            worker.join(max(0, deadline - time.monotonic()))
            if worker.exitcode != 0:
                reason = f"PE {pe} did not end well: status {worker.exitcode}"
        # A PE that waits in NVSHMEM does not react to SIGTERM.
        worker.kill()
        worker.join()
    if reason:
        sys.exit(reason)
    return [results[pe] for pe in range(pes)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pes", type=int, default=0, help="number of processes (default: all devices)")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--numbers", type=int, default=100_003, help="how many numbers each PE has")
    parser.add_argument("--timeout", type=float, default=120, help="seconds after which all PEs are ended")
    options = parser.parse_args()
    for name, least in (("pes", 0), ("rounds", 1), ("numbers", 1), ("timeout", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name} {getattr(options, name)}: expected at least {least}")
    try:
        devices = Device.get_all_devices()
        names = [device.name for device in devices]
        on_cpu = names[0].startswith("CPU")
    except Exception as reason:
        skip(f"no device: {str(reason).splitlines()[0]}")
    if on_cpu:
        skip("NVSHMEM needs GPUs, and the device is the CPU device")
    pes = options.pes or len(devices)
    if pes > len(devices):
        skip(f"{pes} devices are needed, and there are {len(devices)}")
    try:
        importlib.import_module("nvshmem.core").get_version()
    except Exception as reason:
        skip(f"nvshmem4py or NVSHMEM is not installed: {str(reason).splitlines()[0]}")
    print(f"on {', '.join(names[:pes])}")
    for pe, found in enumerate(run(pes, options.rounds, options.numbers, options.timeout)):
        if not np.array_equal(found, numbers_of((pe - options.rounds) % pes, options.numbers) + options.rounds):
            sys.exit(f"wrong result: the numbers of PE {pe}")
    print(f"{options.rounds} rounds of {options.numbers} numbers among {pes} PEs")
    print("done: the results are right")


if __name__ == "__main__":
    main()
