"""Errors, and the helpers that other packages import from here."""

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
    """A call of the CUDA driver failed."""

class NVRTCError(CUDAError):
    """A call of the run-time compiler failed."""

class ComputeCapability(NamedTuple):
    """A device's compute capability: the numbers before and after the point."""

    major: int
    minor: int

def handle_return(result: tuple[Any, ...], handle: object | None = None) -> Any:
    """What a function of ``cuda.bindings`` returned, without its status."""

def check_or_create_options(
    cls: type, options: object, options_description: str = "", keep_none: bool = False
) -> object:
    """Options as an instance of their class."""

def cast_to_3_tuple(label: str, cfg: int | tuple[int, ...]) -> tuple[int, int, int]:
    """Up to three numbers, each at least 1, filled up with ones."""

def is_sequence(obj: object) -> bool:
    """Whether an object is a sequence, as ``collections.abc.Sequence`` sees it."""

def is_nested_sequence(obj: object) -> bool:
    """Whether an object is a sequence with a sequence in it."""

def precondition(
    checker: Callable[..., None], what: str = ""
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator that calls `checker` before the function."""

class Transaction:
    """Steps that are undone unless all of them succeed."""

    def __init__(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, exc_type: object, exc: object, traceback: object) -> bool: ...
    def append(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
        """Adds what undoes a step."""
    def commit(self) -> None:
        """All steps so far stay."""

def check_multiprocessing_start_method() -> None:
    """Warns, once a process, where ``multiprocessing`` forks."""

def reset_fork_warning() -> None:
    """Lets :func:`check_multiprocessing_start_method` warn again."""
