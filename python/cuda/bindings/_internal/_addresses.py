"""How other packages get at the C functions: by name, as integers, for calls that Python has no part in."""

from __future__ import annotations

from cupyrite._native import symbol_address, symbol_addresses

TYPE_CHECKING = False  # `typing` takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Callable


def inspectors(library: str) -> tuple[Callable[[str], int], Callable[[], dict[str, int]]]:
    """The two functions that each module of this package offers. `library` is named as in `cuda.pathfinder`."""

    def _inspect_function_pointer(name: str) -> int:
        """The address of a C function, named with two underscores in front: ``"__nvvmVersion"``.

        Zero if the installed library has no such function. Loads the library, and raises what that raises; KeyError
        for a name that the bindings do not know.
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
        """The addresses of all C functions, as `_inspect_function_pointer` gives them, by name."""
        return {f"__{name}": address for name, address in symbol_addresses(library).items()}

    return _inspect_function_pointer, _inspect_function_pointers
