"""Arrays with levels of detail."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any, SupportsIndex, final

from cuda.core._device import Device
from cuda.core.texture._array import OpaqueArray
from cuda.core.typing import ArrayFormatType

__all__ = ["MipmappedArray", "MipmappedArrayOptions"]

@final
class MipmappedArray:
    """An array with levels of detail, each half as large as the one before."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> MipmappedArray: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of level 0 in elements."""
    @property
    def format(self) -> ArrayFormatType:
        """Format of a channel."""
    @property
    def num_channels(self) -> int:
        """Channels of an element: 1, 2 or 4."""
    @property
    def num_levels(self) -> int:
        """Number of levels."""
    @property
    def is_surface_load_store(self) -> bool:
        """Whether surfaces can write the levels."""
    @property
    def handle(self) -> int:
        """Driver handle (``CUmipmappedArray``) as int; 0 if the array was closed."""
    @property
    def device(self) -> Device:
        """The device of the array."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
    def get_level(self, level: SupportsIndex) -> OpaqueArray:
        """The array of one level, which keeps this array's memory alive."""
    def close(self) -> None:
        """Releases the array. It is destroyed when no level, texture or copy uses it."""
    def __enter__(self) -> MipmappedArray: ...
    def __exit__(self, *_args: type[BaseException] | BaseException | TracebackType | None) -> None: ...

@dataclass
class MipmappedArrayOptions:
    """Options of an array with levels."""

    shape: tuple[int, ...]
    format: object
    num_channels: int
    num_levels: int
    is_surface_load_store: bool = False
    is_layered: bool = False
    is_cubemap: bool = False
    def __post_init__(self) -> None: ...
