"""Two devices in one process: streams, events, kernels, graphs, managed memory, green contexts, and their topology.

With a single device the setups raise, and nothing is recorded.
"""

from .devices import CURRENT

TWO = (
    CURRENT
    + r'''
from cuda.core.graph import *
d, e = Device(0), Device(1)
d.set_current(); s = d.create_stream()
e.set_current(); t = e.create_stream()
d.set_current()
code = r"""
__device__ int total;
extern "C" __global__ void add(int *x, int value) { x[0] += value; total += value; }
extern "C" __global__ void read(int *x) { x[0] = total; }
extern "C" __global__ void spin(long long n) { long long start = clock64(); while (clock64() - start < n) {} }
"""
c = Program(code, "c++", ProgramOptions(arch=f"sm_{d.arch}")).compile("ptx")
add, read, spin = (c.get_kernel(n) for n in ("add", "read", "spin"))
one = LaunchConfig(grid=1, block=1)
pools = [DeviceMemoryResource(i) for i in (d, e)]
for pool, other in zip(pools, (e, d)):
    pool.peer_accessible_by = [other]
x, y = pools[0].allocate(64, stream=s), pools[1].allocate(64, stream=t)
x.fill(0, stream=s), y.fill(0, stream=t)
s.sync(), t.sync()
def value(b):
    s.sync(), t.sync()
    out = np.zeros(1, np.int32)
    driver.cuMemcpyDtoH(out.ctypes.data, int(b.handle), 4)
    return int(out[0])
def status(call):
    return int(call[0])
def use(device):
    device.set_current()
    return Device().device_id
'''
)

