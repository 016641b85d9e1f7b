"""Errors for names that are not `str`: both the error of an unknown name and a `TypeError`."""

from __future__ import annotations

from typing import Any

from . import DynamicLibUnknownError, UnsupportedBinaryError


class _NameTypeError(TypeError):
    """Names the function, the parameter, the value and an example."""

    example = ""

    def __init__(self, function: str, parameter: str, name: Any) -> None:
        given = repr(name)
        given = given if len(given) <= 80 else given[:77] + "..."
        super().__init__(
            f"{function}() argument '{parameter}' must be a str such as {self.example!r}, "
            f"not {type(name).__name__} ({given})"
        )
        self._given = function, parameter, name

    def __reduce__(self) -> tuple[type[_NameTypeError], tuple[str, str, object]]:
        return type(self), self._given


class LibraryNameTypeError(_NameTypeError, DynamicLibUnknownError):
    """Name of a dynamic library."""

    example = "nvrtc"


class HeaderNameTypeError(_NameTypeError, RuntimeError):
    """Name of a header set."""

    example = "cudart"


class BinaryNameTypeError(_NameTypeError, UnsupportedBinaryError):
    """Name of a tool."""

    example = "nvcc"

    def __init__(self, function: str, parameter: str, name: Any) -> None:
        super().__init__(function, parameter, name)
        self.utility = name


class ArchiveNameTypeError(_NameTypeError, ValueError):
    """Name of a static or bitcode library."""

    example = "cudadevrt"
