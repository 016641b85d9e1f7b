from collections.abc import Sequence

from cuda.core._device import Device
from cuda.core._host import Host
from cuda.core._memory._buffer import Buffer
from cuda.core._stream import Stream
from cuda.core.graph._graph_builder import GraphBuilder

__all__ = ["discard_batch", "discard_prefetch_batch", "prefetch_batch"]

def prefetch_batch(
    stream: Stream | GraphBuilder, buffers: Sequence[Buffer], locations: Device | Host | Sequence[Device | Host]
) -> None:
    """Prefetches managed memory, stream-ordered."""

def discard_batch(stream: Stream | GraphBuilder, buffers: Sequence[Buffer]) -> None:
    """Discards the contents of managed memory, stream-ordered: they are undefined until written again, and need not be
    migrated."""

def discard_prefetch_batch(
    stream: Stream | GraphBuilder, buffers: Sequence[Buffer], locations: Device | Host | Sequence[Device | Host]
) -> None:
    """Combines `discard_batch` and `prefetch_batch`, for memory that is about to be overwritten at the target."""
