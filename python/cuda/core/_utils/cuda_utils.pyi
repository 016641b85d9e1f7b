"""Exceptions and helpers that clients import (docs/clients.md)."""

from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar

from typing_extensions import Self

__all__ = [
    "CUDAError",
    "ComputeCapability",
    "NVRTCError",
    "Transaction",
    "cast_to_3_tuple",
    "check_multiprocessing_start_method",
    "check_or_create_options",
    "handle_return",
    "is_nested_sequence",
    "is_sequence",
    "precondition",
    "reset_fork_warning",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")

class CUDAError(Exception):
    """A call of the CUDA driver failed. The message begins with the name of the status and names the function."""

class NVRTCError(CUDAError):
    """A call of NVRTC failed. The message contains the compilation log."""

class ComputeCapability(NamedTuple):
    """Compute capability of a device: major and minor version."""

    major: int
    minor: int

def handle_return(result: tuple[Any, ...], handle: object | None = None) -> Any:
    """Check the status of a ``cuda.bindings`` call and return its outputs."""

def check_or_create_options(
    cls: type, options: object, options_description: str = "", keep_none: bool = False
) -> object:
    """Convert options to an instance of their class."""

def cast_to_3_tuple(label: str, cfg: int | tuple[int, ...]) -> tuple[int, int, int]:
    """Pad up to three positive ints with ones to a 3-tuple."""

def is_sequence(obj: object) -> bool:
    """Whether an object is a ``collections.abc.Sequence``."""

def is_nested_sequence(obj: object) -> bool:
    """Whether an object is a sequence that contains a sequence."""

def precondition(
    checker: Callable[..., None], what: str = ""
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorator that calls `checker` before the function."""

class Transaction:
    """Rolls back completed steps on leaving a ``with`` block, unless committed."""

    def __init__(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, exc_type: object, exc: object, traceback: object) -> bool: ...
    def append(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
        """Register a rollback function and its arguments."""
    def commit(self) -> None:
        """Discard the rollback functions registered so far."""

def check_multiprocessing_start_method() -> None:
    """Warn, once per process, if the ``multiprocessing`` start method is fork: CUDA does not survive a fork."""

def reset_fork_warning() -> None:
    """Re-arm the warning of :func:`check_multiprocessing_start_method`."""
