"""Device resources and green contexts, on both devices."""

import gc
import os
import sys

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import (
    LEGACY_DEFAULT_STREAM,
    Context,
    ContextOptions,
    Device,
    DeviceResources,
    LaunchConfig,
    Program,
    ProgramOptions,
    SMResource,
    SMResourceOptions,
    StreamOptions,
    WorkqueueResource,
    WorkqueueResourceOptions,
    launch,
)
from cuda.core.typing import WorkqueueSharingScopeType

from helpers.device import check, on_cpu_device
from helpers.threads import in_threads

SOURCE = """
extern "C" __global__ void add(int *p, int n) { atomicAdd(p, n); }
extern "C" __global__ void where(int *sms)
{
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x == 0) atomicAdd(sms + sm, 1);
}
"""
NEW_DRIVER = 13010


def skip_on_old_drivers():
    if check(driver.cuDriverGetVersion()) < NEW_DRIVER:
        pytest.skip("needs a driver of CUDA 13.1")


@pytest.fixture
def sm(device):
    return device.resources.sm


@pytest.fixture
def part(sm):
    """The smallest group."""
    (group,), _ = sm.split(SMResourceOptions(count=sm.min_partition_size))
    return group


@pytest.fixture
def green(device, part):
    context = device.create_context(ContextOptions(resources=[part]))
    yield context
    context.close()


@pytest.fixture(scope="module")
def code(device):
    options = ProgramOptions(arch=f"sm_{device.arch}")
    return Program(SOURCE, "c++", options).compile("cubin")


def halves(sm):
    """Two groups of the same size, at least one unit each."""
    size = sm.sm_count // 2 // sm.coscheduled_alignment * sm.coscheduled_alignment
    if size < sm.min_partition_size:
        pytest.skip("needs more multiprocessors")
    return sm.split(SMResourceOptions(count=[size, size]))


def test_resources_of_a_device(device, sm):
    assert type(device.resources) is DeviceResources and device.resources is device.resources
    assert type(sm) is SMResource
    assert sm.sm_count == device.properties.multiprocessor_count
    assert 1 <= sm.min_partition_size <= sm.sm_count
    assert sm.coscheduled_alignment >= 1
    assert sm.flags == 0 and sm.handle != 0
    assert sm != device.resources.sm and sm == sm
    with pytest.raises(AttributeError):
        sm.sm_count = 3


@pytest.mark.parametrize("made", [DeviceResources, SMResource, WorkqueueResource])
def test_resources_cannot_be_instantiated(made):
    with pytest.raises(RuntimeError, match="cannot be instantiated"):
        made()


def test_groups_and_remainder_are_all_multiprocessors(sm):
    (first, second), rest = halves(sm)
    assert first.sm_count == second.sm_count
    assert first.sm_count + second.sm_count + rest.sm_count == sm.sm_count
    assert isinstance(rest, SMResource)


def test_discovery_takes_what_is_left(sm):
    (group,), rest = sm.split(SMResourceOptions())
    assert group.sm_count + rest.sm_count == sm.sm_count
    assert group.sm_count >= sm.min_partition_size
    assert rest.sm_count < sm.min_partition_size or rest.sm_count < sm.sm_count


def test_dry_run_returns_the_same_sizes(device, sm):
    options = SMResourceOptions(count=[sm.min_partition_size])
    (real,), rest = sm.split(options)
    (estimate,), left = sm.split(options, dry_run=True)
    assert (estimate.sm_count, left.sm_count) == (real.sm_count, rest.sm_count)
    with pytest.raises(ValueError, match="dry run"):
        device.create_context(ContextOptions(resources=[estimate]))
    with pytest.raises(ValueError, match="dry run"):
        estimate.split(options)


def test_groups_of_different_sizes(sm):
    skip_on_old_drivers()
    unit = sm.coscheduled_alignment
    if sm.sm_count < 3 * unit:
        pytest.skip("needs more multiprocessors")
    (small, large), rest = sm.split(SMResourceOptions(count=[unit, 2 * unit]))
    assert (small.sm_count, large.sm_count) == (unit, 2 * unit)
    assert rest.sm_count == sm.sm_count - 3 * unit
    (small, others), _ = sm.split(SMResourceOptions(count=[unit, None]))
    assert others.sm_count > 0
    (again,), _ = large.split(SMResourceOptions(count=unit))
    assert again.sm_count == unit


