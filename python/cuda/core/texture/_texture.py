"""Textures, their options, and what they refer to."""

from cuda.core._options import options
from cuda.core.typing import AddressModeType, FilterModeType, ReadModeType
from cupyrite._native.core import ResourceDescriptor, TextureObject

__all__ = ["ResourceDescriptor", "TextureObject", "TextureObjectOptions"]


def _member(enumeration, name, given):
    try:
        return enumeration(given)
    except ValueError:
        expected = ", ".join(repr(str(known)) for known in enumeration)
        raise ValueError(f"{name} is {given!r}; expected {expected}") from None


@options
class TextureObjectOptions:
    """Sampling state of a texture.

    Attributes
    ----------
    address_mode : AddressModeType or tuple of AddressModeType
        What coordinates outside of the texture read: for all dimensions, or one to three, of which the last one is that
        of the remaining dimensions. ``WRAP`` and ``MIRROR`` need normalised coordinates.
    filter_mode : FilterModeType
        How values between elements are read.
    read_mode : ReadModeType
        How integers are read: as they are, or as floats from 0 to 1 (-1 to 1).
    normalized_coords : bool
        Whether coordinates go from 0 to 1.
    srgb : bool
        Whether 8-bit values are converted from sRGB to linear.
    disable_trilinear_optimization : bool
        Whether trilinear filtering is exact.
    seamless_cubemap : bool
        Whether filtering crosses the edges of a cube.
    max_anisotropy : int
        Greatest anisotropy; 0 for none.
    mipmap_filter_mode : FilterModeType
        How values between levels are read.
    mipmap_level_bias : float
        Added to the level.
    min_mipmap_level_clamp, max_mipmap_level_clamp : float
        Lowest and highest level.
    border_color : tuple of float, optional
        Value of the address mode ``BORDER``, four numbers. Default: zeros.

    Examples
    --------
    >>> from cuda.core import Device
    >>> from cuda.core.texture import ResourceDescriptor, TextureObjectOptions
    >>> device = Device()
    >>> array = device.create_opaque_array({"shape": (8, 8), "format": "uint8", "num_channels": 1})
    >>> options = TextureObjectOptions(
    ...     address_mode=("clamp", "wrap"), filter_mode="linear", read_mode="normalized_float", normalized_coords=True
    ... )
    >>> texture = device.create_texture_object(
    ...     resource=ResourceDescriptor.from_opaque_array(array), options=options
    ... )
    >>> texture.options.address_mode
    ('clamp', 'wrap')
    """

    address_mode: "AddressModeType | str | tuple[AddressModeType | str, ...]" = AddressModeType.CLAMP
    filter_mode: "FilterModeType | str" = FilterModeType.POINT
    read_mode: "ReadModeType | str" = ReadModeType.ELEMENT_TYPE
    normalized_coords: "bool" = False
    srgb: "bool" = False
    disable_trilinear_optimization: "bool" = False
    seamless_cubemap: "bool" = False
    max_anisotropy: "int" = 0
    mipmap_filter_mode: "FilterModeType | str" = FilterModeType.POINT
    mipmap_level_bias: "float" = 0.0
    min_mipmap_level_clamp: "float" = 0.0
    max_mipmap_level_clamp: "float" = 0.0
    border_color: "tuple[float, ...] | None" = None

    def __post_init__(self):
        # Assignments dominate the cost.
        if type(self.filter_mode) is not FilterModeType:
            self.filter_mode = _member(FilterModeType, "filter_mode", self.filter_mode)
        if type(self.read_mode) is not ReadModeType:
            self.read_mode = _member(ReadModeType, "read_mode", self.read_mode)
        if type(self.mipmap_filter_mode) is not FilterModeType:
            self.mipmap_filter_mode = _member(FilterModeType, "mipmap_filter_mode", self.mipmap_filter_mode)
