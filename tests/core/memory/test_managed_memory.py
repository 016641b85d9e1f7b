"""cuda.core: managed memory, advice, prefetching and discarding, and batched calls."""

import gc
import weakref

import pytest
from cuda.bindings import driver
from cuda.core import (
    PER_THREAD_DEFAULT_STREAM,
    Buffer,
    Host,
    LegacyPinnedMemoryResource,
    ManagedBuffer,
    ManagedMemoryResource,
    ManagedMemoryResourceOptions,
    VirtualMemoryResource,
)
from cuda.core._memory._managed_buffer import AccessedBySetProxy
from cuda.core._memory._managed_memory_resource import reset_concurrent_access_warning
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.typing import ManagedMemoryLocationType
from cuda.core.utils import CopyOptions, copy_batch, discard_batch, discard_prefetch_batch, prefetch_batch

from helpers.buffers import host_view
from helpers.device import check

A = driver.CUmem_range_attribute


@pytest.fixture(scope="module")
def resource(device):
    try:
        return ManagedMemoryResource({})
    except CUDAError as error:
        pytest.skip(f"needs pools of managed memory here: {error}")


@pytest.fixture
def managed(resource, stream):
    with resource.allocate(3 * 65536, stream=stream) as buffer:
        stream.sync()
        yield buffer


@pytest.fixture
def advised(resource, stream):
    """Managed memory that accepts advice; drivers of CUDA 13.0 refuse it for pool memory."""
    size = 3 * 65536
    with resource.allocate(size, stream=stream) as buffer:
        stream.sync()
        try:
            buffer.read_mostly = False
        except CUDAError as error:
            assert "CUDA_ERROR_NOT_SUPPORTED" in str(error)
        else:
            yield buffer
            return
    address = check(driver.cuMemAllocManaged(size, driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value))
    buffer = ManagedBuffer.from_handle(address, size)
    yield buffer
    buffer.close()
    check(driver.cuMemFree(address))


def last_prefetch(buffer):
    """The last prefetch location: -1 for the host, -2 for none."""
    at = A.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION
    return int(check(driver.cuMemRangeGetAttribute(4, at, buffer.handle, buffer.size)))


def test_managed_buffer_is_accessible_from_host_and_device(managed, resource, stream):
    assert type(managed) is ManagedBuffer and isinstance(managed, Buffer)
    assert managed.is_managed and managed.is_host_accessible and managed.is_device_accessible
    assert (managed.device_id, managed.__dlpack_device__()) == (-1, (13, 0))
    assert managed.memory_resource is resource
    managed.fill(5, stream=stream)
    stream.sync()
    view = host_view(managed)
    assert (view == 5).all()
    view[0] = 9
    another = managed.copy_to(stream=stream)
    stream.sync()
    assert type(another) is ManagedBuffer and (host_view(another) == view).all()
    assert another != managed
    again = ManagedBuffer.from_handle(managed.handle, managed.size, owner=managed)
    assert again == managed and hash(again) == hash(managed) and again.is_managed
    assert again == Buffer.from_handle(managed.handle, managed.size)
    another.close()


def test_direct_construction_raises(managed):
    for make in (ManagedBuffer, lambda: ManagedBuffer(managed), lambda: ManagedBuffer.__new__(ManagedBuffer, 1)):
        with pytest.raises(RuntimeError, match="from_handle"):
            make()

    class Mine(ManagedBuffer):
        def __new__(cls, nothing):
            raise AssertionError("not called")

    mine = Mine.from_handle(managed.handle, 100, owner=managed)
    mine.note = "kept"
    assert type(mine) is Mine and mine.note == "kept" and mine.owner is managed
    alive = weakref.ref(mine)
    del mine
    gc.collect()
    assert alive() is None


def test_instances_have_attributes_and_cycles_are_collected(resource, stream):
    for make in (
        lambda: resource.allocate(10, stream=stream),
        LegacyPinnedMemoryResource,
        lambda: VirtualMemoryResource(0),
    ):
        made = make()
        made.note = made
        assert made.note is made and made.__dict__ == {"note": made}
        alive = weakref.ref(made)
        del made
        gc.collect()
        assert alive() is None


