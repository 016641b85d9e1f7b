"""Tensor maps: descriptors of tensors for bulk copies between global and shared memory."""

from enum import IntEnum as _IntEnum
from operator import index as _index

from cuda.core._options import options
from cupyrite._native.core import TensorMapDescriptor

__all__ = ["TensorMapDescriptor", "TensorMapDescriptorOptions"]


class TensorMapDataType(_IntEnum):
    """Element types of tensor maps (``CUtensorMapDataType``)."""

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12


class TensorMapInterleave(_IntEnum):
    """Interleaved layouts (``CUtensorMapInterleave``)."""

    NONE = 0
    INTERLEAVE_16B = 1
    INTERLEAVE_32B = 2


class TensorMapSwizzle(_IntEnum):
    """Swizzles of shared memory (``CUtensorMapSwizzle``)."""

    NONE = 0
    SWIZZLE_32B = 1
    SWIZZLE_64B = 2
    SWIZZLE_128B = 3


class TensorMapL2Promotion(_IntEnum):
    """Promotions of the second-level cache (``CUtensorMapL2promotion``)."""

    NONE = 0
    L2_64B = 1
    L2_128B = 2
    L2_256B = 3


class TensorMapOOBFill(_IntEnum):
    """Values of elements outside of the tensor (``CUtensorMapFloatOOBfill``)."""

    NONE = 0
    NAN_REQUEST_ZERO_FMA = 1


class TensorMapIm2ColWideMode(_IntEnum):
    """Modes of im2col maps along the width (``CUtensorMapIm2ColWideMode``)."""

    W = 0
    W128 = 1


# Names of NumPy's types, and of those of `ml_dtypes`.
_TYPES = {
    name: TensorMapDataType[name.upper()]
    for name in "uint8 uint16 uint32 int32 uint64 int64 float16 float32 float64 bfloat16".split()
}


def _numbers(name, given):
    """Convert a sequence of ints to a tuple."""
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise TypeError(f"{name} is {given!r}; expected a tuple of ints")
    numbers = []
    for place, number in enumerate(given):
        try:
            numbers.append(_index(number))
        except TypeError:
            raise TypeError(f"{name}[{place}] is {number!r}; expected an int") from None
    return tuple(numbers)


def _member(name, given, enumeration):
    if type(given) is not enumeration:
        raise TypeError(f"{name} is {given!r}; expected a {enumeration.__name__}")
    return given


def _data_type(given):
    """Convert a type: a `TensorMapDataType`, or anything that `numpy.dtype()` accepts."""
    if given is None or type(given) is TensorMapDataType:
        return given
    import numpy

    expected = "expected a TensorMapDataType or a numpy.dtype"
    if isinstance(given, int):
        raise TypeError(f"data_type is {given!r}; {expected}")
    try:
        return numpy.dtype(given)
    except TypeError:
        raise TypeError(f"data_type is {given!r}; {expected}") from None


def _resolve(view, data_type):
    """The element type of a map of `view`."""
    if type(data_type) is TensorMapDataType:
        return data_type
    dtype = view.dtype if data_type is None else data_type
    found = _TYPES.get(getattr(dtype, "name", None))
    if found is None or not dtype.isnative:
        raise ValueError(f"data_type is {dtype}; a tensor map has elements of {', '.join(_TYPES)}")
    return found


