"""Packed kernel arguments. Clients import this private module (docs/clients.md)."""

from cupyrite._native.core import ParamHolder

__all__ = ["ParamHolder"]
