"""Export of buffers by DLPack."""

from enum import IntEnum

__all__ = ["DLDeviceType", "classify_dl_device", "make_py_capsule"]


class DLDeviceType(IntEnum):
    """Kinds of memory, as DLPack numbers them."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLCUDAManaged = 13


def classify_dl_device(buf: "object") -> "tuple[int, int]":
    """The kind of memory and the device number of a buffer.

    Parameters
    ----------
    buf : Buffer
        Or any object with ``is_device_accessible``, ``is_host_accessible``, ``is_managed`` and ``device_id``.
    """
    on_device, on_host = buf.is_device_accessible, buf.is_host_accessible
    if on_device and not on_host:
        return int(DLDeviceType.kDLCUDA), buf.device_id
    if on_device:
        return int(DLDeviceType.kDLCUDAManaged if buf.is_managed else DLDeviceType.kDLCUDAHost), 0
    if on_host:
        return int(DLDeviceType.kDLCPU), 0
    raise BufferError("neither the host nor a device can use the memory of this buffer")


def make_py_capsule(buf: "object", versioned: "bool") -> "object":
    """A capsule of a buffer's memory, with nothing waited for.

    Parameters
    ----------
    buf : Buffer
        The buffer.
    versioned : bool
        Whether the capsule is of DLPack's version 1.
    """
    return buf.__dlpack__(stream=-1, max_version=(1, 0) if versioned else None)
