"""Misuse of `cuda.core` memory: a clear error or the documented result, never a crash.

The tables hold calls as text, so that each is a test of its own; they are evaluated in `scope`.
"""

import collections.abc
import contextlib
import gc
import threading

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import (
    Buffer,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    Host,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ManagedBuffer,
    ManagedMemoryResource,
    MemoryResource,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
    Program,
    VirtualMemoryResource,
    VirtualMemoryResourceOptions,
    launch,
    utils,
)
from cuda.core._utils.cuda_utils import CUDAError

from helpers.device import check, on_cpu_device
from helpers.threads import run_all

HUGE = 2**63
KERNEL = 'extern "C" __global__ void touch(unsigned char *p) { *p = 1; }'


class Own(MemoryResource):
    """A Python resource."""

    is_device_accessible, is_host_accessible, device_id = True, False, 0

    def __init__(self, pool):
        self.pool, self.kept, self.lock = pool, {}, threading.Lock()

    def allocate(self, size, *, stream):
        memory = self.pool.allocate(size, stream=stream)
        with self.lock:
            self.kept.setdefault(int(memory.handle), []).append(memory)
        return Buffer.from_handle(memory.handle, size, mr=self, stream=stream)

    def deallocate(self, ptr, size, *, stream):
        with self.lock:
            memory = self.kept[int(ptr)].pop()
        memory.close(stream)


class Shown:
    """Exposes memory through a given interface."""

    def __init__(self, name, interface):
        setattr(self, name, interface)


@pytest.fixture(scope="module")
def scope(device):
    """The names that the tables use."""
    stream = device.create_stream()
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25))
    closed_pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25))
    closed_pool.close()
    resources = {
        "pool": pool,
        "current": DeviceMemoryResource(device),
        "pinned": PinnedMemoryResource(),
        "legacy": LegacyPinnedMemoryResource(),
        "virtual": VirtualMemoryResource(device),
        "own": Own(pool),
    }
    with contextlib.suppress(CUDAError):
        resources["managed"] = ManagedMemoryResource()
    closed_stream = device.create_stream()
    closed_stream.close()
    strided = np.zeros((8, 8), np.uint8)[:, ::2]
    fixed = np.zeros(64, np.uint8)
    fixed.flags.writeable = False
    touch = Program(KERNEL, "c++").compile("ptx").get_kernel("touch")
    names = dict(globals(), **resources)
    names.update(resources=resources, s=stream, device=device, closed_pool=closed_pool, closed_stream=closed_stream)
    names.update(strided=strided, fixed=fixed, touch=touch, one=LaunchConfig(grid=1, block=1))
    return names


@pytest.fixture(autouse=True)
def healthy(device, scope):
    """After each test the device still works."""
    yield
    device.set_current()
    stream = scope["s"]
    with scope["pool"].allocate(4, stream=stream) as buffer:
        buffer.fill(b"\x01\x02\x03\x04", stream=stream)
        out = np.zeros(4, np.uint8)
        buffer.copy_to(out, stream=stream)
        stream.sync()
    assert out.tolist() == [1, 2, 3, 4]
    check(driver.cuCtxSynchronize())


def refused(scope, text, kind, match, **more):
    with pytest.raises(kind, match=match) as raised:
        eval(text, dict(scope, **more))
    # No error is without a message; errors of Python's sets name the element, if there is one.
    assert str(raised.value) or isinstance(raised.value, KeyError)


NAMES = ("pool", "current", "pinned", "legacy", "virtual", "own", "managed")


@pytest.fixture(params=NAMES)
def resource(scope, request):
    if request.param not in scope["resources"]:
        pytest.skip("needs pools of managed memory")
    return scope["resources"][request.param]


# ----------------------------------------------------------------------------------------------------------
# After close

CLOSED = [
    ("b.device_id", RuntimeError),
    ("b.is_device_accessible", RuntimeError),
    ("b.is_host_accessible", RuntimeError),
    ("b.is_managed", RuntimeError),
    ("b.ipc_descriptor", RuntimeError),
    ("b.copy_to(stream=s)", RuntimeError),
    ("b.copy_to(other, stream=s)", RuntimeError),
    ("other.copy_to(b, stream=s)", RuntimeError),
    ("b.copy_from(other, stream=s)", RuntimeError),
    ("other.copy_from(b, stream=s)", RuntimeError),
    ("b.copy_to(np.zeros(64, np.uint8), stream=s)", RuntimeError),
    ("b.fill(0, stream=s)", RuntimeError),
    ("b.set_deallocation_stream(s)", RuntimeError),
    ("b[:4]", RuntimeError),
    ("b[:]", RuntimeError),
    ("b.__dlpack__()", RuntimeError),
    ("b.__dlpack_device__()", RuntimeError),
    ("b.__cuda_array_interface__", RuntimeError),
    ("b.__array_interface__", RuntimeError),
    ("memoryview(b)", (RuntimeError, BufferError)),
    ("np.from_dlpack(b)", RuntimeError),
    ("launch(s, one, touch, b)", RuntimeError),
    ("b.__reduce__()", RuntimeError),
    ("utils.copy_batch(s, [b], [other])", RuntimeError),
    ("utils.copy_batch(s, [other], [b])", RuntimeError),
    ("utils.prefetch_batch(s, [b], device)", RuntimeError),
    ("utils.discard_batch(s, [b])", RuntimeError),
    ("utils.discard_prefetch_batch(s, [b], device)", RuntimeError),
    ("utils.StridedMemoryView.from_any_interface(b, stream_ptr=-1)", RuntimeError),
]


