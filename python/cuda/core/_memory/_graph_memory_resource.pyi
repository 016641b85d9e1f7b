"""Memory that graphs allocate."""

from typing import Any, final

from typing_extensions import Self, disjoint_base

from cuda.bindings.driver import CUdeviceptr
from cuda.core._device import Device
from cuda.core._memory._buffer import Buffer, MemoryResource
from cuda.core._stream import Stream
from cuda.core.graph._graph_builder import GraphBuilder

__all__ = ["GraphMemoryResource", "GraphMemoryResourceAttributes", "cyGraphMemoryResource"]

@final
class GraphMemoryResourceAttributes:
    """Counters of a device's memory for graphs, in bytes, read from the driver on each access."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self: ...
    @property
    def reserved_mem_current(self) -> int:
        """Bytes that are reserved for graphs."""
    @property
    def reserved_mem_high(self) -> int:
        """High watermark of reserved bytes; setting it to 0 resets it."""
    @reserved_mem_high.setter
    def reserved_mem_high(self, value: int) -> None: ...
    @property
    def used_mem_current(self) -> int:
        """Bytes that graphs use."""
    @property
    def used_mem_high(self) -> int:
        """High watermark of used bytes; setting it to 0 resets it."""
    @used_mem_high.setter
    def used_mem_high(self, value: int) -> None: ...

@disjoint_base
class cyGraphMemoryResource(MemoryResource):
    """Base of ``GraphMemoryResource``."""

    def __new__(cls, device_id: int | Device) -> Self: ...
    def allocate(self, size: int, *, stream: Stream | GraphBuilder) -> Buffer:
        """Allocates memory in the graph that a stream records. The graph owns the memory."""
    def deallocate(self, ptr: CUdeviceptr | int, size: int, *, stream: Stream | GraphBuilder) -> None:
        """Frees memory by address. Buffers free their memory themselves."""
    def trim(self) -> None:
        """Returns reserved memory that no graph uses to the system."""
    def close(self) -> None:
        """Has no effect: the memory belongs to the graphs."""
    @property
    def attributes(self) -> GraphMemoryResourceAttributes:
        """Counters of the device's memory for graphs."""
    @property
    def device_id(self) -> int:
        """Device number."""
    @property
    def is_device_accessible(self) -> bool:
        """True: the memory is device-accessible."""
    @property
    def is_host_accessible(self) -> bool:
        """False: the memory is not host-accessible."""

class GraphMemoryResource(cyGraphMemoryResource):
    """Allocates in graphs that are being captured: allocations and frees are nodes of the graph."""

    def __new__(cls, device_id: int | Device) -> Self: ...
    def __init__(self, device_id: int | Device) -> None: ...