GROUPS = {
    "two devices: streams and events": (
        TWO,
        """
        s.device.device_id, t.device.device_id, s.context == d.context, t.context == e.context
        a, b = s.record(), use(e) and t.record(); use(d), a.device.device_id, b.device.device_id
        s.wait(b), t.wait(a)
        s.wait(t), t.wait(s)
        t.record().device.device_id
        a.sync(), b.sync(), a.is_done, b.is_done
        s.record(t.record())
        t.record(a)
        s.sync(), t.sync()
        f = EventOptions(timing_enabled=True)
        a, b = s.record(options=f), use(e) and t.record(options=f); use(d)
        a.sync(), b.sync()
        b - a
        a - b
        status(driver.cuEventElapsedTime(a.handle, b.handle))
        status(driver.cuEventRecord(a.handle, t.handle)), status(driver.cuStreamWaitEvent(t.handle, a.handle, 0))
        use(e), s.sync(), t.sync(), Device().device_id, use(d)
        d.create_event().device.device_id, e.create_event().device.device_id
        e.create_stream().device.device_id, e.create_stream(s).device.device_id, Device().device_id
        d.set_current(e.context)
        e.set_current(e.context) == d.context, Device().device_id, use(d)
        u = e.create_stream(); u.close(), Device().device_id
        launch(s, one, spin, 500_000_000); t.wait(s.record()); use(e); f = t.record(); use(d), f.is_done
        s.sync(), t.sync(), f.is_done
        e.sync(), d.sync()
        """,
    ),
    "two devices: kernels": (
        TWO,
        """
        launch(s, one, add, x, 1), value(x), value(y)
        launch(t, one, add, y, 2), value(x), value(y)
        use(e), launch(t, one, add, y, 3), value(y)
        launch(s, one, add, x, 4), value(x), use(d)
        launch(s, one, add, y, 5), value(y)
        launch(t, one, add, x, 6), value(x)
        launch(s, one, read, x), value(x)
        launch(t, one, read, y), value(y)
        use(e), launch(t, one, read, y), value(y), use(d)
        add.attributes[d].max_threads_per_block == add.attributes[e].max_threads_per_block, add.attributes[1].num_regs == add.attributes[0].num_regs
        add.attributes[99].num_regs
        add.occupancy.max_active_blocks_per_multiprocessor(32, 0) > 0, use(e), add.occupancy.max_active_blocks_per_multiprocessor(32, 0) > 0, use(d)
        use(e); c2 = Program(code, "c++", ProgramOptions(arch=f"sm_{d.arch}")).compile("ptx"); k2 = c2.get_kernel("add")
        use(d), launch(s, one, k2, x, 1), value(x)
        launch(t, one, k2, y, 1), value(y)
        launch(LEGACY_DEFAULT_STREAM, one, k2, x, 1), d.sync(), value(x)
        use(e), launch(LEGACY_DEFAULT_STREAM, one, k2, y, 1), e.sync(), value(y), use(d)
        """,
    ),
    "two devices: memory": (
        TWO,
        """
        x.copy_from(y, stream=s), value(x)
        x.copy_from(y, stream=t), value(x)
        y.copy_from(x, stream=s), y.copy_from(x, stream=t), value(y)
        pools[0].peer_accessible_by = []; len(pools[0].peer_accessible_by)
        x.copy_from(y, stream=s)
        x.copy_from(y, stream=t)
        y.copy_from(x, stream=s)
        y.copy_from(x, stream=t)
        [status(driver.cuMemcpyDtoDAsync(p.handle, q.handle, 64, r.handle)) for r in (s, t) for p, q in ((x, y), (y, x))]
        pools[1].peer_accessible_by = []; len(pools[1].peer_accessible_by)
        [status(driver.cuMemcpyDtoDAsync(p.handle, q.handle, 64, r.handle)) for r in (s, t) for p, q in ((x, y), (y, x))]
        [status(driver.cuMemcpyPeerAsync(p.handle, m, q.handle, n, 64, r.handle)) for r in (s, t) for p, m, q, n in ((x, d.context.handle, y, e.context.handle), (y, e.context.handle, x, d.context.handle))]
        use(e), [status(driver.cuMemcpyDtoDAsync(p.handle, q.handle, 64, r.handle)) for r in (s, t) for p, q in ((x, y), (y, x))], use(d)
        s.sync(), t.sync()
        h = np.zeros(64, np.uint8); [status(driver.cuMemcpyDtoHAsync(h.ctypes.data, p.handle, 64, r.handle)) for r in (s, t) for p in (x, y)]
        [status(driver.cuMemcpyHtoDAsync(p.handle, h.ctypes.data, 64, r.handle)) for r in (s, t) for p in (x, y)]
        [status(driver.cuMemsetD8Async(p.handle, 1, 64, r.handle)) for r in (s, t) for p in (x, y)]
        s.sync(), t.sync()
        v, w = driver.cuMemAlloc(64)[1], (use(e), driver.cuMemAlloc(64)[1], use(d))[1]
        [status(driver.cuMemcpyDtoDAsync(p, q, 64, r.handle)) for r in (s, t) for p, q in ((v, w), (w, v), (v, x.handle), (v, y.handle), (w, x.handle), (w, y.handle), (x.handle, w), (y.handle, v))]
        s.sync(), t.sync()
        Buffer.from_handle(int(v), 64).device_id, Buffer.from_handle(int(w), 64).device_id
        status(driver.cuCtxEnablePeerAccess(e.context.handle, 0)), status(driver.cuCtxEnablePeerAccess(e.context.handle, 0)), status(driver.cuCtxEnablePeerAccess(d.context.handle, 0))
        status(driver.cuCtxDisablePeerAccess(e.context.handle)), status(driver.cuCtxDisablePeerAccess(e.context.handle))
        status(driver.cuMemAllocFromPoolAsync(64, pools[0].handle, t.handle)), status(driver.cuMemAllocFromPoolAsync(64, pools[1].handle, s.handle))
        pools[1].allocate(64, stream=s).device_id
        z = pools[1].allocate(64, stream=t); z.close(s), z.is_closed
        d.allocate(64, stream=t).device_id, e.allocate(64, stream=s).device_id
        s.sync(), t.sync()
        """,
    ),
    "two devices: copies that pools do not allow": (
        TWO
        + """
for pool in pools:
    pool.peer_accessible_by = []
x2, y2 = pools[0].allocate(1 << 16, stream=s), pools[1].allocate(1 << 16, stream=t)
s.sync(), t.sync()
M = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
U = driver.CUmemorytype.CU_MEMORYTYPE_UNIFIED
def two_d(kind, target, source):
    p = driver.CUDA_MEMCPY2D()
    p.srcMemoryType = p.dstMemoryType = kind
    p.srcDevice, p.dstDevice, p.srcPitch, p.dstPitch, p.WidthInBytes, p.Height = source.handle, target.handle, 64, 64, 32, 4
    return p
def attributes(kind):
    a = driver.CUmemcpyAttributes()
    a.srcAccessOrder = driver.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    return a
pairs = (x2, y2), (y2, x2)
""",
        """
        [status(driver.cuMemcpyDtoD(p.handle, q.handle, 64)) for p, q in pairs]
        [status(driver.cuMemcpy(p.handle, q.handle, 64)) for p, q in pairs]
        [status(driver.cuMemcpyAsync(p.handle, q.handle, 64, r.handle)) for r in (s, t) for p, q in pairs]
        [status(driver.cuMemcpy2D(two_d(k, p, q))) for k in (M, U) for p, q in pairs]
        [status(driver.cuMemcpy2DAsync(two_d(k, p, q), r.handle)) for r in (s, t) for k in (M, U) for p, q in pairs]
        [status(driver.cuMemcpyPeer(p.handle, m, q.handle, n, 64)) for p, m, q, n in ((x2, d.context.handle, y2, e.context.handle), (y2, e.context.handle, x2, d.context.handle))]
        [status(driver.cuMemcpyDtoDAsync(p.handle, q.handle, 1 << 16, r.handle)) for r in (s, t) for p, q in pairs]
        s.sync(), t.sync()
        """,
    ),
    "two devices: captured graphs": (
        TWO,
        """
        b = d.create_graph_builder(); b.begin_building() is b
        launch(b, one, add, x, 1)
        f = b.stream.record(); status(driver.cuStreamWaitEvent(t.handle, f.handle, 0))
        launch(t, one, add, y, 2)
        use(e); f = t.record(); use(d), b.stream.wait(f)
        launch(b, one, add, x, 10)
        q = b.end_building().complete(); type(q).__name__
        [q.launch(s) for _ in range(5)], value(x), value(y)
        q.launch(t), value(x), value(y)
        use(e), q.launch(t), value(x), value(y), use(d)
        g = e.create_graph_builder(); g.begin_building() is g
        launch(g, one, add, y, 100), g.end_building() is g
        q2 = g.complete(); q2.launch(t), value(y)
        q2.launch(s), value(y)
        q.update(g)
        q2.update(b)
        q.close(), q2.close()
        """,
    ),
    "two devices: graph definitions": (
        TWO,
        """
        g = GraphDefinition()
        n = g.launch(one, add, x, 1); use(e)
        m = n.launch(one, add, y, 2); use(d)
        k = m.memcpy(int(x.handle) + 4, int(y.handle), 4); type(k).__name__
        r = k.record(e.create_event()); type(r).__name__
        w = r.wait(s.record()); type(w).__name__
        q = g.instantiate(); q.launch(s), value(x), value(y)
        q.launch(t), value(x), value(y)
        use(e), q.launch(t), value(x), value(y), use(d)
        h = GraphDefinition(); child = h.embed(g); type(child).__name__
        h.instantiate().launch(s), value(x), value(y)
        a = g.allocate(64, device=1); a.device_id, a.peer_access
        a = g.allocate(64, device=e, peer_access=[d]); a.device_id, [getattr(p, "device_id", p) for p in a.peer_access]
        a.memset(a.dptr, 5, 4).memcpy(y, a.dptr, 4).deallocate(a.dptr) is not None
        g.allocate(64, device=99)
        g.allocate(64, peer_access=[99])
        g.allocate(64, peer_access=[0]).device_id
        z = GraphDefinition(); za = z.allocate(64, device=e, peer_access=[d]); zm = za.memset(za.dptr, 1, 1, 4); zc = zm.memcpy(x, za.dptr, 4); zc.deallocate(za.dptr) is not None
        zq = z.instantiate(); zq.launch(s), value(x), zq.launch(t), value(x)
        q.close(), zq.close()
        """,
    ),
    "two devices: managed memory": (
        TWO
        + """
A, R, L = driver.CUmem_advise, driver.CUmem_range_attribute, driver.CUmemLocationType
m = driver.cuMemAllocManaged(1 << 21, 1)[1]
def at(kind, number=0):
    l = driver.CUmemLocation(); l.type, l.id = kind, number
    return l
D, H = L.CU_MEM_LOCATION_TYPE_DEVICE, L.CU_MEM_LOCATION_TYPE_HOST
def query(which):
    return driver.cuMemRangeGetAttribute(4, which, m, 1 << 21)
def advise(advice, location):
    return status(driver.cuMemAdvise(m, 1 << 21, advice, location))
def fetch(location, stream):
    return status(driver.cuMemPrefetchAsync(m, 1 << 21, location, 0, stream.handle)), status(driver.cuStreamSynchronize(stream.handle))
""",
        """
        status(driver.cuMemsetD32(m, 1, 1 << 19)), status(driver.cuCtxSynchronize())
        [query(w) for w in (R.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, R.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, R.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION)]
        [(advise(A.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, at(D, i)), query(R.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION)) for i in (0, 1, 2, -1)]
        advise(A.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, at(H)), query(R.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION)
        advise(A.CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, at(D, 1)), query(R.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION)
        [(advise(A.CU_MEM_ADVISE_SET_ACCESSED_BY, at(D, i)), driver.cuMemRangeGetAttribute(12, R.CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, m, 1 << 21)) for i in (1, 0, 2)]
        advise(A.CU_MEM_ADVISE_SET_ACCESSED_BY, at(H)), driver.cuMemRangeGetAttribute(12, R.CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, m, 1 << 21)
        [(advise(A.CU_MEM_ADVISE_UNSET_ACCESSED_BY, at(D, i)), driver.cuMemRangeGetAttribute(12, R.CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, m, 1 << 21)) for i in (0, 1)]
        advise(A.CU_MEM_ADVISE_SET_READ_MOSTLY, at(D, 1)), query(R.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), advise(A.CU_MEM_ADVISE_UNSET_READ_MOSTLY, at(D, 0)), query(R.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY)
        [(fetch(at(D, i), r), query(R.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION)) for i in (0, 1) for r in (s, t)]
        fetch(at(D, 2), s), fetch(at(D, -1), s), fetch(at(H), t), query(R.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION)
        launch(s, one, add, int(m), 5), s.sync(), launch(t, one, add, int(m), 6), t.sync(), driver.cuMemcpyDtoH(np.zeros(4, np.uint8).ctypes.data, m, 4)
        ctypes.c_int.from_address(int(m)).value
        [driver.cuMemRangeGetAttribute(4, w, m, 1 << 21) for w in (R.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, R.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, R.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, R.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID)]
        status(driver.cuMemFree(m))
        """,
    ),
    "two devices: properties": (
        TWO
        + """
P, A = driver.CUdevice_P2PAttribute, driver.CUdevice_attribute
pairs = ((0, 1), (1, 0), (0, 0), (0, 2), (2, 0), (-1, 0))
O = driver.CUatomicOperation
""",
        """
        [driver.cuDeviceCanAccessPeer(*p) for p in pairs]
        [driver.cuDeviceGetP2PAttribute(P.CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, *p) for p in pairs]
        [driver.cuDeviceGetP2PAttribute(P.CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, *p) for p in pairs]
        [driver.cuDeviceGetP2PAttribute(P.CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED, *p) for p in pairs]
        [int(driver.cuDeviceGetP2PAttribute(P.CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, *p)[0]) for p in pairs]
        [driver.cuDeviceGetP2PAtomicCapabilities([O.CU_ATOMIC_OPERATION_INTEGER_ADD, O.CU_ATOMIC_OPERATION_CAS], 2, *p) for p in pairs]
        [driver.cuDeviceGetP2PAtomicCapabilities([o], 1, 0, 1) for o in O]
        driver.cuDeviceGetP2PAtomicCapabilities([], 0, 0, 1)
        d.can_access_peer(e), e.can_access_peer(d), d.can_access_peer(d), d.can_access_peer(1), d.can_access_peer(0)
        d.can_access_peer(2)
        [driver.cuDeviceGetAttribute(A.CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, i) for i in (0, 1, 2)]
        d.uuid != e.uuid, d.pci_bus_id != e.pci_bus_id, d == e, d is Device(0), hash(d) == hash(e), d.name == e.name
        [i.device_id for i in Device.get_all_devices()]
        driver.cuDeviceGet(2), driver.cuDeviceGet(-1)
        Device(2)
        [driver.cuDeviceGetByPCIBusId(i.pci_bus_id.encode())[1] for i in (d, e)]
        """,
    ),
    "two devices: topology": (
        TWO
        + """
from cuda.core import system
from cuda.core.system import typing as T
a, b = (i.to_system_device() for i in (d, e))
""",
        """
        [i.name for i in T.GpuP2PCapsIndex], [i.name for i in T.GpuP2PStatus]
        [(c.name, system.get_p2p_status(a, b, c)) for c in T.GpuP2PCapsIndex]
        [(c.name, system.get_p2p_status(b, a, c)) for c in T.GpuP2PCapsIndex]
        [(c.name, system.get_p2p_status(a, a, c)) for c in T.GpuP2PCapsIndex]
        system.get_p2p_status(a, b, "x")
        system.get_p2p_status(a, 1, "read")
        system.get_topology_common_ancestor(a, b), system.get_topology_common_ancestor(b, a)
        system.get_topology_common_ancestor(a, a)
        system.get_topology_common_ancestor(a, None)
        [len(list(i.get_topology_nearest_gpus(l))) for i in (a, b) for l in T.GpuTopologyLevel]
        a.index, b.index, system.get_num_devices(), [i.index for i in system.Device.get_all_devices()]
        system.Device(index=2)
        system.Device(uuid=b.uuid).index, system.Device(pci_bus_id=b.pci_info.bus_id).index
        [i.device_id for i in (a.to_cuda_device(), b.to_cuda_device())]
        """,
    ),
    "two devices: green contexts": (
        TWO
        + """
def part(device):
    sm = device.resources.sm
    groups, rest = sm.split(SMResourceOptions(count=sm.min_partition_size))
    return groups[0]
""",
        """
        [i.resources.sm.sm_count == i.properties.multiprocessor_count for i in (d, e)]
        p, q = part(d), part(e)
        gd = d.create_context(ContextOptions(resources=[p])); gd.is_green, gd.device.device_id if hasattr(gd, "device") else None
        use(e), e.create_context(ContextOptions(resources=[q])).is_green, use(d)
        d.create_context(ContextOptions(resources=[q]))
        ge = e.create_context(ContextOptions(resources=[q])); ge.is_green
        sd, se = gd.create_stream(), ge.create_stream(); sd.device.device_id, se.device.device_id
        launch(sd, one, add, x, 1), sd.sync(), value(x)
        launch(se, one, add, y, 2), se.sync(), value(y)
        se.wait(sd.record())
        sd.wait(se.record())
        sd.sync(), se.sync()
        d.set_current(gd) is not None, Device().device_id, launch(sd, one, add, x, 3), sd.sync(), value(x)
        e.set_current(ge) is not None, Device().device_id, launch(se, one, add, y, 3), se.sync(), value(y)
        use(d), sd.close(), se.close(), gd.close(), ge.close()
        """,
    ),
    "two devices: a fault on one": (
        TWO,
        """
        launch(s, one, add, 8, 1)
        s.sync()
        e.sync(), t.sync()
        launch(t, one, add, y, 2)
        t.sync(), use(e)
        out = np.zeros(1, np.int32); status(driver.cuMemcpyDtoH(out.ctypes.data, int(y.handle), 4)), int(out[0])
        y.copy_from(x, stream=t)
        t.sync()
        e.allocate(64, stream=t).device_id
        use(d), s.is_closed
        d.sync()
        d.allocate(64, stream=s)
        """,
    ),
}
