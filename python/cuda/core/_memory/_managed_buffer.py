"""Managed-memory buffers."""

from _collections_abc import MutableSet

from cupyrite._native.core import ManagedBuffer

__all__ = ["AccessedBySetProxy", "ManagedBuffer"]


class AccessedBySetProxy(MutableSet):
    """Locations with the accessed-by advice of a :class:`ManagedBuffer` (``CU_MEM_ADVISE_SET_ACCESSED_BY``).

    A mutable set of :class:`Device` and :class:`Host`. Reads query the driver; modifications apply advice.

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
        # Operators return plain sets that are not connected to the driver.
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
        """Apply the accessed-by advice for a device or the host."""
        self._buf._set_accessed_by(location, True)

    def discard(self, location: "Device | Host") -> "None":
        """Remove the accessed-by advice for a location, if set."""
        if location in self:
            self._buf._set_accessed_by(location, False)
