"""Objects of `cuda.core` destroyed in any order, in any thread, at any time: no crash, no leak, no driver error.

CUPYRITE_CYCLES is the number of rounds of the memory tests: 300 by default, 10,000 where the figure is claimed.
"""

import contextlib
import ctypes
import gc
import itertools
import os
import random
import sys
import threading
import time
import weakref

import pytest
from cuda.bindings import driver
from cuda.core import (
    Buffer,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    EventOptions,
    LaunchConfig,
    Linker,
    MemoryResource,
    ObjectCode,
    Program,
    ProgramOptions,
    launch,
)

from helpers.device import check, on_cpu_device
from helpers.memory import assert_flat
from helpers.threads import in_threads, run_all

ROUNDS = int(os.environ.get("CUPYRITE_CYCLES", "300"))
SOURCE = 'extern "C" __global__ void add(int *p, int n) { atomicAdd(p, n); }'


@pytest.fixture(scope="module")
def code(device):
    return Program(SOURCE, "c++").compile("ptx").code


@pytest.fixture(autouse=True)
def healthy(device, code):
    """After each test the device still computes, and no driver error is pending."""
    device.set_current()
    yield
    device.set_current()
    gc.collect()
    stream = device.create_stream()
    buffer = device.allocate(4, stream=stream)
    buffer.fill(0, stream=stream)
    launch(
        stream, LaunchConfig(grid=1, block=2), ObjectCode.from_ptx(code).get_kernel("add"), buffer, ctypes.c_int32(3)
    )
    stream.sync()
    value = bytearray(4)
    check(driver.cuMemcpyDtoH(value, buffer.handle, 4))
    assert int.from_bytes(value, "little") == 6
    buffer.close()
    stream.close()
    check(driver.cuCtxSynchronize())


def flat(device, make, rounds=ROUNDS):
    """Fails if repeated creation grows the memory of the process or of the device."""

    # Free memory of the CPU device is that of the machine; a GPU's is shared with parallel tests.
    alone = not on_cpu_device() and "PYTEST_XDIST_WORKER" not in os.environ

    def on_device():
        """Bytes in use of the device's pool, and of the device where no one else uses it."""
        check(driver.cuCtxSynchronize())
        free, total = check(driver.cuMemGetInfo())
        return device.memory_resource.attributes.used_mem_current, total - free if alone else 0

    make()
    gc.collect()
    used, taken = on_device()
    assert_flat(make, rounds)
    used_after, taken_after = on_device()
    assert used_after <= used, f"the pool grew by {used_after - used} bytes in {rounds} rounds"
    # Another program may use the device.
    assert taken_after - taken < (64 << 20) + 64 * rounds, (
        f"the device's use grew by {taken_after - taken} bytes in {rounds} rounds"
    )


# ----------------------------------------------------------------------------------------------------------
# Order


def family(device, code):
    """Objects that keep one another alive: name -> object."""
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25))
    stream = device.create_stream()
    buffer = pool.allocate(64, stream=stream)
    buffer.fill(0, stream=stream)
    kernel = ObjectCode.from_ptx(code).get_kernel("add")
    launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer, ctypes.c_int32(1))
    return {"pool": pool, "stream": stream, "buffer": buffer, "event": stream.record(), "kernel": kernel}


def end(things, name, how):
    """Closes an object or drops its last reference; kernels have no close()."""
    thing = things.pop(name)
    if how == "close" and hasattr(thing, "close"):
        thing.close()
        assert thing.is_closed
        thing.close()


@pytest.mark.parametrize("how", ["close", "forget"])
def test_every_order_of_destruction(device, code, how):
    names = list(family(device, code))
    for order in itertools.permutations(names):
        things = family(device, code)
        assert set(things) == set(names)
        for name in order:
            end(things, name, how)


def test_mixed_closing_and_dropping(device, code):
    choose = random.Random(7)
    for _ in range(60):
        things = family(device, code)
        order = list(things)
        choose.shuffle(order)
        for name in order:
            end(things, name, choose.choice(["close", "forget"]))


