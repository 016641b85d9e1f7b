from typing import Any, SupportsIndex, SupportsInt, final
from uuid import UUID

from cuda.bindings.driver import CUdeviceptr, CUmemoryPool
from cuda.core._memory._buffer import Buffer, MemoryResource
from cuda.core._stream import Stream
from cuda.core.graph._graph_builder import GraphBuilder
from typing_extensions import disjoint_base

__all__ = ["_MemPool", "_MemPoolAttributes"]

@disjoint_base
class _MemPool(MemoryResource):
    """Base class of memory resources over a driver memory pool."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> _MemPool: ...
    def allocate(self, size: SupportsIndex, *, stream: Stream | GraphBuilder) -> Buffer:
        """Allocates memory from the pool, stream-ordered."""
    def deallocate(self, ptr: int | CUdeviceptr | SupportsInt, size: SupportsIndex, *, stream: Stream | GraphBuilder) -> None:
        """Frees memory of the pool by address, stream-ordered. Buffers free their memory themselves."""
    def close(self) -> None:
        """Releases the pool. A pool created by the resource is destroyed when its last buffer is freed; the device's
        current pool is kept. Buffers stay valid."""
    @property
    def handle(self) -> CUmemoryPool:
        """Driver handle, a ``cuda.bindings.driver.CUmemoryPool``; 0 if the resource was closed."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def is_handle_owned(self) -> bool:
        """Whether the resource created the pool, rather than using the device's current pool."""
    @property
    def is_ipc_enabled(self) -> bool:
        """Whether the memory can be shared with other processes."""
    @property
    def is_mapped(self) -> bool:
        """Whether the pool was imported from another process."""
    @property
    def uuid(self) -> UUID | None:
        """UUID that identifies the pool across processes, a ``uuid.UUID``; None if the pool is not IPC-enabled or was
        imported from a file descriptor."""
    @property
    def attributes(self) -> _MemPoolAttributes:
        """Attributes of the pool."""

@final
class _MemPoolAttributes:
    """Attributes of a memory pool, read from the driver on each access."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> _MemPoolAttributes: ...
    @property
    def reuse_follow_event_dependencies(self) -> bool:
        """Whether memory freed in one stream is reused in another stream that waited for it by an event."""
    @property
    def reuse_allow_opportunistic(self) -> bool:
        """Whether memory is reused across streams if its deallocation has already completed."""
    @property
    def reuse_allow_internal_dependencies(self) -> bool:
        """Whether the driver may insert dependencies between streams to reuse memory."""
    @property
    def release_threshold(self) -> int:
        """Bytes of unused memory that the pool retains at synchronization."""
    @property
    def reserved_mem_current(self) -> int:
        """Bytes of memory reserved by the pool."""
    @property
    def reserved_mem_high(self) -> int:
        """High watermark of reserved bytes."""
    @property
    def used_mem_current(self) -> int:
        """Bytes allocated from the pool."""
    @property
    def used_mem_high(self) -> int:
        """High watermark of allocated bytes."""
