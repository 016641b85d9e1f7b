"""LaunchConfig and launch of cuda.core: shapes, streams, cooperative launches, clusters, and invalid arguments."""

import copy
import ctypes
import gc
import inspect
import pickle
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Device, LaunchConfig, launch
from cuda.core._utils.cuda_utils import CUDAError

from helpers.device import check, label
from helpers.programs import output
from helpers.threads import run_all

pytestmark = pytest.mark.strict_abi

PLAIN = dict(grid=1, block=1)


@pytest.fixture
def counter(echo):
    """Launches `count` and returns the number of threads that ran."""

    class Counter:
        def __call__(self, stream, config, *args, **keywords):
            echo.clear()
            check(driver.cuMemsetD8(int(echo.buffer.handle), 0, 4))
            check(driver.cuCtxSynchronize())
            launch(stream, config, echo.kernel("count"), echo.buffer, *args, **keywords)
            check(driver.cuCtxSynchronize())
            return int.from_bytes(echo.read(4), "little")

    return Counter()


# ---- LaunchConfig


def test_config_returns_its_values():
    config = LaunchConfig(grid=(1, 2), block=3, shmem_size=64, is_cooperative=True)
    assert (config.grid, config.block, config.cluster) == ((1, 2, 1), (3, 1, 1), None)
    assert (config.shmem_size, config.is_cooperative, config.programmatic_stream_serialization) == (64, True, False)
    assert repr(config) == (
        "LaunchConfig(grid=(1, 2, 1), cluster=None, block=(3, 1, 1), shmem_size=64, is_cooperative=True, "
        "programmatic_stream_serialization=False)"
    )
    assert LaunchConfig(4, None, 5, 6, False, True) == LaunchConfig(
        grid=4, block=5, shmem_size=6, programmatic_stream_serialization=True
    )
    assert LaunchConfig(grid=(), block=(3,)).grid == (1, 1, 1)
    assert LaunchConfig(grid=np.int32(4), block=[np.int64(2), 3]).block == (2, 3, 1)
    assert LaunchConfig(grid=True, block=1).grid == (1, 1, 1)
    assert LaunchConfig(**PLAIN, shmem_size=None).shmem_size == 0
    assert LaunchConfig(**PLAIN, is_cooperative="yes").is_cooperative is True
    assert LaunchConfig(grid=2**32 - 1, block=1).grid[0] == 2**32 - 1


@pytest.mark.parametrize(
    "arguments, exception, message",
    [
        ({}, ValueError, "grid is required"),
        ({"grid": 1}, ValueError, "block is required"),
        ({"block": 1}, ValueError, "grid is required"),
        ({"grid": (1, 2, 3, 4), "block": 1}, ValueError, "grid.*4 items"),
        ({"grid": 0, "block": 1}, ValueError, "grid.*from 1 to"),
        ({"grid": 1, "block": -1}, ValueError, "block.*from 1 to"),
        ({"grid": (1, 0), "block": 1}, ValueError, "grid.*from 1 to"),
        ({"grid": 1.0, "block": 1}, ValueError, "grid is 1.0"),
        ({"grid": 1, "block": "1"}, ValueError, "block is '1'"),
        ({"grid": (1.5, 2), "block": 1}, ValueError, "grid"),
        ({"grid": range(2), "block": 1}, ValueError, "grid"),
        ({"grid": 2**32, "block": 1}, ValueError, "from 1 to"),
        ({"grid": 2**70, "block": 1}, ValueError, "from 1 to"),
        ({**PLAIN, "shmem_size": -1}, ValueError, "shmem_size is -1"),
        ({**PLAIN, "shmem_size": 1.5}, TypeError, "shmem_size is 1.5"),
        ({**PLAIN, "shmem_size": "a"}, TypeError, "shmem_size"),
        ({**PLAIN, "shmem_size": 2**31}, OverflowError, "shmem_size"),
        ({**PLAIN, "nonsense": 1}, TypeError, "nonsense"),
        ({**PLAIN, "grid": [10**3000]}, ValueError, "long repr"),
        ({**PLAIN, "grid": np.array([1, 2])}, ValueError, "grid"),
    ],
    ids=label,
)
def test_invalid_config_raises(arguments, exception, message):
    with pytest.raises(exception, match=message):
        LaunchConfig(**arguments)


