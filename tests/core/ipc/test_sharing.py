"""cuda.core between processes: memory resources, buffers and events, through descriptors, pickles and multiprocessing."""

import contextlib
import copy
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import uuid

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import (
    Buffer,
    ContextOptions,
    Device,
    DeviceMemoryResource,
    EventOptions,
    ManagedMemoryResource,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
)
from cuda.core._utils.cuda_utils import CUDAError

from helpers.device import on_cpu_device
from helpers.processes import LIMIT, contents, mappings, outcome, process, shared_files
from helpers.programs import output
from helpers.two_devices import has_two_devices

SIZE = 1000


def pinned_resource(device):
    """A resource of shareable host memory; skips the test where the device has none."""
    if not device.properties.host_memory_pools_supported or device.properties.host_numa_id < 0:
        pytest.skip("needs memory pools on a NUMA node of the host")
    return PinnedMemoryResource(PinnedMemoryResourceOptions(ipc_enabled=True))


# Tasks of other processes.


def _use_arguments(pipe, mr, handle, buffers, event):
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    event.sync()
    pipe.send(
        [
            (type(mr).__name__, mr.is_mapped, mr.is_ipc_enabled, mr.is_handle_owned, mr.device_id),
            [b.memory_resource is mr and b.is_mapped and "is_mapped=True" in repr(b) for b in buffers],
            type(mr).from_registry(mr.uuid) is mr,
            import_pool(type(mr), handle) is mr,
            (event.is_ipc_enabled, event.is_timing_enabled, event.is_done),
            outcome(lambda: mr.attributes.release_threshold),
        ]
    )
    pipe.send([contents(b, stream).tolist() for b in buffers])
    for i, b in enumerate(buffers):
        b.fill(100 + i, stream=stream)
    stream.sync()
    try:
        mr.allocate(4, stream=stream)
    except TypeError as error:
        pipe.send(str(error))
    pipe.send(sorted(k for k in vars(type(mr)) if k == "allocate"))
    for b in buffers:
        b.close(stream)
    stream.sync()
    mr.close()
    pipe.send((mr.is_mapped, mr.uuid, mr.is_ipc_enabled))
    handle.close()
    event.close()
    del b, buffers
    pipe.send(shared_files())


def import_pool(kind, handle):
    """The resource of a class over the pool of a handle."""
    before = (0,) if kind is DeviceMemoryResource else ()
    return kind.from_allocation_handle(*before, handle)


def _use_queue(tasks, answers):
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    for item in iter(tasks.get, None):
        data = contents(item, stream)
        item.fill(int(data[0]) + 1, stream=stream)
        stream.sync()
        # The descriptor of an imported buffer is the one that it was imported by.
        answers.put((data.tolist(), item.memory_resource.uuid, item.ipc_descriptor.size))
        item.close()


def _drop_a_borrowed_stream(pipe, mr, descriptor):
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    dropped = []

    class Owner:
        def __init__(self):
            self.stream = device.create_stream()

        def __cuda_stream__(self):
            return 0, int(self.stream.handle)

        def __del__(self):
            dropped.append([[] for _ in range(1000)])

    def import_and_close():
        borrowed = device.create_stream(Owner())
        buffer = Buffer.from_ipc_descriptor(mr, descriptor, stream=borrowed)
        last = Buffer.from_ipc_descriptor(mr, descriptor, stream=stream)
        # The import keeps the borrowed stream until its last buffer is closed.
        buffer.close()
        return last

    class Caller:
        # Called by create_context(), thus on a thread that Rust knows to be attached.
        def __iter__(self):
            last = import_and_close()
            pipe.send(len(dropped))
            last.close()
            return iter(())

    for _ in range(10):
        # There are no resources.
        with contextlib.suppress(ValueError):
            device.create_context(ContextOptions(resources=Caller()))
    pipe.send(len(dropped))


def test_owner_of_a_stream_is_dropped_with_the_last_import(device, stream, mr):
    memory = mr.allocate(SIZE, stream=stream)
    stream.sync()
    with process(_drop_a_borrowed_stream, mr, memory.ipc_descriptor) as there:
        assert [there.receive() for _ in range(11)] == list(range(11))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("kind", [DeviceMemoryResource, PinnedMemoryResource])
