"""Managed memory, from pools of the driver's."""

from cupyrite._native.core import ManagedMemoryResource, reset_concurrent_access_warning

from cuda.core._options import options

__all__ = ["ManagedMemoryResource", "ManagedMemoryResourceOptions", "reset_concurrent_access_warning"]


@options
class ManagedMemoryResourceOptions:
    """How the pool of a :class:`ManagedMemoryResource` is made.

    Attributes
    ----------
    preferred_location : int or None
        Where the memory should rather be: the number of a device, or -1 for the host; of a NUMA node where
        `preferred_location_type` is ``"host_numa"``, by default the one that is nearest to the current device.
    preferred_location_type : ManagedMemoryLocationType or str, optional
        What `preferred_location` is the number of: ``"device"``, ``"host"`` (no number), ``"host_numa"``.
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
