"""Base class of memory resources with a driver memory pool."""

from cupyrite._native.core import _MemPool, _MemPoolAttributes

__all__ = ["_MemPool", "_MemPoolAttributes"]
