"""What the memory resources over pools of the driver's have in common."""

from cupyrite._native.core import _MemPool, _MemPoolAttributes

__all__ = ["_MemPool", "_MemPoolAttributes"]