@pytest.mark.parametrize("text, kind", CLOSED)
def test_use_after_close_raises(scope, resource, text, kind):
    b, other = (resource.allocate(64, stream=scope["s"]) for _ in range(2))
    part = b[16:32]
    b.close()
    refused(scope, text, kind, "closed", b=b, other=other)
    part.close()
    refused(scope, text, kind, "closed", b=part, other=other)
    other.close()


def test_attributes_of_a_closed_buffer(scope, resource):
    b = resource.allocate(64, stream=scope["s"])
    part = b[:4]
    for buffer in (part, b):
        before = hash(buffer)
        for _ in range(3):
            buffer.close()
        buffer.close(scope["s"])
        assert buffer.is_closed and buffer.handle == 0 and buffer.size == 0
        assert buffer.memory_resource is None and buffer.owner is None and not buffer.is_mapped
        assert repr(buffer).endswith("ptr=0x0 size=0>")
        assert buffer == buffer and hash(buffer) == hash((0, 0)) != before
        with buffer as same:
            assert same is buffer


MANAGED_CLOSED = [
    "b.read_mostly",
    "setattr(b, 'read_mostly', True)",
    "b.preferred_location",
    "setattr(b, 'preferred_location', device)",
    "b.accessed_by",
    "setattr(b, 'accessed_by', {device})",
    "users.add(device)",
    "users.discard(device)",
    "set(users)",
    "len(users)",
    "device in users",
    "b.prefetch(device, stream=s)",
    "b.discard(stream=s)",
    "b.discard_prefetch(device, stream=s)",
]


@pytest.mark.parametrize("text", MANAGED_CLOSED)
def test_managed_use_after_close_raises(scope, text):
    if "managed" not in scope:
        pytest.skip("needs pools of managed memory")
    b = scope["managed"].allocate(64, stream=scope["s"])
    users = b.accessed_by
    b.close()
    refused(scope, text, RuntimeError, "closed", b=b, users=users)


POOL_CLOSED = [
    "r.allocate(4, stream=s)",
    "r.allocate(0, stream=s)",
    "r.attributes",
    "r.peer_accessible_by",
    "setattr(r, 'peer_accessible_by', [])",
    "r.allocation_handle",
    "r.register(None)",
    "r.__reduce__()",
    "peers.add(0)",
    "set(peers)",
]


@pytest.mark.parametrize("text", POOL_CLOSED)
def test_closed_resource(scope, text):
    r = DeviceMemoryResource(0, {"max_size": 1 << 25})
    buffer, peers, attributes = r.allocate(64, stream=scope["s"]), r.peer_accessible_by, r.attributes
    for _ in range(3):
        r.close()
    refused(scope, text, (RuntimeError, TypeError), "closed|IPC", r=r, peers=peers)
    # Its buffers remain, and name their resource.
    buffer.fill(1, stream=scope["s"])
    assert buffer.memory_resource is r and buffer.device_id == 0 and buffer.is_device_accessible
    assert attributes.used_mem_current >= 64
    buffer.close()
    assert r.is_closed and int(r.handle) == 0 and r.uuid is None and not r.is_handle_owned


def test_resource_without_init(scope):
    for kind in (DeviceMemoryResource, PinnedMemoryResource, ManagedMemoryResource, VirtualMemoryResource):
        r = kind.__new__(kind)
        for text in ("r.allocate(4, stream=s)", "r.deallocate(4, 4, stream=s)"):
            refused(scope, text, RuntimeError, "__init__", r=r)
        repr(type(r))
        if hasattr(kind, "close"):
            r.close()
        if hasattr(kind, "attributes"):
            refused(scope, "r.attributes", RuntimeError, "__init__", r=r)
            assert r.is_closed


# ----------------------------------------------------------------------------------------------------------
# Sizes

SIZES = [
    ("-1", OverflowError, "-1"),
    ("-2**63", OverflowError, "bytes"),
    ("2**64", OverflowError, "18446744073709551616"),
    ("2**200", OverflowError, "bytes"),
    ("1.5", TypeError, "float"),
    ("'4'", TypeError, "str"),
    ("None", TypeError, "NoneType"),
    ("[4]", TypeError, "list"),
]


