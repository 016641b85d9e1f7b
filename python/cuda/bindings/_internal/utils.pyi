class FunctionNotFoundError(RuntimeError):
    """A library lacks a function: it is older than the function."""

class NotSupportedError(RuntimeError):
    """Something that this platform has not."""

__all__ = ["FunctionNotFoundError", "NotSupportedError"]
