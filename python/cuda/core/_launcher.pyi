from typing import Any

from ._launch_config import LaunchConfig
from ._module import Kernel
from .typing import IsStreamType
from ._stream import Stream

def launch(stream: Stream | IsStreamType, config: LaunchConfig, kernel: Kernel, *kernel_args: Any) -> None:
    """Queues a kernel in a stream."""

__all__ = ["launch"]