@pytest.mark.parametrize("size, kind, match", SIZES)
def test_invalid_sizes_raise(scope, resource, size, kind, match):
    if resource is not scope["own"]:
        refused(scope, f"r.allocate({size}, stream=s)", kind, match, r=resource)
        refused(scope, f"r.deallocate(4096, {size}, stream=s)", kind, match, r=resource)
    refused(scope, f"Buffer.from_handle(4096, {size})", kind, match)
    refused(scope, f"device.allocate({size}, stream=s)", kind, match)


@pytest.mark.parametrize("size", [2**63, 2**64 - 1, 2**62, 2**50, 2**63 - 1, 2**64 - 4096])
def test_sizes_beyond_memory_raise(scope, resource, size):
    used = resource.attributes.used_mem_current if hasattr(resource, "attributes") else None
    with pytest.raises((CUDAError, MemoryError, OverflowError, ValueError)) as raised:
        resource.allocate(size, stream=scope["s"])
    assert str(raised.value)
    if used is not None:
        assert resource.attributes.used_mem_current == used


def test_zero_bytes(scope, resource):
    s = scope["s"]
    a, b = (resource.allocate(0, stream=s) for _ in range(2))
    assert a.size == 0 and not a.is_closed and a == b and len({a, b}) == 1
    a.copy_to(b, stream=s)
    a.copy_from(b, stream=s)
    a.copy_to(np.zeros(0), stream=s)
    a.copy_from(b"", stream=s)
    a.fill(1, stream=s)
    a.fill(b"\1\2\3\4", stream=s)
    utils.copy_batch(s, [a, a], [b, b])
    part = a[:]
    assert part.size == 0 and a[5:3].size == 0
    part.close()
    copy = a.copy_to(stream=s)
    assert copy.size == 0
    for text in ("a.copy_to(np.zeros(1), stream=s)", "a.copy_from(b'1', stream=s)"):
        refused(scope, text, ValueError, "same size", a=a)
    for buffer in (a, b, copy):
        buffer.set_deallocation_stream(s)
        buffer.close()


FOREIGN = [(0, 0), (0, 64), (4096, 0), (8, HUGE), (2**64 - 1, 2**64 - 1), (2**64 - 1, 1)]


@pytest.mark.parametrize("address, size", FOREIGN)
def test_invalid_handles_are_not_accessed(scope, address, size):
    """Claims about foreign memory are trusted until it is used; nothing here accesses it."""
    b = Buffer.from_handle(address, size)
    assert (int(b.handle), b.size) == (address, size)
    assert b.device_id == -1 and not b.is_device_accessible and b.is_host_accessible and not b.is_managed
    assert isinstance(hash(b), int) and f"size={size}" in repr(b)
    part = b[1:3]
    assert part.size == len(range(size)[1:3])
    part.close()
    b.close()
    assert b.is_closed


# ----------------------------------------------------------------------------------------------------------
# Arguments

