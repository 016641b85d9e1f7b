"""Memory that graphs allocate."""

from cupyrite._native.core import GraphMemoryResourceAttributes, cyGraphMemoryResource

__all__ = ["GraphMemoryResource", "GraphMemoryResourceAttributes", "cyGraphMemoryResource"]


class GraphMemoryResource(cyGraphMemoryResource):
    """Allocates in graphs that are being captured: allocations and frees are nodes of the graph.

    Parameters
    ----------
    device_id : int or Device
        The device.
    """

    __slots__ = ()

    def __new__(cls, device_id: "int | Device"):
        return super().__new__(cls, device_id)

    def __init__(self, device_id: "int | Device"):
        super().__init__()
