"""Memory as headers and host bytes, and the transfer of device memory between processes by IPC."""

import multiprocessing
import os
import pickle
import signal
import socket
import time

import numpy as np
import pytest
from cuda.core import (
    Buffer,
    Device,
    DeviceMemoryResource,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    ObjectCode,
    PinnedMemoryResource,
    Program,
    ProgramOptions,
    launch,
)
from cuda.core.utils import StridedMemoryView
from cupyrite import ipc_transfer
from cupyrite.serialization import deserialize, memory_type, nbytes, serialize


@pytest.fixture(scope="module")
def device():
    device = Device()
    device.set_current()
    return device


@pytest.fixture
def stream(device):
    return device.create_stream()


def contents(memory, device):
    """The bytes of a buffer, or the elements of a view."""
    stream = device.create_stream()
    if isinstance(memory, StridedMemoryView):
        result = np.empty(memory.shape, memory.dtype)
        memory.copy_to(StridedMemoryView.from_array_interface(result), stream)
    else:
        result = np.empty(memory.size, np.uint8)
        if memory.size:
            memory.copy_to(result, stream=stream)
    stream.sync()
    return result


def travelled(memory):
    """What arrives, if the header and the frames go through pickles as between processes."""
    header, frames = serialize(memory)
    return deserialize(pickle.loads(pickle.dumps(header)), [bytes(frame) for frame in frames])


RESOURCES = {
    "device": lambda device: device.memory_resource,
    "shared": lambda device: DeviceMemoryResource(device, {"ipc_enabled": True}),
    "pinned": lambda device: LegacyPinnedMemoryResource(),
    "pinned pool": lambda device: PinnedMemoryResource(),
    "managed": lambda device: ManagedMemoryResource(),
}


@pytest.mark.parametrize("size", [1, 1000, 3 << 20])
@pytest.mark.parametrize("name", RESOURCES)
def test_buffers_arrive_in_memory_of_their_type(name, size, device, stream):
    buffer = RESOURCES[name](device).allocate(size, stream=stream)
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    buffer.copy_from(data, stream=stream)
    stream.sync()
    arrived = travelled(buffer)
    assert type(arrived) is type(buffer) and arrived.handle != buffer.handle
    assert memory_type(arrived) == memory_type(buffer) == name.replace("shared", "device").removesuffix(" pool")
    assert np.array_equal(contents(arrived, device), data)


def test_host_memory_stays_host_memory(device):
    array = np.arange(10, dtype=np.uint8)
    arrived = travelled(Buffer.from_handle(array.ctypes.data, array.nbytes, owner=array))
    assert memory_type(arrived) == "host" and np.array_equal(np.asarray(arrived), array)
    np.asarray(arrived)[0] = 5
    assert array[0] == 0


def test_buffers_without_bytes_arrive(device, stream):
    assert travelled(device.allocate(0, stream=stream)).size == 0
    view = StridedMemoryView.from_buffer(device.allocate(16, stream=stream), (0, 3), dtype=np.float32)
    assert travelled(view).shape == (0, 3)


def test_serialization_waits_for_work_on_other_streams(device, stream):
    source = """extern "C" __global__ void late(unsigned char *x, long long cycles)
    {
        for (long long start = clock64(); clock64() - start < cycles;)
            ;
        *x = 42;
    }"""
    late = Program(source, "c++").compile("cubin").get_kernel("late")
    buffer = device.allocate(1, stream=stream)
    buffer.fill(0, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=1), late, buffer, np.int64(100_000_000))
    assert list(serialize(buffer)[1][0]) == [42]


def test_host_accessible_memory_is_not_copied(device, stream):
    buffer = LegacyPinnedMemoryResource().allocate(8, stream=stream)
    (frame,) = serialize(buffer)[1]
    np.asarray(buffer)[3] = 99
    assert frame[3] == 99


LAYOUTS = {
    "C": ((3, 4, 5), None),
    "Fortran": ((3, 4, 5), (1, 3, 12)),
    "transposed": ((4, 3), (1, 4)),
    "every other": ((5, 4), (16, 2)),
    "repeated": ((3, 4), (0, 1)),
    "one element": ((), ()),
    "one dimension": ((7,), None),
}