ARGUMENTS = [
    # Buffer
    ("Buffer()", RuntimeError, "allocate"),
    ("Buffer(1, 2)", RuntimeError, "from_handle"),
    ("ManagedBuffer()", (RuntimeError, TypeError), None),
    ("Buffer.__new__(ManagedBuffer)", (RuntimeError, TypeError), None),
    ("object.__new__(Buffer)", TypeError, None),
    ("Buffer.from_handle('x', 4)", TypeError, "ptr"),
    ("Buffer.from_handle(1.5, 4)", TypeError, "ptr"),
    ("Buffer.from_handle(-1, 4)", OverflowError, "ptr"),
    ("Buffer.from_handle(2**64, 4)", OverflowError, "ptr"),
    ("Buffer.from_handle(None, 4)", TypeError, "ptr"),
    ("Buffer.from_handle(4096, 4, mr=3)", TypeError, "mr"),
    ("Buffer.from_handle(4096, 4, mr=DeviceMemoryResource)", TypeError, "mr"),
    ("Buffer.from_handle(4096, 4, mr=pool, owner=pool)", ValueError, "owner"),
    ("Buffer.from_handle(4096, 4, stream=s)", ValueError, "stream"),
    ("Buffer.from_handle(4096, 4, mr=pool, stream=3)", TypeError, "stream"),
    ("Buffer.from_handle(4096, 4, mr=pool, stream=closed_stream)", RuntimeError, "closed"),
    ("Buffer.from_handle(4096)", TypeError, "size"),
    ("b.close(3)", TypeError, "stream"),
    ("b.close('s')", TypeError, "stream"),
    ("b.close(closed_stream)", RuntimeError, "closed"),
    ("b.close(s, s)", TypeError, None),
    ("b.set_deallocation_stream(None)", TypeError, "stream"),
    ("b.set_deallocation_stream(3)", TypeError, "stream"),
    ("b.set_deallocation_stream(closed_stream)", RuntimeError, "closed"),
    ("b.copy_to()", TypeError, "stream"),
    ("b.copy_to(c)", TypeError, "stream"),
    ("b.copy_to(c, stream=None)", TypeError, "stream"),
    ("b.copy_to(c, stream=3)", TypeError, "stream"),
    ("b.copy_to(c, stream=closed_stream)", RuntimeError, "closed"),
    ("b.copy_to(small, stream=s)", ValueError, "same size"),
    ("b.copy_from(small, stream=s)", ValueError, "same size"),
    ("b.copy_to(np.zeros(65, np.uint8), stream=s)", ValueError, "64 bytes.*65"),
    ("b.copy_from(np.zeros(63, np.uint8), stream=s)", ValueError, "63 bytes.*64"),
    ("b.copy_to(3, stream=s)", TypeError, "dst"),
    ("b.copy_from(None, stream=s)", TypeError, "src"),
    ("b.copy_from('x' * 64, stream=s)", TypeError, "src"),
    ("b.copy_to(bytes(64), stream=s)", BufferError, "read-only"),
    ("b.copy_to(fixed, stream=s)", BufferError, "read-only"),
    ("b.copy_to(strided, stream=s)", BufferError, "contiguous"),
    ("b.copy_from(strided, stream=s)", BufferError, "contiguous"),
    ("b.copy_from(np.asfortranarray(np.zeros((8, 8), np.uint8)), stream=s)", BufferError, "contiguous"),
    ("b.copy_from(np.zeros(64, np.uint8)[::-1], stream=s)", BufferError, "contiguous"),
    ("b.copy_from(memoryview(bytes(128))[::2], stream=s)", BufferError, "contiguous"),
    ("b.copy_from(np.array([object()] * 8), stream=s)", TypeError, "objects"),
    ("b.copy_from(c, stream=s, options=3)", TypeError, "options"),
    ("b.copy_from(c, stream=s, options='any')", TypeError, "options"),
    ("b.fill(256, stream=s)", OverflowError, "256"),
    ("b.fill(-1, stream=s)", OverflowError, "-1"),
    ("b.fill(2**70, stream=s)", OverflowError, "value"),
    ("b.fill(1.5, stream=s)", TypeError, "float"),
    ("b.fill(None, stream=s)", TypeError, "NoneType"),
    ("b.fill(b'', stream=s)", ValueError, "0 bytes"),
    ("b.fill(b'123', stream=s)", ValueError, "3 bytes"),
    ("b.fill(np.zeros(8), stream=s)", ValueError, "64 bytes"),
    ("b.fill(strided[:2, :2], stream=s)", (BufferError, ValueError), None),
    ("b[:63].fill(b'12', stream=s)", ValueError, "multiple"),
    ("b[1:].fill(b'12', stream=s)", ValueError, "multiple"),
    ("b[1:63].fill(b'12', stream=s)", ValueError, "aligned"),
    ("b.fill(0)", TypeError, "stream"),
    ("b.fill(0, s)", TypeError, None),
    ("b[3]", TypeError, "slices"),
    ("b['x']", TypeError, "slices"),
    ("b[1, 2]", TypeError, "slices"),
    ("b[::2]", ValueError, "step"),
    ("b[::-1]", ValueError, "step"),
    ("b[::0]", ValueError, None),
    ("b[1.5:]", TypeError, None),
    ("b.__setitem__(0, 1)", (TypeError, AttributeError), None),
    ("setattr(b, 'size', 3)", AttributeError, None),
    ("setattr(b, 'handle', 3)", AttributeError, None),
    ("len(b)", TypeError, None),
    ("iter(b).__next__()", TypeError, None),
    ("b < c", TypeError, None),
    ("Buffer.from_ipc_descriptor(pool, 3, stream=s)", TypeError, "ipc_descriptor"),
    ("b.ipc_descriptor", RuntimeError, "IPC"),
    ("pickle.dumps(b)", RuntimeError, "IPC"),
    ("copy.copy(b)", RuntimeError, "IPC"),
    # Invalid interfaces
    ("b.copy_from(Shown('__cuda_array_interface__', 3), stream=s)", TypeError, "not a dict"),
    ("b.copy_from(Shown('__cuda_array_interface__', {}), stream=s)", TypeError, "typestr"),
    ("b.copy_from(Shown('__cuda_array_interface__', interface(shape=None)), stream=s)", TypeError, "shape"),
    ("b.copy_from(Shown('__cuda_array_interface__', interface(shape=(-64,))), stream=s)", TypeError, "shape"),
    ("b.copy_from(Shown('__cuda_array_interface__', interface(shape=(2**63, 4))), stream=s)", TypeError, "shape"),
    ("b.copy_from(Shown('__cuda_array_interface__', interface(data=None)), stream=s)", TypeError, "data"),
    ("b.copy_from(Shown('__cuda_array_interface__', interface(data=(-1, False))), stream=s)", TypeError, "data"),
    ("b.copy_from(Shown('__cuda_array_interface__', interface(data=(4096,))), stream=s)", TypeError, "data"),
    ("b.copy_from(Shown('__cuda_array_interface__', interface(strides=(2,))), stream=s)", BufferError, "contiguous"),
    ("b.copy_from(Shown('__cuda_array_interface__', interface(strides=(1, 1))), stream=s)", TypeError, "strides"),
    ("b.copy_from(Shown('__cuda_array_interface__', interface(stream=0)), stream=s)", TypeError, "stream"),
    ("b.copy_from(Shown('__cuda_array_interface__', interface(stream='x')), stream=s)", TypeError, "stream"),
    ("b.copy_from(Shown('__cuda_array_interface__', interface(typestr='|O8')), stream=s)", TypeError, "objects"),
    ("b.copy_to(Shown('__cuda_array_interface__', interface(data=(4096, True))), stream=s)", BufferError, "read-only"),
    ("b.copy_from(Shown('__array_interface__', interface(typestr='u')), stream=s)", TypeError, "typestr"),
    ("b.copy_from(Shown('__array_interface__', interface(data=bytes(63))), stream=s)", TypeError, "data"),
    ("b.copy_from(Shown('__array_interface__', interface(data=bytes(64), offset=1)), stream=s)", TypeError, "data"),
    ("b.copy_from(Shown('__array_interface__', interface(data=bytes(64), offset=-1)), stream=s)", TypeError, "offset"),
    # Resources
    ("MemoryResource().allocate(4, stream=s)", TypeError, "allocate"),
    ("MemoryResource().deallocate(4, 4, stream=s)", TypeError, "deallocate"),
    ("MemoryResource().device_id", TypeError, "device_id"),
    ("DeviceMemoryResource()", TypeError, "device_id"),
    ("DeviceMemoryResource(99)", ValueError, "99"),
    ("DeviceMemoryResource(-1)", ValueError, "-1"),
    ("DeviceMemoryResource(2**70)", (ValueError, OverflowError), None),
    ("DeviceMemoryResource('0')", TypeError, None),
    ("DeviceMemoryResource(0, 3)", TypeError, "options"),
    ("DeviceMemoryResource(0, {'max': 3})", TypeError, "max"),
    ("DeviceMemoryResource(0, {'max_size': -1})", OverflowError, "max_size"),
    ("DeviceMemoryResource(0, {'max_size': 2**64})", OverflowError, "max_size"),
    ("DeviceMemoryResource(0, PinnedMemoryResourceOptions())", TypeError, "options"),
    ("PinnedMemoryResource(3)", TypeError, "options"),
    ("PinnedMemoryResource({'numa_id': -1})", ValueError, "numa_id"),
    ("PinnedMemoryResource({'numa_id': 2**40})", OverflowError, "numa_id"),
    ("PinnedMemoryResource({'numa_id': 9999})", CUDAError, "(?s)INVALID.*numa_id is NUMA node 9999"),
    ("PinnedMemoryResource({'max_size': -1})", OverflowError, "max_size"),
    ("ManagedMemoryResource(3)", TypeError, "options"),
    ("ManagedMemoryResource({'preferred_location': -2})", ValueError, "preferred_location"),
    ("ManagedMemoryResource({'preferred_location': 2**40})", OverflowError, "preferred_location"),
    (
        "ManagedMemoryResource({'preferred_location': 99})",
        CUDAError,
        r"(?s)INVALID.*preferred_location is device 99",
    ),
    (
        "ManagedMemoryResource({'preferred_location': 9999, 'preferred_location_type': 'host_numa'})",
        CUDAError,
        "(?s)INVALID.*preferred_location is NUMA node 9999",
    ),
    ("ManagedMemoryResource({'preferred_location_type': 'device'})", ValueError, "preferred_location"),
    ("ManagedMemoryResource({'preferred_location_type': 'nowhere'})", ValueError, "nowhere"),
    ("VirtualMemoryResource(99)", ValueError, "99"),
    ("VirtualMemoryResource(0, 3)", TypeError, "config"),
    ("VirtualMemoryResource(0, {'granularity': 'x'})", ValueError, "granularity"),
    ("VirtualMemoryResource(0, {'addr_align': 3})", ValueError, "power of two"),
    ("VirtualMemoryResource(0, {'addr_align': -1})", (OverflowError, TypeError, ValueError), "addr_align"),
    ("VirtualMemoryResource(0, {'peers': [99]})", ValueError, "99"),
    ("VirtualMemoryResource(0, {'peers': 3})", TypeError, None),
    ("VirtualMemoryResource(0, {'self_access': 'w'})", ValueError, "self_access"),
    ("VirtualMemoryResource(0, VirtualMemoryResourceOptions(location_type='moon'))", ValueError, "moon"),
    ("virtual.modify_allocation(3, 64)", TypeError, "buf"),
    ("virtual.modify_allocation(b, 64)", CUDAError, "INVALID_VALUE"),
    ("virtual.modify_allocation(v, -1)", OverflowError, "new_size"),
    ("virtual.modify_allocation(v, 2**64)", OverflowError, "new_size"),
    ("virtual.modify_allocation(v, 2**62)", (CUDAError, MemoryError), None),
    ("virtual.modify_allocation(v, 2**64 - 1)", (CUDAError, MemoryError, ValueError), None),
    ("virtual.modify_allocation(v, 64, 3)", TypeError, "config"),
    ("pool.allocate(4, stream=3)", TypeError, "stream"),
    ("pool.allocate(4, stream=closed_stream)", RuntimeError, "closed"),
    ("pinned.allocate(4, stream=closed_stream)", RuntimeError, "closed"),
    ("legacy.allocate(4, stream=closed_stream)", RuntimeError, "closed"),
    ("virtual.allocate(4, stream=closed_stream)", RuntimeError, "closed"),
    ("legacy.allocate(4, s)", TypeError, None),
    ("pool.deallocate(0, 4, stream=s)", CUDAError, "INVALID_VALUE"),
    ("pool.deallocate(12345, 4, stream=s)", CUDAError, "INVALID_VALUE"),
    ("pool.deallocate('x', 4, stream=s)", TypeError, "ptr"),
    ("pool.deallocate(int(b.handle), 4, stream=closed_stream)", RuntimeError, "closed"),
    ("pinned.deallocate(12345, 4, stream=s)", CUDAError, "INVALID_VALUE"),
    ("legacy.deallocate(12345, 4, stream=s)", CUDAError, "INVALID_VALUE"),
    ("legacy.deallocate('x', 4, stream=s)", TypeError, "ptr"),
    ("virtual.deallocate(12345, 4, stream=s)", CUDAError, "INVALID_VALUE"),
    ("pool.peer_accessible_by.add(99)", ValueError, "99"),
    ("pool.peer_accessible_by.add('x')", TypeError, None),
    ("setattr(pool, 'peer_accessible_by', 3)", TypeError, None),
    ("setattr(pool, 'peer_accessible_by', [99])", ValueError, "99"),
    ("setattr(device, 'memory_resource', 3)", TypeError, "memory_resource|MemoryResource"),
    ("setattr(pool.attributes, 'release_threshold', 3)", AttributeError, None),
    ("type(pool.attributes)()", RuntimeError, "attributes"),
    # Batches
    ("utils.copy_batch(3, [b], [c])", TypeError, "stream"),
    ("utils.copy_batch(closed_stream, [b], [c])", RuntimeError, "closed"),
    ("utils.copy_batch(s, b, c)", TypeError, "srcs"),
    ("utils.copy_batch(s, [], [])", ValueError, "empty"),
    ("utils.copy_batch(s, [b], [])", ValueError, "empty"),
    ("utils.copy_batch(s, [b], [c, c])", ValueError, "equal numbers"),
    ("utils.copy_batch(s, [b], [small])", ValueError, "index 0"),
    ("utils.copy_batch(s, [b, b], [c, small])", ValueError, "index 1"),
    ("utils.copy_batch(s, [b], [np.zeros(64, np.uint8)])", TypeError, "element 0"),
    ("utils.copy_batch(s, [b, None], [c, c])", TypeError, "element 1"),
    ("utils.copy_batch(s, (x for x in [b]), [c])", TypeError, "sequence"),
    ("utils.copy_batch(s, {b}, {c})", TypeError, "sequence"),
    ("utils.copy_batch(s, [b], [c], options=3)", TypeError, "options"),
    ("utils.copy_batch(s, [b], [c], options=[])", ValueError, "options"),
    ("utils.copy_batch(s, [b], [c], options=[None])", TypeError, "options"),
    ("utils.copy_batch(s, Endless(b), [c])", ZeroDivisionError, "endless"),
    ("utils.prefetch_batch(s, [b], device)", ValueError, "managed"),
    ("utils.discard_batch(s, [b])", ValueError, "managed"),
    ("utils.discard_prefetch_batch(s, [b], device)", ValueError, "managed"),
    ("utils.prefetch_batch(s, [], device)", ValueError, "empty"),
    ("utils.discard_batch(s, [])", ValueError, "empty"),
    ("utils.prefetch_batch(3, [b], device)", TypeError, "stream"),
]

