from typing import Any, Literal, Protocol, SupportsIndex, SupportsInt, TypeVar, overload

from cuda.bindings.driver import CUdeviceptr
from cuda.core._memory._copy_enums import CopyOptions
from cuda.core._memory._ipc import IPCBufferDescriptor
from cuda.core._stream import Stream
from typing_extensions import Buffer as _BufferProtocol
from typing_extensions import Self, disjoint_base

__all__ = ["Buffer", "MemoryResource"]

class _CudaArray(Protocol):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

class _HostArray(Protocol):
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

_Array = _BufferProtocol | _CudaArray | _HostArray
_D = TypeVar("_D", bound=Buffer | _Array)

@disjoint_base
class Buffer:
    """Memory that a memory resource allocated, or that somebody else owns."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Buffer: ...
    @staticmethod
    def from_handle(
        ptr: int | CUdeviceptr | SupportsInt,
        size: SupportsIndex,
        mr: MemoryResource | None = None,
        owner: object | None = None,
        *,
        stream: Stream | None = None,
    ) -> Buffer:
        """A buffer of memory that exists."""
    @classmethod
    def from_ipc_descriptor(
        cls, mr: MemoryResource, ipc_descriptor: IPCBufferDescriptor, *, stream: Stream
    ) -> Buffer:
        """A buffer of another process's memory."""
    @property
    def ipc_descriptor(self) -> IPCBufferDescriptor:
        """What another process needs to use the memory."""
    @property
    def handle(self) -> int:
        """The address; 0 once the buffer was closed."""
    @property
    def size(self) -> int:
        """Bytes; 0 once the buffer was closed."""
    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
    @property
    def device_id(self) -> int:
        """The number of the device that the memory belongs to; -1 for memory that CUDA does not know."""
    @property
    def is_device_accessible(self) -> bool:
        """Whether kernels can use the memory."""
    @property
    def is_host_accessible(self) -> bool:
        """Whether the host can use the memory."""
    @property
    def is_managed(self) -> bool:
        """Whether the memory is managed."""
    @property
    def is_mapped(self) -> bool:
        """Whether the memory is another process's."""
    @property
    def memory_resource(self) -> MemoryResource | None:
        """The memory resource that the memory is of."""
    @property
    def owner(self) -> Any:
        """The object that was given as the memory's owner."""
    def close(self, stream: Stream | None = None) -> None:
        """Frees the memory in the order of a stream."""
    def set_deallocation_stream(self, stream: Stream) -> None:
        """Has the memory freed in the order of another stream."""
    @overload
    def copy_to(self, dst: None = None, *, stream: Stream, options: CopyOptions | None = None) -> Buffer:
        """Copies the whole buffer, in the order of a stream."""
    @overload
    def copy_to(self, dst: _D, *, stream: Stream, options: CopyOptions | None = None) -> _D: ...
    def copy_from(self, src: Buffer | _Array, *, stream: Stream, options: CopyOptions | None = None) -> None:
        """Copies something into the buffer, in the order of a stream."""
    def fill(self, value: int | _BufferProtocol, *, stream: Stream) -> None:
        """Fills the buffer with a pattern, in the order of a stream."""
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Exports the memory by DLPack."""
    def __dlpack_device__(self) -> tuple[int, int]:
        """Where the memory is, as DLPack numbers it."""
    def __getitem__(self, key: slice, /) -> Buffer:
        """A part of the buffer, which shares its memory."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Address and size as bytes, where a device can use the memory."""
    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Address and size as bytes, where the host can use the memory."""
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_args: object) -> Literal[False]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> Any: ...

@disjoint_base
class MemoryResource:
    """Where buffers get their memory; the base class of all memory resources."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> MemoryResource: ...
    def allocate(self, size: int, *, stream: Stream) -> Buffer:
        """Allocates memory; derived classes implement it."""
    def deallocate(self, ptr: int, size: int, *, stream: Stream) -> None:
        """Frees memory that this resource allocated; derived classes implement it."""
    @property
    def is_device_accessible(self) -> bool:
        """Whether kernels can use the memory."""
    @property
    def is_host_accessible(self) -> bool:
        """Whether the host can use the memory."""
    @property
    def is_managed(self) -> bool:
        """Whether the memory is managed."""
    @property
    def device_id(self) -> int:
        """The number of the device that the memory belongs to."""
