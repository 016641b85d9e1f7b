"""Memory of `cuda.core` outlives the work that uses it, wherever and whenever it is released, and does not leak.

CUPYRITE_CYCLES is the number of allocations of each kind: 300 by default, 1,000,000 where the figure is claimed.
"""

import ctypes
import gc
import os
import sys
import threading
import weakref

import pytest
from cuda.bindings import driver
from cuda.core import (
    Buffer,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    MemoryResource,
    PinnedMemoryResource,
    Program,
    VirtualMemoryResource,
    launch,
)

from helpers.device import check, on_cpu_device
from helpers.memory import assert_flat
from helpers.programs import python
from helpers.threads import HANG, in_a_thread, run_all

ROUNDS = int(os.environ.get("CUPYRITE_CYCLES", "300"))
TURNS = 1 << 15
DONE = TURNS + 1  # Written by a kernel where it found the number of its iterations.
SLOW = """extern "C" __global__ void slow(int *p, int *turns) {
    volatile int *at = p;
    for (int i = 0, n = *turns; i < n; i++) { at[i % 1024] = i; }
    *turns = at[1023] + 2;
}
extern "C" __global__ void slow_part(int *p, int *turns, int part) {
    volatile int *at = p + 1024 * part;
    for (int i = 0, n = *turns; i < n; i++) { at[i % 1024] = i; }
    *turns = at[1023] + 2;
}
extern "C" __global__ void set(int *p) { *p = 1; }"""
ONE = LaunchConfig(grid=1, block=1)


class Own(MemoryResource):
    """A Python resource that wraps another one."""

    is_device_accessible, is_host_accessible, device_id = True, False, 0

    def __init__(self, device):
        self.pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25))
        self.given, self.kept, self.lock = 0, {}, threading.Lock()

    def allocate(self, size, *, stream):
        memory = self.pool.allocate(size, stream=stream)
        address = int(memory.handle)
        with self.lock:
            self.given += 1
            self.kept.setdefault(address, []).append(memory)
        return Buffer.from_handle(address, size, mr=self, stream=stream)

    def deallocate(self, ptr, size, *, stream):
        with self.lock:
            self.given -= 1
            memory = self.kept[int(ptr)].pop()
            if not self.kept[int(ptr)]:
                del self.kept[int(ptr)]
        memory.close(stream)


def managed(device):
    try:
        return ManagedMemoryResource()
    except RuntimeError as error:
        pytest.skip(f"needs pools of managed memory: {error}")


def pinned(device):
    return PinnedMemoryResource()


KINDS = {
    "device": lambda device: DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25)),
    "current": DeviceMemoryResource,
    "pinned": pinned,
    "legacy": lambda device: LegacyPinnedMemoryResource(),
    "managed": managed,
    "virtual": VirtualMemoryResource,
    "python": Own,
}


@pytest.fixture(scope="module")
def code(device):
    return Program(SLOW, "c++").compile("ptx")


@pytest.fixture(scope="module")
def slow(code):
    return code.get_kernel("slow")


@pytest.fixture(params=list(KINDS))
def resource(device, request):
    device.set_current()
    resource = KINDS[request.param](device)
    yield resource
    if isinstance(resource, Own):
        assert resource.given == 0
    check(driver.cuCtxSynchronize())


def number(address, stream):
    """An int32 read in stream order."""
    value = (ctypes.c_int32 * 1)()
    check(driver.cuMemcpyDtoHAsync(ctypes.addressof(value), address, 4, stream.handle))
    stream.sync()
    return value[0]


# ----------------------------------------------------------------------------------------------------------
# Work in another stream than the memory's own

