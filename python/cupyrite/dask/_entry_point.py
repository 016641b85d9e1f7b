"""Entry point ``dask.sizeof``, which Dask loads when it is imported: registers what :mod:`cupyrite.dask` has for Dask.

Dask has an entry point for sizes only, and `distributed` none for serializers; `distributed` is imported after Dask. Every
process of a cluster, also one in which no program imports `cupyrite`, must be able to read buffers. So this module waits for the
import of `distributed.protocol.serialize`. It is loaded wherever Dask is, and imports nothing else until a type of `cuda` occurs.
"""

import importlib.abc
import importlib.machinery
import sys

_DISTRIBUTED = "distributed.protocol.serialize"


def register(sizeof):
    """Register sizes, and serializers now or when `distributed` is imported; `sizeof` is Dask's dispatch of sizes."""
    sizeof.register_lazy("cuda")(_register_sizes)
    module = sys.modules.get(_DISTRIBUTED)
    if hasattr(module, "dask_deserialize"):
        _register_serializers(module)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _register_sizes():
    from cupyrite.dask.sizes import register_sizes

    register_sizes()


def _register_serializers(module):
    from dask.tokenize import normalize_token

    def register():
        from cupyrite.dask.serializers import register

        register()

    for dispatch in (module.dask_serialize, module.dask_deserialize, normalize_token):
        dispatch.register_lazy("cuda")(register)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `distributed.protocol.serialize` as usual, and registers the serializers after it was executed."""

    def find_spec(self, name, path=None, target=None):
        if name != _DISTRIBUTED:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # Later readers of the module's source expect the loader that has it.
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _register_serializers(module)
