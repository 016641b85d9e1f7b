"""The test double of NCCL: ranks in threads and processes, and the errors that replace hangs and wrong results."""

import inspect
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import cupyrite.nccl_double as nccl
import numpy as np
import pytest
from cuda.core import Device, LaunchConfig, Program, launch
from cuda.core.utils import StridedMemoryView

# Seconds that a call waits in tests that provoke the wait.
SHORT = 0.5

pytestmark = pytest.mark.timeout(60)


def device_of(rank):
    """The device of a rank: ranks share devices if there are fewer."""
    device = Device(rank % len(Device.get_all_devices()))
    device.set_current()
    return device


class Arrays:
    """Arrays of a rank on its device, and their stream."""

    def __init__(self, rank):
        self.device = device_of(rank)
        self.stream = self.device.create_stream()

    def put(self, values):
        values = np.ascontiguousarray(values)
        buffer = self.device.allocate(max(values.nbytes, 1), stream=self.stream)
        if values.size:
            buffer.copy_from(values, stream=self.stream)
        return StridedMemoryView.from_buffer(buffer, values.shape, dtype=values.dtype)

    def get(self, view):
        result = np.empty(view.shape, view.dtype)
        view.exporting_obj.copy_to(result, stream=self.stream)
        self.stream.sync()
        return result


def in_threads(count, function, unique_id=None):
    """What `function(communicator, arrays)` returns or raises on each rank."""
    unique_id = unique_id or nccl.get_unique_id()
    results = [None] * count

    def run(rank):
        try:
            arrays = Arrays(rank)
            communicator = nccl.Communicator.init(count, rank, unique_id)
            try:
                results[rank] = function(communicator, arrays)
            finally:
                communicator.destroy()
        except Exception as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "a rank hangs"
    return results


def good(results):
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def failed(results, *texts):
    """All ranks have the same reason, which contains the texts."""
    reasons = {str(result).split(": ", 1)[1] for result in results if isinstance(result, nccl.NCCLError)}
    assert len(reasons) == 1, results
    assert all(isinstance(result, nccl.NCCLError) for result in results), results
    for text in texts:
        assert text in reasons.copy().pop()


@pytest.fixture
def short_timeout(monkeypatch):
    monkeypatch.setattr(nccl, "TIMEOUT", SHORT)


def test_names_and_parameters_are_those_of_nccl4py():
    peer = pytest.importorskip("nccl.core", reason="needs nccl4py")
    # nccl4py has NCCLError in nccl.bindings, and no time limit.
    assert {name for name in vars(nccl) if name in dir(peer)} >= {
        *("Communicator", "NcclInvalid", "NcclRedOp", "UniqueId", "get_unique_id", "group", "group_start", "group_end"),
    }
    for name in ("SUM", "PROD", "MAX", "MIN"):
        assert getattr(nccl, name) == getattr(peer, name)
    compared = 0
    for mine, theirs in ((nccl, peer), (nccl.Communicator, peer.Communicator), (nccl.UniqueId, peer.UniqueId)):
        for name, function in vars(mine).items():
            function = getattr(function, "__func__", function)
            # UniqueId(data) and Communicator(...) are internal on both sides.
            if name.startswith("_") or not inspect.isfunction(function) or not hasattr(theirs, name):
                continue
            there = inspect.getattr_static(theirs, name)
            there = inspect.signature(getattr(there, "__func__", there)).parameters
            found = inspect.signature(function).parameters
            shape = {key: (value.kind, value.default) for key, value in found.items()}
            assert shape == {key: (there[key].kind, there[key].default) for key in shape}, name
            positional = [key for key, value in there.items() if value.kind is value.POSITIONAL_OR_KEYWORD]
            assert [key for key in shape if key in positional] == positional[
                : len([k for k in shape if k in positional])
            ]
            compared += 1
    assert compared >= 13


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "u8", "f2", "f4", "f8"])
@pytest.mark.parametrize("name, reduce", [("SUM", np.sum), ("PROD", np.prod), ("MIN", np.min), ("MAX", np.max)])
def test_allreduce_equals_numpy(dtype, name, reduce):
    parts = np.random.default_rng(1).integers(1, 5, (3, 17)).astype(dtype)

    def work(communicator, arrays):
        mine, result = arrays.put(parts[communicator.rank]), arrays.put(np.zeros(17, dtype))
        communicator.allreduce(mine, result, getattr(nccl, name), stream=arrays.stream)
        assert np.array_equal(arrays.get(mine), parts[communicator.rank])
        return arrays.get(result)

    for found in good(in_threads(3, work)):
        assert np.array_equal(
            found, reduce(parts, axis=0, dtype=dtype) if name in ("SUM", "PROD") else reduce(parts, 0)
        )


