"""What is raised for a name that is no `str`: the error of an unknown name, and a `TypeError` as well."""

from . import DynamicLibUnknownError, UnsupportedBinaryError


class _NameTypeError(TypeError):
    """Says where what was given, and what would be right."""

    example = ""

    def __init__(self, function, parameter, name):
        given = repr(name)
        given = given if len(given) <= 80 else given[:77] + "..."
        super().__init__(
            f"{function}() argument '{parameter}' must be a str such as {self.example!r}, "
            f"not {type(name).__name__} ({given})"
        )
        self._given = function, parameter, name

    def __reduce__(self):
        return type(self), self._given


class LibraryNameTypeError(_NameTypeError, DynamicLibUnknownError):
    """For dynamic libraries."""

    example = "nvrtc"


class HeaderNameTypeError(_NameTypeError, RuntimeError):
    """For sets of headers."""

    example = "cudart"


class BinaryNameTypeError(_NameTypeError, UnsupportedBinaryError):
    """For tools."""

    example = "nvcc"

    def __init__(self, function, parameter, name):
        super().__init__(function, parameter, name)
        self.utility = name


class ArchiveNameTypeError(_NameTypeError, ValueError):
    """For static libraries and bitcode."""

    example = "cudadevrt"
