"""Which devices may use the memory of another one."""

from _collections_abc import MutableSet, Set

from cupyrite._native.core import mempool_get_access, mempool_set_access

from cuda.core._device import Device
from cuda.core._options import options

__all__ = [
    "PeerAccessPlan",
    "PeerAccessibleBySetProxy",
    "normalize_peer_access_targets",
    "plan_peer_access_update",
    "replace_peer_accessible_by",
]


@options(frozen=True)
class PeerAccessPlan:
    """What has to change so that exactly certain devices can use a device's memory.

    Attributes
    ----------
    target_ids : tuple of int
        The devices that are to have access, in order.
    to_add : tuple of int
        Those of them that do not have it yet.
    to_remove : tuple of int
        The devices that are to lose it.
    """

    target_ids: "tuple[int, ...]"
    to_add: "tuple[int, ...]"
    to_remove: "tuple[int, ...]"


def normalize_peer_access_targets(
    owner_device_id: "int", requested_devices: "Iterable[object]", *, resolve_device_id: "Callable[[object], int]"
) -> "tuple[int, ...]":
    """The numbers of devices, each once and in order, without the owner, who always has access.

    Parameters
    ----------
    owner_device_id : int
        The device whose memory it is.
    requested_devices : iterable
        Devices, of any kind that `resolve_device_id` understands.
    resolve_device_id : callable
        Gives the number of a device.
    """
    return tuple(sorted({resolve_device_id(device) for device in requested_devices} - {owner_device_id}))


def plan_peer_access_update(
    owner_device_id: "int",
    current_peer_ids: "Iterable[int]",
    requested_devices: "Iterable[object]",
    *,
    resolve_device_id: "Callable[[object], int]",
    can_access_peer: "Callable[[int], bool]",
) -> "PeerAccessPlan":
    """What has to change so that exactly the requested devices have access.

    Parameters
    ----------
    owner_device_id : int
        The device whose memory it is.
    current_peer_ids : iterable of int
        Who has access now.
    requested_devices : iterable
        Who is to have it.
    resolve_device_id : callable
        Gives the number of a device.
    can_access_peer : callable
        Whether the device with a number can reach the owner's memory.

    Raises
    ------
    ValueError
        A device that is to get access cannot reach the memory.
    """
    targets = normalize_peer_access_targets(
        owner_device_id, requested_devices, resolve_device_id=resolve_device_id
    )
    current = set(current_peer_ids)
    missing = tuple(target for target in targets if target not in current)
    if unable := [target for target in missing if not can_access_peer(target)]:
        raise ValueError(
            f"the memory of device {owner_device_id} cannot be reached from device {', '.join(map(str, unable))}"
        )
    return PeerAccessPlan(targets, missing, tuple(sorted(current.difference(targets))))


def _number(device):
    """The number of a device that is there."""
    return Device(device).device_id


def _numbers(devices):
    """The numbers of those devices that are there; others have no access that could be taken."""
    there = range(len(Device.get_all_devices()))
    return {n for n in [d if isinstance(d, int) else _number(d) for d in devices] if n in there}


def _peers(mr):
    # The owner is asked about too, so that a closed resource says so wherever there is but one device.
    devices = [device.device_id for device in Device.get_all_devices()]
    return {number for number in devices if mempool_get_access(mr, number) == "rw"} - {mr.device_id}


def replace_peer_accessible_by(mr: "DeviceMemoryResource", devices: "Iterable[Device | int]") -> "None":
    """Lets exactly these devices, and the resource's own, use the memory of a resource; all of it changes or nothing.

    Parameters
    ----------
    mr : DeviceMemoryResource
        The resource.
    devices : iterable of Device or int
        Who is to have access.
    """
    owner = Device(mr.device_id)
    plan = plan_peer_access_update(
        mr.device_id,
        _peers(mr),
        devices,
        resolve_device_id=_number,
        can_access_peer=lambda peer: Device(peer).can_access_peer(owner),
    )
    mempool_set_access(mr, plan.to_add, plan.to_remove)


class PeerAccessibleBySetProxy(MutableSet):
    """The devices, other than its own, that can use the memory of a :class:`DeviceMemoryResource`.

    A set of :class:`Device`: reading asks the driver, changing tells it. Devices may be given by their numbers.

    Parameters
    ----------
    mr : DeviceMemoryResource
        The resource.
    """

    __slots__ = ("_mr",)

    def __init__(self, mr):
        self._mr = mr

    @classmethod
    def _from_iterable(cls, it):
        # What operators make of it is a set of its own, which no driver knows of.
        return set(it)

    def __contains__(self, value):
        try:
            number = _number(value)
        except (TypeError, ValueError, OverflowError):
            return False
        return number in _peers(self._mr)

    def __iter__(self):
        return iter([Device(number) for number in sorted(_peers(self._mr))])

    def __len__(self):
        return len(_peers(self._mr))

    def __repr__(self):
        return f"PeerAccessibleBySetProxy({set(self)!r})"

    def _change(self, add, remove):
        """Gives and takes access at once; nothing changes where one of the devices is refused."""
        now = _peers(self._mr)
        replace_peer_accessible_by(self._mr, (now | set(add)) - set(remove))

    def add(self, value: "Device | int") -> "None":
        """Lets a device use the memory."""
        self._change([_number(value)], [])

    def discard(self, value: "Device | int") -> "None":
        """Takes the access of a device, if it has it."""
        if value in self:
            self._change([], [_number(value)])

    def clear(self) -> "None":
        """Takes the access of all devices but the resource's own."""
        self._change([], _peers(self._mr))

    def update(self, *others: "Iterable[Device | int]") -> "None":
        """Lets all devices of some iterables use the memory."""
        self._change([_number(value) for other in others for value in other], [])

    def difference_update(self, *others: "Iterable[Device | int]") -> "None":
        """Takes the access of all devices of some iterables."""
        self._change([], _numbers(value for other in others for value in other))

    def intersection_update(self, *others: "Iterable[Device | int]") -> "None":
        """Takes the access of devices that are not in all of some iterables."""
        keep = _peers(self._mr)
        for other in others:
            keep &= {_number(value) for value in other}
        self._change([], _peers(self._mr) - keep)

    def symmetric_difference_update(self, other: "Iterable[Device | int]") -> "None":
        """Takes the access of those devices of an iterable that have it, and lets the others use the memory."""
        given, now = _numbers(other), _peers(self._mr)
        self._change(given - now, given & now)

    def __ior__(self, other: "Set[Device | int]"):
        self.update(other)
        return self

    def __iand__(self, other: "Set[Device | int]"):
        self.intersection_update(other)
        return self

    def __isub__(self, other: "Set[Device | int]"):
        self.difference_update(other)
        return self

    def __ixor__(self, other: "Set[Device | int]"):
        self.symmetric_difference_update(other)
        return self