ENDS = {
    "close": lambda things, third: things.pop().close(),
    "close on another stream": lambda things, third: things.pop().close(third),
    "set and close": lambda things, third: (things[0].set_deallocation_stream(third), things.pop().close()),
    "set and forget": lambda things, third: (things[0].set_deallocation_stream(third), things.pop()),
    "forget": lambda things, third: things.clear(),
    "close in a thread": lambda things, third: in_a_thread(lambda: things.pop().close()),
    "close on another stream in a thread": lambda things, third: in_a_thread(lambda: things.pop().close(third)),
    "forget in a thread": lambda things, third: in_a_thread(things.clear),
    "exit": lambda things, third: things.pop().__exit__(None, None, None),
}


@pytest.mark.parametrize("how", list(ENDS))
def test_memory_outlives_a_kernel_in_another_stream(device, slow, resource, how):
    own, other, third = (device.create_stream() for _ in range(3))
    turns = device.allocate(4, stream=other)
    turns.copy_from(ctypes.c_int32(TURNS), stream=other)
    things = [resource.allocate(4096, stream=own)]
    other.wait(own)
    launch(other, ONE, slow, things[0], turns)
    ENDS[how](things, third)
    gc.collect()
    # The stream on which the memory was freed has waited for the kernel, or the host has.
    freeing = third if "another stream" in how or "set" in how else own
    assert number(turns.handle, freeing) == DONE
    for thing in (turns, own, other, third):
        thing.close()


@pytest.mark.parametrize("use", ["part", "part of a part", "after the whole was closed", "many buffers"])
def test_memory_outlives_a_kernel_that_uses_it_indirectly(device, slow, code, use):
    own, other = device.create_stream(), device.create_stream()
    pool = KINDS["device"](device)
    turns = device.allocate(4, stream=other)
    turns.copy_from(ctypes.c_int32(TURNS), stream=other)
    whole = pool.allocate(8192, stream=own)
    other.wait(own)
    argument = {"part": lambda: whole[4096:], "part of a part": lambda: whole[2048:][2048:]}.get(
        use, lambda: whole[:4096]
    )()
    if use == "after the whole was closed":
        whole.close()
    if use == "many buffers":
        # More than a launch pins without an allocation.
        names = ", ".join(f"int *p{n}" for n in range(40))
        body = f"volatile int *at = p39; for (int i = 0; i < {TURNS}; i++) at[i % 1024] = i; *p0 = at[1023] + 2;"
        kernel = (
            Program(f'extern "C" __global__ void many({names}) {{ {body} }}', "c++").compile("ptx").get_kernel("many")
        )
        launch(other, ONE, kernel, turns, *[argument] * 38, whole)
    else:
        launch(other, ONE, slow, argument, turns)
    argument.close()
    whole.close()
    assert number(turns.handle, own) == DONE
    assert pool.attributes.used_mem_current == 0
    for thing in (turns, own, other, pool):
        thing.close()


