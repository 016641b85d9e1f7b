"""Versions as comparable triples."""

__all__ = ["binding_version", "driver_version"]

def binding_version() -> tuple[int, int, int]:
    """Version of ``cuda.bindings``."""

def driver_version() -> tuple[int, int, int]:
    """Highest CUDA version that the driver supports."""
