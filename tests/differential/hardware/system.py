"""What NVML and the driver answer on a GPU, with whichever cuda.core is installed."""

import os
import subprocess
import sys
import time

from cuda.core import Device, system


def t(label, f):
    begin = time.perf_counter()
    try:
        v = f()
        print(f"{label}: {v!r}  [{(time.perf_counter() - begin) * 1e6:.0f} us]", flush=True)
    except BaseException as e:
        print(f"{label}: !! {type(e).__module__}.{type(e).__name__}: {e}", flush=True)


cuda = Device(0)
cuda.set_current()
d = system.Device(index=0)
print("== attributes")
for n in sorted(vars(system.Device)):
    if not n.startswith("_") and not callable(getattr(system.Device, n)):
        t(n, lambda: getattr(d, n))
print("== questions")
t("uuid without prefix", lambda: system.Device(uuid=d.uuid_without_prefix).index)
t("p2p same device", lambda: system.get_p2p_status(d, d, "read"))
t("p2p unknown", lambda: system.get_p2p_status(d, d, "unknown"))
t("to_system_device", lambda: cuda.to_system_device().uuid)
t("fields", lambda: d.get_field_values([1, 91, 190]).get_all_values())
t("register system events", lambda: system.register_events("bind").wait(timeout_ms=50))
t("register xid, 50 ms", lambda: d.register_events("xid_critical_error").wait(timeout_ms=50))
code = "from cuda.bindings import nvml; nvml.init_v2(); import time; b=time.time(); e=nvml.event_set_create(); nvml.device_register_events(nvml.device_get_handle_by_index_v2(0), 8, e)\ntry: nvml.event_set_wait_v2(e, 0)\nexcept Exception as x: print(type(x).__name__, time.time()-b)"
try:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=10)
    print("wait0 (NVML's timeout 0):", done.stdout.strip(), done.stderr.strip()[-200:])
except subprocess.TimeoutExpired:
    print("wait0 (NVML's timeout 0): blocks")
print("== checkpoint")
from cuda.bindings import driver
from cuda.core.checkpoint import Process


def raw(label, *r):
    print(label, [getattr(x, "name", x) for x in r[0]], flush=True)


raw("state of self", driver.cuCheckpointProcessGetState(os.getpid()))
raw("state of pid 1", driver.cuCheckpointProcessGetState(1))
raw("state of no process", driver.cuCheckpointProcessGetState(2**31 - 1))
raw("unlock running self", driver.cuCheckpointProcessUnlock(os.getpid(), None))
child = subprocess.Popen(
    [
        sys.executable,
        "-c",
        """
import sys
from cuda.core import Device
d = Device(0); d.set_current(); s = d.create_stream(); b = d.allocate(4 << 30, stream=s); b.fill(3, stream=s); s.sync()
print("ready", flush=True); sys.stdin.readline()
h = bytearray(1 << 20)
from cuda.bindings import driver; import ctypes
c = (ctypes.c_char * (1 << 20)).from_buffer(h)
print(driver.cuMemcpyDtoH(ctypes.addressof(c), int(b.handle) + (3 << 30), 1 << 20)[0].name, set(h), flush=True)
""",
    ],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
)
child.stdout.readline()
p = Process(child.pid)


def used():
    return (d.memory_info.used >> 20, [(q.pid, q.used_gpu_memory >> 20) for q in d.compute_running_processes])


for step in ("state", "lock", "state", "checkpoint", "state", "restore", "state", "unlock", "state"):
    t(step, (lambda: getattr(p, step)) if step == "state" else getattr(p, step))
    print("   used MiB, processes:", used())
t("restore_thread_id", lambda: p.restore_thread_id)
child.stdin.write("x\n")
child.stdin.flush()
print("child:", child.stdout.readline().strip())
child.wait(30)
t("state of an exited process", lambda: p.state)
