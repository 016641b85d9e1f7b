"""cuda.core.Buffer: attributes, foreign memory, DLPack, lifetime. Copies and fills are in test_buffer_copies.py."""

import contextlib
import copy
import ctypes
import gc
import pickle
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import LEGACY_DEFAULT_STREAM, Buffer, DeviceMemoryResource, MemoryResource

from helpers.buffers import contents
from helpers.device import check
from helpers.programs import python
from helpers.threads import run_all

pytestmark = pytest.mark.strict_abi


class Host(MemoryResource):
    """Host memory, with a record of the requests."""

    is_device_accessible = False
    is_host_accessible = True
    device_id = -1

    def __init__(self):
        self.live = {}
        self.log = []

    def allocate(self, size, *, stream=None):
        memory = (ctypes.c_char * max(size, 1))()
        address = ctypes.addressof(memory)
        self.live[address] = memory
        self.log.append(("allocate", size, stream))
        return Buffer.from_handle(address, size, mr=self)

    def deallocate(self, ptr, size, *, stream=None):
        self.log.append(("deallocate", ptr, size, stream))
        del self.live[ptr]


# Attributes --------------------------------------------------------------------------------------------


def test_attributes(device, stream):
    buffer = device.allocate(1000, stream=stream)
    assert buffer.handle != 0 and type(buffer.handle) is int
    assert buffer.size == 1000 and buffer.device_id == 0
    assert (buffer.is_device_accessible, buffer.is_host_accessible) == (True, False)
    assert (buffer.is_managed, buffer.is_mapped, buffer.is_closed) == (False, False, False)
    assert buffer.memory_resource is device.memory_resource and buffer.owner is None
    assert repr(buffer) == f"<Buffer ptr={buffer.handle:#x} size=1000>"
    assert weakref.ref(buffer)() is buffer
    buffer.close()


def test_direct_construction_raises():
    with pytest.raises(RuntimeError, match="allocate"):
        Buffer()
    with pytest.raises(RuntimeError, match="allocate"):
        Buffer(1, size=2)


def test_equality_compares_address_and_size(device, stream):
    buffer = device.allocate(64, stream=stream)
    same = Buffer.from_handle(buffer.handle, 64)
    assert buffer == same and hash(buffer) == hash(same) == hash((buffer.handle, 64))
    assert buffer != Buffer.from_handle(buffer.handle, 63)
    assert buffer != buffer.handle and (buffer == 3) is False
    with pytest.raises(TypeError):
        buffer < same


def test_use_after_close_raises(device, stream):
    buffer, other = device.allocate(64, stream=stream), device.allocate(64, stream=stream)
    buffer.close()
    buffer.close()
    buffer.close(stream)
    assert buffer.is_closed and (buffer.handle, buffer.size) == (0, 0)
    assert buffer.memory_resource is None and buffer.owner is None
    assert repr(buffer) == "<Buffer ptr=0x0 size=0>" and hash(buffer) == hash((0, 0))
    uses = [
        lambda: buffer.device_id,
        lambda: buffer.is_device_accessible,
        lambda: buffer.is_host_accessible,
        lambda: buffer.is_managed,
        lambda: buffer.ipc_descriptor,
        lambda: buffer.copy_to(other, stream=stream),
        lambda: buffer.copy_to(stream=stream),
        lambda: buffer.copy_from(other, stream=stream),
        lambda: other.copy_to(buffer, stream=stream),
        lambda: other.copy_from(buffer, stream=stream),
        lambda: buffer.fill(0, stream=stream),
        lambda: buffer.set_deallocation_stream(stream),
        lambda: buffer.__dlpack__(),
        lambda: buffer.__dlpack_device__(),
        lambda: pickle.dumps(buffer),
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="was closed"):
            use()


def test_with_statement_closes(device, stream):
    with device.allocate(64, stream=stream) as buffer:
        assert not buffer.is_closed
    assert buffer.is_closed
    with pytest.raises(ZeroDivisionError), device.allocate(64, stream=stream) as buffer:
        _ = 1 / 0
    assert buffer.is_closed


