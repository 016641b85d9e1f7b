from collections.abc import Sequence

from cuda.core._memory._buffer import Buffer
from cuda.core._memory._copy_enums import CopyOptions
from cuda.core._stream import Stream
from cuda.core.graph._graph_builder import GraphBuilder

__all__ = ["copy_batch"]

def copy_batch(
    stream: Stream | GraphBuilder,
    srcs: Sequence[Buffer],
    dsts: Sequence[Buffer],
    *,
    options: CopyOptions | Sequence[CopyOptions] | None = None,
) -> None:
    """Copies buffers into buffers, stream-ordered. The copies of one batch are not ordered among themselves."""
