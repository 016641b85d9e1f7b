"""The shape of a launch."""

from cupyrite._native.core import LaunchConfig

__all__ = ["LaunchConfig"]