def test_pickling_raises(device, stream):
    buffer = device.allocate(64, stream=stream)
    for use in (pickle.dumps, copy.copy, lambda b: b.ipc_descriptor):
        with pytest.raises(RuntimeError, match="IPC"):
            use(buffer)
    with pytest.raises(TypeError, match="ipc_descriptor"):
        Buffer.from_ipc_descriptor(device.memory_resource, None, stream=stream)


def test_zero_bytes_are_allowed(device, stream):
    buffer = device.allocate(0, stream=stream)
    assert (buffer.handle, buffer.size, buffer.is_closed) == (0, 0, False)
    buffer.fill(1, stream=stream)
    buffer.copy_from(b"", stream=stream)
    buffer.copy_to(np.empty(0), stream=stream)
    assert buffer.copy_to(stream=stream).size == 0
    buffer.close()
    assert buffer.is_closed


# Foreign memory ---------------------------------------------------------------------------------


def test_handle_without_owner():
    buffer = Buffer.from_handle(0x1000, 16)
    assert (buffer.handle, buffer.size, buffer.device_id) == (0x1000, 16, -1)
    assert (buffer.is_device_accessible, buffer.is_host_accessible) == (False, True)
    assert buffer.memory_resource is None and buffer.owner is None
    assert buffer.__dlpack_device__() == (1, 0)
    buffer.close()
    assert buffer.is_closed


def test_handle_with_owner(device, stream):
    class Owner:
        pass

    array, owner = np.arange(16, dtype=np.uint8), Owner()
    reference = weakref.ref(owner)
    buffer = Buffer.from_handle(array.ctypes.data, 16, owner=owner)
    assert buffer.owner is owner
    del owner
    assert reference() is not None
    buffer.close()
    assert reference() is None and buffer.owner is None
    cycle = Owner()
    cycle.buffer = Buffer.from_handle(array.ctypes.data, 16, owner=cycle)
    reference = weakref.ref(cycle)
    del cycle
    gc.collect()
    assert reference() is None


def test_memory_allocated_by_the_driver(device, stream):
    pointer = check(driver.cuMemAlloc(64))
    buffer = Buffer.from_handle(pointer, 64)
    assert (buffer.device_id, buffer.is_device_accessible, buffer.is_host_accessible) == (0, True, False)
    buffer.fill(3, stream=stream)
    assert contents(buffer, stream) == b"\3" * 64
    buffer.close()
    check(driver.cuMemFree(pointer))
    pinned = check(driver.cuMemHostAlloc(64, 0))
    buffer = Buffer.from_handle(pinned, 64)
    assert (buffer.is_device_accessible, buffer.is_host_accessible, buffer.is_managed) == (True, True, False)
    assert buffer.__dlpack_device__() == (3, 0)
    check(driver.cuMemFreeHost(pinned))
    managed = check(driver.cuMemAllocManaged(64, 1))
    buffer = Buffer.from_handle(managed, 64)
    assert (buffer.is_device_accessible, buffer.is_host_accessible, buffer.is_managed) == (True, True, True)
    assert buffer.__dlpack_device__() == (13, 0)
    check(driver.cuMemFree(managed))


def test_thread_without_context_gets_the_same_answers(device, stream):
    memory = device.allocate(64, stream=stream)
    buffer = Buffer.from_handle(memory.handle, 64)
    answers = []

    def work():
        answers.append((buffer.device_id, buffer.is_device_accessible))
        answers.append(Buffer.from_handle(0x1000, 1).device_id)

    thread = threading.Thread(target=work)
    run_all([thread])
    assert answers == [(0, True), -1]


def test_invalid_handles_raise(device, stream):
    for wrong in ("a", None, 1.0, [1]):
        with pytest.raises(TypeError, match="'ptr'"):
            Buffer.from_handle(wrong, 1)
    for wrong in (-1, 1 << 64):
        with pytest.raises(OverflowError, match="'ptr'"):
            Buffer.from_handle(wrong, 1)
        with pytest.raises(OverflowError, match="'size'"):
            Buffer.from_handle(1, wrong)
    for wrong in ("a", None, 1.5):
        with pytest.raises(TypeError, match="'size'"):
            Buffer.from_handle(1, wrong)
    with pytest.raises(TypeError, match="'mr'"):
        Buffer.from_handle(1, 1, mr=5)
    with pytest.raises(ValueError, match="not both"):
        Buffer.from_handle(1, 1, mr=Host(), owner=3)
    with pytest.raises(ValueError, match="'stream'"):
        Buffer.from_handle(1, 1, stream=stream)
    with pytest.raises(TypeError, match="'stream'"):
        Buffer.from_handle(1, 1, mr=Host(), stream=3)
    assert Buffer.from_handle(driver.CUdeviceptr(4096), np.int64(8)).handle == 4096


