"""Memory of two devices: access to pools, copies, kernels, closing on the other device's stream."""

import ctypes
import threading

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Buffer,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    PinnedMemoryResource,
    Program,
    Stream,
    VirtualMemoryResource,
    launch,
    utils,
)
from cuda.core._utils.cuda_utils import CUDAError

from helpers.device import check
from helpers.threads import run_all

SOURCE = """extern "C" __global__ void add(int *p, int n) { if (threadIdx.x < 16) p[threadIdx.x] += n; }
extern "C" __global__ void slow(int *p, int *turns) {
    volatile int *at = p;
    for (int i = 0, n = *turns; i < n; i++) { at[i % 1024] = i; }
    *turns = at[1023] + 2;
}"""
TURNS = 1 << 15
BYTES = 64


@pytest.fixture(scope="module")
def code(devices):
    """The kernels, loaded on each device."""
    found = []
    for device in devices:
        device.set_current()
        found.append(Program(SOURCE, "c++").compile("ptx"))
    return found


@pytest.fixture
def pools(devices):
    made = [DeviceMemoryResource(d, DeviceMemoryResourceOptions(max_size=1 << 25)) for d in devices]
    yield made
    for device, pool in zip(devices, made):
        device.sync()
        assert pool.attributes.used_mem_current == 0
        pool.close()


@pytest.fixture
def shared(devices, pools):
    """Pools accessible from both devices: a GPU's driver copies between pools only then."""
    for pool, other in zip(pools, (1, 0)):
        pool.peer_accessible_by = [other]
    return pools


