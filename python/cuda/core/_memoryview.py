"""Everyone's arrays as address, shape, strides and type."""

from cupyrite._native.core import StridedMemoryView, _StridedMemoryViewProxy

__all__ = ["StridedMemoryView", "args_viewable_as_strided_memory"]


def args_viewable_as_strided_memory(arg_indices: "tuple[int, ...]") -> "Callable[[Callable[..., Any]], Callable[..., Any]]":
    """A decorator for functions that take arrays of any library.

    The function gets an object with the method ``view(stream_ptr)`` in place of each of these arguments. It calls that when
    it knows the stream that it will use the array on, and gets a :class:`StridedMemoryView`.

    Parameters
    ----------
    arg_indices : tuple of int
        Which arguments, counted from 0; negative ones from the end of the positional arguments of a call. One that a call
        passes by its name is found, too; one that a call leaves to its default is left alone.

    Raises
    ------
    BufferError
        When the function is called: an argument shows no memory (see :meth:`StridedMemoryView.from_any_interface`).
    IndexError
        When the function is called: it has no such argument.
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
            # A dict: the same argument twice is prepared once.
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
                        f"args_viewable_as_strided_memory() was told to prepare number {index}"
                    )
            return func(*args, **kwargs)

        return wrapped

    return decorate


def _no_view(view):
    if view is not None:
        raise TypeError("a view does not change once it is made: argument 'view' must be None")


def view_as_cai(obj, stream_ptr, view=None) -> "StridedMemoryView":
    """As :meth:`StridedMemoryView.from_cuda_array_interface`; views do not change, so `view` must be None."""
    _no_view(view)
    return StridedMemoryView.from_cuda_array_interface(obj, stream_ptr)


def view_as_array_interface(obj, view=None) -> "StridedMemoryView":
    """As :meth:`StridedMemoryView.from_array_interface`; views do not change, so `view` must be None."""
    _no_view(view)
    return StridedMemoryView.from_array_interface(obj)
