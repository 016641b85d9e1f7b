"""Linking object codes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cuda.bindings.driver import CUlinkState
from typing_extensions import Self, disjoint_base

from ._module import ObjectCode
from .typing import CompilerBackendType, ObjectCodeFormatType

__all__ = ["Linker", "LinkerOptions"]

@dataclass
class LinkerOptions:
    """How a :class:`Linker` links; None leaves an option to the linker."""

    name: str | None = "<default linker>"
    arch: str | None = None
    max_register_count: int | None = None
    time: bool | None = None
    verbose: bool | None = None
    link_time_optimization: bool | None = None
    ptx: bool | None = None
    optimization_level: int | None = None
    debug: bool | None = None
    lineinfo: bool | None = None
    ftz: bool | None = None
    prec_div: bool | None = None
    prec_sqrt: bool | None = None
    fma: bool | None = None
    kernels_used: str | tuple[str, ...] | list[str] | None = None
    variables_used: str | tuple[str, ...] | list[str] | None = None
    optimize_unused_variables: bool | None = None
    ptxas_options: str | tuple[str, ...] | list[str] | None = None
    split_compile: int | None = None
    split_compile_extended: int | None = None
    no_cache: bool | None = None
    numba_debug: bool | None = None

    def as_bytes(self, backend: str = "nvjitlink") -> list[bytes]:
        """The options as a backend takes them on its command line."""

@disjoint_base
class Linker:
    """Links object codes into one."""

    def __new__(
        cls, *object_codes: ObjectCode, options: LinkerOptions | Mapping[str, Any] | None = None
    ) -> Self: ...
    def link(self, target_type: ObjectCodeFormatType | str) -> ObjectCode:
        """Links, once: to ``"cubin"``, or ``"ptx"`` where the options say so."""
    def get_info_log(self) -> str:
        """What the linker told so far; still there after :meth:`close`."""
    def get_error_log(self) -> str:
        """What the linker complained of so far; still there after :meth:`close`."""
    def close(self) -> None:
        """Lets go of the linker; what it linked stays."""
    @property
    def handle(self) -> int | CUlinkState:
        """The handle of nvJitLink, or that of the driver; 0 once closed."""
    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
    @property
    def backend(self) -> CompilerBackendType:
        """What links."""
    @classmethod
    def which_backend(cls) -> CompilerBackendType:
        """What links in a linker that is made now."""
