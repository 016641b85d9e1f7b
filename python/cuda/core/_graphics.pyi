"""OpenGL objects that CUDA can access."""

from types import TracebackType
from typing import final

from cuda.core._memory._buffer import Buffer
from cuda.core._stream import Stream

__all__ = ["GraphicsResource"]

@final
class GraphicsResource:
    """An OpenGL buffer or texture that CUDA can access, without a copy."""

    def __new__(cls) -> GraphicsResource: ...
    @classmethod
    def from_gl_buffer(
        cls,
        gl_buffer: int,
        *,
        flags: str | tuple[str, ...] | list[str] | None = None,
        stream: Stream | None = None,
    ) -> GraphicsResource:
        """Registers an OpenGL buffer."""
    @classmethod
    def from_gl_image(
        cls, image: int, target: int, *, flags: str | tuple[str, ...] | list[str] | None = None
    ) -> GraphicsResource:
        """Registers an OpenGL texture or renderbuffer."""
    def map(self, *, stream: Stream) -> Buffer:
        """Maps the resource for work of a stream."""
    def unmap(self, *, stream: Stream | None = None) -> None:
        """Unmaps the resource: closes the buffer of :meth:`map`."""
    def close(self, stream: Stream | None = None) -> None:
        """Unmaps the resource if it is mapped, and unregisters it."""
    @property
    def handle(self) -> int:
        """Driver handle (``CUgraphicsResource``); 0 if the resource was closed."""
    @property
    def resource_handle(self) -> int:
        """The same as :attr:`handle`."""
    @property
    def is_mapped(self) -> bool:
        """Whether the resource is mapped."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
    def __enter__(self) -> GraphicsResource | Buffer: ...
    def __exit__(self, *_args: type[BaseException] | BaseException | TracebackType | None) -> bool: ...
