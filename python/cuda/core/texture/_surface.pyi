"""Surfaces."""

from types import TracebackType
from typing import Any, final

from cuda.core._device import Device
from cuda.core.texture._texture import ResourceDescriptor

__all__ = ["SurfaceObject"]

@final
class SurfaceObject:
    """A surface: reads and writes of an array in kernels, by position."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> SurfaceObject: ...
    @property
    def handle(self) -> int:
        """Driver handle (``CUsurfObject``), a 64-bit kernel argument; 0 if the surface was closed."""
    @property
    def device(self) -> Device:
        """The device of the surface."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def resource(self) -> ResourceDescriptor | None:
        """The resource that the surface was created from; None if the surface was closed."""
    def close(self) -> None:
        """Destroys the surface and releases its array."""
    def __enter__(self) -> SurfaceObject: ...
    def __exit__(self, *_args: type[BaseException] | BaseException | TracebackType | None) -> None: ...
