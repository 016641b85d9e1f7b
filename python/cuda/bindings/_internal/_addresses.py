"""Addresses of C functions by name, for packages that call them without Python."""

from __future__ import annotations

from cupyrite._native import symbol_address, symbol_addresses

TYPE_CHECKING = False  # `typing` takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Callable


def inspectors(library: str) -> tuple[Callable[[str], int], Callable[[], dict[str, int]]]:
    """Return the two functions that each module of this package exposes. `library` is named as in `cuda.pathfinder`."""

    def _inspect_function_pointer(name: str) -> int:
        """Return the address of a C function; the name has two leading underscores: ``"__nvvmVersion"``.

        Zero if the installed library has no such function. Loads the library, and raises the errors of that; KeyError
        for an unknown name.
        """
        if not isinstance(name, str):
            raise TypeError(
                f"_inspect_function_pointer() takes a name such as '__nvvmVersion', not {type(name).__name__}"
            )
        address = symbol_address(library, name[2:]) if name.startswith("__") else None
        if address is None:
            raise KeyError(name)
        return address

    def _inspect_function_pointers() -> dict[str, int]:
        """Return the addresses of all C functions by name, as `_inspect_function_pointer` does."""
        return {f"__{name}": address for name, address in symbol_addresses(library).items()}

    return _inspect_function_pointer, _inspect_function_pointers
