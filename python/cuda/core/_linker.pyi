"""Linking of object code."""

from collections.abc import Mapping
from typing import Any

from cuda.bindings.driver import CUlinkState
from typing_extensions import Self, disjoint_base

from ._linker_options import LinkerOptions as LinkerOptions
from ._module import ObjectCode
from .typing import CompilerBackendType, ObjectCodeFormatType

__all__ = ["Linker", "LinkerOptions"]

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
