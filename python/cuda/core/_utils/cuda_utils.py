"""Errors, and the helpers that other packages import from here."""

from cupyrite._native.core import CUDAError, NVRTCError

__all__ = ["CUDAError", "NVRTCError"]
