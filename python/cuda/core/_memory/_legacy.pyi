from typing import SupportsIndex, SupportsInt

from cuda.bindings.driver import CUdeviceptr
from cuda.core._device import Device
from cuda.core._memory._buffer import Buffer, MemoryResource
from cuda.core._stream import Stream
from typing_extensions import disjoint_base

__all__ = ["LegacyPinnedMemoryResource", "_SynchronousMemoryResource"]

@disjoint_base
class _SynchronousMemoryResource(MemoryResource):
    """Memory of a device, allocated at once: for devices without memory pools."""

    def __new__(cls, device_id: Device | int) -> _SynchronousMemoryResource: ...
    def allocate(self, size: SupportsIndex, *, stream: Stream | None = None) -> Buffer:
        """Allocates memory."""
    def deallocate(
        self, ptr: int | CUdeviceptr | SupportsInt, size: SupportsIndex, *, stream: Stream | None = None
    ) -> None:
        """Frees memory by its address, once the stream has done its work."""

@disjoint_base
class LegacyPinnedMemoryResource(MemoryResource):
    """Page-locked memory of the host, allocated at once."""

    def __new__(cls) -> LegacyPinnedMemoryResource: ...
    def allocate(self, size: SupportsIndex, *, stream: Stream | None = None) -> Buffer:
        """Allocates memory."""
    def deallocate(
        self, ptr: int | CUdeviceptr | SupportsInt, size: SupportsIndex, *, stream: Stream | None = None
    ) -> None:
        """Frees memory by its address, once the stream has done its work."""