def test_config_attributes_are_checked_on_assignment():
    config = LaunchConfig(**PLAIN)
    config.grid, config.block = 5, (1, 2)
    config.shmem_size, config.is_cooperative, config.programmatic_stream_serialization = 7, 1, "x"
    assert (config.grid, config.block) == ((5, 1, 1), (1, 2, 1))
    assert (config.shmem_size, config.is_cooperative, config.programmatic_stream_serialization) == (7, True, True)
    config.cluster = None
    for name, value, exception in (
        ("grid", None, TypeError),
        ("grid", "abc", TypeError),
        ("grid", (0, 1, 1), ValueError),
        ("block", 1.5, TypeError),
        ("shmem_size", None, TypeError),
        ("shmem_size", -5, ValueError),
        ("shmem_size", 2**40, OverflowError),
        ("nonsense", 1, AttributeError),
    ):
        with pytest.raises(exception):
            setattr(config, name, value)
    with pytest.raises(AttributeError):
        del config.grid
    assert (config.grid, config.block, config.shmem_size) == ((5, 1, 1), (1, 2, 1), 7)


def test_equality_hash_copies_and_references():
    config = LaunchConfig(grid=(2, 3), block=4, shmem_size=5)
    for same in (LaunchConfig(grid=(2, 3, 1), block=(4,), shmem_size=5), copy.copy(config), copy.deepcopy(config)):
        assert same == config and hash(same) == hash(config) and same is not config
    assert pickle.loads(pickle.dumps(config)) == config
    for other in (LaunchConfig(grid=(2, 3), block=4), {}, None, 5):
        assert config != other
    with pytest.raises(TypeError):
        config < config
    reference = weakref.ref(config)
    del config, same
    gc.collect()
    assert reference() is None

    class Mine(LaunchConfig):
        pass

    assert Mine(**PLAIN) == LaunchConfig(**PLAIN)


def test_former_spelling_of_cooperative_launch():
    with pytest.warns(DeprecationWarning, match="is_cooperative"):
        assert LaunchConfig(**PLAIN, cooperative_launch=True).is_cooperative
    with pytest.warns(DeprecationWarning):
        assert not LaunchConfig(**PLAIN, cooperative_launch=False).is_cooperative
    with pytest.warns(DeprecationWarning), pytest.raises(TypeError, match="one parameter"):
        LaunchConfig(**PLAIN, is_cooperative=True, cooperative_launch=True)


def test_clusters_need_device_support(echo):
    if echo.device.compute_capability >= (9, 0):
        config = LaunchConfig(grid=4, cluster=(2, 1), block=32)
        assert config.cluster == (2, 1, 1)
        for wrong in (0, (2, 0), "x", (1, 2, 3, 4)):
            with pytest.raises(ValueError, match="cluster"):
                LaunchConfig(**PLAIN, cluster=wrong)
        return
    with pytest.raises(CUDAError, match="9.0"):
        LaunchConfig(**PLAIN, cluster=2)
    config = LaunchConfig(**PLAIN)
    with pytest.raises(CUDAError, match="9.0"):
        config.cluster = 2


# ---- launch


def test_every_dimension_reaches_the_kernel(echo):
    config = LaunchConfig(grid=(2, 3, 4), block=(5, 6, 7), shmem_size=128)
    echo.clear()
    launch(echo.stream, config, echo.kernel("shape"), echo.buffer)
    assert np.frombuffer(echo.read(28), np.uint32).tolist() == [2, 3, 4, 5, 6, 7, 128]
    config.grid, config.block, config.shmem_size = 9, (2, 2), 0
    launch(echo.stream, config, echo.kernel("shape"), echo.buffer)
    assert np.frombuffer(echo.read(28), np.uint32).tolist() == [9, 1, 1, 2, 2, 1, 0]


def test_positional_and_keyword_arguments(echo, counter):
    kernel = echo.kernel("nothing")
    assert launch(echo.stream, echo.one, kernel) is None
    assert launch(stream=echo.stream, config=echo.one, kernel=kernel) is None
    assert launch(echo.stream, kernel=kernel, config=echo.one) is None
    for arguments, keywords, message in (
        ((), {}, "'stream'"),
        ((echo.stream,), {}, "'config'"),
        ((echo.stream, echo.one), {}, "'kernel'"),
        ((echo.stream, echo.one, kernel), {"kernel": kernel}, "multiple values.*kernel"),
        ((echo.stream, echo.one, kernel), {"block": 1}, "unexpected.*block"),
        ((), {"config": echo.one}, "'stream'"),
    ):
        with pytest.raises(TypeError, match=message):
            launch(*arguments, **keywords)


def test_signature_and_docstring():
    assert str(inspect.signature(launch)) == "(stream, config, kernel, *kernel_args)"
    assert launch.__module__ == "cuda.core._launcher" and launch.__name__ == "launch"
    assert "counted from 0" in launch.__doc__
    assert pickle.loads(pickle.dumps(launch)) is launch


