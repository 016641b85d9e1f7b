"""The base class of graph nodes."""

from collections.abc import Callable, Iterable
from typing import Any

from typing_extensions import Buffer as ReadableBuffer
from typing_extensions import Self, disjoint_base

from _ctypes import CFuncPtr as _CFuncPtr
from cuda.bindings.driver import CUgraphNode, CUgraphNodeType
from cuda.core._device import Device
from cuda.core._event import Event
from cuda.core._launch_config import LaunchConfig
from cuda.core._memory._buffer import Buffer
from cuda.core._module import Kernel
from cuda.core.graph._adjacency_set_proxy import AdjacencySetProxy
from cuda.core.graph._graph_definition import GraphCondition, GraphDefinition
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

__all__ = ["GraphNode"]

@disjoint_base
class GraphNode:
    """A node of a graph definition."""

    def __new__(cls) -> Self: ...
    @property
    def graph(self) -> GraphDefinition:
        """The definition of the node."""
    @property
    def handle(self) -> CUgraphNode:
        """Driver handle, a ``cuda.bindings.driver.CUgraphNode``; None for the entry point."""
    @property
    def is_valid(self) -> bool:
        """Whether the node and its definition exist."""
    @property
    def pred(self) -> AdjacencySetProxy:
        """The nodes that this node waits for, as a set that changes the graph when it is changed."""
    @pred.setter
    def pred(self, nodes: Iterable[GraphNode]) -> None: ...
    @property
    def succ(self) -> AdjacencySetProxy:
        """The nodes that wait for this node, as a set that changes the graph when it is changed."""
    @succ.setter
    def succ(self, nodes: Iterable[GraphNode]) -> None: ...
    @property
    def type(self) -> CUgraphNodeType | None:
        """Type of the node, a ``cuda.bindings.driver.CUgraphNodeType``; None for the entry point."""
    def allocate(self, size: int, *, device: Device | int | None = None, memory_type: GraphMemoryType | str = GraphMemoryType.DEVICE, peer_access: list[Device | int] | None = None) -> AllocNode:
        """Adds a memory allocation that depends on this node."""
    def callback(self, fn: Callable[[], object] | _CFuncPtr, *, user_data: int | ReadableBuffer | None = None) -> HostCallbackNode:
        """Adds a call of a host function that depends on this node. The function must not call CUDA."""
    def deallocate(self, dptr: int) -> FreeNode:
        """Adds a deallocation that depends on this node."""
    def destroy(self) -> None:
        """Destroys the node and its edges. Destroying it again has no effect."""
    def embed(self, child: GraphDefinition) -> ChildGraphNode:
        """Adds a clone of another definition that depends on this node."""
    def if_else(self, condition: GraphCondition) -> IfElseNode:
        """Adds a node that runs its first body if the condition is not 0, else the second one."""
    def if_then(self, condition: GraphCondition) -> IfNode:
        """Adds a node that runs its body if the condition is not 0."""
    def join(self, *nodes: GraphNode) -> EmptyNode:
        """Adds a node without work that depends on this node and all given ones."""
    def launch(self, config: LaunchConfig, kernel: Kernel, *args: Any) -> KernelNode:
        """Adds a kernel launch that depends on this node."""
    def memcpy(self, dst: Buffer | int, src: Buffer | int, size: int, *, dst_owner: object | None = None, src_owner: object | None = None) -> MemcpyNode:
        """Adds a copy that depends on this node."""
    def memset(self, dst: Buffer | int, value: int | ReadableBuffer, width: int, height: int = 1, pitch: int = 0, *, dst_owner: object | None = None) -> MemsetNode:
        """Adds a fill that depends on this node."""
    def record(self, event: Event) -> EventRecordNode:
        """Adds a record of an event that depends on this node. The node retains the event."""
    def switch(self, condition: GraphCondition, count: int) -> SwitchNode:
        """Adds a node that runs the body whose index is the condition's value, if there is one."""
    def wait(self, event: Event) -> EventWaitNode:
        """Adds a wait for an event that depends on this node. The node retains the event."""
    def while_loop(self, condition: GraphCondition) -> WhileNode:
        """Adds a node that repeats its body as long as the condition is not 0."""
    def _neighbours(self, before: bool) -> list[GraphNode]: ...
    def _connect(self, before: bool, nodes: Iterable[GraphNode]) -> None: ...
    def _disconnect(self, before: bool, nodes: Iterable[GraphNode]) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