@pytest.mark.parametrize("count", [1, 2, 5])
def test_allreduce_in_place_on_so_many_ranks(count):
    def work(communicator, arrays):
        view = arrays.put(np.arange(6.0).reshape(2, 3) + communicator.rank)
        communicator.allreduce(view, view, nccl.SUM, stream=arrays.stream)
        return arrays.get(view)

    wanted = sum(np.arange(6.0).reshape(2, 3) + rank for rank in range(count))
    assert all(np.array_equal(found, wanted) for found in good(in_threads(count, work)))


def test_large_arrays_are_reduced():
    def work(communicator, arrays):
        view = arrays.put(np.full(3_000_000, communicator.rank + 1, np.int32))
        communicator.allreduce(view, view, nccl.PROD, stream=arrays.stream)
        return (arrays.get(view) == 6).all()

    assert all(good(in_threads(3, work)))


@pytest.mark.parametrize("root", [0, 2])
def test_broadcast_ignores_what_other_ranks_send(root):
    def work(communicator, arrays):
        target = arrays.put(np.full(5, -1))
        source = arrays.put(np.arange(5) + 10 * communicator.rank) if communicator.rank == root else None
        communicator.broadcast(source, target, root, stream=arrays.stream)
        return arrays.get(target)

    assert all(np.array_equal(found, np.arange(5) + 10 * root) for found in good(in_threads(3, work)))


def test_group_exchanges_in_a_ring():
    def work(communicator, arrays):
        rank, count = communicator.rank, communicator.nranks
        mine, left, right = (arrays.put(np.full(4, rank)) for _ in range(3))
        for _ in range(2):
            with nccl.group():
                communicator.send(mine, (rank + 1) % count, stream=arrays.stream)
                communicator.send(mine, (rank - 1) % count, stream=arrays.stream)
                communicator.recv(left, (rank - 1) % count, stream=arrays.stream)
                communicator.recv(right, (rank + 1) % count, stream=arrays.stream)
        return arrays.get(left)[0], arrays.get(right)[0]

    assert good(in_threads(4, work)) == [((r - 1) % 4, (r + 1) % 4) for r in range(4)]


def test_messages_between_two_ranks_keep_their_order():
    def work(communicator, arrays):
        views = [arrays.put(np.full(2, n if communicator.rank == 0 else -1)) for n in range(3)]
        if communicator.rank == 0:
            for view in views:
                communicator.send(view, 1, stream=arrays.stream)
        elif communicator.rank == 1:
            with nccl.group():
                for view in views:
                    communicator.recv(view, 0, stream=arrays.stream)
        # Rank 2 takes part in no message, and its collective operations still match.
        communicator.allreduce(views[0], views[0], nccl.MAX, stream=arrays.stream)
        return [arrays.get(view)[0] for view in views[1:]]

    assert good(in_threads(3, work))[1] == [1, 2]


def test_rank_sends_to_itself_in_a_group():
    def work(communicator, arrays):
        source, target = arrays.put(np.arange(3)), arrays.put(np.zeros(3, int))
        with nccl.group():
            communicator.recv(target, 0, stream=arrays.stream)
            communicator.send(source, 0, stream=arrays.stream)
        return arrays.get(target)

    assert np.array_equal(good(in_threads(1, work))[0], np.arange(3))


def test_buffer_is_bytes():
    def work(communicator, arrays):
        view = arrays.put(np.array([100, 100], np.int8))
        communicator.allreduce(view.exporting_obj, view.exporting_obj, nccl.SUM, stream=arrays.stream)
        return arrays.get(view)

    assert all(found.tolist() == [-56, -56] for found in good(in_threads(2, work)))