def test_resource_as_a_process_argument(device, stream, method, kind):
    mr = pinned_resource(device) if kind is PinnedMemoryResource else kind(device, {"ipc_enabled": True})
    buffers = [mr.allocate(SIZE, stream=stream) for _ in range(3)]
    for i, b in enumerate(buffers):
        b.fill(i + 1, stream=stream)
    event = stream.record(options=EventOptions(ipc_enabled=True))
    with process(_use_arguments, mr, mr.allocation_handle, buffers, event, method=method) as there:
        facts, same, registered, again, of_event, attributes = there.receive()
        assert facts == (kind.__name__, True, True, True, mr.device_id)
        assert same == [True] * 3
        assert registered and again
        # Drivers report them for pools of this process only.
        assert attributes == "CUDAError CUDA_ERROR_INVALID_VALUE"
        assert of_event == (True, False, True)
        assert there.receive() == [[i + 1] * SIZE for i in range(3)]
        assert "another process" in there.receive()
        assert there.receive() == []
        assert there.receive() == (False, None, False)
        assert there.receive() == 0
    event.sync()
    for i, b in enumerate(buffers):
        assert (contents(b, stream) == 100 + i).all()
        b.close(stream)
    mr.close()


def _use_the_host(pipe, mr, buffer):
    # Data that the host writes is visible to the other host process at once.
    seen = np.from_dlpack(buffer)
    pipe.send((seen.tolist(), buffer.device_id, buffer.is_host_accessible, buffer.is_device_accessible, mr.numa_id))
    seen[:] = 9
    with buffer[2:4] as part:
        np.from_dlpack(part)[:] = 5
        pipe.send((part.is_mapped, part.size))
    del seen
    buffer.close()


def test_host_memory(device, stream):
    with pytest.raises(ValueError, match="numa_id"):
        PinnedMemoryResource({"ipc_enabled": True, "numa_id": -1})
    mr = pinned_resource(device)
    assert mr.numa_id == device.properties.host_numa_id and mr.device_id == -1 and mr.is_ipc_enabled
    with pytest.raises(TypeError, match="PinnedMemoryResource"):
        # Registered under the UUID of its handle.
        mr.register(mr.uuid)
        DeviceMemoryResource.from_allocation_handle(device, mr.allocation_handle)
    buffer = mr.allocate(8, stream=stream)
    stream.sync()
    np.from_dlpack(buffer)[:] = 3
    with process(_use_the_host, mr, buffer) as there:
        assert there.receive() == ([3] * 8, -1, True, True, mr.numa_id)
        assert there.receive() == (True, 2)
    assert np.from_dlpack(buffer).tolist() == [9, 9, 5, 5, 9, 9, 9, 9]
    with buffer[1:] as part:
        for use in (lambda: part.ipc_descriptor, lambda: pickle.dumps(part)):
            with pytest.raises(RuntimeError, match="owner"):
                use()
    buffer.close()
    mr.close()
    for use in (lambda: mr.allocation_handle, lambda: mr.register(uuid.uuid4()), lambda: pickle.dumps(mr)):
        with pytest.raises(RuntimeError, match="closed"):
            use()


def test_unshareable_memory_raises(device, stream):
    for mr in (PinnedMemoryResource({}), PinnedMemoryResource()):
        for use in (lambda: mr.allocation_handle, lambda: mr.register(uuid.uuid4()), lambda: pickle.dumps(mr)):
            with pytest.raises(RuntimeError, match="IPC-enabled"):
                use()
        with mr.allocate(4, stream=stream) as buffer, pytest.raises(RuntimeError, match="IPC-enabled"):
            buffer.ipc_descriptor
    for given, error in ((-1, OSError), (99999, OSError), ("x", ValueError), (None, TypeError), (0, CUDAError)):
        with pytest.raises(error):
            PinnedMemoryResource.from_allocation_handle(given)
    with pytest.raises(RuntimeError, match="registered"):
        PinnedMemoryResource.from_registry(uuid.uuid4())
    if device.properties.managed_memory:
        managed = ManagedMemoryResource()
        assert not any(hasattr(managed, n) for n in ("allocation_handle", "register", "from_allocation_handle"))
        assert not managed.is_ipc_enabled
        for use in (pickle.dumps, copy.copy):
            with pytest.raises(TypeError):
                use(managed)
        with managed.allocate(4, stream=stream) as buffer, pytest.raises(RuntimeError, match="IPC-enabled"):
            buffer.ipc_descriptor


