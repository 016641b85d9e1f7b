"""A cache on disk."""

from cupyrite._native.core import file_cache as _file_cache

from . import _stored
from ._abc import ProgramCacheResource

__all__ = ["FileStreamProgramCache"]


class FileStreamProgramCache(ProgramCacheResource):
    """A cache of compiled programs in a directory, for any number of processes at a time.

    An entry is a file of its own, and takes its place in one step: nobody sees half of one. It ends in a line with a
    checksum; an entry that is damaged counts as missing and is removed. Directories and files are made for this user
    alone.

    Parameters
    ----------
    path : str or os.PathLike, optional
        The directory, which is made if it is not there. Default: ``cuda-python/program-cache`` in the user's directory
        for caches, which is ``$XDG_CACHE_HOME`` (or ``~/.cache``), on Windows ``%LOCALAPPDATA%``.
    max_size_bytes : int, optional
        The most bytes of code in it, above 0, seen to at every write (of several processes that write at the same time,
        each sees to it). What was not asked for longest goes first. Default: no limit.
    """

    __getitem__ = _stored.getitem
    __setitem__ = _stored.setitem
    __delitem__ = _stored.delitem
    __len__ = _stored.length
    get = _stored.get
    clear = _stored.clear
    hits = _stored.hits
    misses = _stored.misses

    def __init__(self, path=None, *, max_size_bytes=None):
        self._storage = _file_cache(path, max_size_bytes)
