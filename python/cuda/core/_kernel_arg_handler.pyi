from collections.abc import Sequence
from typing import Any

from typing_extensions import disjoint_base

@disjoint_base
class ParamHolder:
    """Kernel arguments as C takes them, for functions of ``cuda.bindings`` that take ``kernelParams``.

    The arguments, and the memory of buffers among them, stay for as long as the object lives.
    """

    def __new__(cls, kernel_args: Sequence[Any]) -> ParamHolder: ...
    @property
    def ptr(self) -> int:
        """The address of the array of pointers to the arguments; 0 if there are none."""

__all__ = ["ParamHolder"]
