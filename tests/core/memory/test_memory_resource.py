"""cuda.core: MemoryResource, DeviceMemoryResource, the fallback without pools."""

import dataclasses
import gc
import pickle
import threading
import uuid
import weakref

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import (
    LEGACY_DEFAULT_STREAM,
    Buffer,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    LegacyPinnedMemoryResource,
    MemoryResource,
    VirtualMemoryResource,
)
from cuda.core._memory._device_memory_resource import DMR_mempool_get_access
from cuda.core._memory._legacy import _SynchronousMemoryResource
from cuda.core._memory._memory_pool import _MemPool
from cuda.core._utils.cuda_utils import CUDAError

from helpers.device import check
from helpers.threads import run_all


def test_base_class_is_abstract(stream):
    base = MemoryResource(1, a=2)
    assert not base.is_managed
    uses = {
        "allocate": lambda: base.allocate(1, stream=stream),
        "deallocate": lambda: base.deallocate(1, 1, stream=stream),
        "is_device_accessible": lambda: base.is_device_accessible,
        "is_host_accessible": lambda: base.is_host_accessible,
        "device_id": lambda: base.device_id,
    }
    for name, use in uses.items():
        with pytest.raises(TypeError, match=name):
            use()


@pytest.mark.parametrize("make", [VirtualMemoryResource, _SynchronousMemoryResource, LegacyPinnedMemoryResource])
def test_synchronous_resources_accept_a_graph_builder_as_stream(device, make):
    resource = make() if make is LegacyPinnedMemoryResource else make(device)
    builder = device.create_graph_builder()
    with pytest.raises(RuntimeError, match="begin_building"):
        resource.allocate(64, stream=builder)
    builder.begin_building()
    resource.allocate(64, stream=builder).close()
    memory = resource.allocate(64, stream=builder)
    memory.fill(7, stream=builder)
    graph = builder.end_building().complete()
    stream = device.create_stream()
    graph.launch(stream)
    result = LegacyPinnedMemoryResource().allocate(memory.size)
    memory.copy_to(result, stream=stream)
    stream.sync()
    assert bytes(memoryview(result)[:64]) == bytes([7] * 64)


