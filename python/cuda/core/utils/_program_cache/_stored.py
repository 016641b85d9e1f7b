"""Methods of caches that delegate to a native storage, their attribute `_storage`."""

from ._abc import ProgramCacheResource as _Resource


def getitem(self, key):
    found = self._storage.get(key)
    if found is None:
        raise KeyError(key)
    return found


def get(self, key, default=None):
    found = self._storage.get(key)
    return default if found is None else found


def setitem(self, key, value):
    self._storage.put(key, value)


def delitem(self, key):
    if not self._storage.remove(key):
        raise KeyError(key)


def length(self):
    return len(self._storage)


def clear(self):
    self._storage.clear()


METHODS = {
    "__getitem__": getitem,
    "get": get,
    "__setitem__": setitem,
    "__delitem__": delitem,
    "__len__": length,
    "clear": clear,
}
for _name, _method in METHODS.items():
    _method.__name__ = _name
    _method.__doc__ = getattr(_Resource, _name).__doc__

hits = property(lambda self: self._storage.hits, doc="Number of lookups of this object that hit.")
misses = property(lambda self: self._storage.misses, doc="Number of lookups of this object that missed.")