def test_objects_keep_what_they_need_alive(device, code):
    stream = device.create_stream()
    kernel = ObjectCode.from_ptx(code).get_kernel("add")
    resource = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25))
    buffer = resource.allocate(4, stream=stream)
    buffer.fill(0, stream=stream)
    del resource
    gc.collect()
    launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer, ctypes.c_int32(5))
    attributes, occupancy = kernel.attributes, kernel.occupancy
    del kernel
    gc.collect()
    assert attributes.max_threads_per_block > 0
    assert occupancy.max_active_blocks_per_multiprocessor(32, 0) > 0
    # The stream is closed while its work may still run; the buffer is freed on it all the same.
    event = stream.record()
    stream.close()
    event.sync()
    value = bytearray(4)
    check(driver.cuMemcpyDtoH(value, buffer.handle, 4))
    assert int.from_bytes(value, "little") == 5
    buffer.close()


def test_foreign_stream_keeps_its_owner_until_closed(device):
    class Owner:
        def __init__(self, handle):
            self.handle = handle

        def __cuda_stream__(self):
            return (0, self.handle)

    mine = device.create_stream()
    owner = Owner(int(mine.handle))
    alive = weakref.ref(owner)
    stream = device.create_stream(owner)
    stream.sync()
    del owner
    gc.collect()
    assert alive() is not None
    stream.close()
    gc.collect()
    assert alive() is None
    mine.sync()


def test_cycles(device, code):
    class Node:
        pass

    for _ in range(20):
        node = Node()
        node.self, node.things = node, family(device, code)
        node.things["owner"] = Buffer.from_handle(node.things["buffer"].handle, 64, owner=node)
        alive = weakref.ref(node)
        del node
        gc.collect()
        assert alive() is None


# ----------------------------------------------------------------------------------------------------------
# Threads


def test_threads_close_the_same_objects(device, code):
    for _ in range(20):
        things = family(device, code)

        def close_all(number, things=things):
            names = [n for n in things if n != "kernel"]
            for name in names[number % 4 :] + names[: number % 4]:
                things[name].close()
                assert things[name].is_closed

        in_threads(4, close_all)


def test_use_in_one_thread_while_another_closes(device, code):
    """A use succeeds or raises because the object is closed."""
    config = LaunchConfig(grid=1, block=1)
    for _ in range(20):
        things, kept = family(device, code), family(device, code)
        # Each stream uses buffers that the other one allocated.
        things["stream"].wait(kept["stream"])
        kept["stream"].wait(things["stream"])

        def use(number, things=things, kept=kept):
            Device(0).set_current()
            if number == 0:
                for name in ("event", "buffer", "stream", "pool"):
                    things[name].close()
                return
            for _ in range(20):
                assert things["buffer"].size in (0, 64)
                for act in (
                    lambda: launch(things["stream"], config, kept["kernel"], things["buffer"], ctypes.c_int32(1)),
                    lambda: launch(kept["stream"], config, kept["kernel"], kept["buffer"], ctypes.c_int32(1)),
                    lambda: things["buffer"].fill(1, stream=things["stream"]),
                    lambda: things["buffer"].copy_from(kept["buffer"], stream=things["stream"]),
                    lambda: things["buffer"].copy_to(kept["buffer"], stream=things["stream"]),
                    lambda: things["stream"].wait(things["event"]),
                    lambda: things["stream"].record(),
                    lambda: things["stream"].sync(),
                    lambda: things["pool"].allocate(4, stream=kept["stream"]).close(),
                ):
                    try:
                        act()
                    except RuntimeError as error:
                        assert "closed" in str(error)

        in_threads(3, use)
        check(driver.cuCtxSynchronize())


