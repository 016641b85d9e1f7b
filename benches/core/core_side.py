"""One side of core.py: times cuda.core in this interpreter and prints JSON. Runs with Cupyrite and with its peer.

    core_side.py FILE.ptx ROUNDS [core.so]

With a shared library built from core.c the driver calls behind it are timed from C too, at the addresses that Cupyrite
calls: the CPU device has no shared library of its own that a C program could open.
"""

import ctypes
import json
import sys
import tempfile

from cuda.core import Device, EventOptions, LaunchConfig, ObjectCode, launch

from harness.timing import calling, empty, smallest_mean

try:
    from numpy import float32
except ImportError:
    from ctypes import c_float as float32

# In the order of NAMES in core.c.
SYMBOLS = (
    "cuInit cuDeviceGet cuDevicePrimaryCtxRetain cuCtxSetCurrent cuCtxGetDevice cuCtxSynchronize cuStreamCreate "
    "cuStreamCreateWithPriority cuStreamDestroy cuStreamSynchronize cuEventCreate cuEventDestroy cuEventRecord "
    "cuLibraryLoadData cuLibraryGetKernel cuDeviceGetMemPool cuMemAllocFromPoolAsync cuMemFreeAsync cuMemcpyAsync "
    "cuLaunchKernel"
).split()
# The last one has no counterpart in C.
ROWS = (
    "launch, no arguments",
    "launch, 3 arguments",
    "launch, 16 arguments",
    "Device()",
    "create_event + close",
    "create_stream + close",
    "Stream.record(event)",
    "Stream.sync",
    "Buffer: allocate + close",
    "Buffer.copy_to(buffer)",
    "a hit of the disk cache, 32 kB",
)
BYTES = 256


def from_python(ptx, rounds):
    """The rows, called from Python."""
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    code = ObjectCode.from_ptx(ptx)
    none, three, sixteen = (code.get_kernel(name) for name in ("none", "three", "sixteen"))
    config = LaunchConfig(grid=1, block=1)
    source, target = (device.allocate(BYTES, stream=stream) for _ in range(2))
    event = device.create_event()
    options = EventOptions()
    arguments3 = (float32(2), source, ctypes.c_uint64(BYTES))
    arguments16 = (source, float32(2), ctypes.c_int(1), BYTES) * 4

    def launches(kernel, arguments):
        return time_of(256, calling(launch, stream, config, kernel, *arguments))

    def devices(loop):
        for _ in loop:
            Device()

    def events(loop):
        create = device.create_event
        for _ in loop:
            create(options).close()

    def streams(loop):
        create = device.create_stream
        for _ in loop:
            create().close()

    def records(loop):
        record = stream.record
        for _ in loop:
            record(event)

    def syncs(loop):
        sync = stream.sync
        for _ in loop:
            sync()

    def buffers(loop):
        allocate = device.memory_resource.allocate
        for _ in loop:
            allocate(BYTES, stream=stream).close(stream)

    def copies(loop):
        copy = source.copy_to
        for _ in loop:
            copy(target, stream=stream)

    def time_of(count, one):
        one((None,))
        stream.sync()
        return smallest_mean(rounds, count, one, stream.sync)

    rows = [
        launches(none, ()),
        launches(three, arguments3),
        launches(sixteen, arguments16),
        time_of(2000, devices),
        time_of(500, events),
        time_of(20, streams),
        time_of(200, records),
        time_of(500, syncs),
        time_of(100, buffers),
        time_of(200, copies),
    ]
    from cuda.core.utils import FileStreamProgramCache

    with tempfile.TemporaryDirectory(prefix="cupyrite-bench-") as folder, FileStreamProgramCache(folder) as cache:
        key = b"k" * 32
        cache[key] = bytes(range(256)) * 128

        def hits(loop):
            for _ in loop:
                cache[key]

        rows.append(time_of(100, hits))
    return rows


def from_c(library, ptx, rounds):
    """The rows but the last, called from C at the addresses that Cupyrite calls."""
    from cupyrite import _native

    addresses = (ctypes.c_void_p * len(SYMBOLS))()
    for number, name in enumerate(SYMBOLS):
        addresses[number] = _native.symbol_address("cuda", name) or _native.symbol_address("cuda", f"{name}_v2")
        if not addresses[number]:
            raise RuntimeError(f"no {name}")
    results = (ctypes.c_double * (len(ROWS) - 1))()
    if ctypes.CDLL(library).bench(addresses, ptx + b"\0", rounds, results) != 0:
        raise RuntimeError("core.c failed")
    return list(results)


def main():
    with open(sys.argv[1], "rb") as file:
        ptx = file.read()
    rounds = int(sys.argv[2])
    result = {"rows": ROWS, "python": from_python(ptx, rounds), "device": Device(0).name}
    result["loop"] = smallest_mean(rounds, 2000, empty)
    if len(sys.argv) > 3:
        result["c"] = from_c(sys.argv[3], ptx, rounds)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
