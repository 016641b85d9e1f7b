"""Objects with hand-written array interfaces, for the tests of views."""

import numpy as np


class Cai:
    """An object with __cuda_array_interface__."""

    def __init__(self, buffer, **changes):
        entries = {"shape": (3, 4), "typestr": "<f4", "data": (int(buffer.handle), False), "version": 3, **changes}
        self.__cuda_array_interface__ = {k: v for k, v in entries.items() if v is not ...}


class Ai:
    """An object with __array_interface__."""

    def __init__(self, source, **changes):
        entries = {"shape": (3, 4), "typestr": "<f4", "data": (source.ctypes.data, False), "version": 3, **changes}
        self.__array_interface__ = {k: v for k, v in entries.items() if v is not ...}


def floats():
    return np.arange(12, dtype=np.float32).reshape(3, 4)


def facts(view):
    return view.ptr, view.shape, view.strides, view.size, view.dtype, view.device_id, view.is_device_accessible
