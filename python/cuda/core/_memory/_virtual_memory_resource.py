"""Growable memory from the driver's virtual memory management API."""

from cuda.core._options import options
from cuda.core.typing import (
    VirtualMemoryAccessType,
    VirtualMemoryAllocationType,
    VirtualMemoryGranularityType,
    VirtualMemoryHandleType,
    VirtualMemoryLocationType,
)
from cupyrite._native.core import VirtualMemoryResource

__all__ = ["VirtualMemoryResource", "VirtualMemoryResourceOptions"]


@options
class VirtualMemoryResourceOptions:
    """Options of a :class:`VirtualMemoryResource`.

    Attributes
    ----------
    allocation_type : VirtualMemoryAllocationType or str
        Type of the physical memory.
    location_type : VirtualMemoryLocationType or str
        Location of the physical memory: the resource's device, the host, the NUMA node nearest to the device, or the
        NUMA node of the allocating thread.
    handle_type : VirtualMemoryHandleType, str or None
        Handle type for sharing the memory with other processes.
    granularity : VirtualMemoryGranularityType or str
        Granularity to which sizes are rounded up: the minimum or the recommended one.
    gpu_direct_rdma : bool
        Whether the memory supports GPUDirect RDMA.
    addr_hint : int or None
        Preferred address; 0 for any.
    addr_align : int or None
        Alignment of the address, a power of two.
    peers : iterable of int or Device
        Peer devices with access to the memory.
    self_access : VirtualMemoryAccessType, str or None
        Access rights of the memory's own location.
    peer_access : VirtualMemoryAccessType, str or None
        Access rights of `peers`.

    Examples
    --------
    >>> from cuda.core import Device, VirtualMemoryResource, VirtualMemoryResourceOptions
    >>> device = Device()
    >>> device.set_current()
    >>> options = VirtualMemoryResourceOptions(granularity="minimum", handle_type=None, peers=[])
    >>> buffer = VirtualMemoryResource(device, options).allocate(4096)
    >>> buffer.close()
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
