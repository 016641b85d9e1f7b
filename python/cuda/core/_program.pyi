"""Programs and their options."""

from collections.abc import Iterable
from typing import Protocol

from cuda.bindings.nvrtc import nvrtcProgram
from typing_extensions import disjoint_base

from ._module import ObjectCode
from ._program_options import ProgramOptions as ProgramOptions
from .typing import CompilerBackendType, ObjectCodeFormatType, PCHStatusType, SourceCodeType
from .utils import ProgramCacheResource

__all__ = ["Program", "ProgramOptions"]

class _Log(Protocol):
    def write(self, text: str, /) -> object: ...

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
