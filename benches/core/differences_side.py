"""One side of differences.py: times calls from Python and from C in this interpreter and prints JSON.

    differences_side.py SIDE differences.so LIBCUDART ROUNDS

SIDE is "package" for the package that this interpreter imports as cuda, or the file built from lower_bound.c. Rounds of a
few dozen calls from C and from Python take turns, and so do the rows, so that each row is measured over the whole life of
the process. The smallest round of each row counts: the driver is in the same state for C and Python, and disturbances only
add time.
"""

import ctypes
import json
import sys

from harness.lower_bound_side import DRIVER_FUNCTIONS, Driver, check, load
from harness.ptx import FOR_CORE, empty_kernels
from harness.timing import calling, empty, mean, pairing

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
# Calls a round, of some microseconds each: a round ends before the clock rate changes.
COUNTS = (50, 20, 20, 50, 50, 100, 50, 50)
BYTES = 256


class Fixture:
    """What both halves use on the device, created through the driver: a pool, a stream, some memory and a kernel."""

    def __init__(self, libcudart):
        self.driver, self.runtime = Driver(), ctypes.CDLL(libcudart)
        check(self.runtime.cudaSetDevice(0))
        # Keep some memory in use: the driver returns the last block to the system.
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
        self.ptx = empty_kernels(FOR_CORE).encode()
        check(self.driver.cuLibraryLoadData(ctypes.byref(library), self.ptx, None, None, 0, None, None, 0))
        check(self.driver.cuLibraryGetKernel(ctypes.byref(self.kernel), library, b"three"))
        self.synchronize = self.driver.cuCtxSynchronize
        check(self.synchronize())

    def functions(self):
        """Addresses of the functions, in the order of differences.c."""
        addresses = [ctypes.cast(getattr(self.runtime, name), ctypes.c_void_p).value for name in RUNTIME]
        return addresses + [self.driver.address(name) for name in DRIVER]

    def arguments(self):
        """The array that differences.c receives."""
        handles = [self.memory.value, self.host.value, self.pool.value, self.stream.value, self.kernel.value]
        return (ctypes.c_void_p * (len(RUNTIME) + len(DRIVER) + len(handles)))(*self.functions(), *handles)


def core_pairs(create, options, allocate, stream):
    """The pairs of cuda.core: an event is created and closed, a buffer allocated and closed."""

    def events(loop):
        for _ in loop:
            create(options).close()

    def buffers(loop):
        for _ in loop:
            allocate(BYTES, stream=stream).close(stream)

    return events, buffers


def of_package(fixture):
    """The rows through the installed package: functions that run through a loop."""
    from cuda.bindings import runtime as r
    from cuda.core import Device, EventOptions, LaunchConfig, ObjectCode, launch

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    kept = device.allocate(BYTES, stream=stream)
    runtime_stream = r.cudaStream_t(fixture.stream.value)
    to_device = r.cudaMemcpyKind.cudaMemcpyHostToDevice

    # `kept` keeps its memory in use.
    def copies(loop, copy=r.cudaMemcpy, target=fixture.memory.value, source=fixture.host.value, kept=kept):
        for _ in loop:
            copy(target, source, BYTES, to_device)

    events, buffers = core_pairs(device.create_event, EventOptions(), device.memory_resource.allocate, stream)
    kernel, config = ObjectCode.from_ptx(fixture.ptx).get_kernel("three"), LaunchConfig(grid=1, block=1)
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


def of_lower_bound(extension, fixture):
    """The rows that lower_bound.c has."""
    of_runtime = fixture.functions()[: RUNTIME.index("cudaMemcpy")]
    extension.setup(
        *of_runtime, *map(fixture.driver.address, DRIVER_FUNCTIONS), fixture.pool.value, fixture.stream.value
    )
    device = extension.Device()
    events, buffers = core_pairs(device.create_event, object(), device.allocate, object())
    return (
        pairing(extension.malloc, extension.free, BYTES),
        pairing(extension.malloc_host, extension.free_host, BYTES),
        pairing(extension.stream_create, extension.stream_destroy),
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
    fixture = Fixture(libcudart)
    arguments = fixture.arguments()
    rows = of_package(fixture) if side == "package" else of_lower_bound(load(side), fixture)

    def in_c(row, count):
        mean = turn(row, count, arguments)
        if mean < 0:
            raise RuntimeError(f"{ROWS[row]} failed in C")
        return mean

    present = [row for row, one in enumerate(rows) if one is not None]
    c, python = [float("inf")] * len(rows), [float("inf")] * len(rows)
    loop = float("inf")
    for number in range(rounds):
        loop = min(loop, mean(empty, 1000))
        for row in present:
            count = COUNTS[row]
            check(fixture.synchronize())
            # The second one finds the driver warm: alternate.
            if number % 2:
                c[row] = min(c[row], in_c(row, count))
            python[row] = min(python[row], mean(rows[row], count))
            if not number % 2:
                c[row] = min(c[row], in_c(row, count))
    results = [
        {"c": c[row], "over": python[row] - loop - c[row]} if row in present else None for row in range(len(rows))
    ]
    check(fixture.synchronize())
    print(json.dumps(results))


if __name__ == "__main__":
    main()