def test_backfill_allows_other_sizes(sm):
    skip_on_old_drivers()
    if sm.sm_count < 12 or sm.coscheduled_alignment < 8:
        pytest.skip("needs units of 8 multiprocessors")
    from cuda.core._utils.cuda_utils import CUDAError

    with pytest.raises(CUDAError):
        sm.split(SMResourceOptions(count=10))
    (group,), _ = sm.split(SMResourceOptions(count=10, backfill=True))
    assert group.sm_count == 10


def test_impossible_sizes_are_refused(sm):
    from cuda.core._utils.cuda_utils import CUDAError

    for count in (sm.sm_count + 1, 2**32 - 1, 100_000):
        for dry_run in (False, True):
            with pytest.raises(CUDAError):
                sm.split(SMResourceOptions(count=count), dry_run=dry_run)


@pytest.mark.parametrize(
    "fields, error, match",
    [
        ({"count": -1}, ValueError, "count is -1"),
        ({"count": 2**40}, ValueError, "count is"),
        ({"count": "8"}, TypeError, "count is '8'"),
        ({"count": 8.0}, TypeError, "count is 8.0"),
        ({"count": []}, ValueError, "empty"),
        ({"count": [2, "x"]}, TypeError, "count is 'x'"),
        ({"count": [2, 2], "coscheduled_sm_count": [2]}, ValueError, "1 elements; .* has 2"),
        ({"count": 2, "coscheduled_sm_count": [2]}, ValueError, "is a sequence"),
        ({"backfill": [True, False]}, ValueError, "is a sequence"),
        ({"coscheduled_sm_count": b"ab"}, TypeError, "coscheduled_sm_count is"),
        ({"preferred_coscheduled_sm_count": -2}, ValueError, "preferred_coscheduled_sm_count is -2"),
    ],
)
def test_invalid_split_options_are_refused(sm, fields, error, match):
    for options in (fields, SMResourceOptions(**fields)):
        with pytest.raises(error, match=match):
            sm.split(options)


def test_split_needs_options(sm):
    for wrong in (None, 3, [2]):
        with pytest.raises(TypeError, match="SMResourceOptions"):
            sm.split(wrong)
    with pytest.raises(TypeError):
        sm.split(SMResourceOptions(), True)


def test_work_queues_of_a_device(device):
    skip_on_old_drivers()
    queues = device.resources.workqueue
    assert type(queues) is WorkqueueResource
    assert queues.device == device and queues.handle != 0
    assert queues.concurrency_limit >= 1
    assert queues.sharing_scope is WorkqueueSharingScopeType.DEVICE_CTX
    queues.configure(WorkqueueResourceOptions(sharing_scope="green_ctx_balanced"))
    limit = queues.concurrency_limit
    queues.configure({"concurrency_limit": 3})
    assert queues.sharing_scope == "green_ctx_balanced" and queues.concurrency_limit == 3
    # Another object of the same device is unchanged.
    assert device.resources.workqueue.concurrency_limit == limit
    queues.configure(WorkqueueResourceOptions())
    assert queues.concurrency_limit == 3


def test_invalid_work_queue_options_are_refused_at_construction():
    for wrong, error in (
        ({"concurrency_limit": 0}, ValueError),
        ({"concurrency_limit": -1}, ValueError),
        ({"concurrency_limit": 2**33}, ValueError),
        ({"concurrency_limit": "3"}, TypeError),
        ({"concurrency_limit": 1.5}, TypeError),
        ({"sharing_scope": "x"}, ValueError),
        ({"sharing_scope": "DEVICE_CTX"}, ValueError),
        ({"sharing_scope": 3}, ValueError),
    ):
        with pytest.raises(error, match=rf"WorkqueueResourceOptions\.{next(iter(wrong))}"):
            WorkqueueResourceOptions(**wrong)
    options = WorkqueueResourceOptions("green_ctx_balanced", 4)
    assert (options.sharing_scope, options.concurrency_limit) == ("green_ctx_balanced", 4)
    assert WorkqueueResourceOptions(WorkqueueSharingScopeType.DEVICE_CTX).concurrency_limit is None


