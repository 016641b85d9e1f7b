"""Neighbours of a graph node as a set that changes the graph."""

from collections.abc import MutableSet

__all__ = ["AdjacencySetProxy"]


class AdjacencySetProxy(MutableSet):
    """The predecessors or successors of a node, read from the driver on each access.

    Adding and discarding nodes adds and removes edges. Set operations with other sets return plain sets.
    """

    __slots__ = ("_before", "_node")

    def __init__(self, node, before):
        self._node = node
        self._before = before

    @classmethod
    def _from_iterable(cls, it):
        return set(it)

    def __contains__(self, node):
        return node in self._node._neighbours(self._before)

    def __iter__(self):
        return iter(self._node._neighbours(self._before))

    def __len__(self):
        return len(self._node._neighbours(self._before))

    def add(self, value):
        """Add an edge; an existing one stays."""
        self._node._connect(self._before, (value,))

    def discard(self, value):
        """Remove an edge, if it exists."""
        if value in self:
            self._node._disconnect(self._before, (value,))

    def clear(self):
        """Remove all edges in this direction."""
        self._node._disconnect(self._before, self._node._neighbours(self._before))

    def update(self, *others):
        """Add edges to all nodes of the given iterables; all edges or none."""
        self._node._connect(self._before, [node for other in others for node in other])

    def _replace(self, nodes):
        wanted = list(nodes)
        former = [node for node in self if node not in wanted]
        self._node._connect(self._before, wanted)
        self._node._disconnect(self._before, former)

    def __ior__(self, other):
        self.update(other)
        return self

    def __repr__(self):
        return f"AdjacencySetProxy({set(self)!r})"
