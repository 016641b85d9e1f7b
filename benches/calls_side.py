"""One side of calls.py: times driver calls in this interpreter and prints JSON. Runs with Cupyrite and with its peer.

    calls_side.py FILE.ptx LAUNCHES [calls.so]

With a shared library made of calls.c the same calls are timed from C too, at the addresses that cuGetProcAddress
gives: that is how the CPU device, which is no library of its own, gets its row of plain C.
"""

import ctypes
import itertools
import json
import sys
import time

from cuda.bindings import driver
from loops import calling, empty, pairing

# The same order as NAMES in calls.c, as (base name, CUDA version of the form).
SYMBOLS = (
    ("cuInit", 2000),
    ("cuDeviceGet", 2000),
    ("cuDevicePrimaryCtxRetain", 7000),
    ("cuCtxSetCurrent", 4000),
    ("cuCtxGetCurrent", 4000),
    ("cuStreamCreate", 2000),
    ("cuStreamGetCtx", 9020),
    ("cuStreamQuery", 2000),
    ("cuDeviceGetAttribute", 2000),
    ("cuEventCreate", 2000),
    ("cuEventDestroy", 4000),
    ("cuModuleLoadData", 2000),
    ("cuModuleGetFunction", 2000),
    ("cuLaunchKernel", 4000),
    ("cuCtxSynchronize", 2000),
)
ROWS = (
    "cuCtxSetCurrent",
    "cuStreamQuery",
    "cuCtxGetCurrent",
    "cuStreamGetCtx",
    "cuDeviceGetAttribute",
    "cuEventCreate + cuEventDestroy",
    "cuLaunchKernel, 16 arguments",
    "cuLaunchKernel, 512 arguments",
)


def check(result):
    if result[0] != 0:
        raise RuntimeError(result[0])
    return result[1] if len(result) == 2 else None


def smallest(function, arguments, rounds, count, between=lambda: None):
    """Nanoseconds a call: the smallest mean of some rounds. The loop itself is part of it."""
    return fastest(calling(function, *arguments), rounds, count, between)


def fastest(one, rounds, count, between=lambda: None):
    best = float("inf")
    clock = time.perf_counter_ns
    for _ in range(rounds):
        loop = itertools.repeat(None, count)
        start = clock()
        one(loop)
        best = min(best, (clock() - start) / count)
        between()
    return best


def from_python(ptx, launches):
    """The rows, called from Python."""
    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    context = check(driver.cuDevicePrimaryCtxRetain(device))
    check(driver.cuCtxSetCurrent(context))
    stream = check(driver.cuStreamCreate(0))
    module = check(driver.cuModuleLoadData(ptx))
    kernel16 = check(driver.cuModuleGetFunction(module, b"sixteen"))
    kernel512 = check(driver.cuModuleGetFunction(module, b"many"))
    arguments16 = (
        (1, 2.0, 0, 3.0) * 4,
        (ctypes.c_int, ctypes.c_float, ctypes.c_void_p, ctypes.c_double) * 4,
    )
    arguments512 = ((1,) * 512, (ctypes.c_int,) * 512)
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    launch = driver.cuLaunchKernel
    call16 = (kernel16, 1, 1, 1, 1, 1, 1, 0, stream, arguments16, 0)
    call512 = (kernel512, 1, 1, 1, 1, 1, 1, 0, stream, arguments512, 0)
    check(launch(*call16))
    check(launch(*call512))
    check(driver.cuCtxSynchronize())

    return [
        smallest(driver.cuCtxSetCurrent, (context,), 20, 20000),
        smallest(driver.cuStreamQuery, (stream,), 20, 20000),
        smallest(driver.cuCtxGetCurrent, (), 20, 20000),
        smallest(driver.cuStreamGetCtx, (stream,), 20, 20000),
        smallest(driver.cuDeviceGetAttribute, (attribute, device), 20, 20000),
        fastest(pairing(driver.cuEventCreate, driver.cuEventDestroy, 0), 20, 5000),
        smallest(launch, call16, 100, launches, driver.cuCtxSynchronize),
        smallest(launch, call512, 100, launches, driver.cuCtxSynchronize),
    ]


def from_c(library, ptx, launches):
    """The rows, called from C at the addresses the driver gives."""
    addresses = (ctypes.c_void_p * len(SYMBOLS))()
    for number, (name, version) in enumerate(SYMBOLS):
        result = driver.cuGetProcAddress(name.encode(), version, 0)
        if result[0] != 0 or not result[1]:
            raise RuntimeError(f"cuGetProcAddress({name}): {result}")
        addresses[number] = int(result[1])
    results = (ctypes.c_double * len(ROWS))()
    if ctypes.CDLL(library).bench(addresses, ptx, launches, results) != 0:
        raise RuntimeError("calls.c failed")
    return list(results)


def main():
    with open(sys.argv[1], "rb") as file:
        ptx = file.read() + b"\0"
    launches = int(sys.argv[2])
    result = {"python": from_python(ptx, launches), "loop": fastest(empty, 20, 20000)}
    result["nothing"] = smallest(id, (None,), 20, 20000) - result["loop"]
    if len(sys.argv) > 3:
        result["c"] = from_c(sys.argv[3], ptx, launches)
    device = check(driver.cuDeviceGetName(256, check(driver.cuDeviceGet(0))))
    result["device"] = device.rstrip(b"\0").decode()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
