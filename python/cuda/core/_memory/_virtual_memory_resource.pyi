from collections.abc import Iterable
from typing import Any, SupportsIndex, SupportsInt

from cuda.bindings.driver import CUdeviceptr
from cuda.core._device import Device
from cuda.core._memory._buffer import Buffer, MemoryResource
from cuda.core._stream import Stream
from cuda.core.graph._graph_builder import GraphBuilder
from cuda.core.typing import (
    VirtualMemoryAccessType,
    VirtualMemoryAllocationType,
    VirtualMemoryGranularityType,
    VirtualMemoryHandleType,
    VirtualMemoryLocationType,
)
from typing_extensions import disjoint_base

__all__ = ["VirtualMemoryResource", "VirtualMemoryResourceOptions"]

class VirtualMemoryResourceOptions:
    """Options of a :class:`VirtualMemoryResource`."""

    allocation_type: VirtualMemoryAllocationType | str
    location_type: VirtualMemoryLocationType | str
    handle_type: VirtualMemoryHandleType | str | None
    granularity: VirtualMemoryGranularityType | str
    gpu_direct_rdma: bool
    addr_hint: int | None
    addr_align: int | None
    peers: Iterable[int | Device]
    self_access: VirtualMemoryAccessType | str | None
    peer_access: VirtualMemoryAccessType | str | None
    def __init__(
        self,
        allocation_type: VirtualMemoryAllocationType | str = ...,
        location_type: VirtualMemoryLocationType | str = ...,
        handle_type: VirtualMemoryHandleType | str | None = ...,
        granularity: VirtualMemoryGranularityType | str = ...,
        gpu_direct_rdma: bool = False,
        addr_hint: int | None = 0,
        addr_align: int | None = None,
        peers: Iterable[int | Device] = (),
        self_access: VirtualMemoryAccessType | str | None = ...,
        peer_access: VirtualMemoryAccessType | str | None = ...,
    ) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    __match_args__ = (
        "allocation_type",
        "location_type",
        "handle_type",
        "granularity",
        "gpu_direct_rdma",
        "addr_hint",
        "addr_align",
        "peers",
        "self_access",
        "peer_access",
    )

@disjoint_base
class VirtualMemoryResource(MemoryResource):
    """Memory with separately managed addresses and physical allocations, so that it can grow."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> VirtualMemoryResource: ...
    def __init__(
        self,
        device_id: Device | int | None,
        config: VirtualMemoryResourceOptions | dict[str, Any] | None = None,
    ) -> None: ...
    def allocate(self, size: SupportsIndex, *, stream: Stream | GraphBuilder | None = None) -> Buffer:
        """Allocates memory."""
    def deallocate(
        self, ptr: int | CUdeviceptr | SupportsInt, size: SupportsIndex, *, stream: Stream | GraphBuilder | None = None
    ) -> None:
        """Frees memory by address after the stream's work has completed. Buffers free their memory themselves."""
    def modify_allocation(
        self,
        buf: Buffer,
        new_size: SupportsIndex,
        config: VirtualMemoryResourceOptions | dict[str, Any] | None = None,
    ) -> Buffer:
        """Grows a buffer of this resource and preserves its contents. Buffers cannot shrink."""
    @property
    def device(self) -> Device | None:
        """The device, a :class:`Device`; None for host memory."""
    @property
    def config(self) -> VirtualMemoryResourceOptions:
        """Options of the memory."""