@pytest.mark.parametrize("wrong", [None, 0, 5, "x", object(), {"grid": 1}], ids=label)
def test_wrong_types_are_named(echo, wrong):
    kernel = echo.kernel("nothing")
    with pytest.raises(TypeError, match="stream"):
        launch(wrong, echo.one, kernel)
    with pytest.raises(TypeError, match="'config' must be a LaunchConfig"):
        launch(echo.stream, wrong, kernel)
    with pytest.raises(TypeError, match="'kernel' must be a Kernel"):
        launch(echo.stream, echo.one, wrong)
    with pytest.raises(TypeError, match="'kernel' must be a Kernel"):
        launch(echo.stream, echo.one, echo.code)


def test_every_kind_of_stream(echo, counter):
    config = LaunchConfig(grid=2, block=32)
    assert counter(echo.stream, config) == 64
    assert counter(echo.device.default_stream, config) == 64

    class Foreign:
        def __cuda_stream__(self):
            return (0, int(echo.stream.handle))

    for stream in (Foreign(), driver.CUstream(int(echo.stream.handle))):
        with pytest.warns(DeprecationWarning, match="Stream"):
            assert counter(stream, config) == 64

    class Odd:
        def __cuda_stream__(self):
            return 5

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((TypeError, RuntimeError, ValueError)):
            launch(Odd(), config, echo.kernel("nothing"))


def test_closed_stream_raises(echo):
    stream = echo.device.create_stream()
    stream.close()
    with pytest.raises(RuntimeError, match="closed"):
        launch(stream, echo.one, echo.kernel("nothing"))


def test_cooperative_launch(echo, counter):
    config = LaunchConfig(grid=2, block=64, is_cooperative=True)
    assert counter(echo.stream, config) == 128
    config.grid = 1 << 20
    with pytest.raises(ValueError, match=r"cooperative.*\(1048576, 1, 1\) blocks.*no more than \d+"):
        launch(echo.stream, config, echo.kernel("count"), echo.buffer)
    config.is_cooperative = False
    config.grid = 3
    assert counter(echo.stream, config) == 192


def test_programmatic_stream_serialization(echo, counter):
    config = LaunchConfig(grid=2, block=64, programmatic_stream_serialization=True)
    assert counter(echo.stream, config) == 128


def test_grid_counts_clusters(echo, counter):
    if echo.device.compute_capability < (9, 0):
        pytest.skip("needs a device of compute capability 9.0")
    assert counter(echo.stream, LaunchConfig(grid=(4, 4), cluster=(2, 2), block=128)) == 4 * 4 * 2 * 2 * 128
    with pytest.raises(CUDAError, match="(?s)CLUSTER|cluster"):
        counter(echo.stream, LaunchConfig(grid=1, cluster=64, block=32))
    with pytest.raises(ValueError, match="32 bits"):
        counter(echo.stream, LaunchConfig(grid=2**31, cluster=2, block=32))


@pytest.mark.parametrize(
    "config, message",
    [
        (dict(grid=1, block=4096), "block"),
        (dict(grid=1, block=(32, 33)), r"has 1056 threads.*up to 1024"),
        (dict(grid=1, block=(1, 1, 1024)), r"the block is \(1, 1, 1024\)"),
        (dict(grid=2**31, block=1), r"the grid is \(2147483648, 1, 1\)"),
        (dict(grid=(1, 2**17), block=1), "the grid"),
        (dict(grid=1, block=1, shmem_size=1 << 20), "1048576 bytes of dynamic shared memory.*MAX_DYNAMIC_SHARED"),
    ],
    ids=label,
)
def test_impossible_shape_is_explained(echo, config, message):
    with pytest.raises(CUDAError, match=f"(?s)CUDA_ERROR_INVALID_VALUE.*{message}"):
        launch(echo.stream, LaunchConfig(**config), echo.kernel("nothing"))
    launch(echo.stream, echo.one, echo.kernel("nothing"))
    echo.stream.sync()


def test_launch_needs_no_current_context(echo):
    """The stream determines the device; a thread without a current context can launch."""
    failures = []

    def body():
        try:
            assert int(check(driver.cuCtxGetCurrent())) == 0
            launch(echo.stream, echo.one, echo.echoes[4], echo.buffer, 77)
        except BaseException as error:
            failures.append(error)

    echo.clear()
    thread = threading.Thread(target=body)
    run_all([thread])
    assert not failures
    assert echo.read(4) == (77).to_bytes(4, "little")


def test_threads_launch_concurrently(echo):
    """Each thread packs its own arguments; a configuration may change meanwhile."""
    threads, launches = 4, 200
    config = LaunchConfig(grid=1, block=32)
    with echo.device.allocate(4 * threads, stream=echo.stream) as buffer:
        check(driver.cuMemsetD8(int(buffer.handle), 0, 4 * threads))
        check(driver.cuCtxSynchronize())
        failures = []

        def body(number):
            try:
                stream = Device(0).create_stream()
                for _ in range(launches):
                    launch(stream, config, echo.kernel("count"), int(buffer.handle) + 4 * number)
                    config.is_cooperative = False
                    config.shmem_size = number
                stream.sync()
            except BaseException as error:
                failures.append(error)

        workers = [threading.Thread(target=body, args=(number,)) for number in range(threads)]
        run_all(workers, failures)
        assert not failures
        found = (ctypes.c_uint * threads)()
        check(driver.cuMemcpyDtoH(ctypes.addressof(found), int(buffer.handle), 4 * threads))
        assert list(found) == [launches * 32] * threads


