from collections.abc import Iterable, Iterator, MutableSet
from typing import Any, SupportsIndex, SupportsInt

from cuda.bindings.driver import CUdeviceptr
from cuda.core._device import Device
from cuda.core._host import Host
from cuda.core._memory._buffer import Buffer, MemoryResource
from cuda.core._stream import Stream
from cuda.core.graph._graph_builder import GraphBuilder
from typing_extensions import Self, disjoint_base

__all__ = ["AccessedBySetProxy", "ManagedBuffer"]

@disjoint_base
class ManagedBuffer(Buffer):
    """A buffer of managed memory, which migrates between the host and devices."""

    def __new__(cls, *args: Any, **_kwargs: Any) -> ManagedBuffer: ...
    @classmethod
    def from_handle(  # type: ignore[override]
        cls,
        ptr: int | CUdeviceptr | SupportsInt,
        size: SupportsIndex,
        mr: MemoryResource | None = None,
        owner: object | None = None,
        *,
        stream: Stream | GraphBuilder | None = None,
    ) -> Self:
        """Wraps existing managed memory; see :meth:`Buffer.from_handle`. Operations that require managed memory check
        for it."""
    def __getitem__(self, key: slice, /) -> ManagedBuffer: ...
    @property
    def read_mostly(self) -> bool:
        """Read-mostly advice: readers get copies of their own. Settable."""
    @read_mostly.setter
    def read_mostly(self, value: object) -> None: ...
    @property
    def preferred_location(self) -> Device | Host | None:
        """Preferred location: a :class:`Device`, a :class:`Host`, or None. Settable."""
    @preferred_location.setter
    def preferred_location(self, value: Device | Host | None) -> None: ...
    @property
    def accessed_by(self) -> AccessedBySetProxy:
        """Locations with the accessed-by advice: a mutable set of :class:`Device` and :class:`Host`, which can also be
        assigned."""
    @accessed_by.setter
    def accessed_by(self, value: Iterable[Device | Host]) -> None: ...
    def _accessed_by(self) -> list[Device | Host]: ...
    def _set_accessed_by(self, place: Device | Host, used: bool) -> None: ...
    def prefetch(self, location: Device | Host, *, stream: Stream | GraphBuilder) -> None:
        """Prefetches the memory, stream-ordered."""
    def discard(self, *, stream: Stream | GraphBuilder) -> None:
        """Discards the contents, stream-ordered: they are undefined until written again, and need not be migrated. The
        legacy default stream is not supported (``CUDA_ERROR_INVALID_VALUE``)."""
    def discard_prefetch(self, location: Device | Host, *, stream: Stream | GraphBuilder) -> None:
        """Combines :meth:`discard` and :meth:`prefetch`, for memory that is about to be overwritten at the target."""

class AccessedBySetProxy(MutableSet[Device | Host]):
    """Locations with the accessed-by advice of a :class:`ManagedBuffer` (``CU_MEM_ADVISE_SET_ACCESSED_BY``)."""

    __slots__ = ("_buf",)

    def __init__(self, buf: ManagedBuffer) -> None: ...
    def __contains__(self, value: object) -> bool: ...
    def __iter__(self) -> Iterator[Device | Host]: ...
    def __len__(self) -> int: ...
    def add(self, location: Device | Host) -> None:
        """Apply the accessed-by advice for a device or the host."""
    def discard(self, location: Device | Host) -> None:
        """Remove the accessed-by advice for a location, if set."""
