from collections.abc import Iterable, Iterator, MutableSet
from typing import Any, SupportsIndex, SupportsInt

from cuda.bindings.driver import CUdeviceptr
from cuda.core._device import Device
from cuda.core._host import Host
from cuda.core._memory._buffer import Buffer, MemoryResource
from cuda.core._stream import Stream
from typing_extensions import Self, disjoint_base

__all__ = ["AccessedBySetProxy", "ManagedBuffer"]

@disjoint_base
class ManagedBuffer(Buffer):
    """A buffer of managed memory: it moves to whoever uses it, the host or a device."""

    def __new__(cls, *args: Any, **_kwargs: Any) -> ManagedBuffer: ...
    @classmethod
    def from_handle(  # type: ignore[override]
        cls,
        ptr: int | CUdeviceptr | SupportsInt,
        size: SupportsIndex,
        mr: MemoryResource | None = None,
        owner: object | None = None,
        *,
        stream: Stream | None = None,
    ) -> Self:
        """A buffer of managed memory that exists."""
    def __getitem__(self, key: slice, /) -> ManagedBuffer: ...
    @property
    def read_mostly(self) -> bool:
        """Whether the memory is read far more often than written."""
    @read_mostly.setter
    def read_mostly(self, value: object) -> None: ...
    @property
    def preferred_location(self) -> Device | Host | None:
        """Where the memory should rather stay."""
    @preferred_location.setter
    def preferred_location(self, value: Device | Host | None) -> None: ...
    @property
    def accessed_by(self) -> AccessedBySetProxy:
        """Who will use the memory and should have it mapped at all times."""
    @accessed_by.setter
    def accessed_by(self, value: Iterable[Device | Host]) -> None: ...
    def _accessed_by(self) -> list[Device | Host]: ...
    def _set_accessed_by(self, place: Device | Host, used: bool) -> None: ...
    def prefetch(self, location: Device | Host, *, stream: Stream) -> None:
        """Moves the memory, in the order of a stream."""
    def discard(self, *, stream: Stream) -> None:
        """Gives up the contents, in the order of a stream."""
    def discard_prefetch(self, location: Device | Host, *, stream: Stream) -> None:
        """`discard` and `prefetch` in one."""

class AccessedBySetProxy(MutableSet[Device | Host]):
    """Who will use the memory of a `ManagedBuffer`."""

    __slots__ = ("_buf",)

    def __init__(self, buf: ManagedBuffer) -> None: ...
    def __contains__(self, value: object) -> bool: ...
    def __iter__(self) -> Iterator[Device | Host]: ...
    def __len__(self) -> int: ...
    def add(self, location: Device | Host) -> None:
        """Says that a device, or the host, will use the memory."""
    def discard(self, location: Device | Host) -> None:
        """Takes that back, if it was said."""