def test_invalid_work_queue_options_are_refused(device):
    skip_on_old_drivers()
    queues = device.resources.workqueue
    for wrong, error in (
        ({"concurrency_limit": 0}, ValueError),
        ({"concurrency_limit": -1}, ValueError),
        ({"concurrency_limit": 2**33}, ValueError),
        ({"concurrency_limit": "3"}, TypeError),
        ({"sharing_scope": "x"}, ValueError),
        ({"sharing_scope": 3}, ValueError),
        (None, TypeError),
        (3, TypeError),
    ):
        with pytest.raises(error):
            queues.configure(wrong)
    assert queues.sharing_scope == "device_ctx"


def test_green_context(device, part, green):
    assert type(green) is Context and green.is_green
    assert not green.is_closed
    assert int(green.handle) != int(device.context.handle)
    assert green != device.context
    assert green.resources.sm.sm_count == part.sm_count
    assert device.context.is_green is False
    assert device.context.resources.sm.sm_count == device.resources.sm.sm_count


def test_context_with_work_queues(device, part):
    skip_on_old_drivers()
    queues = device.resources.workqueue
    queues.configure({"sharing_scope": "green_ctx_balanced", "concurrency_limit": 2})
    context = device.create_context({"resources": [part, queues]})
    assert context.resources.workqueue.concurrency_limit == 2
    assert context.resources.workqueue.sharing_scope == "green_ctx_balanced"
    context.close()


def test_resources_that_cannot_be_combined_are_refused(device, part):
    from cuda.core._utils.cuda_utils import CUDAError

    if on_cpu_device():  # The manual forbids it, and the driver 13.0 of an H200 accepts it.
        with pytest.raises(CUDAError, match="INVALID_RESOURCE_CONFIGURATION"):
            device.create_context(ContextOptions(resources=[part, part]))
    for wrong in ("ab", [3], part):
        with pytest.raises(TypeError):
            device.create_context(ContextOptions(resources=wrong))
    with pytest.raises(TypeError, match="object of type str; expected SMResource"):
        device.create_context(ContextOptions(resources=[part, "x"]))


def test_streams_of_a_green_context(device, part, green, code):
    stream = green.create_stream()
    assert stream.context == green and stream.context.is_green
    assert stream.device == device and stream.is_nonblocking
    assert stream.resources.sm.sm_count == part.sm_count
    with pytest.raises(ValueError, match="non-blocking"):
        green.create_stream(StreamOptions(nonblocking=False))
    with pytest.raises(ValueError, match="priority"):
        green.create_stream({"priority": 100})
    with pytest.raises(TypeError):
        green.create_stream(3)
    # Kernels, memory and events of the primary context are used in the green one.
    buffer = device.allocate(4, stream=stream)
    buffer.fill(0, stream=stream)
    for _ in range(3):
        launch(stream, LaunchConfig(grid=4, block=32), code.get_kernel("add"), buffer, np.int32(1))
    event = stream.record()
    other = device.create_stream()
    other.wait(event)
    result = np.zeros(1, np.int32)
    pinned = driver.cuMemcpyDtoHAsync
    check(pinned(result.ctypes.data, int(buffer.handle), 4, other.handle))
    other.sync()
    assert result[0] == 3 * 4 * 32
    assert other.resources.sm.sm_count == device.resources.sm.sm_count
    buffer.close()
    stream.close()


def test_kernels_run_on_the_multiprocessors_of_their_context(device, sm, code):
    (first, second), _ = halves(sm)
    used = []
    for group in (first, second):
        context = device.create_context(ContextOptions(resources=[group]))
        stream = context.create_stream()
        counts = device.allocate(4 * 2048, stream=stream)
        counts.fill(0, stream=stream)
        launch(stream, LaunchConfig(grid=4000, block=128), code.get_kernel("where"), counts)
        result = np.zeros(2048, np.int32)
        check(driver.cuMemcpyDtoHAsync(result.ctypes.data, int(counts.handle), result.nbytes, stream.handle))
        stream.sync()
        assert result.sum() == 4000
        used.append(set(np.flatnonzero(result).tolist()))
        assert len(used[-1]) <= group.sm_count
        counts.close()
        stream.close()
        context.close()
    assert not used[0] & used[1]


