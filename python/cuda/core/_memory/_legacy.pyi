from typing import SupportsIndex, SupportsInt

from cuda.bindings.driver import CUdeviceptr
from cuda.core._device import Device
from cuda.core._memory._buffer import Buffer, MemoryResource
from cuda.core._stream import Stream
from cuda.core.graph._graph_builder import GraphBuilder
from typing_extensions import disjoint_base

__all__ = ["LegacyPinnedMemoryResource", "_SynchronousMemoryResource"]

@disjoint_base
class _SynchronousMemoryResource(MemoryResource):
    """Device memory by synchronous allocation (``cuMemAlloc``), for devices without memory pools."""

    def __new__(cls, device_id: Device | int) -> _SynchronousMemoryResource: ...
    def allocate(self, size: SupportsIndex, *, stream: Stream | GraphBuilder | None = None) -> Buffer:
        """Allocates memory."""
    def deallocate(
        self, ptr: int | CUdeviceptr | SupportsInt, size: SupportsIndex, *, stream: Stream | GraphBuilder | None = None
    ) -> None:
        """Frees memory by address after the stream's work has completed. Buffers free their memory themselves."""

@disjoint_base
class LegacyPinnedMemoryResource(MemoryResource):
    """Page-locked host memory by synchronous allocation (``cuMemHostAlloc``). Accessible to the host and all devices.
    """

    def __new__(cls) -> LegacyPinnedMemoryResource: ...
    def allocate(self, size: SupportsIndex, *, stream: Stream | GraphBuilder | None = None) -> Buffer:
        """Allocates memory."""
    def deallocate(
        self, ptr: int | CUdeviceptr | SupportsInt, size: SupportsIndex, *, stream: Stream | GraphBuilder | None = None
    ) -> None:
        """Frees memory by address after the stream's work has completed. Buffers free their memory themselves."""
