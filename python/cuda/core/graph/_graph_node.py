"""The base class of graph nodes."""

from cupyrite._native.core import GraphNode

__all__ = ["GraphNode"]
