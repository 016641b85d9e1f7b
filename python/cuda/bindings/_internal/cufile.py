"""Addresses of the C functions of cuFile."""

from cuda.bindings._internal._addresses import inspectors
from cuda.bindings._internal.utils import FunctionNotFoundError, NotSupportedError

__all__ = ["FunctionNotFoundError", "NotSupportedError"]

_inspect_function_pointer, _inspect_function_pointers = inspectors("cufile")
del inspectors
