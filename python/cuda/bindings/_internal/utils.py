"""Errors that the bindings raise for what an installed library or this platform has not."""

from cupyrite._native import internal_errors

FunctionNotFoundError, NotSupportedError = internal_errors()
del internal_errors

__all__ = ["FunctionNotFoundError", "NotSupportedError"]
