from typing import Any, NoReturn, final
from uuid import UUID

__all__ = ["IPCAllocationHandle", "IPCBufferDescriptor", "IPCDataForBuffer", "IPCDataForMR"]

@final
class IPCAllocationHandle:
    """Handle with which another process imports a memory pool: a file descriptor and the pool's UUID."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> IPCAllocationHandle: ...
    @property
    def handle(self) -> int:
        """File descriptor; -1 if the handle was closed."""
    @property
    def uuid(self) -> UUID | None:
        """UUID of the pool; None if unknown."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
    def close(self) -> None:
        """Closes the file descriptor. Pools imported with it stay valid; the memory resource of this handle can no
        longer be sent to other processes. Further calls do nothing."""
    def __int__(self) -> int: ...
    def __reduce__(self) -> NoReturn: ...

@final
class IPCBufferDescriptor:
    """Descriptor with which another process imports a :class:`Buffer` of an IPC-enabled memory resource. It comes from
    :attr:`Buffer.ipc_descriptor` and can be pickled."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> IPCBufferDescriptor: ...
    @property
    def size(self) -> int:
        """Size of the buffer in bytes."""
    def __reduce__(self) -> Any: ...

class IPCDataForBuffer:
    """IPC state of a buffer."""

    def __init__(self, ipc_descriptor: IPCBufferDescriptor, is_mapped: bool) -> None: ...
    @property
    def ipc_descriptor(self) -> IPCBufferDescriptor:
        """Descriptor with which another process imports the buffer."""
    @property
    def is_mapped(self) -> bool:
        """Whether the buffer was imported from another process."""

class IPCDataForMR:
    """IPC state of a memory resource."""

    def __init__(self, alloc_handle: IPCAllocationHandle, is_mapped: bool) -> None: ...
    @property
    def alloc_handle(self) -> IPCAllocationHandle:
        """Handle with which another process imports the pool."""
    @property
    def is_mapped(self) -> bool:
        """Whether the pool was imported from another process."""
    @property
    def uuid(self) -> UUID | None:
        """UUID that identifies the pool across processes; None if unknown."""
