from collections.abc import Callable, Iterable, Iterator, MutableSet
from collections.abc import Set as AbstractSet
from typing import Any

from cuda.core._device import Device
from cuda.core._memory._device_memory_resource import DeviceMemoryResource

__all__ = [
    "PeerAccessPlan",
    "PeerAccessibleBySetProxy",
    "normalize_peer_access_targets",
    "plan_peer_access_update",
    "replace_peer_accessible_by",
]

class PeerAccessPlan:
    """What has to change so that exactly certain devices can use a device's memory."""

    target_ids: tuple[int, ...]
    to_add: tuple[int, ...]
    to_remove: tuple[int, ...]
    def __init__(self, target_ids: tuple[int, ...], to_add: tuple[int, ...], to_remove: tuple[int, ...]) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __setattr__(self, name: str, value: object) -> None: ...
    def __delattr__(self, name: str) -> None: ...
    __match_args__ = ("target_ids", "to_add", "to_remove")

def normalize_peer_access_targets(
    owner_device_id: int, requested_devices: Iterable[object], *, resolve_device_id: Callable[[Any], int]
) -> tuple[int, ...]:
    """The numbers of devices, each once and in order, without the owner."""

def plan_peer_access_update(
    owner_device_id: int,
    current_peer_ids: Iterable[int],
    requested_devices: Iterable[object],
    *,
    resolve_device_id: Callable[[Any], int],
    can_access_peer: Callable[[int], bool],
) -> PeerAccessPlan:
    """What has to change so that exactly the requested devices have access."""

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