@pytest.mark.parametrize("dtype", ["f4", "u2", "c16", [("a", "i4"), ("b", "f8")]], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_views_keep_their_elements(layout, dtype, device, stream):
    shape, strides = LAYOUTS[layout]
    dtype = np.dtype(dtype)
    buffer = device.allocate(100 * dtype.itemsize, stream=stream)
    buffer.copy_from(np.random.default_rng(1).integers(0, 100, buffer.size, np.uint8), stream=stream)
    view = StridedMemoryView.from_buffer(buffer, shape, strides, dtype=dtype)
    arrived = travelled(view)
    assert (arrived.shape, arrived.dtype, memory_type(arrived)) == (shape, dtype, "device")
    assert arrived._layout.is_contiguous_any
    assert contents(arrived, device).tobytes() == contents(view, device).tobytes()


def test_views_keep_fortran_order_and_protection(device, stream):
    buffer = device.allocate(4 * 12, stream=stream)
    view = StridedMemoryView.from_buffer(buffer, (3, 4), (1, 3), dtype=np.float32, is_readonly=True)
    arrived = travelled(view)
    assert arrived.strides == (1, 3) and arrived.readonly
    assert nbytes(arrived) == nbytes(view) == 48


@pytest.mark.parametrize("memory", ["host", "pinned", "managed"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_views_of_host_accessible_memory_arrive(memory, order, device, stream):
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    if memory == "host":
        view = StridedMemoryView.from_any_interface(np.asarray(array, order=order), stream_ptr=-1)
    else:
        buffer = RESOURCES[memory](device).allocate(48, stream=stream)
        buffer.copy_from(np.ascontiguousarray(array.ravel(order=order)), stream=stream)
        stream.sync()
        view = StridedMemoryView.from_buffer(buffer, (3, 4), (1, 3) if order == "F" else None, dtype=np.int32)
    arrived = travelled(view)
    assert memory_type(arrived) == memory
    assert np.array_equal(contents(arrived, device), array)


def test_views_without_type_keep_their_element_size(device, stream):
    view = StridedMemoryView.from_buffer(device.allocate(36, stream=stream), (3, 4), itemsize=3)
    arrived = travelled(view)
    assert arrived.shape == (3, 4) and arrived._layout.itemsize == 3


def test_a_view_whose_buffer_was_closed_arrives(device, stream):
    buffer = device.allocate(4, stream=stream)
    buffer.fill(6, stream=stream)
    view = StridedMemoryView.from_buffer(buffer, (4,), dtype=np.uint8)
    buffer.close()
    assert contents(travelled(view), device).tolist() == [6] * 4


def test_closed_buffers_are_refused(device, stream):
    buffer = device.allocate(4, stream=stream)
    buffer.close()
    with pytest.raises(RuntimeError, match="closed"):
        serialize(buffer)


def test_wrong_frames_are_refused(device, stream):
    header, frames = serialize(device.allocate(4, stream=stream))
    with pytest.raises(ValueError, match="the frames have 3 bytes, and the header says 4"):
        deserialize(header, [frames[0][:3]])
    split = deserialize(header, [bytes([1]), bytes([2, 3]), bytes([4])])
    assert contents(split, device).tolist() == [1, 2, 3, 4]


def test_a_ticket_needs_a_receiver():
    with pytest.raises(RuntimeError, match="sent to another process"):
        deserialize({"memory": "device", "nbytes": 4, "ticket": 3}, [])


# Code and programs.

KERNEL = 'extern "C" __global__ void k(int *x) { x[0] = VALUE; }'


def test_programs_compile_alike_after_pickling(device):
    options = ProgramOptions(arch="sm_80", define_macro=("VALUE", "7"), name="k.cu")
    for given in (options, {"arch": "sm_80", "define_macro": ("VALUE", "7"), "name": "k.cu"}):
        program = Program(KERNEL, "c++", given)
        arrived = pickle.loads(pickle.dumps(program))
        assert arrived.backend == program.backend
        assert arrived.compile("ptx").code == program.compile("ptx").code
        assert b"7" in arrived.compile("ptx").code
    ptx = program.compile("ptx").code.decode()
    assert pickle.loads(pickle.dumps(Program(ptx, "ptx"))).compile("cubin").get_kernel("k").num_arguments == 1


def test_closed_or_changed_programs_are_not_pickled():
    options = ProgramOptions(arch="sm_80", define_macro=("VALUE", "7"))
    program = Program(KERNEL, "c++", options)
    options.debug = True
    with pytest.raises(RuntimeError, match="ProgramOptions were changed"):
        pickle.dumps(program)
    options.debug = None
    program.close()
    with pytest.raises(RuntimeError, match="closed"):
        pickle.dumps(program)


def test_subclasses_of_program_are_pickled_as_such():
    program = MyProgram(KERNEL, "c++", {"define_macro": ("VALUE", "1")})
    assert type(pickle.loads(pickle.dumps(program))) is MyProgram


class MyProgram(Program):
    pass


def test_code_that_arrives_again_is_loaded_once():
    code = Program('extern "C" __global__ void again() {}', "c++").compile("cubin")
    first = pickle.loads(pickle.dumps(code))
    again = pickle.loads(pickle.dumps(ObjectCode.from_cubin(code.code, name=code.name)))
    assert first is again
    assert pickle.loads(pickle.dumps(code.get_kernel("again"))) == first.get_kernel("again")
    renamed = pickle.loads(pickle.dumps(ObjectCode.from_cubin(code.code, name="other")))
    assert renamed is not first and renamed.name == "other"
    from cuda.core import _module

    for number in range(_module._UNPICKLED_LIMIT + 5):
        pickle.loads(pickle.dumps(ObjectCode.from_cubin(code.code, name=str(number))))
    assert len(_module._unpickled) == _module._UNPICKLED_LIMIT
    assert pickle.loads(pickle.dumps(code)) is not first


# Transfers between processes.


@pytest.fixture(scope="module")
def receiver(device):
    """A process that receives, as functions: its address, and claim(ticket), which returns the bytes."""
    if not ipc_transfer.is_supported(device):
        pytest.skip("needs memory pools that are shared as file descriptors")
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_receive, args=(theirs,), daemon=True)
    process.start()
    assert ours.poll(60)

    def ask(*question):
        ours.send(question)
        assert ours.poll(60)
        answer = ours.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    ask.address = ours.recv()
    ask.process = process
    yield ask
    ours.send(("stop",))
    process.join(30)
    assert process.exitcode == 0


def _receive(pipe):
    device = Device()
    device.set_current()
    receiver = ipc_transfer.IpcReceiver()
    pipe.send(receiver.address)
    while True:
        what, *arguments = pipe.recv()
        try:
            if what == "claim":
                answer = contents(receiver.claim(*arguments), device).tobytes()
            elif what == "count":
                answer = receiver.count, len(receiver._received), len(receiver._pools)
            elif what == "expire":
                before = ipc_transfer.UNCLAIMED_SECONDS, ipc_transfer.UNUSED_POOL_SECONDS
                ipc_transfer.UNCLAIMED_SECONDS, ipc_transfer.UNUSED_POOL_SECONDS = arguments
                answer = receiver._expire()
                ipc_transfer.UNCLAIMED_SECONDS, ipc_transfer.UNUSED_POOL_SECONDS = before
            else:
                break
        except Exception as error:
            answer = error
        pipe.send(answer)
    receiver.close()
    receiver.close()


@pytest.mark.parametrize("size", [1, 70_000, 5 << 20])
@pytest.mark.parametrize("pool", ["shared", "device"])
def test_device_memory_is_sent_to_another_process(pool, size, receiver, device, stream):
    buffer = RESOURCES[pool](device).allocate(size, stream=stream)
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    buffer.copy_from(data, stream=stream)
    stream.sync()
    ticket = ipc_transfer.send(buffer, receiver.address)
    # The receiver's memory is its own.
    buffer.fill(0, stream=stream)
    buffer.close()
    device.sync()
    assert receiver("claim", ticket) == data.tobytes()


@pytest.mark.parametrize("pool", ["shared", "device"])
def test_slices_are_sent(pool, receiver, device, stream):
    buffer = RESOURCES[pool](device).allocate(4096, stream=stream)
    buffer.copy_from((np.arange(4096) % 251).astype(np.uint8), stream=stream)
    stream.sync()
    ticket = ipc_transfer.send(buffer[100:200], receiver.address)
    assert receiver("claim", ticket) == bytes(i % 251 for i in range(100, 200))


def test_memory_is_claimed_once(receiver, device, stream):
    ticket = ipc_transfer.send(device.allocate(4, stream=stream), receiver.address)
    receiver("claim", ticket)
    with pytest.raises(RuntimeError, match=f"memory {ticket} from another process was claimed before"):
        receiver("claim", ticket)


def test_unclaimed_memory_is_freed(receiver, device, stream):
    lost = ipc_transfer.send(device.allocate(4, stream=stream), receiver.address)
    receiver("expire", -1.0, 600.0)
    with pytest.raises(RuntimeError, match="freed after 10 minutes"):
        receiver("claim", lost)
    receiver("claim", ipc_transfer.send(device.allocate(4, stream=stream), receiver.address))


def test_memory_of_the_sender_can_be_freed_at_once(receiver, device, stream):
    pool = DeviceMemoryResource(device, {"ipc_enabled": True})
    for _ in range(10):
        buffer = pool.allocate(1 << 20, stream=stream)
        receiver("claim", ipc_transfer.send(buffer, receiver.address))
        buffer.close()
    stream.sync()
    assert pool.attributes.used_mem_current == 0


def test_a_receiver_survives_wrong_messages(receiver, device, stream):
    for message in (b"", b"abc", (5).to_bytes(8, "little") + b"hello", (1 << 60).to_bytes(8, "little")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect("\0" + receiver.address)
            connection.sendall(message)
    ticket = ipc_transfer.send(device.allocate(4, stream=stream), receiver.address)
    assert len(receiver("claim", ticket)) == 4


def test_a_receiver_that_died_accepts_nothing(device, stream):
    if not ipc_transfer.is_supported(device):
        pytest.skip("needs memory pools that are shared as file descriptors")
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_receive, args=(theirs,), daemon=True)
    process.start()
    address = ours.recv()
    assert ipc_transfer.send(device.allocate(4, stream=stream), address) == 1
    process.kill()
    process.join()
    assert ipc_transfer.send(device.allocate(4, stream=stream), address) is None


def test_a_stopped_receiver_costs_its_timeout(device, stream, monkeypatch):
    if not ipc_transfer.is_supported(device):
        pytest.skip("needs memory pools that are shared as file descriptors")
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_receive, args=(theirs,), daemon=True)
    process.start()
    address = ours.recv()
    monkeypatch.setattr(ipc_transfer, "TIMEOUT", 0.5)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        start = time.monotonic()
        assert ipc_transfer.send(device.allocate(4, stream=stream), address) is None
        assert time.monotonic() - start < 10
    finally:
        process.kill()
        process.join()


def test_unused_pools_are_closed(receiver, device, stream):
    context = multiprocessing.get_context("spawn")
    sender = context.Process(target=_send_once, args=(receiver.address,))
    sender.start()
    sender.join(60)
    assert sender.exitcode == 0 and receiver("count")[2] >= 1
    receiver("expire", 600.0, -1.0)
    assert receiver("count")[2] == 0
    assert ipc_transfer.send(device.allocate(4, stream=stream), receiver.address) is not None


def test_a_sender_that_leaves_early_leaves_no_memory(receiver, device, stream):
    buffer = DeviceMemoryResource(device, {"ipc_enabled": True}).allocate(4, stream=stream)
    stream.sync()
    received, unclaimed, _ = receiver("count")
    handle = buffer.memory_resource.allocation_handle
    request = {"pool": handle.uuid, "descriptor": buffer.ipc_descriptor, "size": 4, "device": device.uuid}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect("\0" + receiver.address)
        ipc_transfer._send_message(connection, request, [int(handle)])
        connection.shutdown(socket.SHUT_RD)
    deadline = time.monotonic() + 30
    while receiver("count")[0] == received or receiver("count")[1] > unclaimed:
        assert time.monotonic() < deadline
        time.sleep(0.01)


class FailsOnce:
    """A listening socket whose first accept() fails."""

    def __init__(self, real):
        self.real, self.failed = real, False

    def accept(self):
        if not self.failed:
            self.failed = True
            raise OSError(24, "Too many open files")
        return self.real.accept()

    def __getattr__(self, name):
        return getattr(self.real, name)


def test_a_receiver_goes_on_after_an_error_of_the_system(device):
    if not ipc_transfer.is_supported(device):
        pytest.skip("needs memory pools that are shared as file descriptors")
    receiver = ipc_transfer.IpcReceiver()
    receiver._socket = socket_that_fails = FailsOnce(receiver._socket)
    for _ in range(3):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(30)
            connection.connect("\0" + receiver.address)
            connection.sendall((3).to_bytes(8, "little") + b"abc")
            assert connection.recv(1) == b""
    assert socket_that_fails.failed
    receiver.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_keep_the_address(device):
    if not ipc_transfer.is_supported(device):
        pytest.skip("needs memory pools that are shared as file descriptors")
    receiver = ipc_transfer.IpcReceiver()
    child = os.fork()
    if child == 0:
        os._exit(0 if receiver._socket.fileno() == -1 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert receiver._socket.fileno() != -1
    receiver.close()


def _send_once(address):
    device = Device()
    device.set_current()
    pool = DeviceMemoryResource(device, {"ipc_enabled": True})
    assert ipc_transfer.send(pool.allocate(4, stream=device.create_stream()), address) is not None
