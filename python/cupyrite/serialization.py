"""Conversion of buffers and strided views to host memory and back, for libraries that send objects between processes.

Programs use :mod:`cupyrite.dask` and :mod:`cupyrite.ray`, which call it. Object code, kernels and programs need nothing from here:
they can be pickled.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from cuda.core import (
    Buffer,
    Device,
    LegacyPinnedMemoryResource,
    ManagedBuffer,
    ManagedMemoryResource,
    Stream,
)
from cuda.core.utils import StridedMemoryView

__all__ = ["deserialize", "memory_type", "nbytes", "serialize"]


def memory_type(memory: Buffer | StridedMemoryView) -> str:
    """Type of memory: ``"device"``, ``"managed"``, ``"pinned"`` (page-locked) or ``"host"``.

    Parameters
    ----------
    memory : Buffer or StridedMemoryView
    """
    buffer = memory.exporting_obj if isinstance(memory, StridedMemoryView) else memory
    if isinstance(buffer, Buffer) and not buffer.is_closed:
        if isinstance(buffer, ManagedBuffer) or buffer.is_managed:
            return "managed"
        if not buffer.is_host_accessible:
            return "device"
        return "pinned" if buffer.is_device_accessible else "host"
    if not memory.is_device_accessible:
        return "host"
    return "device" if memory.device_id >= 0 else "pinned"


def nbytes(memory: Buffer | StridedMemoryView) -> int:
    """Size in bytes of a buffer, or of the elements of a view.

    Parameters
    ----------
    memory : Buffer or StridedMemoryView
    """
    if isinstance(memory, StridedMemoryView):
        return int(memory.size) * int(memory._layout.itemsize)
    return int(memory.size)


def serialize(
    memory: Buffer | StridedMemoryView, send: Callable[[Buffer], Any | None] | None = None, *, wait: bool = True
) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Describe memory by a header and frames.

    Parameters
    ----------
    memory : Buffer or StridedMemoryView
        A view that is contiguous in neither C nor Fortran order is packed in C order.
    send : callable, optional
        Sends device memory, a buffer, without a copy to the host, and returns a ticket: what the receiver needs to claim it.
        Without `send`, or if it returns None, the bytes are copied to the host.
    wait : bool, optional
        Whether to wait for all work of the memory's device first, since the stream that writes the memory is unknown. False is
        for callers who have waited. Default: True.

    Returns
    -------
    header : dict
        Strings, numbers, bytes and lists, for :func:`deserialize`.
    frames : list of numpy.ndarray
        One array of bytes; none if `send` sent the memory. Page-locked and host memory is not copied: the array refers to it.

    Raises
    ------
    RuntimeError
        The buffer was closed.
    TypeError
        The view's elements are Python objects.
    CUDAError
        The device's work failed.

    Examples
    --------
    >>> import numpy as np
    >>> from cuda.core import Device
    >>> from cupyrite.serialization import deserialize, serialize
    >>> device = Device()
    >>> device.set_current()
    >>> stream = device.create_stream()
    >>> buffer = device.allocate(4, stream=stream)
    >>> buffer.fill(7, stream=stream)
    >>> header, frames = serialize(buffer)
    >>> frames
    [array([7, 7, 7, 7], dtype=uint8)]
    >>> deserialize(header, frames).size
    4
    """
    if isinstance(memory, Buffer) and memory.is_closed:
        raise RuntimeError("this Buffer was closed and cannot be serialized")
    header: dict[str, Any] = {"memory": memory_type(memory)}
    if isinstance(memory, StridedMemoryView):
        _describe_view(memory, header)
    size = header["nbytes"] = nbytes(memory)
    if size == 0:
        return header, [np.empty(0, np.uint8)]
    if header["memory"] == "host":
        return header, [_host_bytes(memory, header)]
    device = Device(memory.device_id) if memory.device_id >= 0 else Device()
    if wait:
        device.sync()
    # The driver copies managed memory: on driver 580, the host can read stale bytes of a pool of it.
    if header["memory"] == "pinned":
        return header, [_host_bytes(memory, header)]
    stream = device.create_stream()
    if send is not None and header["memory"] == "device":
        header["ticket"] = send(_dense_buffer(memory, header, device, stream))
        if header["ticket"] is not None:
            return header, []
    host = np.empty(size, np.uint8)
    if isinstance(memory, StridedMemoryView):
        memory.copy_to(_host_view(host, header), stream)
    else:
        memory.copy_to(host, stream=stream)
    stream.sync()
    return header, [host]


