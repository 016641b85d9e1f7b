"""Dask workers with a device each, and `cuda.core` objects as results of tasks.

Installed with ``pip install 'cupyrite[dask]'``. Buffers and strided views travel between workers, clients and disks without
further calls: Dask loads their serializers by an entry point. :class:`DevicePlugin` gives each worker a device.
"""

# Public name -> module that defines it. Dask's entry point imports this package in every process that imports Dask.
_HOMES = {"DevicePlugin": ".plugin", "register": ".serializers"}

__all__ = sorted(_HOMES)


def __getattr__(name):
    from importlib import import_module

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(home, __name__), name))


def __dir__():
    return sorted({*globals(), *_HOMES})
