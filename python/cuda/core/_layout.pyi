"""How the elements of an array lie in memory."""

from typing import Literal, final

from typing_extensions import Self

__all__: list[str] = []

_Order = Literal["C", "F", "K"] | tuple[int, ...]
_Index = int | slice

@final
class _StridedLayout:
    """Shape, strides and element size of an array; methods make new layouts and touch no memory."""

    def __new__(
        cls,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,
        itemsize: int,
        divide_strides: bool = False,
    ) -> Self: ...
    @classmethod
    def dense(cls, shape: tuple[int, ...], itemsize: int, stride_order: _Order | None = None) -> _StridedLayout:
        """A layout without gaps."""
    @classmethod
    def dense_like(cls, other: _StridedLayout, stride_order: _Order | None = None) -> _StridedLayout:
        """As :meth:`to_dense` of another layout."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
    @property
    def strides(self) -> tuple[int, ...] | None:
        """The strides in elements; None for a layout that was made without."""
    @property
    def strides_in_bytes(self) -> tuple[int, ...] | None:
        """The strides in bytes; None for a layout that was made without."""
    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
    @property
    def ndim(self) -> int:
        """The number of dimensions."""
    @property
    def volume(self) -> int:
        """The number of elements."""
    @property
    def slice_offset(self) -> int:
        """Where the element with all indices zero is, in elements behind the base address."""
    @property
    def slice_offset_in_bytes(self) -> int:
        """The same, in bytes."""
    @property
    def offset_bounds(self) -> tuple[int, int]:
        """The least and the greatest element, counted from the base address; (0, -1) where there are none."""
    @property
    def min_offset(self) -> int:
        """The least element, counted from the base address."""
    @property
    def max_offset(self) -> int:
        """The greatest element, counted from the base address."""
    @property
    def stride_order(self) -> tuple[int, ...]:
        """The axes from the one with the largest stride to the one with the smallest."""
    @property
    def is_contiguous_c(self) -> bool:
        """Whether the elements lie one behind the other, the last index running fastest."""
    @property
    def is_contiguous_f(self) -> bool:
        """Whether the elements lie one behind the other, the first index running fastest."""
    @property
    def is_contiguous_any(self) -> bool:
        """Whether the elements lie one behind the other in some order of the axes."""
    @property
    def is_dense(self) -> bool:
        """Whether the elements lie one behind the other from the base address on."""
    @property
    def is_unique(self) -> bool:
        """Whether no two elements share memory; True is certain."""
    def required_size_in_bytes(self) -> int:
        """The bytes that memory needs to hold the layout from its base address on."""
    def to_dense(self, stride_order: _Order | None = None) -> _StridedLayout:
        """The dense layout of the same shape."""
    def sliced(self, slices: _Index | tuple[_Index, ...]) -> _StridedLayout:
        """Takes elements and ranges of the first axes."""
    def __getitem__(self, slices: _Index | tuple[_Index, ...], /) -> _StridedLayout: ...
    def permuted(self, axis_order: tuple[int, ...]) -> _StridedLayout:
        """The axes in another order."""
    def reshaped(self, shape: tuple[int, ...]) -> _StridedLayout:
        """Another shape for the same elements in the same order."""
    def flattened(self, start_axis: int = 0, end_axis: int = -1, mask: int | None = None) -> _StridedLayout:
        """Merges axes with the axis before them where both run through memory as one would."""
    def flattened_axis_mask(self) -> int:
        """Which axes :meth:`flattened` can merge: bit i for axis i."""
    def squeezed(self) -> _StridedLayout:
        """Without the axes of extent 1."""
    def unsqueezed(self, axis: int | tuple[int, ...]) -> _StridedLayout:
        """With axes of extent 1 added."""
    def broadcast_to(self, shape: tuple[int, ...]) -> _StridedLayout:
        """Repeats axes of extent 1, and the whole, up to another shape."""
    def repacked(self, itemsize: int, data_ptr: int = 0, axis: int = -1, keep_dim: bool = True) -> _StridedLayout:
        """The same bytes as elements of another size."""
    def max_compatible_itemsize(self, max_itemsize: int | None = 16, data_ptr: int = 0, axis: int = -1) -> int:
        """The largest element size that :meth:`repacked` takes."""
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]
