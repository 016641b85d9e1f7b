from typing import Any, SupportsInt
from uuid import UUID

from cuda.core._memory._ipc import IPCAllocationHandle
from cuda.core._memory._memory_pool import _MemPool
from typing_extensions import Self

__all__ = ["PinnedMemoryResource", "PinnedMemoryResourceOptions"]

class PinnedMemoryResourceOptions:
    """Options of the pool of a :class:`PinnedMemoryResource`."""

    ipc_enabled: bool
    max_size: int
    numa_id: int | None
    def __init__(self, ipc_enabled: bool = False, max_size: int = 0, numa_id: int | None = None) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    __match_args__ = ("ipc_enabled", "max_size", "numa_id")
    def __post_init__(self) -> None: ...

class PinnedMemoryResource(_MemPool):
    """Page-locked host memory from a driver memory pool; stream-ordered allocation and deallocation. Accessible to the
    host and all devices."""

    def __init__(self, options: PinnedMemoryResourceOptions | dict[str, Any] | None = None) -> None: ...
    @property
    def numa_id(self) -> int:
        """NUMA node of the memory; -1 if the system chooses."""
    @property
    def allocation_handle(self) -> IPCAllocationHandle:
        """Handle with which another process imports the pool by :meth:`from_allocation_handle`: an
        ``IPCAllocationHandle``."""
    def register(self, uuid: UUID) -> PinnedMemoryResource:
        """Registers the resource under its UUID, so that buffers received from other processes find it."""
    @staticmethod
    def from_registry(uuid: UUID) -> PinnedMemoryResource:
        """The resource registered under a UUID. Imported resources are registered on creation."""
    @classmethod
    def from_allocation_handle(cls, alloc_handle: IPCAllocationHandle | SupportsInt) -> Self:
        """Creates a resource over another process's pool. It cannot allocate; its buffers come from
        :meth:`Buffer.from_ipc_descriptor`."""
    def __reduce__(self) -> Any: ...
