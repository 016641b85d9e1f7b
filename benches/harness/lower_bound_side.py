"""Times the calls of lower_bound.c in this interpreter and prints JSON.

    lower_bound_side.py lower_bound.so ROUNDS [LIBCUDART]

With a libcudart the rows of runtime.py, otherwise those of core.py.
"""

import ctypes
import importlib.machinery
import importlib.util
import json
import sys

from harness.timing import empty, pairing, smallest_mean

# The driver functions that lower_bound.c calls, in the order of its setup().
DRIVER_FUNCTIONS = (
    "cuEventCreate cuEventDestroy cuMemAllocFromPoolAsync cuMemFreeAsync cuThreadExchangeStreamCaptureMode"
).split()


def load(path):
    loader = importlib.machinery.ExtensionFileLoader("lower_bound", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location("lower_bound", path, loader=loader))
    loader.exec_module(module)
    return module


def check(status):
    if status != 0:
        raise RuntimeError(status)


class Driver:
    """Driver functions, looked up with cuGetProcAddress."""

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
    extension, rounds = load(sys.argv[1]), int(sys.argv[2])
    driver = Driver()
    synchronize = driver.cuCtxSynchronize

    def time_of(count, one):
        return smallest_mean(rounds, count, one, lambda: check(synchronize()))

    if len(sys.argv) > 3:
        runtime = ctypes.CDLL(sys.argv[3])
        check(runtime.cudaSetDevice(0))
        check(runtime.cudaFree(None))
        names = "cudaMalloc cudaFree cudaMallocHost cudaFreeHost cudaStreamCreate cudaStreamDestroy".split()
        extension.setup(*(ctypes.cast(getattr(runtime, name), ctypes.c_void_p).value for name in names), *[0] * 7)
        # Keep some memory in use, as on the other sides: the driver returns the last block to the system.
        kept = extension.malloc(1 << 20), extension.malloc_host(1 << 20)
        rows = {
            "cudaMalloc + cudaFree": time_of(100, pairing(extension.malloc, extension.free, 256)),
            "cudaMallocHost + cudaFreeHost": time_of(20, pairing(extension.malloc_host, extension.free_host, 256)),
            "cudaStreamCreate + cudaStreamDestroy": time_of(
                20, pairing(extension.stream_create, extension.stream_destroy)
            ),
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
        extension.setup(*[0] * 6, *map(driver.address, DRIVER_FUNCTIONS), pool.value, stream.value)

        kept = [extension.Device().allocate(256, stream=stream) for _ in range(2)]

        def events(loop):
            create = extension.Device().create_event
            options = object()
            for _ in loop:
                create(options).close()

        def buffers(loop):
            allocate = extension.Device().allocate
            for _ in loop:
                allocate(256, stream=stream).close(stream)

        rows = {
            "create_event + close": time_of(500, events),
            "Buffer: allocate + close": time_of(100, buffers),
        }
    del kept
    print(json.dumps({"rows": rows, "loop": time_of(2000, empty)}))


if __name__ == "__main__":
    main()