def test_launch_while_another_thread_closes_buffers(device, code):
    """A launch that succeeds has its buffers, whenever they are closed; one with a closed buffer raises."""
    config = LaunchConfig(grid=1, block=1)
    kernel = ObjectCode.from_ptx(code).get_kernel("add")
    refused = itertools.count()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        until = time.monotonic() + 1.5
        rounds = 0
        while rounds < 10 or time.monotonic() < until:
            rounds += 1
            stream = device.create_stream()
            # Whole pages, which are unmapped when freed: a late access faults.
            pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25))
            buffers = [pool.allocate(1 << 16, stream=stream) for _ in range(8)]

            def use(number, stream=stream, buffers=buffers):
                for buffer in buffers:
                    if number == 0:
                        time.sleep(1e-4)
                        buffer.close()
                        continue
                    # Expected: the buffer is closed.
                    while True:
                        try:
                            launch(stream, config, kernel, buffer, ctypes.c_int32(1))
                        except RuntimeError as error:
                            assert "kernel argument 0" in str(error) and "closed" in str(error)
                            next(refused)
                            break

            in_threads(3, use)
            stream.sync()
            assert pool.attributes.used_mem_current == 0
            pool.close()
            stream.close()
    finally:
        sys.setswitchinterval(interval)
    assert next(refused) == 2 * 8 * rounds


class Watched(MemoryResource):
    """A resource that hands out parts of one allocation and records what is freed."""

    is_device_accessible, is_host_accessible, device_id = True, False, 0

    def __init__(self, memory, piece):
        self.memory, self.piece, self.lent, self.back = memory, piece, 0, []

    def allocate(self, size, *, stream=None):
        address = self.memory.handle + self.piece * self.lent
        self.lent += 1
        return Buffer.from_handle(address, size, mr=self)

    def deallocate(self, ptr, size, *, stream=None):
        self.back.append((ptr - self.memory.handle) // self.piece)


class Closes:
    """A kernel argument whose address is read after those before it; it closes buffers then."""

    def __init__(self, buffers, address, then=lambda: None):
        self.buffers, self.address, self.then = buffers, address, then

    @property
    def __cuda_array_interface__(self):
        def close():
            for buffer in self.buffers:
                buffer.close()
                assert buffer.is_closed and buffer.handle == 0

        run_all([threading.Thread(target=close)])
        self.then()
        return {"shape": (1,), "typestr": "<i4", "data": (self.address, False), "version": 3}


# More than 32 buffers are pinned by another code path.
@pytest.mark.parametrize("count", [1, 3, 32, 33, 100])
def test_close_between_reading_addresses_and_launching(device, count):
    parameters = ", ".join(f"int *p{n}" for n in range(count + 1))
    body = " ".join(f"*p{n} = {n + 1};" for n in range(count + 1))
    source = f'extern "C" __global__ void number({parameters}) {{ {body} }}'
    kernel = Program(source, "c++").compile("ptx").get_kernel("number")
    stream = device.create_stream()
    config = LaunchConfig(grid=1, block=1)
    with device.allocate(4 * (count + 1), stream=stream) as memory:
        memory.fill(0, stream=stream)
        watched = Watched(memory, 4)
        buffers = [watched.allocate(4) for _ in range(count)]
        last = memory.handle + 4 * count
        # Nothing is freed when all addresses are read; everything is freed once after the launch.
        launch(
            stream, config, kernel, *buffers, Closes(buffers, last, lambda: watched.back == [] or pytest.fail("freed"))
        )
        assert sorted(watched.back) == list(range(count))
        stream.sync()
        values = (ctypes.c_int32 * (count + 1))()
        check(driver.cuMemcpyDtoH(ctypes.addressof(values), memory.handle, 4 * (count + 1)))
        assert list(values) == list(range(1, count + 2))

        # A failed launch pins nothing: closed by another thread meanwhile, or afterwards.
        watched = Watched(memory, 4)
        buffers = [watched.allocate(4) for _ in range(count)]
        with pytest.raises(TypeError, match=f"kernel argument {count} "):
            launch(stream, config, kernel, *buffers, None)
        assert watched.back == []
        with pytest.raises(ValueError, match="address"):
            launch(stream, config, kernel, *buffers, Closes(buffers[:1], "x"))
        assert watched.back == [0]
        with pytest.raises(RuntimeError, match="kernel argument 0 .*closed"):
            launch(stream, config, kernel, *buffers, last)
        for buffer in buffers:
            buffer.close()
        assert watched.back == list(range(count))
    stream.close()


def test_buffer_passed_several_times_is_freed_once(device):
    source = 'extern "C" __global__ void three(int *a, int *b, int *c) { *a += 1; *b += 1; *c = *a; }'
    kernel = Program(source, "c++").compile("ptx").get_kernel("three")
    stream = device.create_stream()
    with device.allocate(8, stream=stream) as memory:
        memory.fill(0, stream=stream)
        watched = Watched(memory, 4)
        buffer = watched.allocate(4)
        launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer, buffer, Closes([buffer], memory.handle + 4))
        assert watched.back == [0]
        stream.sync()
        values = (ctypes.c_int32 * 2)()
        check(driver.cuMemcpyDtoH(ctypes.addressof(values), memory.handle, 8))
        assert list(values) == [2, 2]
    stream.close()