def test_resource_frees_memory_once(device, stream):
    resource = Host()
    buffer = resource.allocate(10)
    address = buffer.handle
    assert buffer.memory_resource is resource and buffer.device_id == -1 and not buffer.is_managed
    buffer.close(stream)
    buffer.close()
    del buffer
    assert resource.log[1:] == [("deallocate", address, 10, stream)]
    buffer = resource.allocate(10)
    address = buffer.handle
    del buffer
    assert resource.log[-1] == ("deallocate", address, 10, device.default_stream)
    buffer = resource.allocate(10)
    buffer.set_deallocation_stream(stream)
    buffer.close()
    assert resource.log[-1][3] is stream
    memory = (ctypes.c_char * 4)()
    resource.live[ctypes.addressof(memory)] = memory
    buffer = Buffer.from_handle(ctypes.addressof(memory), 4, resource, stream=stream)
    buffer.close()
    assert resource.log[-1][3] is stream and not resource.live


def test_exceptions_of_a_resource_are_reported(device, monkeypatch):
    class Broken(Host):
        def deallocate(self, ptr, size, *, stream=None):
            raise ValueError("not today")

    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(unraisable.exc_value))
    resource = Broken()
    buffer = resource.allocate(10)
    buffer.close()
    assert buffer.is_closed
    buffer = resource.allocate(10)
    try:
        raise KeyError("pending")
    except KeyError as error:
        del buffer
        assert error.args == ("pending",)
    assert [str(error) for error in seen] == ["not today", "not today"]


# DLPack -------------------------------------------------------------------------------------------


def test_host_memory_exports_to_numpy():
    resource = Host()
    buffer = resource.allocate(16)
    array = np.from_dlpack(buffer)
    assert array.shape == (16,) and array.dtype == np.int8 and array.ctypes.data == buffer.handle
    array[:] = 7
    assert bytes(resource.live[buffer.handle]) == b"\7" * 16
    # The memory stays allocated while the array exists.
    address = buffer.handle
    buffer.close()
    assert buffer.is_closed and address in resource.live
    del buffer
    gc.collect()
    assert address in resource.live and array[3] == 7
    del array
    gc.collect()
    assert not resource.live


def test_dlpack_capsules(device, stream):
    buffer = device.allocate(64, stream=stream)
    assert buffer.__dlpack_device__() == (2, 0)
    for arguments, name in [
        ({}, "dltensor"),
        ({"max_version": (0, 8)}, "dltensor"),
        ({"max_version": (1, 0)}, "dltensor_versioned"),
        ({"max_version": (2, 5), "stream": -1}, "dltensor_versioned"),
        ({"stream": 1}, "dltensor"),
        ({"stream": 2}, "dltensor"),
        ({"stream": int(stream.handle), "dl_device": (2, 0), "copy": False}, "dltensor"),
    ]:
        assert f'"{name}"' in repr(buffer.__dlpack__(**arguments))
    for arguments, error in [
        ({"dl_device": (1, 0)}, BufferError),
        ({"dl_device": 3}, TypeError),
        ({"copy": True}, BufferError),
        ({"max_version": 1}, TypeError),
        ({"max_version": (1, 0, 0)}, BufferError),
        ({"stream": stream}, TypeError),
        ({"stream": -2}, TypeError),
    ]:
        with pytest.raises(error, match=next(iter(arguments))):
            buffer.__dlpack__(**arguments)
    reference = weakref.ref(buffer)
    capsule = buffer.__dlpack__()
    del buffer
    assert reference() is not None
    del capsule
    assert reference() is None


