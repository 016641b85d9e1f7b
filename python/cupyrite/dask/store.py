"""Storage of a worker's results that limits device memory."""

from __future__ import annotations

import contextlib
import logging
import sys
import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

from dask.sizeof import sizeof
from distributed.protocol import deserialize, serialize

from .serializers import device_nbytes

__all__ = ["DeviceStore"]

_log = logging.getLogger(__name__)


class _HostCopy:
    """A value with device memory, as host bytes."""

    def __init__(self, header: dict[str, Any], frames: list[Any], device_bytes: int) -> None:
        self.header, self.frames, self.device_bytes = header, frames, device_bytes

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays are written without a copy, memory views cannot be pickled.
        import numpy as np

        return _HostCopy, (self.header, [np.frombuffer(frame, np.uint8) for frame in self.frames], self.device_bytes)


@sizeof.register(_HostCopy)
def _sizeof_host_copy(copy: _HostCopy) -> int:
    return sizeof(copy.frames)


class DeviceStore(MutableMapping[Any, Any]):
    """Values by key: those with device memory in an LRU list of limited size, all others in another mapping.

    When the list is full, the values used least recently are copied to the host and stored in the other mapping; Dask's own
    writes to disk what exceeds the worker's memory limit. A value that is read again returns to the device.

    Parameters
    ----------
    host : MutableMapping
        The worker's mapping.
    limit : int
        Bytes of device memory.
    """

    def __init__(self, host: MutableMapping[Any, Any], limit: int) -> None:
        self.host, self.limit = host, limit
        #: Values with device memory and its size; the least recently used first.
        self.device: dict[Any, tuple[Any, int]] = {}
        self.device_bytes = 0
        #: Number of values copied to the host so far.
        self.spilled_count = 0
        # Keys of values that could not be copied to the host.
        self._failed: set[Any] = set()
        # Values of which the host has a copy, and that a task still uses.
        self._alive: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
        for key in list(getattr(host, "fast", host)):
            if device_nbytes(value := host[key]):
                del host[key]
                self[key] = value

    def set_limit(self, limit: int | None) -> None:
        """Change the limit.

        Parameters
        ----------
        limit : int, optional
            Bytes of device memory. None: no limit.
        """
        self.limit = sys.maxsize if limit is None else limit
        self._reduce_to_limit()

    def __setitem__(self, key: Any, value: Any) -> None:
        if key in self:
            del self[key]
        size = device_nbytes(value)
        if size == 0:
            self.host[key] = value
            return
        self.device[key] = value, size
        self.device_bytes += size
        self._reduce_to_limit()

    def __getitem__(self, key: Any) -> Any:
        found = self.device.pop(key, None)
        if found is not None:
            self.device[key] = found
            return found[0]
        value = self.host[key]
        if not isinstance(value, _HostCopy):
            return value
        loaded = self._alive.get(key)
        if loaded is None:
            loaded = deserialize(value.header, value.frames)
        if value.device_bytes <= self.limit:
            del self[key]
            self.device[key] = loaded, value.device_bytes
            self.device_bytes += value.device_bytes
            self._reduce_to_limit()
        else:
            # Other tasks that read it meanwhile use the same memory.
            with contextlib.suppress(TypeError):
                self._alive[key] = loaded
        return loaded

    def __delitem__(self, key: Any) -> None:
        found = self.device.pop(key, None)
        if found is not None:
            self.device_bytes -= found[1]
            self._failed.discard(key)
            return
        del self.host[key]
        self._alive.pop(key, None)

    def __contains__(self, key: object) -> bool:
        return key in self.device or key in self.host

    def __iter__(self) -> Iterator[Any]:
        yield from list(self.device)
        yield from self.host

    def __len__(self) -> int:
        return len(self.device) + len(self.host)

    def _reduce_to_limit(self) -> None:
        while self.device_bytes > self.limit and self._spill_one():
            pass

    def _spill_one(self) -> bool:
        """Copy the least recently used value that can be copied to the host; return whether there was one."""
        for key in [key for key in self.device if key not in self._failed]:
            value, size = self.device[key]
            try:
                header, frames = serialize(value, on_error="raise")
                self.host[key] = _HostCopy(header, frames, size)
            except Exception:
                _log.exception("device memory of %r could not be copied to the host; it stays on the device", key)
                self._failed.add(key)
                if key in self.host:
                    del self.host[key]
                continue
            del self.device[key]
            self.device_bytes -= size
            self.spilled_count += 1
            # Tuples and lists have no weak references: what a task still has of them is copied again.
            with contextlib.suppress(TypeError):
                self._alive[key] = value
            return True
        return False

    # Dask's interface of stores that it can tell to free host memory: `distributed.spill.ManualEvictProto`.

    @property
    def fast(self) -> Any:
        """Values in host or device memory: what :meth:`evict` can reduce."""
        return getattr(self.host, "fast", None) or self.device

    def evict(self) -> int:
        """Write a value to disk; return its size, or -1 if that failed."""
        if not hasattr(self.host, "evict"):
            return -1
        # On the CPU device, device memory is the process's memory.
        if not self.host.fast and not (self.device and self._spill_one()):
            return -1
        return self.host.evict() if self.host.fast else 0

    def __getattr__(self, name: str) -> Any:
        # Dask's statistics of its own mapping: `spilled_total`, `cumulative_metrics`, `memory`, `disk`.
        if name in ("host", "device"):
            raise AttributeError(name)
        return getattr(self.host, name)
