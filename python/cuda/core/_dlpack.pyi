from enum import IntEnum
from typing import Any

__all__ = ["DLDeviceType", "classify_dl_device", "make_py_capsule"]

class DLDeviceType(IntEnum):
    """DLPack device types."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLCUDAManaged = 13

def classify_dl_device(buf: Any) -> tuple[int, int]:
    """DLPack device type and device number of a buffer."""

def make_py_capsule(buf: Any, versioned: bool) -> Any:
    """DLPack capsule of a buffer, exported without stream synchronization."""
