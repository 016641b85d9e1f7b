"""Arrays in a layout of the driver's choice."""

from cuda.core._options import options
from cuda.core.typing import ArrayFormatType
from cupyrite._native.core import OpaqueArray

__all__ = ["OpaqueArray", "OpaqueArrayOptions"]


def _format(given):
    """Convert an element format: an `ArrayFormatType`, its name, or anything that `numpy.dtype()` accepts."""
    expected = ", ".join(repr(str(known)) for known in ArrayFormatType)
    if isinstance(given, str):
        try:
            return ArrayFormatType(given)
        except ValueError:
            raise ValueError(f"format is {given!r}; expected an ArrayFormatType: {expected}") from None
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
            f"format is {given!r}; expected an ArrayFormatType or an equal numpy.dtype: {expected}"
        ) from None


def _shape(given):
    """Convert one to three positive extents to a tuple."""
    from operator import index

    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise TypeError(f"shape is {given!r}; expected a tuple of ints")
    try:
        shape = tuple(index(extent) for extent in given)
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
    self.shape = _shape(self.shape)
    self.format = _format(self.format)
    if isinstance(self.num_channels, bool) or self.num_channels not in (1, 2, 4):
        raise ValueError(f"num_channels is {self.num_channels!r}; expected 1, 2 or 4")


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