MANAGED_ARGUMENTS = [
    ("m.prefetch(None, stream=s)", ValueError, "location"),
    ("m.prefetch(0, stream=s)", TypeError, "location"),
    ("m.prefetch(device)", TypeError, "stream"),
    ("m.prefetch(device, stream=None)", TypeError, "stream"),
    ("m.prefetch(device, stream=closed_stream)", RuntimeError, "closed"),
    ("m.discard(stream=device.default_stream)", CUDAError, "INVALID"),
    ("m.discard_prefetch(device, stream=device.default_stream)", CUDAError, "INVALID"),
    ("m.discard(stream=closed_stream)", RuntimeError, "closed"),
    ("setattr(m, 'preferred_location', 0)", TypeError, "preferred_location"),
    ("setattr(m, 'preferred_location', 'x')", TypeError, "preferred_location"),
    ("setattr(m, 'accessed_by', 3)", TypeError, None),
    ("setattr(m, 'accessed_by', [device, 3])", TypeError, "accessed_by"),
    ("setattr(m, 'accessed_by', [None])", TypeError, "accessed_by"),
    ("setattr(m, 'accessed_by', [Host(numa_id=0)])", ValueError, "NUMA"),
    ("m.accessed_by.add(3)", TypeError, None),
    ("m.accessed_by.add(Host.numa_current())", ValueError, "NUMA"),
    ("m.accessed_by.remove(device)", KeyError, None),
    ("m.accessed_by.pop()", KeyError, None),
    ("hash(m.accessed_by)", TypeError, None),
    ("utils.prefetch_batch(s, [m], None)", ValueError, "locations"),
    ("utils.prefetch_batch(s, [m], 0)", TypeError, "locations"),
    ("utils.prefetch_batch(s, [m], [device, device])", ValueError, "locations for"),
    ("utils.prefetch_batch(s, [m], [])", ValueError, "locations for"),
    ("utils.prefetch_batch(s, [m, b], device)", ValueError, "managed"),
    ("utils.discard_batch(device.default_stream, [m])", CUDAError, "INVALID"),
    ("utils.discard_prefetch_batch(s, [m], [None])", ValueError, "locations"),
    ("ManagedBuffer.from_handle(b.handle, 64).prefetch(device, stream=s)", ValueError, "managed"),
    ("ManagedBuffer.from_handle(b.handle, 64).read_mostly", CUDAError, None),
    ("setattr(ManagedBuffer.from_handle(b.handle, 64), 'read_mostly', True)", ValueError, "managed"),
]


