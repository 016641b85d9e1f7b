"""Arrays in a layout of the driver's choice."""

from operator import index as _index

from cuda.core._options import options
from cuda.core.typing import ArrayFormatType
from cupyrite._native.core import OpaqueArray

__all__ = ["OpaqueArray", "OpaqueArrayOptions"]

# Members by name, and by themselves: members are equal to their names.
_FORMATS = {str(known): known for known in ArrayFormatType}


def _expected_formats():
    return ", ".join(map(repr, _FORMATS))


def _format(given):
    """Convert an element format: an `ArrayFormatType`, its name, or anything that `numpy.dtype()` accepts."""
    if isinstance(given, str):
        known = _FORMATS.get(given)
        if known is None:
            raise ValueError(f"format is {given!r}; expected an ArrayFormatType: {_expected_formats()}")
        return known
    import numpy

    try:
        # `numpy.dtype(None)` is float64.
        name = numpy.dtype(given).name if given is not None else None
    except TypeError:
        name = None
    try:
        return ArrayFormatType(name)
    except ValueError:
        raise ValueError(
            f"format is {given!r}; expected an ArrayFormatType or an equal numpy.dtype: {_expected_formats()}"
        ) from None


def _shape(given):
    """Convert one to three positive extents to a tuple."""
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise TypeError(f"shape is {given!r}; expected a tuple of ints")
    try:
        shape = tuple(_index(extent) for extent in given)
    except TypeError:
        raise TypeError(f"shape is {given!r}; expected a tuple of ints") from None
    if not 1 <= len(shape) <= 3:
        raise ValueError(f"shape is {shape}; expected 1, 2 or 3 extents, not {len(shape)}")
    for axis, extent in enumerate(shape):
        if extent < 1:
            raise ValueError(f"shape[{axis}] is {extent}; expected at least 1")
    return shape


def _check(self):
    """Convert and check the fields that both option classes have."""
    shape = self.shape
    # Fields are assigned only if they change, since assignments dominate the cost.
    if type(shape) is not tuple or not 1 <= len(shape) <= 3:
        self.shape = _shape(shape)
    else:
        for extent in shape:
            if type(extent) is not int or extent < 1:
                self.shape = _shape(shape)
                break
    format = self.format
    if type(format) is not ArrayFormatType:
        format = _format(format)
        fields = self.__dict__
        # A subclass may have a property instead.
        if "format" in fields:
            fields["format"] = format
        else:
            self.format = format
    channels = self.num_channels
    if channels not in (1, 2, 4) or isinstance(channels, bool):
        raise ValueError(f"num_channels is {channels!r}; expected 1, 2 or 4")


def _shown(self, names):
    """``repr`` of options; the kinds that NVIDIA's package lacks are shown if they are set."""
    names = [name for name in names if name not in ("is_layered", "is_cubemap") or getattr(self, name)]
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


@options
class OpaqueArrayOptions:
    """Options of an array.

    Attributes
    ----------
    shape : tuple of int
        ``(width,)``, ``(width, height)`` or ``(width, height, depth)`` in elements. With `is_layered` the last extent
        counts layers, with `is_cubemap` faces: ``(width, width, 6)``, or a multiple of 6 with both.
    format : ArrayFormatType, str, or numpy.dtype
        Format of a channel.
    num_channels : int
        Channels of an element: 1, 2 or 4.
    is_surface_load_store : bool
        Whether kernels can write the array through a :class:`SurfaceObject`.
    is_layered : bool
        Whether the last extent counts independent layers.
    is_cubemap : bool
        Whether the last extent counts the faces of cubes.

    Examples
    --------
    >>> from cuda.core import Device
    >>> from cuda.core.texture import OpaqueArrayOptions
    >>> options = OpaqueArrayOptions(shape=(64, 32), format="uint8", num_channels=4, is_surface_load_store=True)
    >>> with Device().create_opaque_array(options) as array:
    ...     print(array.format, array.num_channels, array.is_surface_load_store)
    uint8 4 True
    """

    shape: "tuple[int, ...]"
    format: "object"
    num_channels: "int"
    is_surface_load_store: "bool" = False
    is_layered: "bool" = False
    is_cubemap: "bool" = False

    def __post_init__(self):
        _check(self)

    def __repr__(self):
        return _shown(self, self.__match_args__)