def test_advice_is_stored(advised, device):
    managed = advised
    assert managed.read_mostly is False and managed.preferred_location is None
    managed.read_mostly = True
    assert managed.read_mostly is True
    managed.read_mostly = 0
    assert managed.read_mostly is False
    for place in (device, Host()):
        managed.preferred_location = place
        assert managed.preferred_location == place
    managed.preferred_location = None
    assert managed.preferred_location is None
    # Advice for a slice applies to its pages.
    part = managed[65536:131072]
    assert type(part) is ManagedBuffer
    part.read_mostly = True
    assert part.read_mostly and not managed.read_mostly
    part.close()
    for wrong in (0, -1, "host", object()):
        with pytest.raises(TypeError, match="preferred_location.*expected a Device, a Host or None"):
            managed.preferred_location = wrong


def test_preferred_host_numa_node(managed, cpu_device):
    if not cpu_device:
        pytest.skip("NUMA nodes differ between machines")
    managed.preferred_location = Host(numa_id=0)
    assert managed.preferred_location == Host(numa_id=0)
    managed.preferred_location = Host.numa_current()
    assert managed.preferred_location == Host(numa_id=0)


# A machine has few nodes, numbered from 0; the last number exceeds a C int.
NO_NODES = [(Host(numa_id=9999), CUDAError), (Host(numa_id=2**31 - 1), CUDAError), (Host(numa_id=2**31), OverflowError)]


@pytest.mark.cpu  # A GPU's driver may accept such a number.
@pytest.mark.parametrize("node, error", NO_NODES, ids=repr)
def test_missing_numa_nodes_raise(managed, device, stream, node, error):
    managed.preferred_location = device
    managed.prefetch(device, stream=stream)
    stream.sync()
    for function, parameter, use in [
        ("ManagedBuffer.prefetch()", "location", lambda: managed.prefetch(node, stream=stream)),
        ("ManagedBuffer.discard_prefetch()", "location", lambda: managed.discard_prefetch(node, stream=stream)),
        ("prefetch_batch()", "locations", lambda: prefetch_batch(stream, [managed], node)),
        ("prefetch_batch()", "locations", lambda: prefetch_batch(stream, [managed, managed], [device, node])),
        ("discard_prefetch_batch()", "locations", lambda: discard_prefetch_batch(stream, [managed], [node])),
        ("ManagedBuffer", "preferred_location", lambda: setattr(managed, "preferred_location", node)),
    ]:
        with pytest.raises(error) as reported:
            use()
        text = str(reported.value)
        assert function in text and parameter in text and str(node.numa_id) in text and "NUMA node" in text
        if error is CUDAError:
            status = "CUDA_ERROR_INVALID_VALUE" if parameter == "preferred_location" else "CUDA_ERROR_INVALID_DEVICE"
            assert text.startswith(status) and "this machine has nodes 0" in text
    stream.sync()
    assert managed.preferred_location == device
    # Access by no node at all.
    with pytest.raises((ValueError, OverflowError), match="accessed_by"):
        managed.accessed_by.add(node)
    assert len(managed.accessed_by) == 0


@pytest.mark.cpu
def test_driver_validates_numa_nodes():
    memory = check(driver.cuMemAllocManaged(65536, driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value))
    advice, kinds = driver.CUmem_advise, driver.CUmemLocationType
    place = driver.CUmemLocation()
    place.type = kinds.CU_MEM_LOCATION_TYPE_HOST_NUMA
    stream = check(driver.cuStreamCreate(0))
    for number, known in ((0, True), (9999, False), (-1, False)):
        place.id = number
        (moved,) = driver.cuMemPrefetchAsync(memory, 65536, place, 0, stream)
        (batch,) = driver.cuMemPrefetchBatchAsync([memory], [65536], 1, [place], [0], 1, 0, stream)
        (advised,) = driver.cuMemAdvise(memory, 65536, advice.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, place)
        codes = [int(code) for code in (moved, batch, advised)]
        # As for a missing device: invalid device where memory is prefetched, invalid value where advice is given.
        assert codes == ([0, 0, 0] if known else [101, 101, 1])
        # Advice without a location.
        (read,) = driver.cuMemAdvise(memory, 65536, advice.CU_MEM_ADVISE_SET_READ_MOSTLY, place)
        assert int(read) == 0
    check(driver.cuStreamDestroy(stream))
    check(driver.cuMemFree(memory))


