"""Memory resources: pinned, legacy pinned, managed, virtual, and user-defined ones."""

from .devices import COMMON, CURRENT

RESOURCES = (
    CURRENT
    + """
import array, gc
from cuda.core.typing import *
s = d.create_stream()
mr = DeviceMemoryResource(d)
def about(m):
    return {n: getattr(m, n) for n in ("device_id", "is_device_accessible", "is_host_accessible", "is_managed", "is_handle_owned", "is_ipc_enabled", "is_mapped", "is_closed", "uuid")}
def buffer(b):
    return type(b).__name__, b.size, b.handle != 0, b.device_id, b.is_device_accessible, b.is_host_accessible, b.is_managed, b.is_mapped, b.__dlpack_device__()
"""
)

VIRTUAL = (
    RESOURCES
    + """
V, O = VirtualMemoryResource, VirtualMemoryResourceOptions
v = V(d)
def wait():
    s.sync()
def host(b):
    h = LegacyPinnedMemoryResource().allocate(b.size)
    b.copy_to(h, stream=s); s.sync()
    a = np.from_dlpack(h)
    return a[:2].tolist(), a[-2:].tolist()
"""
)

GROUPS = {
    "memory resource: base": (
        RESOURCES
        + """
class Sub(MemoryResource): pass
class Full(MemoryResource):
    device_id, is_device_accessible, is_host_accessible = 7, False, True
""",
        """
        public(MemoryResource)
        type(MemoryResource())
        MemoryResource() == MemoryResource(), hash(MemoryResource()) == 0
        MemoryResource().device_id
        MemoryResource().is_device_accessible
        MemoryResource().is_host_accessible
        MemoryResource().is_managed
        MemoryResource().allocate(4, stream=s)
        MemoryResource().allocate(4)
        MemoryResource().deallocate(4, 4, stream=s)
        MemoryResource().deallocate(4, 4)
        MemoryResource().foo = 1
        MemoryResource().foo
        weakref.ref(MemoryResource())
        x = Sub(); x.foo = 3; x.foo, weakref.ref(x)() is x
        Sub(1, 2, a=3).is_managed
        Full().device_id, Full().is_device_accessible, Full().is_host_accessible, Full().is_managed
        [issubclass(c, MemoryResource) for c in (DeviceMemoryResource, PinnedMemoryResource, ManagedMemoryResource, VirtualMemoryResource, LegacyPinnedMemoryResource)]
        isinstance(3, MemoryResource)
        """,
    ),
    "pinned memory: options": (
        COMMON,
        """
        PinnedMemoryResourceOptions()
        PinnedMemoryResourceOptions(True, 5, 0)
        PinnedMemoryResourceOptions(ipc_enabled=1), PinnedMemoryResourceOptions(ipc_enabled=None)
        PinnedMemoryResourceOptions(max_size=-1)
        PinnedMemoryResourceOptions(max_size="x")
        PinnedMemoryResourceOptions(numa_id="x")
        PinnedMemoryResourceOptions(foo=3)
        o = PinnedMemoryResourceOptions(); o.numa_id = 7; o
        o.foo = 3
        hash(o)
        o == PinnedMemoryResourceOptions(numa_id=7), o != PinnedMemoryResourceOptions(), o == 3
        o < o
        pickle.loads(pickle.dumps(o))
        copy.copy(o) == o, dataclasses.asdict(o), dataclasses.replace(o, max_size=3)
        [(f.name, f.default) for f in dataclasses.fields(PinnedMemoryResourceOptions)]
        """,
    ),
    "pinned memory: without a context": (
        COMMON,
        """
        PinnedMemoryResource().device_id
        d = Device(0); type(PinnedMemoryResource()).__name__
        PinnedMemoryResource().numa_id, PinnedMemoryResource({}).is_handle_owned
        PinnedMemoryResource({"ipc_enabled": True})
        """,
    ),
    "pinned memory: resource": (
        RESOURCES + "m = PinnedMemoryResource()\n",
        """
        public(PinnedMemoryResource)
        m
        about(m), m.numa_id
        type(m.handle), PinnedMemoryResource().handle == m.handle, PinnedMemoryResource() == m, m == m
        public(m.attributes)
        m.attributes.release_threshold, m.attributes is m.attributes
        m.allocation_handle
        m.register(3)
        PinnedMemoryResource.from_registry(3)
        PinnedMemoryResource.from_allocation_handle(9999)
        PinnedMemoryResource.from_allocation_handle(-1)
        PinnedMemoryResource.from_allocation_handle(None)
        PinnedMemoryResource.from_allocation_handle(3, 4)
        m.peer_accessible_by
        m.foo = 3
        m.device_id = 3
        copy.copy(m)
        pickle.loads(pickle.dumps(m))
        weakref.ref(m)() is m
        m.allocate(16)
        m.allocate(16, stream=None)
        m.allocate(16, stream=3)
        m.allocate(16, s)
        m.allocate(16, stream=Streamlike((0, int(s.handle))))
        m.allocate(-1, stream=s)
        m.allocate("x", stream=s)
        m.allocate(None, stream=s)
        m.allocate(1 << 62, stream=s)
        m.allocate(1 << 70, stream=s)
        b = m.allocate(0, stream=s); b.handle, b.size, b.memory_resource is m
        b = m.allocate(64, stream=s); buffer(b)
        b.memory_resource is m, b.owner
        b.ipc_descriptor
        b.fill(3, stream=s); s.sync(); np.from_dlpack(b)[:3].tolist()
        np.from_dlpack(b)[:] = 5; c = b.copy_to(stream=s); s.sync(); c.memory_resource is m, np.from_dlpack(c)[-3:].tolist()
        x = mr.allocate(64, stream=s); b.copy_to(x, stream=s) is x
        np.from_dlpack(b)[:] = 0; x.copy_to(b, stream=s); s.sync(); set(np.from_dlpack(b).tolist())
        m.deallocate(0, 0, stream=s)
        m.deallocate(0, 0)
        m.deallocate(0, 0, stream=None)
        m.close(), m.is_closed
        about(m), m.numa_id
        m.handle
        m.allocate(4, stream=s)
        m.attributes
        b.is_closed, b.size, b.memory_resource is m
        b.close(), b.is_closed
        m.close()
        PinnedMemoryResource().allocate(4, stream=s).size
        """,
    ),
    "pinned memory: pools of its own": (
        RESOURCES,
        """
        PinnedMemoryResource(3)
        PinnedMemoryResource("x")
        PinnedMemoryResource({"foo": 1})
        PinnedMemoryResource(foo=1)
        PinnedMemoryResource(None, None)
        PinnedMemoryResource({"numa_id": -1})
        PinnedMemoryResource({"numa_id": 1 << 40})
        PinnedMemoryResource({"max_size": -1})
        PinnedMemoryResource({}).is_handle_owned, PinnedMemoryResource(PinnedMemoryResourceOptions()).is_handle_owned, PinnedMemoryResource(options=None).is_handle_owned
        m = PinnedMemoryResource({"max_size": 1 << 21}); about(m), m.numa_id
        m.handle == PinnedMemoryResource().handle
        m.allocate(1 << 28, stream=s)
        b = m.allocate(100, stream=s); s.sync(); m.attributes.used_mem_current, m.attributes.used_mem_high
        m.attributes
        m.close(); b.is_closed, b.size, b.is_host_accessible, b.device_id
        b.fill(3, stream=s)
        b.close(); b.is_closed
        m = PinnedMemoryResource({}); b = m.allocate(64, stream=s); p = b.handle; m.close(); m.is_handle_owned, m.is_closed
        PinnedMemoryResource({"numa_id": 0}).numa_id
        class Sub(PinnedMemoryResource): pass
        x = Sub(); x.foo = 3; x.allocate(3, stream=s).memory_resource is x
        """,
    ),
    "legacy pinned memory": (
        RESOURCES + "l = LegacyPinnedMemoryResource()\n",
        """
        public(LegacyPinnedMemoryResource)
        l
        l.is_device_accessible, l.is_host_accessible, l.is_managed
        l.device_id
        b = l.allocate(16); b, b.size, b.memory_resource is l, b.owner
        b.is_device_accessible, b.is_host_accessible, b.is_managed, b.is_mapped, b.__dlpack_device__()
        b.device_id
        b.ipc_descriptor
        b.fill(1, stream=s); s.sync(); np.from_dlpack(b).tolist()
        c = b.copy_to(stream=s); s.sync(); c.memory_resource is l, np.from_dlpack(c)[:2].tolist()
        b.close(), b.close(s), b.is_closed
        l.allocate(16, stream=s).size, l.allocate(16, stream=None).size, l.allocate(size=16).size
        l.allocate(16, stream=3)
        l.allocate(16, s)
        l.allocate(16, stream=Streamlike((0, int(s.handle))))
        l.allocate(0).handle, l.allocate(0).size
        l.allocate(-1)
        l.allocate("x")
        l.allocate(None)
        l.allocate(1 << 62)
        l.allocate(1 << 70)
        l.allocate()
        l.deallocate(0, 0)
        l.deallocate(0, 0, stream=s)
        l.deallocate(0, 0, stream=3)
        p = driver.cuMemAllocHost(64)[1]; l.deallocate(int(p), 64)
        p = driver.cuMemAllocHost(64)[1]; l.deallocate(int(p), 64, stream=s)
        l.foo = 3; l.foo
        weakref.ref(l)() is l
        l == LegacyPinnedMemoryResource(), l == l
        l.close()
        t = d.create_stream(); b = l.allocate(16, stream=t); t.close(); b.close(), b.is_closed
        b = l.allocate(16); b.set_deallocation_stream(s); b.close(), b.is_closed
        b = l.allocate(16); b.close(3)
        b.is_closed
        d.memory_resource = l; d.allocate(16, stream=s).size, d.allocate(16, stream=None).memory_resource is l
        d.memory_resource = mr
        class Sub(LegacyPinnedMemoryResource): pass
        Sub().allocate(4).memory_resource.__class__.__name__
        """,
    ),
    "managed memory: options": (
        COMMON + "from cuda.core.typing import *\n",
        """
        ManagedMemoryResourceOptions()
        ManagedMemoryResourceOptions(0, "device")
        ManagedMemoryResourceOptions("x", "device")
        ManagedMemoryResourceOptions(preferred_location_type="foo")
        ManagedMemoryResourceOptions(preferred_location_type=3)
        ManagedMemoryResourceOptions(foo=3)
        o = ManagedMemoryResourceOptions(); o.preferred_location = 3; o
        o.foo = 3
        hash(o)
        o == ManagedMemoryResourceOptions(3), o == 3
        pickle.loads(pickle.dumps(ManagedMemoryResourceOptions(0, "device")))
        dataclasses.asdict(o), [(f.name, f.default) for f in dataclasses.fields(o)]
        [(m.name, m.value) for m in ManagedMemoryLocationType]
        """,
    ),
    "managed memory: without a context": (
        COMMON,
        """
        ManagedMemoryResource().device_id
        d = Device(0); ManagedMemoryResource().preferred_location
        ManagedMemoryResource({"preferred_location": 0}).preferred_location
        ManagedMemoryResource({"preferred_location_type": "host"}).preferred_location
        """,
    ),
    "managed memory: resource": (
        RESOURCES + "m = ManagedMemoryResource()\n",
        """
        public(ManagedMemoryResource)
        m
        about(m), m.preferred_location
        type(m.handle), ManagedMemoryResource().handle == m.handle, ManagedMemoryResource() == m
        public(m.attributes)
        m.allocation_handle
        m.register(3)
        m.peer_accessible_by
        m.foo = 3
        copy.copy(m)
        pickle.dumps(m)
        weakref.ref(m)() is m
        b = m.allocate(64, stream=s); buffer(b)
        b.memory_resource is m, b.owner
        b.ipc_descriptor
        m.allocate(16)
        m.allocate(16, stream=None)
        m.allocate(16, stream=3)
        m.allocate(16, s)
        m.allocate(-1, stream=s)
        m.allocate("x", stream=s)
        m.allocate(1 << 62, stream=s)
        z = m.allocate(0, stream=s); type(z).__name__, z.handle, z.size
        type(b.copy_to(stream=s)).__name__
        m.close(), m.is_closed
        about(m), m.preferred_location
        m.handle
        m.allocate(4, stream=s)
        m.attributes
        b.is_closed, b.is_managed
        b.fill(1, stream=s), b.close(), b.is_closed
        class Sub(ManagedMemoryResource): pass
        x = Sub(); x.foo = 3; x.allocate(3, stream=s).memory_resource is x
        """,
    ),
    "managed memory: preferred locations": (
        RESOURCES
        + """
def where(**options):
    m = ManagedMemoryResource(options)
    return m.preferred_location, m.device_id, m.is_handle_owned
""",
        """
        ManagedMemoryResource(3)
        ManagedMemoryResource({"foo": 3})
        ManagedMemoryResource(ManagedMemoryResourceOptions()).is_handle_owned
        where()
        where(preferred_location=None)
        where(preferred_location=0)
        where(preferred_location=-1)
        where(preferred_location=-2)
        where(preferred_location=99)
        where(preferred_location=1 << 40)
        where(preferred_location="x")
        where(preferred_location=0, preferred_location_type="device")
        where(preferred_location=0, preferred_location_type=ManagedMemoryLocationType.DEVICE)
        where(preferred_location_type="device")
        where(preferred_location=-1, preferred_location_type="device")
        where(preferred_location=99, preferred_location_type="device")
        where(preferred_location_type="host")
        where(preferred_location=0, preferred_location_type="host")
        where(preferred_location=-1, preferred_location_type="host_numa")
        where(preferred_location=0, preferred_location_type="host_numa")
        where(preferred_location_type="DEVICE", preferred_location=0)
        where(preferred_location_type="foo")
        where(preferred_location_type=3)
        m = ManagedMemoryResource({"preferred_location": 0}); b = m.allocate(64, stream=s); buffer(b)
        m.close(); about(m), m.preferred_location
        b.close(); b.is_closed
        """,
    ),
    "virtual memory: options": (
        COMMON + "from cuda.core.typing import *\nO = VirtualMemoryResourceOptions\n",
        """
        O()
        O("pinned").allocation_type, O(location_type="host").location_type, O(granularity="minimum").granularity
        O(allocation_type="foo").allocation_type, O(location_type=3).location_type
        O(handle_type=None).handle_type, O(self_access=None).self_access, O(peer_access="r").peer_access
        O(peers=[1, 2]).peers, O().peers
        O(addr_hint=None).addr_hint, O(addr_align=4096).addr_align
        O(foo=3)
        o = O(); o.granularity = "minimum"; o.granularity, o == O(granularity="minimum"), o == O(), o == 3
        hash(o)
        pickle.loads(pickle.dumps(O())) == O()
        weakref.ref(o)() is o
        [(f.name, f.default) for f in dataclasses.fields(O) if f.default is not dataclasses.MISSING]
        [[(m.name, m.value) for m in e] for e in (VirtualMemoryAllocationType, VirtualMemoryLocationType, VirtualMemoryHandleType, VirtualMemoryGranularityType, VirtualMemoryAccessType)]
        """,
    ),
    "virtual memory: resource": (
        VIRTUAL,
        """
        [n for n in dir(VirtualMemoryResource) if not n.startswith("_")]
        V()
        V("x")
        V(99)
        V(-1)
        V(0).device_id, V(device_id=d, config=None).device_id, V(None).device_id
        V(0, 3)
        V(0, {"foo": 1})
        V(0, {}).config == O(), V(0, O(granularity="minimum")).config.granularity
        V(0, options=O())
        repr(v) == f"<VirtualMemoryResource device={d!r}>"
        v.device_id, v.is_device_accessible, v.is_host_accessible, v.is_managed, v.device is d
        v == V(d), v == v
        weakref.ref(v)() is v
        V(0, {"location_type": "host"}).device_id, V(0, {"location_type": "host"}).is_host_accessible, V(0, {"location_type": "host"}).is_device_accessible, V(0, {"location_type": "host"})
        V(99, {"location_type": "host"})
        V(0, {"gpu_direct_rdma": True}).device_id if d.properties.gpu_direct_rdma_with_cuda_vmm_supported else V(0, {"gpu_direct_rdma": True})
        b = v.allocate(4096); buffer(b)
        b.memory_resource is v, b.owner
        b.fill(7, stream=s); host(b)
        b.close(), b.is_closed
        v.allocate(1).size, v.allocate(1 << 21).size, v.allocate((1 << 21) + 1).size, v.allocate(True).size
        v.allocate(0)
        v.allocate(-1)
        v.allocate("x")
        v.allocate(1.5)
        v.allocate(None)
        v.allocate(1 << 62)
        v.allocate(1 << 70)
        v.allocate(4096, stream=s).size, v.allocate(4096, stream=None).size, v.allocate(size=4096).size
        v.allocate(4096, s)
        v.allocate(4096, stream=3)
        v.deallocate(0, 0)
        v.deallocate(12345, 4096)
        v.deallocate(0, 4096, stream=3)
        d.memory_resource = v; b = d.allocate(100, stream=s); b.size, b.memory_resource is v
        b.close(s); b.is_closed
        """,
    ),
    "virtual memory: what is asked for": (
        VIRTUAL
        + """
def size(**options):
    b = V(0, options).allocate(4096)
    return b.size
""",
        """
        size(granularity="minimum"), size(handle_type=None), size(self_access="r"), size(self_access=None), size(peers=[0])
        size(allocation_type="foo")
        size(location_type="foo")
        size(handle_type="foo")
        size(handle_type="win32")
        size(granularity="foo")
        size(self_access="foo")
        size(peer_access="foo", peers=[0])
        size(peers=3)
        size(peers=["x"])
        size(peers=[99])
        size(addr_align=3)
        size(addr_hint="x")
        V(0, {"addr_align": 1 << 30}).allocate(4096).handle % (1 << 30)
        V(0, {"addr_hint": 1 << 45}).allocate(4096).handle == 1 << 45
        """,
    ),
    "virtual memory: growing": (
        VIRTUAL,
        """
        b = v.allocate(1 << 21); b.fill(5, stream=s); s.sync(); host(b)
        q = v.modify_allocation(b, 1 << 22); q.size, q.memory_resource is v, q.is_closed
        host(q)[0]
        v.modify_allocation(q, 1 << 21) is q, v.modify_allocation(q, 1 << 22) is q, v.modify_allocation(q, 0) is q, q.size
        v.modify_allocation(q, -1) is q
        v.modify_allocation(q, "x")
        v.modify_allocation(q)
        v.modify_allocation(3, 1 << 22)
        v.modify_allocation(None, 1 << 22)
        v.modify_allocation(q, 1 << 62)
        q.is_closed, q.size
        q.fill(9, stream=s); host(q)
        q.close(), q.is_closed
        v.modify_allocation(q, 1 << 24)
        b = v.allocate(1 << 21); q = v.modify_allocation(b, 1 << 22, O(granularity="minimum")); q.size, v.config.granularity
        q.close()
        v.modify_allocation(v.modify_allocation(v.allocate(1 << 21), 1 << 22), 1 << 23).size
        v.modify_allocation(mr.allocate(4096, stream=s), 1 << 22)
        v.modify_allocation(Buffer.from_handle(12345, 4096), 1 << 22)
        b = v.allocate(1 << 21); v.modify_allocation(b, 1 << 22, O(location_type="foo"))
        b.is_closed, b.size
        b = V(d).allocate(4096); q = V(d).modify_allocation(b, 1 << 22); q.size
        q.close(), q.is_closed
        """,
    ),
}
