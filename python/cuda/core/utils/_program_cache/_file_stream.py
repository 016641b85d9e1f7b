"""Program cache on disk."""

from __future__ import annotations

from cupyrite._native.core import file_cache as _file_cache
from cupyrite._native.core import lock_timeout_seconds as _lock_timeout_seconds

from . import _stored
from ._abc import ProgramCacheResource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

__all__ = ["FileStreamProgramCache"]


class FileStreamProgramCache(ProgramCacheResource):
    """Program cache in a directory, shared by any number of concurrent processes.

    Each entry is one file, written atomically, with a trailing checksum. A corrupt entry counts as a miss and is removed.
    Directories and files are accessible to the current user only.

    Parameters
    ----------
    path : str or os.PathLike, optional
        The directory; created if missing. Default: ``cuda-python/program-cache`` in the user's cache directory, which is
        ``$XDG_CACHE_HOME`` (or ``~/.cache``), on Windows ``%LOCALAPPDATA%``.
    max_size_bytes : int, optional
        Maximum total size of the code in bytes, above 0. Every write enforces the limit and evicts the least recently
        used entries first. Default: no limit.

    Examples
    --------
    >>> import tempfile
    >>> from cuda.core import Device, Program
    >>> from cuda.core.utils import FileStreamProgramCache
    >>> Device().set_current()
    >>> source = 'extern "C" __global__ void nothing() {}'
    >>> folder = tempfile.TemporaryDirectory()
    >>> code = Program(source, "c++").compile("cubin", cache=FileStreamProgramCache(folder.name))

    Another object, or another process, finds the code:

    >>> cache = FileStreamProgramCache(folder.name, max_size_bytes=1 << 30)
    >>> cache.lock_timeout = 10
    >>> code = Program(source, "c++").compile("cubin", cache=cache)
    >>> cache.hits, cache.misses
    (1, 0)
    >>> cache.clear()
    >>> folder.cleanup()
    """

    __getitem__ = _stored.getitem
    __setitem__ = _stored.setitem
    __delitem__ = _stored.delitem
    __len__ = _stored.length
    get = _stored.get
    compile_lock = _stored.compile_lock
    _lock_timeout = 60.0

    def __init__(self, path: str | PathLike[str] | None = None, *, max_size_bytes: int | None = None) -> None:
        self._storage = _file_cache(path, max_size_bytes)
        self._arguments: dict[str, object] = {"path": path, "max_size_bytes": max_size_bytes}

    def __getstate__(self) -> tuple[dict[str, object], float]:
        """The arguments: another process opens the same directory."""
        return self._arguments, self._lock_timeout

    def __setstate__(self, state: tuple[dict[str, Any], float]) -> None:
        arguments, self._lock_timeout = state
        self.__init__(**arguments)  # type: ignore[misc]

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
        """Seconds that a compilation waits for the same compilation in another thread or process, which holds a file lock.
        The system releases the lock of a process that ends. Default: 60."""
        return self._lock_timeout

    @lock_timeout.setter
    def lock_timeout(self, seconds: float) -> None:
        self._lock_timeout = _lock_timeout_seconds(seconds)
