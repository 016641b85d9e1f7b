"""Copies between the memory of two devices: cuda.core and plain C in one process.

    python benches/scaling/peer_copies.py [--sizes BYTES ...] [--turns N] [--json FILE]

Without GPUs, CUPYRITE_CPU_DEVICES=2 configures two CPU devices. Needs a C compiler. C calls the driver at the addresses
that Cupyrite calls, with the same streams and the same memory. The columns of a row repeat the copy equally often, about
50 ms a turn, and take turns. The smallest mean counts. Then each column copies once more, to cleared memory, and is checked.
"""

import argparse
import contextlib
import ctypes
import dataclasses
import functools
import itertools
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

import numpy as np
from cuda.core import Buffer, Device, DeviceMemoryResource, LaunchConfig, Program, Stream, launch
from cupyrite import _native

from harness.c_code import build_library
from harness.sides import machine, table
from harness.timing import mean
from harness.turns import take_turns

# The same order as the enum in peer_copies.c.
SYMBOLS = "cuMemcpyPeerAsync cuMemcpyDtoDAsync_v2 cuStreamSynchronize cuEventRecord cuStreamWaitEvent".split()
SIZES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20, 1 << 30)
CPU_MOST = 16 << 20
LATENCY_SIZES = (4 << 10, 32 << 10, 128 << 10)
TURN_NS, MOST_REPETITIONS = 50e6, 2000
# Bytes at the end of a destination that are checked.
END = 4 << 20
# Many independent loads of 16 bytes: the latency of the other device's memory must not limit the sum.
KERNEL = r"""
extern "C" __global__ void sum(const uint4 *in, unsigned long long *out, int n)
{
    unsigned long long total = 0;
#pragma unroll 4
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        uint4 v = in[i];
        total += (unsigned long long)v.x + v.y + v.z + v.w;
    }
    for (int lanes = 16; lanes; lanes /= 2)
        total += __shfl_down_sync(~0u, total, lanes);
    if (threadIdx.x % 32 == 0)
        atomicAdd(out, total);
}
"""


@dataclasses.dataclass
class Way:
    """A copy from `source`, memory of the device of `stream`, to `target`, memory of the device of `other`."""

    source: Buffer
    target: Buffer
    stream: Stream
    other: Stream
    expected: np.ndarray

    def in_c(self):
        """The six words of peer_copy in peer_copies.c."""
        handles = (self.target.handle, self.source.handle, self.other.context.handle, self.stream.context.handle)
        return *map(int, handles), self.source.size, int(self.stream.handle)

    def clear(self):
        self.target[-self.expected.size :].copy_from(np.zeros_like(self.expected), stream=self.other)
        self.other.sync()

    def check(self, *what):
        found = self.target[-self.expected.size :].copy_to(np.empty_like(self.expected), stream=self.other)
        self.other.sync()
        if not np.array_equal(found, self.expected):
            sys.exit(f"wrong result: {', '.join(what)}, {self.source.size} bytes")


def two_devices():
    """The first two devices. Without them, exits with status 77, which test programs count as skipped."""
    try:
        Device(0).set_current()
        devices = Device.get_all_devices()[:2]
        if len(devices) < 2:
            reason = "two devices are needed (CUPYRITE_CPU_DEVICES=2 configures two CPU devices)"
        elif not (devices[0].can_access_peer(devices[1]) and devices[1].can_access_peer(devices[0])):
            reason = "the first two devices cannot access each other's memory"
        else:
            return devices
    except Exception as error:
        reason = f"no device: {error}"
    print(f"skipped: {reason}")
    sys.exit(77)


