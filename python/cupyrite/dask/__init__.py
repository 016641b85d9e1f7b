"""Dask workers with a device each, and `cuda.core` objects as results of tasks.

Installed with ``pip install 'cupyrite[dask]'``. Buffers and strided views travel between workers, clients and disks without
further calls: Dask loads their serializers by an entry point. :class:`DevicePlugin` gives each worker a device.
"""

from .plugin import DevicePlugin
from .serializers import register

__all__ = ["DevicePlugin", "register"]
