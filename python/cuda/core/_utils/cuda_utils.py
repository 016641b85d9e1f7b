"""Errors, and the helpers that other packages import from here."""

from collections import namedtuple as _namedtuple

from cupyrite._native.core import CUDAError, NVRTCError, _explanation

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

ComputeCapability = _namedtuple("ComputeCapability", ("major", "minor"))
ComputeCapability.__doc__ = "A device's compute capability: the numbers before and after the point."
ComputeCapability.__annotations__ = {"major": "int", "minor": "int"}


def _nvrtc_log(program):
    """The log of the last compilation; empty where there is none."""
    from cuda.bindings import nvrtc

    status, size = nvrtc.nvrtcGetProgramLogSize(program)
    if int(status) != 0 or size < 2:
        return ""
    log = bytearray(size)
    (status,) = nvrtc.nvrtcGetProgramLog(program, log)
    return "" if int(status) != 0 else log.decode(errors="replace").rstrip("\0")


def _error_of(status, handle):
    """The exception for a status other than success."""
    kind = type(status).__name__
    if kind in ("CUresult", "cudaError_t"):
        meaning = _explanation(int(status))
        if meaning is None:
            if kind == "CUresult":
                from cuda.bindings.driver import cuGetErrorString

                known, text = cuGetErrorString(status)
                meaning = text.decode() if int(known) == 0 else "a status that this driver does not know"
            else:
                from cuda.bindings.runtime import cudaGetErrorString

                meaning = cudaGetErrorString(status)[1].decode()
        return CUDAError(f"{getattr(status, 'name', int(status))}: {meaning}")
    if kind == "nvrtcResult":
        text = f"{status!r}: {status.name}"
        log = "" if handle is None else _nvrtc_log(handle)
        return NVRTCError(f"{text}, compilation log:\n\n{log}" if log else text)
    return RuntimeError(f"{status!r} is not a status of the driver, the runtime or NVRTC")


def handle_return(result: "tuple[Any, ...]", handle: "object | None" = None) -> "Any":
    """What a function of ``cuda.bindings`` returned, without its status.

    Parameters
    ----------
    result : tuple
        The status, and what comes with it.
    handle : nvrtcProgram, optional
        A program whose log tells why NVRTC failed.

    Returns
    -------
    object
        None, the one value, or a tuple of the values.

    Raises
    ------
    CUDAError, NVRTCError
        The status is not success.
    """
    if not isinstance(result, tuple):
        raise TypeError(f"handle_return() argument 'result' is of type {type(result).__name__}; expected a tuple")
    status = result[0]
    if type(status).__name__ not in ("CUresult", "cudaError_t", "nvrtcResult") or int(status) != 0:
        raise _error_of(status, handle)
    if len(result) == 2:
        return result[1]
    return result[1:] or None


def check_or_create_options(
    cls: type, options: object, options_description: str = "", keep_none: bool = False
) -> object:
    """Options as an instance of their class.

    Parameters
    ----------
    cls : type
        The class of the options.
    options : object
        An instance, a dict of its fields, or None for the defaults.
    options_description : str
        What the options are called in messages.
    keep_none : bool
        Whether None stays None.
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


def cast_to_3_tuple(label: str, cfg: "int | tuple[int, ...]") -> "tuple[int, int, int]":
    """Up to three numbers, each at least 1, filled up with ones.

    Parameters
    ----------
    label : str
        What they are called in messages.
    cfg : int or tuple of int
        The numbers.
    """
    if isinstance(cfg, int):
        cfg = (cfg,)
    if not isinstance(cfg, tuple) or len(cfg) > 3 or not all(isinstance(n, int) for n in cfg):
        raise ValueError(f"{label} is {cfg!r}; expected an int or a tuple of up to three ints")
    if any(n < 1 for n in cfg):
        raise ValueError(f"{label} is {cfg!r}; every number must be at least 1")
    return cfg + (1,) * (3 - len(cfg))


def is_sequence(obj: object) -> bool:
    """Whether an object is a sequence, as ``collections.abc.Sequence`` sees it."""
    from collections.abc import Sequence

    return isinstance(obj, Sequence)


def is_nested_sequence(obj: object) -> bool:
    """Whether an object is a sequence with a sequence in it."""
    return is_sequence(obj) and any(is_sequence(item) for item in obj)


def precondition(checker: "Callable[..., None]", what: str = "") -> "Callable[..., Any]":
    """A decorator that calls `checker` before the function.

    Parameters
    ----------
    checker : callable
        Called with the function's own arguments and the keyword `what`; it raises where the call must not happen.
    what : str
        What the call needs, for the checker's message.
    """

    def decorate(function):
        from functools import wraps

        @wraps(function)
        def checked(*args, **kwargs):
            checker(*args, what=what, **kwargs)
            return function(*args, **kwargs)

        return checked

    return decorate


class Transaction:
    """Steps that are undone unless all of them succeed.

    Within ``with Transaction() as steps:`` each step that was taken adds how it is undone. Leaving the block undoes them
    in the opposite order, unless :meth:`commit` was called.
    """

    def __init__(self):
        self._undo = None

    def __enter__(self):
        if self._undo is not None:
            raise RuntimeError("this Transaction was entered already")
        self._undo = []
        return self

    def __exit__(self, exc_type, exc, traceback):
        undo, self._undo = self._undo, None
        if not undo:
            return False
        from contextlib import ExitStack

        # The stack runs the rest also where one of them raises.
        with ExitStack() as stack:
            for function, args, kwargs in undo:
                stack.callback(function, *args, **kwargs)
        return False

    def append(self, fn: "Callable[..., Any]", /, *args: "Any", **kwargs) -> None:
        """Adds what undoes a step: `fn` is called with these arguments."""
        if self._undo is None:
            raise RuntimeError("this Transaction is not entered: use it in a with statement")
        self._undo.append((fn, args, kwargs))

    def commit(self) -> None:
        """All steps so far stay."""
        if self._undo is not None:
            self._undo.clear()


_start_method_checked = False


def check_multiprocessing_start_method() -> None:
    """Warns, once a process, where ``multiprocessing`` forks: a driver does not survive that."""
    global _start_method_checked
    if _start_method_checked:
        return
    _start_method_checked = True
    import multiprocessing

    if multiprocessing.get_start_method(allow_none=True) == "fork" or (
        multiprocessing.get_start_method(allow_none=True) is None and multiprocessing.get_all_start_methods()[0] == "fork"
    ):
        import warnings

        warnings.warn(
            "multiprocessing forks its processes, and CUDA does not work in a forked process once its parent has used "
            "it; call multiprocessing.set_start_method('spawn') first",
            UserWarning,
            stacklevel=3,
        )


def reset_fork_warning() -> None:
    """Lets :func:`check_multiprocessing_start_method` warn again."""
    global _start_method_checked
    _start_method_checked = False
