"""Looking at an object's resource without keeping it."""

__all__ = ["WeakHandle", "weak_handle"]

class WeakHandle:
    """Whether an object is still there and open."""

    __slots__ = ("_reference",)

    def __init__(self) -> None: ...
    def __bool__(self) -> bool: ...
    def expired(self) -> bool:
        """Whether the object was closed or is gone."""
    def use_count(self) -> int:
        """How many objects have the resource open: 1 or 0."""

def weak_handle(obj: object) -> WeakHandle:
    """A :class:`WeakHandle` of an object that can be closed."""
