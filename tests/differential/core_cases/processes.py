"""Memory and events between processes."""

from .resources import RESOURCES

SHARED = (
    RESOURCES
    + """
import uuid, warnings
from multiprocessing import reduction
m = DeviceMemoryResource(d, {"ipc_enabled": True})
h, b = m.allocation_handle, m.allocate(64, stream=s)
x = b.ipc_descriptor
def send(o):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bytes(reduction.ForkingPickler.dumps(o))
def through(o): return reduction.ForkingPickler.loads(send(o))
def again(o): return pickle.loads(pickle.dumps(o))
def error(call):
    try: return call()
    except Exception as e: return type(e).__name__
"""
)

CHILD = (
    RESOURCES
    + '''
import os, subprocess, sys, tempfile
PROGRAM = """
import multiprocessing, sys, warnings
warnings.simplefilter("ignore")
def error(call):
    try: return call()
    except Exception as e: return type(e).__name__
def about(o):
    kind = type(o).__name__
    if kind == "Buffer": return kind, o.size, o.is_mapped, o.is_closed, type(o.memory_resource).__name__, o.memory_resource.is_mapped
    if kind.endswith("MemoryResource"): return kind, o.is_mapped, o.is_ipc_enabled, o.is_handle_owned, type(o).from_registry(o.uuid) is o, o.device_id
    if kind == "Event":
        from cuda.core import Device
        s = Device(0).create_stream()
        answers = [error(call) for call in (lambda: s.wait(o), o.sync, lambda: o.is_done, lambda: s.record(o), lambda: o - o)]
        return kind, o.is_ipc_enabled, o.is_timing_enabled, o.is_blocking_sync, o.device is None, o.context is None, answers, type(o.ipc_descriptor).__name__
    return kind
def work(pipe, objects):
    from cuda.core import Device
    import numpy as np
    d = Device(0); d.set_current(); s = d.create_stream()
    try: objects = objects or pipe.recv()
    except Exception as e: pipe.send(("cannot be had", type(e).__name__)); return
    seen = [about(o) for o in objects]
    buffers = [o for o in objects if type(o).__name__ == "Buffer"]
    values = []
    for b in buffers:
        from cuda.core import LegacyPinnedMemoryResource
        if b.is_host_accessible:
            x = np.from_dlpack(b); values.append(sorted(set(x.tolist()))); x[:] = 9
            continue
        host = LegacyPinnedMemoryResource().allocate(b.size)
        b.copy_to(host, stream=s); s.sync(); values.append(sorted(set(np.from_dlpack(host).tolist())))
        b.fill(9, stream=s); s.sync()
    one = len({id(b.memory_resource) for b in buffers})
    refused = [error(lambda: b.memory_resource.allocate(4, stream=s)) for b in buffers]
    for b in buffers: b.close()
    pipe.send((seen, values, one, refused, [b.is_closed for b in buffers]))
if __name__ == "__main__":
    from cuda.core import *
    import numpy as np
    d = Device(0); d.set_current(); s = d.create_stream()
    context = multiprocessing.get_context(sys.argv[1])
    multiprocessing.set_start_method(sys.argv[1])
    m = DeviceMemoryResource(d, {"ipc_enabled": True})
    b, c = m.allocate(64, stream=s), m.allocate(128, stream=s)
    b.fill(1, stream=s); c.fill(2, stream=s)
    e = s.record(options={"ipc_enabled": True}); s.sync()
    def pinned():
        p = PinnedMemoryResource({"ipc_enabled": True})
        x = p.allocate(64, stream=s); s.sync(); np.from_dlpack(x)[:] = 3
        return [p, x]
    what = eval(sys.argv[2])
    here, there = context.Pipe()
    early = sys.argv[3] == "early"
    child = context.Process(target=work, args=(there, what if early else None), daemon=True); child.start()
    # With this end closed here, a child that dies ends the wait.
    there.close()
    try:
        if not early: here.send(what)
        print(here.recv() if here.poll(15) else "no answer")
    except (EOFError, ConnectionError): print("the child went")
    child.join(12); print(child.exitcode)
    host = LegacyPinnedMemoryResource().allocate(64); b.copy_to(host, stream=s); s.sync(); print(set(np.from_dlpack(host).tolist()))
"""
folder = tempfile.mkdtemp()
path = os.path.join(folder, "program.py")
with open(path, "w") as file: file.write(PROGRAM)
def child(method, what, when="late"):
    done = subprocess.run([sys.executable, path, method, what, when], capture_output=True, text=True, timeout=40)
    return done.returncode, done.stdout.strip(), (done.stderr.strip().splitlines() or [""])[-1].split(":")[0]
'''
)