def test_buffers_through_a_queue(stream, mr):
    context = multiprocessing.get_context("spawn")
    tasks, answers = context.Queue(), context.Queue()
    other = context.Process(target=_use_queue, args=(tasks, answers), daemon=True)
    other.start()
    buffers = [mr.allocate(SIZE, stream=stream) for _ in range(4)]
    for i, b in enumerate(buffers):
        b.fill(10 * i, stream=stream)
    stream.sync()
    try:
        for i, b in enumerate(buffers):
            tasks.put(b)
            assert answers.get(timeout=LIMIT) == ([10 * i] * SIZE, mr.uuid, SIZE)
            assert (contents(b, stream) == 10 * i + 1).all()
        tasks.put(None)
        other.join(LIMIT)
        assert other.exitcode == 0
    finally:
        other.kill()
    for b in buffers:
        b.close(stream)


@pytest.mark.cpu
def test_import_in_one_process(device, stream, mr):
    # A GPU's driver may refuse to import a pool in its own process.
    handle = mr.allocation_handle
    assert handle is mr.allocation_handle and int(handle) == handle.handle >= 0
    assert handle.uuid == mr.uuid and isinstance(mr.uuid, uuid.UUID)
    assert (mr.is_ipc_enabled, mr.is_mapped, mr.is_handle_owned) == (True, False, True)
    files = shared_files()
    mapped = DeviceMemoryResource.from_allocation_handle(device, int(handle))
    assert (mapped.is_ipc_enabled, mapped.is_mapped, mapped.is_handle_owned, mapped.uuid) == (True, True, True, None)
    assert int(mapped.allocation_handle) != int(handle)
    buffer = mr.allocate(SIZE, stream=stream)
    buffer.fill(7, stream=stream)
    descriptor = buffer.ipc_descriptor
    assert descriptor is buffer.ipc_descriptor and descriptor.size == SIZE and not buffer.is_mapped
    one = Buffer.from_ipc_descriptor(mapped, descriptor, stream=stream)
    two = Buffer.from_ipc_descriptor(mapped, pickle.loads(pickle.dumps(descriptor)), stream=stream)
    assert one.is_mapped and one.ipc_descriptor is descriptor and one.memory_resource is mapped
    assert one == two and one is not two and one != buffer
    assert repr(one) == f"<Buffer ptr={one.handle:#x} size={SIZE} is_mapped=True>"
    assert (one.device_id, one.is_device_accessible, one.is_host_accessible) == (0, True, False)
    assert (contents(one, stream) == 7).all()
    with pytest.raises(TypeError, match="another process"):
        one.copy_to(stream=stream)
    one.close()
    assert not one.is_mapped
    # The memory remains until the last of its buffers is closed.
    assert (contents(two, stream) == 7).all()
    with device.create_stream() as other:
        two.close(other)
        other.sync()
    assert (contents(buffer, stream) == 7).all()

    empty = mr.allocate(0, stream=stream)
    imported = Buffer.from_ipc_descriptor(mapped, empty.ipc_descriptor, stream=stream)
    assert (imported.handle, imported.size) == (0, 0)
    for b in (imported, empty):
        b.close()
    part = Buffer.from_ipc_descriptor(mapped, type(descriptor)._init(descriptor.__reduce__()[1][0], 10), stream=stream)
    assert part.size == 10
    part.close()
    stream.sync()
    buffer.close(stream)
    stream.sync()
    with pytest.raises(CUDAError, match="INVALID_VALUE"):
        Buffer.from_ipc_descriptor(mapped, descriptor, stream=stream)
    mapped.close()
    assert (mapped.is_mapped, mapped.is_ipc_enabled, mapped.is_handle_owned) == (False, False, False)
    assert shared_files() == files


@pytest.mark.cpu
def test_streams_of_imports_are_pruned(device, stream, mr):
    """Memory imported repeatedly keeps no idle streams alive."""
    buffer = mr.allocate(SIZE, stream=stream)
    mapped = DeviceMemoryResource.from_allocation_handle(device, int(mr.allocation_handle))
    last = Buffer.from_ipc_descriptor(mapped, buffer.ipc_descriptor, stream=stream)
    handles = {}
    for i in range(100):
        with device.create_stream() as own:
            handles[int(own.handle)] = i
            imported = Buffer.from_ipc_descriptor(mapped, buffer.ipc_descriptor, stream=own)
            imported.fill(i, stream=own)
            imported.close()
            own.sync()
    # The CPU device detects destroyed stream handles.
    alive = [i for handle, i in handles.items() if driver.cuStreamQuery(handle)[0] == driver.CUresult.CUDA_SUCCESS]
    assert len(alive) <= 20
    assert (contents(last, stream) == 99).all()
    last.close(stream)
    stream.sync()
    assert not any(driver.cuStreamQuery(h)[0] == driver.CUresult.CUDA_SUCCESS for h in handles)
    buffer.close(stream)
    mapped.close()


