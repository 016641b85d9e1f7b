"""`cuda.core.checkpoint`: a process is locked, checkpointed, restored and unlocked by a second one and by itself."""

import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest
from cuda.bindings import driver
from cuda.core import Device
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.checkpoint import Process

ON_CPU = Device(0).name.startswith("CPU")
SIZE = 64 << 20

CHILD = """
import sys, threading, zlib
from cuda.core import Device, LaunchConfig, ManagedMemoryResource, Program, ProgramOptions, launch
device = Device(0)
device.set_current()
stream = device.create_stream()
code = r'''
extern "C" __global__ void fill(unsigned *out, unsigned n, unsigned seed) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = i * 2654435761u + seed;
}
'''
kernel = Program(code, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("fill")
large, small = device.allocate(SIZE, stream=stream), device.allocate(1000, stream=stream)
def fill(seed):
    for buffer in (large, small):
        launch(stream, LaunchConfig(grid=64, block=256), kernel, buffer, buffer.size // 4, seed)
    stream.sync()
def contents():
    out = bytearray(SIZE)
    large.copy_to(out, stream=stream)
    stream.sync()
    rest = bytearray(1000)
    small.copy_to(rest, stream=stream)
    stream.sync()
    return zlib.crc32(rest, zlib.crc32(out))
fill(1)
print(contents(), flush=True)
for line in sys.stdin:
    command = line.strip()
    if command == "contents":
        print(contents(), flush=True)
    elif command == "fill":
        fill(2)
        print("filled", flush=True)
"""


class Child:
    def __init__(self, size=SIZE):
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD.replace("SIZE", str(size))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.first = self.process.stdout.readline()
        assert self.first, "the child failed"
        self.pid = self.process.pid

    def send(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline()

    def memory(self):
        """Bytes of the process in the GPU's memory; with the CPU device, in the machine's memory.

        0 where NVML does not list the process: in a container, it may list process ids of the host.
        """
        if not ON_CPU:
            processes = Device(0).to_system_device().compute_running_processes
            return sum(process.used_gpu_memory for process in processes if process.pid == self.pid)
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) << 10


@pytest.fixture
def child():
    child = Child()
    yield child
    child.process.kill()
    child.process.wait()


@pytest.fixture(scope="module", autouse=True)
def _supported():
    """Skips where the driver, or the machine's rights, do not allow checkpoints."""
    Device(0).set_current()
    try:
        assert Process(os.getpid()).state == "running"
    except CUDAError as error:
        pytest.skip(f"no checkpoints on this machine: {error}")


def test_memory_is_released_and_restored_by_a_second_process(child):
    process = Process(child.pid)
    assert (process.pid, process.state) == (child.pid, "running")
    used = child.memory()
    process.lock(timeout_ms=10_000)
    assert process.state == "locked"
    process.checkpoint()
    assert process.state == "checkpointed"
    assert not used or used - child.memory() >= SIZE * 9 // 10
    process.restore()
    assert process.state == "locked"
    process.unlock()
    assert process.state == "running"
    child.send("contents")
    assert child.answer() == child.first
    child.send("fill")
    assert child.answer() == "filled\n"
    child.send("contents")
    assert child.answer() not in ("", child.first)


def test_calls_of_a_locked_process_wait(child):
    process = Process(child.pid)
    process.lock()
    child.send("contents")
    answers = []
    reader = threading.Thread(target=lambda: answers.append(child.answer()))
    reader.start()
    time.sleep(0.5)
    assert answers == []
    process.checkpoint()
    time.sleep(0.2)
    assert answers == []
    process.restore({Device(0).uuid: Device(0).uuid} if ON_CPU else None)
    process.unlock()
    reader.join(60)
    assert answers == [child.first]


def test_steps_in_a_wrong_state_are_refused(child):
    process = Process(child.pid)
    for step in (process.checkpoint, process.restore, process.unlock):
        with pytest.raises(CUDAError, match="CUDA_ERROR_ILLEGAL_STATE"):
            step()
    process.lock()
    for step in (process.lock, process.restore):
        with pytest.raises(CUDAError, match="CUDA_ERROR_ILLEGAL_STATE"):
            step()
    process.checkpoint()
    for step in (process.lock, process.checkpoint, process.unlock):
        with pytest.raises(CUDAError, match="CUDA_ERROR_ILLEGAL_STATE"):
            step()
    process.restore()
    process.unlock()
    child.send("contents")
    assert child.answer() == child.first


