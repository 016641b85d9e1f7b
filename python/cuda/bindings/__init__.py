"""The CUDA APIs as Python functions. Each module is imported separately: ``from cuda.bindings import driver``."""

__version__ = "13.5.0"


def __getattr__(name: str) -> object:
    # `utils` is available without an import. It is loaded on first access, so that importing another module does not
    # pay for it.
    if name == "utils":
        import importlib

        return importlib.import_module("cuda.bindings.utils")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
