"""Kernel arguments as NumPy arrays; the array of their addresses is passed through the buffer protocol."""

import numpy as np
from common import RECORD, check, load_kernel, read
from cuda.bindings import driver, runtime

module, kernel = load_kernel(RECORD, b"record")
celsius = np.dtype([("degrees", np.int32)], align=True)
numbers, ratios, all_ = (check(runtime.cudaMalloc(dtype.itemsize)) for dtype in map(np.dtype, ("i4", "f4", celsius)))
arguments = (
    np.array(42, np.uint32),
    np.array([numbers], np.intp),
    np.array(0.625, np.float32),
    np.array([ratios], np.intp),
    np.array([21], celsius),
    np.array([all_], np.intp),
)
addresses = np.array([argument.ctypes.data for argument in arguments], np.intp)
stream = check(driver.cuStreamCreate(0))
check(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, kernelParams=addresses, extra=0))
check(driver.cuStreamSynchronize(stream))
print(read(numbers, np.int32)[0], read(ratios, np.float32)[0], read(all_, celsius)["degrees"][0])
