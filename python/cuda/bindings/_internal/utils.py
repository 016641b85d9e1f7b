"""Errors for functions that the installed library or this platform does not have."""

from cupyrite._native import internal_errors

FunctionNotFoundError, NotSupportedError = internal_errors()
del internal_errors

__all__ = ["FunctionNotFoundError", "NotSupportedError"]