@pytest.mark.cpu
def test_registry_of_imported_resources(device, mr):
    with pytest.raises(RuntimeError, match="registered"):
        DeviceMemoryResource.from_registry(mr.uuid)
    for unknown in (uuid.uuid4(), 3, None):
        with pytest.raises(RuntimeError, match="registered"):
            DeviceMemoryResource.from_registry(unknown)
    with pytest.raises(RuntimeError, match="registered"):
        pickle.loads(pickle.dumps(mr))
    for wrong, kind in ((uuid.uuid4(), ValueError), (3, TypeError), (None, TypeError), ("x", TypeError)):
        with pytest.raises(kind, match="uuid"):
            mr.register(wrong)
    assert mr.register(mr.uuid) is mr
    assert DeviceMemoryResource.from_registry(mr.uuid) is mr
    assert pickle.loads(pickle.dumps(mr)) is mr and copy.copy(mr) is mr
    assert DeviceMemoryResource.from_allocation_handle(device, mr.allocation_handle) is mr
    other = DeviceMemoryResource.from_allocation_handle(device, int(mr.allocation_handle))
    assert other.register(mr.uuid) is mr
    assert other.uuid is None
    named = uuid.uuid4()
    assert other.register(named) is other and other.uuid == named
    # An import is registered under the handle's UUID for its lifetime.
    third = DeviceMemoryResource(device, {"ipc_enabled": True})
    copied = DeviceMemoryResource.from_allocation_handle(device, third.allocation_handle)
    assert copied is not third and copied.is_mapped and copied.uuid == third.uuid
    assert third.register(third.uuid) is copied
    copied.close()
    assert third.register(third.uuid) is third
    known = third.uuid
    del third
    gc.collect()
    with pytest.raises(RuntimeError, match="registered"):
        DeviceMemoryResource.from_registry(known)


def test_invalid_arguments_raise(device, stream, mr):
    plain = DeviceMemoryResource(device, {})
    ordinary = plain.allocate(16, stream=stream)
    shared = mr.allocate(16, stream=stream)
    for use in (lambda: plain.allocation_handle, lambda: plain.register(uuid.uuid4()), lambda: pickle.dumps(plain)):
        with pytest.raises(RuntimeError, match="IPC-enabled"):
            use()
    assert plain.uuid is None and not plain.is_ipc_enabled
    for use in (lambda: ordinary.ipc_descriptor, lambda: pickle.dumps(ordinary)):
        with pytest.raises(RuntimeError, match="IPC-enabled"):
            use()
    descriptor = shared.ipc_descriptor
    take = Buffer.from_ipc_descriptor
    with pytest.raises(RuntimeError, match="IPC-enabled"):
        take(plain, descriptor, stream=stream)
    wrong = ((3, descriptor, stream), (mr, 3, stream), (mr, None, stream), (mr, descriptor, 3))
    for mr_, descriptor_, stream_ in wrong:
        with pytest.raises(TypeError):
            take(mr_, descriptor_, stream=stream_)
    for arguments in ((mr, descriptor), (mr, descriptor, stream)):
        with pytest.raises(TypeError):
            take(*arguments)
    # It belongs to this process.
    with pytest.raises(CUDAError, match="INVALID_VALUE"):
        take(mr, descriptor, stream=stream)
    kind = type(descriptor)
    with pytest.raises(ValueError, match="64"):
        take(mr, kind._init(b"abc", 3), stream=stream)
    with pytest.raises(OverflowError):
        kind._init(bytes(64), -1)
    for cls in (kind, type(mr.allocation_handle)):
        with pytest.raises(RuntimeError, match="cannot be instantiated"):
            cls()
    for given, error in ((-1, OSError), (99999, OSError), ("x", ValueError), (None, TypeError), (0, CUDAError)):
        with pytest.raises(error):
            DeviceMemoryResource.from_allocation_handle(device, given)
    with pytest.raises(ValueError, match="99"):
        DeviceMemoryResource.from_allocation_handle(99, mr.allocation_handle)
    handle = mr.allocation_handle
    for use in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="multiprocessing"):
            use(handle)
    shared.close()
    for use in (lambda: shared.ipc_descriptor, lambda: pickle.dumps(shared)):
        with pytest.raises(RuntimeError, match="closed"):
            use()
    mr.close()
    assert mr.uuid is None and not mr.is_ipc_enabled
    for use in (lambda: mr.allocation_handle, lambda: pickle.dumps(mr), lambda: take(mr, descriptor, stream=stream)):
        with pytest.raises(RuntimeError, match="closed"):
            use()
    assert not handle.is_closed and int(handle) >= 0
    handle.close()
    handle.close()
    assert handle.is_closed and handle.handle == -1 and handle.uuid is not None
    with pytest.raises(ValueError, match="closed"):
        int(handle)
    with pytest.raises(RuntimeError, match="closed"):
        DeviceMemoryResource.from_allocation_handle(device, handle)
    ordinary.close()
    plain.close()


