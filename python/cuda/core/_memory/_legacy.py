"""Memory without pools."""

from cupyrite._native.core import _SynchronousMemoryResource

__all__ = ["_SynchronousMemoryResource"]