GROUPS = {
    "processes: pools": (
        SHARED,
        """
        about(m)["is_ipc_enabled"], about(m)["is_mapped"], about(m)["is_handle_owned"], type(m.uuid), m.uuid is m.uuid
        h is m.allocation_handle, public(h), type(h).__name__, int(h) == h.handle, h.uuid == m.uuid, h.is_closed
        type(h)()
        pickle.dumps(h)
        copy.copy(h)
        weakref.ref(h)
        h.handle = 3
        DeviceMemoryResource.from_registry(m.uuid)
        DeviceMemoryResource.from_registry(3)
        again(m)
        copy.copy(m)
        r = DeviceMemoryResource.from_allocation_handle(d, h); r is m, r.is_mapped, r.is_ipc_enabled, r.is_handle_owned, r.uuid == m.uuid, r.device_id
        DeviceMemoryResource.from_registry(m.uuid) is r, DeviceMemoryResource.from_allocation_handle(d, h) is r, r.register(r.uuid) is r, m.register(m.uuid) is r, again(m) is r, again(r) is r
        r.allocate(4, stream=s)
        r.attributes.release_threshold, r.peer_accessible_by
        PinnedMemoryResource.from_allocation_handle(h)
        DeviceMemoryResource.from_allocation_handle(99, h)
        DeviceMemoryResource.from_allocation_handle(d, "x")
        DeviceMemoryResource.from_allocation_handle(d, None)
        DeviceMemoryResource.from_allocation_handle(d, -1)
        DeviceMemoryResource.from_allocation_handle(d, 9999)
        DeviceMemoryResource.from_allocation_handle(d)
        n = DeviceMemoryResource.from_allocation_handle(d, int(h)); n.uuid, n.is_mapped, n.is_ipc_enabled
        key = uuid.uuid4(); n.register(key) is n, n.uuid == key, DeviceMemoryResource.from_registry(key) is n
        n.register(uuid.uuid4())
        n.register(None)
        n.register(3)
        DeviceMemoryResource.from_allocation_handle(0, int(h)).register(key) is n
        del n; gc.collect(); DeviceMemoryResource.from_registry(key)
        r.close(); r.is_closed, r.is_mapped, r.uuid, r.is_ipc_enabled, r.is_handle_owned
        h.close(), h.is_closed, h.handle, h.uuid == m.uuid, h.close()
        int(h)
        m.allocation_handle is h
        DeviceMemoryResource.from_allocation_handle(d, h)
        send(m)
        b.size, x.size
        m.close(), m.uuid, m.is_ipc_enabled
        m.allocation_handle
        pickle.dumps(m)
        b.is_closed, b.ipc_descriptor is x
        pickle.dumps(b)
        o = DeviceMemoryResource(d, {}); o.is_ipc_enabled, o.uuid
        send(o)
        """,
    ),
    "processes: buffers": (
        SHARED + "r = DeviceMemoryResource.from_allocation_handle(d, h)\nmake, (raw, _) = x.__reduce__()\n",
        """
        type(x).__name__, public(x), x is b.ipc_descriptor, x.size, b.is_mapped
        type(x)()
        x.size = 3
        x == b.ipc_descriptor, again(x).size, again(x) == x, copy.copy(x).size
        weakref.ref(x)
        m.allocate(0, stream=s).ipc_descriptor.size
        mr.allocate(64, stream=s).ipc_descriptor
        Buffer.from_ipc_descriptor(m, x, stream=s)
        q = Buffer.from_ipc_descriptor(r, x, stream=s); type(q).__name__, q.is_mapped, q.size, q.memory_resource is r, q.device_id, q.is_device_accessible, q.owner, q
        q.ipc_descriptor is x
        p = Buffer.from_ipc_descriptor(r, x, stream=s); p == q, p is q, p.handle == q.handle
        q.close(), q.is_closed, p.is_closed
        again(p).handle == p.handle
        again(b).is_mapped, through(b).is_mapped
        p.copy_to(stream=s)
        p.copy_to(b, stream=s) is b
        Buffer.from_ipc_descriptor(DeviceMemoryResource(d), x, stream=s)
        Buffer.from_ipc_descriptor(3, x, stream=s)
        Buffer.from_ipc_descriptor(r, 3, stream=s)
        Buffer.from_ipc_descriptor(r, None, stream=s)
        Buffer.from_ipc_descriptor(r, x)
        Buffer.from_ipc_descriptor(r, x, stream=None)
        Buffer.from_ipc_descriptor(r, x, stream=3)
        Buffer.from_ipc_descriptor(r, x, s)
        t = d.create_stream(); t.close(); Buffer.from_ipc_descriptor(r, x, stream=t)
        Buffer.from_ipc_descriptor(r, make(b"abc", 3), stream=s)
        Buffer.from_ipc_descriptor(r, make(bytes(64), 3), stream=s)
        Buffer.from_ipc_descriptor(r, make(raw, 3), stream=s).size, Buffer.from_ipc_descriptor(r, make(raw, 0), stream=s).size
        Buffer.from_ipc_descriptor(r, make(raw, 1 << 40), stream=s)
        make(raw, -1)
        make(3, 3)
        type(ManagedBuffer.from_ipc_descriptor(r, x, stream=s)).__name__
        p.close(), r.close(), r.is_closed
        Buffer.from_ipc_descriptor(r, x, stream=s)
        b.close()
        b.ipc_descriptor
        pickle.dumps(b)
        send(mr.allocate(4, stream=s))
        """,
    ),
    "processes: pinned pools": (
        SHARED + "p = PinnedMemoryResource({'ipc_enabled': True})\nc = p.allocate(64, stream=s)\n",
        """
        p.is_ipc_enabled, p.is_handle_owned, p.device_id, type(p.uuid), type(p.allocation_handle).__name__, p.numa_id >= 0
        r = PinnedMemoryResource.from_allocation_handle(p.allocation_handle); r.is_mapped, r.uuid == p.uuid, r.device_id, r.is_host_accessible
        q = Buffer.from_ipc_descriptor(r, c.ipc_descriptor, stream=s); q.is_mapped, q.is_host_accessible, q.is_device_accessible, q.device_id, q.__dlpack_device__()
        np.from_dlpack(c)[:] = 4; set(np.from_dlpack(q).tolist())
        DeviceMemoryResource.from_allocation_handle(d, p.allocation_handle)
        PinnedMemoryResource.from_registry(p.uuid) is r
        r.allocate(4, stream=s)
        """,
    ),
    "processes: events": (
        SHARED + "e = s.record(options={'ipc_enabled': True})\ni = e.ipc_descriptor\nmake = i.__reduce__()[0]\n",
        """
        e.is_ipc_enabled, e.is_timing_enabled, type(i).__name__, i is e.ipc_descriptor, public(i)
        type(i)()
        again(i) == i, i == 3
        hash(i)
        s.record(e)
        e - e
        Event.from_ipc_descriptor(3)
        Event.from_ipc_descriptor(None)
        Event.from_ipc_descriptor()
        Event.from_ipc_descriptor(make(b"abc", False))
        Event.from_ipc_descriptor(make(bytes(64), False))
        make(3, False)
        pickle.dumps(e)
        copy.copy(e)
        s.record().ipc_descriptor
        send(s.record())
        s.record(options={"ipc_enabled": True, "timing_enabled": True})
        d.create_event({"ipc_enabled": True})
        s.record(options={"ipc_enabled": True, "blocking_sync": True}).ipc_descriptor == i
        e.close()
        e.ipc_descriptor
        e.is_ipc_enabled
        """,
    ),
    "processes: the fork warning": (
        SHARED
        + "import multiprocessing\nfrom cuda.core._utils import cuda_utils\ndef dumps(o): return len(reduction.ForkingPickler.dumps(o)) > 0\nmultiprocessing.set_start_method('fork')\n",
        """
        cuda_utils.reset_fork_warning()
        dumps(m)
        dumps(m)
        cuda_utils.reset_fork_warning(); dumps(b)
        cuda_utils.reset_fork_warning(); dumps(h)
        cuda_utils.reset_fork_warning(); dumps(s.record(options={"ipc_enabled": True}))
        cuda_utils.reset_fork_warning(); dumps(d)
        cuda_utils.reset_fork_warning(); pickle.dumps(m) != b"", m.allocation_handle is h
        cuda_utils.reset_fork_warning(); cuda_utils.check_multiprocessing_start_method()
        multiprocessing.set_start_method("spawn", force=True); cuda_utils.reset_fork_warning(); dumps(m)
        multiprocessing.set_start_method("forkserver", force=True); cuda_utils.reset_fork_warning(); dumps(m)
        """,
    ),
    "processes: children": (
        CHILD,
        """
        child("spawn", "[m, b, c, b]")
        child("spawn", "[b, c]")
        child("spawn", "[e, b]")
        child("spawn", "[s.record(options={'ipc_enabled': True, 'blocking_sync': True}), e]")
        """,
    ),
    "processes: children, early": (
        CHILD,
        """
        child("spawn", "[e]", "early")
        child("spawn", "[b, m]", "early")
        child("forkserver", "[m, b, c, e]")
        """,
    ),
    "processes: children, others": (
        CHILD,
        """
        child("spawn", "pinned()")
        child("spawn", "[s]")
        child("spawn", "[m.allocation_handle, b.ipc_descriptor, d]")
        child("spawn", "[DeviceMemoryResource(d).allocate(4, stream=s)]")
        """,
    ),
}
