"""Options of graphs."""

from __future__ import annotations

from cuda.core._options import options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cuda.core._stream import Stream

__all__ = ["GraphCompleteOptions", "GraphDebugPrintOptions"]


@options
class GraphCompleteOptions:
    """Options of an instantiation.

    Attributes
    ----------
    auto_free_on_launch : bool
        Whether each further launch first frees memory that the graph allocated and did not free.
    upload_stream : Stream, optional
        Stream in which the graph is uploaded.
    device_launch : bool
        Whether device code can launch the graph.
    use_node_priority : bool
        Whether nodes run with their own priorities instead of that of the stream.

    Examples
    --------
    >>> from cuda.core import Device
    >>> from cuda.core.graph import GraphDefinition
    >>> device = Device()
    >>> device.set_current()
    >>> definition = GraphDefinition()
    >>> from cuda.core.graph import GraphCompleteOptions
    >>> node = definition.allocate(1024)
    >>> options = GraphCompleteOptions(auto_free_on_launch=True)
    >>> graph = definition.instantiate(options)
    >>> for _ in range(2):
    ...     graph.launch(device.default_stream)
    >>> device.sync()
    """

    # Where programs import it from.
    __module__ = "cuda.core.graph._graph_builder"

    auto_free_on_launch: bool = False
    upload_stream: Stream | None = None
    device_launch: bool = False
    use_node_priority: bool = False


@options
class GraphDebugPrintOptions:
    """What ``debug_dot_print`` writes about each node; nothing beyond names and edges by default.

    Attributes
    ----------
    verbose : bool
        Everything.
    runtime_types : bool
        Parameters as the runtime's structures.
    kernel_node_params, memcpy_node_params, memset_node_params, host_node_params, event_node_params : bool
        Parameters of such nodes.
    ext_semas_signal_node_params, ext_semas_wait_node_params : bool
        Parameters of nodes with external semaphores.
    kernel_node_attributes : bool
        Attributes of kernel nodes.
    handles : bool
        Handles of nodes and kernels.
    mem_alloc_node_params, mem_free_node_params, batch_mem_op_node_params, conditional_node_params : bool
        Parameters of such nodes.
    extra_topo_info : bool
        Numbers of edges.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cuda.core import Device
    >>> from cuda.core.graph import GraphDefinition
    >>> device = Device()
    >>> device.set_current()
    >>> definition = GraphDefinition()
    >>> from cuda.core.graph import GraphDebugPrintOptions
    >>> node = definition.empty()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "graph.dot")
    ...     definition.debug_dot_print(str(path), GraphDebugPrintOptions(verbose=True))
    ...     "digraph" in path.read_text()
    True
    """

    # Where programs import it from.
    __module__ = "cuda.core.graph._graph_builder"

    verbose: bool = False
    runtime_types: bool = False
    kernel_node_params: bool = False
    memcpy_node_params: bool = False
    memset_node_params: bool = False
    host_node_params: bool = False
    event_node_params: bool = False
    ext_semas_signal_node_params: bool = False
    ext_semas_wait_node_params: bool = False
    kernel_node_attributes: bool = False
    handles: bool = False
    mem_alloc_node_params: bool = False
    mem_free_node_params: bool = False
    batch_mem_op_node_params: bool = False
    extra_topo_info: bool = False
    conditional_node_params: bool = False
