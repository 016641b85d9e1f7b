"""`cuda.core` objects in Ray programs, with real workers: on three CPU devices, or on the GPUs of the machine."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

pytest.importorskip("ray")

import cupyrite.ray
import ray
from cuda.bindings import driver, runtime
from cuda.core import (
    Device,
    DeviceMemoryResource,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    Program,
    launch,
)
from cuda.core.utils import StridedMemoryView
from cupyrite.serialization import memory_type

from helpers.device import on_cpu_device

pytestmark = pytest.mark.timeout(180)

# Workers do not import this module.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])

DEVICES = 3
# Seconds; starting a worker takes one or two.
LONG = 60
SETTINGS = {"include_dashboard": False, "object_store_memory": 100 << 20, "logging_level": "ERROR"}
HOOK = {"worker_process_setup_hook": "cupyrite.ray.register"}
SOURCE = (
    'extern "C" __global__ void twice(int *x, int n) { for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] *= 2; }'
)


def get(reference):
    return ray.get(reference, timeout=LONG)


@pytest.fixture(scope="module")
def cluster():
    """Ray without ``cupyrite.ray.init()``: this process can have initialized CUDA with one CPU device. Returns its address."""
    patch = pytest.MonkeyPatch()
    patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    resources = {}
    if on_cpu_device():
        patch.setenv("CUPYRITE_CPU_DEVICES", str(DEVICES))
        patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        resources = {"num_gpus": DEVICES, "num_cpus": DEVICES + 2}
    context = ray.init("local", runtime_env=HOOK, **SETTINGS, **resources)
    cupyrite.ray.register()
    yield context.address_info["address"]
    ray.shutdown()
    patch.undo()


@ray.remote(num_gpus=1)
class Actor:
    def __init__(self, state=None):
        self.initialized = driver.cuDeviceGetCount()[0] != driver.CUresult.CUDA_ERROR_NOT_INITIALIZED
        self.device = cupyrite.ray.device()
        self.state = state

    def facts(self):
        """Whether CUDA was initialized before the constructor, the variable, the number of devices, the process."""
        return self.initialized, os.environ.get("CUDA_VISIBLE_DEVICES"), len(Device.get_all_devices()), os.getpid()

    def describe(self, memory):
        return describe(memory)

    def echo(self, value):
        return value

    def crash(self, marker):
        """The bytes of the state. The first call on a marker kills the process."""
        if not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return contents(ray.get(self.state[0])), os.getpid()

    def run(self, kernel, numbers):
        stream = self.device.create_stream()
        launch(stream, LaunchConfig(grid=1, block=32), kernel, numbers, np.int32(numbers.size // 4))
        stream.sync()
        return numbers


@pytest.fixture(scope="module")
def actor(cluster):
    return Actor.remote()


def contents(memory):
    """The elements of a view, or the bytes of a buffer."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    if isinstance(memory, StridedMemoryView):
        result = np.empty(memory.shape, memory.dtype)
        if result.size:
            memory.copy_to(StridedMemoryView.from_array_interface(result), stream)
    else:
        result = np.empty(memory.size, np.uint8)
        if memory.size:
            memory.copy_to(result, stream=stream)
    stream.sync()
    return result


def describe(memory):
    """Everything that must be the same in another process."""
    facts = {"class": type(memory), "memory": memory_type(memory), "bytes": contents(memory).tobytes()}
    if isinstance(memory, StridedMemoryView):
        layout = memory._layout
        facts.update(shape=memory.shape, dtype=memory.dtype, readonly=memory.readonly)
        facts.update(c=layout.is_contiguous_c, fortran=layout.is_contiguous_f)
    else:
        facts["size"] = memory.size
    return facts


@pytest.fixture(scope="module")
def device():
    device = Device()
    device.set_current()
    return device


def filled(device, array, resource=None):
    """A buffer with the bytes of an array."""
    stream = device.create_stream()
    buffer = (resource or device.memory_resource).allocate(array.nbytes, stream=stream)
    if array.nbytes:
        buffer.copy_from(np.ascontiguousarray(array).reshape(-1).view(np.uint8), stream=stream)
    stream.sync()
    return buffer


