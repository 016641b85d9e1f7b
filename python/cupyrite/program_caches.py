"""Program caches that several hosts share: on a Redis server, and in any storage that fsspec supports.

Pass one to :meth:`cuda.core.Program.compile` as ``cache=``. Entries have the format of
:class:`cuda.core.utils.FileStreamProgramCache`: the code, followed by a line with a checksum, so that an incomplete entry is a
miss. The checksum detects corruption, not tampering: a process that can write to the storage can run code in its readers.

Failures of a storage raise ``OSError``, which ``Program.compile`` converts to a warning: it compiles without the cache.
"""

from __future__ import annotations

import contextlib
import errno
import threading
import uuid
from abc import abstractmethod
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from cuda.core.utils import ProgramCacheResource

from . import _leases
from ._leases import Lease
from ._native.core import (
    cache_entry_name,
    lock_timeout_seconds,
    memory_cache,
    seal_cache_entry,
    unseal_cache_entry,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import overload

    import redis
    from cuda.core import ObjectCode
    from typing_extensions import Buffer

__all__ = ["FsspecProgramCache", "RedisProgramCache"]

_DIGITS = frozenset("0123456789abcdef")


def _is_entry_name(text: str) -> bool:
    return len(text) == 64 and _DIGITS.issuperset(text)


class _SharedProgramCache(ProgramCacheResource):
    """Program cache over a storage of named entries."""

    #: Keyword arguments of the constructor, for pickling.
    _arguments: dict[str, Any]

    def __init__(self, lock_timeout: float) -> None:
        self._lock_timeout = lock_timeout_seconds(lock_timeout)
        # Only for its locks.
        self._process_locks = memory_cache()
        self._counting = threading.Lock()
        self._hits = self._misses = 0

    def __getstate__(self) -> dict[str, Any]:
        """The arguments: another process opens the same storage."""
        return self._arguments

    def __setstate__(self, arguments: dict[str, Any]) -> None:
        self.__init__(**arguments)  # type: ignore[misc]

    @abstractmethod
    def _read(self, name: str) -> bytes | None:
        """The entry of this name."""

    @abstractmethod
    def _write(self, name: str, entry: bytes) -> None:
        """Store an entry; readers never see a part of it."""

    @abstractmethod
    def _remove(self, names: Iterable[str]) -> int:
        """Remove entries; return how many existed."""

    @abstractmethod
    def _names(self) -> set[str]:
        """The names of all entries."""

    @abstractmethod
    def _exists(self, name: str) -> bool:
        """Whether an entry of this name exists, complete or damaged."""

    @abstractmethod
    def _lease(self, name: str, within_process: AbstractContextManager[object]) -> Lease: ...

    def _lease_arguments(
        self, name: str, within_process: AbstractContextManager[object], pauses: tuple[float, float]
    ) -> tuple[Any, ...]:
        return (within_process, self._lock_timeout, pauses, lambda: self._exists(name), self._uncount_miss)

    def _count(self, found: bool) -> None:
        with self._counting:
            if found:
                self._hits += 1
            else:
                self._misses += 1

    def _uncount_miss(self) -> None:
        with self._counting:
            self._misses -= 1

    if TYPE_CHECKING:

        @overload
        def get(self, key: bytes | str, default: None = None) -> bytes | None: ...
        @overload
        def get(self, key: bytes | str, default: bytes) -> bytes: ...

    def get(self, key: bytes | str, default: bytes | None = None) -> bytes | None:
        name = cache_entry_name(key)
        entry = self._read(name)
        code = None if entry is None else unseal_cache_entry(key, entry)
        if code is None and entry is not None:
            # A failure is reported when the program is stored.
            with contextlib.suppress(OSError):
                self._remove([name])
        self._count(code is not None)
        return default if code is None else code

    def __getitem__(self, key: bytes | str) -> bytes:
        code = self.get(key)
        if code is None:
            raise KeyError(key)
        return code

    def __setitem__(self, key: bytes | str, value: Buffer | ObjectCode) -> None:
        self._write(cache_entry_name(key), seal_cache_entry(key, value))

    def __delitem__(self, key: bytes | str) -> None:
        if not self._remove([cache_entry_name(key)]):
            raise KeyError(key)

    def __len__(self) -> int:
        return len(self._names())

    def clear(self) -> None:
        """Remove all entries of this cache."""
        self._remove(self._names())

    def compile_lock(self, key: bytes | str) -> AbstractContextManager[object]:
        return self._lease(cache_entry_name(key), self._process_locks.compile_lock(key, self._lock_timeout))

    @property
    def hits(self) -> int:
        """Number of lookups of this object that hit."""
        return self._hits

    @property
    def misses(self) -> int:
        """Number of lookups of this object that missed."""
        return self._misses


for _method in ("get", "__getitem__", "__setitem__", "__delitem__", "__len__", "compile_lock"):
    getattr(_SharedProgramCache, _method).__doc__ = getattr(ProgramCacheResource, _method).__doc__


# ----------------------------------------------------------------------------------------------------------------------
# Redis

#: Seconds after which an operation of a client made from a URL fails.
_REDIS_TIMEOUT = 5.0


def _redis_module() -> Any:
    try:
        import redis
    except ImportError as error:
        raise ImportError("RedisProgramCache needs the package redis: pip install 'cupyrite[redis]'") from error
    return redis


@contextlib.contextmanager
def _redis_errors() -> Iterator[None]:
    """Converts errors of redis-py to the classes of ``OSError``."""
    import redis

    try:
        yield
    except redis.TimeoutError as error:
        raise TimeoutError(errno.ETIMEDOUT, f"Redis: {error}") from error
    except redis.ConnectionError as error:
        raise ConnectionError(f"Redis: {error}") from error
    except redis.RedisError as error:
        raise OSError(f"Redis: {error}") from error


class _RedisLease(Lease):
    def __init__(self, lock: Any, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._lock = lock

    def try_acquire(self) -> bool:
        return bool(self._lock.acquire(blocking=False))

    def renew(self) -> bool:
        from redis.exceptions import LockNotOwnedError

        try:
            return bool(self._lock.reacquire())
        except LockNotOwnedError:
            return False

    def release(self) -> None:
        self._lock.release()


class RedisProgramCache(_SharedProgramCache):
    """Program cache on a Redis server, or a server with its protocol such as Valkey. Needs ``cupyrite[redis]``.

    Parameters
    ----------
    client_or_url : redis.Redis, redis.RedisCluster or str
        A client, which must return bytes (``decode_responses=False``), or a URL such as ``"redis://host:6379/0"`` or
        ``"unix:///run/redis.sock"``. :meth:`close` closes only a client that was made from a URL.
    prefix : str, optional
        Prefix of the names of all entries. Caches with different prefixes are independent.
    expire_seconds : float, optional
        Seconds after which the server removes an entry, counted from its storage. Default: never.
    lock_timeout : float, optional
        Seconds that a compilation waits for the same compilation in another thread or process.

    Raises
    ------
    ImportError
        The package ``redis`` is not installed.

    Examples
    --------
    >>> from cupyrite.program_caches import RedisProgramCache
    >>> cache = RedisProgramCache("redis://cache.example:6379", expire_seconds=30 * 24 * 3600)
    >>> code = Program(source, "c++").compile("cubin", cache=cache)  # doctest: +SKIP
    """

    def __init__(
        self,
        client_or_url: redis.Redis | redis.RedisCluster | str,
        *,
        prefix: str = "cupyrite:programs:",
        expire_seconds: float | None = None,
        lock_timeout: float = 60,
    ) -> None:
        module = _redis_module()
        super().__init__(lock_timeout)
        self._arguments = {
            "client_or_url": client_or_url,
            "prefix": prefix,
            "expire_seconds": expire_seconds,
            "lock_timeout": lock_timeout,
        }
        if not isinstance(prefix, str):
            raise TypeError(f"prefix is {prefix!r}; expected str")
        self._prefix = prefix.encode()
        self._milliseconds = None
        if expire_seconds is not None:
            if not 0.001 <= expire_seconds < 1e12:
                raise ValueError(f"expire_seconds is {expire_seconds!r}; expected a number of seconds above 0, or None")
            self._milliseconds = int(expire_seconds * 1000)
        self._owned = isinstance(client_or_url, str)
        if isinstance(client_or_url, str):
            from redis.backoff import NoBackoff
            from redis.retry import Retry

            # One repetition, for a connection that the server has closed meanwhile. The default sleeps for seconds.
            client = module.Redis.from_url(
                client_or_url,
                socket_timeout=_REDIS_TIMEOUT,
                socket_connect_timeout=_REDIS_TIMEOUT,
                retry=Retry(NoBackoff(), 1),
            )
        elif isinstance(client_or_url, (module.Redis, module.RedisCluster)):
            client = client_or_url
        else:
            kind = type(client_or_url)
            name = f"{kind.__module__}.{kind.__qualname__}"
            raise TypeError(f"client_or_url is of type {name}; expected redis.Redis, redis.RedisCluster or a URL")
        if client.get_encoder().decode_responses:
            raise ValueError("the client decodes responses to str; expected decode_responses=False: programs are bytes")
        self._client: Any = client

    def __getstate__(self) -> dict[str, Any]:
        """The arguments: another process connects to the same server."""
        if not self._owned:
            raise TypeError("a RedisProgramCache of a client cannot be pickled; create it from a URL")
        return self._arguments

    def _key(self, name: str) -> bytes:
        return self._prefix + name.encode()

    def _read(self, name: str) -> bytes | None:
        with _redis_errors():
            entry: bytes | None = self._client.get(self._key(name))
        return entry

    def _exists(self, name: str) -> bool:
        with _redis_errors():
            return bool(self._client.exists(self._key(name)))

    def _write(self, name: str, entry: bytes) -> None:
        with _redis_errors():
            self._client.set(self._key(name), entry, px=self._milliseconds)

    def _remove(self, names: Iterable[str]) -> int:
        keys = [self._key(name) for name in names]
        removed = 0
        with _redis_errors():
            for first in range(0, len(keys), 500):
                removed += self._client.delete(*keys[first : first + 500])
        return removed

    def _names(self) -> set[str]:
        # The prefix literally: * ? [ ] ^ and \ have meanings in patterns.
        escaped = b"".join(b"\\" + bytes([byte]) if byte in b"*?[]^-\\" else bytes([byte]) for byte in self._prefix)
        names = set()
        with _redis_errors():
            for key in self._client.scan_iter(match=escaped + 64 * b"?", count=1000):
                name = key[len(self._prefix) :].decode(errors="replace")
                if _is_entry_name(name):
                    names.add(name)
        return names

    def _lease(self, name: str, within_process: AbstractContextManager[object]) -> Lease:
        # Another thread renews it.
        lock = self._client.lock(
            self._prefix + b"lock:" + name.encode(), timeout=_leases.LEASE_SECONDS, thread_local=False
        )
        return _RedisLease(lock, *self._lease_arguments(name, within_process, (0.002, 0.05)))

    def close(self) -> None:
        """Close the connections, if the cache was made from a URL."""
        if self._owned:
            self._client.close()


# ----------------------------------------------------------------------------------------------------------------------
# fsspec

#: Protocols of object stores, which replace an object at once. Other storages may show a file while it is written.
_OBJECT_STORES = frozenset("abfs abfss adl az gcs gs memory oci oss s3 s3a".split())
#: Age after which files of killed processes are removed.
_STALE = timedelta(hours=1)


def _fsspec_module() -> Any:
    try:
        import fsspec  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise ImportError("FsspecProgramCache needs the package fsspec: pip install 'cupyrite[fsspec]'") from error
    return fsspec


@contextlib.contextmanager
def _fsspec_errors() -> Iterator[None]:
    """Converts exceptions of a file system, which may have classes of its own, to ``OSError``."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


#: What file systems raise for a missing file.
_ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class _FsspecLease(Lease):
    """A file that its holder created and rewrites. Hosts need no common clock: a file that has not changed for the time of a
    lease has no holder."""

    def __init__(self, cache: FsspecProgramCache, path: str, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._cache = cache
        self._path = path
        self._token = b""
        self._renewals = 0
        # The content that another holder wrote, and when it was seen first.
        self._seen: tuple[bytes, float] | None = None

    def _content(self) -> bytes | None:
        self._cache._filesystem.invalidate_cache(self._path)
        try:
            return bytes(self._cache._filesystem.cat_file(self._path))
        except _ABSENT:
            return None

    def try_acquire(self) -> bool | None:
        self._token = uuid.uuid4().hex.encode()
        try:
            self._cache._create(self._path, self._token)
        except FileExistsError:
            content = self._content()
        except Exception:
            # Object stores report an existing object by errors of several classes.
            content = self._content()
            if content is None:
                return None
        else:
            return True
        now = monotonic()
        if self._seen is None or content != self._seen[0]:
            self._seen = None if content is None else (content, now)
        elif now - self._seen[1] > _leases.LEASE_SECONDS and self._content() == content:
            self._cache._remove_file(self._path)
            self._seen = None
        return False

    def _is_owned(self) -> bool:
        content = self._content()
        return content is not None and content.startswith(self._token)

    def renew(self) -> bool:
        if not self._is_owned():
            return False
        self._renewals += 1
        self._cache._filesystem.pipe_file(self._path, self._token + b" %d" % self._renewals)
        return True

    def release(self) -> None:
        if self._is_owned():
            self._cache._remove_file(self._path)


class FsspecProgramCache(_SharedProgramCache):
    """Program cache in a folder of any storage that fsspec supports, such as S3. Needs ``cupyrite[fsspec]``.

    A local folder (``file://``) may also be the folder of a :class:`~cuda.core.utils.FileStreamProgramCache`, which has a size
    limit: the two share their entries.

    Parameters
    ----------
    url : str
        The folder, such as ``"s3://bucket/programs"``.
    storage_options : mapping, optional
        Options of the file system, for example credentials.
    lock_timeout : float, optional
        Seconds that a compilation waits for the same compilation in another thread or process. Processes wait for each other
        where the storage can create a file exclusively.

    Raises
    ------
    ImportError
        The package ``fsspec``, or the one for the protocol of the URL, is not installed.

    Examples
    --------
    >>> from cupyrite.program_caches import FsspecProgramCache
    >>> cache = FsspecProgramCache("memory://programs")
    >>> cache["key"] = b"code"
    >>> cache["key"], len(cache)
    (b'code', 1)
    """

    def __init__(self, url: str, *, storage_options: Mapping[str, Any] | None = None, lock_timeout: float = 60) -> None:
        module = _fsspec_module()
        super().__init__(lock_timeout)
        self._arguments = {"url": url, "storage_options": storage_options, "lock_timeout": lock_timeout}
        if not isinstance(url, str):
            raise TypeError(f"url is {url!r}; expected str")
        self._filesystem, root = module.core.url_to_fs(url, **dict(storage_options or {}))
        self._root = root.rstrip("/")
        protocols = self._filesystem.protocol
        protocols = (protocols,) if isinstance(protocols, str) else protocols
        self._writes_at_once = not _OBJECT_STORES.isdisjoint(protocols)

    def _path(self, name: str) -> str:
        return f"{self._root}/entries/{name[:2]}/{name[2:]}.code"

    def _in_folder(self, path: str, operation: Callable[[], None]) -> None:
        """Calls an operation that creates a file; creates its folder if it is missing."""
        try:
            operation()
        except FileNotFoundError:
            self._filesystem.makedirs(path.rpartition("/")[0], exist_ok=True)
            operation()

    def _create(self, path: str, content: bytes) -> None:
        """Creates a file. Raises FileExistsError if it exists, and other exceptions where that cannot be found out."""

        def create() -> None:
            if self._writes_at_once:
                self._filesystem.pipe_file(path, content, mode="create")
            else:
                with self._filesystem.open(path, "xb") as file:
                    file.write(content)

        self._in_folder(path, create)

    def _remove_file(self, path: str) -> bool:
        try:
            self._filesystem.rm_file(path)
        except _ABSENT:
            return False
        return True

    def _read(self, name: str) -> bytes | None:
        with _fsspec_errors():
            try:
                return bytes(self._filesystem.cat_file(self._path(name)))
            except _ABSENT:
                return None

    def _exists(self, name: str) -> bool:
        path = self._path(name)
        with _fsspec_errors():
            self._filesystem.invalidate_cache(path)
            return bool(self._filesystem.exists(path))

    def _write(self, name: str, entry: bytes) -> None:
        path = self._path(name)
        with _fsspec_errors():
            if self._writes_at_once:
                self._in_folder(path, lambda: self._filesystem.pipe_file(path, entry))
                return
            temporary = f"{self._root}/tmp/{uuid.uuid4().hex}"
            try:
                self._in_folder(temporary, lambda: self._filesystem.pipe_file(temporary, entry))
                self._in_folder(path, lambda: self._filesystem.mv(temporary, path))
            except BaseException:
                with contextlib.suppress(Exception):
                    self._remove_file(temporary)
                raise

    def _remove(self, names: Iterable[str]) -> int:
        with _fsspec_errors():
            # Object stores remove missing objects without an error.
            return sum(self._filesystem.exists(path) and self._remove_file(path) for path in map(self._path, names))

    def _files(self, folder: str) -> list[str]:
        self._filesystem.invalidate_cache()
        try:
            return list(self._filesystem.find(f"{self._root}/{folder}"))
        except _ABSENT:
            return []

    def _names(self) -> set[str]:
        with _fsspec_errors():
            parts = (path.split("/")[-2:] for path in self._files("entries"))
            names = {folder + file.removesuffix(".code") for folder, file in parts if file.endswith(".code")}
        return set(filter(_is_entry_name, names))

    def clear(self) -> None:
        """Remove all entries of this cache, and files that killed processes left an hour ago or earlier."""
        super().clear()
        with contextlib.suppress(Exception):
            for path in [*self._files("tmp"), *self._files("leases")]:
                if datetime.now(UTC) - self._filesystem.modified(path) > _STALE:
                    self._remove_file(path)

    def _lease(self, name: str, within_process: AbstractContextManager[object]) -> Lease:
        path = f"{self._root}/leases/{name}"
        return _FsspecLease(self, path, *self._lease_arguments(name, within_process, (0.01, 0.5)))
