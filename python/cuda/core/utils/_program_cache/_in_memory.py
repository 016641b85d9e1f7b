"""A cache in memory."""

from cupyrite._native.core import memory_cache as _memory_cache

from . import _stored
from ._abc import ProgramCacheResource

__all__ = ["InMemoryProgramCache"]


class InMemoryProgramCache(ProgramCacheResource):
    """A cache of compiled programs in this process's memory. Threads may share it.

    Parameters
    ----------
    max_size_bytes : int, optional
        The most bytes of code it holds, above 0. When it is full, what was not asked for longest goes; code larger than
        all of it is not kept. Default: no limit.
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
