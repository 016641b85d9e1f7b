"""Strided views of arrays from any library."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, final

import numpy
import numpy.typing
from cuda.bindings.driver import CUstream
from cuda.core._layout import _StridedLayout
from cuda.core._memory._buffer import Buffer, MemoryResource
from cuda.core._stream import Stream
from cuda.core._tensor_map import (
    TensorMapDataType,
    TensorMapDescriptor,
    TensorMapDescriptorOptions,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)
from typing_extensions import CapsuleType, Self, disjoint_base

__all__ = ["StridedMemoryView", "args_viewable_as_strided_memory"]

_F = TypeVar("_F", bound=Callable[..., Any])
_Consumer = int | CUstream | Stream

@disjoint_base
class StridedMemoryView:
    """A strided view of an array of any library: address, shape, strides and element type. Copies nothing and keeps
    the array alive."""

    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    __c_dlpack_exchange_api__: ClassVar[CapsuleType]
    def __new__(cls, obj: Any | None = None, stream_ptr: _Consumer | None = None) -> Self: ...
    @classmethod
    def from_dlpack(cls, obj: Any, stream_ptr: _Consumer | None = None) -> Self:
        """Creates a view of an array by DLPack."""
    @classmethod
    def from_cuda_array_interface(cls, obj: Any, stream_ptr: _Consumer | None = None) -> Self:
        """Creates a view of an array by ``__cuda_array_interface__`` (version 3)."""
    @classmethod
    def from_array_interface(cls, obj: Any) -> Self:
        """Creates a view of host memory by ``__array_interface__`` (version 3), which NumPy arrays have."""
    @classmethod
    def from_any_interface(cls, obj: Any, stream_ptr: _Consumer | None = None) -> Self:
        """DLPack, ``__cuda_array_interface__``, ``__array_interface__`` or the buffer protocol."""
    @classmethod
    def from_buffer(
        cls,
        buffer: Buffer,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        *,
        itemsize: int | None = None,
        dtype: numpy.typing.DTypeLike | None = None,
        is_readonly: bool = False,
    ) -> Self:
        """Creates a view of a buffer's memory. The memory stays valid while the view lives, even if the buffer is
        closed."""
    def as_tensor_map(
        self,
        box_dim: tuple[int, ...] | None = None,
        *,
        options: TensorMapDescriptorOptions | dict[str, Any] | None = None,
        element_strides: tuple[int, ...] | None = None,
        data_type: TensorMapDataType | numpy.typing.DTypeLike | None = None,
        interleave: TensorMapInterleave | None = None,
        swizzle: TensorMapSwizzle | None = None,
        l2_promotion: TensorMapL2Promotion | None = None,
        oob_fill: TensorMapOOBFill | None = None,
    ) -> TensorMapDescriptor:
        """Creates a tensor map of the view, for bulk copies of its boxes (compute capability 9.0)."""
    def view(self, layout: _StridedLayout | None = None, dtype: numpy.typing.DTypeLike | None = None) -> Self:
        """Creates a view of the same memory with another layout, element type, or both."""
    def copy_from(
        self,
        other: StridedMemoryView,
        stream: Stream,
        allocator: MemoryResource | None = None,
        blocking: bool | None = None,
    ) -> None:
        """Copies the elements of another view into this view, stream-ordered. Layouts may differ."""
    def copy_to(
        self,
        other: StridedMemoryView,
        stream: Stream | None = None,
        allocator: MemoryResource | None = None,
        blocking: bool | None = None,
    ) -> None:
        """Copies the elements of this view into another view; see :meth:`copy_from`."""
    @property
    def ptr(self) -> int:
        """Address of the element with all indices zero."""
    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
    @property
    def strides(self) -> tuple[int, ...] | None:
        """Strides in elements; None for implicit C order."""
    @property
    def size(self) -> int:
        """Number of elements."""
    @property
    def dtype(self) -> numpy.dtype[Any] | None:
        """Element type; None if unknown. Imports NumPy."""
    @property
    def device_id(self) -> int:
        """Device number of the memory; -1 for host memory."""
    @property
    def is_device_accessible(self) -> bool:
        """Whether a device can access the memory."""
    @property
    def readonly(self) -> bool:
        """Whether the memory is read-only."""
    @property
    def exporting_obj(self) -> Any:
        """The viewed object, which the view keeps alive."""
    @property
    def _layout(self) -> _StridedLayout: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def _repr_html_(self) -> str:
        """HTML for notebooks."""
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Exports the memory by DLPack."""
    def __dlpack_device__(self) -> tuple[int, int]:
        """``(device type, device number)`` as defined by DLPack."""
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...

@final
class _StridedMemoryViewProxy:
    """An argument of a function decorated with :func:`args_viewable_as_strided_memory`: the array and its view
    protocol."""

    def __new__(cls, obj: Any) -> Self: ...
    @property
    def obj(self) -> Any:
        """The array."""
    @property
    def has_dlpack(self) -> bool:
        """Whether the array is viewed by DLPack."""
    def view(self, stream_ptr: _Consumer | None = None) -> StridedMemoryView:
        """Creates a view of the array."""

def args_viewable_as_strided_memory(arg_indices: tuple[int, ...]) -> Callable[[_F], _F]:
    """Decorator for functions that take arrays of any library."""

def view_as_cai(obj: Any, stream_ptr: _Consumer | None, view: None = None) -> StridedMemoryView:
    """Alias of :meth:`StridedMemoryView.from_cuda_array_interface`; `view` must be None."""

def view_as_array_interface(obj: Any, view: None = None) -> StridedMemoryView:
    """Alias of :meth:`StridedMemoryView.from_array_interface`; `view` must be None."""
