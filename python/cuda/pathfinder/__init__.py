"""Errors about NVIDIA's libraries: where they were looked for, and what to install.

So far this package holds the exceptions that ``cuda.bindings`` raises; finding libraries, headers and tools
from Python is not part of it yet.
"""

__all__ = [
    "DynamicLibNotAvailableError",
    "DynamicLibNotFoundError",
    "DynamicLibUnknownError",
]


class DynamicLibNotFoundError(RuntimeError):
    """A library could not be found or loaded. The message lists every place looked at and what to install."""


class DynamicLibUnknownError(DynamicLibNotFoundError):
    """No library of this name is known."""


class DynamicLibNotAvailableError(DynamicLibNotFoundError):
    """The library exists, but not for this platform."""