def numbers(buffer, stream):
    out = np.zeros(buffer.size // 4, np.int32)
    buffer.copy_to(out, stream=stream)
    stream.sync()
    return np.unique(out).tolist()


def test_buffers_report_their_device(devices, pools, streams):
    for number, (device, pool, stream) in enumerate(zip(devices, pools, streams)):
        assert pool.device_id == number
        with pool.allocate(BYTES, stream=stream) as buffer:
            assert buffer.device_id == number and buffer.__dlpack_device__() == (2, number)
            foreign = Buffer.from_handle(buffer.handle, BYTES)
            assert foreign.device_id == number and foreign.is_device_accessible
        with device.allocate(BYTES, stream=stream) as buffer:
            assert buffer.device_id == number


@pytest.mark.parametrize("which", [0, 1])
def test_copies_between_devices(shared, streams, which):
    """In either device's stream, with either device current."""
    a, b = (pool.allocate(BYTES, stream=stream) for pool, stream in zip(shared, streams))
    for buffer, stream, value in ((a, streams[0], 1), (b, streams[1], 2)):
        buffer.fill(np.int32(value), stream=stream)
    streams[0].sync()
    streams[1].sync()
    stream = streams[which]
    a.copy_to(b, stream=stream)
    assert numbers(b, stream) == [1]
    a.fill(np.int32(3), stream=stream)
    b.copy_from(a, stream=stream)
    assert numbers(b, stream) == [3]
    b.fill(np.int32(4), stream=stream)
    utils.copy_batch(stream, [b[:32], b[32:]], [a[:32], a[32:]])
    assert numbers(a, stream) == [4]
    # The copy is allocated on the device of the source.
    with b.copy_to(stream=stream) as copy:
        assert copy.device_id == 1 and numbers(copy, stream) == [4]
    a.close()
    b.close()


def test_copies_between_pools_without_access_are_refused(pools, streams):
    a, b = (pool.allocate(BYTES, stream=stream) for pool, stream in zip(pools, streams))
    for buffer, stream in ((a, streams[0]), (b, streams[1])):
        buffer.fill(np.int32(1), stream=stream)
        stream.sync()
    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
        a.copy_to(b, stream=streams[0])
    a.close()
    b.close()


def test_copies_need_access_of_the_current_or_the_streams_device_to_both_pools(devices, pools, streams):
    a, b = (pool.allocate(BYTES, stream=stream) for pool, stream in zip(pools, streams))
    for buffer, stream, value in ((a, streams[0], 1), (b, streams[1], 2)):
        buffer.fill(np.int32(value), stream=stream)
        stream.sync()

    def refused(of):
        """Whether copies by a device are refused: those of the driver are the current device's."""
        for number, stream in enumerate(streams):
            for source, target in ((a, b), (b, a)):
                result = driver.cuMemcpyDtoDAsync(target.handle, source.handle, BYTES, stream.handle)[0]
                assert (result == driver.CUresult.CUDA_ERROR_INVALID_VALUE) == (Device().device_id in of)
                if {number, Device().device_id} <= of:
                    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
                        source.copy_to(target, stream=stream)
                else:
                    source.copy_to(target, stream=stream)
            stream.sync()

    for current in devices:
        current.set_current()
        refused({0, 1})
        pools[1].peer_accessible_by = [0]
        refused({1})
        pools[0].peer_accessible_by = [1]
        refused(set())
        pools[1].peer_accessible_by = []
        refused({0})
        pools[0].peer_accessible_by = []
        refused({0, 1})
    # Refused calls had no effect, and the streams remain usable.
    values = {numbers(a, streams[0])[0], numbers(b, streams[1])[0]}
    assert len(values) == 1 and values <= {1, 2}
    a.close()
    b.close()


def test_memory_outside_of_pools_is_copied_without_access(devices, streams):
    devices[0].set_current()
    first = Buffer.from_handle(check(driver.cuMemAlloc(BYTES)), BYTES)
    devices[1].set_current()
    second = Buffer.from_handle(check(driver.cuMemAlloc(BYTES)), BYTES)
    first.fill(np.int32(3), stream=streams[0])
    streams[0].sync()
    second.copy_from(first, stream=streams[1])
    assert numbers(second, streams[1]) == [3]
    for buffer in (first, second):
        check(driver.cuMemFree(buffer.handle))


@pytest.mark.parametrize("which", [0, 1])
def test_a_device_copies_its_memory_while_another_is_current(devices, pools, streams, which):
    """To and from the host, with rows and as a whole. The driver refuses that where the current device has no access."""
    devices[1 - which].set_current()
    buffer = pools[which].allocate(BYTES, stream=streams[which])
    buffer.copy_from(np.arange(BYTES // 4, dtype=np.int32), stream=streams[which])
    out = np.zeros(BYTES // 4, np.int32)
    buffer.copy_to(out, stream=streams[which])
    streams[which].sync()
    assert out.tolist() == list(range(BYTES // 4))
    refused = driver.cuMemcpyDtoHAsync(out.ctypes.data, buffer.handle, BYTES, streams[which].handle)[0]
    assert refused == driver.CUresult.CUDA_ERROR_INVALID_VALUE
    view = utils.StridedMemoryView.from_buffer(buffer, (2, 4), strides=(8, 1), dtype=np.dtype(np.int32))
    part = np.zeros((2, 4), np.int32)
    view.copy_to(utils.StridedMemoryView.from_any_interface(part, -1), stream=streams[which])
    streams[which].sync()
    assert part.tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]
    buffer.close()
    assert Device() == devices[1 - which]


@pytest.mark.parametrize("which", [0, 1])
def test_a_stream_suffices_without_a_current_context(devices, pools, streams, which):
    buffer = pools[which].allocate(BYTES, stream=streams[which])
    out = np.zeros(BYTES // 4, np.int32)
    check(driver.cuCtxSetCurrent(None))
    try:
        buffer.copy_from(np.arange(BYTES // 4, dtype=np.int32), stream=streams[which])
        buffer.copy_to(out, stream=streams[which])
        streams[which].sync()
    finally:
        devices[0].set_current()
    assert out.tolist() == list(range(BYTES // 4))
    buffer.close()


@pytest.mark.cpu  # Pools of GPUs grant full access or none.
def test_read_access_is_enough_for_the_source(devices, pools, streams):
    a, b = (pool.allocate(BYTES, stream=stream) for pool, stream in zip(pools, streams))
    for buffer, stream in ((a, streams[0]), (b, streams[1])):
        buffer.fill(np.int32(7 if buffer is b else 8), stream=stream)
        stream.sync()
    rights = driver.CUmemAccessDesc()
    rights.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    rights.location.id = 0
    rights.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READ
    check(driver.cuMemPoolSetAccess(pools[1].handle, [rights], 1))
    a.copy_from(b, stream=streams[0])
    assert numbers(a, streams[0]) == [7]
    with pytest.raises(CUDAError, match="(?s)INVALID_VALUE.*device 0 has no access"):
        a.copy_to(b, stream=streams[0])
    a.close()
    b.close()


def test_copies_of_different_sizes_or_to_a_closed_buffer_are_refused(pools, streams):
    a, b = (pool.allocate(size, stream=s) for pool, size, s in zip(pools, (64, 32), streams))
    with pytest.raises(ValueError, match="same size"):
        a.copy_to(b, stream=streams[0])
    b.close()
    with pytest.raises(RuntimeError, match="closed"):
        a.copy_to(b, stream=streams[1])
    a.close()


def test_kernels_use_memory_with_access(devices, pools, streams, code):
    """Access is queried, granted and revoked; nothing is launched without it, because it would fault."""
    pool = pools[1]
    peers = pool.peer_accessible_by
    assert set(peers) == set() and 0 not in peers and 1 not in peers
    peers.add(devices[0])
    assert set(pool.peer_accessible_by) == {devices[0]} and 0 in peers and devices[0] in peers
    with pool.allocate(BYTES, stream=streams[1]) as buffer:
        buffer.fill(np.int32(5), stream=streams[1])
        streams[0].wait(streams[1])
        launch(streams[0], LaunchConfig(grid=1, block=32), code[0].get_kernel("add"), buffer, ctypes.c_int32(2))
        # Freed in the stream of device 1, after the kernel of device 0.
        streams[1].wait(streams[0])
        assert numbers(buffer, streams[1]) == [7]
    for change in (
        lambda: setattr(pool, "peer_accessible_by", []),
        lambda: setattr(pool, "peer_accessible_by", [0]),
        lambda: peers.discard(0),
        lambda: setattr(pool, "peer_accessible_by", {devices[0], devices[1]}),
        lambda: peers.remove(devices[0]),
        lambda: peers.update([0]),
        lambda: peers.clear(),
    ):
        before = 0 in peers
        change()
        assert (0 in peers) != before and 1 not in peers
    for wrong, kind in (([99], ValueError), ([0, 99], ValueError), (["x"], TypeError), (3, TypeError)):
        with pytest.raises(kind):
            pool.peer_accessible_by = wrong
        assert set(peers) == set()


def test_memory_outlives_a_kernel_of_the_other_device(devices, pools, streams, code):
    """Allocated on device 1, used by a kernel of device 0, closed on a stream of either device, or dropped."""
    pools[1].peer_accessible_by = [0]
    slow = code[0].get_kernel("slow")
    for how in ("own", "other", "forgotten"):
        turns = devices[0].allocate(4, stream=streams[0])
        turns.copy_from(ctypes.c_int32(TURNS), stream=streams[0])
        buffer = pools[1].allocate(4096, stream=streams[1])
        streams[0].wait(streams[1])
        launch(streams[0], LaunchConfig(grid=1, block=1), slow, buffer, turns)
        if how == "own":
            buffer.close()
        elif how == "other":
            buffer.close(streams[0])
        del buffer
        freeing = streams[0] if how == "other" else streams[1]
        value = (ctypes.c_int32 * 1)()
        check(driver.cuMemcpyDtoHAsync(ctypes.addressof(value), turns.handle, 4, freeing.handle))
        freeing.sync()
        assert value[0] == TURNS + 1
        turns.close()
    pools[1].peer_accessible_by = []


def test_close_on_a_stream_of_the_other_device(devices, pools, streams):
    """The memory is freed in stream order, whichever device is current."""
    for number in (0, 1):
        for current in devices:
            current.set_current()
            buffer = pools[number].allocate(BYTES, stream=streams[number])
            buffer.fill(1, stream=streams[number])
            buffer.close(streams[1 - number])
            assert buffer.is_closed
            streams[1 - number].sync()
            assert pools[number].attributes.used_mem_current == 0
            buffer = pools[number].allocate(BYTES, stream=streams[number])
            buffer.set_deallocation_stream(streams[1 - number])
            del buffer
            streams[1 - number].sync()
            assert pools[number].attributes.used_mem_current == 0


def test_default_streams_belong_to_the_memorys_device(devices, pools):
    for current in devices:
        current.set_current()
        for number, device in enumerate(devices):
            with pools[number].allocate(BYTES, stream=device.default_stream) as buffer:
                buffer.fill(np.int32(6), stream=device.default_stream)
                assert numbers(buffer, device.default_stream) == [6]
        assert Device() == current


@pytest.mark.parametrize("default", [LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM], ids=["legacy", "own"])
@pytest.mark.parametrize("allocated", ["stream", "default"])
@pytest.mark.parametrize("part", [False, True], ids=["whole", "part"])
def test_default_stream_of_another_device_is_waited_for(devices, shared, streams, code, default, allocated, part):
    """All default streams have the same handle: for a launch it means the current device's, which is not the memory's
    here.
    """
    turns = shared[1].allocate(4, stream=streams[1])
    turns.fill(np.int32(20 * TURNS), stream=streams[1])
    streams[1].sync()
    buffer = shared[0].allocate(4096, stream=streams[0] if allocated == "stream" else default)
    streams[0].sync()
    devices[0].sync()
    used = buffer[:4096] if part else buffer
    devices[1].set_current()
    launch(default, LaunchConfig(grid=1, block=1), code[1].get_kernel("slow"), used, turns)
    done = default.record()
    assert done.device == devices[1]
    devices[0].set_current()
    # Freed on device 0, whose default stream is not ordered after that kernel.
    used.close()
    buffer.close()
    (streams[0] if allocated == "stream" else default).sync()
    assert done.is_done
    assert shared[0].attributes.used_mem_current == 0
    turns.close()
    devices[1].sync()


def test_default_streams_are_equal_and_belong_to_the_current_context(devices):
    legacy = Stream.from_handle(1)
    found = []
    for device in devices:
        device.set_current()
        assert device.default_stream == LEGACY_DEFAULT_STREAM == legacy != PER_THREAD_DEFAULT_STREAM
        assert hash(legacy) == hash(LEGACY_DEFAULT_STREAM)
        for stream in (legacy, LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM):
            assert stream.device == device and stream.record().device == device
        found.append((legacy.context, LEGACY_DEFAULT_STREAM.context))
    assert found[0][0] == found[0][1] != found[1][0] == found[1][1]
    # Streams of two devices wait for each other, whichever is current.
    other = devices[0].create_stream()
    LEGACY_DEFAULT_STREAM.wait(other)
    other.wait(LEGACY_DEFAULT_STREAM)
    other.close()


@pytest.mark.parametrize("kind", ["pinned", "legacy", "managed"])
def test_host_memory_is_accessible_from_all_devices(devices, streams, code, kind):
    """Also where another device was current when it was allocated."""
    kinds = {"pinned": PinnedMemoryResource, "legacy": LegacyPinnedMemoryResource, "managed": ManagedMemoryResource}
    try:
        resource = kinds[kind]()
    except CUDAError as error:
        pytest.skip(f"the driver has none: {error}")
    for first in (0, 1):
        devices[first].set_current()
        buffer = resource.allocate(BYTES, stream=streams[first])
        buffer.fill(0, stream=streams[first])
        streams[1 - first].wait(streams[first])
        for number in (1 - first, first):
            kernel = code[number].get_kernel("add")
            launch(streams[number], LaunchConfig(grid=1, block=32), kernel, buffer, ctypes.c_int32(3))
            streams[number].sync()
        assert np.unique(np.from_dlpack(buffer).view(np.int32)).tolist() == [6]
        buffer.close(streams[1 - first])


def test_memory_mapped_on_both_devices(devices, streams, code):
    resource = VirtualMemoryResource(1, {"peers": [0]})
    assert resource.device_id == 1
    buffer = resource.allocate(BYTES, stream=streams[1])
    buffer.fill(0, stream=streams[1])
    streams[1].sync()
    for number in (0, 1):
        launch(
            streams[number], LaunchConfig(grid=1, block=32), code[number].get_kernel("add"), buffer, ctypes.c_int32(4)
        )
        streams[number].sync()
    assert numbers(buffer[:BYTES], streams[1]) == [8]
    buffer.close(streams[0])


def test_managed_memory_with_a_preferred_device(devices, streams):
    for number in (0, 1):
        try:
            resource = ManagedMemoryResource({"preferred_location": number})
        except CUDAError as error:
            pytest.skip(f"the driver has none: {error}")
        buffer = resource.allocate(BYTES, stream=streams[number])
        assert buffer.device_id == number and buffer.__dlpack_device__()[0] == 13
        try:
            buffer.accessed_by = devices
        except CUDAError as error:
            # Drivers of CUDA 13.0 accept no advice for pool memory.
            assert "CUDA_ERROR_NOT_SUPPORTED" in str(error)
        else:
            assert set(buffer.accessed_by) == set(devices)
        for device in devices:
            buffer.prefetch(device, stream=streams[number])
        utils.prefetch_batch(streams[number], [buffer], [devices[1 - number]])
        buffer.fill(3, stream=streams[number])
        streams[number].sync()
        assert np.unique(np.from_dlpack(buffer).view(np.uint8)).tolist() == [3]
        buffer.close(streams[1 - number])


def test_threads_with_one_device_each(devices, shared):
    errors = []

    def work(number):
        try:
            devices[number].set_current()
            stream = devices[number].create_stream()
            for _ in range(50):
                mine = shared[number].allocate(BYTES, stream=stream)
                theirs = shared[1 - number].allocate(BYTES, stream=stream)
                theirs.fill(number, stream=stream)
                mine.copy_from(theirs, stream=stream)
                assert numbers(mine, stream) == [number * 0x01010101]
                theirs.close()
                mine.close()
            stream.close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n % 2,)) for n in range(4)]
    run_all(threads)
    assert errors == []
