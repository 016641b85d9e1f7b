"""Abstract base class of program caches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Self, overload

    from cuda.core._module import ObjectCode
    from typing_extensions import Buffer

__all__ = ["ProgramCacheResource"]


class ProgramCacheResource(ABC):
    """Cache of compiled code: a mapping from keys to bytes.

    Pass a cache to :meth:`cuda.core.Program.compile` as ``cache=``, which computes the key, looks up the code and stores
    it after a miss. Or use the cache as a mapping with keys from :func:`make_program_cache_key`.

    Keys are bytes or str; a str equals its UTF-8 encoding. Values are stored as :class:`~cuda.core.ObjectCode` or any
    object with the buffer protocol, and returned as bytes.

    The operator ``in`` is not supported, since another process may remove an entry between the test and the read. Use
    :meth:`get`.

    Examples
    --------
    A cache over another mapping:

    >>> from cuda.core import Device, Program
    >>> from cuda.core.utils import ProgramCacheResource
    >>> class DictCache(ProgramCacheResource):
    ...     def __init__(self):
    ...         self.stored = {}
    ...     def __getitem__(self, key):
    ...         return self.stored[key]
    ...     def __setitem__(self, key, value):
    ...         self.stored[key] = getattr(value, "code", value)
    ...     def __delitem__(self, key):
    ...         del self.stored[key]
    ...     def __len__(self):
    ...         return len(self.stored)
    ...     def clear(self):
    ...         self.stored.clear()
    >>> Device().set_current()
    >>> cache = DictCache()
    >>> code = Program('extern "C" __global__ void nothing() {}', "c++").compile("cubin", cache=cache)
    >>> len(cache)
    1
    """

    @abstractmethod
    def __getitem__(self, key: bytes | str) -> bytes:
        """Return the bytes stored under a key.

        Parameters
        ----------
        key : bytes or str

        Returns
        -------
        bytes

        Raises
        ------
        KeyError
            The key is not in the cache.
        """

    @abstractmethod
    def __setitem__(self, key: bytes | str, value: Buffer | ObjectCode) -> None:
        """Store bytes under a key and replace any previous entry.

        Parameters
        ----------
        key : bytes or str
        value : ObjectCode or bytes-like
            The code of an :class:`~cuda.core.ObjectCode`; if it refers to a file, the file's current contents.
        """

    @abstractmethod
    def __delitem__(self, key: bytes | str) -> None:
        """Remove an entry.

        Parameters
        ----------
        key : bytes or str

        Raises
        ------
        KeyError
            The key is not in the cache.
        """

    @abstractmethod
    def __len__(self) -> int:
        """Number of entries."""

    @abstractmethod
    def clear(self) -> None:
        """Remove all entries."""

    if TYPE_CHECKING:

        @overload
        def get(self, key: bytes | str, default: None = None) -> bytes | None: ...
        @overload
        def get(self, key: bytes | str, default: bytes) -> bytes: ...

    def get(self, key: bytes | str, default: bytes | None = None) -> bytes | None:
        """Return the bytes stored under a key, or `default`.

        Parameters
        ----------
        key : bytes or str
        default : bytes, optional

        Returns
        -------
        bytes or None

        Examples
        --------
        >>> from cuda.core.utils import InMemoryProgramCache
        >>> cache = InMemoryProgramCache()
        >>> cache["key"] = b"code"
        >>> cache.get("key"), cache.get("other")
        (b'code', None)
        """
        try:
            return self[key]
        except KeyError:
            return default

    def update(
        self,
        items: Mapping[bytes, Buffer | ObjectCode]
        | Mapping[str, Buffer | ObjectCode]
        | Iterable[tuple[bytes | str, Buffer | ObjectCode]],
        /,
    ) -> None:
        """Store several entries in order; if one fails, the preceding ones remain stored.

        Parameters
        ----------
        items : mapping, or iterable of pairs
            Keys and values.

        Examples
        --------
        >>> from cuda.core.utils import InMemoryProgramCache
        >>> cache = InMemoryProgramCache()
        >>> cache.update({"first": b"code", "second": b"more code"})
        >>> len(cache)
        2
        """
        pairs = items.items() if hasattr(items, "items") else items
        for key, value in pairs:
            self[key] = value

    def compile_lock(self, key: bytes | str) -> AbstractContextManager[object]:
        """Lock for the compilation of the program with this key.

        After a miss, :meth:`cuda.core.Program.compile` enters the lock, looks up the key again, and compiles and stores the
        program if it is still missing. So of the threads and processes that miss a key at once, one compiles, and the others
        wait for its result. The lookup with the lock counts instead of the first.

        An implementation limits the wait, and continues without the lock after it. The base implementation locks nothing, and
        `Program.compile` does not look up a second time.

        Parameters
        ----------
        key : bytes or str

        Returns
        -------
        context manager

        Examples
        --------
        >>> from cuda.core.utils import InMemoryProgramCache
        >>> cache = InMemoryProgramCache()
        >>> cache.lock_timeout = 10
        >>> with cache.compile_lock("key"):
        ...     if cache.get("key") is None:
        ...         cache["key"] = b"code"
        >>> cache["key"]
        b'code'
        """
        return nullcontext()

    def close(self) -> None:
        """Release the resources of the cache. The base implementation does nothing.

        Examples
        --------
        >>> from cuda.core.utils import InMemoryProgramCache
        >>> cache = InMemoryProgramCache()
        >>> cache.close()

        A ``with`` statement closes the cache at its end:

        >>> with InMemoryProgramCache() as cache:
        ...     cache["key"] = b"code"
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
