"""Strided views of arrays from any library."""

from cupyrite._native.core import StridedMemoryView, _StridedMemoryViewProxy

__all__ = ["StridedMemoryView", "args_viewable_as_strided_memory"]


def args_viewable_as_strided_memory(
    arg_indices: "tuple[int, ...]",
) -> "Callable[[Callable[..., Any]], Callable[..., Any]]":
    """Decorator for functions that take arrays of any library.

    The decorated function receives a proxy in place of each selected argument. Its method ``view(stream_ptr)`` returns a
    :class:`StridedMemoryView`; call it with the stream on which the array will be used.

    Parameters
    ----------
    arg_indices : tuple of int
        Indices of the arguments. Negative indices count from the end of the positional arguments of a call. Arguments
        passed by keyword are included; arguments left to their defaults are not.

    Raises
    ------
    BufferError
        On a call: an argument exposes no memory (see :meth:`StridedMemoryView.from_any_interface`).
    IndexError
        On a call: an index is out of range.

    Examples
    --------
    A function that takes arrays of any library:

    >>> import numpy as np
    >>> from cuda.core.utils import args_viewable_as_strided_memory
    >>> @args_viewable_as_strided_memory((0,))
    ... def shape_of(array, stream):
    ...     view = array.view(stream.handle if stream else -1)
    ...     return view.shape
    >>> shape_of(np.zeros((2, 3)), None)
    (2, 3)
    """
    if not isinstance(arg_indices, tuple):
        raise TypeError(
            "args_viewable_as_strided_memory() argument 'arg_indices' is of type "
            f"{type(arg_indices).__name__}; expected a tuple of ints"
        )

    def decorate(func):
        from functools import wraps

        code = getattr(func, "__code__", None)
        names = code.co_varnames[: code.co_argcount] if code is not None else ()

        @wraps(func)
        def wrapped(*args, **kwargs):
            # Deduplicates the indices and preserves their order.
            wanted = dict.fromkeys(arg_indices)
            args = list(args)
            given = len(args)
            for index in wanted:
                if -given <= index < given:
                    if type(args[index]) is not _StridedMemoryViewProxy:
                        args[index] = _StridedMemoryViewProxy(args[index])
                elif 0 <= index < len(names):
                    name = names[index]
                    if name in kwargs:
                        kwargs[name] = _StridedMemoryViewProxy(kwargs[name])
                else:
                    raise IndexError(
                        f"{func.__name__}() was called with {given} positional arguments; "
                        f"args_viewable_as_strided_memory() index {index} is out of range"
                    )
            return func(*args, **kwargs)

        return wrapped

    return decorate


def _require_no_view(view):
    if view is not None:
        raise TypeError("argument 'view' must be None: views are immutable")


def view_as_cai(obj, stream_ptr, view=None) -> "StridedMemoryView":
    """Alias of :meth:`StridedMemoryView.from_cuda_array_interface`; `view` must be None."""
    _require_no_view(view)
    return StridedMemoryView.from_cuda_array_interface(obj, stream_ptr)


def view_as_array_interface(obj, view=None) -> "StridedMemoryView":
    """Alias of :meth:`StridedMemoryView.from_array_interface`; `view` must be None."""
    _require_no_view(view)
    return StridedMemoryView.from_array_interface(obj)
