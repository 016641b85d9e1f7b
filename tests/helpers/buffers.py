"""Buffers of cuda.core, seen from the host."""

import ctypes

import numpy as np


def contents(buffer, stream):
    """The bytes of a buffer, copied in stream order."""
    out = np.empty(buffer.size, np.uint8)
    buffer.copy_to(out, stream=stream)
    stream.sync()
    return bytes(out)


def host_view(buffer):
    """Host-accessible memory of a buffer as an array of bytes."""
    return np.frombuffer((ctypes.c_uint8 * buffer.size).from_address(buffer.handle), np.uint8)
