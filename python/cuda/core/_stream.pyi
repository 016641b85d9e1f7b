"""Streams, and the protocol by which libraries take each other's."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, SupportsIndex

from typing_extensions import Self, disjoint_base

from cuda.bindings.driver import CUstream
from cuda.core._context import Context
from cuda.core._device import Device
from cuda.core._event import Event, EventOptions

__all__ = [
    "LEGACY_DEFAULT_STREAM",
    "PER_THREAD_DEFAULT_STREAM",
    "IsStreamType",
    "Stream",
    "StreamOptions",
    "Stream_accept",
    "default_stream",
]

class IsStreamType(Protocol):
    """Any object that has a stream."""

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol's version, 0, and the address of the stream."""

@disjoint_base
class Stream:
    """A queue of work on a device; ``Stream()`` makes one on the current device."""

    def __new__(
        cls, obj: IsStreamType | None = None, options: StreamOptions | dict[str, Any] | None = None
    ) -> Self: ...
    @property
    def handle(self) -> CUstream:
        """The driver's handle; 0 once the stream was closed."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def is_nonblocking(self) -> bool:
        """Whether its work runs without waiting for the legacy default stream."""
    @property
    def priority(self) -> int:
        """Lower numbers run first."""
    @property
    def device(self) -> Device:
        """The device that its work runs on."""
    @property
    def context(self) -> Context:
        """The context that it belongs to."""
    def __cuda_stream__(self) -> tuple[int, int]: ...
    def sync(self) -> None:
        """Waits until everything queued so far is done."""
    def record(self, event: Event | None = None, options: EventOptions | dict[str, Any] | None = None) -> Event:
        """Marks the stream's present end with an event."""
    def wait(self, event_or_stream: Event | Stream | IsStreamType) -> None:
        """Makes the stream's later work wait, on the device."""
    def close(self) -> None:
        """Lets go of the stream."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, *_args: type[BaseException] | BaseException | TracebackType | None
    ) -> None: ...
    @staticmethod
    def from_handle(handle: SupportsIndex) -> Stream:
        """A stream that somebody else made and will destroy."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@dataclass
class StreamOptions:
    """How a stream is made."""

    nonblocking: Any = True
    priority: int | None = None
    def __post_init__(self) -> None: ...

LEGACY_DEFAULT_STREAM: Stream
PER_THREAD_DEFAULT_STREAM: Stream

def default_stream() -> Stream:
    """The default stream that ``CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM`` chooses."""

def Stream_accept(arg: Stream | IsStreamType, allow_stream_protocol: bool = False) -> Stream:
    """The stream that `arg` stands for."""
