"""Addresses of the C functions of the CUDA runtime API, of whichever runtime is in use."""

from cuda.bindings._internal._addresses import inspectors
from cuda.bindings._internal.utils import FunctionNotFoundError, NotSupportedError

__all__ = ["FunctionNotFoundError", "NotSupportedError"]

_inspect_function_pointer, _inspect_function_pointers = inspectors("cudart")
del inspectors
