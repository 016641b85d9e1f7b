from collections.abc import Sequence
from typing import Any

from typing_extensions import disjoint_base

@disjoint_base
class ParamHolder:
    """Packed kernel arguments for functions of ``cuda.bindings`` that take ``kernelParams``."""

    def __new__(cls, kernel_args: Sequence[Any]) -> ParamHolder: ...
    @property
    def ptr(self) -> int:
        """Address of the array of argument pointers (``void **``) as an int; 0 if there are no arguments."""

__all__ = ["ParamHolder"]
