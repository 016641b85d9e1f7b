"""Managed memory from driver memory pools."""

from cuda.core._options import options
from cupyrite._native.core import ManagedMemoryResource, reset_concurrent_access_warning

__all__ = ["ManagedMemoryResource", "ManagedMemoryResourceOptions", "reset_concurrent_access_warning"]


@options
class ManagedMemoryResourceOptions:
    """Options of the pool of a :class:`ManagedMemoryResource`.

    Attributes
    ----------
    preferred_location : int or None
        Preferred location: a device number, or -1 for the host. If `preferred_location_type` is ``"host_numa"``, a NUMA
        node; default: the node nearest to the current device.
    preferred_location_type : ManagedMemoryLocationType or str, optional
        Meaning of `preferred_location`: ``"device"``, ``"host"`` (no number) or ``"host_numa"``.

    Examples
    --------
    >>> from cuda.core import ManagedMemoryResource, ManagedMemoryResourceOptions
    >>> options = ManagedMemoryResourceOptions(preferred_location_type="host")
    >>> ManagedMemoryResource(options).preferred_location
    (<ManagedMemoryLocationType.HOST: 'host'>, None)
    """

    preferred_location: "int | None" = None
    preferred_location_type: "ManagedMemoryLocationType | str | None" = None

    def __post_init__(self):
        given = self.preferred_location
        if given is not None:
            if not hasattr(given, "__index__") and not hasattr(given, "device_id"):
                raise TypeError(
                    f"ManagedMemoryResourceOptions.preferred_location is {given!r}; expected an int, a Device or None"
                )
            self.preferred_location = int(given)