def test_freeing_stream_waits_for_all_users_of_the_memory(device, code, resource):
    slow = code.get_kernel("slow_part")
    own = device.create_stream()
    others = [device.create_stream() for _ in range(12)]
    turns = [device.allocate(4, stream=stream) for stream in others]
    buffer = resource.allocate(4096 * len(others), stream=own)
    own.sync()
    for part, (stream, count) in enumerate(zip(others, turns)):
        count.copy_from(ctypes.c_int32(TURNS // 8), stream=stream)
        launch(stream, ONE, slow, buffer, count, ctypes.c_int32(part))
        # Its object may be destroyed before its work completes.
        stream.close()
    buffer.close()
    assert [number(count.handle, own) for count in turns] == [TURNS // 8 + 1] * len(turns)
    for thing in (*turns, own):
        thing.close()


@pytest.mark.parametrize("exits", [False, True])
def test_per_thread_default_streams_are_distinguished(device, slow, exits):
    """Memory of one thread's default stream, used in that of a second thread and freed by a third."""
    from cuda.core import Stream

    if exits and not on_cpu_device():
        # The destructor of the driver's thread-local data and `cuCtxSetCurrent` then spin on the same lock.
        pytest.skip(
            "driver 580 hangs at times if a thread makes a context current while one that has pending work exits"
        )
    stream = Stream.from_handle(int(driver.CU_STREAM_PER_THREAD))
    pool = KINDS["device"](device)
    turns = device.allocate(4, stream=stream)
    turns.copy_from(ctypes.c_int32(TURNS), stream=stream)
    buffer = pool.allocate(4096, stream=stream)
    stream.sync()

    used, freed = threading.Event(), threading.Event()

    def use():
        device.set_current()
        launch(stream, ONE, slow, buffer, turns)
        used.set()
        assert exits or freed.wait(HANG)

    found = []

    def free():
        device.set_current()
        buffer.close()
        found.append(number(turns.handle, stream))

    if exits:
        in_a_thread(use)
        in_a_thread(free)
    else:
        thread = threading.Thread(target=use)
        thread.start()
        assert used.wait(HANG)
        in_a_thread(free)
        freed.set()
        thread.join(HANG)
    assert found == [DONE]
    turns.close()
    pool.close()


def test_long_lived_buffer_does_not_keep_streams(device, code):
    """Closed idle streams are pruned, even if a buffer that they used remains."""
    set_one = code.get_kernel("set")
    own = device.create_stream()
    buffer = device.allocate(64, stream=own)
    part = buffer[:32]
    own.sync()

    def once():
        stream = device.create_stream()
        launch(stream, ONE, set_one, buffer)
        part.fill(0, stream=stream)
        stream.sync()
        stream.close()

    assert_flat(once, min(ROUNDS, 20_000))
    part.close()
    buffer.close()
    own.close()


# ----------------------------------------------------------------------------------------------------------
# Leaks


def in_use(resource):
    check(driver.cuCtxSynchronize())
    return resource.attributes.used_mem_current if hasattr(resource, "attributes") else 0


# Allocations without a pool take longer.
def times(resource):
    return ROUNDS // 10 if isinstance(resource, (VirtualMemoryResource, LegacyPinnedMemoryResource)) else ROUNDS


def test_allocations_do_not_leak(device, resource):
    stream = device.create_stream()
    used = in_use(resource)
    assert_flat(lambda: resource.allocate(256, stream=stream).close(), times(resource))
    assert_flat(lambda: resource.allocate(256, stream=stream), times(resource))
    assert in_use(resource) == used
    stream.close()


def test_allocations_in_eight_threads_do_not_leak(device, resource):
    used = in_use(resource)
    start = threading.Barrier(8)
    errors = []

    def work():
        try:
            device.set_current()
            stream = device.create_stream()
            start.wait()
            kept = []
            for turn in range(max(times(resource) // 8, 8)):
                kept.append(resource.allocate(64 * (turn % 7), stream=stream))
                if len(kept) == 5:
                    kept.pop(turn % 5).close()
                    kept.pop()
            stream.sync()
            kept.clear()
            stream.close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    run_all(threads, errors, HANG + ROUNDS / 2000)
    assert errors == []
    assert in_use(resource) == used


def test_slices_layouts_and_views_do_not_leak(device, resource):
    stream = device.create_stream()
    buffer = resource.allocate(256, stream=stream)

    def once():
        part = buffer[16:64]
        hash(part), repr(part), part == buffer, part.memory_resource, part.owner, weakref.ref(part)
        part[:8].close()
        buffer.__dlpack__(stream=-1 if buffer.__dlpack_device__()[0] == 2 else None)

    assert_flat(once, ROUNDS)
    buffer.close()
    stream.close()


def test_resources_do_not_leak(device):
    stream = device.create_stream()
    kinds = [kind for name, kind in KINDS.items() if name != "virtual"]

    def once():
        for kind in kinds:
            resource = kind(device)
            resource.allocate(64, stream=stream).close()
            if hasattr(resource, "close"):
                resource.close()

    assert_flat(once, min(ROUNDS // 10, 2_000))
    stream.close()


def test_weak_references_die_with_the_buffer(device, resource):
    stream = device.create_stream()
    reported = []
    buffer = resource.allocate(64, stream=stream)
    alive = weakref.ref(buffer, reported.append)
    assert alive() is buffer
    buffer.close()
    assert alive() is buffer and reported == []
    del buffer
    assert alive() is None and reported == [alive]
    stream.close()


def test_finalizer_may_use_and_close_the_buffer(device, resource):
    """Python code that runs during destruction sees an intact buffer."""
    stream = device.create_stream()
    seen = []

    class Owner:
        def __init__(self, buffer):
            self.buffer = buffer

        def __del__(self):
            seen.append(self.buffer.size)
            self.buffer.close()
            seen.append(self.buffer.size)

    buffer = resource.allocate(64, stream=stream)
    size = buffer.size
    lent = Buffer.from_handle(buffer.handle, 64, owner=Owner(buffer))
    del buffer
    lent.close()
    assert seen == [size, 0]
    stream.close()


# ----------------------------------------------------------------------------------------------------------
# Failing Python resources


class Failing(Own):
    """Fails on request."""

    fail = None

    def allocate(self, size, *, stream):
        if self.fail == "allocate":
            raise KeyError("no memory here")
        return super().allocate(size, stream=stream)

    def deallocate(self, ptr, size, *, stream):
        super().deallocate(ptr, size, stream=stream)
        if self.fail == "deallocate":
            raise KeyError("not freed")
        if self.fail == "exit":
            raise SystemExit(3)


@pytest.fixture
def unraisable(monkeypatch):
    found = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: found.append(args.exc_value))
    return found


def test_exception_of_allocate_propagates(device):
    stream = device.create_stream()
    resource = Failing(device)
    before = device.memory_resource
    resource.fail = "allocate"
    device.memory_resource = resource
    try:
        with pytest.raises(KeyError, match="no memory here"):
            device.allocate(64, stream=stream)
        resource.fail = None
        with device.allocate(64, stream=stream) as buffer:
            resource.fail = "allocate"
            with pytest.raises(KeyError, match="no memory here"):
                buffer.copy_to(stream=stream)
    finally:
        device.memory_resource = before
    assert resource.given == 0
    stream.close()


@pytest.mark.parametrize("given", [None, 3, b"memory", "buffer"])
def test_resource_that_returns_another_type(device, given):
    class Wrong(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = True, False, 0

        def allocate(self, size, *, stream):
            return given

        def deallocate(self, ptr, size, *, stream):
            pytest.fail("nothing was allocated")

    before = device.memory_resource
    device.memory_resource = Wrong()
    try:
        with pytest.raises(TypeError, match=r"Wrong\.allocate\(\) returned an object of type .*; expected a Buffer"):
            device.allocate(64, stream=device.default_stream)
    finally:
        device.memory_resource = before


@pytest.mark.parametrize("fail", ["deallocate", "exit"])
@pytest.mark.parametrize("how", ["close", "forget", "with", "while an exception propagates"])
def test_exception_of_deallocate_is_reported(device, unraisable, fail, how):
    """The buffer is closed all the same, and the caller does not see the exception."""
    stream = device.create_stream()
    resource = Failing(device)
    resource.fail = fail
    buffer = resource.allocate(64, stream=stream)
    if how == "close":
        buffer.close()
        assert buffer.is_closed and buffer.memory_resource is None
        buffer.close()
    elif how == "with":
        with buffer:
            pass
    elif how == "forget":
        del buffer
    else:

        def leave():
            nonlocal buffer
            kept, buffer = buffer, None
            raise ZeroDivisionError(kept.size)

        try:
            leave()
        except ZeroDivisionError as error:
            assert error.args == (64,)
            error.__traceback__ = None
    assert [type(error) for error in unraisable] == [KeyError if fail == "deallocate" else SystemExit]
    assert resource.given == 0
    stream.close()


def test_deallocate_may_use_the_library(device):
    """It allocates, closes other buffers and the same one, collects, and switches threads."""
    stream = device.create_stream()

    class Busy(Own):
        def deallocate(self, ptr, size, *, stream):
            super().deallocate(ptr, size, stream=stream)
            gc.collect()
            inner = self.pool.allocate(16, stream=stream)
            in_a_thread(inner.close)
            for buffer in self.others:
                buffer.close()
            stream.sync()

    resource = Busy(device)
    resource.others = [resource.allocate(64, stream=stream) for _ in range(4)]
    mine = resource.allocate(64, stream=stream)
    resource.others.append(mine)
    mine.close()
    assert all(buffer.is_closed for buffer in resource.others)
    assert resource.given == 0
    stream.close()


def test_resource_that_references_its_buffers(device):
    """The collector frees the cycle of resource and buffers."""
    stream = device.create_stream()
    given = []

    class Keeps(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = True, False, 0

        def __init__(self, pool):
            self.buffers = []

        def allocate(self, size, *, stream):
            self.buffers.append(Buffer.from_handle(4096, size, mr=self, stream=stream))
            return self.buffers[-1]

        def deallocate(self, ptr, size, *, stream):
            given.append(int(ptr))

    resource = Keeps(None)
    alive = weakref.ref(resource)
    for _ in range(3):
        resource.allocate(64, stream=stream)
    del resource
    gc.collect()
    assert alive() is None
    assert given == [4096] * 3
    stream.close()


# ----------------------------------------------------------------------------------------------------------
# Process exit

LEAVING = """
    import os, sys, threading, time
    from core.memory import test_lifetime as lifetime
    from cuda.core import Device, Program, launch
    import ctypes

    how, kind = sys.argv[1:]
    device = Device(0)
    device.set_current()
    resource = lifetime.KINDS[kind](device)
    slow = Program(lifetime.SLOW, "c++").compile("ptx").get_kernel("slow")
    own, other = device.create_stream(), device.create_stream()
    turns = device.allocate(4, stream=other)
    turns.copy_from(ctypes.c_int32(lifetime.TURNS), stream=other)
    buffers = [resource.allocate(4096, stream=own) for _ in range(8)]
    other.wait(own)

    def use():
        for buffer in buffers:
            launch(other, lifetime.ONE, slow, buffer, turns)

    def churn():
        device.set_current()
        stream = device.create_stream()
        while True:
            resource.allocate(64, stream=stream).close()

    use()
    if how == "threads":
        for _ in range(4):
            threading.Thread(target=churn, daemon=True).start()
        time.sleep(0.05)
    elif how == "cycle":
        class Node: pass
        node = Node()
        node.self, node.things = node, [buffers, resource, own, other, turns]
        del buffers, resource, own, other, turns, node
    elif how == "closed":
        for buffer in buffers:
            buffer.close()
    elif how == "error":
        raise SystemExit(7)
    elif how == "atexit":
        import atexit
        atexit.register(lambda: [b.close() for b in buffers])
    elif how == "fork":
        import warnings
        warnings.simplefilter("ignore")
        child = os.fork()
        if child == 0:
            for buffer in buffers:
                buffer.close()
            del buffers, buffer
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize(
    "how, kind",
    [(how, "device") for how in ("alive", "threads", "cycle", "closed", "error", "atexit", "fork")]
    + [(how, kind) for how in ("alive", "threads") for kind in ("pinned", "legacy", "managed", "virtual")]
    # A daemon thread stopped amid Python code may hold its locks.
    + [("alive", "python")],
)
def test_process_exits_while_memory_is_in_use(how, kind):
    done = python(LEAVING, how, kind, options=("-W", "ignore"))
    assert done.returncode == (7 if how == "error" else 0), done.stderr
    assert "Error" not in done.stderr and "panicked" not in done.stderr, done.stderr