def test_close_during_a_launch_in_another_stream(device):
    """Nothing orders the two streams: the memory is freed after the kernel all the same."""
    source = """extern "C" __global__ void slow(int *p, int *turns) {
        volatile int *at = p;
        for (int i = 0, n = *turns; i < n; i++) { at[i % 1024] = i; }
        *turns = at[1023] + 1;
    }"""
    kernel = Program(source, "c++").compile("ptx").get_kernel("slow")
    own, other = device.create_stream(), device.create_stream()
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25))
    turns = device.allocate(4, stream=other)
    for _ in range(3):
        buffer = pool.allocate(4096, stream=own)
        other.wait(own)
        turns.copy_from(ctypes.c_int32(1 << 18), stream=other)
        launch(other, LaunchConfig(grid=1, block=1), kernel, buffer, Closes([buffer], turns.handle))
        own.sync()
        # The buffer's stream has waited for the kernel, so this is its result.
        value = (ctypes.c_int32 * 1)()
        check(driver.cuMemcpyDtoHAsync(ctypes.addressof(value), turns.handle, 4, own.handle))
        own.sync()
        assert value[0] == 1 << 18
        assert pool.attributes.used_mem_current == 0
    for thing in (turns, pool, own, other):
        thing.close()


def test_created_here_and_destroyed_in_a_thread_without_context(device, code):
    for how in ("close", "forget"):
        batches = [family(device, code) for _ in range(8)]

        def finish(number, batches=batches, how=how):
            things = batches[number]
            batches[number] = None
            for name in list(things):
                end(things, name, how)

        in_threads(8, finish)


def test_created_in_a_thread_and_destroyed_here(device, code):
    made = []

    def make(number):
        Device(0).set_current()
        made.append(family(Device(0), code))

    in_threads(4, make)
    for things in made:
        for name in list(things):
            end(things, name, "close" if name != "stream" else "forget")


def test_threads_share_one_kernel(device, code):
    kernel = ObjectCode.from_ptx(code).get_kernel("add")
    main = device.create_stream()
    total = device.allocate(4, stream=main)
    total.fill(0, stream=main)
    main.sync()

    def add(number):
        Device(0).set_current()
        stream = Device(0).create_stream()
        for _ in range(50):
            launch(stream, LaunchConfig(grid=1, block=1), kernel, total, ctypes.c_int32(1))
        stream.sync()

    in_threads(4, add)
    value = bytearray(4)
    check(driver.cuMemcpyDtoH(value, total.handle, 4))
    assert int.from_bytes(value, "little") == 200


# ----------------------------------------------------------------------------------------------------------
# Exceptions


