"""Buffers and the base class of memory resources."""

from cupyrite._native.core import Buffer, MemoryResource

__all__ = ["Buffer", "MemoryResource"]
