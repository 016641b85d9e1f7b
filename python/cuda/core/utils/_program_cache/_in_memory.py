"""Program cache in memory."""

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
    """

    __getitem__ = _stored.getitem
    __setitem__ = _stored.setitem
    __delitem__ = _stored.delitem
    __len__ = _stored.length
    get = _stored.get
    clear = _stored.clear
    hits = _stored.hits
    misses = _stored.misses

    def __init__(self, *, max_size_bytes=None):
        self._storage = _memory_cache(max_size_bytes)
