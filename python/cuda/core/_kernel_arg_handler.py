"""Kernel arguments as C takes them. Private in name, but other packages import it."""

from cupyrite._native.core import ParamHolder

__all__ = ["ParamHolder"]
