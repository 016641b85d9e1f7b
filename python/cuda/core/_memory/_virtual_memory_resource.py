"""Memory whose addresses and physical pieces are managed apart, so that it can grow."""

from cupyrite._native.core import VirtualMemoryResource

from cuda.core._options import options
from cuda.core.typing import (
    VirtualMemoryAccessType,
    VirtualMemoryAllocationType,
    VirtualMemoryGranularityType,
    VirtualMemoryHandleType,
    VirtualMemoryLocationType,
)

__all__ = ["VirtualMemoryResource", "VirtualMemoryResourceOptions"]


@options
class VirtualMemoryResourceOptions:
    """How a :class:`VirtualMemoryResource` creates and maps memory.

    Attributes
    ----------
    allocation_type : VirtualMemoryAllocationType or str
        What kind of memory.
    location_type : VirtualMemoryLocationType or str
        Where: on the resource's device, on the host, on the NUMA node that is nearest to the device, or on that of the
        thread that allocates.
    handle_type : VirtualMemoryHandleType, str or None
        How the memory can be handed to other processes.
    granularity : VirtualMemoryGranularityType or str
        What sizes are rounded up to: the smallest multiples that work, or those that are fastest.
    gpu_direct_rdma : bool
        Whether other devices on the bus may use the memory directly (GPUDirect RDMA).
    addr_hint : int or None
        The address that it should rather have; 0 for any.
    addr_align : int or None
        A power of two that the address is a multiple of.
    peers : iterable of int or Device
        Other devices that may use the memory.
    self_access : VirtualMemoryAccessType, str or None
        What may be done with it where it is.
    peer_access : VirtualMemoryAccessType, str or None
        What `peers` may do with it.
    """

    allocation_type: "VirtualMemoryAllocationType" = VirtualMemoryAllocationType.PINNED
    location_type: "VirtualMemoryLocationType" = VirtualMemoryLocationType.DEVICE
    handle_type: "VirtualMemoryHandleType" = VirtualMemoryHandleType.POSIX_FD
    granularity: "VirtualMemoryGranularityType" = VirtualMemoryGranularityType.RECOMMENDED
    gpu_direct_rdma: "bool" = False
    addr_hint: "int | None" = 0
    addr_align: "int | None" = None
    peers: "Iterable[int]" = ()
    self_access: "VirtualMemoryAccessType" = VirtualMemoryAccessType.READ_WRITE
    peer_access: "VirtualMemoryAccessType" = VirtualMemoryAccessType.READ_WRITE
