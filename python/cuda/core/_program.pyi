"""Programs and their options."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Protocol

from cuda.bindings.nvrtc import nvrtcProgram
from typing_extensions import disjoint_base

from ._module import ObjectCode
from .typing import CompilerBackendType, ObjectCodeFormatType, PCHStatusType, SourceCodeType
from .utils import ProgramCacheResource

__all__ = ["Program", "ProgramOptions"]

class _Log(Protocol):
    def write(self, text: str, /) -> object: ...

@dataclass(repr=False)
class ProgramOptions:
    """Options of a :class:`Program`. ``None`` selects the compiler's default."""

    name: str | None = "default_program"
    arch: str | None = None
    relocatable_device_code: bool | None = None
    extensible_whole_program: bool | None = None
    debug: bool | None = None
    lineinfo: bool | None = None
    device_code_optimize: bool | None = None
    ptxas_options: str | list[str] | tuple[str, ...] | None = None
    max_register_count: int | None = None
    ftz: bool | None = None
    prec_sqrt: bool | None = None
    prec_div: bool | None = None
    fma: bool | None = None
    use_fast_math: bool | None = None
    extra_device_vectorization: bool | None = None
    link_time_optimization: bool | None = None
    gen_opt_lto: bool | None = None
    define_macro: str | tuple[str, str] | list[str] | list[tuple[str, str]] | list[str | tuple[str, str]] | None = None
    undefine_macro: str | list[str] | tuple[str, ...] | None = None
    include_path: str | PathLike[str] | list[str | PathLike[str]] | list[str] | tuple[str | PathLike[str], ...] | None = None
    use_bundled_headers: bool | None = None
    pre_include: str | PathLike[str] | list[str | PathLike[str]] | list[str] | tuple[str | PathLike[str], ...] | None = None
    no_source_include: bool | None = None
    std: str | None = None
    builtin_move_forward: bool | None = None
    builtin_initializer_list: bool | None = None
    disable_warnings: bool | None = None
    restrict: bool | None = None
    device_as_default_execution_space: bool | None = None
    device_int128: bool | None = None
    optimization_info: str | None = None
    no_display_error_number: bool | None = None
    diag_error: int | list[int] | tuple[int, ...] | None = None
    diag_suppress: int | list[int] | tuple[int, ...] | None = None
    diag_warn: int | list[int] | tuple[int, ...] | None = None
    brief_diagnostics: bool | None = None
    time: str | PathLike[str] | None = None
    split_compile: int | None = None
    fdevice_syntax_only: bool | None = None
    minimal: bool | None = None
    no_cache: bool | None = None
    fdevice_time_trace: str | PathLike[str] | None = None
    device_float128: bool | None = None
    frandom_seed: str | None = None
    ofast_compile: str | None = None
    pch: bool | None = None
    create_pch: str | PathLike[str] | None = None
    use_pch: str | PathLike[str] | None = None
    pch_dir: str | PathLike[str] | None = None
    pch_verbose: bool | None = None
    pch_messages: bool | None = None
    instantiate_templates_in_pch: bool | None = None
    extra_sources: Sequence[tuple[str, str | bytes | bytearray]] | None = None
    use_libdevice: bool | None = None
    numba_debug: bool | None = None
    def __post_init__(self) -> None: ...
    def as_bytes(
        self, backend: CompilerBackendType | str, target_type: ObjectCodeFormatType | str | None = None
    ) -> list[bytes]:
        """The options as command-line arguments of a compiler."""

@disjoint_base
class Program:
    """Source code with its compiler."""

    def __new__(
        cls,
        code: str | bytes | bytearray,
        code_type: SourceCodeType | str,
        options: ProgramOptions | dict[str, object] | None = None,
    ) -> Program: ...
    def compile(
        self,
        target_type: ObjectCodeFormatType | str,
        name_expressions: Iterable[str | bytes] | None = (),
        logs: _Log | None = None,
        *,
        cache: ProgramCacheResource | None = None,
    ) -> ObjectCode:
        """Compiles to PTX, a cubin or LTO IR."""

    def link(self, target_type: ObjectCodeFormatType | str, logs: _Log | None = None) -> ObjectCode:
        """Former name of :meth:`compile` for PTX programs."""

    def close(self) -> None:
        """Releases the compiler. Compiled code stays valid. Further calls do nothing."""

    @property
    def handle(self) -> nvrtcProgram | int:
        """Handle of the compiler: a `cuda.bindings.nvrtc.nvrtcProgram`, or the address of the libNVVM program or
        linker as an int. 0 if closed."""

    @property
    def backend(self) -> CompilerBackendType:
        """The compiler: a `CompilerBackendType`."""

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""

    @property
    def pch_status(self) -> PCHStatusType | None:
        """Result of creating a precompiled header in the last :meth:`compile`: a `PCHStatusType`."""
