from enum import IntEnum
from typing import Any

__all__ = ["DLDeviceType", "classify_dl_device", "make_py_capsule"]

class DLDeviceType(IntEnum):
    """Kinds of memory, as DLPack numbers them."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLCUDAManaged = 13

def classify_dl_device(buf: Any) -> tuple[int, int]:
    """The kind of memory and the device number of a buffer."""

def make_py_capsule(buf: Any, versioned: bool) -> Any:
    """A capsule of a buffer's memory, with nothing waited for."""