class Endless(collections.abc.Sequence):
    """A sequence that fails during iteration."""

    def __init__(self, buffer):
        self.buffer = buffer

    def __len__(self):
        return 1

    def __getitem__(self, index):
        if index == 5:
            raise ZeroDivisionError("endless")
        return self.buffer


def interface(**changes):
    found = {"shape": (64,), "typestr": "|u1", "data": (4096, False), "version": 3, **changes}
    return {key: value for key, value in found.items() if value is not None}


@pytest.fixture
def buffers(scope):
    import copy
    import pickle

    s = scope["s"]
    made = {name: scope["pool"].allocate(size, stream=s) for name, size in (("b", 64), ("c", 64), ("small", 32))}
    made["v"] = scope["virtual"].allocate(64, stream=s)
    if "managed" in scope:
        made["m"] = scope["managed"].allocate(64, stream=s)
    yield dict(made, pickle=pickle, copy=copy, interface=interface, Endless=Endless, Shown=Shown)
    for buffer in made.values():
        assert not buffer.is_closed
        buffer.close()


@pytest.mark.parametrize("text, kind, match", ARGUMENTS)
def test_invalid_arguments_raise(scope, buffers, text, kind, match):
    size = buffers["v"].size
    used = scope["pool"].attributes.used_mem_current
    if text.startswith("pool.deallocate(0") and not on_cpu_device():
        pytest.skip("a GPU's driver accepts a free of address 0")
    if text.startswith("ManagedMemoryResource") and "managed" not in scope:
        pytest.skip("needs pools of managed memory")
    refused(scope, f"({text})", kind, match, **buffers)
    assert scope["pool"].attributes.used_mem_current == used
    assert buffers["v"].size == size


