"""Buffers of managed memory."""

from _collections_abc import MutableSet

from cupyrite._native.core import ManagedBuffer

__all__ = ["AccessedBySetProxy", "ManagedBuffer"]


class AccessedBySetProxy(MutableSet):
    """Who will use the memory of a :class:`ManagedBuffer` and should have it mapped at all times.

    A set of :class:`Device` and :class:`Host`: reading asks the driver, changing tells it.

    Parameters
    ----------
    buf : ManagedBuffer
        The buffer.
    """

    __slots__ = ("_buf",)

    def __init__(self, buf: "ManagedBuffer"):
        self._buf = buf

    @classmethod
    def _from_iterable(cls, it):
        # What operators make of it is a set of its own, which no driver knows of.
        return set(it)

    def __contains__(self, value):
        return value in self._buf._accessed_by()

    def __iter__(self):
        return iter(self._buf._accessed_by())

    def __len__(self):
        return len(self._buf._accessed_by())

    def __repr__(self):
        return f"AccessedBySetProxy({set(self)!r})"

    def add(self, location: "Device | Host") -> "None":
        """Says that a device, or the host, will use the memory."""
        self._buf._set_accessed_by(location, True)

    def discard(self, location: "Device | Host") -> "None":
        """Takes that back, if it was said."""
        if location in self:
            self._buf._set_accessed_by(location, False)
