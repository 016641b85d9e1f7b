"""How the elements of an array lie in memory."""

from cupyrite._native.core import _StridedLayout

__all__ = []
