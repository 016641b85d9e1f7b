"""Graph builders, instantiated graphs and their options."""

from collections.abc import Callable
from typing import Any, final

from typing_extensions import Buffer as ReadableBuffer
from typing_extensions import Self

from _ctypes import CFuncPtr as _CFuncPtr
from cuda.bindings.driver import CUgraphExec
from cuda.core._stream import Stream
from cuda.core.graph._graph_definition import GraphCondition, GraphDefinition
from cuda.core.graph._graph_node import GraphNode
from cuda.core.graph._graph_options import GraphCompleteOptions as GraphCompleteOptions
from cuda.core.graph._graph_options import GraphDebugPrintOptions as GraphDebugPrintOptions
from cuda.core.graph._subclasses import ExecutableGraphNode

__all__ = ["Graph", "GraphBuilder", "GraphCompleteOptions", "GraphDebugPrintOptions"]

@final
class Graph:
    """An instantiated graph."""

    def __new__(cls) -> Self: ...
    @property
    def handle(self) -> CUgraphExec:
        """Driver handle, a ``cuda.bindings.driver.CUgraphExec``; 0 if the graph was closed."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
    def close(self) -> None:
        """Releases the graph. Its launches complete."""
    def launch(self, stream: Stream | GraphBuilder) -> None:
        """Launches the graph. Launches of a graph run one after the other, also in different streams."""
    def update(self, source: GraphBuilder | GraphDefinition) -> None:
        """Replaces the parameters of all nodes for later launches."""
    def upload(self, stream: Stream | GraphBuilder) -> None:
        """Prepares the first launch, in a stream."""
    def _repr_html_(self) -> str:
        """HTML for notebooks."""
    def __getitem__(self, node: GraphNode, /) -> ExecutableGraphNode: ...

@final
class GraphBuilder:
    """A graph under construction by stream capture: what is queued with the builder as stream becomes part of the
    graph."""

    def __new__(cls) -> Self: ...
    @property
    def graph_definition(self) -> GraphDefinition:
        """The definition of the graph."""
    @property
    def is_building(self) -> bool:
        """Whether the capture is in progress."""
    @property
    def is_closed(self) -> bool:
        """Whether the builder was closed or joined."""
    @property
    def is_join_required(self) -> bool:
        """Whether the builder is a branch of a split, which has to be joined."""
    @property
    def stream(self) -> Stream:
        """The stream that is captured."""
    def begin_building(self, mode: str | None = 'relaxed') -> GraphBuilder:
        """Begins the capture."""
    def callback(self, fn: Callable[[], object] | _CFuncPtr, *, user_data: int | ReadableBuffer | None = None) -> None:
        """Records a call of a host function. The function must not call CUDA."""
    def close(self) -> None:
        """Releases the builder. A capture in progress is discarded."""
    def complete(self, options: GraphCompleteOptions | dict[str, Any] | None = None) -> Graph:
        """Instantiates the graph."""
    def create_condition(self, default_value: int | None = None) -> GraphCondition:
        """Creates a condition: see :meth:`GraphDefinition.create_condition`."""
    def debug_dot_print(self, path: str, options: GraphDebugPrintOptions | dict[str, Any] | None = None) -> None:
        """Writes the graph to a file in the language DOT of Graphviz."""
    def embed(self, child: GraphBuilder) -> None:
        """Records a clone of another graph."""
    def end_building(self) -> GraphBuilder:
        """Ends the capture."""
    def if_else(self, condition: GraphCondition) -> tuple[GraphBuilder, GraphBuilder]:
        """Records a node that runs its first body if the condition is not 0, else the second one."""
    def if_then(self, condition: GraphCondition) -> GraphBuilder:
        """Records a node that runs its body if the condition is not 0."""
    @staticmethod
    def join(*graph_builders: GraphBuilder) -> GraphBuilder:
        """Joins branches: later work of the result comes after the work of all. The other builders are closed."""
    def split(self, count: int) -> tuple[GraphBuilder, ...]:
        """Splits the capture into independent branches, which continue after the present work."""
    def switch(self, condition: GraphCondition, count: int) -> tuple[GraphBuilder, ...]:
        """Records a node that runs the body whose index is the condition's value, if there is one."""
    def while_loop(self, condition: GraphCondition) -> GraphBuilder:
        """Records a node that repeats its body as long as the condition is not 0."""
    def __cuda_stream__(self) -> tuple[int, int]:
        """``(0, handle)``: the protocol by which libraries exchange streams."""
    def debug_print(self, options: GraphDebugPrintOptions | dict[str, Any] | None = None) -> None:
        """Prints the graph in the language DOT of Graphviz."""
