"""Objects of `cuda.core` at process exit and in child processes: no crash, nothing on stderr."""

import subprocess
import sys
import textwrap

import pytest

from helpers.programs import python

SOURCE = 'extern "C" __global__ void add(int *p, int n) { atomicAdd(p, n); }'
SETUP = """
import ctypes, gc, sys, threading, time
from cuda.core import *
device = Device(0)
device.set_current()
code = Program('extern "C" __global__ void add(int *p, int n) { atomicAdd(p, n); }', "c++").compile("ptx").code
def family():
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25))
    stream = device.create_stream()
    buffer = pool.allocate(64, stream=stream)
    buffer.fill(0, stream=stream)
    kernel = ObjectCode.from_ptx(code).get_kernel("add")
    launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer, ctypes.c_int32(1))
    program = Program("__device__ int x;", "c++")
    found = dict(pool=pool, stream=stream, buffer=buffer, kernel=kernel, event=stream.record(), program=program)
    return dict(found, linker=Linker(ObjectCode.from_ptx(code)))
"""

# Threads finish compiling before the process exits: NVIDIA's compilers crash otherwise (docs/core.md, "Process exit").
ENDINGS = {
    "in globals": "things = family()",
    "in globals, made backwards": "a, b, c = (family()[n] for n in ('event', 'buffer', 'kernel'))",
    "in a cycle": "class Node: pass\nnode = Node(); node.node = node; node.things = family()\ngc.disable()",
    "in a class": "class Holder: things = family()",
    "in a module that is gone": "import types\nm = types.ModuleType('m'); sys.modules['m'] = m; m.things = family(); del m",
    "in a thread-local": "local = threading.local(); local.things = family()",
    "in a daemon thread": """
ready = threading.Event()
def run():
    device.set_current()
    things = family()
    ready.set()
    while True:
        launch(things["stream"], LaunchConfig(grid=1, block=1), things["kernel"], things["buffer"], ctypes.c_int32(1))
        things["stream"].record().sync()
threading.Thread(target=run, daemon=True).start()
assert ready.wait(60)
time.sleep(0.2)
""",
    "in a daemon thread that allocates": """
def run():
    device.set_current()
    stream = device.create_stream()
    while True:
        device.allocate(64, stream=stream).close()
        device.create_event()
for _ in range(2):
    threading.Thread(target=run, daemon=True).start()
time.sleep(0.2)
""",
    "in a daemon thread that waits": """
ready = threading.Event()
def run():
    device.set_current()
    things = family()
    ready.set()
    time.sleep(100)
threading.Thread(target=run, daemon=True).start()
assert ready.wait(60)
""",
    "used by atexit": """
import atexit
things = family()
def last():
    launch(things["stream"], LaunchConfig(grid=1, block=1), things["kernel"], things["buffer"], ctypes.c_int32(1))
    things["stream"].sync()
    for name in ("stream", "buffer", "pool"):
        things[name].close()
atexit.register(last)
""",
    "used by a finaliser at the end": """
class Late:
    def __init__(self): self.things = family()
    def __del__(self):
        self.things["buffer"].close(); self.things["stream"].close()
late = Late()
sys.late = Late()
""",
    "freed by a memory resource in Python": """
from cuda.bindings import driver
class Mine(MemoryResource):
    is_device_accessible, is_host_accessible, device_id = True, False, 0
    def allocate(self, size, *, stream=None):
        return Buffer.from_handle(driver.cuMemAlloc(size)[1], size, mr=self)
    def deallocate(self, ptr, size, *, stream=None):
        driver.cuMemFree(ptr)
buffer = Mine().allocate(64)
sys.buffer = Mine().allocate(64)
""",
    "with a kernel that still runs": """
slow = 'extern "C" __global__ void slow(int *p) { for (int i = 0; i < 100000; ++i) atomicAdd(p, 1); }'
slow = Program(slow, "c++").compile("ptx").get_kernel("slow")
stream = device.create_stream(); buffer = device.allocate(4, stream=stream)
launch(stream, LaunchConfig(grid=4, block=32), slow, buffer)
""",
    "not at all": "import os; things = family(); sys.stdout.flush(); os._exit(0)",
}