def test_empty_arrays_are_no_error():
    def work(communicator, arrays):
        buffer = arrays.device.allocate(8, stream=arrays.stream)
        view = StridedMemoryView.from_buffer(buffer, (0,), dtype=np.float32)
        communicator.allreduce(view, view, nccl.SUM, stream=arrays.stream)
        communicator.broadcast(view, view, 0, stream=arrays.stream)
        return True

    assert all(good(in_threads(2, work)))


def test_calls_are_ordered_with_kernels_of_the_stream():
    source = r"""
    extern "C" __global__ void slow(long long *n) { for (int i = 0; i < 100000; i++) ((volatile long long *)n)[0] += 1; }
    extern "C" __global__ void twice(long long *n) { n[0] *= 2; }
    """

    def work(communicator, arrays):
        code = Program(source, "c++").compile("cubin")
        view = arrays.put(np.zeros(1, np.int64))
        config = LaunchConfig(grid=1, block=1)
        launch(arrays.stream, config, code.get_kernel("slow"), view.exporting_obj)
        communicator.allreduce(view, view, nccl.SUM, stream=arrays.stream)
        launch(arrays.stream, config, code.get_kernel("twice"), view.exporting_obj)
        return arrays.get(view)[0]

    assert good(in_threads(2, work)) == [400_000] * 2


@pytest.mark.parametrize("kind", ["none", "handle", "protocol"])
def test_streams_of_all_kinds(kind):
    class Foreign:
        def __init__(self, stream):
            self.stream = stream

        def __cuda_stream__(self):
            return self.stream.__cuda_stream__()

    def work(communicator, arrays):
        view = arrays.put(np.ones(3))
        streams = {"none": None, "handle": int(arrays.stream.handle), "protocol": Foreign(arrays.stream)}
        arrays.stream.sync()
        communicator.allreduce(view, view, nccl.SUM, stream=streams[kind])
        arrays.device.sync()
        return arrays.get(view)

    assert all(np.array_equal(found, np.full(3, 2.0)) for found in good(in_threads(2, work)))


def test_one_thread_drives_all_devices():
    numbers = [0, 0, 0] if len(Device.get_all_devices()) < 3 else [0, 1, 2]
    arrays = [Arrays(number) for number in numbers]
    device_of(0)
    views = [part.put(np.arange(4) + rank) for rank, part in enumerate(arrays)]
    communicators = nccl.Communicator.init_all(numbers)
    assert [c.rank for c in communicators] == [0, 1, 2] and [c.device.device_id for c in communicators] == numbers
    with nccl.group():
        for communicator, part, view in zip(communicators, arrays, views, strict=True):
            communicator.allreduce(view, view, nccl.SUM, stream=part.stream)
    assert Device().device_id == 0, "the current device changed"
    for part, view in zip(arrays, views, strict=True):
        part.device.set_current()
        assert np.array_equal(part.get(view), 3 * np.arange(4) + 3)
    for communicator in communicators:
        communicator.destroy()


SEVERAL_DEVICES = """
import numpy as np
import cupyrite.nccl_double as nccl
from cuda.core import Device

devices = Device.get_all_devices()
Device(1).set_current()
buffers = []
for device in devices:
    device.set_current()
    buffers.append(device.allocate(8, stream=device.default_stream))
    buffers[-1].copy_from(np.full(8, device.device_id + 1, np.int8), stream=device.default_stream)
    device.sync()
Device(1).set_current()
communicators = nccl.Communicator.init_all()
with nccl.group():
    for communicator, buffer in zip(communicators, buffers, strict=True):
        communicator.allreduce(buffer, buffer, nccl.SUM)
assert Device().device_id == 1, Device()
try:
    communicators[0].send(buffers[1], 0)
except nccl.NcclInvalid as error:
    assert "sendbuf is not on device 0" in str(error), error
else:
    raise AssertionError("a buffer of another device was accepted")
for device, buffer in zip(devices, buffers, strict=True):
    device.set_current()
    result = buffer.copy_to(np.empty(8, np.int8), stream=device.default_stream)
    device.sync()
    assert (result == 6).all(), result
print("right")
"""


