"""Graph definitions and conditions."""

from collections.abc import Callable
from typing import Any, final

from typing_extensions import Buffer as ReadableBuffer
from typing_extensions import Self

from _ctypes import CFuncPtr as _CFuncPtr
from cuda.bindings.driver import CUgraph, CUgraphConditionalHandle
from cuda.core._device import Device
from cuda.core._event import Event
from cuda.core._launch_config import LaunchConfig
from cuda.core._memory._buffer import Buffer
from cuda.core._module import Kernel
from cuda.core.graph._graph_builder import Graph, GraphCompleteOptions, GraphDebugPrintOptions
from cuda.core.graph._graph_node import GraphNode
from cuda.core.graph._subclasses import (
    AllocNode,
    ChildGraphNode,
    EmptyNode,
    EventRecordNode,
    EventWaitNode,
    FreeNode,
    HostCallbackNode,
    IfElseNode,
    IfNode,
    KernelNode,
    MemcpyNode,
    MemsetNode,
    SwitchNode,
    WhileNode,
)
from cuda.core.typing import GraphMemoryType

__all__ = ["GraphCondition", "GraphDefinition"]

@final
class GraphCondition:
    """A value that device code sets with ``cudaGraphSetConditional`` and that conditional nodes test."""

    def __new__(cls) -> Self: ...
    @property
    def handle(self) -> CUgraphConditionalHandle:
        """Driver handle, a ``cuda.bindings.driver.CUgraphConditionalHandle``."""
    def __int__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class GraphDefinition:
    """A graph under construction: nodes and their dependencies."""

    def __new__(cls) -> Self: ...
    @property
    def handle(self) -> CUgraph:
        """Driver handle, a ``cuda.bindings.driver.CUgraph``."""
    @property
    def is_valid(self) -> bool:
        """Whether the graph exists: False after the node to which it belongs was destroyed, and after a failed
        capture."""
    def allocate(self, size: int, *, device: Device | int | None = None, memory_type: GraphMemoryType | str = GraphMemoryType.DEVICE, peer_access: list[Device | int] | None = None) -> AllocNode:
        """Adds a memory allocation without dependencies: see :meth:`GraphNode.allocate`."""
    def callback(self, fn: Callable[[], object] | _CFuncPtr, *, user_data: int | ReadableBuffer | None = None) -> HostCallbackNode:
        """Adds a host callback without dependencies: see :meth:`GraphNode.callback`."""
    def create_condition(self, default_value: int | None = None) -> GraphCondition:
        """Creates a condition for conditional nodes."""
    def deallocate(self, dptr: int) -> FreeNode:
        """Adds a deallocation without dependencies: see :meth:`GraphNode.deallocate`."""
    def debug_dot_print(self, path: str, options: GraphDebugPrintOptions | dict[str, Any] | None = None) -> None:
        """Writes the graph to a file in the language DOT of Graphviz."""
    def edges(self) -> set[tuple[GraphNode, GraphNode]]:
        """All edges."""
    def embed(self, child: GraphDefinition) -> ChildGraphNode:
        """Adds a clone of another definition without dependencies: see :meth:`GraphNode.embed`."""
    def empty(self) -> EmptyNode:
        """Adds a node without work and without dependencies."""
    def if_else(self, condition: GraphCondition) -> IfElseNode:
        """Adds an if-else node without dependencies: see :meth:`GraphNode.if_else`."""
    def if_then(self, condition: GraphCondition) -> IfNode:
        """Adds an if node without dependencies: see :meth:`GraphNode.if_then`."""
    def instantiate(self, options: GraphCompleteOptions | dict[str, Any] | None = None) -> Graph:
        """Instantiates the graph."""
    def join(self, *nodes: GraphNode) -> EmptyNode:
        """Adds a node without work that depends on all given nodes."""
    def launch(self, config: LaunchConfig, kernel: Kernel, *args: Any) -> KernelNode:
        """Adds a kernel launch without dependencies: see :meth:`GraphNode.launch`."""
    def memcpy(self, dst: Buffer | int, src: Buffer | int, size: int, *, dst_owner: object | None = None, src_owner: object | None = None) -> MemcpyNode:
        """Adds a copy without dependencies: see :meth:`GraphNode.memcpy`."""
    def memset(self, dst: Buffer | int, value: int | ReadableBuffer, width: int, height: int = 1, pitch: int = 0, *, dst_owner: object | None = None) -> MemsetNode:
        """Adds a fill without dependencies: see :meth:`GraphNode.memset`."""
    def nodes(self) -> set[GraphNode]:
        """All nodes."""
    def record(self, event: Event) -> EventRecordNode:
        """Adds a record of an event without dependencies: see :meth:`GraphNode.record`."""
    def switch(self, condition: GraphCondition, count: int) -> SwitchNode:
        """Adds a switch node without dependencies: see :meth:`GraphNode.switch`."""
    def wait(self, event: Event) -> EventWaitNode:
        """Adds a wait for an event without dependencies: see :meth:`GraphNode.wait`."""
    def while_loop(self, condition: GraphCondition) -> WhileNode:
        """Adds a while node without dependencies: see :meth:`GraphNode.while_loop`."""
    def _repr_html_(self) -> str:
        """HTML for notebooks."""
    @property
    def _entry(self) -> GraphNode: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
