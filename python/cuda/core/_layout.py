"""Strided memory layouts of arrays."""

from cupyrite._native.core import _StridedLayout

__all__ = []