def test_accessed_by_is_a_set(advised, device):
    managed = advised
    users = managed.accessed_by
    assert type(users) is AccessedBySetProxy and len(users) == 0 and list(users) == []
    users.add(device)
    users.add(device)
    assert list(users) == [device] and device in users and 0 not in users and Host() not in users
    assert repr(users) == f"AccessedBySetProxy({{{device!r}}})"
    users.add(Host())
    assert users == {device, Host()} and managed.accessed_by == users
    assert users | {1} == {device, Host(), 1} and type(users | {1}) is set
    users.discard(Host())
    users.discard(Host())
    users.discard("nobody")
    assert users == {device}
    with pytest.raises(KeyError):
        users.remove(Host())
    managed.accessed_by = [Host()]
    assert users == {Host()}
    managed.accessed_by |= {device}
    assert users == {Host(), device}
    for wrong, error in [(0, TypeError), (None, TypeError), (Host(0), ValueError), (Host.numa_current(), ValueError)]:
        with pytest.raises(error, match="accessed_by"):
            users.add(wrong)
        with pytest.raises(error, match="accessed_by"):
            managed.accessed_by = [wrong]
        # All or nothing.
        assert users == {Host(), device}
    with pytest.raises(TypeError, match="accessed_by is of type .*; expected an iterable"):
        managed.accessed_by = None
    users.clear()
    assert len(users) == 0


def test_prefetch_is_stream_ordered(managed, device, stream):
    managed.fill(8, stream=stream)
    for place, reported in [(device, 0), (Host(), -1)]:
        managed.prefetch(place, stream=stream)
        stream.sync()
        assert last_prefetch(managed) == reported
    managed.prefetch(device, stream=device.default_stream)
    managed.prefetch(device, stream=PER_THREAD_DEFAULT_STREAM)
    device.default_stream.sync()
    assert last_prefetch(managed) == 0
    stream.sync()
    assert (host_view(managed) == 8).all()
    managed.discard_prefetch(Host(), stream=stream)
    managed.discard(stream=stream)
    managed.fill(4, stream=stream)
    stream.sync()
    assert last_prefetch(managed) == -1 and (host_view(managed) == 4).all()
    for move in (managed.prefetch, managed.discard_prefetch):
        with pytest.raises(ValueError, match="location.*None"):
            move(None, stream=stream)
        for wrong in (0, "host"):
            with pytest.raises(TypeError, match="location.*expected a Device, a Host"):
                move(wrong, stream=stream)
        for wrong in (None, 3):
            with pytest.raises(TypeError, match="stream"):
                move(device, stream=wrong)
    with pytest.raises(CUDAError, match="INVALID_VALUE"):
        managed.discard(stream=device.default_stream)


def test_other_memory_is_refused(device, stream):
    with device.allocate(100, stream=stream) as there:
        wrong = ManagedBuffer.from_handle(there.handle, 100, owner=there)
        assert not wrong.is_managed
        uses = [
            lambda: wrong.prefetch(device, stream=stream),
            lambda: wrong.discard(stream=stream),
            lambda: wrong.discard_prefetch(device, stream=stream),
            lambda: setattr(wrong, "read_mostly", True),
            lambda: setattr(wrong, "preferred_location", device),
            lambda: setattr(wrong, "accessed_by", [device]),
            lambda: wrong.accessed_by.add(device),
        ]
        for use in uses:
            with pytest.raises(ValueError, match="managed"):
                use()
        for name in ("read_mostly", "preferred_location"):
            with pytest.raises(CUDAError, match="INVALID_VALUE"):
                getattr(wrong, name)


def test_use_after_close_raises(resource, device, stream):
    buffer = resource.allocate(100, stream=stream)
    users = buffer.accessed_by
    buffer.close()
    uses = [
        lambda: buffer.read_mostly,
        lambda: setattr(buffer, "read_mostly", True),
        lambda: buffer.preferred_location,
        lambda: setattr(buffer, "preferred_location", None),
        lambda: buffer.accessed_by,
        lambda: setattr(buffer, "accessed_by", []),
        lambda: len(users),
        lambda: users.add(device),
        lambda: buffer.prefetch(device, stream=stream),
        lambda: buffer.discard(stream=stream),
        lambda: buffer.discard_prefetch(device, stream=stream),
        lambda: buffer[:1],
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="closed"):
            use()


