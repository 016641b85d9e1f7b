"""Memory that graphs allocate."""

from cupyrite._native.core import GraphMemoryResourceAttributes, cyGraphMemoryResource

__all__ = ["GraphMemoryResource", "GraphMemoryResourceAttributes", "cyGraphMemoryResource"]


class GraphMemoryResource(cyGraphMemoryResource):
    """Allocates in graphs that are being captured: allocations and frees are nodes of the graph.

    Parameters
    ----------
    device_id : int or Device
        The device.

    Examples
    --------
    >>> from cuda.core import Device, GraphMemoryResource
    >>> device = Device()
    >>> device.set_current()
    >>> resource = GraphMemoryResource(device)
    >>> builder = device.create_graph_builder().begin_building()
    >>> scratch = resource.allocate(1024, stream=builder)
    >>> scratch.fill(0, stream=builder)
    >>> scratch.close(builder)
    >>> graph = builder.end_building().complete()
    >>> graph.launch(device.default_stream)
    >>> device.sync()
    >>> resource.attributes.used_mem_high >= 1024
    True
    >>> resource.trim()
    """

    __slots__ = ()

    def __new__(cls, device_id: "int | Device"):
        return super().__new__(cls, device_id)

    def __init__(self, device_id: "int | Device"):
        super().__init__()
