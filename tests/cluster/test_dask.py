"""Results of Dask's tasks in device memory, with real workers: on one GPU, or on two CPU devices."""

import copyreg
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.reduction import ForkingPickler
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("distributed")

from cuda.core import Buffer, Device, DeviceMemoryResource, LaunchConfig, ManagedBuffer, Program, launch
from cuda.core.utils import FileStreamProgramCache, StridedMemoryView
from cupyrite.dask import DevicePlugin
from cupyrite.dask.store import DeviceStore
from dask.base import tokenize
from dask.sizeof import sizeof
from distributed import Client, KilledWorker, LocalCluster, Status, wait

from helpers.device import on_cpu_device

pytestmark = pytest.mark.timeout(120)

SOURCE = 'extern "C" __global__ void fill(unsigned char *x, int n) { for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = i; }'
#: More than the least size that is sent by IPC.
LARGE = 1 << 20


def cluster(workers, **settings):
    """A cluster of processes; on CPU devices, with two devices."""
    if on_cpu_device():
        os.environ["CUPYRITE_CPU_DEVICES"] = "2"
    settings = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50, **settings}
    return LocalCluster(n_workers=workers, **settings)


@pytest.fixture(scope="module", autouse=True)
def _process():
    """Restores the environment and what pickles do."""
    before = os.environ.get("CUPYRITE_CPU_DEVICES")
    yield
    for memory_type in (Buffer, ManagedBuffer, StridedMemoryView):
        copyreg.dispatch_table.pop(memory_type, None)
        ForkingPickler._extra_reducers.pop(memory_type, None)
    if before is None:
        os.environ.pop("CUPYRITE_CPU_DEVICES", None)
    else:
        os.environ["CUPYRITE_CPU_DEVICES"] = before


def plugin(**settings):
    """A plugin for two workers: one GPU is shared, of two CPU devices each has one."""
    return DevicePlugin(**{"workers_per_device": 1 if on_cpu_device() else 2, **settings})


@pytest.fixture(scope="module")
def kernel():
    device = Device()
    device.set_current()
    return Program(SOURCE, "c++").compile("cubin").get_kernel("fill")


@pytest.fixture(scope="module")
def client(kernel):
    """A client of two workers with devices and a limit of device memory."""
    with cluster(2) as workers, Client(workers) as client:
        client.register_plugin(plugin(device_memory_limit=4 * LARGE, warm=[kernel]))
        yield client


def make(kernel, size, number=0):
    """A buffer of `size` bytes: 0, 1, 2 ... modulo 256."""
    device = Device()
    stream = device.create_stream()
    buffer = device.allocate(size, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=128), kernel, buffer, np.int32(size))
    stream.sync()
    return buffer


def wanted(size):
    return np.arange(size, dtype=np.uint64).astype(np.uint8)


def host(memory):
    """The bytes of a buffer."""
    if isinstance(memory, StridedMemoryView):
        memory = memory.exporting_obj
    stream = Device().create_stream()
    result = np.empty(memory.size, np.uint8)
    memory.copy_to(result, stream=stream)
    stream.sync()
    return result


def received():
    """How many buffers this worker received by IPC."""
    from cupyrite.dask import serializers

    return serializers.receiver().count


def visible_devices():
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0,1")


def addresses(client):
    return list(client.scheduler_info()["workers"])


class Holder:
    """An object that contains a buffer."""

    def __init__(self, buffer):
        self.buffer = buffer


# Devices.


@pytest.mark.cpu
def test_each_worker_has_a_device_of_its_own(client):
    assert sorted(client.run(visible_devices).values()) == ["0,1", "1,0"]


