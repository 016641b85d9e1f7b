"""Ctrl-C during a wait: `KeyboardInterrupt` within a fraction of a second, on both devices; the work goes on."""

import pytest

from helpers.programs import python

# The kernel runs until the host sets the flag. A thread sends the signal while the main thread waits; another one ends the
# kernel after 30 s, should the wait not be interruptible.
SETUP = """
import ctypes, os, signal, threading, time
import numpy as np
from cuda.core import *
from cuda.core.utils import StridedMemoryView
signal.signal(signal.SIGINT, signal.default_int_handler)
device = Device(0)
device.set_current()
stream = device.create_stream()
pinned = LegacyPinnedMemoryResource().allocate(64)
flag = np.from_dlpack(pinned).view(np.int32)
flag[:] = 0
code = '''extern "C" __global__ void hold(volatile int *flag, int *out) {
    while (flag[0] == 0) {}
    out[0] = 42;
}'''
options = ProgramOptions(arch=f"sm_{device.arch}")
hold = Program(code, "c++", options).compile("cubin").get_kernel("hold")
out = device.allocate(4, stream=stream)
result = np.zeros(1, np.int32)
out.copy_to(result, stream=stream)
device.sync()
def release():
    flag[0] = 1
launch(stream, LaunchConfig(grid=1, block=1), hold, pinned, out)
event = stream.record()
failsafe = threading.Timer(30, release)
failsafe.daemon = True
failsafe.start()
def send():
    global sent
    sent = time.monotonic()
    # A signal to the process may reach any thread, and only the main thread's own one ends its wait for another thread.
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
"""

FINISH = """
print("done" if event.is_done else "running")
release()
stream.sync()
device.sync()
out.copy_to(result, stream=stream)
stream.sync()
print(result[0])
"""

WAITS = {
    "Stream.sync": "stream.sync()",
    "Event.sync": "event.sync()",
    "Event.sync, blocking": "stream.record(options=EventOptions(blocking_sync=True)).sync()",
    "Device.sync": "device.sync()",
    "default stream": "w = device.default_stream; w.wait(event); w.sync()",
    "Buffer.copy_to": "out.copy_to(result, stream=stream)",
    "StridedMemoryView.copy_to": (
        "v = StridedMemoryView.from_buffer(out, (1,), dtype=np.dtype(np.int32));"
        "v.copy_to(StridedMemoryView.from_any_interface(result, -1), stream=stream)"
    ),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS.keys())
def test_ctrl_c_ends_a_wait(wait):
    body = f"""
threading.Timer(0.4, send).start()
try:
    {wait}
    print("returned")
except KeyboardInterrupt:
    late = time.monotonic() - sent
    print("interrupted" if late < 2 else late)
"""
    done = python(SETUP + body + FINISH, timeout=60)
    assert done.stdout.split() == ["interrupted", "running", "42"], done


def test_an_exception_of_any_handler_ends_a_wait():
    body = """
class Alarm(Exception): pass
def handler(*_): raise Alarm
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    stream.sync()
    print("returned")
except Alarm:
    print("interrupted")
"""
    done = python(SETUP + body + FINISH, timeout=60)
    assert done.stdout.split() == ["interrupted", "running", "42"], done


def test_a_handler_that_returns_leaves_the_wait_alone():
    body = """
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
threading.Timer(0.2, send).start()
threading.Timer(0.6, release).start()
stream.sync()
print(len(seen), "done" if event.is_done else "running")
"""
    done = python(SETUP + body, timeout=60)
    assert done.stdout.split() == ["1", "done"], done


def test_other_threads_wait_until_the_work_is_done():
    body = """
ended = threading.Event()
def wait():
    stream.sync()
    print("done" if event.is_done else "running")
    ended.set()
threading.Thread(target=wait).start()
threading.Timer(0.2, send).start()
try:
    # Polling: on some systems a signal does not end the wait for a lock while the driver waits in another thread.
    while not ended.is_set():
        time.sleep(0.01)
except KeyboardInterrupt:
    print("interrupted")
release()
ended.wait()
"""
    done = python(SETUP + body, timeout=60)
    assert done.stdout.split() == ["interrupted", "done"], done


def test_a_process_ends_after_an_interrupted_wait():
    body = """
threading.Timer(0.3, send).start()
failsafe.cancel()
threading.Timer(2, release).start()
stream.sync()
"""
    done = python(SETUP + body, timeout=60)
    assert "KeyboardInterrupt" in done.stderr and done.returncode in (-2, 130, 1), done


COMPILATION = """
import os, signal, threading, time
from cuda.core import *
signal.signal(signal.SIGINT, signal.default_int_handler)
body = "".join(f"x = sinf(x * {i}.5f) + tgammaf(x + {i}.0f) + cosf(x);" for i in range(20))
code = "\\n".join(f'extern "C" __global__ void k{i}(float *p) {{ float x = p[{i}]; {body} p[0] = x; }}' for i in range(60))
program = Program(code, "c++", ProgramOptions(arch="sm_80"))
def send():
    global sent
    sent = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.5, send).start()
try:
    program.compile("cubin")
    print("returned", flush=True)
except KeyboardInterrupt:
    late = time.monotonic() - sent
    print("interrupted" if late < 3 else late, flush=True)
"""


def test_ctrl_c_ends_a_compilation():
    """The program compiles for a minute. NVRTC can be cancelled between the passes of its optimizer."""
    body = """
print(Program("__global__ void f() {}", "c++", ProgramOptions(arch="sm_80")).compile("ptx").code_type)
os._exit(0)
"""
    done = python(COMPILATION + body, timeout=100)
    assert done.stdout.split() == ["interrupted", "ptx"], done