def pattern(seed, size):
    """`size` bytes of 32-bit words, all different and in no order."""
    return ((np.arange(size // 4, dtype=np.uint32) + np.uint32(seed)) * np.uint32(2654435761)).view(np.uint8)


@contextlib.contextmanager
def two_ways(size, pools, streams):
    """From the first device to the second and back, with filled sources. The memory is freed at the end."""
    with contextlib.ExitStack() as stack:
        memory = [stack.enter_context(p.allocate(size, stream=s)) for _ in range(2) for p, s in zip(pools, streams)]
        ways = []
        for number, stream in enumerate(streams):
            data = pattern(number, size)
            memory[number].copy_from(data, stream=stream)
            # Allocation is stream-ordered: the other device's stream must not come first.
            stream.sync()
            ways.append(Way(memory[number], memory[3 - number], stream, streams[1 - number], data[-END:].copy()))
        yield ways


def columns_in_c(function, addresses, *arguments):
    """Columns by name. A column is a function of the number of repetitions; it returns nanoseconds a repetition."""

    def column(peer, count):
        result = ctypes.c_double()
        if function(addresses, peer, *arguments, count, ctypes.byref(result)) != 0:
            raise RuntimeError("peer_copies.c failed")
        return result.value

    return {"C peer": functools.partial(column, 1), "C DtoD": functools.partial(column, 0)}


def back_to_back(c, addresses, ways):
    """The columns of copies that are enqueued without waiting."""

    def column(copies):
        def one(loop):
            # The first copy is outside of the inner loop, whose cost would count for 4 KiB.
            (copy, memory, stream), *back = copies
            for _ in loop:
                copy(memory, stream=stream)
                for copy_back, memory_back, stream_back in back:
                    copy_back(memory_back, stream=stream_back)
            for *_, stream in copies:
                stream.sync()

        return functools.partial(mean, one)

    words = [word for way in ways for word in way.in_c()]
    return {
        **columns_in_c(c.back_to_back, addresses, (ctypes.c_uint64 * len(words))(*words), len(ways)),
        "copy_to": column([(way.source.copy_to, way.target, way.stream) for way in ways]),
        "copy_from": column([(way.target.copy_from, way.source, way.stream) for way in ways]),
    }


def one_by_one(event, c, addresses, ways):
    """The columns of single copies. With an event, the other stream waits for the copy, and the host for that stream."""
    (way,) = ways
    copy, target, stream, other = way.source.copy_to, way.target, way.stream, way.other
    last = other if event else stream

    def one(loop):
        for _ in loop:
            copy(target, stream=stream)
            if event:
                stream.record(event)
                other.wait(event)
            last.sync()

    handles = ctypes.c_void_p(event and int(event.handle)), ctypes.c_void_p(int(last.handle))
    columns = columns_in_c(c.one_by_one, addresses, (ctypes.c_uint64 * 6)(*way.in_c()), *handles)
    return {**columns, "copy_to": functools.partial(mean, one)}


def timed(label, columns, size, turns, ways=1):
    """One row, as in the JSON file."""
    for run in columns.values():
        run(1)
    run, count = next(iter(columns.values())), 1
    while (each := run(count)) * count < TURN_NS / 10 and count < MOST_REPETITIONS:
        count = min(4 * count, MOST_REPETITIONS)
    count = max(1, min(MOST_REPETITIONS, round(TURN_NS / each)))
    sides = {name: functools.partial(run, count) for name, run in columns.items()}
    best = {name: min(means) for name, means in take_turns(turns, sides, one_core=False).items()}
    # A byte a nanosecond is a GB/s.
    figures = {name: {"us": ns / 1e3, "GB/s": ways * size / ns} for name, ns in best.items()}
    return {"row": label, "bytes": size, "times": count, "columns": figures}


def timed_sums(device, pool, ways, turns):
    """The row of a kernel on the first device that sums the other device's memory, or its own."""
    stream, size = ways[0].stream, ways[0].source.size
    kernel = Program(KERNEL, "c++").compile("cubin").get_kernel("sum")
    config = LaunchConfig(grid=8 * device.properties.multiprocessor_count, block=256)
    with pool.allocate(8, stream=stream) as out:

        def sums(memory, loop):
            for _ in loop:
                launch(stream, config, kernel, memory, out, np.int32(size // 16))
            stream.sync()

        sources = {"other device": ways[1].source, "own memory": ways[0].source}
        columns = {name: functools.partial(mean, functools.partial(sums, memory)) for name, memory in sources.items()}
        row = timed("kernel that reads", columns, size, turns)
        for seed, (name, run) in zip((1, 0), columns.items()):
            total = np.zeros(1, np.uint64)
            out.copy_from(total, stream=stream)
            run(1)
            out.copy_to(total, stream=stream)
            stream.sync()
            if total[0] != pattern(seed, size).view(np.uint32).sum(dtype=np.uint64):
                sys.exit(f"wrong result: the kernel's sum, {name}")
    return row


def show(rows):
    header = ("", "bytes", "times", *(text for name in rows[0]["columns"] for text in (f"{name}: us", "GB/s")))
    figures = [[f"{number:,.1f}" for pair in row["columns"].values() for number in pair.values()] for row in rows]
    table(header, [(row["row"], f"{row['bytes']:,}", row["times"], *more) for row, more in zip(rows, figures)])
    print(flush=True)
    return rows


def measure(stack, devices, library, sizes, kernel_size, turns):
    """Prints the tables; returns their rows. `stack` closes what the tables share."""
    pools, streams = [], []
    for device, other in zip(devices, reversed(devices)):
        device.set_current()
        pools.append(stack.enter_context(contextlib.closing(DeviceMemoryResource(device))))
        pools[-1].peer_accessible_by = [other]
        streams.append(stack.enter_context(contextlib.closing(device.create_stream())))
    devices[0].set_current()
    event = stack.enter_context(contextlib.closing(devices[0].create_event()))
    c = library, (ctypes.c_void_p * len(SYMBOLS))(*(_native.symbol_address("cuda", name) for name in SYMBOLS))
    if not all(c[1]):
        sys.exit(f"the driver lacks one of {', '.join(SYMBOLS)}")

    def rows(sizes, *cases):
        for (label, count, columns_of), size in itertools.product(cases, sizes):
            with two_ways(size, pools, streams) as ways:
                used = ways[:count]
                columns = columns_of(*c, used)
                yield timed(label, columns, size, turns, count)
                for name, run in {"the turns": None, **columns}.items():
                    if run:
                        for way in used:
                            way.clear()
                        run(1)
                    for way in used:
                        way.check(label, name)

    found = show(list(rows(sizes, ("one way", 1, back_to_back), ("both ways at once", 2, back_to_back))))
    synced, awaited = (functools.partial(one_by_one, used) for used in (None, event))
    found += show(list(rows(LATENCY_SIZES, ("copy, sync", 1, synced), ("copy, event, wait, sync", 1, awaited))))
    with two_ways(kernel_size, pools, streams) as ways:
        return found + show([timed_sums(devices[0], pools[0], ways, turns)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", metavar="BYTES", help="multiples of 4")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file as well")
    options = parser.parse_args()
    devices = two_devices()
    on_cpu = _native.device() == "cpu"
    sizes = options.sizes or [size for size in SIZES if size <= CPU_MOST or not on_cpu]
    names = [device.name for device in devices]
    print(f"{' and '.join(names)}; {machine()}")
    print(f"C peer: cuMemcpyPeerAsync; C DtoD: cuMemcpyDtoDAsync; smallest of {options.turns} turns\n")
    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as folder, contextlib.ExitStack() as stack:
        library = ctypes.CDLL(str(build_library(HERE / "peer_copies.c", pathlib.Path(folder))))
        rows = measure(stack, devices, library, sizes, CPU_MOST if on_cpu else 256 << 20, options.turns)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"devices": names, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
