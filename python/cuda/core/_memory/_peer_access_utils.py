"""Peer access to the memory of device memory resources."""

from __future__ import annotations

from _collections_abc import MutableSet, Set

from cuda.core._device import Device
from cupyrite._native.core import mempool_get_access, mempool_set_access

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, Self

    from cuda.core._memory._device_memory_resource import DeviceMemoryResource

    _Devices = MutableSet[Device | int]
else:
    _Devices = MutableSet

__all__ = ["PeerAccessibleBySetProxy", "replace_peer_accessible_by"]


def _device_number(device: Any) -> int:
    """Number of an existing device."""
    return Device(device).device_id


def _existing_device_numbers(devices: Iterable[Device | int]) -> set[int]:
    """Numbers of those devices that exist; the others have no access to revoke."""
    existing = range(len(Device.get_all_devices()))
    return {n for n in [d if isinstance(d, int) else _device_number(d) for d in devices] if n in existing}


def _current_peers(mr: DeviceMemoryResource) -> set[int]:
    # Queries the owner as well, so that a closed resource raises even if it is the only device.
    devices = [device.device_id for device in Device.get_all_devices()]
    return {number for number in devices if mempool_get_access(mr, number) == "rw"} - {mr.device_id}


def replace_peer_accessible_by(mr: DeviceMemoryResource, devices: Iterable[Device | int]) -> None:
    """Grant exactly these peer devices access to the memory of a resource; all changes are applied or none.

    Parameters
    ----------
    mr : DeviceMemoryResource
        The resource. Its own device always has access.
    devices : iterable of Device or int
        The peer devices.

    Raises
    ------
    ValueError
        A device cannot access the memory of the resource's device.
    """
    owner = Device(mr.device_id)
    try:
        given = list(devices)
    except TypeError as error:
        raise TypeError(
            f"peer_accessible_by is of type {type(devices).__name__}; expected an iterable of Device objects or device "
            "numbers"
        ) from error
    peers = {_device_number(device) for device in given} - {owner.device_id}
    current = _current_peers(mr)
    added = sorted(peers - current)
    if unable := [number for number in added if not Device(number).can_access_peer(owner)]:
        raise ValueError(
            f"device {', '.join(map(str, unable))} cannot access the memory of device {owner.device_id} as a peer"
        )
    mempool_set_access(mr, added, sorted(current - peers))


class PeerAccessibleBySetProxy(_Devices):
    """Peer devices with access to the memory of a :class:`DeviceMemoryResource`.

    A mutable set of :class:`Device`. Reads query the driver; modifications change access rights. Devices can be given by
    number.

    Parameters
    ----------
    mr : DeviceMemoryResource
        The resource.
    """

    __slots__ = ("_mr",)

    def __init__(self, mr: DeviceMemoryResource) -> None:
        self._mr = mr

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> set[Any]:
        # Operators return plain sets that are not connected to the driver.
        return set(it)

    def __contains__(self, value: object) -> bool:
        try:
            number = _device_number(value)
        except (TypeError, ValueError, OverflowError):
            return False
        return number in _current_peers(self._mr)

    def __iter__(self) -> Iterator[Device]:
        return iter([Device(number) for number in sorted(_current_peers(self._mr))])

    def __len__(self) -> int:
        return len(_current_peers(self._mr))

    def __repr__(self) -> str:
        return f"PeerAccessibleBySetProxy({set(self)!r})"

    def _change(self, add: Iterable[int], remove: Iterable[int]) -> None:
        """Grant and revoke access in one step; nothing changes if a device is refused."""
        current = _current_peers(self._mr)
        replace_peer_accessible_by(self._mr, (current | set(add)) - set(remove))

    def add(self, value: Device | int) -> None:
        """Grant a device access."""
        self._change([_device_number(value)], [])

    def discard(self, value: Device | int) -> None:
        """Revoke the access of a device, if it has any."""
        if value in self:
            self._change([], [_device_number(value)])

    def clear(self) -> None:
        """Revoke the access of all peer devices."""
        self._change([], _current_peers(self._mr))

    def update(self, *others: Iterable[Device | int]) -> None:
        """Grant all devices of the given iterables access."""
        self._change([_device_number(value) for other in others for value in other], [])

    def difference_update(self, *others: Iterable[Device | int]) -> None:
        """Revoke the access of all devices of the given iterables."""
        self._change([], _existing_device_numbers(value for other in others for value in other))

    def intersection_update(self, *others: Iterable[Device | int]) -> None:
        """Revoke the access of devices that are not in all of the given iterables."""
        keep = _current_peers(self._mr)
        for other in others:
            keep &= {_device_number(value) for value in other}
        self._change([], _current_peers(self._mr) - keep)

    def symmetric_difference_update(self, other: Iterable[Device | int]) -> None:
        """Revoke the access of devices of an iterable that have it, and grant it to the others."""
        given, current = _existing_device_numbers(other), _current_peers(self._mr)
        self._change(given - current, given & current)

    def __ior__(self, other: Set[Device | int]) -> Self:  # type: ignore[override, misc]
        self.update(other)
        return self

    def __iand__(self, other: Set[Device | int]) -> Self:  # type: ignore[misc]
        self.intersection_update(other)
        return self

    def __isub__(self, other: Set[Device | int]) -> Self:  # type: ignore[misc]
        self.difference_update(other)
        return self

    def __ixor__(self, other: Set[Device | int]) -> Self:  # type: ignore[override, misc]
        self.symmetric_difference_update(other)
        return self
