"""The extension module. Programs import ``cuda.bindings`` instead; what is here is for the packages themselves."""

from collections.abc import Callable
from typing import Any

def device_reason() -> str:
    """Why driver calls go where they go: a sentence without its full stop. Chooses the device if need be.

    Raises what the first driver call would raise.
    """

def library_path(name: str) -> str | None:
    """The file a library ("cuda", "nvrtc") was loaded from; None before its first use and for the CPU device."""

def doctor(facts: dict[str, Any], *, json: bool, width: int, colours: bool) -> tuple[bool, bool, bool, str]:
    """Examines this machine and this installation, for ``python -m cupyrite``, which gathers the facts.

    Returns (ok, ran, hung, text): whether the main job can run, whether a kernel ran, whether something hangs in this
    very process (then leave through ``os._exit``), and the screen or the JSON.
    """

def lazy_module(name: str, /) -> None:
    """Makes the module being imported under this name a lazy one."""

def fast_enum() -> tuple[type, type]:
    """(FastEnum, FastEnumMetaclass)"""

def symbol_address(library: str, name: str) -> int | None:
    """The address of a library's function; 0 if the library has none, None if the bindings know no such function."""

def symbol_addresses(library: str) -> dict[str, int]:
    """The addresses of all functions of a library that the bindings know, by the names they are exported by."""

def internal_errors() -> tuple[type[RuntimeError], type[RuntimeError]]:
    """(FunctionNotFoundError, NotSupportedError)"""

# ----------------------------------------------------------------------------------------------------------------------
# For cuda.pathfinder

class DynamicLibNotFoundError(RuntimeError): ...
class DynamicLibUnknownError(DynamicLibNotFoundError): ...
class DynamicLibNotAvailableError(DynamicLibNotFoundError): ...
class BitcodeLibNotFoundError(RuntimeError): ...
class StaticLibNotFoundError(RuntimeError): ...

class UnsupportedBinaryError(ValueError):
    utility: str

def find_names() -> tuple[tuple[str, ...], dict[str, str], tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """(SUPPORTED_NVIDIA_LIBNAMES, SUPPORTED_HEADERS_CTK, SUPPORTED_BINARY_UTILITIES, SUPPORTED_STATIC_LIBS,
    SUPPORTED_BITCODE_LIBS) of this platform."""

def find_cuda_path_or_home() -> str | None:
    """``CUDA_PATH``, or else ``CUDA_HOME``, as it is set; None where neither is."""

def load_library(name: str) -> tuple[str, bool, int, str]:
    """Finds and loads a library: (path, whether somebody else had loaded it, handle, how it was found)."""

def find_header_directory(name: str) -> tuple[str, str] | None:
    """Finds a folder of headers: (path, how it was found), or None."""

def find_binary(name: str) -> tuple[str, str] | None:
    """Finds a tool: (path, how it was found), or None."""

def find_static_library(name: str) -> tuple[str, str]:
    """Finds a static library: (path, how it was found)."""

def find_bitcode_library(name: str) -> tuple[str, str]:
    """Finds a library in LLVM bitcode: (path, how it was found)."""

def memoize(values: dict[str | None, object], miss: Callable[..., object]) -> Any:
    """A function that answers from `values` where the name is in there, and calls `miss` where it is not."""
