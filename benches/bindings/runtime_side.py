"""One side of runtime.py: times calls of the runtime API in this interpreter and prints JSON. Runs with Cupyrite and with
its peer.

    runtime_side.py FILE.ptx ROUNDS [runtime.so]

With a shared library built from runtime.c the same calls are timed from C too, at the addresses that Cupyrite calls: its
built-in runtime is not a shared library that a C program could open.
"""

import ctypes
import json
import sys

from cuda.bindings import driver, runtime

from harness.timing import calling, empty, pairing, smallest_mean

# In the order of NAMES in runtime.c; the last one is the driver's.
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


def synchronize():
    check(runtime.cudaDeviceSynchronize())


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
    synchronize()

    def call(count, function, *arguments):
        return smallest_mean(rounds, count, calling(function, *arguments), synchronize)

    def pair(count, create, destroy, *arguments, also=()):
        return smallest_mean(rounds, count, pairing(create, destroy, *arguments, also=also), synchronize)

    return [
        call(2000, r.cudaSetDevice, 0),
        call(2000, r.cudaGetDevice),
        pair(100, r.cudaMalloc, r.cudaFree, BYTES),
        pair(100, r.cudaMallocAsync, r.cudaFreeAsync, BYTES, stream, also=(stream,)),
        pair(20, r.cudaMallocHost, r.cudaFreeHost, BYTES),
        call(200, r.cudaMemcpy, memory, address, BYTES, to_device),
        call(200, r.cudaMemcpyAsync, memory, host, BYTES, to_device, stream),
        call(200, r.cudaMemset, memory, 0, BYTES),
        call(200, r.cudaMemsetAsync, memory, 0, BYTES, stream),
        pair(20, r.cudaStreamCreate, r.cudaStreamDestroy),
        call(2000, r.cudaStreamQuery, stream),
        call(500, r.cudaStreamSynchronize, stream),
        call(500, r.cudaStreamWaitEvent, stream, event, 0),
        pair(500, r.cudaEventCreate, r.cudaEventDestroy),
        call(200, r.cudaEventRecord, event, stream),
        call(2000, r.cudaEventQuery, event),
        call(500, r.cudaEventSynchronize, event),
        call(500, r.cudaEventElapsedTime, begin, event),
        call(200, driver.cuLaunchKernel, *launch),
        call(500, r.cudaDeviceSynchronize),
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
    result = {"rows": ROWS, "python": from_python(ptx, rounds), "loop": smallest_mean(rounds, 2000, empty, synchronize)}
    if len(sys.argv) > 3:
        result["c"] = from_c(sys.argv[3], ptx, rounds)
    name = check(driver.cuDeviceGetName(256, check(driver.cuDeviceGet(0))))
    result["device"] = name.rstrip(b"\0").decode()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
