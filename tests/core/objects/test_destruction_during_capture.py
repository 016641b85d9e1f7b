"""Objects destroyed while a graph is captured: the capture stays valid, and their resources are freed.

The driver refuses calls that may wait or allocate to a capturing thread, and to all threads during a global capture,
and invalidates the capture. That is right for explicit requests, not for objects that happen to be destroyed meanwhile.
"""

import contextlib
import ctypes
import gc
import weakref

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import (
    Buffer,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    LegacyPinnedMemoryResource,
    MemoryResource,
    ObjectCode,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
    Program,
    StreamOptions,
    VirtualMemoryResource,
)
from cuda.core._memory._legacy import _SynchronousMemoryResource
from cuda.core._utils.cuda_utils import CUDAError

from helpers.device import check, on_cpu_device
from helpers.device_code import library_of
from helpers.threads import in_a_thread

# Too large to be part of a block that the driver caches.
SIZE = 4 << 20
SOURCE = 'extern "C" __global__ void nothing() {}'
GLOBAL = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
THREAD = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL


class Own(MemoryResource):
    """A Python memory resource that frees with a call that captures prohibit."""

    is_device_accessible = True
    is_host_accessible = False
    device_id = 0

    def allocate(self, size, *, stream=None):
        return Buffer.from_handle(int(check(driver.cuMemAlloc(size))), size, mr=self)

    def deallocate(self, ptr, size, *, stream=None):
        # This may be a thread that never used the device.
        Device(0).set_current()
        check(driver.cuMemFree(int(ptr)))


RESOURCES = {
    "page-locked": lambda device: LegacyPinnedMemoryResource(),
    "virtual": VirtualMemoryResource,
    "synchronous": _SynchronousMemoryResource,
    "python": lambda device: Own(),
    "device pool": lambda device: DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25)),
    "page-locked pool": lambda device: PinnedMemoryResource(PinnedMemoryResourceOptions(max_size=1 << 25)),
}


@pytest.fixture(scope="module")
def code():
    Device(0).set_current()
    return Program(SOURCE, "c++").compile("ptx").code


@contextlib.contextmanager
def capture(stream, mode=GLOBAL):
    """Captures a stream; fails if the capture is invalidated. Yields a list that receives the number of nodes."""
    handle = driver.CUstream(int(stream.handle))
    # Garbage of other tests, such as another package's arrays, would invalidate the capture if it were collected in it.
    gc.collect()
    check(driver.cuStreamBeginCapture(handle, mode))
    nodes = []
    try:
        yield nodes
    finally:
        ended = driver.cuStreamEndCapture(handle)
    graph = check(ended)
    nodes.append(check(driver.cuGraphGetNodes(graph))[1])
    check(driver.cuGraphDestroy(graph))


def is_there(address):
    """Whether the driver knows an address."""
    attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    status, *_ = driver.cuPointerGetAttribute(attribute, address)
    assert int(status) in (0, int(driver.CUresult.CUDA_ERROR_INVALID_VALUE))
    return int(status) == 0


def here(work):
    work()


WHERE = pytest.mark.parametrize("where", [here, in_a_thread], ids=["here", "in_a_thread"])


def close(kept):
    while kept:
        kept.pop().close()


def forget(kept):
    kept.clear()


def collect(kept):
    """Makes garbage that only the collector frees."""
    kept.append(kept)
    cycle = [kept.copy()]
    cycle.append(cycle)
    kept.clear()
    del cycle
    gc.collect()


@WHERE
@pytest.mark.parametrize("end", [close, forget, collect])
@pytest.mark.parametrize("kind", list(RESOURCES))
def test_memory_is_freed_during_a_capture(device, kind, end, where):
    captured, stream, other = (device.create_stream() for _ in range(3))
    resource = RESOURCES[kind](device)
    buffers = [resource.allocate(SIZE, stream=stream) for _ in range(2)]
    for buffer in buffers:
        # Waited for, or its stream waits for it.
        buffer.fill(1, stream=stream)
        buffer.fill(2, stream=other)
    addresses = [int(buffer.handle) for buffer in buffers]
    assert all(map(is_there, addresses))
    del buffer
    resources = [resource] if "pool" in kind else []
    del resource

    def end_all():
        end(buffers)
        end(resources)

    with capture(captured) as nodes:
        where(end_all)
        assert not buffers
    assert nodes == [0]
    if "pool" in kind:
        # Stream-ordered.
        device.sync()
    assert not any(map(is_there, addresses))


@pytest.mark.parametrize("kind", ["page-locked", "virtual", "synchronous", "python"])
@pytest.mark.parametrize("mode", [GLOBAL, THREAD], ids=["global", "thread"])
def test_memory_of_the_captured_stream(device, kind, mode):
    """Nothing runs in the stream, so there is nothing to wait for."""
    captured, other = device.create_stream(), device.create_stream()
    buffer = RESOURCES[kind](device).allocate(SIZE, stream=captured)
    address = int(buffer.handle)
    # It cannot wait for work that is not captured.
    buffer.fill(1, stream=other)
    with capture(captured, mode):
        buffer.close()
    assert not is_there(address)


