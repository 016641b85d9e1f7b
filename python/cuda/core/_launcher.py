"""Kernel launches."""

from cupyrite._native.core import launch

__all__ = ["launch"]