def test_empty_buffer_is_not_prefetched(resource, device, stream):
    empty = resource.allocate(0, stream=stream)
    assert type(empty) is ManagedBuffer and (empty.handle, empty.size) == (0, 0)
    empty.prefetch(device, stream=stream)
    empty.discard(stream=stream)
    prefetch_batch(stream, [empty], device)
    discard_batch(stream, [empty, empty])


def test_resource_with_preferred_location(device, stream):
    K = ManagedMemoryLocationType
    cases = [
        ((), None, -1),
        ((0,), (K.DEVICE, 0), 0),
        ((device,), (K.DEVICE, 0), 0),
        ((-1,), (K.HOST, None), -1),
        ((0, "device"), (K.DEVICE, 0), 0),
        ((0, K.DEVICE), (K.DEVICE, 0), 0),
        ((None, "host"), (K.HOST, None), -1),
    ]
    for arguments, preferred, number in cases:
        resource = ManagedMemoryResource(ManagedMemoryResourceOptions(*arguments))
        assert resource.preferred_location == preferred and resource.device_id == number
        assert resource.is_handle_owned and resource.is_managed
        assert resource.is_device_accessible and resource.is_host_accessible
        with resource.allocate(100, stream=stream) as buffer:
            assert buffer.device_id == number and buffer.__dlpack_device__() == (13, 0)
        resource.close()
        assert resource.preferred_location == preferred
        with pytest.raises(RuntimeError, match="ManagedMemoryResource was closed"):
            resource.allocate(1, stream=stream)
    assert not ManagedMemoryResource().is_handle_owned
    for name in ("allocation_handle", "register", "peer_accessible_by", "numa_id"):
        assert not hasattr(ManagedMemoryResource, name)


@pytest.mark.cpu
def test_resource_with_preferred_numa_node(stream):
    for arguments in ((0, "host_numa"), (None, "host_numa")):
        resource = ManagedMemoryResource(ManagedMemoryResourceOptions(*arguments))
        assert resource.preferred_location == (ManagedMemoryLocationType.HOST_NUMA, 0) and resource.device_id == -1
        with resource.allocate(100, stream=stream) as buffer:
            assert buffer.is_managed and buffer.device_id == -1


def test_invalid_preferred_locations_raise(device):
    wrong = [
        (ValueError, "is -2", (-2,)),
        (CUDAError, "INVALID_VALUE", (99,)),
        (ValueError, "HOST", (None, "HOST")),
        (ValueError, "expected the number of a device", (None, "device")),
        (ValueError, "expected the number of a device", (-1, "device")),
        (ValueError, "expected None", (0, "host")),
        (ValueError, "NUMA", (-1, "host_numa")),
    ]
    for error, text, arguments in wrong:
        with pytest.raises(error, match=text):
            ManagedMemoryResource(ManagedMemoryResourceOptions(*arguments))
    with pytest.raises(TypeError, match="preferred_location"):
        ManagedMemoryResourceOptions("x")
    with pytest.raises(TypeError, match="ManagedMemoryResourceOptions"):
        ManagedMemoryResource(3)
    with pytest.raises(TypeError, match="cannot pickle"):
        __import__("pickle").dumps(ManagedMemoryResource())
    reset_concurrent_access_warning()


# ---------------------------------------------------------------------------------------------------------
# Batched calls


@pytest.fixture
def several(resource, device, stream):
    managed = [resource.allocate(70000 + i, stream=stream) for i in range(3)]
    plain = [device.allocate(70000 + i, stream=stream) for i in range(3)]
    yield managed, plain
    for buffer in managed + plain:
        buffer.close()


def test_batched_copies(several, device, stream):
    managed, plain = several
    ways = [
        None,
        CopyOptions(),
        CopyOptions(src_access_order="during_api_call", src_location_hint=Host(), dst_location_hint=device),
        [CopyOptions(), CopyOptions(src_access_order="any"), CopyOptions()],
    ]
    for n, options in enumerate(ways):
        for where in (stream, device.default_stream, PER_THREAD_DEFAULT_STREAM):
            for i, buffer in enumerate(managed):
                buffer.fill(10 * n + i, stream=where)
            copy_batch(where, managed, tuple(plain), options=options)
            for buffer in managed:
                buffer.fill(255, stream=where)
            copy_batch(where, plain, managed, options=options)
            where.sync()
            for i, buffer in enumerate(managed):
                assert (host_view(buffer) == 10 * n + i).all()
    empty = [device.allocate(0, stream=stream)] * 2
    copy_batch(stream, empty, empty)