def test_python_resource_serves_a_device(stream):
    class Counting(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = True, False, 0

        def __init__(self, inner):
            self.inner, self.sizes, self.live = inner, [], {}

        def allocate(self, size, *, stream):
            self.sizes.append((size, stream))
            memory = self.inner.allocate(size, stream=stream)
            self.live[memory.handle] = memory
            return Buffer.from_handle(memory.handle, size, mr=self)

        def deallocate(self, ptr, size, *, stream):
            self.live.pop(ptr).close(stream)

    class Wrong(MemoryResource):
        def allocate(self, size, *, stream):
            return size

    device = Device(0)
    before = device.memory_resource
    assert before is device.memory_resource and type(before) is DeviceMemoryResource
    try:
        device.memory_resource = counting = Counting(before)
        assert device.memory_resource is counting
        buffer = device.allocate(100, stream=stream)
        assert buffer.memory_resource is counting and counting.sizes == [(100, stream)]
        same = buffer.copy_to(stream=stream)
        assert counting.sizes[1:] == [(100, stream)]
        for made in (buffer, same, device.allocate(5)):
            made.close()
        assert not counting.live
        device.memory_resource = Wrong()
        with pytest.raises(TypeError, match="returned.*int"):
            device.allocate(1, stream=stream)
        for wrong in (None, 5, before.handle):
            with pytest.raises(TypeError, match="MemoryResource"):
                device.memory_resource = wrong
    finally:
        device.memory_resource = before


def test_device_has_a_default_pool(device):
    resource = DeviceMemoryResource(device)
    other = DeviceMemoryResource(0)
    assert resource.handle == other.handle and resource != other
    assert int(resource.handle) == int(check(driver.cuDeviceGetMemPool(0)))
    assert not resource.is_handle_owned and not resource.is_closed
    assert (resource.device_id, resource.is_device_accessible, resource.is_host_accessible) == (0, True, False)
    assert not resource.is_managed
    # Freed memory is kept for reuse.
    assert resource.attributes.release_threshold == 2**64 - 1
    assert weakref.ref(resource)() is resource
    resource.close()
    assert not other.is_closed and not device.memory_resource.is_closed
    other.allocate(1, stream=LEGACY_DEFAULT_STREAM).close()


def test_own_pool_with_options(device, stream):
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=64 << 20))
    assert pool.is_handle_owned and pool.handle != DeviceMemoryResource(device).handle
    buffer = pool.allocate(1 << 20, stream=stream)
    assert buffer.memory_resource is pool and buffer.size == 1 << 20
    with pytest.raises(CUDAError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        pool.allocate(1 << 30, stream=stream)
    assert pool.attributes.used_mem_current >= 1 << 20
    buffer.close()
    stream.sync()
    assert pool.attributes.used_mem_current == 0 and pool.attributes.used_mem_high >= 1 << 20


def test_allocate_checks_its_arguments(device, stream):
    pool = device.memory_resource
    for wrong in ("3", None, 1.5, [1]):
        with pytest.raises(TypeError, match="'size'"):
            pool.allocate(wrong, stream=stream)
        with pytest.raises(TypeError, match="'size'"):
            device.allocate(wrong, stream=stream)
    for wrong in (-1, 1 << 65):
        with pytest.raises(OverflowError, match="'size'"):
            pool.allocate(wrong, stream=stream)
    with pytest.raises(CUDAError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        pool.allocate(1 << 45, stream=stream)
    with pytest.raises(TypeError, match="'stream'.*int"):
        pool.allocate(1, stream=5)
    assert pool.allocate(True, stream=stream).size == 1
    assert pool.allocate(np.uint16(300), stream=stream).size == 300


def test_deprecated_stream_arguments(device, stream):
    pool = device.memory_resource
    assert pool.allocate(10, stream).size == 10
    with pytest.warns(DeprecationWarning, match="default_stream"):
        buffer = pool.allocate(10)
    buffer.close()
    for arguments in ((), (stream,), (None,)):
        with device.allocate(10, *arguments) as buffer:
            assert buffer.size == 10


def test_deallocate_takes_an_address(device, stream):
    pool = DeviceMemoryResource(device, {})
    for handle in (int, driver.CUdeviceptr):
        address = check(driver.cuMemAllocFromPoolAsync(64, pool.handle, stream.handle))
        pool.deallocate(handle(int(address)), 64, stream=stream)
    stream.sync()
    assert pool.attributes.used_mem_current == 0
    with pytest.raises(CUDAError):
        pool.deallocate(0x1234, 1, stream=stream)
    for wrong in (None, "a", 1.5):
        with pytest.raises(TypeError, match="'ptr'"):
            pool.deallocate(wrong, 1, stream=stream)
    with pytest.raises(TypeError, match="stream"):
        pool.deallocate(1, 1)
    # Allocations outlive the resource and can be freed afterwards.
    address = check(driver.cuMemAllocFromPoolAsync(64, pool.handle, stream.handle))
    keeps = pool.attributes
    pool.close()
    pool.deallocate(address, 64, stream=stream)
    stream.sync()
    assert keeps.used_mem_current == 0


def test_attributes(device, stream):
    pool = DeviceMemoryResource(device, {})
    attributes = pool.attributes
    assert attributes is pool.attributes
    names = ["reuse_follow_event_dependencies", "reuse_allow_opportunistic", "reuse_allow_internal_dependencies"]
    assert all(getattr(attributes, name) is True for name in names)
    assert attributes.release_threshold == 0
    handle, kind = pool.handle, driver.CUmemPool_attribute
    value = driver.cuuint64_t(12345)
    check(driver.cuMemPoolSetAttribute(handle, kind.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, value))
    assert attributes.release_threshold == 12345
    buffer = pool.allocate(1000, stream=stream)
    assert attributes.used_mem_current >= 1000 and attributes.reserved_mem_current >= attributes.used_mem_current
    assert attributes.reserved_mem_high >= attributes.reserved_mem_current
    text = repr(attributes)
    assert text.startswith("_MemPoolAttributes(release_threshold=12345, reserved_mem_current=")
    assert f"used_mem_high={attributes.used_mem_high})" in text
    for name in [*names, "release_threshold", "used_mem_high"]:
        with pytest.raises(AttributeError):
            setattr(attributes, name, 0)
    with pytest.raises(RuntimeError, match="mr.attributes"):
        type(attributes)()
    buffer.close()
    # They keep their pool alive.
    pool.close()
    assert attributes.release_threshold == 12345
    with pytest.raises(RuntimeError, match="was closed"):
        pool.attributes


def test_use_after_close_raises(device, stream):
    pool = DeviceMemoryResource(device, {})
    buffer = pool.allocate(64, stream=stream)
    pool.close()
    pool.close()
    assert pool.is_closed and int(pool.handle) == 0 and not pool.is_handle_owned
    assert (pool.device_id, pool.is_device_accessible, pool.is_host_accessible) == (0, True, False)
    uses = [
        lambda: pool.allocate(1, stream=stream),
        lambda: pool.attributes,
        lambda: pool.peer_accessible_by,
        lambda: setattr(pool, "peer_accessible_by", []),
        lambda: pool.allocation_handle,
        lambda: pool.register(None),
        lambda: buffer.copy_to(stream=stream),
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="was closed"):
            use()
    # Its buffers remain valid.
    buffer.fill(3, stream=stream)
    out = np.zeros(64, np.uint8)
    buffer.copy_to(out, stream=stream)
    stream.sync()
    assert (out == 3).all()


def test_constructor_arguments(device):
    with pytest.raises(TypeError):
        DeviceMemoryResource()
    with pytest.raises(TypeError, match="'device_id'"):
        DeviceMemoryResource("a")
    for wrong in (99, -1):
        with pytest.raises(ValueError, match="'device_id'"):
            DeviceMemoryResource(wrong)
    with pytest.raises(TypeError, match="DeviceMemoryResourceOptions"):
        DeviceMemoryResource(0, 5)
    with pytest.raises(TypeError, match="max"):
        DeviceMemoryResource(0, {"max": 1})
    with pytest.raises((OverflowError, ValueError), match="max_size"):
        DeviceMemoryResource(0, {"max_size": -1})
    assert DeviceMemoryResource(None).device_id == 0


def test_options_are_value_objects():
    options = DeviceMemoryResourceOptions()
    assert options == DeviceMemoryResourceOptions(False, 0) != DeviceMemoryResourceOptions(max_size=1)
    assert repr(DeviceMemoryResourceOptions(3, 4)) == "DeviceMemoryResourceOptions(ipc_enabled=True, max_size=4)"
    assert [field.name for field in dataclasses.fields(options)] == ["ipc_enabled", "max_size"]
    with pytest.raises(TypeError, match="max_size"):
        DeviceMemoryResourceOptions(max_size="a")
    with pytest.raises(TypeError):
        hash(options)


def test_pickling_raises(device):
    pool = DeviceMemoryResource(device, {})
    assert (pool.is_ipc_enabled, pool.is_mapped, pool.uuid) == (False, False, None)
    for use in (lambda: pool.allocation_handle, lambda: pool.register(uuid.uuid4()), lambda: pickle.dumps(pool)):
        with pytest.raises(RuntimeError, match="IPC"):
            use()
    with pytest.raises(RuntimeError, match="registered"):
        DeviceMemoryResource.from_registry(uuid.UUID(int=3))
    with pytest.raises(OSError, match="descriptor"):
        DeviceMemoryResource.from_allocation_handle(device, 1 << 20)


def test_derived_classes(device, stream):
    class Named(DeviceMemoryResource):
        def __init__(self, name):
            super().__init__(0, {"max_size": 32 << 20})
            self.name = name

    class Forgetful(DeviceMemoryResource):
        def __init__(self):
            pass

    resource = Named("mine")
    buffer = resource.allocate(64, stream=stream)
    assert buffer.memory_resource is resource and resource.name == "mine" and resource.is_handle_owned
    assert isinstance(resource, (_MemPool, MemoryResource))
    for unmade in (Forgetful(), _MemPool()):
        with pytest.raises(RuntimeError, match="not initialized"):
            unmade.allocate(1, stream=stream)
    resource.buffer = buffer
    reference = weakref.ref(resource)
    del resource, buffer
    gc.collect()
    assert reference() is None


def test_threads_share_a_resource(device):
    pool = DeviceMemoryResource(device, {})
    wrong = []

    def work(value):
        stream = Device(0).create_stream()
        out = np.empty(4096, np.uint8)
        for _ in range(50):
            with pool.allocate(4096, stream=stream) as buffer:
                buffer.fill(value, stream=stream)
                buffer.copy_to(out, stream=stream)
                stream.sync()
                if not (out == value).all():
                    wrong.append(value)

    threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
    run_all(threads, wrong)
    device.sync()
    assert not wrong and pool.attributes.used_mem_current == 0


# Peer access --------------------------------------------------------------------------------------------


def test_peer_access_of_one_device(device):
    pool = DeviceMemoryResource(device, {})
    proxy = pool.peer_accessible_by
    assert repr(proxy) == "PeerAccessibleBySetProxy(set())" and len(proxy) == 0 and proxy == set()
    proxy.add(0)
    proxy.update([device], [0])
    assert 0 not in proxy and device not in proxy and "a" not in proxy and 99 not in proxy
    assert type(proxy | {device}) is set
    proxy |= {0}
    proxy.discard(0)
    proxy.clear()
    with pytest.raises(KeyError):
        proxy.remove(0)
    pool.peer_accessible_by = [0, device]
    for wrong, error in (([99], ValueError), (["a"], TypeError), (5, TypeError), (None, TypeError)):
        with pytest.raises(error):
            pool.peer_accessible_by = wrong
    # Devices that do not exist have no access to revoke.
    proxy.difference_update([99], [100])
    proxy -= {99}
    proxy ^= {99}
    assert proxy == set()
    assert DMR_mempool_get_access(pool, 0) == "rw"
    with pytest.raises(ValueError, match="99"):
        DMR_mempool_get_access(pool, 99)
    pool.close()
    with pytest.raises(RuntimeError, match="was closed"):
        list(proxy)


def test_peer_access_of_two_devices(stream):
    if len(Device.get_all_devices()) < 2 or not Device(0).can_access_peer(1):
        pytest.skip("needs two devices with peer access")
    one = Device(1)
    pool = DeviceMemoryResource(0, {})
    proxy = pool.peer_accessible_by
    proxy.add(1)
    assert set(proxy) == {one} and 1 in proxy and one in proxy and len(proxy) == 1
    assert DMR_mempool_get_access(pool, 1) == "rw"
    proxy ^= {1}
    assert not proxy
    pool.peer_accessible_by = [one]
    assert pool.peer_accessible_by == {one}
    proxy &= {0}
    assert not proxy and DMR_mempool_get_access(pool, 1) == ""
    # A pool of the other device, used and freed while the first one is current.
    there = DeviceMemoryResource(1, {})
    buffer = there.allocate(64, stream=LEGACY_DEFAULT_STREAM)
    assert buffer.device_id == 1
    buffer.fill(5, stream=LEGACY_DEFAULT_STREAM)
    out = np.zeros(64, np.uint8)
    buffer.copy_to(out, stream=LEGACY_DEFAULT_STREAM)
    one.sync()
    assert (out == 5).all()
    buffer.close()
    one.sync()
    assert there.attributes.used_mem_current == 0


# Without pools ------------------------------------------------------------------------------------


def test_device_without_pools_uses_synchronous_allocation(device, stream):
    resource = _SynchronousMemoryResource(device)
    assert (resource.device_id, resource.is_device_accessible, resource.is_host_accessible) == (0, True, False)
    for arguments in ({}, {"stream": None}, {"stream": stream}):
        buffer = resource.allocate(10, **arguments)
        assert buffer.memory_resource is resource and buffer.device_id == 0
        buffer.fill(3, stream=stream)
        out = bytearray(10)
        buffer.copy_to(out, stream=stream)
        stream.sync()
        assert out == b"\3" * 10
        address = buffer.handle
        buffer.close(stream)
        with pytest.raises(CUDAError):
            resource.deallocate(address, 10)
    address = int(check(driver.cuMemAlloc(64)))
    resource.deallocate(address, 64, stream=stream)
    assert resource.allocate(0).handle == 0
    with pytest.raises(TypeError, match="'stream'"):
        resource.allocate(1, stream=4)
    with pytest.raises(TypeError, match="'device_id'"):
        _SynchronousMemoryResource("a")
