"""cuda.core.Buffer: slices, which share the memory of the whole buffer."""

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest
from cuda.core import Buffer, MemoryResource, PinnedMemoryResource

from helpers.buffers import contents
from helpers.threads import run_all

pytestmark = pytest.mark.strict_abi


def test_slice_shares_memory(pool, stream):
    whole = pool.allocate(100, stream=stream)
    whole.copy_from(bytes(range(100)), stream=stream)
    data = bytes(range(100))
    for key in (
        slice(None),
        slice(10, 20),
        slice(-10, None),
        slice(None, -90),
        slice(90, 200),
        slice(50, 50),
        slice(60, 50),
    ):
        with whole[key] as part:
            assert type(part) is Buffer and part.size == len(data[key])
            assert part.handle == whole.handle + key.indices(100)[0]
            assert contents(part, stream) == data[key]
            assert part.owner is whole and part.memory_resource is pool
            assert (part.device_id, part.is_device_accessible, part.is_host_accessible) == (0, True, False)
            assert part.__dlpack_device__() == whole.__dlpack_device__()
    assert whole[:] == whole and hash(whole[:]) == hash(whole) and whole[1:] != whole
    whole[10:20].fill(255, stream=stream)
    assert contents(whole, stream) == data[:10] + b"\xff" * 10 + data[20:]
    inner = whole[10:30][5:15]
    assert inner.handle == whole.handle + 15 and contents(inner, stream) == (b"\xff" * 5 + data[20:25])
    fresh = inner.copy_to(stream=stream)
    assert fresh.memory_resource is pool and fresh.size == 10
    inner.close()
    fresh.close()
    whole.close()


def test_only_slices_with_step_one_are_supported(pool, stream):
    with pool.allocate(100, stream=stream) as whole:
        for wrong in (0, "a", None, (slice(1), slice(2))):
            with pytest.raises(TypeError, match="slices"):
                whole[wrong]
        for step in (2, -1):
            with pytest.raises(ValueError, match="step"):
                whole[::step]
        for use in (len, iter):
            with pytest.raises(TypeError):
                use(whole)
        with pytest.raises(BufferError, match="device"):
            memoryview(whole)
        assert bool(whole)
    with pytest.raises(RuntimeError, match="closed"):
        whole[:1]


def test_slice_keeps_parent_memory_alive(pool, stream):
    used = pool.attributes.used_mem_current
    whole = pool.allocate(1000, stream=stream)
    whole.fill(7, stream=stream)
    part, inner = whole[:100], whole[50:100][10:20]
    whole.close()
    assert whole.is_closed and pool.attributes.used_mem_current == used + 1000
    assert contents(part, stream) == b"\x07" * 100
    part.close()
    part.close()
    assert part.is_closed and part.owner is None
    assert contents(inner, stream) == b"\x07" * 10
    alive = weakref.ref(whole)
    del whole, part
    gc.collect()
    assert alive() is not None and pool.attributes.used_mem_current == used + 1000
    del inner
    gc.collect()
    stream.sync()
    assert alive() is None and pool.attributes.used_mem_current == used


def test_free_waits_for_work_on_slices(pool, device, stream):
    """The memory is freed after the copies of its slices, on whatever stream they run."""
    n = 1 << 20
    other, third = device.create_stream(), device.create_stream()
    whole = pool.allocate(n, stream=stream)
    whole.fill(5, stream=stream)
    stream.sync()
    out = PinnedMemoryResource().allocate(n // 2, stream=stream)
    stream.sync()
    part = whole[n // 2 :]
    part.copy_to(out, stream=other)
    part.close(third)
    whole.close()
    del part, whole
    again = pool.allocate(n, stream=stream)
    again.fill(9, stream=stream)
    other.sync()
    assert ctypes.string_at(out.handle, n // 2) == b"\x05" * (n // 2)
    again.close()


def test_slices_of_memory_from_a_python_resource(stream):
    class Host(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = False, True, -1

        def __init__(self):
            self.freed = []

        def allocate(self, size, *, stream=None):
            self.memory = ctypes.create_string_buffer(size)
            return Buffer.from_handle(ctypes.addressof(self.memory), size, mr=self)

        def deallocate(self, ptr, size, *, stream):
            self.freed.append((ptr, size))

    resource = Host()
    whole = resource.allocate(64)
    address = whole.handle
    part = whole[8:]
    whole.close()
    assert resource.freed == [] and part.is_host_accessible and not part.is_device_accessible
    assert np.from_dlpack(part).shape == (56,)
    gc.collect()
    part.close()
    assert resource.freed == [(address, 64)]


def test_deallocate_receives_a_closed_stream(device):
    """The Python resource gets the stream of the buffer, even when its object was closed before."""

    class Host(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = False, True, -1
        streams = []

        def deallocate(self, ptr, size, *, stream):
            self.streams.append(int(stream.handle))
            stream.sync()

    for late in (False, True):
        stream = device.create_stream()
        handle = int(stream.handle)
        buffer = Buffer.from_handle(4096, 64, mr=Host(), stream=None if late else stream)
        if late:
            buffer.set_deallocation_stream(stream)
        stream.close()
        buffer.close()
        assert Host.streams.pop() == handle


def test_cycle_through_a_slice_is_collected(pool, stream):
    class Mine(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = False, True, -1
        released = 0

        def deallocate(self, ptr, size, *, stream):
            Mine.released += 1

    owner = Mine()
    owner.part = Buffer.from_handle(4096, 64, mr=owner)[8:]
    alive = weakref.ref(owner)
    del owner
    gc.collect()
    assert alive() is None and Mine.released == 1


def test_slices_in_threads(pool, stream):
    used = pool.attributes.used_mem_current
    wrong = []

    def work(whole):
        try:
            for i in range(2000):
                part = whole[i % 50 : 64 + i % 50]
                assert part.size == 64 and part[:8].size == 8
        except BaseException as error:
            wrong.append(error)

    whole = pool.allocate(4096, stream=stream)
    threads = [threading.Thread(target=work, args=(whole,)) for _ in range(8)]
    run_all(threads)
    assert not wrong
    del whole, threads
    gc.collect()
    stream.sync()
    assert pool.attributes.used_mem_current == used
