"""Exceptions and helpers that clients import (docs/clients.md)."""

from __future__ import annotations

from collections import namedtuple as _namedtuple

from cupyrite._native.core import CUDAError, NVRTCError, _explanation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

    _P = ParamSpec("_P")
    _R = TypeVar("_R")

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

if TYPE_CHECKING:

    class ComputeCapability(NamedTuple):
        major: int
        minor: int

else:
    ComputeCapability = _namedtuple("ComputeCapability", ("major", "minor"))
    ComputeCapability.__doc__ = "Compute capability of a device: major and minor version."
    ComputeCapability.__annotations__ = {"major": "int", "minor": "int"}


def _nvrtc_log(program: Any) -> str:
    """Log of the last compilation of an NVRTC program; may be empty."""
    from cuda.bindings import nvrtc

    status, size = nvrtc.nvrtcGetProgramLogSize(program)
    if int(status) != 0 or size < 2:
        return ""
    log = bytearray(size)
    (status,) = nvrtc.nvrtcGetProgramLog(program, log)
    return "" if int(status) != 0 else log.decode(errors="replace").rstrip("\0")


def _status_error(status: Any, handle: object) -> Exception:
    """The exception for a failed status."""
    enum_name = type(status).__name__
    if enum_name in ("CUresult", "cudaError_t"):
        meaning = _explanation(int(status))
        if meaning is None:
            if enum_name == "CUresult":
                from cuda.bindings.driver import cuGetErrorString

                known, description = cuGetErrorString(status)
                meaning = description.decode() if int(known) == 0 else "unknown status"
            else:
                from cuda.bindings.runtime import cudaGetErrorString

                meaning = cudaGetErrorString(status)[1].decode()
        return CUDAError(f"{getattr(status, 'name', int(status))}: {meaning}")
    if enum_name == "nvrtcResult":
        text = f"{status!r}: {status.name}"
        log = "" if handle is None else _nvrtc_log(handle)
        return NVRTCError(f"{text}, compilation log:\n\n{log}" if log else text)
    return RuntimeError(f"{status!r} is not a status of the driver, the runtime or NVRTC")


def handle_return(result: tuple[Any, ...], handle: object | None = None) -> Any:
    """Check the status of a ``cuda.bindings`` call and return its outputs.

    Parameters
    ----------
    result : tuple
        Return value of the call: the status and the outputs.
    handle : nvrtcProgram, optional
        Program whose log is added to the message of an `NVRTCError`.

    Returns
    -------
    object
        None, the single output, or a tuple of outputs.

    Raises
    ------
    CUDAError, NVRTCError
        The call failed.
    """
    if not isinstance(result, tuple):
        raise TypeError(f"handle_return() argument 'result' is of type {type(result).__name__}; expected a tuple")
    status = result[0]
    if type(status).__name__ not in ("CUresult", "cudaError_t", "nvrtcResult") or int(status) != 0:
        raise _status_error(status, handle)
    if len(result) == 2:
        return result[1]
    return result[1:] or None


def check_or_create_options(
    cls: type, options: object, options_description: str = "", keep_none: bool = False
) -> object:
    """Convert options to an instance of their class.

    Parameters
    ----------
    cls : type
        The option class.
    options : object
        An instance, a dict of fields, or None for the defaults.
    options_description : str
        Name of the options in error messages.
    keep_none : bool
        Whether None is returned unchanged.
    """
    if options is None:
        return None if keep_none else cls()
    if isinstance(options, cls):
        return options
    if isinstance(options, dict):
        return cls(**options)
    raise TypeError(
        f"{options_description or 'options'}: expected {cls.__name__}, a dict of its fields, or None; got {options!r}"
    )


def cast_to_3_tuple(label: str, cfg: int | tuple[int, ...]) -> tuple[int, int, int]:
    """Pad up to three positive ints with ones to a 3-tuple.

    Parameters
    ----------
    label : str
        Name of the value in error messages.
    cfg : int or tuple of int
        The value.
    """
    if isinstance(cfg, int):
        cfg = (cfg,)
    if not isinstance(cfg, tuple) or len(cfg) > 3 or not all(isinstance(n, int) for n in cfg):
        raise ValueError(f"{label} is {cfg!r}; expected an int or a tuple of up to three ints")
    if any(n < 1 for n in cfg):
        raise ValueError(f"{label} is {cfg!r}; expected ints of at least 1")
    x, y, z = cfg + (1,) * (3 - len(cfg))
    return x, y, z


def is_sequence(obj: object) -> bool:
    """Whether an object is a ``collections.abc.Sequence``."""
    from collections.abc import Sequence

    return isinstance(obj, Sequence)


def is_nested_sequence(obj: object) -> bool:
    """Whether an object is a sequence that contains a sequence."""
    from collections.abc import Sequence

    return isinstance(obj, Sequence) and any(isinstance(item, Sequence) for item in obj)


def precondition(checker: Callable[..., None], what: str = "") -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorator that calls `checker` before the function.

    Parameters
    ----------
    checker : callable
        Called with the function's arguments and the keyword `what`; raises to reject the call.
    what : str
        Description of the precondition for the checker's message.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        from functools import wraps

        @wraps(function)
        def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            checker(*args, what=what, **kwargs)
            return function(*args, **kwargs)

        return checked

    return decorate


class Transaction:
    """Rolls back completed steps on leaving a ``with`` block, unless committed.

    In ``with Transaction() as steps:``, each completed step registers a rollback function with :meth:`append`. Leaving the
    block calls them in reverse order, unless :meth:`commit` was called.
    """

    def __init__(self) -> None:
        self._undo: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] | None = None

    def __enter__(self) -> Self:
        if self._undo is not None:
            raise RuntimeError("this Transaction was already entered")
        self._undo = []
        return self

    def __exit__(self, exc_type: object, exc: object, traceback: object) -> bool:  # type: ignore[exit-return]
        undo, self._undo = self._undo, None
        if not undo:
            return False
        from contextlib import ExitStack

        # ExitStack runs the remaining callbacks even if one raises.
        with ExitStack() as stack:
            for function, args, kwargs in undo:
                stack.callback(function, *args, **kwargs)
        return False

    def append(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
        """Register a rollback function and its arguments."""
        if self._undo is None:
            raise RuntimeError("this Transaction was not entered: use it in a with statement")
        self._undo.append((fn, args, kwargs))

    def commit(self) -> None:
        """Discard the rollback functions registered so far."""
        if self._undo is not None:
            self._undo.clear()


_start_method_checked = False


def check_multiprocessing_start_method() -> None:
    """Warn, once per process, if the ``multiprocessing`` start method is fork: CUDA does not survive a fork."""
    global _start_method_checked
    if _start_method_checked:
        return
    _start_method_checked = True
    import multiprocessing

    if multiprocessing.get_start_method(allow_none=True) == "fork" or (
        multiprocessing.get_start_method(allow_none=True) is None
        and multiprocessing.get_all_start_methods()[0] == "fork"
    ):
        import warnings

        warnings.warn(
            "the multiprocessing start method is 'fork', and CUDA does not work in a process forked after its parent used "
            "CUDA; call multiprocessing.set_start_method('spawn') first",
            UserWarning,
            stacklevel=3,
        )


def reset_fork_warning() -> None:
    """Re-arm the warning of :func:`check_multiprocessing_start_method`."""
    global _start_method_checked
    _start_method_checked = False
