"""Memory resources without pools."""

from cupyrite._native.core import LegacyPinnedMemoryResource, _SynchronousMemoryResource

__all__ = ["LegacyPinnedMemoryResource", "_SynchronousMemoryResource"]
