"""One side of runtime.py: times calls of the runtime API in this interpreter and prints JSON. Runs with Cupyrite and with
its peer.

    runtime_side.py FILE.ptx ROUNDS [runtime.so]

With a shared library made of runtime.c the same calls are timed from C too, at the addresses that Cupyrite calls: that
is how its own runtime, which is no library of its own, gets its row of plain C.
"""

import ctypes
import itertools
import json
import sys
import time

from cuda.bindings import driver, runtime
from loops import calling, empty, pairing

# The same order as NAMES in runtime.c; the last one is the driver's.
SYMBOLS = (
    "cudaSetDevice cudaGetDevice cudaMalloc cudaFree cudaMallocAsync cudaFreeAsync cudaMallocHost cudaFreeHost cudaMemcpy "
    "cudaMemcpyAsync cudaMemset cudaMemsetAsync cudaStreamCreate cudaStreamDestroy cudaStreamQuery cudaStreamSynchronize "
    "cudaStreamWaitEvent cudaEventCreate cudaEventDestroy cudaEventRecord cudaEventQuery cudaEventSynchronize "
    "cudaEventElapsedTime cudaLibraryLoadData cudaLibraryGetKernel cudaDeviceSynchronize cuLaunchKernel"
).split()
ROWS = (
    "cudaSetDevice",
    "cudaGetDevice",
    "cudaMalloc + cudaFree",
    "cudaMallocAsync + cudaFreeAsync",
    "cudaMallocHost + cudaFreeHost",
    "cudaMemcpy, 256 bytes to the device",
    "cudaMemcpyAsync, 256 bytes to the device",
    "cudaMemset, 256 bytes",
    "cudaMemsetAsync, 256 bytes",
    "cudaStreamCreate + cudaStreamDestroy",
    "cudaStreamQuery",
    "cudaStreamSynchronize",
    "cudaStreamWaitEvent",
    "cudaEventCreate + cudaEventDestroy",
    "cudaEventRecord",
    "cudaEventQuery",
    "cudaEventSynchronize",
    "cudaEventElapsedTime",
    "cuLaunchKernel of a cudaKernel_t, 16 arguments",
    "cudaDeviceSynchronize",
)
BYTES = 256


def check(result):
    if result[0] != 0:
        raise RuntimeError(result[0])
    return result[1] if len(result) == 2 else None


def timed(rounds, count, one):
    """Nanoseconds a turn: the smallest mean of some rounds of `one(loop)`, which runs through the loop."""
    best = float("inf")
    clock = time.perf_counter_ns
    for _ in range(rounds):
        loop = itertools.repeat(None, count)
        start = clock()
        one(loop)
        best = min(best, (clock() - start) / count)
        check(runtime.cudaDeviceSynchronize())
    return best


def call(rounds, count, function, *arguments):
    return timed(rounds, count, calling(function, *arguments))


def pair(rounds, count, make, drop, *arguments, also=()):
    """A call that makes something, and one that ends it."""
    return timed(rounds, count, pairing(make, drop, *arguments, also=also))


def from_python(ptx, rounds):
    """The rows, called from Python."""
    r = runtime
    check(r.cudaSetDevice(0))
    memory = check(r.cudaMalloc(1 << 20))
    host = check(r.cudaMallocHost(1 << 20))
    stream = check(r.cudaStreamCreate())
    begin, event = check(r.cudaEventCreate()), check(r.cudaEventCreate())
    library = check(r.cudaLibraryLoadData(ptx, None, None, 0, None, None, 0))
    kernel = driver.CUfunction(int(check(r.cudaLibraryGetKernel(library, b"sixteen"))))
    arguments = ((1, 2.0, 0, 3.0) * 4, (ctypes.c_int, ctypes.c_float, ctypes.c_void_p, ctypes.c_double) * 4)
    launch = (kernel, 1, 1, 1, 1, 1, 1, 0, driver.CUstream(int(stream)), arguments, 0)
    pageable = ctypes.create_string_buffer(BYTES)
    address = ctypes.addressof(pageable)
    to_device = r.cudaMemcpyKind.cudaMemcpyHostToDevice
    check(r.cudaFreeAsync(check(r.cudaMallocAsync(BYTES, stream)), stream))
    check(driver.cuLaunchKernel(*launch))
    check(r.cudaEventRecord(begin, stream))
    check(r.cudaEventRecord(event, stream))
    check(r.cudaDeviceSynchronize())
    return [
        call(rounds, 2000, r.cudaSetDevice, 0),
        call(rounds, 2000, r.cudaGetDevice),
        pair(rounds, 100, r.cudaMalloc, r.cudaFree, BYTES),
        pair(rounds, 100, r.cudaMallocAsync, r.cudaFreeAsync, BYTES, stream, also=(stream,)),
        pair(rounds, 20, r.cudaMallocHost, r.cudaFreeHost, BYTES),
        call(rounds, 200, r.cudaMemcpy, memory, address, BYTES, to_device),
        call(rounds, 200, r.cudaMemcpyAsync, memory, host, BYTES, to_device, stream),
        call(rounds, 200, r.cudaMemset, memory, 0, BYTES),
        call(rounds, 200, r.cudaMemsetAsync, memory, 0, BYTES, stream),
        pair(rounds, 20, r.cudaStreamCreate, r.cudaStreamDestroy),
        call(rounds, 2000, r.cudaStreamQuery, stream),
        call(rounds, 500, r.cudaStreamSynchronize, stream),
        call(rounds, 500, r.cudaStreamWaitEvent, stream, event, 0),
        pair(rounds, 500, r.cudaEventCreate, r.cudaEventDestroy),
        call(rounds, 200, r.cudaEventRecord, event, stream),
        call(rounds, 2000, r.cudaEventQuery, event),
        call(rounds, 500, r.cudaEventSynchronize, event),
        call(rounds, 500, r.cudaEventElapsedTime, begin, event),
        call(rounds, 200, driver.cuLaunchKernel, *launch),
        call(rounds, 500, r.cudaDeviceSynchronize),
    ]


def from_c(library, ptx, rounds):
    """The rows, called from C at the addresses that Cupyrite calls."""
    from cupyrite import _native

    addresses = (ctypes.c_void_p * len(SYMBOLS))()
    for number, name in enumerate(SYMBOLS):
        addresses[number] = _native.symbol_address("cudart" if name.startswith("cuda") else "cuda", name)
        if not addresses[number]:
            raise RuntimeError(f"no {name}")
    results = (ctypes.c_double * len(ROWS))()
    if ctypes.CDLL(library).bench(addresses, ptx, rounds, results) != 0:
        raise RuntimeError("runtime.c failed")
    return list(results)


def main():
    with open(sys.argv[1], "rb") as file:
        ptx = file.read() + b"\0"
    rounds = int(sys.argv[2])
    result = {"rows": ROWS, "python": from_python(ptx, rounds), "loop": timed(rounds, 2000, empty)}
    if len(sys.argv) > 3:
        result["c"] = from_c(sys.argv[3], ptx, rounds)
    name = check(driver.cuDeviceGetName(256, check(driver.cuDeviceGet(0))))
    result["device"] = name.rstrip(b"\0").decode()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