def deserialize(
    header: dict[str, Any], frames: list[Any], claim: Callable[[Any], Buffer] | None = None
) -> Buffer | StridedMemoryView:
    """Create the memory that :func:`serialize` described.

    Parameters
    ----------
    header : dict
    frames : list of bytes-like
        As returned by :func:`serialize`. The bytes are copied.
    claim : callable, optional
        Returns the buffer of a ticket, for headers that have one.

    Returns
    -------
    Buffer or StridedMemoryView
        Device memory comes from ``Device().memory_resource`` of the calling thread's current device, page-locked memory from
        :class:`~cuda.core.LegacyPinnedMemoryResource`, managed memory from :class:`~cuda.core.ManagedMemoryResource`. A view
        of host memory refers to a NumPy array. The memory is ready: no stream has to be waited for.

    Raises
    ------
    RuntimeError
        The header has a ticket, and the memory of it was claimed before or freed.
    CUDAError
        Memory is short.
    """
    if header.get("ticket") is not None:
        if claim is None:
            raise RuntimeError("the header describes memory that was sent to another process, without its bytes")
        buffer = claim(header["ticket"])
    else:
        buffer = _allocate(header["memory"], header["nbytes"], frames)
    if "shape" not in header:
        if isinstance(buffer, np.ndarray):
            return Buffer.from_handle(buffer.ctypes.data, buffer.nbytes, owner=buffer)
        return buffer
    if isinstance(buffer, np.ndarray):
        return _host_view(buffer, header, header["readonly"])
    return _device_view(buffer, header, header["readonly"])


def _describe_view(view: StridedMemoryView, header: dict[str, Any]) -> None:
    layout = view._layout
    dtype = view.dtype
    if dtype is None:
        # A view with an element size only.
        dtype = np.dtype((np.void, int(layout.itemsize)))
    if dtype.hasobject:
        raise TypeError(f"a StridedMemoryView of {dtype} cannot be serialized: its elements are Python objects")
    fortran = layout.is_contiguous_f and not layout.is_contiguous_c
    header.update(
        shape=list(view.shape), order="F" if fortran else "C", dtype=pickle.dumps(dtype), readonly=bool(view.readonly)
    )


def _fortran_strides(shape: list[int]) -> tuple[int, ...]:
    strides, product = [], 1
    for extent in shape:
        strides.append(product)
        product *= extent
    return tuple(strides)


def _host_view(host: np.ndarray, header: dict[str, Any], readonly: bool = False) -> StridedMemoryView:
    """A view of packed bytes with a header's shape."""
    array = host.view(pickle.loads(header["dtype"])).reshape(header["shape"], order=header["order"])
    if readonly:
        array.flags.writeable = False
    return StridedMemoryView.from_array_interface(array)


def _device_view(buffer: Buffer, header: dict[str, Any], readonly: bool = False) -> StridedMemoryView:
    """A view of a buffer's packed bytes with a header's shape."""
    strides = None if header["order"] == "C" else _fortran_strides(header["shape"])
    dtype = pickle.loads(header["dtype"])
    return StridedMemoryView.from_buffer(buffer, tuple(header["shape"]), strides, dtype=dtype, is_readonly=readonly)


def _host_bytes(memory: Buffer | StridedMemoryView, header: dict[str, Any]) -> np.ndarray:
    """The bytes of host-accessible memory, without a copy if they are contiguous."""
    array = np.asarray(memory)
    if isinstance(memory, StridedMemoryView):
        array = array.reshape(-1, order=header["order"])
        array = np.ascontiguousarray(array).view(np.uint8)
    return array


def _dense_buffer(memory: Buffer | StridedMemoryView, header: dict[str, Any], device: Device, stream: Stream) -> Buffer:
    """A buffer with exactly the bytes of device memory: of the memory itself, or of a packed copy."""
    if isinstance(memory, Buffer):
        return memory
    buffer, size = memory.exporting_obj, header["nbytes"]
    layout = memory._layout
    contiguous = layout.is_contiguous_c or layout.is_contiguous_f
    if isinstance(buffer, Buffer) and contiguous and not buffer.is_closed and buffer.handle == memory.ptr:
        return buffer if buffer.size == size else buffer[:size]
    packed = device.allocate(size, stream=stream)
    _device_view(packed, header).copy_from(memory, stream)
    stream.sync()
    return packed


@functools.cache
def _managed_resource() -> ManagedMemoryResource:
    # A resource has a pool, of which the driver allocates at least 2 MiB.
    return ManagedMemoryResource()


def _allocate(memory: str, size: int, frames: list[Any]) -> Any:
    """Memory of a type with the bytes of the frames; an array for host memory of views."""
    if len(frames) == 1:
        source = np.frombuffer(frames[0], np.uint8)
    else:
        source = np.concatenate([np.frombuffer(frame, np.uint8) for frame in frames] or [np.empty(0, np.uint8)])
    if source.nbytes != size:
        raise ValueError(f"the frames have {source.nbytes} bytes, and the header says {size}")
    if memory == "host":
        # The frames can be read-only.
        return source.copy()
    device = Device()
    stream = device.create_stream()
    if memory == "device":
        buffer = device.allocate(size, stream=stream)
    elif memory == "managed":
        buffer = _managed_resource().allocate(size, stream=stream)
    else:
        buffer = LegacyPinnedMemoryResource().allocate(size, stream=stream)
    if size:
        buffer.copy_from(source, stream=stream)
    stream.sync()
    return buffer