def test_a_worker_that_replaces_a_dead_one_gets_its_device(kernel):
    with cluster(2) as workers, Client(workers) as client:
        client.register_plugin(plugin(warm=[kernel]))
        blocks = [client.submit(make, kernel, LARGE, n, key=f"block-{n}") for n in range(8)]
        wait(blocks)
        pids = client.run(os.getpid)
        victim = next(address for address, keys in client.has_what().items() if keys)
        os.kill(pids[victim], signal.SIGKILL)
        # The results are computed again.
        assert all(np.array_equal(host(block), wanted(LARGE)) for block in client.gather(blocks))
        deadline = time.monotonic() + 60
        while len(client.run(os.getpid)) < 2 or pids[victim] in client.run(os.getpid).values():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        if on_cpu_device():
            assert sorted(client.run(visible_devices).values()) == ["0,1", "1,0"]
        assert np.array_equal(host(client.submit(make, kernel, 10).result()), wanted(10))


def test_a_task_that_always_kills_its_worker_fails(client):
    with pytest.raises(KilledWorker):
        client.submit(lambda: os.kill(os.getpid(), signal.SIGKILL)).result(timeout=60)
    client.wait_for_workers(2, timeout=60)


def test_more_workers_than_devices_are_refused():
    with cluster(3) as workers, Client(workers) as client:
        count = 2 if on_cpu_device() else len(Device.get_all_devices())
        with pytest.raises(RuntimeError, match=r"worker \d has no device: other workers have all"):
            client.register_plugin(DevicePlugin(devices=list(range(min(count, 2)))))


def test_a_device_that_is_not_there_is_refused():
    missing = pytest.raises(RuntimeError, match="devices: worker 0 has no device 15, only")
    with cluster(1) as workers, Client(workers) as client, missing:
        client.register_plugin(DevicePlugin(devices=[15]))


@pytest.mark.cpu
def test_a_process_that_used_cuda_cannot_change_its_device(kernel):
    with cluster(2) as workers, Client(workers) as client:
        client.run(lambda: Device().sync())
        with pytest.raises(RuntimeError, match="used CUDA before the plugin was registered"):
            client.register_plugin(plugin())


ONE_PROCESS = """
from cupyrite.dask import DevicePlugin
from distributed import Client, LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, processes=False, dashboard_address=None) as workers, Client(workers) as client:
        try:
            client.register_plugin(DevicePlugin(ipc=False))
        except RuntimeError as error:
            print(error)
"""


@pytest.mark.cpu
def test_workers_of_one_process_cannot_have_different_devices():
    environment = dict(os.environ, CUPYRITE_CPU_DEVICES="2")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ONE_PROCESS], env=environment, capture_output=True, text=True, timeout=60
    )
    assert "in a process of its own: LocalCluster(processes=True)" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"workers_per_device": 0}, "workers_per_device is 0"),
        ({"devices": []}, "at least one"),
        ({"devices": [0, 0]}, "different numbers"),
        ({"devices": [-1]}, "from 0"),
        ({"device_memory_limit": "much"}, "device_memory_limit is 'much'"),
        ({"device_memory_limit": 0}, "device_memory_limit is 0"),
        ({"device_memory_limit": -0.5}, "device_memory_limit is -0.5"),
    ],
)
def test_wrong_arguments_are_refused_by_the_client(wrong, message):
    with pytest.raises(ValueError, match=message):
        DevicePlugin(**wrong)


# Transfers.


def test_device_memory_moves_between_workers_by_ipc(client, kernel):
    first, second = addresses(client)
    before = client.run(received)
    block = client.submit(make, kernel, LARGE, key="moved", workers=[first])
    assert np.array_equal(client.submit(host, block, workers=[second]).result(), wanted(LARGE))
    after = client.run(received)
    assert after[second] - before[second] == 1 and after[first] == before[first]


def test_small_memory_moves_through_the_host(client, kernel):
    first, second = addresses(client)
    before = client.run(received)
    block = client.submit(make, kernel, 100, key="small", workers=[first])
    assert np.array_equal(client.submit(host, block, workers=[second]).result(), wanted(100))
    assert client.run(received) == before


