from typing import Any, SupportsInt
from uuid import UUID

from cuda.core._memory._ipc import IPCAllocationHandle
from cuda.core._memory._memory_pool import _MemPool
from typing_extensions import Self

__all__ = ["PinnedMemoryResource", "PinnedMemoryResourceOptions"]

class PinnedMemoryResourceOptions:
    """How the pool of a `PinnedMemoryResource` is made."""

    ipc_enabled: bool
    max_size: int
    numa_id: int | None
    def __init__(self, ipc_enabled: bool = False, max_size: int = 0, numa_id: int | None = None) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    __match_args__ = ("ipc_enabled", "max_size", "numa_id")
    def __post_init__(self) -> None: ...

class PinnedMemoryResource(_MemPool):
    """Page-locked memory of the host, from a pool of the driver's, allocated and freed in the order of streams."""

    def __init__(self, options: PinnedMemoryResourceOptions | dict[str, Any] | None = None) -> None: ...
    @property
    def numa_id(self) -> int:
        """The NUMA node of the memory; -1 where the system chooses."""
    @property
    def allocation_handle(self) -> IPCAllocationHandle:
        """What another process needs to use the pool."""
    def register(self, uuid: UUID) -> PinnedMemoryResource:
        """Registers the resource under a UUID."""
    @staticmethod
    def from_registry(uuid: UUID) -> PinnedMemoryResource:
        """The resource that was registered under a UUID."""
    @classmethod
    def from_allocation_handle(cls, alloc_handle: IPCAllocationHandle | SupportsInt) -> Self:
        """A resource over another process's pool."""
    def __reduce__(self) -> Any: ...
