"""Graph nodes by type, and the views by which nodes of instantiated graphs are updated."""

from collections.abc import Callable, Iterable
from typing import Any, final

from typing_extensions import Buffer as ReadableBuffer
from typing_extensions import Self, disjoint_base

from _ctypes import CFuncPtr as _CFuncPtr
from cuda.core._event import Event
from cuda.core._launch_config import LaunchConfig
from cuda.core._memory._buffer import Buffer
from cuda.core._module import Kernel
from cuda.core.graph._graph_definition import GraphCondition, GraphDefinition
from cuda.core.graph._graph_node import GraphNode
from cuda.core.typing import GraphConditionalType, GraphMemoryType

__all__ = ["AllocNode", "ChildGraphNode", "ConditionalNode", "EmptyNode", "EventRecordNode", "EventWaitNode", "ExecutableChildGraphNode", "ExecutableEventRecordNode", "ExecutableEventWaitNode", "ExecutableGraphNode", "ExecutableHostCallbackNode", "ExecutableKernelNode", "ExecutableMemcpyNode", "ExecutableMemsetNode", "FreeNode", "HostCallbackNode", "IfElseNode", "IfNode", "KernelNode", "MemcpyNode", "MemsetNode", "SwitchNode", "WhileNode"]

@disjoint_base
class ExecutableGraphNode:
    """A node of an instantiated graph: ``graph[node]``."""

    def __new__(cls) -> Self: ...

class AllocNode(GraphNode):
    """A memory allocation of the graph."""

    def __new__(cls) -> Self: ...
    @property
    def bytesize(self) -> int:
        """Size in bytes."""
    @property
    def device_id(self) -> int:
        """Device number."""
    @property
    def dptr(self) -> int:
        """Address of the memory."""
    @property
    def memory_type(self) -> GraphMemoryType:
        """Kind of memory, a ``GraphMemoryType``."""
    @property
    def peer_access(self) -> tuple[int, ...]:
        """Other devices that may access the memory."""

class ChildGraphNode(GraphNode):
    """A clone of another definition."""

    def __new__(cls) -> Self: ...
    @property
    def child_graph(self) -> GraphDefinition:
        """The embedded clone."""
    def update(self, child: GraphDefinition) -> None:
        """Replaces the embedded graph by a clone of an independent definition."""

class ConditionalNode(GraphNode):
    """A node that runs one of its bodies, or none, depending on a condition."""

    def __new__(cls) -> Self: ...
    @property
    def branches(self) -> tuple[GraphDefinition, ...]:
        """The bodies, a tuple of GraphDefinition."""
    @property
    def cond_type(self) -> GraphConditionalType | None:
        """The type, a ``GraphConditionalType``; None if the driver does not report it."""
    @property
    def condition(self) -> GraphCondition | None:
        """The condition; None if the driver does not report it."""

class EmptyNode(GraphNode):
    """A node without work."""

    def __new__(cls) -> Self: ...

class EventRecordNode(GraphNode):
    """A record of an event."""

    def __new__(cls) -> Self: ...
    @property
    def event(self) -> Event:
        """The event."""
    def update(self, event: Event) -> None:
        """Replaces the event."""

class EventWaitNode(GraphNode):
    """A wait for an event."""

    def __new__(cls) -> Self: ...
    @property
    def event(self) -> Event:
        """The event."""
    def update(self, event: Event) -> None:
        """Replaces the event."""

@final
class ExecutableChildGraphNode(ExecutableGraphNode):
    """A child graph of an instantiated graph."""

    def __new__(cls) -> Self: ...
    def update(self, child: GraphDefinition) -> None:
        """Replaces the child graph by one with the same nodes and edges."""

@final
class ExecutableEventRecordNode(ExecutableGraphNode):
    """A record of an event in an instantiated graph."""

    def __new__(cls) -> Self: ...
    def update(self, event: Event) -> None:
        """Replaces the event."""

@final
class ExecutableEventWaitNode(ExecutableGraphNode):
    """A wait for an event in an instantiated graph."""

    def __new__(cls) -> Self: ...
    def update(self, event: Event) -> None:
        """Replaces the event."""

@final
class ExecutableHostCallbackNode(ExecutableGraphNode):
    """A host callback of an instantiated graph."""

    def __new__(cls) -> Self: ...
    def update(self, fn: Callable[[], object] | _CFuncPtr, *, user_data: int | ReadableBuffer | None = None) -> None:
        """Replaces the host function: see :meth:`GraphNode.callback`."""

@final
class ExecutableKernelNode(ExecutableGraphNode):
    """A kernel launch of an instantiated graph."""

    def __new__(cls) -> Self: ...
    @property
    def is_enabled(self) -> bool:
        """Whether the node runs."""
    def disable(self) -> None:
        """Makes later launches skip the node."""
    def enable(self) -> None:
        """Lets the node run in later launches."""
    def update(self, *, config: LaunchConfig, kernel: Kernel, args: Iterable[Any]) -> None:
        """Replaces the launch."""