def test_views_move_with_their_shape(client, kernel):
    def view(buffer):
        return StridedMemoryView.from_buffer(buffer, (LARGE // 8, 2), (1, LARGE // 8), dtype=np.float32)

    def describe(view):
        return view.shape, view.strides, view.dtype.str, host(view)

    first, second = addresses(client)
    block = client.submit(make, kernel, LARGE, key="matrix", workers=[first])
    matrix = client.submit(view, block, workers=[first])
    shape, strides, dtype, data = client.submit(describe, matrix, workers=[second]).result()
    assert (shape, strides, dtype) == ((LARGE // 8, 2), (1, LARGE // 8), "<f4")
    assert np.array_equal(data, wanted(LARGE))


@pytest.mark.parametrize("wrap", [list, tuple, dict, Holder], ids=lambda kind: kind.__name__)
def test_memory_inside_of_other_objects_moves(wrap, client, kernel):
    def put(kernel, size):
        buffer = make(kernel, size)
        return {"x": buffer} if wrap is dict else Holder(buffer) if wrap is Holder else wrap([buffer])

    def take(value):
        buffer = value["x"] if wrap is dict else value.buffer if wrap is Holder else value[0]
        return host(buffer)

    first, second = addresses(client)
    value = client.submit(put, kernel, LARGE, workers=[first])
    assert np.array_equal(client.submit(take, value, workers=[second]).result(), wanted(LARGE))
    arrived = value.result()
    assert np.array_equal(take(arrived), wanted(LARGE))


@pytest.mark.parametrize("direct", [True, False])
def test_clients_scatter_and_gather(direct, client, kernel):
    buffer = make(kernel, LARGE)
    future = client.scatter(buffer, direct=direct)
    assert np.array_equal(client.submit(host, future).result(), wanted(LARGE))
    (arrived,) = client.gather([future], direct=direct)
    assert isinstance(arrived, Buffer) and np.array_equal(host(arrived), wanted(LARGE))


def test_buffers_are_arguments(client, kernel):
    assert np.array_equal(client.submit(host, make(kernel, 1000)).result(), wanted(1000))


@pytest.mark.parametrize("shared", [True, False])
def test_a_buffer_with_new_contents_is_a_new_argument(shared, client):
    device = Device()
    stream = device.create_stream()
    pool = DeviceMemoryResource(device, {"ipc_enabled": True}) if shared else device.memory_resource
    buffer = pool.allocate(10, stream=stream)
    for value in (1, 2):
        buffer.fill(value, stream=stream)
        stream.sync()
        assert client.submit(host, buffer).result().tolist() == [value] * 10
        assert tokenize(buffer) != tokenize(buffer)


def test_buffers_are_part_of_functions(client, kernel):
    buffer = make(kernel, 1000)
    tokenize(buffer)
    assert np.array_equal(client.submit(lambda: host(buffer)).result(), wanted(1000))


def test_pickles_in_workers_contain_the_bytes(client, kernel):
    def pickled(kernel):
        buffer = make(kernel, 100)
        return host(pickle.loads(pickle.dumps(buffer)))

    assert np.array_equal(client.submit(pickled, kernel).result(), wanted(100))


def test_workers_without_plugin_exchange_bytes(kernel):
    with cluster(2) as workers, Client(workers) as client:
        first, second = addresses(client)
        block = client.submit(make, kernel, LARGE, workers=[first])
        assert np.array_equal(client.submit(host, block, workers=[second]).result(), wanted(LARGE))
        assert np.array_equal(host(block.result()), wanted(LARGE))


def test_a_closed_buffer_is_one_error(client, kernel):
    def closed(kernel):
        buffer = make(kernel, 100)
        buffer.close()
        return buffer

    with pytest.raises(Exception, match=r"closed|serialize"):
        client.submit(closed, kernel).result(timeout=60)


# Device memory and spilling.


def limits(dask_worker):
    store = dask_worker.data
    return store.device_bytes, store.limit, len(store.device), store.spilled_count


def test_results_beyond_the_limit_wait_in_host_memory(client, kernel):
    blocks = [client.submit(make, kernel, LARGE, n, key=f"many-{n}") for n in range(24)]
    wait(blocks)
    for held, limit, count, _ in client.run(limits).values():
        assert held <= limit and count <= 4
    assert sum(spilled for *_, spilled in client.run(limits).values()) >= 24 - 8
    sums = client.gather([client.submit(lambda block: int(host(block).sum()), block) for block in blocks])
    assert set(sums) == {int(wanted(LARGE).sum())}


def test_results_are_written_to_disk_and_read_again(kernel):
    import dask

    # Host memory for 16 of the 40 results.
    settings = {"distributed.worker.memory.target": 0.02, "distributed.worker.memory.spill": False}
    with dask.config.set(settings), cluster(1, memory_limit="800 MiB") as workers, Client(workers) as client:
        client.register_plugin(DevicePlugin(device_memory_limit=4 * LARGE))
        blocks = [client.submit(make, kernel, LARGE, n, key=f"disk-{n}") for n in range(40)]
        wait(blocks)
        (on_disk,) = client.run(lambda dask_worker: len(dask_worker.data.disk)).values()
        assert on_disk >= 10
        assert all(np.array_equal(host(block.result()), wanted(LARGE)) for block in blocks)


class TestStore:
    """DeviceStore over a dictionary."""

    @pytest.fixture
    def store(self):
        return DeviceStore({}, 3000)

    def test_recently_used_values_stay(self, store, kernel):
        for key in "abc":
            store[key] = make(kernel, 1000)
        first = store["a"]
        store["d"] = make(kernel, 1000)
        assert list(store.device) == ["c", "a", "d"] and store["a"] is first
        assert set(store) == set("abcd") and len(store) == 4 and "b" in store
        assert store.device_bytes == 3000

    def test_a_value_that_is_used_elsewhere_is_not_copied_back(self, store, kernel):
        used = store["a"] = make(kernel, 3000)
        store["b"] = make(kernel, 1000)
        assert "a" not in store.device and store["a"] is used
        del used, store["a"]
        assert set(store) == {"b"}

    def test_values_come_back_with_their_bytes(self, store, kernel):
        for number in range(20):
            store[number] = [make(kernel, 1000), number]
        for number in range(20):
            buffer, same = store[number]
            assert same == number and np.array_equal(host(buffer), wanted(1000))
        assert store.device_bytes <= 3000

    def test_a_value_beyond_the_limit_goes_to_the_host(self, store, kernel):
        store["large"] = make(kernel, 5000)
        assert store.device_bytes == 0 and np.array_equal(host(store["large"]), wanted(5000))
        assert store.device_bytes == 0 and len(store) == 1

    def test_a_value_that_cannot_be_copied_stays_and_others_move(self, store, kernel, caplog):
        stays = store["stays"] = [make(kernel, 2000), threading.Lock()]
        for number in range(5):
            store[number] = make(kernel, 1000)
        assert store["stays"] is stays and set(store.device) == {"stays", 4}
        assert caplog.text.count("could not be copied to the host") == 1
        assert all(np.array_equal(host(store[number]), wanted(1000)) for number in range(5))

    def test_tasks_share_a_value_beyond_the_limit(self, store, kernel):
        store["large"] = make(kernel, 5000)
        assert store["large"] is not None
        first = store["large"]
        assert store["large"] is first

    def test_the_limit_changes(self, store, kernel):
        for key in "abc":
            store[key] = make(kernel, 1000)
        store.set_limit(1000)
        assert list(store.device) == ["c"]
        store.set_limit(None)
        assert all(np.array_equal(host(store[key]), wanted(1000)) for key in "abc") and len(store.device) == 3

    def test_values_are_replaced_and_deleted(self, store, kernel):
        store["a"] = make(kernel, 1000)
        store["a"] = 5
        assert store["a"] == 5 and store.device_bytes == 0
        store["a"] = make(kernel, 2000)
        store["b"] = make(kernel, 2000)
        del store["a"], store["b"]
        assert len(store) == 0 and store.device_bytes == 0
        with pytest.raises(KeyError):
            store["a"]
        with pytest.raises(KeyError):
            del store["a"]

    def test_it_takes_over_what_there_is(self, kernel):
        there = {"x": make(kernel, 1000), "y": 3}
        store = DeviceStore(there, 3000)
        assert list(store.device) == ["x"] and there == {"y": 3}


def test_sizes_include_device_memory(kernel):
    buffer = make(kernel, 5000)
    assert sizeof(buffer) == 5000 and sizeof([buffer, buffer]) > 10000
    assert sizeof(StridedMemoryView.from_buffer(buffer, (1250,), dtype=np.float32)) == 5000
    code = Program(SOURCE, "c++").compile("cubin")
    assert sizeof(code) > len(code.code)


def test_programs_are_compiled_before_the_first_task(tmp_path, kernel):
    cache = FileStreamProgramCache(tmp_path)
    with cluster(1) as workers, Client(workers) as client:
        client.register_plugin(DevicePlugin(warm=[Program(SOURCE, "c++")], cache=cache))
        assert len(cache) == 1

        def compile_again(source, path):
            cache = FileStreamProgramCache(path)
            Program(source, "c++").compile("cubin", cache=cache)
            return cache.hits, cache.misses

        assert client.submit(compile_again, SOURCE, str(tmp_path)).result() == (1, 0)


def test_what_cannot_be_loaded_is_refused():
    with pytest.raises(TypeError, match="warm contains a str; expected Kernel, ObjectCode or Program"):
        DevicePlugin(warm=["kernel"])
    with pytest.raises(ValueError, match="expected `cache` as well"):
        DevicePlugin(warm=[Program(SOURCE, "c++")])


def test_tasks_allocate_from_a_shareable_pool(client):
    assert client.submit(lambda: Device().memory_resource.is_ipc_enabled, pure=False).result()


def test_the_plugin_can_be_registered_again(kernel):
    def limit(dask_worker):
        return dask_worker.data.limit, type(dask_worker.data.host).__name__

    with cluster(1) as workers, Client(workers) as client:
        client.register_plugin(DevicePlugin(device_memory_limit=4 * LARGE))
        blocks = [client.submit(make, kernel, LARGE, n, key=f"again-{n}") for n in range(8)]
        wait(blocks)
        client.register_plugin(DevicePlugin(device_memory_limit=2 * LARGE))
        assert list(client.run(limit).values()) == [(2 * LARGE, "SpillBuffer")]
        assert all(np.array_equal(host(block.result()), wanted(LARGE)) for block in blocks)
        assert all(held <= 2 * LARGE for held, *_ in client.run(limits).values())


@pytest.mark.skipif(sys.platform != "linux", reason="needs abstract sockets")
def test_devices_are_claimed_by_their_names():
    worker = SimpleNamespace(name="w", scheduler=SimpleNamespace(address=f"tcp://test-{os.getpid()}"))
    first, second, third = (DevicePlugin() for _ in range(3))
    # Each process sees one device, as device 0; then one sees both in another order.
    assert first._claim_device(worker, ["0"], [0]) == 0
    assert second._claim_device(worker, ["1"], [0]) == 0
    with pytest.raises(RuntimeError, match="worker w has no device"):
        third._claim_device(worker, ["1", "0"], [0, 1])
    first._claim.close()
    assert third._claim_device(worker, ["1", "0"], [0, 1]) == 1


def test_a_worker_without_a_device_stops():
    with cluster(0) as workers, Client(workers) as client:
        client.register_plugin(DevicePlugin(devices=[15]))
        workers.scale(1)
        deadline = time.monotonic() + 60
        while not workers.workers or any(nanny.status != Status.closed for nanny in workers.workers.values()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert not addresses(client)