@options
class TensorMapDescriptorOptions:
    """Options of :meth:`StridedMemoryView.as_tensor_map`.

    Attributes
    ----------
    box_dim : tuple of int
        Extents of a box in elements, one for each dimension, 1 to 256.
    element_strides : tuple of int, optional
        Distances of the elements of a box, one for each dimension, 1 to 8. Default: 1. That of the last dimension has no
        effect unless the layout is interleaved.
    data_type : numpy.dtype or TensorMapDataType, optional
        Type of the elements. Default: that of the view.
    interleave : TensorMapInterleave
        Interleaved layout.
    swizzle : TensorMapSwizzle
        Swizzle of shared memory.
    l2_promotion : TensorMapL2Promotion
        Promotion of the second-level cache.
    oob_fill : TensorMapOOBFill
        What elements outside of the tensor read: zero, or a NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from cuda.core import Device, TensorMapDescriptorOptions
    >>> from cuda.core.utils import StridedMemoryView
    >>> device = Device()
    >>> device.set_current()
    >>> buffer = device.allocate(2 * 128 * 128, stream=device.default_stream)
    >>> view = StridedMemoryView.from_buffer(buffer, shape=(128, 128), dtype=np.float16)
    >>> options = TensorMapDescriptorOptions(box_dim=(8, 64))
    >>> if device.compute_capability >= (9, 0):
    ...     tensor_map = view.as_tensor_map(options=options)
    """

    box_dim: "tuple[int, ...]"
    element_strides: "tuple[int, ...] | None" = None
    data_type: "object" = None
    interleave: "TensorMapInterleave" = TensorMapInterleave.NONE
    swizzle: "TensorMapSwizzle" = TensorMapSwizzle.NONE
    l2_promotion: "TensorMapL2Promotion" = TensorMapL2Promotion.NONE
    oob_fill: "TensorMapOOBFill" = TensorMapOOBFill.NONE

    def __post_init__(self):
        self.box_dim = _numbers("box_dim", self.box_dim)
        if self.element_strides is not None:
            self.element_strides = _numbers("element_strides", self.element_strides)
        self.data_type = _data_type(self.data_type)
        _modes(self)


def _modes(given):
    return (
        _member("interleave", given.interleave, TensorMapInterleave),
        _member("swizzle", given.swizzle, TensorMapSwizzle),
        _member("l2_promotion", given.l2_promotion, TensorMapL2Promotion),
        _member("oob_fill", given.oob_fill, TensorMapOOBFill),
    )


def _unsigned(name, numbers, signed=False):
    """Refuse numbers that 32 bits do not hold."""
    for place, number in enumerate(numbers):
        if not (-(1 << 31) <= number < 1 << 31 if signed else 0 <= number < 1 << 32):
            raise ValueError(f"{name}[{place}] is {number}, which is out of range")
    return numbers


def _encodable(view, given):
    """The arguments that all encodings have: strides, type, modes."""
    strides = given.element_strides
    if strides is not None:
        strides = _unsigned("element_strides", _numbers("element_strides", strides))
        if len(strides) != len(view.shape):
            raise ValueError(f"element_strides has {len(strides)} numbers, the view {len(view.shape)} dimensions")
    return strides, int(_resolve(view, _data_type(given.data_type))), _modes(given)


def _tiled(
    view,
    box_dim=None,
    options=None,
    element_strides=None,
    data_type=None,
    interleave=None,
    swizzle=None,
    l2_promotion=None,
    oob_fill=None,
):
    """`StridedMemoryView.as_tensor_map`."""
    rest = {
        "interleave": interleave,
        "swizzle": swizzle,
        "l2_promotion": l2_promotion,
        "oob_fill": oob_fill,
    }
    rest = {name: value for name, value in rest.items() if value is not None}
    if options is not None:
        if box_dim is not None or element_strides is not None or data_type is not None or rest:
            raise TypeError("as_tensor_map() takes 'options' or the other arguments, not both")
        if isinstance(options, dict):
            options = TensorMapDescriptorOptions(**options)
        elif not isinstance(options, TensorMapDescriptorOptions):
            raise TypeError(
                f"as_tensor_map() argument 'options' is of type {type(options).__name__}; expected "
                "TensorMapDescriptorOptions or a dict of its fields"
            )
    elif box_dim is None:
        raise TypeError("as_tensor_map() missing 1 required argument: 'box_dim' (or 'options')")
    else:
        options = TensorMapDescriptorOptions(box_dim, element_strides, data_type, **rest)
    box = _unsigned("box_dim", _numbers("box_dim", options.box_dim))
    if 1 <= len(view.shape) <= 5 and len(box) != len(view.shape):
        raise ValueError(f"box_dim has {len(box)} numbers, the view {len(view.shape)} dimensions")
    strides, kind, modes = _encodable(view, options)
    return TensorMapDescriptor._encode_tiled(view, box, strides, kind, tuple(map(int, modes)))


