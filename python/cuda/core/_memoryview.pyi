"""Everyone's arrays as address, shape, strides and type."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, final

import numpy
import numpy.typing
from cuda.bindings.driver import CUstream
from cuda.core._layout import _StridedLayout
from cuda.core._memory._buffer import Buffer, MemoryResource
from cuda.core._stream import Stream
from typing_extensions import CapsuleType, Self, disjoint_base

__all__ = ["StridedMemoryView", "args_viewable_as_strided_memory"]

_F = TypeVar("_F", bound=Callable[..., Any])
_Consumer = int | CUstream | Stream

@disjoint_base
class StridedMemoryView:
    """Memory of an array, of any library, as address, shape, strides and type; it copies nothing."""

    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    __c_dlpack_exchange_api__: ClassVar[CapsuleType]
    def __new__(cls, obj: Any | None = None, stream_ptr: _Consumer | None = None) -> Self: ...
    @classmethod
    def from_dlpack(cls, obj: Any, stream_ptr: _Consumer | None = None) -> Self:
        """A view of an array by DLPack."""
    @classmethod
    def from_cuda_array_interface(cls, obj: Any, stream_ptr: _Consumer | None = None) -> Self:
        """A view of an array by __cuda_array_interface__ (version 3)."""
    @classmethod
    def from_array_interface(cls, obj: Any) -> Self:
        """A view of memory of the host by __array_interface__ (version 3)."""
    @classmethod
    def from_any_interface(cls, obj: Any, stream_ptr: _Consumer | None = None) -> Self:
        """A view of an array by the first of the protocols that it has."""
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
        """A view of a buffer's memory as an array."""
    def view(self, layout: _StridedLayout | None = None, dtype: numpy.typing.DTypeLike | None = None) -> Self:
        """The same memory with another layout, another type, or both."""
    def copy_from(
        self,
        other: StridedMemoryView,
        stream: Stream,
        allocator: MemoryResource | None = None,
        blocking: bool | None = None,
    ) -> None:
        """Copies another view's elements into this one's memory, in the order of a stream."""
    def copy_to(
        self,
        other: StridedMemoryView,
        stream: Stream | None = None,
        allocator: MemoryResource | None = None,
        blocking: bool | None = None,
    ) -> None:
        """Copies this view's elements into another one's memory."""
    @property
    def ptr(self) -> int:
        """The address of the element with all indices zero."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
    @property
    def strides(self) -> tuple[int, ...] | None:
        """The strides in elements; None for C order that nobody spelt out."""
    @property
    def size(self) -> int:
        """The number of elements."""
    @property
    def dtype(self) -> numpy.dtype[Any] | None:
        """The type of the elements; None where it is not known."""
    @property
    def device_id(self) -> int:
        """The number of the memory's device; -1 for memory of the host."""
    @property
    def is_device_accessible(self) -> bool:
        """Whether a device can use the memory."""
    @property
    def readonly(self) -> bool:
        """Whether the memory must not be written."""
    @property
    def exporting_obj(self) -> Any:
        """The object that was viewed, which the view keeps alive."""
    @property
    def _layout(self) -> _StridedLayout: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """A capsule of the memory."""
    def __dlpack_device__(self) -> tuple[int, int]:
        """(device type, device number) of the memory."""
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...

@final
class _StridedMemoryViewProxy:
    """An argument that :func:`args_viewable_as_strided_memory` prepared."""

    def __new__(cls, obj: Any) -> Self: ...
    @property
    def obj(self) -> Any:
        """The array."""
    @property
    def has_dlpack(self) -> bool:
        """Whether it is viewed by DLPack."""
    def view(self, stream_ptr: _Consumer | None = None) -> StridedMemoryView:
        """Views the array."""

def args_viewable_as_strided_memory(arg_indices: tuple[int, ...]) -> Callable[[_F], _F]:
    """A decorator for functions that take arrays of any library."""

def view_as_cai(obj: Any, stream_ptr: _Consumer | None, view: None = None) -> StridedMemoryView:
    """As StridedMemoryView.from_cuda_array_interface."""

def view_as_array_interface(obj: Any, view: None = None) -> StridedMemoryView:
    """As StridedMemoryView.from_array_interface."""