def test_current_green_context(device, part, green):
    previous = device.set_current(green)
    try:
        assert previous == Context or not previous.is_green
        assert device.context.is_green
        stream = device.create_stream()
        assert stream.context == green
        assert LEGACY_DEFAULT_STREAM.resources.sm.sm_count == part.sm_count
        assert device.resources.sm.sm_count == device.properties.multiprocessor_count
        with pytest.raises(RuntimeError, match="current"):
            green.close()
        buffer = device.allocate(16)
        buffer.fill(1, stream=LEGACY_DEFAULT_STREAM)
        buffer.close()
        device.sync()
        stream.close()
    finally:
        device.set_current()
    assert LEGACY_DEFAULT_STREAM.resources.sm.sm_count == device.resources.sm.sm_count


def test_closed_contexts(device, part):
    context = device.create_context(ContextOptions(resources=[part]))
    stream = context.create_stream()
    context.close()
    context.close()
    assert context.is_closed and not context.is_green
    for use in (context.create_stream, lambda: context.resources):
        with pytest.raises(RuntimeError, match="closed"):
            use()
    # The stream keeps the context.
    stream.sync()
    assert stream.context.is_green
    stream.close()
    with pytest.raises(RuntimeError, match="closed"):
        _ = stream.resources


@pytest.mark.parametrize("order", ["context first", "stream first", "collected"])
def test_objects_are_dropped_in_any_order(device, part, code, order):
    context = device.create_context(ContextOptions(resources=[part]))
    stream = context.create_stream()
    device.sync()
    used = device.memory_resource.attributes.used_mem_current
    buffer = device.allocate(4, stream=stream)
    launch(stream, LaunchConfig(grid=64, block=32), code.get_kernel("add"), buffer, np.int32(1))
    if order == "context first":
        context.close()
        buffer.close()
        stream.close()
    elif order == "stream first":
        stream.close()
        context.close()
        buffer.close()
    del context, stream, buffer
    gc.collect()
    device.sync()
    assert device.memory_resource.attributes.used_mem_current == used


def test_repeated_creation_leaves_nothing(device, part, green):
    for _ in range(200):
        context = device.create_context(ContextOptions(resources=[part]))
        context.create_stream().close()
        context.close()
    assert green.is_green


def test_threads_with_contexts_of_their_own(device, part, code):
    def work(_):
        Device(0).set_current()
        for _ in range(5):
            context = Device(0).create_context(ContextOptions(resources=[part]))
            stream = context.create_stream()
            buffer = Device(0).allocate(4, stream=stream)
            launch(stream, LaunchConfig(grid=8, block=32), code.get_kernel("add"), buffer, np.int32(1))
            stream.sync()
            buffer.close()

    in_threads(4, work)


@pytest.mark.cpu
def test_context_destroyed_by_its_handle(device, part):
    """A GPU's driver crashes for some of these."""
    context = device.create_context(ContextOptions(resources=[part]))
    stream = context.create_stream()
    green = check(driver.cuStreamGetGreenCtx(stream.handle))
    check(driver.cuGreenCtxDestroy(green))
    status = driver.CUresult
    assert driver.cuStreamSynchronize(stream.handle)[0] == status.CUDA_ERROR_STREAM_DETACHED
    assert driver.cuGreenCtxDestroy(green)[0] == status.CUDA_ERROR_INVALID_CONTEXT
    stream.close()
    context.close()
    gc.collect()
    device.create_stream().close()


@pytest.mark.cpu
@pytest.mark.parametrize("capability, threads", [("9.0", 132), ("8.9", 5), ("9.0", 3)])
def test_this_file_with_other_numbers_of_multiprocessors(capability, threads):
    if "CUPYRITE_CPU_THREADS" in os.environ:
        pytest.skip("runs in the test's own process")
    import subprocess

    environment = {
        **os.environ,
        "CUPYRITE_CPU_THREADS": str(threads),
        "CUPYRITE_CPU_COMPUTE_CAPABILITY": capability,
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-4000:]
