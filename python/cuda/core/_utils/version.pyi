"""Versions, as triples that compare."""

__all__ = ["binding_version", "driver_version"]

def binding_version() -> tuple[int, int, int]:
    """The version of ``cuda.bindings`` that this package implements."""

def driver_version() -> tuple[int, int, int]:
    """The CUDA version that the driver speaks."""