def test_launches_leak_no_references(echo):
    value, pair = np.float64(2.5), np.array([(7, 2.5)], dtype=np.dtype([("a", "i4"), ("b", "f8")], align=True))[0]
    objects = (echo.stream, echo.one, echo.echoes[8], echo.buffer, value, pair)
    launch(echo.stream, echo.one, echo.echoes[8], echo.buffer, value)
    launch(echo.stream, echo.one, echo.echoes[16], echo.buffer, pair)
    counts = [sys.getrefcount(o) for o in objects]
    for turn in range(300):
        launch(echo.stream, echo.one, echo.echoes[8], echo.buffer, value)
        launch(echo.stream, echo.one, echo.echoes[16], echo.buffer, pair)
        for wrong in ((), (echo.buffer, 1j), (echo.buffer, None)):
            with pytest.raises(TypeError):
                launch(echo.stream, echo.one, echo.echoes[8], *wrong)
        if turn % 50 == 0:
            echo.stream.sync()
    echo.stream.sync()
    del wrong
    assert [sys.getrefcount(o) for o in objects] == counts


def test_launch_imports_neither_numpy_nor_ctypes():
    script = """
import sys
from cuda.core import Device, LaunchConfig, Program, launch
d = Device(0)
d.set_current()
s = d.create_stream()
k = Program('extern "C" __global__ void f(double *p, double v, int n) { *p = v + n; }', "c++").compile("cubin").get_kernel("f")
b = d.allocate(8, stream=s)
launch(s, LaunchConfig(grid=1, block=1), k, b, 2.5, 3)
s.sync()
try:
    launch(s, LaunchConfig(grid=1, block=1), k, b, 2.5, object())
except TypeError:
    pass
print([m for m in ("numpy", "ctypes") if m in sys.modules])
"""
    assert output(script, options=("-W", "ignore")).strip() == "[]"


def test_a_block_that_is_too_large_is_refused_in_one_sentence(echo):
    with pytest.raises(CUDAError) as refused:
        launch(echo.stream, LaunchConfig(grid=1, block=2048), echo.kernel("nothing"))
    first, *others = str(refused.value).splitlines()
    assert first.startswith("CUDA_ERROR_INVALID_VALUE")
    assert others == ["a block of (2048, 1, 1) has 2048 threads; kernel `nothing` runs with up to 1024"]


def test_a_default_stream_without_a_current_context_names_set_current(echo):
    messages = []

    def body():
        for use in (
            lambda: launch(LEGACY_DEFAULT_STREAM, echo.one, echo.kernel("nothing")),
            lambda: launch(PER_THREAD_DEFAULT_STREAM, echo.one, echo.kernel("nothing")),
            LEGACY_DEFAULT_STREAM.record,
        ):
            with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_CONTEXT") as refused:
                use()
            messages.append(str(refused.value))
        Device().set_current()
        launch(LEGACY_DEFAULT_STREAM, echo.one, echo.kernel("nothing"))
        LEGACY_DEFAULT_STREAM.sync()
        driver.cuCtxSetCurrent(0)

    run_all([threading.Thread(target=body)])
    assert len(messages) == 3
    for message in messages:
        assert "device.set_current()" in message and "Compiling, loading and the methods of a device" in message


RESET = """
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, launch
from cuda.core._utils.cuda_utils import CUDAError
device = Device()
device.set_current()
code = Program('extern "C" __global__ void k(int *p) { *p = 7; }', "c++").compile("ptx")
def run(address):
    stream = device.create_stream()
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("k"), np.uint64(address))
    stream.sync()
for call in (lambda: run(8), lambda: device.create_stream()):
    try:
        call()
    except CUDAError as error:
        assert "the context is unusable: start a new process (the CPU device: call cuDevicePrimaryCtxReset)" in str(error)
    else:
        raise SystemExit("no error")
assert driver.cuDevicePrimaryCtxReset(device.device_id) == (driver.CUresult.CUDA_SUCCESS,)
device.set_current()
buffer = device.allocate(4)
run(int(buffer.handle))
device.sync()
buffer.close()
print("usable")
"""


@pytest.mark.cpu
def test_the_error_of_a_failed_kernel_names_the_call_that_makes_the_device_usable():
    assert output(RESET).strip() == "usable"
