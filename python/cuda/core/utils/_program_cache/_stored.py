"""Methods of caches that delegate to a native storage, their attribute `_storage`."""

from __future__ import annotations

from ._abc import ProgramCacheResource as _Resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Protocol, overload

    from cuda.core._module import ObjectCode
    from cupyrite._native.core import _Storage
    from typing_extensions import Buffer

    class _Cache(Protocol):
        _storage: _Storage
        lock_timeout: float


def getitem(self: _Cache, key: bytes | str) -> bytes:
    found = self._storage.get(key)
    if found is None:
        raise KeyError(key)
    return found


if TYPE_CHECKING:

    @overload
    def get(self: _Cache, key: bytes | str, default: None = None) -> bytes | None: ...
    @overload
    def get(self: _Cache, key: bytes | str, default: bytes) -> bytes: ...


def get(self: _Cache, key: bytes | str, default: bytes | None = None) -> bytes | None:
    found = self._storage.get(key)
    return default if found is None else found


def setitem(self: _Cache, key: bytes | str, value: Buffer | ObjectCode) -> None:
    self._storage.put(key, value)


def delitem(self: _Cache, key: bytes | str) -> None:
    if not self._storage.remove(key):
        raise KeyError(key)


def length(self: _Cache) -> int:
    return len(self._storage)


def compile_lock(self: _Cache, key: bytes | str) -> AbstractContextManager[object]:
    return self._storage.compile_lock(key, self.lock_timeout)


METHODS = {
    "__getitem__": getitem,
    "get": get,
    "__setitem__": setitem,
    "__delitem__": delitem,
    "__len__": length,
    "compile_lock": compile_lock,
}
for _name, _method in METHODS.items():
    _method.__name__ = _name
    _method.__doc__ = getattr(_Resource, _name).__doc__