@pytest.mark.cpu
def test_default_streams_and_current_device_of_several_devices():
    environment = dict(os.environ, CUPYRITE_CPU_DEVICES="3")
    command = [sys.executable, "-c", SEVERAL_DEVICES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "right\n", done.stdout + done.stderr


def test_call_that_all_ranks_made_succeeds_although_the_next_one_fails():
    wait = nccl._Hub.wait
    made = threading.Event()

    def late(hub, rank, call, *more):
        if rank == 1 and call.name == "allreduce":
            # The condition is released: rank 0 goes on, and fails before rank 1 looks at its own call.
            hub.changed.wait_for(lambda: hub.failure, 10)
            made.set()
        return wait(hub, rank, call, *more)

    def work(communicator, arrays):
        view = arrays.put(np.ones(3))
        communicator.allreduce(view, view, nccl.SUM, stream=arrays.stream)
        if communicator.rank == 0:
            communicator.broadcast(view, view, 0, stream=arrays.stream)
        return arrays.get(view)[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nccl, "TIMEOUT", SHORT)
        patch.setattr(nccl._Hub, "wait", late)
        first, second = in_threads(2, work)
    assert isinstance(first, nccl.NCCLError) and second == 2 and made.is_set(), (first, second)


def test_unique_id_is_copied_as_bytes_and_pickle():
    unique_id = nccl.get_unique_id()
    assert len(bytes(unique_id)) == 128 and bytes(nccl.get_unique_id(empty=True)) == bytes(128)
    for copy in (nccl.UniqueId.from_bytes(unique_id.as_bytes), pickle.loads(pickle.dumps(unique_id))):
        assert bytes(copy) == bytes(unique_id)
    assert in_threads(2, lambda c, _: c.nranks, nccl.UniqueId.from_bytes(bytes(unique_id))) == [2, 2]


@pytest.mark.parametrize(
    "send, received, expected",
    [
        (np.zeros(4), np.zeros(3), "recvbuf has 3 float64, the other buffer has 4 float64"),
        (np.zeros(4), np.zeros(4, np.float32), "recvbuf has 4 float32, the other buffer has 4 float64"),
        (np.zeros(4, np.int16), np.zeros(4, np.int16), "sendbuf: NCCL has no type int16"),
    ],
)
def test_invalid_buffers_are_refused(send, received, expected):
    def work(communicator, arrays):
        communicator.allreduce(arrays.put(send), arrays.put(received), nccl.SUM, stream=arrays.stream)

    (error,) = in_threads(1, work)
    assert isinstance(error, nccl.NcclInvalid) and expected in str(error)


def test_strided_array_is_refused():
    def work(communicator, arrays):
        buffer = arrays.put(np.zeros((4, 4))).exporting_obj
        view = StridedMemoryView.from_buffer(buffer, (2, 2), strides=(4, 1), dtype=np.float64)
        communicator.allreduce(view, view, nccl.SUM, stream=arrays.stream)

    (error,) = in_threads(1, work)
    assert isinstance(error, nccl.NcclInvalid) and "strides (4, 1)" in str(error)


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda c, v, s: c.broadcast(v, v, 1, stream=s), "root 1: expected 0 to 0"),
        (lambda c, v, s: c.send(v, -1, stream=s), "peer -1: expected 0 to 0"),
        (lambda c, v, s: c.allreduce(v, v, 4, stream=s), "op 4: the test double has SUM, PROD, MAX and MIN"),
        (lambda c, v, s: c.allreduce(np.zeros(3), v, nccl.SUM, stream=s), "sendbuf is not on device 0"),
        (lambda c, v, s: (c.destroy(), c.send(v, 0, stream=s)), "Communicator is destroyed"),
    ],
)
def test_invalid_arguments_are_refused(call, expected):
    (error,) = in_threads(1, lambda c, arrays: call(c, arrays.put(np.zeros(3)), arrays.stream))
    assert isinstance(error, nccl.NcclInvalid) and expected in str(error), repr(error)


@pytest.mark.parametrize(
    "values, expected",
    [
        ([np.zeros(4), np.zeros(5)], ("4 float64 with SUM on rank 0", "5 float64 with SUM on rank 1")),
        ([np.zeros(4), np.zeros(4, np.float32)], ("4 float64 with SUM on rank 0", "4 float32 with SUM on rank 1")),
    ],
)
def test_allreduce_of_different_arrays_fails_on_all_ranks(values, expected):
    def work(communicator, arrays):
        view = arrays.put(values[communicator.rank])
        communicator.allreduce(view, view, nccl.SUM, stream=arrays.stream)

    failed(in_threads(2, work), "calls differ", *expected)


