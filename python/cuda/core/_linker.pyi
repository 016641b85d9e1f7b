"""Linking of object code."""

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
    """Options of a :class:`Linker`; None selects the linker's default."""

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
        """The options as command-line arguments of a backend."""

@disjoint_base
class Linker:
    """Links object codes."""

    def __new__(
        cls, *object_codes: ObjectCode, options: LinkerOptions | Mapping[str, Any] | None = None
    ) -> Self: ...
    def link(self, target_type: ObjectCodeFormatType | str) -> ObjectCode:
        """Links the inputs. Can be called once."""
    def get_info_log(self) -> str:
        """Info log of the linker; also available after :meth:`close`."""
    def get_error_log(self) -> str:
        """Error log of the linker; also available after :meth:`close`."""
    def close(self) -> None:
        """Releases the linker; linked code stays valid. Further calls do nothing."""
    @property
    def handle(self) -> int | CUlinkState:
        """Handle of nvJitLink or of the driver's linker; 0 if closed."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def backend(self) -> CompilerBackendType:
        """The linker in use: ``"nvJitLink"`` or ``"driver"``."""
    @classmethod
    def which_backend(cls) -> CompilerBackendType:
        """The linker that a new `Linker` would use."""
