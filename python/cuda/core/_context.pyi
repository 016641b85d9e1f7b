"""Contexts and green-context options."""

from dataclasses import dataclass
from typing import Any

from typing_extensions import disjoint_base

from cuda.bindings.driver import CUcontext
from cuda.core._device_resources import DeviceResources
from cuda.core._stream import Stream, StreamOptions
from cuda.core.typing import DeviceResourcesType

__all__ = ["Context", "ContextOptions"]

@disjoint_base
class Context:
    """A CUDA context: the address space of a device and the objects in it."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Context: ...
    @property
    def handle(self) -> CUcontext:
        """Driver handle, a ``cuda.bindings.driver.CUcontext``; 0 if the object was closed."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def is_green(self) -> bool:
        """Whether this is a green context, which owns a part of its device. False if the object was closed."""
    @property
    def resources(self) -> DeviceResources:
        """The resources of the context: those of the green context, or all of the device."""
    def create_stream(self, options: StreamOptions | dict[str, Any] | None = None) -> Stream:
        """Creates a stream of a green context. Use :meth:`Device.create_stream` for the primary context."""
    def close(self) -> None:
        """Releases the context. The object cannot be used afterwards. The driver context exists while other objects
        use it; a primary context exists until the process exits."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@dataclass
class ContextOptions:
    """Options of a green context."""

    resources: DeviceResourcesType
