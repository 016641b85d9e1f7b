"""Kernel arguments as a pair of values and ctypes types; None takes a ctypes value as it is."""

import ctypes

import numpy as np
from common import RECORD, check, load_kernel, read
from cuda.bindings import driver, runtime


class Celsius(ctypes.Structure):
    _fields_ = [("degrees", ctypes.c_int)]


module, kernel = load_kernel(RECORD, b"record")
numbers, ratios, all_ = (check(runtime.cudaMalloc(ctypes.sizeof(t))) for t in (ctypes.c_int, ctypes.c_float, Celsius))
values = (42, numbers, 0.625, ratios, Celsius(21), all_)
types = (ctypes.c_int, ctypes.c_void_p, ctypes.c_float, ctypes.c_void_p, None, ctypes.c_void_p)
stream = check(driver.cuStreamCreate(0))
check(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, kernelParams=(values, types), extra=0))
check(driver.cuStreamSynchronize(stream))
print(read(numbers, np.int32)[0], read(ratios, np.float32)[0], read(all_, np.int32)[0])
