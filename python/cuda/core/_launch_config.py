"""Launch configurations."""

from cupyrite._native.core import LaunchConfig

__all__ = ["LaunchConfig"]
