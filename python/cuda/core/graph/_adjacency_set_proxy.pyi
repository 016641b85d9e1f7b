"""Neighbours of a graph node as a set that changes the graph."""

from collections.abc import Iterable, Iterator, MutableSet
from typing import Any

from cuda.core.graph._graph_node import GraphNode

__all__ = ["AdjacencySetProxy"]

class AdjacencySetProxy(MutableSet[GraphNode]):
    """The predecessors or successors of a node, read from the driver on each access."""

    def __init__(self, node: GraphNode, before: bool) -> None: ...
    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> set[Any]: ...
    def __contains__(self, node: object) -> bool: ...
    def __iter__(self) -> Iterator[GraphNode]: ...
    def __len__(self) -> int: ...
    def add(self, value: GraphNode) -> None:
        """Add an edge; an existing one stays."""
    def discard(self, value: GraphNode) -> None:
        """Remove an edge, if it exists."""
    def clear(self) -> None:
        """Remove all edges in this direction."""
    def update(self, *others: Iterable[GraphNode]) -> None:
        """Add edges to all nodes of the given iterables; all edges or none."""
