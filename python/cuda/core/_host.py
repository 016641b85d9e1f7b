"""The host as a memory location."""

from __future__ import annotations

from _thread import allocate_lock as _allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Host"]

_lock = _allocate_lock()
_hosts: dict[tuple[int | None, bool], Host] = {}


class Host:
    """The host, or one of its NUMA nodes, as a memory location.

    Each location has one object per process, so locations can be compared with ``is`` as well as ``==``.

    Parameters
    ----------
    numa_id : int, optional
        NUMA node. Default: any node.
    is_numa_current : bool
        Whether the location is the NUMA node of the calling thread.

    Examples
    --------
    >>> from cuda.core import Host
    >>> Host()
    Host()
    >>> Host(numa_id=0) is Host(numa_id=0)
    True
    >>> Host(numa_id=0).numa_id
    0
    >>> Host.numa_current().is_numa_current
    True
    """

    __slots__ = ("__weakref__", "_is_numa_current", "_numa_id")

    _is_numa_current: bool
    _numa_id: int | None

    def __new__(cls, numa_id: int | None = None, *, is_numa_current: bool = False) -> Host:
        is_numa_current = bool(is_numa_current)
        if numa_id is not None:
            if is_numa_current:
                raise ValueError("Host() takes numa_id or is_numa_current, not both")
            if not isinstance(numa_id, int) or isinstance(numa_id, bool) or numa_id < 0:
                raise ValueError(f"Host() argument 'numa_id' is {numa_id!r}; expected a non-negative int or None")
        with _lock:
            known = _hosts.get((numa_id, is_numa_current))
            if known is None:
                known = super().__new__(cls)
                known._numa_id = numa_id
                known._is_numa_current = is_numa_current
                _hosts[numa_id, is_numa_current] = known
        return known

    @property
    def numa_id(self) -> int | None:
        """The NUMA node; None for any node."""
        return self._numa_id

    @property
    def is_numa_current(self) -> bool:
        """Whether the location is the NUMA node of the calling thread."""
        return self._is_numa_current

    @classmethod
    def numa_current(cls) -> Host:
        """The NUMA node of the calling thread."""
        return cls(is_numa_current=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Host):
            return NotImplemented
        return (self._numa_id, self._is_numa_current) == (other._numa_id, other._is_numa_current)

    def __hash__(self) -> int:
        return hash((Host, self._numa_id, self._is_numa_current))

    def __reduce__(self) -> tuple[Any, ...]:
        if self._is_numa_current:
            return _reconstruct_numa_current, ()
        return Host, (self._numa_id,)

    def __repr__(self) -> str:
        if self._is_numa_current:
            return "Host.numa_current()"
        return "Host()" if self._numa_id is None else f"Host(numa_id={self._numa_id})"


def _reconstruct_numa_current() -> Host:
    return Host.numa_current()
