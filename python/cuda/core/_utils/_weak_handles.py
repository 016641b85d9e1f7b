"""Looking at an object's resource without keeping it."""

__all__ = ["WeakHandle", "weak_handle"]


class WeakHandle:
    """Whether an object is still there and open; true while it is. It comes from :func:`weak_handle`."""

    __slots__ = ("_reference",)

    def __init__(self):
        self._reference = None

    def _open(self):
        obj = None if self._reference is None else self._reference()
        return obj is not None and not obj.is_closed

    def __bool__(self):
        return self._open()

    def expired(self):
        """Whether the object was closed or is gone."""
        return not self._open()

    def use_count(self):
        """How many objects have the resource open: 1, or 0 where it is gone."""
        return int(self._open())


def weak_handle(obj):
    """A :class:`WeakHandle` of an object that can be closed.

    Parameters
    ----------
    obj : Buffer, Stream, Event or Context
        The object; it is not kept.
    """
    from weakref import ref

    if not hasattr(obj, "is_closed"):
        raise TypeError(f"weak_handle() argument 'obj' is of type {type(obj).__name__}, which cannot be closed")
    made = WeakHandle()
    made._reference = ref(obj)
    return made
