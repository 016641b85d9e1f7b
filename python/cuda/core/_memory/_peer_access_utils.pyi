from collections.abc import Iterable, Iterator, MutableSet
from collections.abc import Set as AbstractSet
from typing import Any

from cuda.core._device import Device
from cuda.core._memory._device_memory_resource import DeviceMemoryResource

__all__ = ["PeerAccessibleBySetProxy", "replace_peer_accessible_by"]

def replace_peer_accessible_by(mr: DeviceMemoryResource, devices: Iterable[Device | int]) -> None:
    """Grant exactly these peer devices access to the memory of a resource; all changes are applied or none."""

class PeerAccessibleBySetProxy(MutableSet[Device | int]):
    """Peer devices with access to the memory of a :class:`DeviceMemoryResource`."""

    __slots__ = ("_mr",)

    def __init__(self, mr: DeviceMemoryResource) -> None: ...
    def __contains__(self, value: object) -> bool: ...
    def __iter__(self) -> Iterator[Device]: ...
    def __len__(self) -> int: ...
    def add(self, value: Device | int) -> None:
        """Grant a device access."""
    def discard(self, value: Device | int) -> None:
        """Revoke the access of a device, if it has any."""
    def clear(self) -> None:
        """Revoke the access of all peer devices."""
    def update(self, *others: Iterable[Device | int]) -> None:
        """Grant all devices of the given iterables access."""
    def difference_update(self, *others: Iterable[Device | int]) -> None:
        """Revoke the access of all devices of the given iterables."""
    def intersection_update(self, *others: Iterable[Device | int]) -> None:
        """Revoke the access of devices that are not in all of the given iterables."""
    def symmetric_difference_update(self, other: Iterable[Device | int]) -> None:
        """Revoke the access of devices of an iterable that have it, and grant it to the others."""
    def __ior__(self, other: AbstractSet[Device | int]) -> PeerAccessibleBySetProxy: ...  # type: ignore[override,misc]
    def __iand__(self, other: AbstractSet[Any]) -> PeerAccessibleBySetProxy: ...
    def __isub__(self, other: AbstractSet[Any]) -> PeerAccessibleBySetProxy: ...
    def __ixor__(self, other: AbstractSet[Device | int]) -> PeerAccessibleBySetProxy: ...  # type: ignore[override,misc]
