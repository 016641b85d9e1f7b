"""Streams and the ``__cuda_stream__`` protocol."""

from cuda.core._options import options
from cupyrite._native.core import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Stream,
    Stream_accept,
    default_stream,
)

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
    """Options of a stream.

    Attributes
    ----------
    nonblocking : bool
        Whether the stream does not synchronize with the legacy default stream.
    priority : int, optional
        Lower numbers have higher priority. Default: the device's lowest priority.

    Examples
    --------
    >>> from cuda.core import Device, StreamOptions
    >>> stream = Device().create_stream(options=StreamOptions(nonblocking=False, priority=-1))
    >>> stream.is_nonblocking, stream.priority
    (False, -1)
    """

    nonblocking: "Any" = True
    priority: "int | None" = None

    def __post_init__(self):
        if type(self.nonblocking) is not bool:
            self.nonblocking = bool(self.nonblocking)
        if self.priority is not None and not hasattr(self.priority, "__index__"):
            raise TypeError(f"StreamOptions.priority is {self.priority!r}; expected an int or None")


def __getattr__(name):
    # Defined on first use: importing `typing` takes longer than importing this package.
    if name != "IsStreamType":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from typing import Protocol

    class IsStreamType(Protocol):
        """Any object whose ``__cuda_stream__`` method returns ``(0, handle)``.

        Examples
        --------
        A class whose objects are accepted where a stream is expected:

        >>> from cuda.core import Device
        >>> device = Device()
        >>> class Queue:
        ...     def __init__(self):
        ...         self.stream = device.create_stream()
        ...     def __cuda_stream__(self):
        ...         return (0, int(self.stream.handle))
        >>> queue = Queue()
        >>> device.create_stream(queue) == queue.stream
        True
        """

        def __cuda_stream__(self) -> tuple[int, int]:
            """Protocol version (0) and stream handle."""

    IsStreamType.__qualname__ = "IsStreamType"
    globals()[name] = IsStreamType
    return IsStreamType