@pytest.mark.cpu
def test_damaged_and_foreign_descriptors_are_refused(device, stream, mr):
    mapped = DeviceMemoryResource.from_allocation_handle(device, int(mr.allocation_handle))
    other = DeviceMemoryResource(device, {"ipc_enabled": True})
    buffer, foreign = mr.allocate(64, stream=stream), other.allocate(64, stream=stream)
    payload = buffer.ipc_descriptor.__reduce__()[1][0]
    make = type(buffer.ipc_descriptor)._init
    before = mappings()
    for bad in (foreign.ipc_descriptor, make(bytes(64), 3), make(payload[:-1] + b"\x01", 64)):
        with pytest.raises(CUDAError, match="INVALID_VALUE"):
            Buffer.from_ipc_descriptor(mapped, bad, stream=stream)
    with pytest.raises(ValueError, match="64 bytes"):
        Buffer.from_ipc_descriptor(mapped, make(payload, 65), stream=stream)
    stream.sync()
    # The temporary import is gone.
    assert mappings() == before
    for b in (buffer, foreign):
        b.close()
    for m in (mapped, other):
        m.close()


def test_events_between_processes(device, stream):
    event = stream.record(options={"ipc_enabled": True})
    for use in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError):
            use(event)
    assert event.ipc_descriptor is event.ipc_descriptor
    # It is recorded once.
    later = device.create_event({"ipc_enabled": True})
    assert later.is_done and later.ipc_descriptor != event.ipc_descriptor
    assert stream.record(later) is later
    for recorded in (event, later):
        with pytest.raises(TypeError, match=r"Stream\.record"):
            stream.record(recorded)
    later.close()
    event.close()
    with pytest.raises(RuntimeError, match="closed"):
        event.ipc_descriptor


def test_fork_start_method_warns(stream, mr):
    # In another process: the global start method is process-wide.
    program = """
        import multiprocessing, pickle, sys, warnings
        from multiprocessing.reduction import ForkingPickler
        from cuda.core import Device, DeviceMemoryResource
        device = Device(0)
        device.set_current()
        multiprocessing.set_start_method(sys.argv[1])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mr = DeviceMemoryResource(device, {"ipc_enabled": True})
            handle = mr.allocation_handle
            buffer = mr.allocate(4, stream=device.default_stream)
            pickle.dumps(mr), pickle.dumps(buffer)
            assert not [w for w in caught if "fork" in str(w.message)]
            for shared in (mr, handle, buffer):
                ForkingPickler.dumps(shared)
        print(sum(w.category is UserWarning and "fork" in str(w.message) for w in caught))
    """
    for method, expected in (("fork", "1"), ("spawn", "0"), ("forkserver", "0")):
        assert output(program, method).strip() == expected


def test_forked_child_cannot_use_them(stream, mr):
    buffer = mr.allocate(4, stream=stream)
    pid = os.fork()
    if pid == 0:
        # Ends the child if a driver hangs.
        signal.alarm(20)
        code = 0
        try:
            mr.allocate(4, stream=stream)
        except CUDAError:
            code += 1
        try:
            buffer.fill(1, stream=stream)
        except CUDAError:
            code += 2
        buffer.close()
        mr.close()
        os._exit(code)
    _, status = os.waitpid(pid, 0)
    # NVIDIA's driver alone would allow the allocation.
    assert os.waitstatus_to_exitcode(status) == 3
    buffer.fill(1, stream=stream)
    assert (contents(buffer, stream) == 1).all()
    buffer.close()


