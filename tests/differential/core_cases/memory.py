"""Buffers and memory resources."""

from .devices import COMMON, CURRENT

MEMORY = (
    CURRENT
    + """
import array, gc
s = d.create_stream()
mr = DeviceMemoryResource(d)
b = mr.allocate(64, stream=s)
c = mr.allocate(64, stream=s)
"""
)

GROUPS = {
    "buffer: object": (
        MEMORY,
        """
        public(Buffer)
        Buffer()
        Buffer(1)
        b
        type(b.handle), b.handle != 0, type(b.size), b.size
        b.device_id, b.is_device_accessible, b.is_host_accessible, b.is_managed, b.is_mapped, b.is_closed
        b.memory_resource is mr, b.owner
        b.ipc_descriptor
        b == b, b == c, b == 3, b != None, hash(b) == hash(c)
        b < c
        len(b)
        int(b)
        b[0]
        b.foo = 1
        b.size = 1
        b.handle = 1
        weakref.ref(b)() is b
        copy.copy(b)
        pickle.dumps(b)
        memoryview(b)
        b.__dlpack_device__()
        type(b.__dlpack__()).__name__
        type(b.__dlpack__(stream=-1)).__name__
        type(b.__dlpack__(stream=int(s.handle))).__name__
        type(b.__dlpack__(max_version=(1, 0))).__name__
        "dltensor_versioned" in repr(b.__dlpack__(max_version=(1, 0))), '"dltensor"' in repr(b.__dlpack__())
        "dltensor_versioned" in repr(b.__dlpack__(max_version=(1, 3))), '"dltensor"' in repr(b.__dlpack__(max_version=(0, 8)))
        b.__dlpack__(stream="x")
        b.__dlpack__(max_version=3)
        b.__dlpack__(copy=True)
        b.__dlpack__(dl_device=(1, 0))
        np.asarray(b).dtype
        class Sub(Buffer): pass
        """,
    ),
    "buffer: fill": (
        MEMORY
        + """
host = Buffer.from_handle(int(driver.cuMemHostAlloc(64, 0)[1]), 64)
raw = (ctypes.c_uint8 * 64).from_address(host.handle)
def fill(*args, **more):
    for i in range(64): raw[i] = 0x5A
    b.fill(0x77, stream=s)
    got = b.fill(*args, **more)
    b.copy_to(host, stream=s); s.sync()
    return got, bytes(raw)[:12].hex(), bytes(raw)[-4:].hex()
""",
        """
        fill(0, stream=s), fill(255, stream=s), fill(value=3, stream=s)
        fill(256, stream=s)
        fill(-1, stream=s)
        fill(True, stream=s)
        fill(1.5, stream=s)
        fill("a", stream=s)
        fill(None, stream=s)
        fill(b"a", stream=s), fill(b"ab", stream=s), fill(b"abcd", stream=s)
        fill(b"abc", stream=s)
        fill(b"abcdefgh", stream=s)
        fill(b"", stream=s)
        fill(bytearray(b"ab"), stream=s), fill(memoryview(b"abcd"), stream=s)
        fill(np.uint8(3), stream=s), fill(np.uint16(0x102), stream=s), fill(np.float32(1.5), stream=s), fill(np.float16(1.5), stream=s)
        fill(np.int8(-2), stream=s), fill(np.int32(-2), stream=s)
        fill(np.float64(3), stream=s)
        fill(np.int64(-1), stream=s)
        fill(np.array([1, 2], np.uint8), stream=s), fill(np.array(7, np.uint32), stream=s)
        fill(ctypes.c_uint16(0x304), stream=s), fill(array.array("H", [0x506]), stream=s)
        fill(0)
        fill(0, None)
        fill(0, stream=None)
        fill(0, stream=3)
        fill(0, s)
        fill(0, stream=LEGACY_DEFAULT_STREAM)
        mr.allocate(5, stream=s).fill(b"ab", stream=s)
        mr.allocate(6, stream=s).fill(b"abcd", stream=s)
        mr.allocate(6, stream=s).fill(b"ab", stream=s)
        mr.allocate(0, stream=s).fill(1, stream=s)
        """,
    ),
    "buffer: copies": (
        MEMORY
        + """
b.fill(7, stream=s)
small, large, none = (mr.allocate(n, stream=s) for n in (32, 128, 0))
host = Buffer.from_handle(int(driver.cuMemHostAlloc(64, 0)[1]), 64)
raw = (ctypes.c_uint8 * 64).from_address(host.handle)
""",
        """
        b.copy_to(stream=s).size
        b.copy_to(stream=s).memory_resource is mr
        b.copy_to(c, stream=s) is c
        b.copy_to(dst=c, stream=s) is c
        c.copy_to(host, stream=s) is host
        s.sync(); bytes(raw)[:3], set(raw)
        b.copy_to(c)
        b.copy_to(c, s)
        b.copy_to(c, stream=None)
        b.copy_to(c, stream=3)
        b.copy_to(c, stream=LEGACY_DEFAULT_STREAM) is c
        b.copy_to(small, stream=s)
        b.copy_to(large, stream=s)
        b.copy_to(b, stream=s) is b
        b.copy_to(3, stream=s)
        b.copy_to("x", stream=s)
        none.copy_to(none, stream=s) is none
        c.copy_from(b, stream=s)
        c.copy_from(src=b, stream=s)
        c.copy_from(b)
        c.copy_from(b, stream=None)
        c.copy_from(small, stream=s)
        c.copy_from(large, stream=s)
        c.copy_from(None, stream=s)
        c.copy_from(3, stream=s)
        raw[0] = 99; c.copy_from(host, stream=s); s.sync()
        raw[0] = 0; c.copy_to(host, stream=s); s.sync(); raw[0], raw[1]
        """,
    ),
    "buffer: copies with arrays": (
        MEMORY + "x = np.arange(64, dtype=np.uint8)\ny = np.zeros(64, np.uint8)\n",
        """
        b.copy_from(x, stream=s)
        b.copy_to(y, stream=s) is y
        s.sync(); (x == y).all()
        b.copy_from(bytes(64), stream=s)
        b.copy_from(np.zeros(8, np.uint8), stream=s)
        b.copy_to(np.zeros(8, np.uint8), stream=s)
        b.copy_to(bytes(64), stream=s)
        z = bytearray(64); b.copy_to(z, stream=s) is z
        """,
    ),
    "buffer: closed": (
        MEMORY,
        """
        b.close(s)
        b.is_closed, b.handle, b.size, b.memory_resource, b.owner
        b
        b.close()
        b.close(stream=s)
        hash(b) == hash(b), b == b, b == c
        b.device_id
        b.is_device_accessible
        b.is_host_accessible
        b.is_managed
        b.is_mapped
        b.fill(0, stream=s)
        b.copy_to(c, stream=s)
        c.copy_to(b, stream=s)
        b.copy_from(c, stream=s)
        c.copy_from(b, stream=s)
        b.__dlpack__()
        b.__dlpack_device__()
        b.set_deallocation_stream(s)
        with b: pass
        c.close(3)
        c.is_closed
        c.close("x")
        t = d.create_stream(); t.close(); c.close(t)
        c.is_closed
        c.close(None); c.is_closed
        with mr.allocate(4, stream=s) as q: inside = q.is_closed
        inside, q.is_closed
        q = mr.allocate(4, stream=s); q.set_deallocation_stream(d.create_stream()); q.close(); q.is_closed
        q = mr.allocate(4, stream=s); q.set_deallocation_stream(3)
        q.set_deallocation_stream(None)
        t = d.create_stream(); q = mr.allocate(4, stream=t); t.close(); q.close(); q.is_closed
        t = d.create_stream(); q = mr.allocate(4, stream=t); t.close(); del q; gc.collect() >= 0
        q = mr.allocate(4, stream=LEGACY_DEFAULT_STREAM); q.close(PER_THREAD_DEFAULT_STREAM); q.is_closed
        """,
    ),
    "buffer: from_handle": (
        MEMORY
        + """
x = np.arange(16, dtype=np.float32)
log = []
class Recording(MemoryResource):
    is_device_accessible = True
    is_host_accessible = False
    device_id = 0
    def allocate(self, size, *, stream=None): raise NotImplementedError
    def deallocate(self, ptr, size, *, stream=None): log.append((type(ptr), size, stream))
rec = Recording()
""",
        """
        f = Buffer.from_handle(b.handle, 64); f
        f.memory_resource, f.owner, f.device_id, f.is_device_accessible, f.is_host_accessible, f.is_managed, f.is_mapped
        f == b, hash(f) == hash(b), Buffer.from_handle(b.handle, 32) == b
        f.close(); f.is_closed, b.is_closed
        Buffer.from_handle(ptr=b.handle, size=64).size
        Buffer.from_handle(driver.CUdeviceptr(b.handle), 64) == b
        Buffer.from_handle(b.handle, 64, owner=b).owner is b
        Buffer.from_handle(b.handle, 64, mr=rec, owner=b)
        Buffer.from_handle(b.handle, 64, 3)
        Buffer.from_handle("x", 64)
        Buffer.from_handle(b.handle, -1)
        Buffer.from_handle(b.handle, "x")
        Buffer.from_handle(None, 64)
        Buffer.from_handle(-1, 64)
        Buffer.from_handle(b.handle)
        Buffer.from_handle(0, 0)
        Buffer.from_handle(12345, 64).device_id, Buffer.from_handle(12345, 64).is_device_accessible
        h = Buffer.from_handle(x.ctypes.data, 64, owner=x); h.is_host_accessible, h.is_device_accessible, h.device_id
        h.__dlpack_device__()
        np.from_dlpack(h).nbytes, np.from_dlpack(h).dtype.name
        h.copy_to(b, stream=s); h.copy_from(b, stream=s); s.sync(); x[:3].tolist()
        f = Buffer.from_handle(b.handle, 64, mr=rec); f.memory_resource is rec
        f.close(); log
        log.clear(); f = Buffer.from_handle(b.handle, 64, mr=rec); f.close(s); log
        log.clear(); f = Buffer.from_handle(b.handle, 64, mr=rec); f.set_deallocation_stream(s); f.close(); log
        log.clear(); f = Buffer.from_handle(b.handle, 64, mr=rec); del f; gc.collect(); log
        log.clear(); f = Buffer.from_handle(b.handle, 64, mr=rec); f.close(); f.close(); len(log)
        o = Streamlike(1); r = weakref.ref(o); f = Buffer.from_handle(b.handle, 64, owner=o); del o; r() is None
        f.close(); r() is None
        """,
    ),
    "memory resource: device": (
        MEMORY,
        """
        public(DeviceMemoryResource)
        DeviceMemoryResource()
        DeviceMemoryResource("x")
        DeviceMemoryResource(99)
        DeviceMemoryResource(-1)
        DeviceMemoryResource(0).device_id, DeviceMemoryResource(None).device_id, DeviceMemoryResource(device_id=d).device_id
        DeviceMemoryResource(d, 3)
        DeviceMemoryResource(d, {"max_size": 1 << 20}).is_handle_owned
        DeviceMemoryResource(d, {"foo": 1})
        DeviceMemoryResource(d, foo=1)
        mr == DeviceMemoryResource(d), mr == mr, hash(mr) == hash(mr)
        mr.handle
        mr.handle == DeviceMemoryResource(0).handle, int(mr.handle) == int(driver.cuDeviceGetMemPool(0)[1])
        mr.device_id, mr.is_device_accessible, mr.is_host_accessible, mr.is_managed, mr.is_handle_owned, mr.is_ipc_enabled, mr.is_mapped, mr.is_closed, mr.uuid
        mr.allocation_handle
        mr.register(3)
        mr.peer_accessible_by
        set(mr.peer_accessible_by), len(mr.peer_accessible_by), 0 in mr.peer_accessible_by
        mr.peer_accessible_by = []
        mr.peer_accessible_by = [0]; set(mr.peer_accessible_by)
        mr.peer_accessible_by = [99]
        mr.foo = 3
        mr.device_id = 1
        weakref.ref(mr)() is mr
        copy.copy(mr)
        mr.allocate(16)
        mr.allocate(16, stream=None)
        mr.allocate(16, s)
        mr.allocate(16, stream=3)
        mr.allocate(16, stream=Streamlike((0, int(s.handle))))
        mr.allocate(size=16, stream=s).size
        mr.allocate(-1, stream=s)
        mr.allocate("x", stream=s)
        mr.allocate(None, stream=s)
        mr.allocate(0, stream=s).handle
        mr.allocate(1 << 62, stream=s)
        class Sub(DeviceMemoryResource): pass
        Sub(d).allocate(4, stream=s).size
        """,
    ),
    "memory resource: a pool of its own": (
        MEMORY + "o = DeviceMemoryResource(d, DeviceMemoryResourceOptions(max_size=1 << 25))\n",
        """
        o.is_handle_owned, o.handle == mr.handle
        o.allocate(1 << 27, stream=s)
        public(o.attributes)
        o.attributes
        o.attributes is o.attributes, o.attributes == o.attributes
        type(o.attributes)()
        o.attributes.release_threshold, o.attributes.used_mem_current, o.attributes.used_mem_high, o.attributes.reserved_mem_current, o.attributes.reserved_mem_high
        o.attributes.reuse_follow_event_dependencies, o.attributes.reuse_allow_opportunistic, o.attributes.reuse_allow_internal_dependencies
        o.attributes.release_threshold = 4096
        o.attributes.nonsense
        x = o.allocate(1 << 20, stream=s); s.sync(); o.attributes.used_mem_current, o.attributes.used_mem_high
        o.attributes.reserved_mem_current >= 1 << 20
        x.memory_resource is o
        o.close()
        o.close(), o.is_closed
        o.handle
        o.allocate(4, stream=s)
        o.attributes
        x.is_closed, x.size
        x.fill(0, stream=s)
        x.close()
        mr.close(); mr.is_closed
        b.is_closed
        DeviceMemoryResource(d).allocate(4, stream=s).size
        """,
    ),
    "memory resource: without a context": (
        COMMON,
        """
        mr = DeviceMemoryResource(0); mr.device_id
        mr.allocate(4, stream=LEGACY_DEFAULT_STREAM)
        """,
    ),
    "memory resource: options": (
        COMMON,
        """
        DeviceMemoryResourceOptions()
        DeviceMemoryResourceOptions(False, 5)
        DeviceMemoryResourceOptions(max_size="x")
        DeviceMemoryResourceOptions(foo=3)
        DeviceMemoryResourceOptions() == DeviceMemoryResourceOptions(max_size=0)
        hash(DeviceMemoryResourceOptions())
        pickle.loads(pickle.dumps(DeviceMemoryResourceOptions(max_size=3)))
        dataclasses.asdict(DeviceMemoryResourceOptions()), [(f.name, f.default) for f in dataclasses.fields(DeviceMemoryResourceOptions)]
        """,
    ),
    "memory resource: in Python": (
        MEMORY
        + """
log = []
class Mine(MemoryResource):
    is_device_accessible = True
    is_host_accessible = False
    device_id = 0
    def allocate(self, size, *, stream=None):
        log.append(("allocate", size, type(stream).__name__))
        return Buffer.from_handle(driver.cuMemAlloc(size)[1], size, mr=self)
    def deallocate(self, ptr, size, *, stream=None):
        log.append(("deallocate", size, int(stream.handle) if stream is not None and int(stream.handle) < 3 else type(stream).__name__))
        driver.cuMemFree(ptr)
class Fails(Mine):
    def deallocate(self, *args, **more):
        raise ValueError("mine")
class Strange(Mine):
    def allocate(self, *args, **more):
        return 3
class Half(MemoryResource):
    pass
m = Mine()
""",
        """
        public(MemoryResource)
        MemoryResource()
        x = m.allocate(32, stream=s); x.memory_resource is m, x.size
        x.device_id, x.is_device_accessible, x.is_host_accessible, x.is_managed
        x.close(); log
        log.clear(); x = m.allocate(32, stream=s); x.close(s); log
        log.clear(); x = m.allocate(32, stream=s); x.set_deallocation_stream(s); x.close(); log
        log.clear(); x = m.allocate(32, stream=s); del x; gc.collect(); log
        m.is_managed
        weakref.ref(m)() is m
        d.memory_resource = m
        log.clear(); x = d.allocate(8, stream=s); log
        log.clear(); y = d.allocate(8, stream=None); log
        Half().allocate(4, stream=s)
        Half().deallocate(4, 4, stream=s)
        Half().device_id
        Half().is_device_accessible
        Half().is_host_accessible
        Half().is_managed
        x = Fails().allocate(4, stream=s); x.close(); x.is_closed
        x = Fails().allocate(4, stream=s); del x; gc.collect() >= 0
        d.memory_resource = Strange(); d.allocate(4, stream=s)
        d.memory_resource = mr; d.allocate(4, stream=s).memory_resource is mr
        """,
    ),
}
