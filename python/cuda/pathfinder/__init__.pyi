"""Finding NVIDIA's libraries, headers, tools and archives, and loading the libraries into this process."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import _CacheInfo, _CacheParameters
from typing import Final, Generic, ParamSpec, TypeVar, type_check_only

__all__ = [
    "SUPPORTED_BINARY_UTILITIES",
    "SUPPORTED_BITCODE_LIBS",
    "SUPPORTED_HEADERS_CTK",
    "SUPPORTED_NVIDIA_LIBNAMES",
    "SUPPORTED_STATIC_LIBS",
    "BitcodeLibNotFoundError",
    "DynamicLibNotAvailableError",
    "DynamicLibNotFoundError",
    "DynamicLibUnknownError",
    "LoadedDL",
    "LocatedBitcodeLib",
    "LocatedHeaderDir",
    "LocatedStaticLib",
    "StaticLibNotFoundError",
    "UnsupportedArchError",
    "UnsupportedBinaryError",
    "find_bitcode_lib",
    "find_nvidia_binary_utility",
    "find_nvidia_header_directory",
    "find_static_lib",
    "get_cuda_path_or_home",
    "load_nvidia_dynamic_lib",
    "locate_bitcode_lib",
    "locate_nvidia_header_directory",
    "locate_static_lib",
]

__version__: Final[str]

SUPPORTED_NVIDIA_LIBNAMES: Final[tuple[str, ...]]
SUPPORTED_HEADERS_CTK: Final[dict[str, str]]
SUPPORTED_BINARY_UTILITIES: Final[tuple[str, ...]]
SUPPORTED_STATIC_LIBS: Final[tuple[str, ...]]
SUPPORTED_BITCODE_LIBS: Final[tuple[str, ...]]

class DynamicLibNotFoundError(RuntimeError): ...
class DynamicLibUnknownError(DynamicLibNotFoundError): ...
class DynamicLibNotAvailableError(DynamicLibNotFoundError): ...
class BitcodeLibNotFoundError(RuntimeError): ...
class StaticLibNotFoundError(RuntimeError): ...

class UnsupportedBinaryError(ValueError):
    utility: str

class UnsupportedArchError(RuntimeError):
    platform_tag: str
    def __init__(self, platform_tag: str) -> None: ...

@dataclass
class LoadedDL:
    abs_path: str | None
    was_already_loaded_from_elsewhere: bool
    _handle_uint: int
    found_via: str

@dataclass
class LocatedHeaderDir:
    abs_path: str | None
    found_via: str
    def __post_init__(self) -> None: ...

@dataclass(frozen=True)
class LocatedStaticLib:
    name: str
    abs_path: str
    filename: str
    found_via: str

@dataclass(frozen=True)
class LocatedBitcodeLib:
    name: str
    abs_path: str
    filename: str
    found_via: str

_P = ParamSpec("_P")
_T = TypeVar("_T")

@type_check_only
class _Remembering(Generic[_P, _T]):
    """A function that remembers, as those of `functools.cache`, but with its parameters known to type checkers."""

    __wrapped__: Callable[_P, _T]
    __name__: str
    __qualname__: str
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _T: ...
    def cache_clear(self) -> None: ...
    def cache_info(self) -> _CacheInfo: ...
    def cache_parameters(self) -> _CacheParameters: ...

def _remembers(search: Callable[_P, _T]) -> _Remembering[_P, _T]: ...
@_remembers
def get_cuda_path_or_home() -> str | None: ...
@_remembers
def load_nvidia_dynamic_lib(libname: str) -> LoadedDL: ...
@_remembers
def locate_nvidia_header_directory(libname: str) -> LocatedHeaderDir | None: ...
def find_nvidia_header_directory(libname: str) -> str | None: ...

_find_nvidia_header_directory = find_nvidia_header_directory

@_remembers
def find_nvidia_binary_utility(utility_name: str) -> str | None: ...
def locate_static_lib(name: str) -> LocatedStaticLib: ...
@_remembers
def find_static_lib(name: str) -> str: ...
def locate_bitcode_lib(name: str) -> LocatedBitcodeLib: ...
@_remembers
def find_bitcode_lib(name: str) -> str: ...
