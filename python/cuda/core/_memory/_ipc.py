"""Interprocess memory: the registry of memory resources and the ``multiprocessing`` reducers.

Importing this module registers reducers for memory resources, allocation handles and events. The native module imports
it when the first IPC-enabled object is created.
"""

import os
import threading
import weakref
from multiprocessing import reduction
from uuid import UUID, uuid4

from cuda.core._utils.cuda_utils import check_multiprocessing_start_method
from cupyrite._native.core import (
    DeviceMemoryResource,
    Event,
    IPCAllocationHandle,
    IPCBufferDescriptor,
    PinnedMemoryResource,
)

__all__ = ["IPCAllocationHandle", "IPCBufferDescriptor", "IPCDataForBuffer", "IPCDataForMR"]

# Held while a pool is imported and registered. Reentrant: garbage collection can run here and import another pool.
_lock = threading.RLock()


def _after_fork():
    # The thread that held the lock does not exist in the child. A new lock lets the child reach the driver's error.
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
_registry = weakref.WeakValueDictionary()


def _fresh_uuid():
    return uuid4()


def _find(uuid):
    """The open resource registered under a UUID, or None."""
    known = _registry.get(uuid)
    return None if known is None or known.is_closed else known


def _from_registry(uuid):
    known = _find(uuid)
    if known is None:
        raise RuntimeError(
            f"no memory resource of this process is registered as {uuid}; create one with from_allocation_handle() or send "
            "the resource with multiprocessing"
        )
    return known


def _register(mr, uuid):
    if not isinstance(uuid, UUID):
        raise TypeError(f"register() argument 'uuid' is of type {type(uuid).__name__}; expected a uuid.UUID")
    with _lock:
        known = _find(uuid)
        if known is not None:
            return known
        if mr.uuid is None:
            mr._take_uuid(uuid)
        elif mr.uuid != uuid:
            raise ValueError(f"register() argument 'uuid' is {uuid}; the UUID of this memory resource is {mr.uuid}")
        _registry[uuid] = mr
    return mr


def _rebuild_allocation_handle(descriptor, uuid):
    return IPCAllocationHandle._restore(descriptor.detach(), uuid)


def _reduce_allocation_handle(handle):
    check_multiprocessing_start_method()
    if handle.is_closed:
        raise RuntimeError("this IPCAllocationHandle was closed and cannot be sent to another process")
    return _rebuild_allocation_handle, (reduction.DupFd(handle.handle), handle.uuid)


def _reduce_device_resource(mr):
    check_multiprocessing_start_method()
    return DeviceMemoryResource.from_allocation_handle, (mr.device_id, mr.allocation_handle)


def _reduce_pinned_resource(mr):
    check_multiprocessing_start_method()
    return PinnedMemoryResource.from_allocation_handle, (mr.allocation_handle,)


def _reduce_event(event):
    check_multiprocessing_start_method()
    return Event.from_ipc_descriptor, (event.ipc_descriptor,)


reduction.register(IPCAllocationHandle, _reduce_allocation_handle)
reduction.register(DeviceMemoryResource, _reduce_device_resource)
reduction.register(PinnedMemoryResource, _reduce_pinned_resource)
reduction.register(Event, _reduce_event)


class IPCDataForBuffer:
    """IPC state of a buffer.

    Parameters
    ----------
    ipc_descriptor : IPCBufferDescriptor
        Descriptor with which another process imports the buffer.
    is_mapped : bool
        Whether the buffer was imported from another process.
    """

    __slots__ = ("_descriptor", "_mapped")

    def __init__(self, ipc_descriptor, is_mapped):
        self._descriptor = ipc_descriptor
        self._mapped = bool(is_mapped)

    @property
    def ipc_descriptor(self):
        """Descriptor with which another process imports the buffer."""
        return self._descriptor

    @property
    def is_mapped(self):
        """Whether the buffer was imported from another process."""
        return self._mapped


class IPCDataForMR:
    """IPC state of a memory resource.

    Parameters
    ----------
    alloc_handle : IPCAllocationHandle
        Handle with which another process imports the pool.
    is_mapped : bool
        Whether the pool was imported from another process.
    """

    __slots__ = ("_handle", "_mapped")

    def __init__(self, alloc_handle, is_mapped):
        self._handle = alloc_handle
        self._mapped = bool(is_mapped)

    @property
    def alloc_handle(self):
        """Handle with which another process imports the pool."""
        return self._handle

    @property
    def is_mapped(self):
        """Whether the pool was imported from another process."""
        return self._mapped

    @property
    def uuid(self):
        """UUID that identifies the pool across processes; None if unknown."""
        return None if self._handle is None else self._handle.uuid
