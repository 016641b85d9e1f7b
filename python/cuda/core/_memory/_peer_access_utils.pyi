from collections.abc import Iterable, Iterator, MutableSet
from collections.abc import Set as AbstractSet
from typing import Any

from cuda.core._device import Device
from cuda.core._memory._device_memory_resource import DeviceMemoryResource

__all__ = ["PeerAccessibleBySetProxy", "replace_peer_accessible_by"]

def replace_peer_accessible_by(mr: DeviceMemoryResource, devices: Iterable[Device | int]) -> None:
    """Lets exactly these devices, and the resource's own, use the memory of a resource."""

class PeerAccessibleBySetProxy(MutableSet[Device | int]):
    """The devices, other than its own, that can use the memory of a `DeviceMemoryResource`."""

    __slots__ = ("_mr",)

    def __init__(self, mr: DeviceMemoryResource) -> None: ...
    def __contains__(self, value: object) -> bool: ...
    def __iter__(self) -> Iterator[Device]: ...
    def __len__(self) -> int: ...
    def add(self, value: Device | int) -> None:
        """Lets a device use the memory."""
    def discard(self, value: Device | int) -> None:
        """Takes the access of a device, if it has it."""
    def clear(self) -> None:
        """Takes the access of all devices but the resource's own."""
    def update(self, *others: Iterable[Device | int]) -> None:
        """Lets all devices of some iterables use the memory."""
    def difference_update(self, *others: Iterable[Device | int]) -> None:
        """Takes the access of all devices of some iterables."""
    def intersection_update(self, *others: Iterable[Device | int]) -> None:
        """Takes the access of devices that are not in all of some iterables."""
    def symmetric_difference_update(self, other: Iterable[Device | int]) -> None:
        """Takes the access of those devices of an iterable that have it, and lets the others use the memory."""
    def __ior__(self, other: AbstractSet[Device | int]) -> PeerAccessibleBySetProxy: ...  # type: ignore[override,misc]
    def __iand__(self, other: AbstractSet[Any]) -> PeerAccessibleBySetProxy: ...
    def __isub__(self, other: AbstractSet[Any]) -> PeerAccessibleBySetProxy: ...
    def __ixor__(self, other: AbstractSet[Device | int]) -> PeerAccessibleBySetProxy: ...  # type: ignore[override,misc]
