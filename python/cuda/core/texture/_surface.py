"""Surfaces."""

from cupyrite._native.core import SurfaceObject

__all__ = ["SurfaceObject"]