def test_a_process_is_checkpointed_again_and_again():
    child = Child(1 << 20)
    try:
        process = Process(child.pid)
        for _ in range(20 if ON_CPU else 3):
            process.lock()
            process.checkpoint()
            process.restore()
            process.unlock()
        child.send("contents")
        assert child.answer() == child.first
        if ON_CPU:
            names = [os.readlink(f"/proc/{child.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{child.pid}/fd")]
            assert not any("cupyrite-checkpoint" in name for name in names)
    finally:
        child.process.kill()
        child.process.wait()


def test_a_checkpointed_process_can_be_killed(child):
    process = Process(child.pid)
    process.lock()
    process.checkpoint()
    child.process.kill()
    child.process.wait()
    with pytest.raises(CUDAError, match="CUDA_ERROR_OPERATING_SYSTEM"):
        _ = process.state


@pytest.mark.parametrize("pid", [0, -1])
def test_ids_that_no_process_has(pid):
    lock = driver.CUcheckpointLockArgs()
    lock.timeoutMs = 100
    for done in (
        driver.cuCheckpointProcessGetState(pid),
        driver.cuCheckpointProcessGetRestoreThreadId(pid),
        driver.cuCheckpointProcessLock(pid, lock),
        driver.cuCheckpointProcessUnlock(pid, None),
    ):
        assert done[0] == driver.CUresult.CUDA_ERROR_OPERATING_SYSTEM


def test_processes_without_cuda_are_refused():
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        for pid, status in ((sleeper.pid, "NOT_INITIALIZED"), (2**31 - 1, "OPERATING_SYSTEM")):
            with pytest.raises(CUDAError):
                Process(pid).lock(timeout_ms=100)
            with pytest.raises(CUDAError, match=f"CUDA_ERROR_{status}"):
                _ = Process(pid).state
    finally:
        sleeper.communicate(b"\n")


def test_the_restore_thread_belongs_to_the_process(child):
    assert f"{Process(child.pid).restore_thread_id}" in os.listdir(f"/proc/{child.pid}/task")


@pytest.mark.parametrize("pid", [True, 1.0, "1", None])
def test_a_pid_is_an_integer(pid):
    with pytest.raises(TypeError, match=f"pid is of type {type(pid).__name__}"):
        Process(pid)


@pytest.mark.parametrize("pid", [0, -1, 1 << 31])
def test_a_pid_is_positive(pid):
    with pytest.raises(ValueError, match="pid is"):
        Process(pid)


@pytest.mark.parametrize(
    "mapping, error",
    [(3, TypeError), ([], TypeError), ({1: 2}, TypeError), ({"x": "y"}, ValueError), ({"": ""}, ValueError)],
)
def test_mappings_are_checked_before_the_call(mapping, error):
    with pytest.raises(error, match="gpu_mapping"):
        Process(os.getpid()).restore(mapping)


def test_timeouts_are_checked_before_the_call():
    process = Process(os.getpid())
    for wrong, error in (
        (-1, ValueError),
        (1 << 32, ValueError),
        ("1", TypeError),
        (True, TypeError),
        (1.5, TypeError),
    ):
        with pytest.raises(error, match="timeout_ms is"):
            process.lock(wrong)
    assert process.state == "running"


OWN = """
import os, threading
from cuda.core import Device
from cuda.core.checkpoint import Process
device = Device(0)
device.set_current()
stream = device.create_stream()
buffer = device.allocate(1 << 20, stream=stream)
buffer.fill(7, stream=stream)
stream.sync()
process = Process(os.getpid())
process.lock()
done = []
thread = threading.Thread(target=lambda: done.append(device.allocate(16, stream=stream)))
thread.start()
thread.join(0.3)
assert not done and process.state == "locked"
process.checkpoint()
assert device.uuid and process.state == "checkpointed"
process.restore()
process.unlock()
thread.join(30)
assert done
out = bytearray(1 << 20)
buffer.copy_to(out, stream=stream)
stream.sync()
assert out == bytes([7]) * (1 << 20)
print("ok")
"""