@pytest.mark.cpu
def test_sharing_does_not_leak(device, stream):
    def once():
        mr = DeviceMemoryResource(device, {"ipc_enabled": True})
        mapped = DeviceMemoryResource.from_allocation_handle(device, mr.allocation_handle)
        buffers = [mr.allocate(100 * i + 1, stream=stream) for i in range(4)]
        twice = [b.ipc_descriptor for b in buffers for _ in range(2)]
        theirs = [Buffer.from_ipc_descriptor(mapped, descriptor, stream=stream) for descriptor in twice]
        for b in theirs[::3]:
            b.close()
        event = stream.record(options={"ipc_enabled": True})
        return event.ipc_descriptor, mapped.uuid == mr.uuid

    once()
    files = shared_files()
    for _ in range(20):
        assert once()[1]
    stream.sync()
    assert shared_files() == files


TWO_DEVICES = """
    import multiprocessing
    import numpy as np
    from cuda.core import Buffer, Device, DeviceMemoryResource, Program, LaunchConfig, launch
    from cuda.core._utils.cuda_utils import CUDAError

    SOURCE = 'extern "C" __global__ void add(int *p, int n) { if (threadIdx.x < n) p[threadIdx.x] += 1; }'

    def run(device, buffer, n):
        device.set_current()
        stream = device.create_stream()
        program = Program(SOURCE, "c++", {"arch": "sm_" + device.arch})
        kernel = program.compile("cubin").get_kernel("add")
        launch(stream, LaunchConfig(grid=1, block=32), kernel, buffer, np.int32(n))
        stream.sync()

    def child(pipe, mr, buffer):
        zero, one = Device.get_all_devices()
        one.set_current()
        assert mr.is_mapped and mr.device_id == buffer.device_id == 1
        # Rights are each process's own.
        assert set(mr.peer_accessible_by) == set()
        run(one, buffer, 4)
        mr.peer_accessible_by = [zero]
        assert mr.peer_accessible_by == {zero}
        run(zero, buffer, 4)
        zero.sync()
        pipe.send("done")
        pipe.recv()
        buffer.close(), mr.close()

    def refused(pipe, mr, buffer):
        zero = Device(0)
        try:
            run(zero, buffer, 4)
        except CUDAError as error:
            pipe.send(str(error).split(":")[0])

    if __name__ == "__main__":
        zero, one = Device.get_all_devices()
        one.set_current()
        stream = one.create_stream()
        context = multiprocessing.get_context("spawn")
        mr = DeviceMemoryResource(one, {"ipc_enabled": True})
        buffer = mr.allocate(16, stream=stream)
        buffer.fill(0, stream=stream)
        stream.sync()
        # A kernel of the other device may not touch it, here and there.
        for task, answer in ((child, "done"), (refused, "CUDA_ERROR_ILLEGAL_ADDRESS")):
            ours, theirs = context.Pipe()
            process = context.Process(target=task, args=(theirs, mr, buffer))
            process.start()
            theirs.close()
            assert ours.recv() == answer
            if task is child:
                ours.send("go")
            process.join()
            assert process.exitcode == 0
        out = np.zeros(4, np.int32)
        buffer.copy_to(out, stream=stream)
        stream.sync()
        assert out.tolist() == [2] * 4, out
        # A copy between pools of two devices needs the rights of the current device or of the stream's.
        pool, zeros = DeviceMemoryResource(zero), zero.create_stream()
        with pool.allocate(16, stream=zeros) as other:
            for s, owner, peer in ((stream, pool, 1), (zeros, mr, 0)):
                other.fill(9, stream=zeros)
                zeros.sync()
                try:
                    buffer.copy_to(other, stream=s)
                except CUDAError as error:
                    assert "CUDA_ERROR_INVALID_VALUE" in str(error), error
                else:
                    raise AssertionError("was not refused")
                owner.peer_accessible_by = [peer]
                buffer.copy_to(other, stream=s)
                s.sync()
                other.copy_to(out, stream=s)
                s.sync()
                assert out.tolist() == [2] * 4, out
                owner.peer_accessible_by = []
        mr.peer_accessible_by = [0]
        run(zero, buffer, 4)
        mr.peer_accessible_by.clear()
        assert len(mr.peer_accessible_by) == 0
        print("fine")
"""


def test_two_devices(device, tmp_path):
    if not on_cpu_device() and not has_two_devices():
        pytest.skip("needs two devices with peer access")
    script = tmp_path / "two_devices.py"
    script.write_text(textwrap.dedent(TWO_DEVICES))
    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "CUPYRITE_CPU_DEVICES": "2"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.strip() == "fine", done.stderr
