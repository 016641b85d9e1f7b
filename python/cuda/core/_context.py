"""Contexts."""

from cupyrite._native.core import Context

from cuda.core._options import options

__all__ = ["Context", "ContextOptions"]


@options
class ContextOptions:
    """How a green context is made.

    Attributes
    ----------
    resources : sequence of SMResource or WorkqueueResource
        The parts of a device that the context owns.
    """

    resources: "DeviceResourcesType"
