"""Arrays in a layout of the driver's choice."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar, final

from cuda.core._device import Device
from cuda.core._stream import Stream
from cuda.core.graph._graph_builder import GraphBuilder
from cuda.core.typing import ArrayFormatType

__all__ = ["OpaqueArray", "OpaqueArrayOptions"]

_T = TypeVar("_T")

@final
class OpaqueArray:
    """Memory in a layout of the driver's choice, for textures and surfaces."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> OpaqueArray: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""
    @property
    def format(self) -> ArrayFormatType:
        """Format of a channel."""
    @property
    def num_channels(self) -> int:
        """Channels of an element: 1, 2 or 4."""
    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
    @property
    def size_bytes(self) -> int:
        """Bytes of all elements."""
    @property
    def is_surface_load_store(self) -> bool:
        """Whether surfaces can write the array."""
    @property
    def handle(self) -> int:
        """Driver handle (``CUarray``) as int; 0 if the array was closed."""
    @property
    def device(self) -> Device:
        """The device of the array."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
    def copy_from(self, src: object, *, stream: Stream | GraphBuilder) -> None:
        """Copies all elements from `src`, stream-ordered."""
    def copy_to(self, dst: _T, *, stream: Stream | GraphBuilder) -> _T:
        """Copies all elements to `dst`, stream-ordered; see :meth:`copy_from`."""
    def close(self) -> None:
        """Releases the array. It is destroyed when no texture, surface or copy uses it."""
    def __enter__(self) -> OpaqueArray: ...
    def __exit__(self, *_args: type[BaseException] | BaseException | TracebackType | None) -> None: ...

@dataclass
class OpaqueArrayOptions:
    """Options of an array."""

    shape: tuple[int, ...]
    format: object
    num_channels: int
    is_surface_load_store: bool = False
    is_layered: bool = False
    is_cubemap: bool = False
    def __post_init__(self) -> None: ...
