"""Copies of several buffers at once."""

from cupyrite._native.core import copy_batch

__all__ = ["copy_batch"]
