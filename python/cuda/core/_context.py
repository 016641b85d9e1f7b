"""Contexts and green-context options."""

from cupyrite._native.core import Context

from cuda.core._options import options

__all__ = ["Context", "ContextOptions"]


@options
class ContextOptions:
    """Options of a green context.

    Attributes
    ----------
    resources : sequence of SMResource or WorkqueueResource
        Device resources assigned to the context.
    """

    resources: "DeviceResourcesType"
