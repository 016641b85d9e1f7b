"""Textures, their options, and what they refer to."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any, SupportsIndex, final

from cuda.core._device import Device
from cuda.core._memory._buffer import Buffer
from cuda.core.texture._array import OpaqueArray
from cuda.core.texture._mipmapped_array import MipmappedArray
from cuda.core.typing import AddressModeType, ArrayFormatType, FilterModeType, ReadModeType

__all__ = ["ResourceDescriptor", "TextureObject", "TextureObjectOptions"]

@final
class ResourceDescriptor:
    """The memory behind a :class:`TextureObject` or :class:`SurfaceObject`, created by one of the class methods."""

    def __new__(cls) -> ResourceDescriptor: ...
    @classmethod
    def from_opaque_array(cls, array: OpaqueArray) -> ResourceDescriptor:
        """Describes an array, or a level of a mipmapped one."""
    @classmethod
    def from_mipmapped_array(cls, mipmapped_array: MipmappedArray) -> ResourceDescriptor:
        """Describes all levels of a mipmapped array. For textures only."""
    @classmethod
    def from_linear(
        cls, buffer: Buffer, *, format: object, num_channels: int, size_bytes: SupportsIndex | None = None
    ) -> ResourceDescriptor:
        """Describes a buffer that is read by index. For textures only; filters and address modes have no effect."""
    @classmethod
    def from_pitch2d(
        cls,
        buffer: Buffer,
        *,
        format: object,
        num_channels: int,
        width: SupportsIndex,
        height: SupportsIndex,
        pitch_bytes: SupportsIndex,
    ) -> ResourceDescriptor:
        """Describes rows of a buffer as a picture. For textures only."""
    @property
    def kind(self) -> str:
        """``'array'``, ``'mipmapped_array'``, ``'linear'`` or ``'pitch2d'``."""
    @property
    def source(self) -> OpaqueArray | MipmappedArray | Buffer:
        """The array or buffer."""
    @property
    def format(self) -> ArrayFormatType | None:
        """Format of a channel; None for arrays, which have their own."""
    @property
    def num_channels(self) -> int | None:
        """Channels of an element; None for arrays."""
    @property
    def size_bytes(self) -> int | None:
        """Bytes of a linear resource; None for others."""
    @property
    def width(self) -> int | None:
        """Elements of a row of a picture; None for other resources."""
    @property
    def height(self) -> int | None:
        """Rows of a picture; None for other resources."""
    @property
    def pitch_bytes(self) -> int | None:
        """Bytes between the rows of a picture; None for other resources."""

@final
class TextureObject:
    """A texture: sampled reads in kernels."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> TextureObject: ...
    @property
    def handle(self) -> int:
        """Driver handle (``CUtexObject``), a 64-bit kernel argument; 0 if the texture was closed."""
    @property
    def device(self) -> Device:
        """The device of the texture."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def resource(self) -> ResourceDescriptor | None:
        """The resource that the texture was created from; None if the texture was closed."""
    @property
    def options(self) -> TextureObjectOptions:
        """The options that the texture was created with."""
    def close(self) -> None:
        """Destroys the texture and releases its array or buffer."""
    def __enter__(self) -> TextureObject: ...
    def __exit__(self, *_args: type[BaseException] | BaseException | TracebackType | None) -> None: ...

@dataclass
class TextureObjectOptions:
    """Sampling state of a texture."""

    address_mode: AddressModeType | str | tuple[AddressModeType | str, ...] = ...
    filter_mode: FilterModeType | str = ...
    read_mode: ReadModeType | str = ...
    normalized_coords: bool = False
    srgb: bool = False
    disable_trilinear_optimization: bool = False
    seamless_cubemap: bool = False
    max_anisotropy: int = 0
    mipmap_filter_mode: FilterModeType | str = ...
    mipmap_level_bias: float = 0.0
    min_mipmap_level_clamp: float = 0.0
    max_mipmap_level_clamp: float = 0.0
    border_color: tuple[float, ...] | None = None
    def __post_init__(self) -> None: ...
