"""Memory between processes: handles, descriptors, the registry of pools, and how ``multiprocessing`` pickles.

Importing this teaches the picklers of ``multiprocessing`` about memory resources, allocation handles and events. That
is done when the first of those is made that other processes can use.
"""

import os
import threading
import weakref
from multiprocessing import reduction
from uuid import UUID, uuid4

from cupyrite._native.core import (
    DeviceMemoryResource,
    Event,
    IPCAllocationHandle,
    IPCBufferDescriptor,
    PinnedMemoryResource,
)

from cuda.core._utils.cuda_utils import check_multiprocessing_start_method

__all__ = ["IPCAllocationHandle", "IPCBufferDescriptor", "IPCDataForBuffer", "IPCDataForMR"]

# Held while a pool is imported and registered. That makes Python objects, and collecting garbage meanwhile can come here
# again.
_lock = threading.RLock()


def _after_fork():
    # A thread that held it is not in the child, where whoever needs it shall get the driver's error.
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
_registry = weakref.WeakValueDictionary()


def _fresh_uuid():
    return uuid4()


def _find(uuid):
    """The resource that is registered under a UUID and open, or None."""
    known = _registry.get(uuid)
    return None if known is None or known.is_closed else known


def _from_registry(uuid):
    known = _find(uuid)
    if known is None:
        raise RuntimeError(
            f"no memory resource of this process is registered as {uuid}; make one by from_allocation_handle(), or send "
            "the resource by multiprocessing"
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
        raise RuntimeError("this IPCAllocationHandle was closed; it cannot be sent to another process")
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
    """What is known of a buffer that processes share.

    Parameters
    ----------
    ipc_descriptor : IPCBufferDescriptor
        What another process imports it by.
    is_mapped : bool
        Whether the memory is another process's.
    """

    __slots__ = ("_descriptor", "_mapped")

    def __init__(self, ipc_descriptor, is_mapped):
        self._descriptor = ipc_descriptor
        self._mapped = bool(is_mapped)

    @property
    def ipc_descriptor(self):
        """What another process imports the buffer by."""
        return self._descriptor

    @property
    def is_mapped(self):
        """Whether the memory is another process's."""
        return self._mapped


class IPCDataForMR:
    """What is known of a memory resource that processes share.

    Parameters
    ----------
    alloc_handle : IPCAllocationHandle
        What another process imports its pool by.
    is_mapped : bool
        Whether the pool is another process's.
    """

    __slots__ = ("_handle", "_mapped")

    def __init__(self, alloc_handle, is_mapped):
        self._handle = alloc_handle
        self._mapped = bool(is_mapped)

    @property
    def alloc_handle(self):
        """What another process imports the pool by."""
        return self._handle

    @property
    def is_mapped(self):
        """Whether the pool is another process's."""
        return self._mapped

    @property
    def uuid(self):
        """What identifies the pool among processes; None where that is not known."""
        return None if self._handle is None else self._handle.uuid
