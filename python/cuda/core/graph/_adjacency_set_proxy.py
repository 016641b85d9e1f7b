"""Neighbours of a graph node as a set that changes the graph."""

from __future__ import annotations

from collections.abc import MutableSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set
    from typing import Any, Self

    from cuda.core.graph._graph_node import GraphNode

    _Nodes = MutableSet[GraphNode]
else:
    _Nodes = MutableSet

__all__ = ["AdjacencySetProxy"]


class AdjacencySetProxy(_Nodes):
    """The predecessors or successors of a node, read from the driver on each access.

    Adding and discarding nodes adds and removes edges. Set operations with other sets return plain sets.
    """

    __slots__ = ("_before", "_node")

    def __init__(self, node: GraphNode, before: bool) -> None:
        self._node = node
        self._before = before

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> set[Any]:
        return set(it)

    def __contains__(self, node: object) -> bool:
        return node in self._node._neighbours(self._before)

    def __iter__(self) -> Iterator[GraphNode]:
        return iter(self._node._neighbours(self._before))

    def __len__(self) -> int:
        return len(self._node._neighbours(self._before))

    def add(self, value: GraphNode) -> None:
        """Add an edge; an existing one stays."""
        self._node._connect(self._before, (value,))

    def discard(self, value: GraphNode) -> None:
        """Remove an edge, if it exists."""
        if value in self:
            self._node._disconnect(self._before, (value,))

    def clear(self) -> None:
        """Remove all edges in this direction."""
        self._node._disconnect(self._before, self._node._neighbours(self._before))

    def update(self, *others: Iterable[GraphNode]) -> None:
        """Add edges to all nodes of the given iterables; all edges or none."""
        self._node._connect(self._before, [node for other in others for node in other])

    def _replace(self, nodes: Iterable[GraphNode]) -> None:
        wanted = list(nodes)
        former = [node for node in self if node not in wanted]
        self._node._connect(self._before, wanted)
        self._node._disconnect(self._before, former)

    def __ior__(self, other: Set[GraphNode]) -> Self:  # type: ignore[override, misc]
        self.update(other)
        return self

    def __repr__(self) -> str:
        return f"AdjacencySetProxy({set(self)!r})"