def _from_tiled(
    view,
    box_dim=None,
    *,
    options=None,
    element_strides=None,
    data_type=None,
    interleave=None,
    swizzle=None,
    l2_promotion=None,
    oob_fill=None,
):
    """`StridedMemoryView.as_tensor_map`, with the view as an argument."""
    return _tiled(view, box_dim, options, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill)


class _Given:
    """Arguments of the im2col encodings, with the names of the options."""

    def __init__(self, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill):
        self.element_strides = element_strides
        self.data_type = data_type
        self.interleave = interleave
        self.swizzle = swizzle
        self.l2_promotion = l2_promotion
        self.oob_fill = oob_fill


def _number(name, given):
    return _unsigned(name, _numbers(name, (given,)))[0]


def _from_im2col(
    view,
    pixel_box_lower_corner,
    pixel_box_upper_corner,
    channels_per_pixel,
    pixels_per_column,
    *,
    element_strides=None,
    data_type=None,
    interleave=TensorMapInterleave.NONE,
    swizzle=TensorMapSwizzle.NONE,
    l2_promotion=TensorMapL2Promotion.NONE,
    oob_fill=TensorMapOOBFill.NONE,
):
    """Create an im2col map of a view of three to five dimensions: N, [D, [H,]] W, C.

    Parameters
    ----------
    view : StridedMemoryView
        The tensor.
    pixel_box_lower_corner, pixel_box_upper_corner : tuple of int
        Corners of the bounding box, one number for each dimension between the first and the last.
    channels_per_pixel : int
        Elements of the last dimension, 1 to 256.
    pixels_per_column : int
        Pixels, 1 to 1024.
    element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill : optional
        As in :class:`TensorMapDescriptorOptions`.

    Raises
    ------
    ValueError
        A rule of the driver's manual is broken; the message names the argument.
    """
    given = _Given(element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill)
    corners = tuple(
        _unsigned(name, _numbers(name, corner), signed=True)
        for name, corner in (
            ("pixel_box_lower_corner", pixel_box_lower_corner),
            ("pixel_box_upper_corner", pixel_box_upper_corner),
        )
    )
    pixels = _number("channels_per_pixel", channels_per_pixel), _number("pixels_per_column", pixels_per_column)
    strides, kind, modes = _encodable(view, given)
    return TensorMapDescriptor._encode_im2col(view, corners, pixels, strides, kind, tuple(map(int, modes)))


def _from_im2col_wide(
    view,
    pixel_box_lower_corner_width,
    pixel_box_upper_corner_width,
    channels_per_pixel,
    pixels_per_column,
    *,
    element_strides=None,
    data_type=None,
    interleave=TensorMapInterleave.NONE,
    mode=TensorMapIm2ColWideMode.W,
    swizzle=TensorMapSwizzle.SWIZZLE_128B,
    l2_promotion=TensorMapL2Promotion.NONE,
    oob_fill=TensorMapOOBFill.NONE,
):
    """Create an im2col map whose pixels lie along the width (compute capability 10.0).

    Parameters
    ----------
    view : StridedMemoryView
        The tensor.
    pixel_box_lower_corner_width, pixel_box_upper_corner_width : int
        Corners of the bounding box along the width.
    channels_per_pixel, pixels_per_column : int
        As in an im2col map.
    mode : TensorMapIm2ColWideMode
        ``W`` or ``W128``.
    element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill : optional
        As in :class:`TensorMapDescriptorOptions`.

    Raises
    ------
    ValueError
        A rule of the driver's manual is broken; the message names the argument.
    """
    given = _Given(element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill)
    corners = tuple(
        _unsigned(name, _numbers(name, (corner,)), signed=True)[0]
        for name, corner in (
            ("pixel_box_lower_corner_width", pixel_box_lower_corner_width),
            ("pixel_box_upper_corner_width", pixel_box_upper_corner_width),
        )
    )
    pixels = (
        _number("channels_per_pixel", channels_per_pixel),
        _number("pixels_per_column", pixels_per_column),
        int(_member("mode", mode, TensorMapIm2ColWideMode)),
    )
    strides, kind, modes = _encodable(view, given)
    return TensorMapDescriptor._encode_im2col_wide(view, corners, pixels, strides, kind, tuple(map(int, modes)))
