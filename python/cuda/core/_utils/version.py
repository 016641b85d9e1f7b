"""Versions as comparable triples."""

from __future__ import annotations

__all__ = ["binding_version", "driver_version"]


def binding_version() -> tuple[int, int, int]:
    """Version of ``cuda.bindings``."""
    from cuda.bindings import __version__

    numbers = []
    for part in __version__.split(".")[:3]:
        digits = ""
        for character in part:
            if not character.isdigit():
                break
            digits += character
        numbers.append(int(digits or 0))
    major, minor, patch = numbers + [0] * (3 - len(numbers))
    return major, minor, patch


def driver_version() -> tuple[int, int, int]:
    """Highest CUDA version that the driver supports."""
    from cuda.bindings.driver import cuDriverGetVersion
    from cuda.core._utils.cuda_utils import handle_return

    version = handle_return(cuDriverGetVersion())
    return version // 1000, version % 1000 // 10, version % 10
