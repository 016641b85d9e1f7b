"""DLPack export of buffers."""

from __future__ import annotations

from enum import IntEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["DLDeviceType", "classify_dl_device", "make_py_capsule"]


class DLDeviceType(IntEnum):
    """DLPack device types."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLCUDAManaged = 13


def classify_dl_device(buf: Any) -> tuple[int, int]:
    """DLPack device type and device number of a buffer.

    Parameters
    ----------
    buf : Buffer
        A buffer, or any object with ``is_device_accessible``, ``is_host_accessible``, ``is_managed`` and ``device_id``.
    """
    on_device, on_host = buf.is_device_accessible, buf.is_host_accessible
    if on_device and not on_host:
        return int(DLDeviceType.kDLCUDA), buf.device_id
    if on_device:
        return int(DLDeviceType.kDLCUDAManaged if buf.is_managed else DLDeviceType.kDLCUDAHost), 0
    if on_host:
        return int(DLDeviceType.kDLCPU), 0
    raise BufferError("the buffer is neither host-accessible nor device-accessible")


def make_py_capsule(buf: Any, versioned: bool) -> Any:
    """DLPack capsule of a buffer, exported without stream synchronization.

    Parameters
    ----------
    buf : Buffer
        The buffer to export.
    versioned : bool
        Whether to return a DLPack 1 (versioned) capsule.
    """
    return buf.__dlpack__(stream=-1, max_version=(1, 0) if versioned else None)
