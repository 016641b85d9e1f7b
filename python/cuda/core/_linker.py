"""Linking of object code."""

from cuda.core._linker_options import LinkerOptions
from cupyrite._native.core import Linker

__all__ = ["Linker", "LinkerOptions"]
