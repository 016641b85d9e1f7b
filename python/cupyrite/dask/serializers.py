"""Serializers and sizes of buffers and strided views for Dask.

Between two workers of one machine that have a :class:`~cupyrite.dask.DevicePlugin`, device memory is sent by IPC. Everywhere
else, and on disk, it consists of host bytes.
"""

from __future__ import annotations

import copyreg
import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cuda.core import Buffer, Kernel, ManagedBuffer, ObjectCode
from cuda.core.utils import StridedMemoryView

from cupyrite import ipc_transfer, serialization

if TYPE_CHECKING:
    from cupyrite.ipc_transfer import IpcReceiver

__all__ = ["HANDSHAKE_KEY", "device_nbytes", "receiver", "register", "register_sizes"]

#: Key of the receiver's address among what Dask's workers tell each other when they connect.
HANDSHAKE_KEY = "cupyrite-ipc"
#: Bytes from which a transfer by IPC is faster than one through the host.
IPC_MINIMUM = 256 * 1024

_MEMORY_TYPES = (Buffer, ManagedBuffer, StridedMemoryView)
_receiver: IpcReceiver | None = None
_receiver_lock = threading.Lock()


def receiver() -> IpcReceiver:
    """The receiver of this process, which its workers share. It is created once and lives as long as the process."""
    global _receiver
    with _receiver_lock:
        if _receiver is None:
            _receiver = ipc_transfer.IpcReceiver()
        return _receiver


_NO_CONNECTION: dict[str, Any] = {}


def _sender_to(context: dict[str, Any] | None) -> Callable[[Buffer], int | None] | None:
    """The function that sends memory to the worker at the other end of a connection; None if that has no receiver here."""
    given = ((context or {}).get("recipient") or {}).get(HANDSHAKE_KEY)
    if not given or given.get("node") != ipc_transfer.node_identity():
        return None
    address = given["address"]
    return lambda memory: ipc_transfer.send(memory, address) if memory.size >= IPC_MINIMUM else None


def _serialize(memory: Any, context: dict[str, Any] | None = _NO_CONNECTION) -> tuple[dict[str, Any], list[Any]]:
    header, frames = serialization.serialize(memory, _sender_to(context))
    if context is _NO_CONNECTION:
        # Called by Dask's pickler, for memory inside of another object: frames must be objects that can be pickled.
        return header, frames
    return header, [memoryview(frame) for frame in frames]


def _deserialize(header: dict[str, Any], frames: list[Any]) -> Any:
    return serialization.deserialize(header, frames, lambda ticket: receiver().claim(ticket))


def _register_serializers() -> None:
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
    """Register the sizes with Dask, whose workers count device memory like other memory, and the names of results."""
    from dask.sizeof import sizeof
    from dask.tokenize import normalize_token

    # Tasks with the same memory are different tasks: its contents can change.
    normalize_token.register(_MEMORY_TYPES)(lambda memory: uuid.uuid4().hex)
    sizeof.register(_MEMORY_TYPES)(serialization.nbytes)
    sizeof.register(ObjectCode)(_code_nbytes)
    # The code is counted where it is an object of its own.
    sizeof.register(Kernel)(lambda kernel: object.__sizeof__(kernel))


def _code_nbytes(code: ObjectCode) -> int:
    contents = code.code
    return object.__sizeof__(code) + (len(contents) if isinstance(contents, bytes) else 0)


def register() -> None:
    """Register sizes, serializers and pickles in this process. `distributed` must be installed. Further calls do nothing new.

    Dask's entry point calls it when Dask first handles a buffer, a view or code.
    """
    register_sizes()
    _register_serializers()
    _register_pickles()


def _reduce(memory: Any) -> tuple[Any, ...]:
    return _deserialize, serialization.serialize(memory)


def _register_pickles() -> None:
    """Let :mod:`pickle` copy memory to the host.

    Dask pickles arguments of tasks, and objects that contain buffers. The pickle of a buffer in an IPC-enabled pool would be a
    reference, which only related processes can follow. `multiprocessing` still sends references.
    """
    from multiprocessing.reduction import ForkingPickler

    for memory_type in (Buffer, ManagedBuffer):
        ForkingPickler.register(memory_type, memory_type.__reduce__)
    for memory_type in _MEMORY_TYPES:
        copyreg.pickle(memory_type, _reduce)
