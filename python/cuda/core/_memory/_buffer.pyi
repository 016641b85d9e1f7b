from typing import Any, Literal, Protocol, SupportsIndex, SupportsInt, TypeVar, overload

from cuda.bindings.driver import CUdeviceptr
from cuda.core._memory._copy_enums import CopyOptions
from cuda.core._memory._ipc import IPCBufferDescriptor
from cuda.core._stream import Stream
from cuda.core.graph._graph_builder import GraphBuilder
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
    """Memory allocated by a memory resource or owned by another object."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Buffer: ...
    @staticmethod
    def from_handle(
        ptr: int | CUdeviceptr | SupportsInt,
        size: SupportsIndex,
        mr: MemoryResource | None = None,
        owner: object | None = None,
        *,
        stream: Stream | GraphBuilder | None = None,
    ) -> Buffer:
        """Wraps existing memory."""
    @classmethod
    def from_ipc_descriptor(
        cls, mr: MemoryResource, ipc_descriptor: IPCBufferDescriptor, *, stream: Stream | GraphBuilder
    ) -> Buffer:
        """Imports a buffer of another process. The imported buffer must be closed before the exporting process frees
        the memory."""
    @property
    def ipc_descriptor(self) -> IPCBufferDescriptor:
        """Descriptor with which another process imports the memory by :meth:`from_ipc_descriptor`: a picklable
        ``IPCBufferDescriptor``."""
    @property
    def handle(self) -> int:
        """Address of the memory; 0 if the buffer was closed."""
    @property
    def size(self) -> int:
        """Size in bytes; 0 if the buffer was closed."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def device_id(self) -> int:
        """Device number of the memory; -1 for memory unknown to CUDA."""
    @property
    def is_device_accessible(self) -> bool:
        """Whether kernels can access the memory."""
    @property
    def is_host_accessible(self) -> bool:
        """Whether the host can access the memory."""
    @property
    def is_managed(self) -> bool:
        """Whether the memory is managed (unified) memory."""
    @property
    def is_mapped(self) -> bool:
        """Whether the memory was imported from another process."""
    @property
    def memory_resource(self) -> MemoryResource | None:
        """The memory resource; None if there is none or the buffer was closed."""
    @property
    def owner(self) -> Any:
        """The owner given to :meth:`from_handle`; None if there is none or the buffer was closed."""
    def close(self, stream: Stream | GraphBuilder | None = None) -> None:
        """Frees the memory, stream-ordered after the stream's current work. Further calls do nothing."""
    def set_deallocation_stream(self, stream: Stream | GraphBuilder) -> None:
        """Sets the stream on which the memory is freed."""
    @overload
    def copy_to(self, dst: None = None, *, stream: Stream | GraphBuilder, options: CopyOptions | None = None) -> Buffer:
        """Copies the whole buffer, stream-ordered."""
    @overload
    def copy_to(self, dst: _D, *, stream: Stream | GraphBuilder, options: CopyOptions | None = None) -> _D: ...
    def copy_from(self, src: Buffer | _Array, *, stream: Stream | GraphBuilder, options: CopyOptions | None = None) -> None:
        """Copies into the buffer, stream-ordered."""
    def fill(self, value: int | _BufferProtocol, *, stream: Stream | GraphBuilder) -> None:
        """Fills the buffer with a pattern, stream-ordered."""
    def _repr_html_(self) -> str:
        """HTML for notebooks."""
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Exports the memory by DLPack, as a one-dimensional array of 8-bit integers."""
    def __dlpack_device__(self) -> tuple[int, int]:
        """``(device type, device number)`` as defined by DLPack."""
    def __getitem__(self, key: slice, /) -> Buffer:
        """Return self[key]."""
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """CUDA array interface (version 3) of the memory as bytes; only for device-accessible memory. Its stream is
        ordered after all known uses of the memory."""
    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy array interface (version 3) of the memory as bytes; only for host-accessible memory."""
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
    """Base class of all memory resources."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> MemoryResource: ...
    def allocate(self, size: int, *, stream: Stream | GraphBuilder) -> Buffer:
        """Allocates memory; implemented by subclasses."""
    def deallocate(self, ptr: int, size: int, *, stream: Stream | GraphBuilder) -> None:
        """Frees memory that this resource allocated; implemented by subclasses."""
    @property
    def is_device_accessible(self) -> bool:
        """Whether kernels can access the memory; implemented by subclasses."""
    @property
    def is_host_accessible(self) -> bool:
        """Whether the host can access the memory; implemented by subclasses."""
    @property
    def is_managed(self) -> bool:
        """False."""
    @property
    def device_id(self) -> int:
        """Device number of the memory; implemented by subclasses."""
