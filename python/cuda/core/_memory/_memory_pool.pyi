from typing import Any, SupportsIndex, SupportsInt, final
from uuid import UUID

from cuda.bindings.driver import CUdeviceptr, CUmemoryPool
from cuda.core._memory._buffer import Buffer, MemoryResource
from cuda.core._stream import Stream
from typing_extensions import disjoint_base

__all__ = ["_MemPool", "_MemPoolAttributes"]

@disjoint_base
class _MemPool(MemoryResource):
    """What memory resources over a pool of the driver's have in common."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> _MemPool: ...
    def allocate(self, size: SupportsIndex, *, stream: Stream) -> Buffer:
        """Allocates memory from the pool, in the order of a stream."""
    def deallocate(self, ptr: int | CUdeviceptr | SupportsInt, size: SupportsIndex, *, stream: Stream) -> None:
        """Frees memory of the pool by its address, in the order of a stream."""
    def close(self) -> None:
        """Lets go of the pool."""
    @property
    def handle(self) -> CUmemoryPool:
        """The driver's handle; 0 once the resource was closed."""
    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
    @property
    def is_handle_owned(self) -> bool:
        """Whether the pool was made by this resource."""
    @property
    def is_ipc_enabled(self) -> bool:
        """Whether the memory can be shared with other processes."""
    @property
    def is_mapped(self) -> bool:
        """Whether the pool is another process's."""
    @property
    def uuid(self) -> UUID | None:
        """What identifies the pool among processes."""
    @property
    def attributes(self) -> _MemPoolAttributes:
        """The pool's attributes."""

@final
class _MemPoolAttributes:
    """The attributes of a memory pool, as they are when they are read."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> _MemPoolAttributes: ...
    @property
    def reuse_follow_event_dependencies(self) -> bool:
        """Whether memory freed in one stream is given to another one that waited for it by an event."""
    @property
    def reuse_allow_opportunistic(self) -> bool:
        """Whether memory is reused across streams where the free happens to be done already."""
    @property
    def reuse_allow_internal_dependencies(self) -> bool:
        """Whether the driver may make a stream wait for another one so that memory can be reused."""
    @property
    def release_threshold(self) -> int:
        """Bytes that the pool keeps, though unused."""
    @property
    def reserved_mem_current(self) -> int:
        """Bytes of the device's memory that the pool holds."""
    @property
    def reserved_mem_high(self) -> int:
        """The most bytes that the pool ever held."""
    @property
    def used_mem_current(self) -> int:
        """Bytes that are allocated from the pool."""
    @property
    def used_mem_high(self) -> int:
        """The most bytes that were ever allocated from the pool."""
