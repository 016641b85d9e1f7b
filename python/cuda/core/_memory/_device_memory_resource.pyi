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
    """Options of the pool of a :class:`DeviceMemoryResource`."""

    ipc_enabled: bool
    max_size: int
    def __init__(self, ipc_enabled: bool = False, max_size: int = 0) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    __match_args__ = ("ipc_enabled", "max_size")
    def __post_init__(self) -> None: ...

class DeviceMemoryResource(_MemPool):
    """Device memory from a driver memory pool; stream-ordered allocation and deallocation."""

    def __init__(
        self,
        device_id: Device | int | None,
        options: DeviceMemoryResourceOptions | dict[str, Any] | None = None,
    ) -> None: ...
    @property
    def peer_accessible_by(self) -> PeerAccessibleBySetProxy:
        """Peer devices with access to the memory: a mutable set of :class:`Device`, which can also be assigned."""
    @peer_accessible_by.setter
    def peer_accessible_by(self, value: Iterable[Device | int]) -> None: ...
    @property
    def allocation_handle(self) -> IPCAllocationHandle:
        """Handle with which another process imports the pool by :meth:`from_allocation_handle`: an
        ``IPCAllocationHandle``."""
    def register(self, uuid: UUID) -> DeviceMemoryResource:
        """Registers the resource under its UUID, so that buffers received from other processes find it."""
    @staticmethod
    def from_registry(uuid: UUID) -> DeviceMemoryResource:
        """The resource registered under a UUID. Imported resources are registered on creation."""
    @classmethod
    def from_allocation_handle(
        cls, device_id: Device | int | None, alloc_handle: IPCAllocationHandle | SupportsInt
    ) -> Self:
        """Creates a resource over another process's pool. It cannot allocate; its buffers come from
        :meth:`Buffer.from_ipc_descriptor`."""
    def __reduce__(self) -> Any: ...

def DMR_mempool_get_access(dmr: DeviceMemoryResource, device_id: int) -> str:
    """Access rights of a device to the memory of a resource: ``"rw"``, ``"r"`` or ``""`` (none)."""
