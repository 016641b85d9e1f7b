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
    """

    resources: "DeviceResourcesType"