def test_exception_leaves_nothing_open(device, code):
    kept = []
    with pytest.raises(ZeroDivisionError), device.create_stream() as stream:
        kept.append(stream)
        with device.allocate(64, stream=stream) as buffer:
            kept.append(buffer)
            launch(
                stream,
                LaunchConfig(grid=1, block=1),
                ObjectCode.from_ptx(code).get_kernel("add"),
                buffer,
                ctypes.c_int32(1),
            )
            1 / 0
    assert all(thing.is_closed for thing in kept)


def test_objects_in_traceback_frames(device, code):
    def fail():
        things = family(device, code)
        raise KeyError(len(things))

    for _ in range(20):
        try:
            fail()
        except KeyError as error:
            kept = error
        del kept
    gc.collect()


def test_memory_resource_that_raises_in_deallocate(device):
    freed = []

    class Raises(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = True, False, 0

        def allocate(self, size, *, stream=None):
            return Buffer.from_handle(check(driver.cuMemAlloc(size)), size, mr=self)

        def deallocate(self, ptr, size, *, stream=None):
            check(driver.cuMemFree(ptr))
            freed.append(ptr)
            raise ValueError("mine")

    seen, hook = [], sys.unraisablehook
    sys.unraisablehook = seen.append
    try:
        for _ in range(10):
            buffer = Raises().allocate(64, stream=device.default_stream)
            with contextlib.suppress(ValueError):
                buffer.close()
            assert buffer.is_closed
            buffer = Raises().allocate(64, stream=device.default_stream)
            del buffer
        gc.collect()
    finally:
        sys.unraisablehook = hook
    assert len(freed) == 20
    assert all(s.exc_type is ValueError for s in seen)


# ----------------------------------------------------------------------------------------------------------
# Flat memory


def makers(device, code):
    stream = device.create_stream()
    timed = EventOptions(timing_enabled=True)
    object_code = ObjectCode.from_ptx(code)
    kernel = object_code.get_kernel("add")
    config = LaunchConfig(grid=1, block=1)
    target = device.allocate(4, stream=stream)
    own = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25))

    def launches():
        launch(stream, config, kernel, target, ctypes.c_int32(1))
        stream.sync()

    def raises():
        with contextlib.suppress(TypeError):
            launch(stream, config, kernel, object())
        with contextlib.suppress(TypeError):
            device.create_stream(options=3)

    return {
        "streams": lambda: device.create_stream(),
        "streams, closed": lambda: device.create_stream().close(),
        "events": lambda: (stream.record(options=timed), device.create_event()),
        "buffers": lambda: device.allocate(1 << 16, stream=stream),
        "buffers, closed": lambda: own.allocate(1 << 16, stream=stream).close(),
        "views": lambda: Buffer.from_handle(target.handle, 4, owner=object()),
        "capsules": lambda: target.__dlpack__(),
        "copies": lambda: target.copy_to(stream=stream),
        "launches": launches,
        "configurations": lambda: LaunchConfig(grid=(1, 2, 3), block=4),
        "kernels": lambda: (
            object_code.get_kernel("add").attributes.num_regs,
            object_code.get_kernel("add").arguments_info,
        ),
        "errors": raises,
        "options": lambda: ProgramOptions(arch="sm_80", define_macro=["A", ("B", "2")]).as_bytes("nvrtc"),
        "families": lambda: family(device, code),
    }


NAMES = "streams;streams, closed;events;buffers;buffers, closed;views;capsules;copies;launches;configurations;kernels;errors;options;families"


@pytest.mark.parametrize("name", NAMES.split(";"))
def test_memory_stays_flat(device, code, name):
    every = makers(device, code)
    assert list(every) == NAMES.split(";")
    flat(device, every[name])


@pytest.mark.parametrize("name", ["programs", "linkers", "modules"])
def test_memory_stays_flat_over_compiles(device, code, name):
    object_code = ObjectCode.from_ptx(code)

    def modules():
        ObjectCode.from_ptx(code).get_kernel("add")

    make = {
        "programs": lambda: Program(SOURCE, "c++"),
        "linkers": lambda: Linker(object_code),
        "modules": modules,
    }[name]
    flat(device, make, max(ROUNDS // 10, 50))