def test_memory_without_owner_is_not_exported():
    class Nowhere(Host):
        is_host_accessible = False

    buffer = Nowhere().allocate(4)
    for use in (buffer.__dlpack__, buffer.__dlpack_device__):
        with pytest.raises(BufferError, match="neither"):
            use()


# Lifetime ---------------------------------------------------------------------------------------------


def used(pool, device):
    device.sync()
    return pool.attributes.used_mem_current


def test_destruction_in_any_order(device, pool):
    for order in range(6):
        stream, other = device.create_stream(), device.create_stream()
        buffer = pool.allocate(1 << 16, stream=stream)
        buffer.fill(1, stream=other)
        if order == 0:
            buffer.close()
        elif order == 1:
            stream.close()
            buffer.close()
        elif order == 2:
            stream.close()
            other.close()
            del buffer
        elif order == 3:
            buffer.close(other)
            other.close()
        elif order == 4:
            buffer.set_deallocation_stream(other)
            other.close()
            stream.close()
            buffer.close()
        else:
            buffer.copy_to(stream=other).close(stream)
            buffer.close(LEGACY_DEFAULT_STREAM)
        buffer = None
        gc.collect()
        assert used(pool, device) == 0, order
    own = DeviceMemoryResource(device, {})
    buffer = own.allocate(64, stream=device.default_stream)
    own.close()
    del own
    assert buffer.memory_resource.is_closed
    buffer.fill(1, stream=device.default_stream)
    buffer.close()


def test_destruction_in_another_thread(device, pool):
    buffers = [pool.allocate(1 << 10, stream=s) for s in (device.create_stream(), device.default_stream) * 20]

    def work():
        # No context is current here.
        while buffers:
            buffers.pop().close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    run_all(threads)
    assert used(pool, device) == 0


def test_concurrent_close_frees_once(device, pool):
    stream = device.create_stream()
    for _ in range(50):
        buffer = pool.allocate(256, stream=stream)
        barrier = threading.Barrier(4)

        def work(buffer=buffer, barrier=barrier):
            barrier.wait()
            with contextlib.suppress(RuntimeError):
                buffer.fill(1, stream=stream)
            buffer.close()

        threads = [threading.Thread(target=work) for _ in range(4)]
        run_all(threads)
    assert used(pool, device) == 0


def test_memory_stays_flat(device, pool):
    stream = device.create_stream()
    host = np.zeros(256, np.uint8)
    for _ in range(2000):
        with pool.allocate(256, stream=stream) as buffer:
            buffer.copy_from(host, stream=stream)
            buffer.__dlpack__()
    assert used(pool, device) == 0
    assert pool.attributes.reserved_mem_high <= 64 << 20


CHILD = """
    import os, sys
    import numpy as np
    from cuda.core import Device, DeviceMemoryResource, Buffer, MemoryResource

    class Host(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = False, True, -1
        # At the end of the interpreter a module has no names any more.
        def deallocate(self, ptr, size, *, stream, print=print, getpid=os.getpid, parent=os.getpid()):
            print("deallocate in", "child" if getpid() != parent else "parent", flush=True)

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    pool = DeviceMemoryResource(device, {})
    buffer = pool.allocate(64, stream=stream)
    array = np.zeros(64, np.uint8)
    buffer.copy_from(array, stream=stream)
    own = Buffer.from_handle(array.ctypes.data, 64, mr=Host())
    export = buffer.__dlpack__()
"""


def run(code):
    environment = {"PYTHONWARNINGS": "ignore::RuntimeWarning,ignore::DeprecationWarning"}
    done = python(textwrap.dedent(CHILD) + textwrap.dedent(code), environment=environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_live_buffers_at_interpreter_exit():
    assert run("keep = [buffer, pool, stream]; keep.append(keep)") == "deallocate in parent\n"


def test_buffers_in_a_cycle_at_interpreter_exit():
    run("import builtins; builtins.keep = (buffer, export, own)")


def test_forked_child_frees_nothing():
    out = run(
        """
        child = os.fork()
        if child == 0:
            del export
            buffer.close()
            own.close()
            del buffer, own
            pool.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print("parent", flush=True)
        buffer.fill(1, stream=stream)
        stream.sync()
        buffer.close()
        own.close()
        """
    )
    assert out == "parent\ndeallocate in parent\n"
