"""Contexts."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import disjoint_base

from cuda.bindings.driver import CUcontext
from cuda.core._stream import StreamOptions
from cuda.core.typing import DeviceResourcesType

__all__ = ["Context", "ContextOptions"]

@disjoint_base
class Context:
    """A CUDA context: a device's address space and everything that lives in it."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Context: ...
    @property
    def handle(self) -> CUcontext:
        """The driver's handle; 0 once the object was closed."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def is_green(self) -> bool:
        """Whether this is a green context, which owns a part of its device."""
    def create_stream(self, options: StreamOptions | dict[str, Any] | None = None) -> None:
        """For green contexts; others raise ``RuntimeError``."""
    def close(self) -> None:
        """Lets go of the context."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@dataclass
class ContextOptions:
    """How a green context is made."""

    resources: DeviceResourcesType
