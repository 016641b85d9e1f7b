"""The least that Python can cost: times the calls of floor.c in this interpreter and prints JSON.

    floor_side.py floor.so ROUNDS [LIBCUDART]

With a libcudart the rows of runtime.py, otherwise those of core.py.
"""

import ctypes
import importlib.machinery
import importlib.util
import itertools
import json
import sys
import time

from loops import empty, pairing

# Of the driver, as floor.c is given them.
OF_CORE = (
    "cuEventCreate cuEventDestroy cuMemAllocFromPoolAsync cuMemFreeAsync cuThreadExchangeStreamCaptureMode"
).split()


def load(path):
    loader = importlib.machinery.ExtensionFileLoader("floor", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location("floor", path, loader=loader))
    loader.exec_module(module)
    return module


def check(status):
    if status != 0:
        raise RuntimeError(status)


class Driver:
    """Functions of the driver, found as programs are to find them."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")

    def address(self, name):
        found, status = ctypes.c_void_p(), ctypes.c_int()
        find = self.library.cuGetProcAddress_v2
        check(find(name.encode(), ctypes.byref(found), 12000, ctypes.c_uint64(0), ctypes.byref(status)))
        if not found.value:
            raise RuntimeError(f"no {name}")
        return found.value

    def __getattr__(self, name):
        return ctypes.CFUNCTYPE(ctypes.c_int)(self.address(name))


def main():
    floor, rounds = load(sys.argv[1]), int(sys.argv[2])
    driver = Driver()
    synchronize = driver.cuCtxSynchronize

    def timed(count, one):
        """As in the other sides."""
        best = float("inf")
        clock = time.perf_counter_ns
        for _ in range(rounds):
            loop = itertools.repeat(None, count)
            start = clock()
            one(loop)
            best = min(best, (clock() - start) / count)
            check(synchronize())
        return best

    if len(sys.argv) > 3:
        runtime = ctypes.CDLL(sys.argv[3])
        check(runtime.cudaSetDevice(0))
        check(runtime.cudaFree(None))
        names = "cudaMalloc cudaFree cudaMallocHost cudaFreeHost cudaStreamCreate cudaStreamDestroy".split()
        floor.setup(*(ctypes.cast(getattr(runtime, name), ctypes.c_void_p).value for name in names), *[0] * 7)
        # Some memory stays in use, as on the other sides: the driver would give the last of it back to the system.
        kept = floor.malloc(1 << 20), floor.malloc_host(1 << 20)
        rows = {
            "cudaMalloc + cudaFree": timed(100, pairing(floor.malloc, floor.free, 256)),
            "cudaMallocHost + cudaFreeHost": timed(20, pairing(floor.malloc_host, floor.free_host, 256)),
            "cudaStreamCreate + cudaStreamDestroy": timed(20, pairing(floor.stream_create, floor.stream_destroy)),
        }
    else:
        device = ctypes.c_int()
        context, pool, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        check(driver.cuInit(0))
        check(driver.cuDeviceGet(ctypes.byref(device), 0))
        check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        check(driver.cuCtxSetCurrent(context))
        check(driver.cuDeviceGetMemPool(ctypes.byref(pool), device))
        check(driver.cuStreamCreate(ctypes.byref(stream), 1))
        floor.setup(*[0] * 6, *map(driver.address, OF_CORE), pool.value, stream.value)

        kept = [floor.Device().allocate(256, stream=stream) for _ in range(2)]

        def events(loop):
            create = floor.Device().create_event
            options = object()
            for _ in loop:
                create(options).close()

        def buffers(loop):
            allocate = floor.Device().allocate
            for _ in loop:
                allocate(256, stream=stream).close(stream)

        rows = {
            "create_event + close": timed(500, events),
            "Buffer: allocate + close": timed(100, buffers),
        }
    del kept
    print(json.dumps({"rows": rows, "loop": timed(2000, empty)}))


if __name__ == "__main__":
    main()
