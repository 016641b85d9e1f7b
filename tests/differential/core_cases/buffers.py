"""Buffers around foreign memory: who frees it, when and on which stream, and where it is accessible."""

from .resources import RESOURCES

OWNED = (
    RESOURCES
    + """
log = []
def told(stream):
    return int(stream.handle) if int(stream.handle) < 3 else "same" if stream == s else "other"
class Mine(MemoryResource):
    device_id, is_device_accessible, is_host_accessible = 0, True, True
    def allocate(self, size, *, stream=None): return Buffer.from_handle(int(driver.cuMemHostAlloc(size, 0)[1]), size, mr=self)
    def deallocate(self, ptr, size, *, stream=None): log.append((type(ptr).__name__, size, told(stream))); driver.cuMemFreeHost(ptr)
class HostOnly(MemoryResource):
    device_id, is_device_accessible, is_host_accessible = -1, False, True
    def deallocate(self, ptr, size, *, stream=None): log.append((ptr, size, stream if stream is None else told(stream)))
m, ho = Mine(), HostOnly()
def fresh(**more):
    log.clear()
    return Buffer.from_handle(int(driver.cuMemHostAlloc(64, 0)[1]), 64, m, **more)
x = np.zeros(64, np.uint8)
"""
)

GROUPS = {
    "buffer: deallocation streams": (
        OWNED,
        """
        f = fresh(); f.close(); log
        f = fresh(stream=None); f.close(); log
        f = fresh(stream=s); f.close(); log
        f = fresh(stream=s); del f; gc.collect(); log
        f = fresh(stream=LEGACY_DEFAULT_STREAM); f.close(); log
        f = fresh(stream=PER_THREAD_DEFAULT_STREAM); f.close(); log
        f = fresh(); f.close(s); log
        f = fresh(stream=s); f.close(PER_THREAD_DEFAULT_STREAM); log
        f = fresh(stream=s); f.set_deallocation_stream(PER_THREAD_DEFAULT_STREAM); f.close(); log
        f = fresh(); f.set_deallocation_stream(s); del f; gc.collect(); log
        t = d.create_stream(); f = fresh(stream=t); t.close(); f.close(); log
        fresh(stream=3)
        fresh(stream=Streamlike((0, int(s.handle))))
        t = d.create_stream(); t.close(); fresh(stream=t)
        Buffer.from_handle(x.ctypes.data, 64, stream=s)
        Buffer.from_handle(x.ctypes.data, 64, owner=x, stream=s)
        Buffer.from_handle(x.ctypes.data, 64, m, None, s)
        log.clear(); f = Buffer.from_handle(4096, 64, ho); f.device_id, f.is_device_accessible, f.is_host_accessible, f.__dlpack_device__()
        f.close(); log
        log.clear(); f = Buffer.from_handle(4096, 64, ho); f.close(s); log
        """,
    ),
    "buffer: without a context": (
        """
import numpy as np
from cuda.core import *
class Mine(MemoryResource):
    device_id, is_device_accessible, is_host_accessible = 0, True, True
    def deallocate(self, ptr, size, *, stream=None): log.append(size)
class HostOnly(Mine):
    device_id, is_device_accessible = -1, False
log = []
x = np.zeros(64, np.uint8)
d = Device(0)
""",
        """
        f = Buffer.from_handle(x.ctypes.data, 64, owner=x); f.size, f.owner is x, f.handle == x.ctypes.data
        f.close(), f.is_closed
        f = Buffer.from_handle(4096, 64, HostOnly()); f.is_host_accessible, f.is_device_accessible, f.device_id
        f.close(), log
        Buffer.from_handle(4096, 64, Mine()).size
        """,
    ),
    "buffer: what keeps it": (
        OWNED
        + "def views(): return StridedMemoryView.from_buffer(b, (64,), dtype=np.dtype('u1'))\nfrom cuda.core.utils import *\n",
        """
        b = m.allocate(64); v = views(); del b; gc.collect(); log
        del v; gc.collect(); log
        log.clear(); b = m.allocate(64); c = b.__dlpack__(); del b; gc.collect(); log
        del c; gc.collect(); log
        log.clear(); b = m.allocate(64); n = np.from_dlpack(b); del b; gc.collect(); n[:] = 3; log, n[:2].tolist()
        del n; gc.collect(); log
        log.clear(); b = m.allocate(64); v = views(); c = v.__dlpack__(); del v, b; gc.collect(); log
        del c; gc.collect(); log
        log.clear(); b = m.allocate(64); w = views().view(dtype=np.dtype("i1")); del b; gc.collect(); log
        del w; gc.collect(); log
        log.clear(); b = m.allocate(64); b.close(); b.close(); log
        o = np.zeros(4); r = weakref.ref(o); f = Buffer.from_handle(o.ctypes.data, 32, owner=o); v = StridedMemoryView.from_buffer(f, (4,), dtype=o.dtype); del o, f; gc.collect(); r() is None
        del v; gc.collect(); r() is None
        """,
    ),
    "buffer: where memory is": (
        RESOURCES
        + """
def where(pointer):
    b = Buffer.from_handle(pointer, 64)
    return b.device_id, b.is_device_accessible, b.is_host_accessible, b.is_managed, b.is_mapped, b.__dlpack_device__()
x = np.zeros(1 << 16, np.uint8)
page = (x.ctypes.data + 4095) // 4096 * 4096
""",
        """
        where(int(driver.cuMemAlloc(64)[1]))
        where(int(driver.cuMemAllocManaged(64, 1)[1]))
        where(int(driver.cuMemHostAlloc(64, 0)[1])), where(int(driver.cuMemAllocHost(64)[1]))
        where(x.ctypes.data), where(0), where(12345)
        driver.cuMemHostRegister(page, 4096, 0)[0]; where(page)
        driver.cuMemHostUnregister(page)[0]; where(page)
        b = mr.allocate(64, stream=s); where(b.handle), where(b.handle + 16)
        b = PinnedMemoryResource().allocate(64, stream=s); where(b.handle)
        b = ManagedMemoryResource().allocate(64, stream=s); where(b.handle)
        b = VirtualMemoryResource(0).allocate(64); where(b.handle)
        b = LegacyPinnedMemoryResource().allocate(64); where(b.handle)
        """,
    ),
    "buffer: equality": (
        RESOURCES
        + "p = int(driver.cuMemAlloc(64)[1])\nclass Sub(Buffer): pass\ndef at(*args): return Buffer.from_handle(*args)\nx = np.zeros(64, np.uint8)\n",
        """
        at(p, 64) == at(p, 64), at(p, 64) == at(p, 32), at(p, 64) != at(p, 64), at(0, 0) == at(0, 0), at(p, 0) == at(0, 0)
        hash(at(p, 64)) == hash(at(p, 64)), len({at(p, 64), at(p, 64), at(p, 32)})
        at(p, 64).__eq__(3), at(p, 64).__ne__(3)
        {at(p, 64): 1}[at(p, 64)]
        b = mr.allocate(64, stream=s); h = hash(b); b.close(); hash(b) == h, b == at(0, 0), b == b
        Sub()
        Sub.from_handle(p, 64) == at(p, 64)
        at(1 << 64, 64)
        at(p, 1 << 64)
        at(p, (1 << 64) - 1).size, at(np.uint64(p), np.int32(64)).size
        at(0, 64).handle, at(0, 64).size
        at(p, 64).copy_to(stream=s)
        b = mr.allocate(64, stream=s); b.copy_to(at(0, 64), stream=s)
        with mr.allocate(4, stream=s) as k: raise ValueError("mine")
        k.is_closed
        b.__exit__(None, None, None), b.__enter__() is b
        b.close(s, s)
        b.close(foo=3)
        """,
    ),
    "buffer: exporting": (
        RESOURCES
        + "b = mr.allocate(64, stream=s)\nh = LegacyPinnedMemoryResource().allocate(64)\ndef name(c): return repr(c).split()[2]\n",
        """
        [name(b.__dlpack__(stream=n)) for n in (None, -1, 1, 2, int(s.handle))]
        name(b.__dlpack__(max_version=None)), name(b.__dlpack__(copy=False)), name(b.__dlpack__(copy=None)), name(b.__dlpack__(dl_device=None))
        b.__dlpack__(stream=s)
        b.__dlpack__(max_version=(1,))
        b.__dlpack__(max_version=())
        b.__dlpack__(max_version=[1, 0])
        b.__dlpack__(dl_device=(1, 0))
        b.__dlpack__(dl_device=3)
        b.__dlpack__(copy=True)
        b.__dlpack__(copy="x")
        b.__dlpack__(3)
        b.__dlpack__(foo=3)
        n = np.from_dlpack(h); n.dtype.kind, n.itemsize, n.shape, n.strides, n.flags.writeable
        n[:] = 7; h.copy_to(b, stream=s) is b
        n[:] = 0; b.copy_to(h, stream=s); s.sync(); set(n.tolist())
        np.from_dlpack(b)
        memoryview(b)
        memoryview(h)
        bytes(h)
        np.frombuffer(h, np.uint8)
        b.__buffer__(0)
        h.__buffer__(0)
        import collections.abc; isinstance(h, collections.abc.Buffer)
        """,
    ),
}