@pytest.mark.skipif(not ON_CPU, reason="documents the CPU device")
def test_a_process_checkpoints_itself():
    done = subprocess.run([sys.executable, "-c", OWN], capture_output=True, text=True, timeout=120)
    assert done.stdout == "ok\n", done.stderr


BUSY = """
import sys, threading
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
device = Device(0)
device.set_current()
stream = device.create_stream()
code = 'extern "C" __global__ void spin(volatile int *stop) { while (!*stop) {} }'
kernel = Program(code, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("spin")
from cuda.core import LegacyPinnedMemoryResource
stop = LegacyPinnedMemoryResource().allocate(4)
view = memoryview(stop).cast("B")
view[:] = bytes(4)
launch(stream, LaunchConfig(grid=1, block=1), kernel, stop)
thread = threading.Thread(target=stream.sync)
thread.start()
print("busy", flush=True)
sys.stdin.readline()
view[0] = 1
thread.join()
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(not ON_CPU, reason="what NVIDIA's driver waits for is its own")
def test_a_lock_gives_up_after_its_timeout():
    busy = subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert busy.stdout.readline() == "busy\n"
        process = Process(busy.pid)
        with pytest.raises(CUDAError, match="CUDA_ERROR_NOT_READY"):
            process.lock(timeout_ms=200)
        assert process.state == "running"
        busy.stdin.write("\n")
        busy.stdin.flush()
        assert busy.stdout.readline() == "done\n"
        process.lock(timeout_ms=5000)
        process.unlock()
    finally:
        busy.kill()
        busy.wait()


@pytest.mark.skipif(not ON_CPU, reason="documents the CPU device")
def test_devices_are_restored_onto_themselves(child):
    process = Process(child.pid)
    process.lock()
    process.checkpoint()
    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
        process.restore({Device(0).uuid: "00000000-0000-0000-0000-000000000000"})
    assert process.state == "checkpointed"
    process.restore({Device(0).uuid: Device(0).uuid})
    process.unlock()
    child.send("contents")
    assert child.answer() == child.first


@pytest.mark.skipif(not ON_CPU, reason="documents the CPU device")
def test_a_forked_child_does_not_answer_for_its_parent():
    program = """
import os, sys
from cuda.core import Device
from cuda.core.checkpoint import Process
Device(0).set_current()
pid = os.fork()
if pid == 0:
    sys.stdin.readline()
    os._exit(0)
print(pid, flush=True)
sys.stdin.readline()
os.kill(pid, 9)
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        pid = int(parent.stdout.readline())
        assert Process(parent.pid).state == "running"
        with pytest.raises(CUDAError, match="CUDA_ERROR_NOT_INITIALIZED"):
            _ = Process(pid).state
    finally:
        parent.communicate("\n")


BUSY_THREADS = """
import sys, threading
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
device = Device(0)
device.set_current()
code = r'''
extern "C" __global__ void add(unsigned *out, unsigned n, unsigned value) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] += value;
}
'''
kernel = Program(code, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("add")
stop, rounds, wrong = threading.Event(), [0] * 4, []
def work(number):
    device.set_current()
    stream = device.create_stream()
    while not stop.is_set():
        size = 4096 << (rounds[number] % 9)
        buffer = device.allocate(size, stream=stream)
        buffer.fill(0, stream=stream)
        for value in (1, 2, 3):
            launch(stream, LaunchConfig(grid=4, block=64), kernel, buffer, size // 4, value)
        out = bytearray(size)
        buffer.copy_to(out, stream=stream)
        stream.sync()
        if out != b"\\x06\\0\\0\\0" * (size // 4):
            wrong.append((number, rounds[number]))
        buffer.close(stream)
        rounds[number] += 1
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
[thread.start() for thread in threads]
print("ready", flush=True)
sys.stdin.readline()
stop.set()
[thread.join() for thread in threads]
print(min(rounds) > 0, wrong, flush=True)
"""


