"""Serializers and sizes of buffers and strided views for Dask.

Between two workers of one machine that have a :class:`~cupyrite.dask.DevicePlugin`, device memory is sent by IPC. Everywhere
else, and on disk, it consists of host bytes.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuda.core import Buffer, Kernel, ManagedBuffer, ObjectCode
from cuda.core.utils import StridedMemoryView

from cupyrite import ipc_transfer, serialization

if TYPE_CHECKING:
    from cupyrite.ipc_transfer import IpcReceiver

__all__ = [
    "HANDSHAKE_KEY",
    "device_nbytes",
    "pickle_by_value",
    "register",
    "register_serializers",
    "register_sizes",
    "set_receiver",
]

#: Key of the receiver's address among what Dask's workers tell each other when they connect.
HANDSHAKE_KEY = "cupyrite-ipc"
#: Bytes from which a transfer by IPC is faster than one through the host.
IPC_MINIMUM = 256 * 1024

_MEMORY_TYPES = (Buffer, ManagedBuffer, StridedMemoryView)
_receiver: IpcReceiver | None = None


def set_receiver(receiver: IpcReceiver | None) -> None:
    """Set the receiver of this process: that of its worker."""
    global _receiver
    _receiver = receiver


_NO_CONNECTION: dict[str, Any] = {}


def _sender_to(context: dict[str, Any] | None) -> Callable[[Buffer], int | None] | None:
    """The function that sends memory to the worker at the other end of a connection; None if that has no receiver here."""
    receiver = ((context or {}).get("recipient") or {}).get(HANDSHAKE_KEY)
    if not receiver or receiver.get("node") != ipc_transfer.node_identity():
        return None
    address = receiver["address"]
    return lambda memory: ipc_transfer.send(memory, address) if memory.size >= IPC_MINIMUM else None


def _claim(ticket: int) -> Buffer:
    if _receiver is None:
        raise RuntimeError("device memory was sent to a worker whose DevicePlugin was removed")
    return _receiver.claim(ticket)


def _serialize(memory: Any, context: dict[str, Any] | None = _NO_CONNECTION) -> tuple[dict[str, Any], list[Any]]:
    header, frames = serialization.serialize(memory, _sender_to(context))
    if context is _NO_CONNECTION:
        # Called by Dask's pickler, for memory inside of another object: frames must be objects that can be pickled.
        return header, frames
    return header, [memoryview(frame) for frame in frames]


def _deserialize(header: dict[str, Any], frames: list[Any]) -> Any:
    return serialization.deserialize(header, frames, _claim)


def register_serializers() -> None:
    """Register the serializers with `distributed`."""
    from distributed.protocol.serialize import register_serialization

    for memory_type in _MEMORY_TYPES:
        register_serialization(memory_type, _serialize, _deserialize)


def device_nbytes(value: object, depth: int = 3) -> int:
    """Bytes of device memory in a value: of buffers and views, also in lists, tuples, sets and dictionaries."""
    if isinstance(value, _MEMORY_TYPES):
        if isinstance(value, Buffer) and value.is_closed:
            return 0
        return serialization.nbytes(value) if serialization.memory_type(value) == "device" else 0
    if depth == 0:
        return 0
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple, set, frozenset)):
        return 0
    return sum(device_nbytes(item, depth - 1) for item in value)


def register_sizes() -> None:
    """Register the sizes with Dask: Dask's workers count device memory like other memory."""
    from dask.sizeof import sizeof

    sizeof.register(_MEMORY_TYPES)(serialization.nbytes)
    sizeof.register(ObjectCode)(_code_nbytes)
    # The code is counted where it is an object of its own.
    sizeof.register(Kernel)(lambda kernel: object.__sizeof__(kernel))


def _code_nbytes(code: ObjectCode) -> int:
    contents = code.code
    return object.__sizeof__(code) + (len(contents) if isinstance(contents, bytes) else 0)


def register() -> None:
    """Register sizes and serializers. `distributed` must be installed. Further calls do nothing new."""
    register_sizes()
    register_serializers()


def _reduce(memory: Any) -> tuple[Any, ...]:
    return _deserialize, serialization.serialize(memory)


def pickle_by_value() -> None:
    """Let :mod:`pickle` copy memory to the host, in this process.

    Dask tries a plain pickle first for objects that contain buffers, and the pickle of a buffer in an IPC-enabled pool is a
    reference that only related processes can follow. `multiprocessing` still sends references.
    """
    from multiprocessing.reduction import ForkingPickler

    for memory_type in (Buffer, ManagedBuffer):
        ForkingPickler.register(memory_type, memory_type.__reduce__)
    for memory_type in _MEMORY_TYPES:
        copyreg.pickle(memory_type, _reduce)
