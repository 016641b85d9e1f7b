"""Serializers and sizes of buffers and strided views for Dask.

Between two workers of one machine that have a :class:`~cupyrite.dask.DevicePlugin`, device memory is sent by IPC. Everywhere
else, and on disk, it consists of host bytes.
"""

from __future__ import annotations

import copyreg
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuda.core import Buffer, ManagedBuffer

from cupyrite import ipc_transfer, serialization

from .sizes import MEMORY_TYPES, register_sizes

if TYPE_CHECKING:
    from cupyrite.ipc_transfer import IpcReceiver

__all__ = ["HANDSHAKE_KEY", "device_nbytes", "read_without_waiting", "receiver", "register"]

#: Key of the receiver's address in the handshake of two workers.
HANDSHAKE_KEY = "cupyrite-ipc"
#: Smallest size in bytes that is sent by IPC: on an H200, smaller buffers take as long through the host.
IPC_MINIMUM = 256 * 1024

# Whether to wait for the device before memory is read.
_waits = True
_receiver: IpcReceiver | None = None
_receiver_lock = threading.Lock()


def _after_fork() -> None:
    global _receiver, _receiver_lock
    _receiver, _receiver_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def read_without_waiting() -> None:
    """Let this process, a worker, read memory that it sends without a wait for the device.

    Tasks wait for their streams. A worker serializes on its event loop, where a wait would last until other tasks' kernels end.
    """
    global _waits
    _waits = False


def receiver() -> IpcReceiver:
    """The receiver of this process, which its workers share. It is created once and lives as long as the process."""
    global _receiver
    with _receiver_lock:
        if _receiver is None:
            _receiver = ipc_transfer.IpcReceiver()
        return _receiver


_NO_CONNECTION: dict[str, Any] = {}


def _sender_to(context: dict[str, Any] | None) -> Callable[[Buffer], int | None] | None:
    """The function that sends memory to the worker at the other end of a connection; None if it has no receiver on this
    machine."""
    given = ((context or {}).get("recipient") or {}).get(HANDSHAKE_KEY)
    if not given or given.get("node") != ipc_transfer.node_identity():
        return None
    address = given["address"]
    return lambda memory: ipc_transfer.send(memory, address)


def _serialize(memory: Any, context: dict[str, Any] | None = _NO_CONNECTION) -> tuple[dict[str, Any], list[Any]]:
    send = _sender_to(context) if serialization.nbytes(memory) >= IPC_MINIMUM else None
    header, frames = serialization.serialize(memory, send, wait=_waits)
    if context is _NO_CONNECTION:
        # Called by Dask's pickler, for memory inside of another object: frames must be objects that can be pickled.
        return header, frames
    return header, [memoryview(frame) for frame in frames]


def _deserialize(header: dict[str, Any], frames: list[Any]) -> Any:
    return serialization.deserialize(header, frames, lambda ticket: receiver().claim(ticket))


def _register_serializers() -> None:
    from distributed.protocol.serialize import register_serialization

    for memory_type in MEMORY_TYPES:
        register_serialization(memory_type, _serialize, _deserialize)


def device_nbytes(value: object, depth: int = 3) -> int:
    """Bytes of device memory in a value: of buffers and views, also in lists, tuples, sets and dictionaries, which can be nested
    in three levels."""
    if isinstance(value, MEMORY_TYPES):
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


def register() -> None:
    """Register sizes, serializers and pickles in this process. `distributed` must be installed. Further calls do nothing new.

    Dask's entry point calls it when Dask first handles a buffer, a view or code.
    """
    register_sizes()
    _register_serializers()
    _register_pickles()


def _reduce(memory: Any) -> tuple[Any, ...]:
    return _deserialize, serialization.serialize(memory, wait=_waits)


def _register_pickles() -> None:
    """Let :mod:`pickle` copy memory to the host.

    Dask pickles arguments of tasks, and objects that contain buffers. The pickle of a buffer in an IPC-enabled pool would be a
    reference, which only related processes can follow. `multiprocessing` still sends references.
    """
    from multiprocessing.reduction import ForkingPickler

    for memory_type in (Buffer, ManagedBuffer):
        ForkingPickler.register(memory_type, memory_type.__reduce__)
    for memory_type in MEMORY_TYPES:
        copyreg.pickle(memory_type, _reduce)
