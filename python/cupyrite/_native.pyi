"""The extension module. Programs import ``cuda.bindings`` instead; what is here is for the packages themselves."""

def device_reason() -> str:
    """Why driver calls go where they go: a sentence without its full stop. Chooses the device if need be.

    Raises what the first driver call would raise.
    """

def library_path(name: str) -> str | None:
    """The file a library ("cuda", "nvrtc") was loaded from; None before its first use and for the CPU device."""

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