@pytest.mark.parametrize("text, kind, match", MANAGED_ARGUMENTS)
def test_invalid_arguments_of_managed_memory_raise(scope, buffers, text, kind, match):
    if "managed" not in scope:
        pytest.skip("needs pools of managed memory")
    refused(scope, f"({text})", kind, match, **buffers)


def test_size_may_be_an_index_object(scope, resource):
    class Count:
        def __index__(self):
            return 64

    class Fails:
        def __index__(self):
            raise ZeroDivisionError

    if resource is not scope["own"]:
        resource.allocate(Count(), stream=scope["s"]).close()
        with pytest.raises((TypeError, ZeroDivisionError)):
            resource.allocate(Fails(), stream=scope["s"])
    resource.allocate(np.int64(64), stream=scope["s"]).close()
    resource.allocate(True, stream=scope["s"]).close()


# ----------------------------------------------------------------------------------------------------------
# Concurrent changes


def test_refused_close_leaves_the_buffer_open(scope, resource):
    b = resource.allocate(64, stream=scope["s"])
    for wrong in (3, "x", scope["closed_stream"]):
        with pytest.raises((TypeError, RuntimeError)):
            b.close(wrong)
        assert not b.is_closed and b.size >= 64
        b.fill(1, stream=scope["s"])
    b.close()


