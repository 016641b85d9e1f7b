"""One side of calls.py: times driver calls in this interpreter and prints JSON. Runs with Cupyrite and with its peer.

    calls_side.py FILE.ptx LAUNCHES [calls.so]

With a shared library built from calls.c the same calls are timed from C too, at the addresses that cuGetProcAddress
returns: the CPU device has no shared library of its own that a C program could open.
"""

import ctypes
import json
import sys

from cuda.bindings import driver

from harness.timing import calling, empty, pairing, smallest_mean

# (base name, CUDA version of the entry point), in the order of NAMES in calls.c.
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


def from_python(ptx, launches_a_round):
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

    def time_of(function, *arguments):
        return smallest_mean(20, 20000, calling(function, *arguments))

    def launches(call):
        return smallest_mean(100, launches_a_round, calling(launch, *call), driver.cuCtxSynchronize)

    return [
        time_of(driver.cuCtxSetCurrent, context),
        time_of(driver.cuStreamQuery, stream),
        time_of(driver.cuCtxGetCurrent),
        time_of(driver.cuStreamGetCtx, stream),
        time_of(driver.cuDeviceGetAttribute, attribute, device),
        smallest_mean(20, 5000, pairing(driver.cuEventCreate, driver.cuEventDestroy, 0)),
        launches(call16),
        launches(call512),
    ]


def from_c(library, ptx, launches):
    """The rows, called from C at the addresses that the driver returns."""
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
    result = {"python": from_python(ptx, launches), "loop": smallest_mean(20, 20000, empty)}
    result["id"] = smallest_mean(20, 20000, calling(id, None)) - result["loop"]
    if len(sys.argv) > 3:
        result["c"] = from_c(sys.argv[3], ptx, launches)
    device = check(driver.cuDeviceGetName(256, check(driver.cuDeviceGet(0))))
    result["device"] = device.rstrip(b"\0").decode()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