def test_different_calls_fail_before_a_third_rank_makes_its_call():
    two = threading.Semaphore(0)

    def work(communicator, arrays):
        view = arrays.put(np.zeros(2))
        try:
            if communicator.rank == 1:
                communicator.broadcast(view, view, 0, stream=arrays.stream)
            else:
                if communicator.rank == 2:
                    assert two.acquire(timeout=10) and two.acquire(timeout=10)
                communicator.allreduce(view, view, nccl.MAX, stream=arrays.stream)
        finally:
            two.release()

    failed(in_threads(3, work), "calls differ", "allreduce of 2 float64 with MAX", "broadcast of 2 float64 from root 0")


def test_failure_of_one_communicator_leaves_another_of_the_group_usable(short_timeout):
    ids = [nccl.get_unique_id() for _ in range(2)]
    arrays = Arrays(0)
    whole = nccl.Communicator.init(1, 0, ids[1])
    view = arrays.put(np.ones(3))

    def other(communicator, _):
        time.sleep(2 * SHORT)

    def work(communicator, _):
        # Rank 1 makes no call.
        with nccl.group():
            communicator.allreduce(view, view, nccl.SUM, stream=arrays.stream)
            whole.allreduce(view, view, nccl.SUM, stream=arrays.stream)

    failed(in_threads(2, lambda c, a: (work, other)[c.rank](c, a), ids[0])[:1], "no matching call of rank 1")
    # An answer that was left unread would answer this call.
    target = arrays.put(np.zeros(5))
    whole.broadcast(arrays.put(np.arange(5.0)), target, 0, stream=arrays.stream)
    assert np.array_equal(arrays.get(target), np.arange(5.0))
    whole.destroy()


def test_message_of_another_size_fails_on_both_ranks():
    def work(communicator, arrays):
        if communicator.rank == 0:
            communicator.send(arrays.put(np.zeros(4)), 1, stream=arrays.stream)
        else:
            communicator.recv(arrays.put(np.zeros(3)), 0, stream=arrays.stream)

    failed(in_threads(2, work), "send of 4 float64 on rank 0 to rank 1", "recv of 3 float64 on rank 1 from rank 0")


def test_ranks_that_both_send_first_fail_instead_of_waiting(short_timeout):
    def work(communicator, arrays):
        other = 1 - communicator.rank
        communicator.send(arrays.put(np.zeros(4)), other, stream=arrays.stream)
        communicator.recv(arrays.put(np.zeros(4)), other, stream=arrays.stream)

    failed(in_threads(2, work), "send of 4 float64", f"within {SHORT} s")


def test_call_without_the_others_fails_and_so_do_later_ones(short_timeout):
    def work(communicator, arrays):
        view = arrays.put(np.zeros(4))
        if communicator.rank == 1:
            time.sleep(2 * SHORT)
        communicator.allreduce(view, view, nccl.SUM, stream=arrays.stream)

    failed(
        in_threads(2, work), f"allreduce of 4 float64 with SUM on rank 0: no matching call of rank 1 within {SHORT} s"
    )


def test_init_without_a_rank_fails(short_timeout):
    with pytest.raises(nccl.NCCLError, match=r"init of 2 ranks on rank 0: no matching call of rank 1 within"):
        nccl.Communicator.init(2, 0, nccl.get_unique_id())


def test_init_with_different_numbers_of_ranks_fails():
    unique_id, errors = nccl.get_unique_id(), []

    def run(rank, count):
        try:
            nccl.Communicator.init(count, rank, unique_id)
        except nccl.NCCLError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=run, args=arguments) for arguments in ((0, 2), (1, 3))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(errors) == 2 and all("2 ranks" in e and "3 ranks" in e for e in errors), errors


def test_init_of_a_rank_twice_fails():
    unique_id, errors = nccl.get_unique_id(), []

    def run():
        try:
            nccl.Communicator.init(2, 1, unique_id)
        except nccl.NCCLError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(errors) == 2 and all("two communicators have rank 1" in e for e in errors), errors


def test_rank_that_destroyed_its_communicator_fails_the_others_at_once():
    def work(communicator, arrays):
        view = arrays.put(np.zeros(4))
        communicator.allreduce(view, view, nccl.SUM, stream=arrays.stream)
        if communicator.rank == 1:
            return None
        communicator.allreduce(view, view, nccl.SUM, stream=arrays.stream)

    start = time.monotonic()
    results = in_threads(3, work)
    assert results[1] is None and time.monotonic() - start < 10
    failed([results[0], results[2]], "rank 1 left")