def run_script(body, expected=0, quiet=True):
    """The output of a program. Nothing may be written to stderr, unless an exception ends it."""
    done = python(SETUP + textwrap.dedent(body), options=("-X", "faulthandler", "-W", "ignore"))
    text = [line for line in done.stderr.splitlines() if "CPU device" not in line]
    assert done.returncode == expected, (done.returncode, done.stderr[-2000:])
    assert expected or not quiet or not text, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("where", ENDINGS)
def test_live_objects_at_interpreter_exit(where):
    last = "" if where == "not at all" else "\nprint('end')\n"
    assert run_script(ENDINGS[where] + last).strip() in ("end", "")


@pytest.mark.cpu  # NVIDIA's driver does not specify the handles of a destroyed context.
def test_live_objects_after_their_context():
    code = "from cuda.bindings import driver\nthings = family()\ndriver.cuDevicePrimaryCtxReset(0)\nprint('end')"
    assert run_script(code, quiet=False).strip() == "end"


def test_live_objects_at_exit_by_exception():
    run_script("things = family()\nraise SystemExit(7)", 7)
    run_script("things = family()\nraise ValueError(things)", 1)


def test_forked_child_leaves_the_parents_objects_alone():
    """The driver does not work in a forked child: objects of the parent are dropped there without driver calls."""
    out = run_script(
        """
        import os
        things = family(); more = family(); kept = family()
        pid = os.fork()
        if pid == 0:
            things.clear(); gc.collect()
            for name in ("stream", "event", "buffer", "pool", "program", "linker"):
                try:
                    more[name].close()
                except Exception as error:
                    assert str(error), name
            os._exit(5)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
        pid = os.fork()
        if pid == 0:
            sys.exit(6)  # the interpreter's own end, with everything alive
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 6
        for group in (things, more, kept):
            launch(group["stream"], LaunchConfig(grid=1, block=1), group["kernel"], group["buffer"], ctypes.c_int32(1))
            group["stream"].sync()
        print("parent well")
        """
    )
    assert out.split() == ["parent", "well"]


def test_forked_child_does_not_wait_for_the_parents_compilations():
    out = run_script(
        """
        import os
        lines = "".join(f"x = x * x + {i}.0f;" for i in range(2_000))
        for copies in (1, 4, 16, 64):
            kernels = "".join(f"__global__ void k{i}(float *p) {{ float x = *p; {lines} *p = x; }}" for i in range(copies))
            program = Program(kernels, "c++")
            compiling = threading.Thread(target=program.compile, args=("ptx",), daemon=True)
            compiling.start()
            time.sleep(0.2)
            pid = os.fork()
            if pid == 0:
                sys.exit(6)
            start = time.monotonic()
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 6
            elapsed = time.monotonic() - start
            assert elapsed < 8, elapsed
            if compiling.is_alive():
                break
        else:
            raise AssertionError("every compilation ended before the fork")
        compiling.join()
        print("parent well")
        """
    )
    assert out.split() == ["parent", "well"]


SPAWNED = """
import ctypes, multiprocessing
from cuda.bindings import driver
from cuda.core import *

def child(device, object_code, options):
    assert device is Device(0), device
    device.set_current()
    stream = device.create_stream(options=options)
    buffer = device.allocate(4, stream=stream)
    buffer.fill(0, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=4), object_code.get_kernel("add"), buffer, ctypes.c_int32(2))
    stream.sync()
    value = bytearray(4)
    driver.cuMemcpyDtoH(value, buffer.handle, 4)
    return int.from_bytes(value, "little")

if __name__ == "__main__":
    device = Device(0)
    device.set_current()
    code = Program(%r, "c++").compile("ptx")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.starmap(child, [(device, code, StreamOptions(priority=0))] * 2))
"""


def test_spawned_children_receive_picklable_objects(tmp_path):
    script = tmp_path / "spawned.py"
    script.write_text(SPAWNED % SOURCE)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "[8, 8]"