@pytest.mark.parametrize("kind", ["page-locked", "virtual"])
def test_memory_of_the_default_stream(device, kind):
    """The default stream cannot be waited for while a stream that it waits for is captured."""
    captured = device.create_stream(options=StreamOptions(nonblocking=False))
    other = device.create_stream()
    buffer = RESOURCES[kind](device).allocate(SIZE)
    address = int(buffer.handle)
    buffer.fill(1, stream=other)
    with capture(captured):
        buffer.close()
    assert not is_there(address)


@WHERE
@pytest.mark.parametrize("kind", ["page-locked", "virtual", "synchronous"])
def test_memory_freed_by_address(device, kind, where):
    captured, stream = device.create_stream(), device.create_stream()
    resource = RESOURCES[kind](device)
    if kind == "synchronous":
        address = int(check(driver.cuMemAlloc(SIZE)))
    elif kind == "page-locked":
        address = int(check(driver.cuMemHostAlloc(SIZE, 0)))
    else:
        buffer = resource.allocate(SIZE, stream=stream)
        address = int(buffer.handle)
    with capture(captured):
        where(lambda: resource.deallocate(address, SIZE, stream=stream))
    assert not is_there(address)
    if kind == "virtual":
        with pytest.raises(CUDAError, match="is no allocation"):
            buffer.close()


@WHERE
def test_virtual_memory_resource_with_its_last_buffer(device, where):
    captured, stream = device.create_stream(), device.create_stream()
    kept = [VirtualMemoryResource(device).allocate(SIZE, stream=stream)]
    address = int(kept[0].handle)
    with capture(captured):
        where(lambda: collect(kept))
    assert not is_there(address)


@WHERE
def test_object_code_is_unloaded(device, code, where):
    captured, stream = device.create_stream(), device.create_stream()
    loaded = ObjectCode.from_ptx(code)
    kept = [loaded, loaded.get_kernel("nothing")]
    # Loaded in this context, too.
    assert kept[1].attributes.num_regs >= 0
    library = library_of(loaded)
    del loaded
    with capture(captured):
        where(lambda: collect(kept))
    if on_cpu_device():
        # A GPU's driver does not detect destroyed handles.
        status, _ = driver.cuLibraryGetModule(library)
        assert status == driver.CUresult.CUDA_ERROR_INVALID_HANDLE
    stream.sync()


@WHERE
def test_streams_and_events_are_destroyed(device, where):
    captured = device.create_stream()
    stream = device.create_stream()
    kept = [stream.record(), stream]
    del stream
    with capture(captured):
        where(lambda: close(kept))


def test_explicit_requests_stay_refused(device):
    """The thread's capture mode is unchanged before and after an object's destruction."""
    captured = device.create_stream()
    buffer = LegacyPinnedMemoryResource().allocate(SIZE)
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    former = check(driver.cuThreadExchangeStreamCaptureMode(mode))
    try:
        with capture(captured):
            buffer.close()
        assert check(driver.cuThreadExchangeStreamCaptureMode(mode)) == mode
    finally:
        check(driver.cuThreadExchangeStreamCaptureMode(former))
    refused = driver.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
    with pytest.raises(RuntimeError, match="CAPTURE_INVALIDATED"), capture(captured):
        status, _ = driver.cuMemAlloc(SIZE)
        assert status == refused


def test_completed_array_copies_release_their_arrays(device):
    """Each copy prunes completed ones. Where it may not query, they count as pending."""
    captured, stream = device.create_stream(), device.create_stream()
    with device.allocate(64, stream=stream) as first, device.allocate(64, stream=stream) as second:
        first.fill(0, stream=stream)
        stream.sync()
        # Page-locked, so that the copy may still read it when the call returns.
        memory = LegacyPinnedMemoryResource().allocate(64)
        array = np.frombuffer((ctypes.c_uint8 * 64).from_address(int(memory.handle)), np.uint8)
        reference = weakref.ref(array)
        first.copy_from(array, stream=stream)
        del array
        assert reference() is not None
        check(driver.cuStreamSynchronize(driver.CUstream(int(stream.handle))))
        with capture(captured) as nodes:
            second.copy_from(first, stream=captured)
            assert reference() is None
        assert nodes == [1]
        memory.close()


def test_idle_streams_are_pruned(device):
    """Streams are queried where many used a buffer."""
    captured, stream = device.create_stream(), device.create_stream()
    with device.allocate(64, stream=stream) as buffer:
        stream.sync()
        for _ in range(8):
            with contextlib.closing(device.create_stream()) as used:
                buffer.fill(0, stream=used)
        with capture(captured) as nodes:
            buffer.fill(1, stream=captured)
        assert nodes == [1]


@WHERE
def test_array_of_a_buffer_waits_for_its_streams(device, where):
    """The consumer's stream waits for the streams with pending work, which are queried."""
    captured, stream, used, consumer = (device.create_stream() for _ in range(4))
    with device.allocate(64, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        buffer.fill(1, stream=used)
        made = []
        with capture(captured) as nodes:
            where(lambda: made.append(buffer.__dlpack__(stream=int(consumer.handle))))
        assert nodes == [0]
        assert made
        made.clear()
