"""Program cache in memory."""

from __future__ import annotations

from cupyrite._native.core import lock_timeout_seconds as _lock_timeout_seconds
from cupyrite._native.core import memory_cache as _memory_cache

from . import _stored
from ._abc import ProgramCacheResource

__all__ = ["InMemoryProgramCache"]


class InMemoryProgramCache(ProgramCacheResource):
    """Program cache in the memory of this process. Thread-safe.

    Parameters
    ----------
    max_size_bytes : int, optional
        Maximum total size of the code in bytes, above 0. A full cache evicts the least recently used entries; code larger
        than the limit is not stored. Default: no limit.

    Examples
    --------
    >>> from cuda.core import Device, Program
    >>> from cuda.core.utils import InMemoryProgramCache
    >>> Device().set_current()
    >>> source = 'extern "C" __global__ void nothing() {}'
    >>> cache = InMemoryProgramCache(max_size_bytes=16 << 20)
    >>> cache.lock_timeout = 10
    >>> for _ in range(3):
    ...     code = Program(source, "c++").compile("cubin", cache=cache)
    >>> cache.hits, cache.misses, len(cache)
    (2, 1, 1)
    >>> cache.clear()
    >>> len(cache)
    0
    """

    __getitem__ = _stored.getitem
    __setitem__ = _stored.setitem
    __delitem__ = _stored.delitem
    __len__ = _stored.length
    get = _stored.get
    compile_lock = _stored.compile_lock
    _lock_timeout = 60.0

    def __init__(self, *, max_size_bytes: int | None = None) -> None:
        self._storage = _memory_cache(max_size_bytes)

    def clear(self) -> None:
        """Remove all entries."""
        self._storage.clear()

    @property
    def hits(self) -> int:
        """Number of lookups of this object that hit."""
        return self._storage.hits

    @property
    def misses(self) -> int:
        """Number of lookups of this object that missed; with ``Program.compile``, the number of compilations."""
        return self._storage.misses

    @property
    def lock_timeout(self) -> float:
        """Seconds that a compilation waits for the same compilation in another thread. Default: 60."""
        return self._lock_timeout

    @lock_timeout.setter
    def lock_timeout(self, seconds: float) -> None:
        self._lock_timeout = _lock_timeout_seconds(seconds)
