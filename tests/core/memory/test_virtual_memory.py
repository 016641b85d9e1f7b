"""cuda.core: VirtualMemoryResource, and buffers that grow."""

import ctypes
import dataclasses
import gc
import os

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import Buffer, Device, VirtualMemoryResource, VirtualMemoryResourceOptions
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.typing import VirtualMemoryAccessType

from helpers.device import check, on_cpu_device

MIB = 1 << 20


@pytest.fixture
def resource(device):
    return VirtualMemoryResource(device)


@pytest.fixture(scope="module")
def unit(device):
    """The granularity of sizes."""
    with VirtualMemoryResource(device).allocate(1) as buffer:
        return buffer.size


def contents(buffer, stream):
    out = np.empty(buffer.size, np.uint8)
    buffer.copy_to(out, stream=stream)
    stream.sync()
    return out


def test_sizes_are_rounded_up(resource, device, stream, unit):
    assert unit > 1 and unit & (unit - 1) == 0
    assert (resource.device_id, resource.device) == (0, device)
    assert resource.is_device_accessible and not resource.is_host_accessible and not resource.is_managed
    assert repr(resource) == f"<VirtualMemoryResource device={device!r}>"
    for given in (1, unit, unit + 1):
        with resource.allocate(given, stream=stream) as buffer:
            assert type(buffer) is Buffer and buffer.memory_resource is resource
            assert buffer.size == -(-given // unit) * unit
            assert buffer.device_id == 0 and buffer.__dlpack_device__() == (2, 0)
            buffer.fill(3, stream=stream)
            assert (contents(buffer, stream) == 3).all()
    with resource.allocate(0) as buffer:
        assert (buffer.handle, buffer.size) == (0, 0)


def test_memory_stays_allocated_while_streams_use_it(resource, device, unit):
    streams = [device.create_stream() for _ in range(2)]
    with device.allocate(unit, stream=streams[0]) as there:
        for turn in range(5):
            source = resource.allocate(unit, stream=streams[0])
            source.fill(turn, stream=streams[1])
            there.copy_from(source, stream=streams[1])
            source.close()
            assert (contents(there, streams[1]) == turn).all()


def test_growing_keeps_the_contents(resource, stream, unit):
    buffer = resource.allocate(unit, stream=stream)
    for smaller in (0, 1, unit):
        assert resource.modify_allocation(buffer, smaller) is buffer and buffer.size == unit
    expected = np.zeros(0, np.uint8)
    for turn in range(1, 5):
        buffer.fill(turn, stream=stream)
        expected = np.full(buffer.size, turn, np.uint8)
        grown = resource.modify_allocation(buffer, turn * unit + 1)
        if grown is not buffer:
            assert buffer.is_closed and (buffer.handle, buffer.size) == (0, 0)
        assert grown.size == (turn + 1) * unit and grown.memory_resource is resource
        assert (contents(grown, stream)[: expected.size] == expected).all()
        buffer = grown
    grown.fill(77, stream=stream)
    assert (contents(grown, stream) == 77).all()
    address = grown.handle
    grown.close()
    # All of it was freed, once.
    with pytest.raises(CUDAError, match="INVALID_VALUE"):
        resource.deallocate(address, 5 * unit)


def test_growth_in_place_if_possible(device, stream, unit):
    resource = VirtualMemoryResource(device, {"addr_hint": 1 << 44})
    buffer = resource.allocate(unit, stream=stream)
    if buffer.handle != 1 << 44:
        pytest.skip("the driver did not honour the address hint")
    buffer.fill(6, stream=stream)
    grown = resource.modify_allocation(buffer, 3 * unit)
    assert grown is buffer and (buffer.handle, buffer.size) == (1 << 44, 3 * unit)
    buffer[unit:].fill(7, stream=stream)
    found = contents(buffer, stream)
    assert (found[:unit] == 6).all() and (found[unit:] == 7).all()
    # The following addresses are taken: all of its pieces move.
    blocker = check(driver.cuMemAddressReserve(unit, 0, (1 << 44) + 3 * unit, 0))
    try:
        if int(blocker) != (1 << 44) + 3 * unit:
            pytest.skip("the driver did not honour the address hint")
        moved = resource.modify_allocation(buffer, 4 * unit)
        assert moved is not buffer and buffer.is_closed and moved.size == 4 * unit
        assert (contents(moved, stream)[: 3 * unit] == found).all()
        moved.close()
    finally:
        check(driver.cuMemAddressFree(blocker, unit))
    # Nothing remains mapped at the former addresses.
    assert Buffer.from_handle(1 << 44, unit).device_id == -1


def test_buffer_in_use_does_not_grow(resource, unit, stream):
    buffer = resource.allocate(unit)
    part = buffer[:16]
    with pytest.raises(RuntimeError, match="cannot grow while"):
        resource.modify_allocation(buffer, 2 * unit)
    part.close()
    array = buffer.__dlpack__()
    with pytest.raises(RuntimeError, match="cannot grow while"):
        resource.modify_allocation(buffer, 2 * unit)
    del array
    gc.collect()
    grown = resource.modify_allocation(buffer, 2 * unit)
    assert grown.size == 2 * unit
    grown.close()
    for closed in (buffer, grown):
        with pytest.raises(RuntimeError, match="closed"):
            resource.modify_allocation(closed, 3 * unit)


def test_failed_growth_leaves_the_buffer_unchanged(resource, device, stream, unit):
    buffer = resource.allocate(unit)
    with pytest.raises(CUDAError, match="OUT_OF_MEMORY"):
        resource.modify_allocation(buffer, 1 << 50)
    other = VirtualMemoryResource(device).allocate(unit)
    with device.allocate(100, stream=stream) as pooled:
        for foreign in (other, pooled, Buffer.from_handle(buffer.handle, unit)):
            with pytest.raises(CUDAError, match="INVALID_VALUE"):
                resource.modify_allocation(foreign, 2 * unit)
            assert not foreign.is_closed
        pooled.fill(1, stream=stream)
    for value, error in [("x", TypeError), (None, TypeError), (-1, OverflowError), (1 << 70, OverflowError)]:
        with pytest.raises(error, match="new_size"):
            resource.modify_allocation(buffer, value)
    with pytest.raises(TypeError, match="buf.*int"):
        resource.modify_allocation(3, 10)
    with pytest.raises(TypeError, match="config.*int"):
        resource.modify_allocation(buffer, 10, 3)
    buffer.fill(1, stream=stream)
    assert (contents(buffer, stream) == 1).all()
    buffer.close()
    other.close()


def test_growth_with_another_config(resource, unit):
    buffer = resource.allocate(unit)
    config = VirtualMemoryResourceOptions(granularity="minimum")
    grown = resource.modify_allocation(buffer, 2 * unit, config)
    assert resource.config is config and grown.size >= 2 * unit
    with pytest.raises(CUDAError, match="OUT_OF_MEMORY"):
        resource.modify_allocation(grown, 1 << 50, {"handle_type": None})
    assert resource.config is config
    grown.close()


def test_options_are_checked(device):
    options = VirtualMemoryResourceOptions()
    assert dataclasses.asdict(options) == {
        "allocation_type": "pinned",
        "location_type": "device",
        "handle_type": "posix_fd",
        "granularity": "recommended",
        "gpu_direct_rdma": False,
        "addr_hint": 0,
        "addr_align": None,
        "peers": (),
        "self_access": "rw",
        "peer_access": "rw",
    }
    assert VirtualMemoryResource(device, options).config is options
    for field in ("allocation_type", "location_type", "handle_type", "granularity", "self_access", "peer_access"):
        for wrong in ("foo", 3, "RW"):
            with pytest.raises(ValueError, match=f"{field}.*expected one of"):
                VirtualMemoryResource(device, {field: wrong})
    wrong = [
        (TypeError, "unexpected", {"foo": 1}),
        (TypeError, "config.*int", 3),
        (TypeError, "peers is of type int; expected a sequence", {"peers": 3}),
        (TypeError, "peers", {"peers": ["x"]}),
        (ValueError, "peers.*99", {"peers": [99]}),
        (ValueError, "addr_align.*power of two", {"addr_align": 3}),
        (TypeError, "addr_hint", {"addr_hint": "x"}),
    ]
    for error, text, config in wrong:
        with pytest.raises(error, match=text):
            VirtualMemoryResource(device, config)
    for number, error in [(99, ValueError), (-1, ValueError), ("x", TypeError)]:
        with pytest.raises(error, match="device_id"):
            VirtualMemoryResource(number)
    assert VirtualMemoryResource(None).device == device


def test_alignment(device, unit):
    for align in (unit, 8 * unit):
        with VirtualMemoryResource(device, {"addr_align": align, "peers": [0], "handle_type": None}).allocate(1) as b:
            assert b.handle % align == 0


def test_access_rights(device, unit):
    for given, wanted in [("rw", 3), (VirtualMemoryAccessType.READ, 1), (None, 0)]:
        with VirtualMemoryResource(device, {"self_access": given}).allocate(1) as buffer:
            place = driver.CUmemLocation()
            place.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
            place.id = 0
            flags = check(driver.cuMemGetAccess(place, driver.CUdeviceptr(buffer.handle)))
            assert int(flags) == wanted


@pytest.mark.cpu
@pytest.mark.parametrize("location", ["host", "host_numa", "host_numa_current"])
def test_host_memory_can_be_mapped(device, stream, unit, location):
    resource = VirtualMemoryResource(device, {"location_type": location, "peers": [device]})
    assert (resource.device_id, resource.device) == (-1, None)
    assert repr(resource) == "<VirtualMemoryResource device=None>"
    assert resource.is_host_accessible and resource.is_device_accessible
    buffer = resource.allocate(1, stream=stream)
    assert (buffer.size, buffer.device_id, buffer.__dlpack_device__()) == (unit, -1, (3, 0))
    view = np.frombuffer((ctypes.c_uint8 * unit).from_address(buffer.handle), np.uint8)
    buffer.fill(5, stream=stream)
    stream.sync()
    assert (view == 5).all()
    view[:10] = 6
    grown = resource.modify_allocation(buffer, 2 * unit)
    assert (contents(grown, stream)[:unit] == [6] * 10 + [5] * (unit - 10)).all()
    plain = Buffer.from_handle(grown.handle, 10)
    assert plain.is_host_accessible and plain.is_device_accessible
    grown.close()
    # Accessible from the host only, unless devices are named.
    assert not VirtualMemoryResource(device, {"location_type": location}).is_device_accessible


def test_invalid_sizes_raise(resource, unit):
    for size, error in [("x", TypeError), (None, TypeError), (-1, OverflowError), (1 << 70, OverflowError)]:
        with pytest.raises(error, match="size"):
            resource.allocate(size)
    with pytest.raises(ValueError, match="address space"):
        resource.allocate((1 << 64) - 1)
    with pytest.raises(CUDAError, match="OUT_OF_MEMORY"):
        resource.allocate(1 << 50)
    with pytest.raises(TypeError, match="stream"):
        resource.allocate(1, stream=3)
    with pytest.raises(CUDAError, match=r"INVALID_VALUE[\s\S]*no allocation of this resource"):
        resource.deallocate(12345, 10)


def test_device_can_allocate_from_it(resource, unit):
    device = Device(0)
    before = device.memory_resource
    try:
        device.memory_resource = resource
        with device.allocate(10) as buffer:
            assert buffer.size == unit and buffer.memory_resource is resource
    finally:
        device.memory_resource = before


def test_freed_memory_can_be_allocated_again(device, unit):
    """Many times over."""
    resource = VirtualMemoryResource(device)
    free = check(driver.cuMemGetInfo())[0]
    for _ in range(50):
        buffer = resource.allocate(8 * unit)
        resource.modify_allocation(buffer, 16 * unit)
        del buffer
    gc.collect()
    # Parallel tests share one GPU.
    if on_cpu_device() or "PYTEST_XDIST_WORKER" not in os.environ:
        assert abs(check(driver.cuMemGetInfo())[0] - free) < 16 * unit


def test_peer_access():
    devices = Device.get_all_devices()
    if len(devices) < 2 or not devices[1].can_access_peer(devices[0]):
        pytest.skip("needs two devices with peer access")
    devices[0].set_current()
    for peers, given, wanted in [([1], "rw", 3), ([devices[1]], "r", 1), ([], "rw", 0), ([1], None, 0)]:
        resource = VirtualMemoryResource(0, {"peers": peers, "peer_access": given})
        with resource.allocate(1) as buffer:
            place = driver.CUmemLocation()
            place.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
            for place.id, rights in [(0, 3), (1, wanted)]:
                assert int(check(driver.cuMemGetAccess(place, driver.CUdeviceptr(buffer.handle)))) == rights
