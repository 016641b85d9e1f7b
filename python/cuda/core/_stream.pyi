"""Streams and the ``__cuda_stream__`` protocol."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, SupportsIndex

from typing_extensions import Self, disjoint_base

from cuda.bindings.driver import CUstream
from cuda.core._context import Context
from cuda.core._device import Device
from cuda.core._device_resources import DeviceResources
from cuda.core._event import Event, EventOptions
from cuda.core.graph._graph_builder import GraphBuilder

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
    """Any object whose ``__cuda_stream__`` method returns ``(0, handle)``."""

    def __cuda_stream__(self) -> tuple[int, int]:
        """Protocol version (0) and stream handle."""

@disjoint_base
class Stream:
    """A CUDA stream: work queued in a stream runs in order, and independently of other streams."""

    def __new__(
        cls, obj: IsStreamType | None = None, options: StreamOptions | dict[str, Any] | None = None
    ) -> Self: ...
    @property
    def handle(self) -> CUstream:
        """Driver handle, a ``cuda.bindings.driver.CUstream``; 0 if the stream was closed."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called. Default streams cannot be closed."""
    @property
    def is_nonblocking(self) -> bool:
        """Whether the stream does not synchronize with the legacy default stream."""
    @property
    def priority(self) -> int:
        """Priority of the stream; lower numbers have higher priority."""
    @property
    def device(self) -> Device:
        """Device of the stream; for a default stream, the device of the current context."""
    @property
    def context(self) -> Context:
        """Context of the stream; for a default stream, the current context."""
    @property
    def resources(self) -> DeviceResources:
        """The resources of the stream's context. For a default stream: of the context that is current at each query."""
    def __cuda_stream__(self) -> tuple[int, int]: ...
    def sync(self) -> None:
        """Waits for all queued work."""
    def record(self, event: Event | None = None, options: EventOptions | dict[str, Any] | None = None) -> Event:
        """Records an event after the queued work."""
    def wait(self, event_or_stream: Event | Stream | IsStreamType) -> None:
        """Makes the stream's later work wait on the device; returns at once."""
    def create_graph_builder(self) -> GraphBuilder:
        """Creates a graph builder that captures this stream."""
    def close(self) -> None:
        """Releases the stream: it is destroyed when its queued work has completed and no other object uses it. A
        foreign stream is not destroyed; closing a default stream has no effect."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, *_args: type[BaseException] | BaseException | TracebackType | None
    ) -> None: ...
    @staticmethod
    def from_handle(handle: SupportsIndex) -> Stream:
        """Wraps a stream owned by other code."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@dataclass
class StreamOptions:
    """Options of a stream."""

    nonblocking: Any = True
    priority: int | None = None
    def __post_init__(self) -> None: ...

LEGACY_DEFAULT_STREAM: Stream
PER_THREAD_DEFAULT_STREAM: Stream

def default_stream() -> Stream:
    """The default stream: the legacy default stream, or the per-thread default stream if the environment variable
    ``CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM`` selects it on first use."""

def Stream_accept(arg: Stream | IsStreamType, allow_stream_protocol: bool = False) -> Stream:
    """Converts an argument to a stream."""
