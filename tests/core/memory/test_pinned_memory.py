"""cuda.core: page-locked host memory, PinnedMemoryResource and LegacyPinnedMemoryResource."""

import gc
import textwrap
import weakref

import numpy as np
import pytest
from cuda.core import (
    Buffer,
    Device,
    DeviceMemoryResource,
    LegacyPinnedMemoryResource,
    MemoryResource,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
)
from cuda.core._memory._memory_pool import _MemPool
from cuda.core._utils.cuda_utils import CUDAError

from helpers.buffers import host_view
from helpers.programs import python


@pytest.mark.parametrize("make", [lambda: PinnedMemoryResource({}), LegacyPinnedMemoryResource])
def test_host_and_device_use_the_same_memory(device, stream, make):
    resource = make()
    with resource.allocate(1000, stream=stream) as pinned, device.allocate(1000, stream=stream) as there:
        assert type(pinned) is Buffer and pinned.memory_resource is resource
        assert (pinned.size, pinned.device_id) == (1000, -1)
        assert pinned.is_host_accessible and pinned.is_device_accessible and not pinned.is_managed
        assert pinned.__dlpack_device__() == (3, 0)
        stream.sync()
        view = host_view(pinned)
        view[:] = np.arange(1000) % 251
        pinned.copy_to(there, stream=stream)
        pinned.fill(7, stream=stream)
        stream.sync()
        assert (view == 7).all()
        pinned.copy_from(there, stream=stream)
        stream.sync()
        assert (view == np.arange(1000) % 251).all()
        another = pinned.copy_to(stream=stream)
        stream.sync()
        assert another.memory_resource is resource and (host_view(another) == view).all()
        assert (np.from_dlpack(another).view(np.uint8) == view).all()
        another.close()


def test_default_options_use_the_drivers_pool(device, stream):
    shared, own = PinnedMemoryResource(), PinnedMemoryResource(PinnedMemoryResourceOptions())
    assert own.is_handle_owned
    assert int(own.handle) != int(shared.handle)
    for resource in (shared, own):
        assert isinstance(resource, _MemPool) and isinstance(resource, MemoryResource)
        assert (resource.device_id, resource.numa_id) == (-1, -1)
        assert resource.is_device_accessible and resource.is_host_accessible and not resource.is_managed
        assert not resource.is_ipc_enabled and not resource.is_mapped and resource.uuid is None
    before = own.attributes.used_mem_current
    buffer = own.allocate(5000, stream=stream)
    assert own.attributes.used_mem_current == before + 5000
    own.close()
    assert own.is_closed and int(own.handle) == 0 and (own.device_id, own.numa_id) == (-1, -1)
    for use in (lambda: own.attributes, lambda: own.allocate(1, stream=stream)):
        with pytest.raises(RuntimeError, match="PinnedMemoryResource was closed"):
            use()
    # Its buffers remain valid.
    buffer.fill(3, stream=stream)
    stream.sync()
    assert (host_view(buffer) == 3).all()
    assert buffer.memory_resource is own
    buffer.close()


def test_options_are_checked(stream):
    assert (
        repr(PinnedMemoryResourceOptions())
        == "PinnedMemoryResourceOptions(ipc_enabled=False, max_size=0, numa_id=None)"
    )
    assert PinnedMemoryResourceOptions(True, 1, 2).ipc_enabled is True
    wrong = [
        (TypeError, "max_size", lambda: PinnedMemoryResourceOptions(max_size="x")),
        (TypeError, "numa_id", lambda: PinnedMemoryResourceOptions(numa_id="x")),
        (OverflowError, "max_size is -1", lambda: PinnedMemoryResource({"max_size": -1})),
        (ValueError, "numa_id is -1", lambda: PinnedMemoryResource({"numa_id": -1})),
        (OverflowError, "numa_id", lambda: PinnedMemoryResource({"numa_id": 1 << 40})),
        (TypeError, "bad", lambda: PinnedMemoryResource({"bad": 1})),
        (TypeError, "int; expected PinnedMemoryResourceOptions", lambda: PinnedMemoryResource(3)),
    ]
    for error, text, use in wrong:
        with pytest.raises(error, match=text):
            use()
    small = PinnedMemoryResource({"max_size": 1 << 20})
    with pytest.raises(CUDAError, match="OUT_OF_MEMORY"):
        small.allocate(64 << 20, stream=stream)