@final
class ExecutableMemcpyNode(ExecutableGraphNode):
    """A copy of an instantiated graph."""

    def __new__(cls) -> Self: ...
    @property
    def is_enabled(self) -> bool:
        """Whether the node runs."""
    def disable(self) -> None:
        """Makes later launches skip the node."""
    def enable(self) -> None:
        """Lets the node run in later launches."""
    def update(self, *, dst: Buffer | int, src: Buffer | int, size: int) -> None:
        """Replaces the copy."""

@final
class ExecutableMemsetNode(ExecutableGraphNode):
    """A fill of an instantiated graph."""

    def __new__(cls) -> Self: ...
    @property
    def is_enabled(self) -> bool:
        """Whether the node runs."""
    def disable(self) -> None:
        """Makes later launches skip the node."""
    def enable(self) -> None:
        """Lets the node run in later launches."""
    def update(self, *, dst: Buffer | int, value: int | ReadableBuffer, width: int, height: int = 1, pitch: int = 0) -> None:
        """Replaces the fill."""

class FreeNode(GraphNode):
    """A deallocation of memory of the graph."""

    def __new__(cls) -> Self: ...
    @property
    def dptr(self) -> int:
        """Address of the memory."""

class HostCallbackNode(GraphNode):
    """A call of a host function."""

    def __new__(cls) -> Self: ...
    @property
    def callback(self) -> Callable[[], object] | None:  # type: ignore[override]
        """The Python callable; None for a ctypes function."""
    def update(self, fn: Callable[[], object] | _CFuncPtr, *, user_data: int | ReadableBuffer | None = None) -> None:
        """Replaces the host function: see :meth:`GraphNode.callback`."""

class KernelNode(GraphNode):
    """A kernel launch."""

    def __new__(cls) -> Self: ...
    @property
    def block(self) -> tuple[int, int, int]:
        """Block dimensions in threads."""
    @property
    def config(self) -> LaunchConfig:
        """The launch configuration."""
    @property
    def grid(self) -> tuple[int, int, int]:
        """Grid dimensions in blocks; with a cluster, in clusters."""
    @property
    def kernel(self) -> Kernel:
        """The kernel."""
    @property
    def shmem_size(self) -> int:
        """Bytes of dynamic shared memory per block."""
    def update(self, *, config: LaunchConfig | None = None, kernel: Kernel | None = None, args: Iterable[Any] | None = None) -> None:
        """Replaces the launch configuration, or kernel and arguments. What is not given stays."""

class MemcpyNode(GraphNode):
    """A copy."""

    def __new__(cls) -> Self: ...
    @property
    def dst(self) -> int:
        """Address of the destination."""
    @property
    def size(self) -> int:
        """Number of bytes."""
    @property
    def src(self) -> int:
        """Address of the source."""
    def update(self, *, dst: Buffer | int | None = None, src: Buffer | int | None = None, size: int | None = None, dst_owner: object | None = None, src_owner: object | None = None) -> None:
        """Replaces parameters. What is not given stays."""

class MemsetNode(GraphNode):
    """A fill."""

    def __new__(cls) -> Self: ...
    @property
    def dptr(self) -> int:
        """Destination."""
    @property
    def element_size(self) -> int:
        """Size of an element in bytes: 1, 2 or 4."""
    @property
    def height(self) -> int:
        """Rows."""
    @property
    def pitch(self) -> int:
        """Bytes from one row to the next."""
    @property
    def value(self) -> int:
        """Element."""
    @property
    def width(self) -> int:
        """Elements per row."""
    def update(self, *, dst: Buffer | int | None = None, value: int | ReadableBuffer | None = None, width: int | None = None, height: int | None = None, pitch: int | None = None, dst_owner: object | None = None) -> None:
        """Replaces parameters. What is not given stays."""

class IfElseNode(ConditionalNode):
    """A conditional node with a body for each outcome."""

    def __new__(cls) -> Self: ...
    @property
    def else_(self) -> GraphDefinition:
        """The body for 0."""
    @property
    def then(self) -> GraphDefinition:
        """The body for a condition that is not 0."""

class IfNode(ConditionalNode):
    """A conditional node that runs its body if the condition is not 0."""

    def __new__(cls) -> Self: ...
    @property
    def then(self) -> GraphDefinition:
        """The body."""

class SwitchNode(ConditionalNode):
    """A conditional node that runs the body with the index that the condition has."""

    def __new__(cls) -> Self: ...

class WhileNode(ConditionalNode):
    """A conditional node that repeats its body as long as the condition is not 0."""

    def __new__(cls) -> Self: ...
    @property
    def body(self) -> GraphDefinition:
        """The body."""
