from collections.abc import Iterable
from typing import Any, SupportsInt
from uuid import UUID

from cuda.core._device import Device
from cuda.core._memory._ipc import IPCAllocationHandle
from cuda.core._memory._memory_pool import _MemPool
from cuda.core._memory._peer_access_utils import PeerAccessibleBySetProxy
from typing_extensions import Self

__all__ = ["DMR_mempool_get_access", "DeviceMemoryResource", "DeviceMemoryResourceOptions"]

class DeviceMemoryResourceOptions:
    """How the pool of a `DeviceMemoryResource` is made."""

    ipc_enabled: bool
    max_size: int
    def __init__(self, ipc_enabled: bool = False, max_size: int = 0) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    __match_args__ = ("ipc_enabled", "max_size")
    def __post_init__(self) -> None: ...

class DeviceMemoryResource(_MemPool):
    """Memory of a device, from a pool of the driver's, allocated and freed in the order of streams."""

    def __init__(
        self,
        device_id: Device | int | None,
        options: DeviceMemoryResourceOptions | dict[str, Any] | None = None,
    ) -> None: ...
    @property
    def peer_accessible_by(self) -> PeerAccessibleBySetProxy:
        """The devices, other than the resource's own, whose kernels can use the memory."""
    @peer_accessible_by.setter
    def peer_accessible_by(self, value: Iterable[Device | int]) -> None: ...
    @property
    def allocation_handle(self) -> IPCAllocationHandle:
        """What another process needs to use the pool."""
    def register(self, uuid: UUID) -> DeviceMemoryResource:
        """Registers the resource under a UUID."""
    @staticmethod
    def from_registry(uuid: UUID) -> DeviceMemoryResource:
        """The resource that was registered under a UUID."""
    @classmethod
    def from_allocation_handle(
        cls, device_id: Device | int | None, alloc_handle: IPCAllocationHandle | SupportsInt
    ) -> Self:
        """A resource over another process's pool."""
    def __reduce__(self) -> Any: ...

def DMR_mempool_get_access(dmr: DeviceMemoryResource, device_id: int) -> str:
    """What a device may do with the memory of a resource."""
