from typing import Any, SupportsIndex

from cuda.core._device import Device
from cuda.core._memory._managed_buffer import ManagedBuffer
from cuda.core._memory._memory_pool import _MemPool
from cuda.core._stream import Stream
from cuda.core.graph._graph_builder import GraphBuilder
from cuda.core.typing import ManagedMemoryLocationType

__all__ = ["ManagedMemoryResource", "ManagedMemoryResourceOptions", "reset_concurrent_access_warning"]

class ManagedMemoryResourceOptions:
    """Options of the pool of a :class:`ManagedMemoryResource`."""

    preferred_location: int | None
    preferred_location_type: ManagedMemoryLocationType | str | None
    def __init__(
        self,
        preferred_location: int | Device | None = None,
        preferred_location_type: ManagedMemoryLocationType | str | None = None,
    ) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    __match_args__ = ("preferred_location", "preferred_location_type")
    def __post_init__(self) -> None: ...

class ManagedMemoryResource(_MemPool):
    """Managed memory from a driver memory pool (CUDA 13); stream-ordered allocation and deallocation."""

    def __init__(self, options: ManagedMemoryResourceOptions | dict[str, Any] | None = None) -> None: ...
    def allocate(self, size: SupportsIndex, *, stream: Stream | GraphBuilder) -> ManagedBuffer:
        """Allocates managed memory, stream-ordered."""
    @property
    def preferred_location(self) -> tuple[ManagedMemoryLocationType, int | None] | None:
        """None, or a :class:`~cuda.core.typing.ManagedMemoryLocationType` and the number of the device or NUMA node
        (None for the host as a whole)."""

def reset_concurrent_access_warning() -> None:
    """Re-arms the warning about devices without concurrent managed access."""
