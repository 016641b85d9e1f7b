"""Batched copies."""

from cupyrite._native.core import copy_batch

__all__ = ["copy_batch"]
