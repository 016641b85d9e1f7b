from typing import Any

from ._launch_config import LaunchConfig
from ._module import Kernel
from .typing import IsStreamType
from ._stream import Stream
from .graph._graph_builder import GraphBuilder

def launch(stream: Stream | GraphBuilder | IsStreamType, config: LaunchConfig, kernel: Kernel, *kernel_args: Any) -> None:
    """Queues a kernel in a stream."""

__all__ = ["launch"]
