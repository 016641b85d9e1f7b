"""One side of differences.py: what some pairs of calls cost over C, both in this interpreter, and prints JSON.

    differences_side.py SIDE differences.so LIBCUDART ROUNDS

SIDE is "package" for the package that this interpreter imports as cuda, or the file that floor.c was built to. Rounds of a
few dozen calls of C and of Python take turns, and so do the rows, so that each row is measured for as long as the process
lives. Of each row the smallest rounds count: the driver is in the same state for both, whatever it is, and what disturbs a
round only adds to it.
"""

import ctypes
import itertools
import json
import sys
import time

from core import kernels
from floor_side import OF_CORE, Driver, check, load
from loops import calling, empty, pairing

try:
    from numpy import float32
except ImportError:
    from ctypes import c_float as float32

# As in differences.c.
RUNTIME = (
    "cudaMalloc cudaFree cudaMallocHost cudaFreeHost cudaStreamCreate cudaStreamDestroy cudaMemcpy cudaMallocAsync "
    "cudaFreeAsync"
).split()
DRIVER = "cuEventCreate cuEventDestroy cuMemAllocFromPoolAsync cuMemFreeAsync cuLaunchKernel".split()
ROWS = (
    "cudaMalloc + cudaFree",
    "cudaMallocHost + cudaFreeHost",
    "cudaStreamCreate + cudaStreamDestroy",
    "cudaMemcpy, 256 bytes to the device",
    "cudaMallocAsync + cudaFreeAsync",
    "create_event + close",
    "Buffer: allocate + close",
    "launch, 3 arguments",
)
# Calls a round: some microseconds each, so that a round is over before the machine changes.
COUNTS = (50, 20, 20, 50, 50, 100, 50, 50)
BYTES = 256


class Here:
    """What both halves need on the device: a pool, a stream, some memory and a kernel, by the driver itself."""

    def __init__(self, libcudart):
        self.driver, self.runtime = Driver(), ctypes.CDLL(libcudart)
        check(self.runtime.cudaSetDevice(0))
        # Some memory stays in use: the driver would give the last of it back to the system.
        self.memory, self.host, kept = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        check(self.runtime.cudaMalloc(ctypes.byref(self.memory), ctypes.c_size_t(1 << 20)))
        check(self.runtime.cudaMallocHost(ctypes.byref(kept), ctypes.c_size_t(1 << 20)))
        self.pageable = ctypes.create_string_buffer(BYTES)
        self.host.value = ctypes.addressof(self.pageable)
        self.pool, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        check(self.driver.cuDeviceGetMemPool(ctypes.byref(self.pool), 0))
        check(self.driver.cuStreamCreate(ctypes.byref(self.stream), 1))
        held = ctypes.c_void_p()
        check(self.driver.cuMemAllocFromPoolAsync(ctypes.byref(held), ctypes.c_size_t(BYTES), self.pool, self.stream))
        library, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.ptx = kernels().encode()
        check(self.driver.cuLibraryLoadData(ctypes.byref(library), self.ptx, None, None, 0, None, None, 0))
        check(self.driver.cuLibraryGetKernel(ctypes.byref(self.kernel), library, b"three"))
        self.synchronize = self.driver.cuCtxSynchronize
        check(self.synchronize())

    def functions(self):
        """Their addresses, in the order of differences.c."""
        addresses = [ctypes.cast(getattr(self.runtime, name), ctypes.c_void_p).value for name in RUNTIME]
        return addresses + [self.driver.address(name) for name in DRIVER]

    def given(self):
        """What differences.c is given."""
        things = [self.memory.value, self.host.value, self.pool.value, self.stream.value, self.kernel.value]
        return (ctypes.c_void_p * (len(RUNTIME) + len(DRIVER) + len(things)))(*self.functions(), *things)


def making(create, options, allocate, stream):
    """The rows of cuda.core: events and buffers that are made and closed."""

    def events(loop):
        for _ in loop:
            create(options).close()

    def buffers(loop):
        for _ in loop:
            allocate(BYTES, stream=stream).close(stream)

    return events, buffers


def of_package(here):
    """The rows, by the package that is there: functions that run through a loop."""
    from cuda.bindings import runtime as r
    from cuda.core import Device, EventOptions, LaunchConfig, ObjectCode, launch

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    kept = device.allocate(BYTES, stream=stream)
    runtime_stream = r.cudaStream_t(here.stream.value)
    to_device = r.cudaMemcpyKind.cudaMemcpyHostToDevice

    # Has the memory that stays in use, too.
    def copies(loop, copy=r.cudaMemcpy, target=here.memory.value, source=here.host.value, kept=kept):
        for _ in loop:
            copy(target, source, BYTES, to_device)

    events, buffers = making(device.create_event, EventOptions(), device.memory_resource.allocate, stream)
    kernel, config = ObjectCode.from_ptx(here.ptx).get_kernel("three"), LaunchConfig(grid=1, block=1)
    return (
        pairing(r.cudaMalloc, r.cudaFree, BYTES),
        pairing(r.cudaMallocHost, r.cudaFreeHost, BYTES),
        pairing(r.cudaStreamCreate, r.cudaStreamDestroy),
        copies,
        pairing(r.cudaMallocAsync, r.cudaFreeAsync, BYTES, runtime_stream, also=(runtime_stream,)),
        events,
        buffers,
        calling(launch, stream, config, kernel, float32(2), kept, ctypes.c_uint64(BYTES)),
    )


def of_floor(floor, here):
    """The same by floor.c, as far as that goes."""
    of_runtime = here.functions()[: RUNTIME.index("cudaMemcpy")]
    floor.setup(*of_runtime, *map(here.driver.address, OF_CORE), here.pool.value, here.stream.value)
    device = floor.Device()
    events, buffers = making(device.create_event, object(), device.allocate, object())
    return (
        pairing(floor.malloc, floor.free, BYTES),
        pairing(floor.malloc_host, floor.free_host, BYTES),
        pairing(floor.stream_create, floor.stream_destroy),
        None,
        None,
        events,
        buffers,
        None,
    )


def main():
    side, library, libcudart, rounds = *sys.argv[1:4], int(sys.argv[4])
    turn = ctypes.CDLL(library).turn
    turn.restype = ctypes.c_double
    here = Here(libcudart)
    given = here.given()
    rows = of_package(here) if side == "package" else of_floor(load(side), here)

    def in_c(row, count):
        mean = turn(row, count, given)
        if mean < 0:
            raise RuntimeError(f"{ROWS[row]} failed in C")
        return mean

    def in_python(one, count):
        loop, clock = itertools.repeat(None, count), time.perf_counter_ns
        start = clock()
        one(loop)
        return (clock() - start) / count

    there = [row for row, one in enumerate(rows) if one is not None]
    c, python = [float("inf")] * len(rows), [float("inf")] * len(rows)
    loop = float("inf")
    for number in range(rounds):
        loop = min(loop, in_python(empty, 1000))
        for row in there:
            count = COUNTS[row]
            check(here.synchronize())
            # Whichever comes second finds the driver warm.
            if number % 2:
                c[row] = min(c[row], in_c(row, count))
            python[row] = min(python[row], in_python(rows[row], count))
            if not number % 2:
                c[row] = min(c[row], in_c(row, count))
    found = [{"c": c[row], "over": python[row] - loop - c[row]} if row in there else None for row in range(len(rows))]
    check(here.synchronize())
    print(json.dumps(found))


if __name__ == "__main__":
    main()
