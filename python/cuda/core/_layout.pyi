"""Strided memory layouts of arrays."""

from typing import Literal, final

from typing_extensions import Self

__all__: list[str] = []

_Order = Literal["C", "F", "K"] | tuple[int, ...]
_Index = int | slice

@final
class _StridedLayout:
    """Shape, strides and element size of an array."""

    def __new__(
        cls,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,
        itemsize: int,
        divide_strides: bool = False,
    ) -> Self: ...
    @classmethod
    def dense(cls, shape: tuple[int, ...], itemsize: int, stride_order: _Order | None = None) -> _StridedLayout:
        """Creates a dense layout."""
    @classmethod
    def dense_like(cls, other: _StridedLayout, stride_order: _Order | None = None) -> _StridedLayout:
        """Creates the dense layout of another layout; see :meth:`to_dense`."""
    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
    @property
    def strides(self) -> tuple[int, ...] | None:
        """Strides in elements; None for a layout created without strides."""
    @property
    def strides_in_bytes(self) -> tuple[int, ...] | None:
        """Strides in bytes; None for a layout created without strides."""
    @property
    def itemsize(self) -> int:
        """Element size in bytes."""
    @property
    def ndim(self) -> int:
        """Number of dimensions."""
    @property
    def volume(self) -> int:
        """Number of elements."""
    @property
    def slice_offset(self) -> int:
        """Offset of the element with all indices zero from the base address, in elements."""
    @property
    def slice_offset_in_bytes(self) -> int:
        """:attr:`slice_offset` in bytes."""
    @property
    def offset_bounds(self) -> tuple[int, int]:
        """Smallest and largest element offset from the base address; ``(0, -1)`` for an empty layout."""
    @property
    def min_offset(self) -> int:
        """Smallest element offset from the base address."""
    @property
    def max_offset(self) -> int:
        """Largest element offset from the base address."""
    @property
    def stride_order(self) -> tuple[int, ...]:
        """Axes from the largest stride to the smallest."""
    @property
    def is_contiguous_c(self) -> bool:
        """Whether the elements are contiguous in C order."""
    @property
    def is_contiguous_f(self) -> bool:
        """Whether the elements are contiguous in Fortran order."""
    @property
    def is_contiguous_any(self) -> bool:
        """Whether the elements are contiguous in any order of the axes."""
    @property
    def is_dense(self) -> bool:
        """Whether the elements are contiguous and start at the base address."""
    @property
    def is_unique(self) -> bool:
        """Whether no two elements overlap. True is exact; False may be conservative for unusual strides."""
    def required_size_in_bytes(self) -> int:
        """Bytes of memory, from the base address, that the layout requires."""
    def to_dense(self, stride_order: _Order | None = None) -> _StridedLayout:
        """Returns the dense layout of the same shape."""
    def sliced(self, slices: _Index | tuple[_Index, ...]) -> _StridedLayout:
        """Indexes the leading axes; equivalent to ``layout[1:, ::2]``."""
    def __getitem__(self, slices: _Index | tuple[_Index, ...], /) -> _StridedLayout: ...
    def permuted(self, axis_order: tuple[int, ...]) -> _StridedLayout:
        """Permutes the axes."""
    def reshaped(self, shape: tuple[int, ...]) -> _StridedLayout:
        """Returns a layout with another shape for the same elements in the same order."""
    def flattened(self, start_axis: int = 0, end_axis: int = -1, mask: int | None = None) -> _StridedLayout:
        """Merges adjacent axes that can be traversed as one."""
    def flattened_axis_mask(self) -> int:
        """Axes that :meth:`flattened` can merge into the preceding axis: bit ``i`` for axis ``i``."""
    def squeezed(self) -> _StridedLayout:
        """Removes axes of extent 1. An empty layout is reduced to one axis of extent 0."""
    def unsqueezed(self, axis: int | tuple[int, ...]) -> _StridedLayout:
        """Inserts axes of extent 1."""
    def broadcast_to(self, shape: tuple[int, ...]) -> _StridedLayout:
        """Broadcasts to another shape; repeated axes have stride 0."""
    def repacked(self, itemsize: int, data_ptr: int = 0, axis: int = -1, keep_dim: bool = True) -> _StridedLayout:
        """Reinterprets the bytes with another element size: splits elements, or combines adjacent ones."""
    def max_compatible_itemsize(self, max_itemsize: int | None = 16, data_ptr: int = 0, axis: int = -1) -> int:
        """Largest element size accepted by :meth:`repacked`."""
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]