def test_copy_to_itself_and_to_its_slices(scope, resource):
    s = scope["s"]
    b = resource.allocate(64, stream=s)
    b.fill(7, stream=s)
    b.copy_to(b, stream=s)
    low, high = b[:32], b[32:64]
    high.fill(9, stream=s)
    low.copy_from(high, stream=s)
    utils.copy_batch(s, [high], [low])
    out = np.zeros(64, np.uint8)
    b[:64].copy_to(out, stream=s)
    s.sync()
    assert set(out.tolist()) == {9}
    b.close()


def test_source_that_closes_the_destination(scope, resource):
    """Python code runs while a copy is prepared; the memory stays allocated until it completes."""
    s = scope["s"]
    target, source = (resource.allocate(64, stream=s) for _ in range(2))
    size = target.size
    source.fill(5, stream=s)
    s.sync()

    class Closes:
        @property
        def __cuda_array_interface__(self):
            target.close()
            return interface(shape=(size,), data=(int(source.handle), False))

    target.copy_from(Closes(), stream=s)
    assert target.is_closed
    s.sync()
    source.close()


def test_refused_calls_keep_nothing_alive(scope, resource):
    """The memory is freed when the buffer is closed."""
    s = scope["s"]
    array = bytearray(64)
    b = resource.allocate(64, stream=s)
    for text in ("b.copy_to(array, stream=3)", "b.copy_from(array[:1], stream=s)", "utils.copy_batch(s, [b], [array])"):
        with pytest.raises((TypeError, ValueError)):
            eval(text, dict(scope, b=b, array=array))
    array.extend(b"free")
    part = b[:8]
    with pytest.raises((CUDAError, RuntimeError)):
        scope["virtual"].modify_allocation(b, 1 << 22)
    part.close()
    b.close()


def test_threads_close_and_use_a_buffer(scope, resource):
    """A use succeeds or raises because the buffer is closed."""
    s, device = scope["s"], scope["device"]
    errors = []
    for _ in range(10):
        b, other = (resource.allocate(64, stream=s) for _ in range(2))
        start = threading.Barrier(4)

        def use(number, b=b, other=other, start=start):
            device.set_current()
            start.wait()
            for _ in range(5):
                for text in (
                    "b.fill(1, stream=s)",
                    "b.copy_to(other, stream=s)",
                    "utils.copy_batch(s, [other], [b])",
                    "launch(s, one, touch, b)",
                    "b[:8].close()",
                    "b.__dlpack_device__()",
                    "b.device_id",
                    "b.set_deallocation_stream(s)",
                    "b == other, hash(b), repr(b), b.size",
                    "b.close()" if number == 3 else "b.owner",
                ):
                    try:
                        eval(text, dict(scope, b=b, other=other))
                    except RuntimeError as error:
                        if "closed" not in str(error) and "no device" not in str(error):
                            errors.append(error)

        threads = [threading.Thread(target=use, args=(n,)) for n in range(4)]
        run_all(threads, errors)
        assert b.is_closed
        other.close()
    assert errors == []


def test_exhausted_pool(scope):
    """Out of memory is an error without effect; after a free, allocation works again."""
    s = scope["s"]
    pool = DeviceMemoryResource(0, {"max_size": 1 << 25})
    taken = []
    with pytest.raises(CUDAError, match="OUT_OF_MEMORY"):
        while True:
            taken.append(pool.allocate(1 << 23, stream=s))
    assert 1 <= len(taken) <= 4
    taken.pop().close()
    s.sync()
    taken.append(pool.allocate(1 << 23, stream=s))
    for buffer in taken:
        buffer.close()
    s.sync()
    assert pool.attributes.used_mem_current == 0
    pool.close()


def test_stream_closed_before_its_memory(scope, resource):
    """Memory of a closed stream is used and freed all the same."""
    s = scope["s"]
    own = scope["device"].create_stream()
    b = resource.allocate(64, stream=own)
    own.close()
    b.fill(1, stream=s)
    content = np.zeros(b.size, np.uint8)  # virtual memory has whole pages
    b.copy_to(content, stream=s)
    s.sync()
    assert (content == 1).all()
    b.close()
    own = scope["device"].create_stream()
    b = resource.allocate(64, stream=s)
    b.set_deallocation_stream(own)
    own.close()
    b.close()
    assert b.is_closed
