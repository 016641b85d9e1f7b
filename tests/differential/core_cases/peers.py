"""Memory of one device accessed by others. With a single device most lines raise."""

from .resources import RESOURCES

PEERS = (
    RESOURCES
    + """
from cuda.core.utils import *
from cuda.core import _memory
count = len(Device.get_all_devices())
e = Device(1 % count)
other = {e} - {d}
m = DeviceMemoryResource(d, {})
def now(): return sorted(p.device_id for p in m.peer_accessible_by)
"""
)

GROUPS = {
    "peers: set": (
        PEERS,
        """
        m.peer_accessible_by, len(m.peer_accessible_by), type(m.peer_accessible_by).__mro__[1]
        public(m.peer_accessible_by)
        m.peer_accessible_by is m.peer_accessible_by, m.peer_accessible_by == set()
        m.peer_accessible_by = [e]; now()
        m.peer_accessible_by == other, m.peer_accessible_by == {1}, 1 in m.peer_accessible_by, e in m.peer_accessible_by, 0 in m.peer_accessible_by, d in m.peer_accessible_by
        "x" in m.peer_accessible_by, 99 in m.peer_accessible_by, None in m.peer_accessible_by
        m.peer_accessible_by = {1, 0}; now()
        m.peer_accessible_by = (1, 1, e); now()
        m.peer_accessible_by = iter([]); now()
        m.peer_accessible_by = None
        m.peer_accessible_by = 1
        m.peer_accessible_by = e
        m.peer_accessible_by = ["1"]
        m.peer_accessible_by = [-1]
        m.peer_accessible_by = [e, 99]
        now()
        m.peer_accessible_by.add(1); now()
        m.peer_accessible_by.add(e), m.peer_accessible_by.add(0), m.peer_accessible_by.add(d), now()
        m.peer_accessible_by.add(99)
        m.peer_accessible_by.add("x")
        type(m.peer_accessible_by | {d}), m.peer_accessible_by & {e} == other, m.peer_accessible_by - {e}, m.peer_accessible_by <= {e}, m.peer_accessible_by.isdisjoint(other)
        hash(m.peer_accessible_by)
        m.peer_accessible_by.discard(1); now()
        m.peer_accessible_by.discard(1), m.peer_accessible_by.discard(99), m.peer_accessible_by.discard("x"), m.peer_accessible_by.discard(0)
        m.peer_accessible_by.remove(e)
        m.peer_accessible_by.remove(99)
        m.peer_accessible_by.pop()
        m.peer_accessible_by |= {1}; now()
        m.peer_accessible_by -= {1}; now()
        m.peer_accessible_by ^= {1}; now()
        m.peer_accessible_by &= set(); now()
        m.peer_accessible_by.update([1], {0}), m.peer_accessible_by.update(), now()
        m.peer_accessible_by.update(1)
        m.peer_accessible_by.update([99])
        m.peer_accessible_by.difference_update([1]), m.peer_accessible_by.difference_update([99]), now()
        m.peer_accessible_by.symmetric_difference_update([1]), now()
        m.peer_accessible_by.intersection_update([e]), now()
        m.peer_accessible_by.pop() is e, now()
        m.peer_accessible_by.add(1), m.peer_accessible_by.clear(), now()
        kept = m.peer_accessible_by; m.peer_accessible_by = [e]; set(kept) == other
        kept.clear(), now()
        a, b = DeviceMemoryResource(d), DeviceMemoryResource(d); a.peer_accessible_by = [e]; set(b.peer_accessible_by) == other
        a.peer_accessible_by = []; len(b.peer_accessible_by)
        m.close()
        m.peer_accessible_by
        m.peer_accessible_by = []
        list(kept)
        kept.add(e)
        """,
    ),
    "peers: work across devices": (
        PEERS
        + """
x = m.allocate(64, stream=s)
e.set_current()
t = e.create_stream()
n = DeviceMemoryResource(e, {})
y = n.allocate(64, stream=t)
h = LegacyPinnedMemoryResource().allocate(64)
""",
        """
        d.can_access_peer(e) in (True, False), d.can_access_peer(1 % count) == d.can_access_peer(e)
        d.can_access_peer(99)
        d.can_access_peer("x")
        y.device_id == e.device_id, x.device_id, y.__dlpack_device__()[1] == e.device_id, n.device_id == e.device_id
        x.fill(5, stream=s), s.sync(), y.copy_from(x, stream=t), y.copy_to(h, stream=t) is h
        t.sync(); set(np.from_dlpack(h).tolist())
        y.fill(6, stream=t), t.sync(), x.copy_from(y, stream=s), x.copy_to(h, stream=s) is h
        s.sync(); set(np.from_dlpack(h).tolist())
        e.allocate(64, stream=t).device_id == e.device_id, d.allocate(64, stream=s).device_id
        Buffer.from_handle(int(driver.cuMemAlloc(64)[1]), 64).device_id == e.device_id
        VirtualMemoryResource(e).allocate(4096).device_id == e.device_id, VirtualMemoryResource(d, {"peers": [e.device_id]}).allocate(4096).device_id
        q = ManagedMemoryResource({"preferred_location": e.device_id}); b = q.allocate(1 << 16, stream=t); q.device_id == e.device_id, b.device_id == e.device_id
        b.accessed_by = {d, e}; b.accessed_by == {d, e}
        b.preferred_location = e; b.preferred_location is e
        b.prefetch(d, stream=t), b.prefetch(e, stream=t), prefetch_batch(t, [b], [d])
        StridedMemoryView.from_dlpack(y, -1).device_id == e.device_id, StridedMemoryView.from_buffer(y, (4,), itemsize=1).device_id == e.device_id
        y.close(t), y.is_closed, x.close(s), x.is_closed
        """,
    ),
    "peers: access": (
        PEERS
        + """
from cuda.core._memory._device_memory_resource import DMR_mempool_get_access as access
""",
        """
        m.peer_accessible_by = [e]; now()
        m.peer_accessible_by = [99]
        m.peer_accessible_by = []; now()
        access(m, 0)
        access(m, 99)
        access(m, "x")
        access(3, 0)
        """,
    ),
}