def numbers(*shape, dtype=np.int32):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


RESOURCES = {
    "device": lambda device: None,
    "shareable": lambda device: DeviceMemoryResource(device, {"ipc_enabled": True}),
    "pinned": lambda device: LegacyPinnedMemoryResource(),
    "managed": lambda device: ManagedMemoryResource(),
}


@pytest.mark.parametrize("size", [0, 1, 1000, 3 << 20])
@pytest.mark.parametrize("name", RESOURCES)
def test_buffers_arrive_and_return_in_memory_of_their_type(name, size, actor, device):
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    buffer = filled(device, data, RESOURCES[name](device))
    wanted = describe(buffer)
    assert wanted["bytes"] == data.tobytes()
    reference = ray.put(buffer)
    assert get(actor.describe.remote(reference)) == wanted
    assert describe(get(actor.echo.remote(reference))) == wanted


def view(device, shape, strides=None, dtype=np.float32, offset=0, **more):
    """A view of a buffer of 0, 1, 2 ..., from an element on."""
    dtype = np.dtype(dtype)
    data = np.arange(4096 // dtype.itemsize).astype(dtype) if dtype.names is None else np.arange(4096, dtype=np.uint8)
    buffer = filled(device, data)
    return StridedMemoryView.from_buffer(buffer[offset * dtype.itemsize :], shape, strides, dtype=dtype, **more)


VIEWS = {
    "C order": lambda device: view(device, (3, 4, 5)),
    "Fortran order": lambda device: view(device, (3, 4, 5), (1, 3, 12)),
    "every second column": lambda device: view(device, (4, 3), (8, 2)),
    "transposed slice": lambda device: view(device, (5, 2, 3), (1, 20, 5)),
    "of a slice": lambda device: view(device, (10,), offset=7),
    "one element": lambda device: view(device, ()),
    "no elements": lambda device: view(device, (3, 0, 2)),
    "read-only": lambda device: view(device, (6,), is_readonly=True),
    "complex": lambda device: view(device, (2, 2), dtype=np.complex128),
    "structured": lambda device: view(device, (5,), dtype=[("a", np.int8), ("b", np.float64)]),
    "pinned": lambda device: StridedMemoryView.from_buffer(
        filled(device, numbers(6, 4), LegacyPinnedMemoryResource()), (6, 2), (4, 1), dtype=np.int32
    ),
    "managed": lambda device: StridedMemoryView.from_buffer(
        filled(device, numbers(6, 4), ManagedMemoryResource()), (6, 4), dtype=np.int32
    ),
    "host": lambda device: StridedMemoryView.from_array_interface(numbers(4, 6)),
    "host, Fortran order": lambda device: StridedMemoryView.from_array_interface(numbers(6, 4).T),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_arrive_and_return_with_shape_type_and_order(name, actor, device):
    sent = VIEWS[name](device)
    wanted = describe(sent)
    # A view with gaps arrives packed, in C order.
    if not (wanted["c"] or wanted["fortran"]):
        wanted["c"] = True
    assert get(actor.describe.remote(sent)) == wanted
    assert describe(get(actor.echo.remote(sent))) == wanted


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_views_of_types_of_ml_dtypes_arrive(name, actor, device):
    dtype = getattr(pytest.importorskip("ml_dtypes"), name)
    sent = view(device, (4, 4), dtype=dtype)
    assert get(actor.describe.remote(sent)) == describe(sent)


def test_bytes_are_sent_out_of_band_and_page_locked_memory_is_not_copied_before(cluster, device):
    data = np.random.default_rng(0).integers(0, 256, 1 << 20, np.uint8)
    for name, resource in RESOURCES.items():
        buffer = filled(device, data, resource(device))
        frames = []
        in_band = ray.cloudpickle.dumps(buffer, protocol=5, buffer_callback=frames.append)
        assert len(in_band) < 1000 and [frame.raw().nbytes for frame in frames] == [data.nbytes]
        if name == "pinned":
            address = np.frombuffer(frames[0].raw(), np.uint8).ctypes.data
            assert address == int(buffer.handle), "page-locked memory was copied"


class Model:
    """An object of a program, with memory inside."""

    def __init__(self, weights, bias, name):
        self.layers = {"weights": [weights], "bias": (bias, None)}
        self.name = name


def test_memory_inside_of_objects_arrives(actor, device):
    weights, bias = view(device, (3, 5)), filled(device, numbers(7))
    arrived = get(actor.echo.remote(ray.put(Model(weights, bias, "one"))))
    assert type(arrived).__name__ == "Model" and arrived.name == "one" and arrived.layers["bias"][1] is None
    assert describe(arrived.layers["weights"][0]) == describe(weights)
    assert describe(arrived.layers["bias"][0]) == describe(bias)


def test_memory_captured_by_a_task_arrives(cluster, device):
    captured = filled(device, numbers(9))

    @ray.remote
    def task():
        return contents(captured)

    assert (get(task.remote()).view(np.int32) == numbers(9)).all()


def test_modules_of_bindings_are_globals_of_tasks(cluster):
    @ray.remote
    def task():
        return driver.CUDA_VERSION, runtime.cudaRuntimeGetVersion()[0], driver.CUresult.CUDA_ERROR_INVALID_VALUE

    version, status, constant = get(task.remote())
    assert (version, int(status), constant) == (driver.CUDA_VERSION, 0, driver.CUresult(1))


def test_an_object_store_reference_can_be_read_twice(actor, device):
    reference = ray.put(filled(device, numbers(50_000)))
    first, second = ray.get([reference, reference], timeout=LONG)
    first.fill(0, stream=(stream := device.create_stream()))
    stream.sync()
    assert (contents(second).view(np.int32) == numbers(50_000)).all()
    assert get(actor.describe.remote(reference))["bytes"] == numbers(50_000).tobytes()


def test_kernels_and_code_are_arguments_and_results(actor, device):
    code = Program(SOURCE, "c++").compile("cubin")
    for kernel in (code.get_kernel("twice"), get(actor.echo.remote(code)).get_kernel("twice")):
        result = get(actor.run.remote(kernel, filled(device, numbers(100))))
        assert (contents(result).view(np.int32) == 2 * numbers(100)).all()


def test_programs_are_arguments(actor, device):
    program = Program(SOURCE, "c++")
    kernel = get(actor.echo.remote(program)).compile("cubin").get_kernel("twice")
    result = get(actor.run.remote(kernel, filled(device, numbers(10))))
    assert (contents(result).view(np.int32) == 2 * numbers(10)).all()


def test_methods_of_an_async_actor_receive_and_send(cluster, device):
    @ray.remote(num_gpus=0)
    class Concurrent:
        async def echo(self, memory):
            return describe(memory), memory

    sent = view(device, (3, 4))
    actor = Concurrent.remote()
    for facts, memory in ray.get([actor.echo.remote(sent) for _ in range(4)], timeout=LONG):
        assert facts == describe(memory) == describe(sent)


def test_a_closed_buffer_is_refused(actor, device):
    buffer = filled(device, numbers(4))
    buffer.close()
    for send in (ray.put, actor.echo.remote):
        with pytest.raises(RuntimeError, match="Buffer was closed"):
            send(buffer)


def test_a_buffer_that_a_method_closed_is_refused(cluster, device):
    @ray.remote
    def task(buffer):
        buffer.close()
        return buffer

    with pytest.raises(RuntimeError, match="Buffer was closed"):
        get(task.remote(filled(device, numbers(4))))


def test_the_program_that_starts_ray_has_the_first_device(cluster, device):
    assert cupyrite.ray.device() == Device(0)


def test_a_task_without_a_device_is_refused(cluster):
    @ray.remote
    def task():
        return cupyrite.ray.device()

    with pytest.raises(RuntimeError, match=r"has no device: give it one with @ray.remote\(num_gpus=1\)"):
        get(task.remote())


def test_device_memory_does_not_arrive_where_all_devices_are_hidden(cluster, device):
    @ray.remote(runtime_env={"env_vars": {"CUDA_VISIBLE_DEVICES": ""}})
    class Hidden:
        def shape(self, view):
            return view.shape

    actor = Hidden.remote()
    with pytest.raises(Exception, match=r"has no device: give it one with @ray.remote\(num_gpus=1\)"):
        get(actor.shape.remote(view(device, (2, 3))))
    # Host memory arrives everywhere.
    assert get(actor.shape.remote(StridedMemoryView.from_array_interface(numbers(2, 3)))) == (2, 3)


@pytest.mark.cpu
def test_actors_have_a_device_each_and_one_too_many_waits(actor):
    others = [Actor.remote() for _ in range(DEVICES - 1)]
    facts = ray.get([each.facts.remote() for each in (actor, *others)], timeout=LONG)
    assert {initialized for initialized, *_ in facts} == {False}, "a worker initializes CUDA before it has a device"
    assert sorted(visible for _, visible, *_ in facts) == [str(number) for number in range(DEVICES)]
    assert {count for _, _, count, _ in facts} == {1}
    assert len({process for *_, process in facts}) == DEVICES
    assert ray.available_resources().get("GPU", 0) == 0
    late = Actor.remote()
    with pytest.raises(ray.exceptions.GetTimeoutError):
        ray.get(late.facts.remote(), timeout=1)
    # It starts when another ends.
    ray.kill(others.pop())
    assert get(late.facts.remote())[2] == 1
    for each in (late, *others):
        ray.kill(each)


@pytest.fixture
def another_device(cluster, actor):
    """Skips a test of an actor beside the one that all tests share."""
    if ray.cluster_resources().get("GPU", 0) < 2:
        pytest.skip("needs two devices")


def test_an_actor_that_is_killed_starts_again_with_its_state_and_repeats_the_task(another_device, device, tmp_path):
    state = ray.put(filled(device, numbers(1000)))
    actor = Actor.options(max_restarts=1, max_task_retries=1).remote([state])
    before = get(actor.facts.remote())[-1]
    result, after = get(actor.crash.remote(str(tmp_path / "crashed")))
    assert (result.view(np.int32) == numbers(1000)).all() and after != before
    ray.kill(actor)


def test_an_actor_that_is_killed_without_restarts_is_an_error(another_device, tmp_path):
    actor = Actor.remote()
    with pytest.raises(ray.exceptions.ActorDiedError):
        get(actor.crash.remote(str(tmp_path / "crashed")))


@pytest.fixture
def worker(monkeypatch):
    """This process as a worker to which Ray assigned devices, without Ray."""

    def assign(*names, visible=None):
        monkeypatch.setattr(cupyrite.ray, "_assigned", lambda: list(names))
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(names) if visible is None else visible)

    monkeypatch.setattr(cupyrite.ray, "_in_worker", lambda: True)
    monkeypatch.setattr(cupyrite.ray, "_first_assigned", None)
    return assign


def test_a_process_that_ray_reuses_with_another_device_is_refused(worker, device):
    worker("1")
    cupyrite.ray.device()
    cupyrite.ray.device()
    worker("2")
    with pytest.raises(RuntimeError, match=r"assigned device 2, but this process has used device 1 .*num_gpus=1"):
        cupyrite.ray.device()


def test_a_device_that_ray_did_not_make_visible_is_refused(worker, device):
    worker("1", visible="0,1")
    with pytest.raises(RuntimeError, match=r"assigned device 1, but CUDA_VISIBLE_DEVICES is '0,1'"):
        cupyrite.ray.device()


def program(source, **environment):
    """Runs a program in a process of its own; returns what it prints."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    environment = {name: value for name, value in environment.items() if value is not None}
    command = [sys.executable, "-c", textwrap.dedent(source)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.cpu
def test_init_starts_ray_with_the_cpu_devices():
    lines = program(
        f"""
        import ray, cupyrite.ray
        cupyrite.ray.init("local", num_cpus=None, **{SETTINGS})
        print(ray.cluster_resources()["GPU"], ray.cluster_resources()["CPU"] >= 3)
        """,
        CUPYRITE_CPU_DEVICES="2",
        CUDA_VISIBLE_DEVICES=None,
        RAY_ADDRESS=None,
    )
    # tests/packaging/test_ray_examples.py runs actors there.
    assert lines == ["2.0 True"]


def test_init_connects_to_a_cluster_and_its_workers_send(cluster):
    lines = program(
        """
        import ray, cupyrite.ray
        from cuda.core import Device
        cupyrite.ray.init(logging_level="ERROR")

        @ray.remote
        def task():
            device = Device()
            device.set_current()
            stream = device.create_stream()
            buffer = device.allocate(3, stream=stream)
            stream.sync()
            return buffer

        print(ray.get(task.remote(), timeout=60).size)
        """,
        RAY_ADDRESS=cluster,
    )
    assert lines == ["3"]


def test_a_process_without_the_module_receives_and_cannot_send(cluster):
    lines = program(
        """
        import sys
        import numpy as np
        import ray, cupyrite.ray
        from cuda.core import Device
        ray.init(logging_level="ERROR", log_to_driver=False)
        cupyrite.ray.register()
        device = Device()
        device.set_current()
        stream = device.create_stream()
        buffer = device.allocate(3, stream=stream)
        stream.sync()

        @ray.remote
        def before():
            return "cupyrite.ray" in sys.modules

        @ray.remote
        def size(memory):
            return memory.size

        @ray.remote
        def send():
            device = Device()
            device.set_current()
            return device.allocate(3, stream=device.create_stream())

        print(ray.get(before.remote(), timeout=60), ray.get(size.remote(buffer), timeout=60))
        try:
            print(ray.get(send.remote(), timeout=60))
        except Exception as error:
            print("cannot be shared with other processes" in str(error))
        """,
        RAY_ADDRESS=cluster,
    )
    assert lines == ["False 3", "True"]


def test_a_second_hook_is_refused():
    with pytest.raises(ValueError, match=r"call cupyrite.ray.register\(\) in the hook"):
        cupyrite.ray.init(runtime_env={"worker_process_setup_hook": print})


@pytest.mark.cpu
def test_more_devices_than_there_are_is_refused():
    with pytest.raises(
        ValueError, match="num_gpus is 17, and there are [0-9]+ CPU devices; set CUPYRITE_CPU_DEVICES=17"
    ):
        cupyrite.ray.init("local", num_gpus=17)


@pytest.mark.cpu
@pytest.mark.parametrize(
    "visible, options, added",
    [
        (None, {}, {"num_gpus": 4, "num_cpus": 6}),
        ("2,3", {}, {"num_gpus": 2, "num_cpus": 4}),
        ("GPU-a,GPU-b", {}, {"num_gpus": 2, "num_cpus": 4}),
        ("", {}, {"num_gpus": 0, "num_cpus": 2}),
        (None, {"num_gpus": 1, "num_cpus": None}, {"num_cpus": 3}),
        (None, {"num_gpus": 1, "num_cpus": 1}, {}),
    ],
)
def test_resources_without_a_gpu_follow_the_cpu_devices(visible, options, added, monkeypatch):
    devices = {"": 0, "2,3": 2}.get(visible, 4)
    monkeypatch.setattr(cupyrite.ray, "Device", type("Device", (), {"get_all_devices": lambda: [None] * devices}))
    monkeypatch.setattr(cupyrite.ray, "_cpus", lambda: 2)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert cupyrite.ray._cpu_device_resources(options) == added


def test_without_ray_the_error_names_what_to_install():
    lines = program(
        """
        import sys
        sys.modules["ray"] = None
        try:
            import cupyrite.ray
        except ImportError as error:
            print(error)
        """
    )
    assert lines == ["cupyrite.ray needs Ray: pip install 'cupyrite[ray]'"]
