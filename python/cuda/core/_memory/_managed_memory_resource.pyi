from typing import Any, SupportsIndex

from cuda.core._device import Device
from cuda.core._memory._managed_buffer import ManagedBuffer
from cuda.core._memory._memory_pool import _MemPool
from cuda.core._stream import Stream
from cuda.core.typing import ManagedMemoryLocationType

__all__ = ["ManagedMemoryResource", "ManagedMemoryResourceOptions", "reset_concurrent_access_warning"]

class ManagedMemoryResourceOptions:
    """How the pool of a `ManagedMemoryResource` is made."""

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
    """Managed memory, from a pool of the driver's, allocated and freed in the order of streams."""

    def __init__(self, options: ManagedMemoryResourceOptions | dict[str, Any] | None = None) -> None: ...
    def allocate(self, size: SupportsIndex, *, stream: Stream) -> ManagedBuffer:
        """Allocates managed memory, in the order of a stream."""
    @property
    def preferred_location(self) -> tuple[ManagedMemoryLocationType, int | None] | None:
        """Where the memory should rather be."""

def reset_concurrent_access_warning() -> None:
    """Has the warning about devices without concurrent access to managed memory given once more."""