def test_busy_threads_continue_with_the_same_data():
    child = subprocess.Popen(
        [sys.executable, "-c", BUSY_THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "ready\n"
        process = Process(child.pid)
        checkpoints = 0
        for _ in range(30 if ON_CPU else 5):
            process.lock(timeout_ms=30_000)
            try:
                process.checkpoint()
            except CUDAError as error:
                # NVIDIA's driver (580) refuses some checkpoints while other processes use the GPU.
                assert not ON_CPU and str(error).startswith(("CUDA_ERROR_NOT_SUPPORTED", "CUDA_ERROR_UNKNOWN"))
                assert process.state == "locked"
            else:
                checkpoints += 1
                process.restore()
            process.unlock()
            time.sleep(0.02)
        out, _ = child.communicate("\n", timeout=120)
        assert out == "True []\n" and checkpoints > 0
    finally:
        child.kill()
        child.wait()


@pytest.mark.skipif(not ON_CPU, reason="what NVIDIA's driver answers to two requests at a time is its own")
def test_requests_of_several_processes_do_not_mix(child):
    results = []

    def ask():
        process = Process(child.pid)
        for _ in range(20):
            try:
                process.lock(timeout_ms=1000)
                process.unlock()
                results.append("ok")
            except CUDAError as error:
                results.append(str(error).partition(":")[0])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(results) <= {"ok", "CUDA_ERROR_ILLEGAL_STATE"}
    assert results.count("ok") > 0
    assert Process(child.pid).state == "running"
    child.send("contents")
    assert child.answer() == child.first


REMAPPED = """
import sys, zlib
from cuda.bindings import driver
from cuda.core import Device
from cuda.core.system import Device as Managed
devices = [Device(i) for i in range(3)]
buffers = []
for device in devices[:2]:
    device.set_current()
    stream = device.create_stream()
    buffers.append((stream, device.allocate(1 << 20, stream=stream)))
    buffers[-1][1].copy_from(bytes([device.device_id + 1]) * (1 << 20), stream=stream)
    stream.sync()
def facts():
    out = []
    for ordinal, device in enumerate(devices):
        bus = driver.cuDeviceGetPCIBusId(20, ordinal)[1].rstrip(bytes(1))
        assert int(driver.cuDeviceGetByPCIBusId(bus)[1]) == ordinal and device.to_system_device().uuid == "GPU-" + device.uuid
        out.append(device.uuid)
    for managed in Managed.get_all_devices():
        out.append((managed.uuid, managed.index, len(managed.compute_running_processes)))
    for stream, buffer in buffers:
        back = bytearray(buffer.size)
        buffer.copy_to(back, stream=stream)
        stream.sync()
        out.append(set(back))
    print(out, flush=True)
facts()
for _ in sys.stdin:
    facts()
"""


@pytest.fixture
def three_devices():
    """A process with contexts on two of three devices of the CPU device."""
    process = subprocess.Popen(
        [sys.executable, "-c", REMAPPED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "CUPYRITE_CPU_DEVICES": "3"},
    )

    def facts(first=False):
        if not first:
            process.stdin.write("\n")
            process.stdin.flush()
        return eval(process.stdout.readline())

    yield process.pid, facts, facts(first=True)
    process.kill()
    process.wait()


def checkpoint(pid):
    process = Process(pid)
    process.lock()
    process.checkpoint()
    return process


SWAPPED = """
import sys
from cuda.core import Device
devices = Device.get_all_devices()[:2]
buffers = []
for device in devices:
    device.set_current()
    stream = device.create_stream()
    buffers.append((stream, device.allocate(1 << 20, stream=stream)))
    buffers[-1][1].copy_from(bytes([device.device_id + 1]) * (1 << 20), stream=stream)
    stream.sync()
def facts():
    out = [device.uuid for device in devices]
    for stream, buffer in buffers:
        back = bytearray(buffer.size)
        buffer.copy_to(back, stream=stream)
        stream.sync()
        out.append(set(back))
    print(out, flush=True)
facts()
for _ in sys.stdin:
    facts()
"""


def test_two_devices_change_places():
    if not ON_CPU and len(Device.get_all_devices()) != 2:
        pytest.skip("needs two GPUs")
    child = subprocess.Popen(
        [sys.executable, "-c", SWAPPED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "CUPYRITE_CPU_DEVICES": "2"},
    )
    try:
        one, two, *contents = eval(child.stdout.readline())
        assert contents == [{1}, {2}]
        swap, kept = {one: two, two: one}, {one: one, two: two}
        for mapping, expected in ((swap, [two, one]), (kept, [two, one]), (None, [two, one]), (swap, [one, two])):
            process = checkpoint(child.pid)
            if mapping is not None:
                # Every device needs a pair, also one that keeps its place.
                with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
                    process.restore({one: one})
            process.restore(*([mapping] if mapping else []))
            process.unlock()
            child.stdin.write("\n")
            child.stdin.flush()
            assert eval(child.stdout.readline()) == [*expected, {1}, {2}]
    finally:
        child.kill()
        child.wait()


@pytest.mark.cpu
def test_devices_are_restored_onto_others(three_devices):
    pid, facts, before = three_devices
    ids = before[:3]
    assert [entry[1:] for entry in before[3:6]] == [(0, 1), (1, 1), (2, 0)]
    # Ordinals and memory stay; UUIDs and PCI addresses are those of the new devices, which NVML lists in its own order.
    for number, order in enumerate(([2, 0, 1], [0, 1, 2], [1, 0, 2])):
        now = facts()[:3]
        process = checkpoint(pid)
        process.restore({old: ids[new] for old, new in zip(now, order, strict=True)})
        assert process.state == "locked"
        process.unlock()
        after = facts()
        assert after[:3] == [ids[new] for new in order], number
        used = [int(hardware in order[:2]) for hardware in range(3)]
        assert after[3:6] == [(f"GPU-{ids[i]}", i, used[i]) for i in range(3)]
        assert after[6:] == before[6:] == [{1}, {2}]


@pytest.mark.cpu
def test_a_restore_without_a_mapping_keeps_the_devices(three_devices):
    pid, facts, before = three_devices
    process = checkpoint(pid)
    process.restore({f"GPU-{old}": f"GPU-{new}" for old, new in zip(before[:3], before[2::-1], strict=True)})
    process.unlock()
    moved = facts()
    assert moved[:3] == before[2::-1]
    process = checkpoint(pid)
    process.restore()
    process.unlock()
    assert facts() == moved


@pytest.mark.cpu
def test_wrong_mappings_are_refused_and_can_be_corrected(three_devices):
    pid, facts, before = three_devices
    a, b, c = before[:3]
    other = "11111111-2222-3333-4444-555555555555"
    process = checkpoint(pid)
    for mapping, why in (
        ({a: b}, f"no pair has the device {b.replace('-', '')} as the old one"),
        ({a: b, b: a}, f"no pair has the device {c.replace('-', '')} as the old one"),
        ({a: b, b: b, c: a}, f"{b.replace('-', '')} is in two pairs as the new device"),
        ({a: other, b: b, c: c}, f"no device has the UUID {other.replace('-', '')}"),
        ({other: a, b: b, c: c}, f"no device has the UUID {other.replace('-', '')}"),
        ({a: b, f"GPU-{a}": c, b: a, c: a}, "is in two pairs as the old device"),
    ):
        start = driver.cuLogsCurrent(0)[1]
        with pytest.raises(CUDAError, match=r"(?s)CUDA_ERROR_INVALID_VALUE.*gpu_mapping: expected the UUIDs of all"):
            process.restore(mapping)
        log = bytearray(25600)
        driver.cuLogsDumpToMemory(start, log, len(log), 0)
        assert why in log.decode(), mapping
        assert process.state == "checkpointed"
    process.restore({a: b, b: c, c: a})
    process.unlock()
    assert facts()[:3] == [b, c, a]


@pytest.mark.cpu
def test_more_pairs_than_devices_are_refused():
    pair = driver.CUcheckpointGpuPair()
    args = driver.CUcheckpointRestoreArgs()
    args.gpuPairs, args.gpuPairsCount = [pair] * 65, 65
    assert driver.cuCheckpointProcessRestore(os.getpid(), args)[0] == driver.CUresult.CUDA_ERROR_INVALID_VALUE
