"""Arrays with levels of detail."""

from operator import index as _index

from cuda.core._options import options
from cuda.core.texture._array import _check, _shown
from cupyrite._native.core import MipmappedArray

__all__ = ["MipmappedArray", "MipmappedArrayOptions"]


@options
class MipmappedArrayOptions:
    """Options of an array with levels.

    Attributes
    ----------
    shape : tuple of int
        Extents of level 0, as in :class:`OpaqueArrayOptions`.
    format : ArrayFormatType, str, or numpy.dtype
        Format of a channel.
    num_channels : int
        Channels of an element: 1, 2 or 4.
    num_levels : int
        Number of levels: at least 1, at most 1 + log2 of the largest extent that halves.
    is_surface_load_store : bool
        Whether kernels can write the levels through a :class:`SurfaceObject`.
    is_layered : bool
        Whether the last extent counts independent layers.
    is_cubemap : bool
        Whether the last extent counts the faces of cubes.

    Examples
    --------
    >>> from cuda.core import Device
    >>> from cuda.core.texture import MipmappedArrayOptions
    >>> options = MipmappedArrayOptions(shape=(64, 64), format="float16", num_channels=4, num_levels=3)
    >>> with Device().create_mipmapped_array(options) as array:
    ...     print(array.num_levels, array.shape)
    3 (64, 64)
    """

    shape: "tuple[int, ...]"
    format: "object"
    num_channels: "int"
    num_levels: "int"
    is_surface_load_store: "bool" = False
    is_layered: "bool" = False
    is_cubemap: "bool" = False

    def __post_init__(self):
        _check(self)
        if type(self.num_levels) is not int:
            try:
                self.num_levels = _index(self.num_levels)
            except TypeError:
                raise TypeError(f"num_levels is {self.num_levels!r}; expected an int") from None
        if self.num_levels < 1:
            raise ValueError(f"num_levels is {self.num_levels}; expected at least 1")

    def __repr__(self):
        return _shown(self, self.__match_args__)