def test_random_bytes_are_no_unique_id():
    real = bytes(nccl.get_unique_id())
    other = nccl.UniqueId(bytes(16) + real[16:])
    for stranger in (other, nccl.UniqueId()):
        with pytest.raises(nccl.NCCLError, match="nothing answers to the unique id"):
            nccl.Communicator.init(1, 0, stranger)
    # The stranger does not disturb the ranks.
    assert in_threads(2, lambda c, _: c.nranks, nccl.UniqueId(real)) == [2, 2]


def test_unique_id_serves_one_communicator():
    unique_id = nccl.get_unique_id()
    good(in_threads(1, lambda c, _: True, unique_id))
    with pytest.raises(nccl.NCCLError, match="all its ranks exist"):
        nccl.Communicator.init(1, 0, unique_id)


def process(rank, ranks, unique_id, crash, results):
    """A rank in a process of its own."""
    arrays = Arrays(rank)
    communicator = nccl.Communicator.init(ranks, rank, nccl.UniqueId.from_bytes(unique_id))
    view = arrays.put(np.arange(1000) * (rank + 1))
    try:
        communicator.allreduce(view, view, nccl.SUM, stream=arrays.stream)
        results.put((rank, arrays.get(view).tolist()))
        if crash and rank == 1:
            results.close()
            results.join_thread()
            signal.raise_signal(signal.SIGKILL)
        communicator.allreduce(view, view, nccl.SUM, stream=arrays.stream)
        results.put((rank, "again"))
    except nccl.NCCLError as error:
        results.put((rank, str(error)))


@pytest.mark.parametrize("crash", [False, True])
def test_ranks_in_processes(crash):
    context = multiprocessing.get_context("spawn")
    results, unique_id = context.Queue(), bytes(nccl.get_unique_id())
    ranks = [context.Process(target=process, args=(n, 3, unique_id, crash, results), daemon=True) for n in range(3)]
    for rank in ranks:
        rank.start()
    try:
        count = 5 if crash else 6
        found = [results.get(timeout=40) for _ in range(count)]
    finally:
        for rank in ranks:
            rank.join(10)
            rank.kill()
    sums = [value for _, value in found if isinstance(value, list)]
    assert sums == [(6 * np.arange(1000)).tolist()] * 3
    others = sorted((rank, value) for rank, value in found if isinstance(value, str))
    if crash:
        assert [rank for rank, _ in others] == [0, 2] and all("rank 1 left" in value for _, value in others), others
    else:
        assert others == [(0, "again"), (1, "again"), (2, "again")]
    assert [rank.exitcode for rank in ranks] == ([0, -signal.SIGKILL, 0] if crash else [0, 0, 0])


def first_process(connection):
    """Rank 0, whose process makes the unique id and ends as soon as it has its result, before rank 1 has it."""
    answer = nccl._Hub.answer

    def late(hub, rank, *more):
        result = answer(hub, rank, *more)
        time.sleep(rank)
        return result

    nccl._Hub.answer = late
    unique_id = nccl.get_unique_id()
    connection.send(bytes(unique_id))
    arrays = Arrays(0)
    communicator = nccl.Communicator.init(2, 0, unique_id)
    view = arrays.put(np.ones(2_000_000))
    communicator.allreduce(view, view, nccl.SUM, stream=arrays.stream)


def test_process_of_the_unique_id_ends_after_all_have_their_results():
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    first = context.Process(target=first_process, args=(theirs,), daemon=True)
    first.start()
    assert mine.poll(30)
    arrays = Arrays(0)
    communicator = nccl.Communicator.init(2, 1, nccl.UniqueId.from_bytes(mine.recv()))
    view = arrays.put(np.ones(2_000_000))
    communicator.allreduce(view, view, nccl.SUM, stream=arrays.stream)
    assert (arrays.get(view) == 2).all()
    with pytest.raises(nccl.NCCLError, match="rank 0 left|the process that made the unique id has ended"):
        communicator.allreduce(view, view, nccl.SUM, stream=arrays.stream)
    communicator.destroy()
    first.join(10)
    assert first.exitcode == 0