def test_batched_copies_delay_the_free(several, device, stream):
    """Buffers can be closed at once: they are freed after the copies, on whatever stream they run."""
    managed, plain = several
    other = device.create_stream()
    for i, buffer in enumerate(plain):
        buffer.fill(i + 1, stream=stream)
    stream.sync()
    copy_batch(other, plain, managed)
    for buffer in plain:
        buffer.close(stream)
    fresh = [device.allocate(70000 + i, stream=stream) for i in range(3)]
    for buffer in fresh:
        buffer.fill(99, stream=stream)
    other.sync()
    for i, buffer in enumerate(managed):
        assert (host_view(buffer) == i + 1).all()


def test_batched_prefetches(resource, device, stream):
    # Whole pages of a GPU, so that each can have its own location.
    managed = [resource.allocate(2 << 20, stream=stream) for _ in range(3)]
    stream.sync()
    prefetch_batch(stream, managed, device)
    stream.sync()
    assert [last_prefetch(b) for b in managed] == [0, 0, 0]
    prefetch_batch(stream, managed, [Host(), device, Host()])
    stream.sync()
    assert [last_prefetch(b) for b in managed] == [-1, 0, -1]
    discard_prefetch_batch(stream, managed, (device, Host(), device))
    stream.sync()
    assert [last_prefetch(b) for b in managed] == [0, -1, 0]
    discard_batch(stream, managed)
    prefetch_batch(device.default_stream, managed, Host())
    device.default_stream.sync()
    assert [last_prefetch(b) for b in managed] == [-1, -1, -1]
    # A plain Buffer over managed memory is accepted, and NVIDIA's names.
    plain = Buffer.from_handle(managed[0].handle, managed[0].size, owner=managed[0])
    prefetch_batch(stream=stream, buffers=[plain], locations=device)
    discard_batch(stream=stream, buffers=[plain])
    stream.sync()
    assert last_prefetch(managed[0]) == 0
    plain.close()
    for buffer in managed:
        buffer.close(stream)


def test_invalid_batches_raise(several, device, stream):
    managed, plain = several
    closed = device.create_stream()
    closed.close()
    moves = [
        lambda s, b, p=device: prefetch_batch(s, b, p),
        lambda s, b, p=device: discard_prefetch_batch(s, b, p),
        lambda s, b, p=device: discard_batch(s, b),
        lambda s, b, p=device: copy_batch(s, b, b),
    ]
    for move in moves:
        for wrong, error in [
            ([], ValueError),
            (managed[0], TypeError),
            (iter(managed), TypeError),
            ({1}, TypeError),
            (None, TypeError),
            ([1], TypeError),
            ([managed[0], None], TypeError),
        ]:
            with pytest.raises(error, match="argument"):
                move(stream, wrong)
        for wrong in (None, 3):
            with pytest.raises(TypeError, match="stream"):
                move(wrong, managed)
        with pytest.raises(RuntimeError, match="closed"):
            move(closed, managed)
    for move in moves[:3]:
        with pytest.raises(ValueError, match="managed"):
            move(stream, plain)
    for move in moves[:2]:
        for places, error in [
            ([device], ValueError),
            (None, ValueError),
            ([device, None, device], ValueError),
            (0, TypeError),
            ([0, device, device], TypeError),
        ]:
            with pytest.raises(error, match="locations"):
                move(stream, managed, places)
    for move in moves[1:3]:
        with pytest.raises(CUDAError, match="INVALID_VALUE"):
            move(device.default_stream, managed)
    with pytest.raises(ValueError, match="'srcs' has 3 buffers, 'dsts' 2"):
        copy_batch(stream, managed, plain[:2])
    with pytest.raises(ValueError, match="at index 0 .* 70000 bytes, the destination 70001"):
        copy_batch(stream, managed, plain[::-1][1:] + plain[:1])
    for wrong, error in [
        ([CopyOptions()] * 2, ValueError),
        ([], ValueError),
        (3, TypeError),
        ({}, TypeError),
        ([CopyOptions(), None, CopyOptions()], TypeError),
    ]:
        with pytest.raises(error, match="options"):
            copy_batch(stream, managed, plain, options=wrong)
    managed[1].close()
    for move in moves:
        with pytest.raises(RuntimeError, match="closed"):
            move(stream, managed)
