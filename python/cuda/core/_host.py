"""The host as a place for memory."""

from _thread import allocate_lock as _allocate_lock

__all__ = ["Host"]

_lock = _allocate_lock()
_hosts: "dict[tuple[int | None, bool], Host]" = {}


class Host:
    """The host, or one of its NUMA nodes, as a place where memory is.

    There is one object a place and process, so that places are compared with ``is`` as well as with ``==``.

    Parameters
    ----------
    numa_id : int, optional
        A NUMA node. By default any.
    is_numa_current : bool
        Whether the node of the calling thread is meant, whichever that is.
    """

    __slots__ = ("__weakref__", "_is_numa_current", "_numa_id")

    _is_numa_current: bool
    _numa_id: "int | None"

    def __new__(cls, numa_id: "int | None" = None, *, is_numa_current: bool = False):
        is_numa_current = bool(is_numa_current)
        if numa_id is not None:
            if is_numa_current:
                raise ValueError("Host takes numa_id or is_numa_current, not both")
            if not isinstance(numa_id, int) or isinstance(numa_id, bool) or numa_id < 0:
                raise ValueError(f"Host() argument 'numa_id' is {numa_id!r}; expected an int from 0, or None")
        with _lock:
            known = _hosts.get((numa_id, is_numa_current))
            if known is None:
                known = super().__new__(cls)
                known._numa_id = numa_id
                known._is_numa_current = is_numa_current
                _hosts[numa_id, is_numa_current] = known
        return known

    @property
    def numa_id(self) -> "int | None":
        """The NUMA node, or None where any is meant."""
        return self._numa_id

    @property
    def is_numa_current(self) -> bool:
        """Whether the node of the calling thread is meant."""
        return self._is_numa_current

    @classmethod
    def numa_current(cls) -> "Host":
        """The NUMA node of the calling thread, whichever that is."""
        return cls(is_numa_current=True)

    def __eq__(self, other):
        if not isinstance(other, Host):
            return NotImplemented
        return (self._numa_id, self._is_numa_current) == (other._numa_id, other._is_numa_current)

    def __hash__(self):
        return hash((Host, self._numa_id, self._is_numa_current))

    def __reduce__(self):
        if self._is_numa_current:
            return _reconstruct_numa_current, ()
        return Host, (self._numa_id,)

    def __repr__(self):
        if self._is_numa_current:
            return "Host.numa_current()"
        return "Host()" if self._numa_id is None else f"Host(numa_id={self._numa_id})"


def _reconstruct_numa_current():
    return Host.numa_current()
