"""Contexts and green-context options."""

from cuda.core._options import options
from cupyrite._native.core import Context

__all__ = ["Context", "ContextOptions"]


@options
class ContextOptions:
    """Options of a green context.

    Attributes
    ----------
    resources : sequence of SMResource or WorkqueueResource
        Device resources assigned to the context.

    Examples
    --------
    >>> from cuda.core import ContextOptions, Device, SMResourceOptions
    >>> device = Device()
    >>> device.set_current()
    >>> sm = device.resources.sm
    >>> groups, rest = sm.split(SMResourceOptions(count=sm.min_partition_size))
    >>> context = device.create_context(ContextOptions(resources=groups))
    >>> context.is_green
    True
    """

    resources: "DeviceResourcesType"
