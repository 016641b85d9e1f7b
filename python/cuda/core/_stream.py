"""Streams, and the protocol by which libraries take each other's."""

from cupyrite._native.core import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Stream,
    Stream_accept,
    default_stream,
)

from cuda.core._options import options

__all__ = [
    "LEGACY_DEFAULT_STREAM",
    "PER_THREAD_DEFAULT_STREAM",
    "IsStreamType",
    "Stream",
    "StreamOptions",
    "Stream_accept",
    "default_stream",
]


@options
class StreamOptions:
    """How a stream is made.

    Attributes
    ----------
    nonblocking : bool
        Whether its work runs without waiting for the legacy default stream.
    priority : int, optional
        Lower numbers run first. By default the device's lowest priority.
    """

    nonblocking: "Any" = True
    priority: "int | None" = None

    def __post_init__(self):
        if type(self.nonblocking) is not bool:
            self.nonblocking = bool(self.nonblocking)
        if self.priority is not None and not hasattr(self.priority, "__index__"):
            raise TypeError(f"StreamOptions.priority is {self.priority!r}; expected an int or None")


def __getattr__(name):
    # `typing` takes longer to import than all of this package: only whoever asks for the protocol pays for it.
    if name != "IsStreamType":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from typing import Protocol

    class IsStreamType(Protocol):
        """Any object that has a stream: its ``__cuda_stream__`` returns ``(0, handle)``."""

        def __cuda_stream__(self) -> tuple[int, int]:
            """The protocol's version, 0, and the address of the stream."""

    IsStreamType.__qualname__ = "IsStreamType"
    globals()[name] = IsStreamType
    return IsStreamType