@pytest.mark.cpu
def test_numa_node_option(stream):
    resource = PinnedMemoryResource({"numa_id": 0})
    assert resource.numa_id == 0 and resource.device_id == -1
    with resource.allocate(100, stream=stream) as buffer:
        buffer.fill(2, stream=stream)
        stream.sync()
        assert (host_view(buffer) == 2).all()
    for options in ({"numa_id": 12345}, {"numa_id": 12345, "ipc_enabled": True}):
        with pytest.raises(CUDAError, match=r"(?s)INVALID_VALUE.*MemoryResourceOptions\.numa_id is NUMA node 12345"):
            PinnedMemoryResource(options)


def test_failed_allocations_raise(stream):
    for resource in (PinnedMemoryResource(), LegacyPinnedMemoryResource()):
        empty = resource.allocate(0, stream=stream)
        assert (empty.handle, empty.size) == (0, 0)
        empty.close()
        with pytest.raises(OverflowError, match="-1"):
            resource.allocate(-1, stream=stream)
        for wrong in ("x", None):
            with pytest.raises(TypeError, match="size"):
                resource.allocate(wrong, stream=stream)
        with pytest.raises(TypeError, match="stream.*int"):
            resource.allocate(1, stream=3)
        with pytest.raises(CUDAError, match="OUT_OF_MEMORY"):
            resource.allocate(1 << 60, stream=stream)


def test_legacy_resource_needs_no_stream(device):
    resource = LegacyPinnedMemoryResource()
    with pytest.raises(RuntimeError, match="no device"):
        resource.device_id
    buffer = resource.allocate(100)
    address = buffer.handle
    buffer.close()
    with pytest.raises(CUDAError, match="INVALID_VALUE"):
        resource.deallocate(address, 100)
    resource.deallocate(0, 0)
    with pytest.raises(TypeError, match="ptr"):
        resource.deallocate("x", 1)


def test_memory_stays_allocated_while_streams_use_it(device):
    """Closing at once is safe: freeing waits for the copies, on whatever stream they run."""
    n = 1 << 20
    streams = [device.create_stream() for _ in range(3)]
    resource = LegacyPinnedMemoryResource()
    out = LegacyPinnedMemoryResource().allocate(n)
    with device.allocate(n, stream=streams[0]) as there:
        for turn in range(10):
            source = resource.allocate(n, stream=streams[0])
            host_view(source)[:] = turn
            there.copy_from(source, stream=streams[1])
            source.close()
            there.copy_to(out, stream=streams[1])
            streams[1].sync()
            assert (host_view(out) == turn).all()


def test_derived_classes(stream):
    class Mine(PinnedMemoryResource):
        def __init__(self, name):
            super().__init__({"max_size": 1 << 20})
            self.name = name

    class Plain(LegacyPinnedMemoryResource):
        def __init__(self, name):
            self.name = name

        def allocate(self, size, *, stream=None):
            return super().allocate(2 * size, stream=stream)

    mine, plain = Mine("a"), Plain("b")
    assert (mine.name, plain.name) == ("a", "b")
    with mine.allocate(10, stream=stream) as buffer:
        assert buffer.memory_resource is mine
    with plain.allocate(10, stream=stream) as buffer:
        assert buffer.size == 20
    alive = weakref.ref(mine)
    del mine, buffer
    gc.collect()
    assert alive() is None

    class Unmade(PinnedMemoryResource):
        def __init__(self):
            pass

    with pytest.raises(RuntimeError, match="__init__"):
        Unmade().allocate(1, stream=stream)
    with pytest.raises(RuntimeError, match="__init__"):
        Unmade().numa_id


def test_device_can_allocate_from_it():
    device = Device(0)
    before = device.memory_resource
    try:
        device.memory_resource = resource = PinnedMemoryResource()
        with device.allocate(10) as buffer:
            assert buffer.memory_resource is resource and buffer.is_host_accessible
        device.memory_resource = LegacyPinnedMemoryResource()
        with device.allocate(10) as buffer:
            assert buffer.is_host_accessible
    finally:
        device.memory_resource = before


def test_works_without_a_current_context():
    program = textwrap.dedent(
        """
        from cuda.core import Device, LegacyPinnedMemoryResource, PinnedMemoryResource
        for make in (LegacyPinnedMemoryResource, PinnedMemoryResource):
            mr = make()
            b = mr.allocate(100, stream=Device(0).default_stream)
            assert b.size == 100 and b.is_host_accessible
            b.fill(1, stream=Device(0).default_stream)
            b.close()
            b = mr.allocate(100, stream=Device(0).create_stream())
        """
    )
    done = python(program, options=("-W", "ignore"))
    assert (done.returncode, done.stderr) == (0, "")


def test_both_default_pools_are_separate(device, stream):
    assert int(PinnedMemoryResource().handle) != int(DeviceMemoryResource(device).handle)
