from collections.abc import Sequence

from cuda.core._device import Device
from cuda.core._host import Host
from cuda.core._memory._buffer import Buffer
from cuda.core._stream import Stream

__all__ = ["discard_batch", "discard_prefetch_batch", "prefetch_batch"]

def prefetch_batch(
    stream: Stream, buffers: Sequence[Buffer], locations: Device | Host | Sequence[Device | Host]
) -> None:
    """Moves managed memory, in the order of a stream."""

def discard_batch(stream: Stream, buffers: Sequence[Buffer]) -> None:
    """Gives up the contents of managed memory, in the order of a stream."""

def discard_prefetch_batch(
    stream: Stream, buffers: Sequence[Buffer], locations: Device | Host | Sequence[Device | Host]
) -> None:
    """`discard_batch` and `prefetch_batch` in one."""
