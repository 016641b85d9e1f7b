"""cuda.core._layout._StridedLayout, compared with NumPy's strides."""

import copy
import pickle

import numpy as np
import pytest
from cuda.core._layout import _StridedLayout
from hypothesis import given, settings
from hypothesis import strategies as st


def of(array):
    return _StridedLayout(array.shape, array.strides, array.itemsize, divide_strides=True)


def test_constructor():
    layout = _StridedLayout((3, 4), None, 4)
    assert layout.shape == (3, 4) and layout.strides is None and layout.strides_in_bytes is None
    assert (layout.itemsize, layout.ndim, layout.volume, layout.slice_offset) == (4, 2, 12, 0)
    assert repr(layout) == "_StridedLayout(shape=(3, 4), strides=None, itemsize=4)"
    explicit = _StridedLayout((3, 4), (16, 4), 4, divide_strides=True)
    assert explicit.strides == (4, 1) and explicit.strides_in_bytes == (16, 4)
    assert explicit != layout and explicit == _StridedLayout((3, 4), (4, 1), 4) and explicit != 3
    assert repr(explicit[1:]) == "_StridedLayout(shape=(2, 4), strides=(4, 1), itemsize=4, _slice_offset=4)"
    for arguments, error in (
        (([3, 4], None, 4), TypeError),
        ((3, None, 4), TypeError),
        (((3, 4), [4, 1], 4), TypeError),
        (((3.5,), None, 4), TypeError),
        (((3, 4), None, 0), ValueError),
        (((3, 4), None, -1), ValueError),
        (((3, 4), None, "4"), TypeError),
        (((-3, 4), None, 4), ValueError),
        (((3, 4), (1,), 4), ValueError),
        (((3, 4), (15, 4), 4, True), ValueError),
        (((1,) * 65, None, 4), ValueError),
        (((1 << 70,), None, 4), OverflowError),
        (((1 << 62, 1 << 62), None, 4), ValueError),
    ):
        with pytest.raises(error):
            _StridedLayout(*arguments)
    for function in (hash, copy.copy, pickle.dumps):
        with pytest.raises(TypeError):
            function(layout)
    with pytest.raises(AttributeError):
        layout.shape = (1,)


def test_methods():
    layout = _StridedLayout((3, 4), None, 4)
    assert layout.permuted((1, 0)).strides == (1, 4) and layout.permuted((-1, 0)).shape == (4, 3)
    assert layout.reshaped((-1, 6)) == _StridedLayout((2, 6), (6, 1), 4)
    assert layout.flattened() == _StridedLayout((12,), (1,), 4) and layout.flattened_axis_mask() == 2
    assert layout.flattened(mask=0).shape == (3, 4) and layout.flattened(0, 0).shape == (3, 4)
    assert _StridedLayout((3, 1, 4), None, 4).squeezed().shape == (3, 4)
    assert _StridedLayout((0, 1, 4), None, 4).squeezed() == _StridedLayout((0,), (0,), 4)
    assert layout.unsqueezed(1) == _StridedLayout((3, 1, 4), (4, 4, 1), 4)
    assert layout.unsqueezed((0, 3)) == _StridedLayout((1, 3, 4, 1), (12, 4, 1, 1), 4)
    # An axis behind the last one has its stride; others have the extent times the stride of the next one.
    for strides in ((6, 2), (1, 5), (3, -1), (0, 0)):
        given = _StridedLayout((2, 3), strides, 4)
        assert given.unsqueezed(2).strides == given.unsqueezed(-1).strides == (*strides, strides[1])
        assert given.unsqueezed((0, 3)).strides == (2 * strides[0], *strides, strides[1])
        assert given.unsqueezed((1, 2)).strides == (strides[0], 3 * strides[1], 3 * strides[1], strides[1])
    assert _StridedLayout((), None, 4).unsqueezed((0, 1)).strides == (1, 1)
    assert layout.broadcast_to((2, 3, 4)).strides == (0, 4, 1)
    assert layout.repacked(8) == _StridedLayout((3, 2), (2, 1), 8)
    assert layout.repacked(16, keep_dim=False).shape == (3,) and layout.repacked(2).shape == (3, 8)
    assert layout.max_compatible_itemsize() == 16 and layout.max_compatible_itemsize(16, 4) == 4
    assert _StridedLayout.dense((2, 3, 4), 1, (2, 0, 1)).strides == (3, 1, 6)
    assert _StridedLayout.dense((2, 3), 1, "F").strides == (1, 2)
    columns = _StridedLayout((3, 4), (1, 3), 4)
    assert _StridedLayout.dense_like(columns) == columns and columns.to_dense("C").strides == (4, 1)
    assert columns.stride_order == (1, 0) and _StridedLayout((2, 3), (2, 2), 4).stride_order == (1, 0)
    assert _StridedLayout((), None, 4).flattened() == _StridedLayout((1,), (1,), 4)
    assert _StridedLayout((0, 3), None, 4).flattened() == _StridedLayout((0,), (0,), 4)
    assert layout[2:2] == _StridedLayout((0, 4), (0, 0), 4)
    assert _StridedLayout((6,), None, 4).max_compatible_itemsize() == 8
    assert layout.to_dense() is layout.to_dense("C") is layout.to_dense("K") is layout and layout.strides is None
    assert columns.to_dense() is columns.to_dense("F") is _StridedLayout.dense_like(columns) is columns
    for other in (columns.to_dense("C"), layout.to_dense("F"), layout.to_dense((0, 1)), layout[1:].to_dense()):
        assert other is not layout and other is not columns and other.strides is not None and other.slice_offset == 0
    for in_bytes in (True, 1):
        assert _StridedLayout((3, 4), (16, 4), 4, in_bytes).strides == (4, 1)
    assert _StridedLayout((3, 4), (4, 1), 4, None).strides == (4, 1)
    assert layout[1:3].required_size_in_bytes() == 48
    with pytest.raises(ValueError):
        _StridedLayout((3,), (-1,), 4).required_size_in_bytes()
    for call, error in (
        (lambda: layout.permuted((0, 0)), ValueError),
        (lambda: layout.permuted((0,)), ValueError),
        (lambda: layout.permuted([1, 0]), TypeError),
        (lambda: layout.permuted((0, 2)), ValueError),
        (lambda: layout.reshaped((5,)), ValueError),
        (lambda: layout.reshaped((-1, -1)), ValueError),
        (lambda: layout.reshaped((0, -1)), ValueError),
        (lambda: columns.reshaped((12,)), ValueError),
        (lambda: layout.broadcast_to((3, 5)), ValueError),
        (lambda: layout.broadcast_to((4,)), ValueError),
        (lambda: layout.unsqueezed((0, 0)), ValueError),
        (lambda: layout.unsqueezed(4), ValueError),
        (lambda: layout.repacked(12), ValueError),
        (lambda: layout.max_compatible_itemsize(2), ValueError),
        (lambda: _StridedLayout.dense((2,), 1, "K"), ValueError),
        (lambda: layout.repacked(8, 4), ValueError),
        (lambda: layout.repacked(8, axis=0), ValueError),
        (lambda: layout.repacked(8, axis=2), ValueError),
        (lambda: layout.flattened(0, 2), ValueError),
        (lambda: _StridedLayout.dense((2, 3), 1, "X"), ValueError),
        (lambda: _StridedLayout.dense((2, 3), 1, (0,)), ValueError),
        (lambda: layout[5], ValueError),
        (lambda: layout[-4], ValueError),
        (lambda: layout[0, 0, 0], ValueError),
        (lambda: layout[:, :, 0:0], ValueError),
        (lambda: layout[...], TypeError),
        (lambda: layout[None], TypeError),
        (lambda: layout["a"], TypeError),
        (lambda: layout[::0], ValueError),
    ):
        with pytest.raises(error):
            call()


SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@st.composite
def arrays(draw):
    """A NumPy array with elements 0, 1, ... and a slice of it with unusual strides."""
    whole = np.arange(4**4, dtype=np.int32).reshape(4, 4, 4, 4)[tuple(slice(0, n) for n in draw(SHAPES))]
    part = np.transpose(whole, draw(st.permutations(range(4))))
    steps = st.sampled_from([1, 2, -1, -2])
    return part[tuple(slice(None, None, draw(steps)) for _ in range(4))]


@settings(max_examples=150, deadline=None)
@given(arrays(), st.data())
def test_slices_match_numpy(array, data):
    layout = of(array)
    ends = st.one_of(st.none(), st.integers(-6, 6))
    slices = []
    for extent in array.shape[: data.draw(st.integers(0, 4))]:
        choices = [st.builds(slice, ends, ends, st.sampled_from([None, 1, 2, 3, -1, -2]))]
        if extent:
            choices.append(st.integers(-extent, extent - 1))
        slices.append(data.draw(st.one_of(choices)))
    # With an ellipsis a single element is an array and not a copy.
    part, sliced = array[(*slices, ...)], layout[tuple(slices)]
    assert sliced.shape == part.shape and sliced.volume == part.size
    if part.size:
        first = part.__array_interface__["data"][0] - array.__array_interface__["data"][0]
        assert sliced.slice_offset_in_bytes == first
        used = [n > 1 for n in part.shape]
        assert [s for s, u in zip(sliced.strides_in_bytes, used) if u] == [s for s, u in zip(part.strides, used) if u]


@settings(max_examples=150, deadline=None)
@given(arrays())
def test_properties_match_numpy(array):
    layout = of(array)
    assert layout.is_contiguous_c == array.flags.c_contiguous
    assert layout.is_contiguous_f == array.flags.f_contiguous
    assert layout.is_unique
    if array.size:
        low, high = np.lib.array_utils.byte_bounds(array)
        base = array.__array_interface__["data"][0]
        assert layout.min_offset * 4 == low - base and (layout.max_offset + 1) * 4 == high - base
        positions = np.asarray(layout.flattened().shape).prod()
        assert positions == array.size
    dense = layout.to_dense()
    assert dense.is_dense and dense.shape == layout.shape


@settings(max_examples=150, deadline=None)
@given(arrays(), SHAPES)
def test_reshape_matches_numpy(array, shape):
    layout = of(array)
    if np.prod(shape, dtype=int) != array.size:
        with pytest.raises(ValueError):
            layout.reshaped(shape)
        return
    try:
        expected = np.reshape(array, shape, copy=False)
    except ValueError:
        with pytest.raises(ValueError):
            layout.reshaped(shape)
        return
    reshaped = layout.reshaped(shape)
    assert reshaped.shape == shape
    if array.size:
        used = [n > 1 for n in shape]
        assert [s for s, u in zip(reshaped.strides_in_bytes, used) if u] == [
            s for s, u in zip(expected.strides, used) if u
        ]


def test_implicit_strides():
    # C order for any shape; operations without effect do not make the strides explicit.
    for shape in ((0, 4), (1, 3, 1), (2, 3)):
        layout = _StridedLayout(shape, None, 4)
        assert layout.stride_order == tuple(range(len(shape)))
        assert layout.unsqueezed(()) == layout and layout.unsqueezed(()).strides is None
