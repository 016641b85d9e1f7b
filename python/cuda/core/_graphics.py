"""OpenGL objects that CUDA can access."""

from cupyrite._native.core import GraphicsResource

__all__ = ["GraphicsResource"]
