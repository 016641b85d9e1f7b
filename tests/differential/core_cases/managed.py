"""Managed buffers, and batched calls."""

from .resources import RESOURCES

MANAGED = (
    RESOURCES
    + """
from cuda.core.utils import *
m = ManagedMemoryResource()
b = m.allocate(1 << 16, stream=s)
s.sync()
pointer = driver.cuMemAllocManaged(1 << 16, 1)[1]
plain = mr.allocate(64, stream=s)
"""
)

BATCHES = (
    MANAGED
    + """
c = m.allocate(1 << 16, stream=s)
x, y, z = (mr.allocate(n, stream=s) for n in (64, 64, 0))
closed_stream = d.create_stream(); closed_stream.close()
closed = mr.allocate(64, stream=s); closed.close()
closed_managed = m.allocate(64, stream=s); closed_managed.close()
s.sync()
"""
)

GROUPS = {
    "managed buffer: object": (
        MANAGED,
        """
        public(ManagedBuffer)
        ManagedBuffer()
        isinstance(b, Buffer), b
        b.foo = 3; b.foo
        weakref.ref(b)() is b
        b == Buffer.from_handle(b.handle, b.size), hash(b) == hash(Buffer.from_handle(b.handle, b.size))
        copy.copy(b)
        pickle.dumps(b)
        memoryview(b)
        type(b.copy_to(stream=s)).__name__
        b.read_mostly
        b.read_mostly = True; b.read_mostly
        b.read_mostly = 0; b.read_mostly
        b.read_mostly = "x"; b.read_mostly
        b.read_mostly = None; b.read_mostly
        b.preferred_location
        b.preferred_location = d; b.preferred_location is d
        b.preferred_location = Host(); b.preferred_location
        b.preferred_location = Host(numa_id=0); b.preferred_location
        b.preferred_location = Host.numa_current(); b.preferred_location
        b.preferred_location = None; b.preferred_location
        b.preferred_location = 0
        b.preferred_location = -1
        b.preferred_location = "x"
        """,
    ),
    "managed buffer: accessed by": (
        MANAGED,
        """
        b.accessed_by
        type(b.accessed_by).__mro__[1], public(b.accessed_by), b.accessed_by is b.accessed_by
        b.accessed_by == set(), b.accessed_by == b.accessed_by, len(b.accessed_by), bool(b.accessed_by)
        b.accessed_by.add(d); set(b.accessed_by) == {d}, len(b.accessed_by)
        d in b.accessed_by, 0 in b.accessed_by, Host() in b.accessed_by, "x" in b.accessed_by
        b.accessed_by.add(d); len(b.accessed_by)
        b.accessed_by.add(Host()); b.accessed_by == {d, Host()}
        b.accessed_by.add(Host(numa_id=0))
        b.accessed_by.add(Host.numa_current())
        b.accessed_by.add(0)
        b.accessed_by.add("x")
        b.accessed_by.add(None)
        b.accessed_by.discard(d); b.accessed_by == {Host()}
        b.accessed_by.discard(d), b.accessed_by.discard("x"), b.accessed_by.discard(0)
        b.accessed_by.remove(d)
        b.accessed_by = {d}; b.accessed_by == {d}
        b.accessed_by = [d, Host(), d]; b.accessed_by == {d, Host()}
        b.accessed_by -= {d}; b.accessed_by == {Host()}
        b.accessed_by |= {d}; b.accessed_by == {d, Host()}
        b.accessed_by &= {d}; b.accessed_by == {d}
        type(b.accessed_by | {d}), type(b.accessed_by & {d}), b.accessed_by & {d} == {d}
        b.accessed_by.isdisjoint({Host()}), b.accessed_by <= {d, Host()}
        b.accessed_by = d
        b.accessed_by = None
        b.accessed_by = [3]
        b.accessed_by = [Host(), "x"]
        b.accessed_by == {d}
        b.accessed_by.clear(); b.accessed_by
        b.accessed_by.pop()
        hash(b.accessed_by)
        b.accessed_by = (); len(b.accessed_by)
        kept = b.accessed_by; b.accessed_by = [d]; kept == {d}
        """,
    ),
    "managed buffer: moving pages": (
        MANAGED,
        """
        b.prefetch(d, stream=s), b.prefetch(Host(), stream=s), b.prefetch(location=Host(numa_id=0), stream=s), b.prefetch(Host.numa_current(), stream=s)
        b.prefetch(0, stream=s)
        b.prefetch(-1, stream=s)
        b.prefetch(None, stream=s)
        b.prefetch("x", stream=s)
        b.prefetch(d)
        b.prefetch(d, s)
        b.prefetch(d, stream=None)
        b.prefetch(d, stream=3)
        b.prefetch(d, stream=Streamlike((0, int(s.handle))))
        b.prefetch(d, stream=LEGACY_DEFAULT_STREAM), b.prefetch(d, stream=PER_THREAD_DEFAULT_STREAM)
        b.discard(stream=s)
        b.discard()
        b.discard(s)
        b.discard(stream=None)
        b.discard(stream=3)
        b.discard_prefetch(d, stream=s), b.discard_prefetch(Host(), stream=s)
        b.discard_prefetch(0, stream=s)
        b.discard_prefetch(None, stream=s)
        b.discard_prefetch(d)
        b.discard_prefetch(d, stream=3)
        b.fill(4, stream=s), b.prefetch(Host(), stream=s), s.sync(), set((ctypes.c_uint8 * b.size).from_address(b.handle))
        """,
    ),
    "managed buffer: closed": (
        MANAGED + "b.close(s); kept = m.allocate(64, stream=s); seen = kept.accessed_by; kept.close()\n",
        """
        b.is_closed, b
        b.read_mostly
        b.read_mostly = True
        b.preferred_location
        b.preferred_location = d
        b.accessed_by
        b.accessed_by = [d]
        list(seen)
        seen.add(d)
        b.prefetch(d, stream=s)
        b.discard(stream=s)
        b.discard_prefetch(d, stream=s)
        """,
    ),
    "managed buffer: from_handle": (
        MANAGED
        + """
log = []
class Recording(MemoryResource):
    device_id, is_device_accessible, is_host_accessible, is_managed = 0, True, True, True
    def deallocate(self, ptr, size, *, stream=None): log.append((size, int(stream.handle) if int(stream.handle) < 3 else "own"))
class Sub(ManagedBuffer): pass
x = np.zeros(64, np.uint8)
""",
        """
        f = ManagedBuffer.from_handle(pointer, 1 << 16); type(f).__name__, f.is_managed, f.memory_resource, f.owner, f.device_id, f.size
        f.read_mostly = True; f.read_mostly
        f.preferred_location = d; f.preferred_location is d
        f.accessed_by = [d]; f.accessed_by == {d}
        f.prefetch(d, stream=s), f.discard(stream=s)
        f.close(), f.is_closed
        ManagedBuffer.from_handle(int(pointer), 64, owner=x).owner is x
        ManagedBuffer.from_handle(int(pointer), 64, m, x)
        ManagedBuffer.from_handle(int(pointer), 64, stream=s)
        ManagedBuffer.from_handle("x", 0)
        ManagedBuffer.from_handle(pointer, -1)
        ManagedBuffer.from_handle(0, 0).size
        f = ManagedBuffer.from_handle(pointer, 64, Recording()); f.close(), log
        log.clear(); f = ManagedBuffer.from_handle(pointer, 64, Recording(), stream=s); f.close(), log
        type(Sub.from_handle(pointer, 16)).__name__
        g = Buffer.from_handle(pointer, 64); type(g).__name__, g.is_managed, g.device_id, g.__dlpack_device__()
        p = ManagedBuffer.from_handle(plain.handle, 64); type(p).__name__, p.is_managed
        p.read_mostly
        p.read_mostly = True
        p.preferred_location = d
        p.accessed_by.add(d)
        p.prefetch(d, stream=s)
        p.discard(stream=s)
        p.discard_prefetch(d, stream=s)
        h = ManagedBuffer.from_handle(x.ctypes.data, 64, owner=x); h.is_managed
        h.prefetch(d, stream=s)
        """,
    ),
    "copy options": (
        BATCHES,
        """
        CopyOptions()
        CopyOptions("any") == CopyOptions(MemcpySrcAccessOrder.ANY), CopyOptions("any").src_access_order
        CopyOptions(overlap_mode="prefer_overlap_with_compute").overlap_mode
        CopyOptions("foo")
        CopyOptions("ANY")
        CopyOptions(None)
        CopyOptions(overlap_mode="foo")
        CopyOptions(overlap_mode=None)
        CopyOptions(foo=1)
        CopyOptions(dst_location_hint=Host(numa_id=0)).dst_location_hint
        o = CopyOptions(); o.src_access_order = "any"
        hash(o) == hash(CopyOptions()), o == CopyOptions(), o == 3
        pickle.loads(pickle.dumps(o)) == o, dataclasses.replace(o, src_access_order="any").src_access_order
        weakref.ref(o)() is o
        [(e.name, e.value) for e in MemcpySrcAccessOrder], [(e.name, e.value) for e in MemcpyOverlapMode]
        x.copy_to(y, stream=s, options=CopyOptions()) is y, x.copy_to(y, stream=s, options=None) is y
        x.copy_to(y, stream=s, options=CopyOptions("any")) is y, x.copy_to(y, stream=s, options=CopyOptions("during_api_call")) is y
        x.copy_to(y, stream=s, options=CopyOptions(src_location_hint=d, dst_location_hint=Host())) is y
        x.copy_to(y, stream=s, options=CopyOptions(src_location_hint=0))
        x.copy_to(y, stream=s, options=3)
        x.copy_to(y, stream=s, options={})
        x.copy_to(y, stream=LEGACY_DEFAULT_STREAM, options=CopyOptions())
        x.copy_to(y, stream=PER_THREAD_DEFAULT_STREAM, options=CopyOptions()) is y
        x.copy_to(stream=s, options=CopyOptions()).size
        x.copy_from(y, stream=s, options=CopyOptions(overlap_mode="prefer_overlap_with_compute"))
        x.copy_from(y, stream=s, options=3)
        z.copy_to(z, stream=s, options=CopyOptions()) is z
        """,
    ),
    "batches: copies": (
        BATCHES
        + """
h = [LegacyPinnedMemoryResource().allocate(64) for _ in range(2)]
x.fill(1, stream=s), y.fill(2, stream=s)
""",
        """
        copy_batch(s, [x, y], h); s.sync(); [set(np.from_dlpack(b).tolist()) for b in h]
        copy_batch(stream=s, srcs=(x,), dsts=(y,), options=None)
        copy_batch(s, [], [])
        copy_batch(s, x, y)
        copy_batch(s, [x], y)
        copy_batch(s, [x], [y, y])
        copy_batch(s, [x], [mr.allocate(32, stream=s)])
        copy_batch(s, [3], [y])
        copy_batch(s, [None], [y])
        copy_batch(s, (i for i in [x]), [y])
        copy_batch(s, {x}, {y})
        copy_batch(s, None, [y])
        copy_batch(s, [x], [y], options=CopyOptions()), copy_batch(s, [x], [y], options=[CopyOptions()])
        copy_batch(s, [x], [y], options=[])
        copy_batch(s, [x], [y], options=[CopyOptions(), CopyOptions()])
        copy_batch(s, [x], [y], options=[None])
        copy_batch(s, [x], [y], options=3)
        copy_batch(s, [x], [y], options={})
        copy_batch(s, [x], [y], CopyOptions())
        copy_batch(s, [x, h[0]], [y, h[1]], options=[CopyOptions("any"), CopyOptions("during_api_call", overlap_mode="prefer_overlap_with_compute")])
        copy_batch(LEGACY_DEFAULT_STREAM, [x], [y])
        copy_batch(PER_THREAD_DEFAULT_STREAM, [x], [y])
        copy_batch(None, [x], [y])
        copy_batch(3, [x], [y])
        copy_batch(Streamlike((0, int(s.handle))), [x], [y])
        copy_batch(closed_stream, [x], [y])
        copy_batch(s, [closed], [y])
        copy_batch(s, [x], [closed])
        copy_batch(s, [z], [z]), copy_batch(s, [z, x], [z, y])
        """,
    ),
    "batches: pages": (
        BATCHES,
        """
        prefetch_batch(s, [b, c], d), prefetch_batch(s, [b, c], [d, Host()]), prefetch_batch(s, (b, c), (Host(), Host(numa_id=0))), prefetch_batch(s, [b, c], Host.numa_current())
        prefetch_batch(stream=s, buffers=[b], locations=d)
        prefetch_batch(s, [Buffer.from_handle(pointer, 1 << 16), b], d)
        prefetch_batch(s, b, d)
        prefetch_batch(s, [], d)
        prefetch_batch(s, [b, c], [d])
        prefetch_batch(s, [b, c], [])
        prefetch_batch(s, [b, c], None)
        prefetch_batch(s, [b, c], [d, None])
        prefetch_batch(s, [b, c], 0)
        prefetch_batch(s, [b, c], [0, 0])
        prefetch_batch(s, [x, y], d)
        prefetch_batch(s, [b, x], d)
        prefetch_batch(s, [b, 3], d)
        prefetch_batch(s, None, d)
        prefetch_batch(s, (i for i in [b, c]), d)
        prefetch_batch(None, [b, c], d)
        prefetch_batch(3, [b, c], d)
        prefetch_batch(closed_stream, [b, c], d)
        prefetch_batch(s, [b, closed_managed], d)
        prefetch_batch(PER_THREAD_DEFAULT_STREAM, [b, c], d)
        discard_batch(s, [b, c]), discard_batch(s, [b]), discard_batch(stream=s, buffers=(b,))
        discard_batch(s, b)
        discard_batch(s, [])
        discard_batch(s, [x, b])
        discard_batch(s, [3])
        discard_batch(s, None)
        discard_batch(None, [b, c])
        discard_batch(s, [b, closed_managed])
        discard_prefetch_batch(s, [b, c], d), discard_prefetch_batch(s, [b, c], [d, Host()]), discard_prefetch_batch(s, [b], d)
        discard_prefetch_batch(s, b, d)
        discard_prefetch_batch(s, [], d)
        discard_prefetch_batch(s, [b, c], [d])
        discard_prefetch_batch(s, [b, c], None)
        discard_prefetch_batch(s, [b, c], 0)
        discard_prefetch_batch(s, [x], d)
        discard_prefetch_batch(3, [b, c], d)
        discard_prefetch_batch(s, [b, closed_managed], d)
        b.fill(3, stream=s), prefetch_batch(s, [b], Host()), s.sync(), set((ctypes.c_uint8 * b.size).from_address(b.handle))
        """,
    ),
}
