"""The extension module. For internal use; programs import ``cuda.bindings`` and ``cuda.core``."""

from collections.abc import Callable
from typing import Any

def private_layouts() -> list[str]:
    """Names of the private layouts in use; see the environment variable CUPYRITE_STRICT_ABI."""

def device_reason() -> str:
    """Reason for the choice of the device, without a full stop. Selects the device if none is selected yet.

    Raises what the first driver call would raise.
    """

def device() -> str:
    """The device: "gpu" or "cpu". Selects it, and raises, as ``device_reason`` does."""

def library_path(name: str) -> str | None:
    """File from which a library ("cuda", "nvrtc") was loaded; None before its first use and for the CPU device."""

def doctor(facts: dict[str, Any], *, json: bool, width: int, colours: bool) -> tuple[bool, bool, bool, str]:
    """Examine the machine and the installation for ``python -m cupyrite``, which passes facts about the interpreter.

    Returns (ok, ran, hung, text): whether kernels can be compiled and run, whether a kernel ran, whether a call hangs in
    this process (exit with ``os._exit`` then), and the report as text or JSON.
    """

def lazy_module(name: str, /) -> None:
    """Make the module that is being imported under this name lazy."""

def fast_enum() -> tuple[type, type]:
    """(FastEnum, FastEnumMetaclass)"""

def symbol_address(library: str, name: str) -> int | None:
    """Address of a library function; 0 if the library does not export it, None if the bindings do not define it."""

def symbol_addresses(library: str) -> dict[str, int]:
    """Addresses of all functions of a library that the bindings define, by symbol name."""

def internal_errors() -> tuple[type[RuntimeError], type[RuntimeError]]:
    """(FunctionNotFoundError, NotSupportedError)"""

# ----------------------------------------------------------------------------------------------------------------------
# For cuda.pathfinder

class DynamicLibNotFoundError(RuntimeError):
    """A library could not be found. The message lists every place looked at and what to install."""

class DynamicLibUnknownError(DynamicLibNotFoundError):
    """No library of this name is known."""

class DynamicLibNotAvailableError(DynamicLibNotFoundError):
    """The library exists, but not for this platform."""

class BitcodeLibNotFoundError(RuntimeError):
    """A library in LLVM bitcode could not be found. The message lists every place looked at and what to install."""

class StaticLibNotFoundError(RuntimeError):
    """A static library could not be found. The message lists every place looked at and what to install."""

class UnsupportedBinaryError(ValueError):
    """No tool of this name is known. Its attribute ``utility`` is the name that was asked for."""

    utility: str

def find_names() -> tuple[tuple[str, ...], dict[str, str], tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """(SUPPORTED_NVIDIA_LIBNAMES, SUPPORTED_HEADERS_CTK, SUPPORTED_BINARY_UTILITIES, SUPPORTED_STATIC_LIBS,
    SUPPORTED_BITCODE_LIBS) of this platform."""

def find_cuda_path_or_home() -> str | None:
    """Value of ``CUDA_PATH``, else of ``CUDA_HOME``; None if neither is set."""

def load_library(name: str) -> tuple[str, bool, int, str]:
    """Find and load a library: (path, whether it was already loaded, handle, how it was found)."""

def find_header_directory(name: str) -> tuple[str, str] | None:
    """Find a header directory: (path, how it was found), or None."""

def find_binary(name: str) -> tuple[str, str] | None:
    """Find a binary utility: (path, how it was found), or None."""

def find_static_library(name: str) -> tuple[str, str]:
    """Find a static library: (path, how it was found)."""

def find_bitcode_library(name: str) -> tuple[str, str]:
    """Find a bitcode library: (path, how it was found)."""

def memoize(values: dict[str | None, object], miss: Callable[..., object]) -> Any:
    """Return a function that looks its argument up in `values` and calls `miss` if it is not there."""
