from typing import Any, NoReturn, final
from uuid import UUID

__all__ = ["IPCAllocationHandle", "IPCBufferDescriptor", "IPCDataForBuffer", "IPCDataForMR"]

@final
class IPCAllocationHandle:
    """What another process needs to use a memory pool."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> IPCAllocationHandle: ...
    @property
    def handle(self) -> int:
        """The file descriptor; -1 once the handle was closed."""
    @property
    def uuid(self) -> UUID | None:
        """What identifies the pool among processes."""
    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
    def close(self) -> None:
        """Closes the descriptor."""
    def __int__(self) -> int: ...
    def __reduce__(self) -> NoReturn: ...

@final
class IPCBufferDescriptor:
    """What another process needs to use a `Buffer` of an IPC-enabled memory resource."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> IPCBufferDescriptor: ...
    @property
    def size(self) -> int:
        """Bytes of the buffer."""
    def __reduce__(self) -> Any: ...

class IPCDataForBuffer:
    """What is known of a buffer that processes share."""

    def __init__(self, ipc_descriptor: IPCBufferDescriptor, is_mapped: bool) -> None: ...
    @property
    def ipc_descriptor(self) -> IPCBufferDescriptor:
        """What another process imports the buffer by."""
    @property
    def is_mapped(self) -> bool:
        """Whether the memory is another process's."""

class IPCDataForMR:
    """What is known of a memory resource that processes share."""

    def __init__(self, alloc_handle: IPCAllocationHandle, is_mapped: bool) -> None: ...
    @property
    def alloc_handle(self) -> IPCAllocationHandle:
        """What another process imports the pool by."""
    @property
    def is_mapped(self) -> bool:
        """Whether the pool is another process's."""
    @property
    def uuid(self) -> UUID | None:
        """What identifies the pool among processes."""
