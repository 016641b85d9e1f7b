"""Memory that other code has allocated: resources written in Python, and arrays that only speak DLPack."""

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import Buffer, MemoryResource

from helpers.device import check


class Resource(MemoryResource):
    """Allocates memory of a kind; claims who can access it."""

    def __init__(self, kind, on_host, on_device):
        self.kind, self.on_host, self.on_device = kind, on_host, on_device

    def allocate(self, size, *, stream=None):
        allocate = {
            "managed": lambda: driver.cuMemAllocManaged(size, 1),
            "host": lambda: driver.cuMemHostAlloc(size, 0),
            "device": lambda: driver.cuMemAlloc(size),
        }
        return Buffer.from_handle(int(check(allocate[self.kind]())), size, self)

    def deallocate(self, ptr, size, *, stream=None):
        check(driver.cuMemFreeHost(ptr) if self.kind == "host" else driver.cuMemFree(ptr))

    is_host_accessible = property(lambda self: self.on_host)
    is_device_accessible = property(lambda self: self.on_device)
    device_id = property(lambda self: 0)


@pytest.mark.parametrize("on_host", [False, True])
@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("kind", ["managed", "host", "device"])
def test_the_driver_says_whether_memory_is_managed(device, kind, on_host, on_device):
    buffer = Resource(kind, on_host, on_device).allocate(64)
    assert buffer.is_managed is (kind == "managed")
    assert (buffer.is_host_accessible, buffer.is_device_accessible) == (on_host, on_device)
    if not (on_host or on_device):
        with pytest.raises(BufferError):
            buffer.__dlpack_device__()
    else:
        both = 13 if kind == "managed" else 3
        expected = both if on_host and on_device else 1 if on_host else 2
        assert int(buffer.__dlpack_device__()[0]) == expected
    buffer.close()


class OnlyDLPack:
    def __init__(self, exporter):
        self.exporter = exporter
        self.streams = []

    def __dlpack__(self, *, stream=None, **more):
        self.streams.append(stream)
        return self.exporter.__dlpack__(stream=stream, **more)

    def __dlpack_device__(self):
        return self.exporter.__dlpack_device__()


def test_copies_with_arrays_that_only_speak_dlpack(device, stream):
    buffer = device.allocate(64, stream=stream)
    source, target = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    buffer.copy_from(OnlyDLPack(source), stream=stream)
    buffer.copy_to(OnlyDLPack(target), stream=stream)
    stream.sync()
    assert (source == target).all()


def test_copies_with_device_memory_that_only_speaks_dlpack(device, stream):
    first, second = device.allocate(64, stream=stream), device.allocate(64, stream=stream)
    first.fill(7, stream=stream)
    exporter = OnlyDLPack(first)
    second.copy_from(exporter, stream=stream)
    assert exporter.streams == [int(stream.handle)]
    first.fill(9, stream=stream)
    second.copy_to(OnlyDLPack(first), stream=stream)
    host = np.zeros(64, np.uint8)
    first.copy_to(host, stream=stream)
    stream.sync()
    assert (host == 7).all()


def test_arrays_of_dlpack_that_do_not_fit_are_refused(device, stream):
    buffer = device.allocate(64, stream=stream)
    with pytest.raises(ValueError, match="8 bytes, the destination 64"):
        buffer.copy_from(OnlyDLPack(np.zeros(2, np.float32)), stream=stream)
    with pytest.raises(BufferError, match="not C-contiguous"):
        buffer.copy_from(OnlyDLPack(np.zeros((8, 4), np.float32)[:, ::2]), stream=stream)
    readonly = np.zeros(16, np.float32)
    readonly.flags.writeable = False
    with pytest.raises(BufferError):
        buffer.copy_to(OnlyDLPack(readonly), stream=stream)
    buffer.copy_from(OnlyDLPack(readonly), stream=stream)
