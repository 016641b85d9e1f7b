"""Kernels, green contexts, managed memory and faults of two devices."""

import contextlib
import ctypes

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import ContextOptions, LaunchConfig, Program, SMResourceOptions, Stream, launch, system
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.system import typing as system_typing

from helpers.device import check, on_cpu_device
from helpers.programs import python
from helpers.two_devices import ONE, SOURCE, after, both_orders


def test_a_kernel_runs_on_the_device_of_the_stream(devices, streams, words, code, located):
    """One kernel object serves both devices, whichever is current."""
    kernel = code.get_kernel("where")
    for device in devices:
        device.set_current()
        for number in (0, 1, 1, 0):
            word = words(number, 99)
            launch(streams[number], ONE, kernel, word.buffer)
            streams[number].sync()
            assert word.get() == [number]


def test_a_kernel_in_the_null_stream_runs_on_the_current_device(devices, words, code, located):
    kernel, null = code.get_kernel("where"), Stream.from_handle(0)
    for number in (0, 1, 0):
        devices[number].set_current()
        word = words(number, 99)
        launch(null, ONE, kernel, word.buffer)
        null.sync()
        assert word.get() == [number]


def test_a_global_variable_has_one_instance_per_device(devices, code, located):
    assert located[0] != located[1]
    modules = []
    for number, device in enumerate(devices):
        device.set_current()
        assert [int(part) for part in check(driver.cuLibraryGetGlobal(code.handle, b"here"))] == [located[number], 4]
        modules.append(int(code.get_module()))
        assert int(check(driver.cuModuleGetGlobal(modules[-1], b"here"))[0]) == located[number]
        value = ctypes.c_int32()
        check(driver.cuMemcpyDtoH(ctypes.addressof(value), located[number], 4))
        assert value.value == number
    assert modules[0] != modules[1]


def test_kernel_attributes_are_of_the_current_or_the_given_device(devices, code):
    kernel = code.get_kernel("increment")
    attribute = driver.CUfunction_attribute
    names = {
        "num_regs": attribute.CU_FUNC_ATTRIBUTE_NUM_REGS,
        "max_threads_per_block": attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        "binary_version": attribute.CU_FUNC_ATTRIBUTE_BINARY_VERSION,
    }
    for number, device in enumerate(devices):
        device.set_current()
        for name, member in names.items():
            value = check(driver.cuKernelGetAttribute(member, kernel.handle, number))
            assert getattr(kernel.attributes, name) == value > 0
            for index in (number, device):
                assert getattr(kernel.attributes[index], name) == value


def test_a_kernel_attribute_is_set_for_one_device(devices, streams, words):
    """cuKernelSetAttribute: "for the requested device"."""
    size = min(device.properties.max_shared_memory_per_block_optin for device in devices)
    kernel = Program(SOURCE, "c++").compile("ptx").get_kernel("dynamic")
    before = kernel.attributes[0].max_dynamic_shared_size_bytes
    if size <= before:
        pytest.skip("needs more shared memory by opt-in")
    name = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    check(driver.cuKernelSetAttribute(name, size, kernel.handle, 1))
    assert kernel.attributes[1].max_dynamic_shared_size_bytes == size
    config = LaunchConfig(grid=1, block=1, shmem_size=size)
    word = words(1, 0)
    launch(streams[1], config, kernel, word.buffer)
    streams[1].sync()
    assert word.get() == [7]
    assert kernel.attributes[0].max_dynamic_shared_size_bytes == before
    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
        launch(streams[0], config, kernel, words(0, 0).buffer)


def test_a_function_attribute_is_set_for_one_device(devices, streams, words):
    size = min(device.properties.max_shared_memory_per_block_optin for device in devices)
    kernel = Program(SOURCE, "c++").compile("ptx").get_kernel("dynamic")
    name = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    functions = []
    for device in devices:
        device.set_current()
        functions.append(check(driver.cuKernelGetFunction(kernel.handle)))

    def values():
        found = []
        for device, function in zip(devices, functions):
            device.set_current()
            found.append(check(driver.cuFuncGetAttribute(name, function)))
        return found

    before = values()
    if size <= before[1]:
        pytest.skip("needs more shared memory by opt-in")
    devices[0].set_current()
    check(driver.cuFuncSetAttribute(functions[0], name, size))
    assert values() == [size, before[1]]
    # The kernel returns what is set for the kernel.
    assert [kernel.attributes[n].max_dynamic_shared_size_bytes for n in (0, 1)] == before
    config = LaunchConfig(grid=1, block=1, shmem_size=size)
    word = words(0, 0)
    launch(streams[0], config, kernel, word.buffer)
    streams[0].sync()
    assert word.get() == [7]
    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
        launch(streams[1], config, kernel, words(1, 0).buffer)


def test_occupancy_is_of_the_current_device(devices, streams, code):
    occupancy = code.get_kernel("increment").occupancy
    clusters = all(device.compute_capability >= (9, 0) for device in devices)
    config = LaunchConfig(grid=4, block=128, cluster=2) if clusters else None
    found = []
    for device in devices:
        device.set_current()
        blocks = occupancy.max_active_blocks_per_multiprocessor(128, 0)
        assert 1 <= blocks <= device.properties.max_threads_per_multiprocessor // 128
        best = occupancy.max_potential_block_size(0, 0)
        assert 1 <= best.max_block_size <= device.properties.max_threads_per_block
        assert best.min_grid_size >= device.properties.multiprocessor_count
        active = [occupancy.max_active_clusters(config, stream=stream) for stream in streams] if clusters else []
        found.append((blocks, best, active))
    # Clusters are those of the stream's device, whichever is current.
    assert found[0][2] == found[1][2]
    if devices[0].name == devices[1].name:
        assert found[0] == found[1]


def test_code_is_dropped_while_kernels_run_on_both_devices(devices, streams, words):
    for device in devices:
        device.set_current()
        mine = words(0, 1), words(1, 1)
        kernel = Program(SOURCE, "c++").compile("ptx").get_kernel("step")
        for stream, word in zip(streams, mine):
            launch(stream, ONE, kernel, word.buffer, *map(ctypes.c_uint32, (3, 1, 5000)))
        del kernel
        for stream, word in zip(streams, mine):
            stream.sync()
            assert word.get() == [after(1, (3, 1))]


@pytest.fixture
def green(devices):
    """A green context of each device with the smallest group of multiprocessors."""
    parts = []
    for device in devices:
        sm = device.resources.sm
        try:
            (part,), _ = sm.split(SMResourceOptions(count=sm.min_partition_size))
        except CUDAError as error:
            pytest.skip(f"the driver refuses the split: {error}")
        parts.append(part)
    with contextlib.ExitStack() as stack:
        made = []
        for device, part in zip(devices, parts):
            context = device.create_context(ContextOptions(resources=[part]))
            stack.callback(context.close)
            made.append((context, part))
        yield made


def test_green_contexts_own_multiprocessors_of_their_device(devices, green, words, code):
    for device in devices:
        device.set_current()
        for number, (context, part) in enumerate(green):
            assert context.is_green and context.resources.sm.sm_count == part.sm_count
            with context.create_stream() as stream:
                assert stream.device == devices[number] and stream.context == context
                assert stream.resources.sm.sm_count == part.sm_count
                counts = words(number, *[0] * 2048)
                launch(stream, LaunchConfig(grid=2000, block=64), code.get_kernel("count_blocks"), counts.buffer)
                stream.sync()
                found = np.array(counts.get())
                assert found.sum() == 2000
                assert np.count_nonzero(found) <= part.sm_count


@both_orders
def test_streams_of_green_contexts_wait_for_each_other(devices, green, words, step, order):
    made = [green[n][0].create_stream() for n in order]
    plain = [devices[n].create_stream() for n in order]
    word, steps, event = words(order[1], 1), [], None
    for hop in range(40):
        devices[hop % 2].set_current()
        stream = (made[0], plain[1], plain[0], made[1])[hop % 4]
        if event is not None:
            stream.wait(event)
        steps.append((2 * hop + 3, hop))
        step(stream, word, *steps[-1], microseconds=200)
        event = stream.record()
    event.sync()
    assert word.get() == [after(1, *steps)]
    for stream in made + plain:
        stream.close()


ADVICE, RANGE = driver.CUmem_advise, driver.CUmem_range_attribute
HOST = -1
MANAGED_BYTES = 1 << 22


def location(number):
    found = driver.CUmemLocation()
    kinds = driver.CUmemLocationType
    found.type = kinds.CU_MEM_LOCATION_TYPE_HOST if number == HOST else kinds.CU_MEM_LOCATION_TYPE_DEVICE
    found.id = 0 if number == HOST else number
    return found


@pytest.fixture
def managed(devices):
    """Address of managed memory, set to 0."""
    if not all(device.properties.concurrent_managed_access for device in devices):
        pytest.skip("needs concurrent access to managed memory")
    flags = driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL
    address = int(check(driver.cuMemAllocManaged(MANAGED_BYTES, int(flags))))
    ctypes.memset(address, 0, MANAGED_BYTES)
    yield address
    check(driver.cuMemFree(address))


def advise(address, name, number):
    check(driver.cuMemAdvise(address, MANAGED_BYTES, getattr(ADVICE, f"CU_MEM_ADVISE_{name}"), location(number)))


def queried(address, name, size=4):
    name = getattr(RANGE, f"CU_MEM_RANGE_ATTRIBUTE_{name}")
    return check(driver.cuMemRangeGetAttribute(size, name, address, MANAGED_BYTES))


def test_advice_is_reported_for_each_device(devices, managed):
    invalid = -2  # CU_DEVICE_INVALID
    for device in devices:
        device.set_current()
        assert queried(managed, "PREFERRED_LOCATION") == invalid
        for number in (0, 1, HOST):
            advise(managed, "SET_PREFERRED_LOCATION", number)
            assert queried(managed, "PREFERRED_LOCATION") == number
        advise(managed, "UNSET_PREFERRED_LOCATION", 0)
        assert queried(managed, "PREFERRED_LOCATION") == invalid
        for name, number, expected in (
            ("SET", 1, {1}),
            ("SET", 0, {0, 1}),
            ("UNSET", 1, {0}),
            ("SET", HOST, {0, HOST}),
            ("UNSET", HOST, {0}),
            ("UNSET", 0, set()),
        ):
            advise(managed, f"{name}_ACCESSED_BY", number)
            found = queried(managed, "ACCESSED_BY", 12)
            assert len(found) == 3 and set(found) - {invalid} == expected
        assert queried(managed, "READ_MOSTLY") == 0
        advise(managed, "SET_READ_MOSTLY", 0)
        assert queried(managed, "READ_MOSTLY") == 1
        advise(managed, "UNSET_READ_MOSTLY", 1)
        assert queried(managed, "READ_MOSTLY") == 0


@pytest.mark.parametrize("advice", ["none", "preferred", "accessed_by", "read_mostly"])
def test_kernels_of_both_devices_change_managed_memory_in_turn(devices, streams, code, managed, advice):
    kernel, count = code.get_kernel("increment"), MANAGED_BYTES // 4
    if advice == "preferred":
        advise(managed, "SET_PREFERRED_LOCATION", 1)
    elif advice == "read_mostly":
        advise(managed, "SET_READ_MOSTLY", 0)
    elif advice == "accessed_by":
        for number in (0, 1, HOST):
            advise(managed, "SET_ACCESSED_BY", number)
    values = (ctypes.c_int32 * count).from_address(managed)
    total = 0
    for turn in range(12):
        devices[turn // 2 % 2].set_current()
        stream, target = streams[turn % 2], (turn % 2, 1 - turn % 2, HOST)[turn % 3]
        stream.wait(streams[1 - turn % 2])
        check(driver.cuMemPrefetchAsync(managed, MANAGED_BYTES, location(target), 0, stream.handle))
        assert queried(managed, "LAST_PREFETCH_LOCATION") == target
        arguments = (ctypes.c_uint64(managed), ctypes.c_int32(count), ctypes.c_int32(turn + 1))
        launch(stream, LaunchConfig(grid=64, block=256), kernel, *arguments)
        total += turn + 1
        if turn % 4 == 3:
            stream.sync()
            assert np.unique(np.ctypeslib.as_array(values)).tolist() == [total]


def test_peer_capabilities_are_symmetric_and_agree_with_the_driver(devices):
    zero, one = (device.to_system_device() for device in devices)
    capabilities = system_typing.GpuP2PCapsIndex
    found = {}
    for capability in capabilities:
        if capability != capabilities.UNKNOWN:
            try:
                pair = [system.get_p2p_status(a, b, capability) for a, b in ((zero, one), (one, zero))]
            except system.NvmlError:
                continue  # A driver that does not have the capability.
            assert isinstance(pair[0], system_typing.GpuP2PStatus) and pair[0] == pair[1], capability
            found[capability] = pair[0]
    supported = driver.CUdevice_P2PAttribute.CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED
    for a, b in ((0, 1), (1, 0)):
        access = devices[a].can_access_peer(b)
        assert access == bool(check(driver.cuDeviceGetP2PAttribute(supported, a, b)))
        if access:
            assert found[capabilities.READ] == found[capabilities.WRITE] == system_typing.GpuP2PStatus.OK


def test_the_common_ancestor_is_symmetric(devices):
    zero, one = (device.to_system_device() for device in devices)
    try:
        level = system.get_topology_common_ancestor(zero, one)
    except system.NotSupportedError:
        pytest.skip("the system does not report the topology")
    assert isinstance(level, system_typing.GpuTopologyLevel)
    assert level == system.get_topology_common_ancestor(one, zero)


FAULT = r"""
import ctypes, sys
import numpy as np
from cuda.core import Device, LaunchConfig, Program, launch
from cuda.core._utils.cuda_utils import CUDAError

broken, healthy = (Device(int(number)) for number in sys.argv[1:])
source = '''extern "C" __global__ void add(int *p, int n) { *p += n; }
extern "C" __global__ void fault() { *(volatile int *)8 = 1; }'''
healthy.set_current()
code = Program(source, "c++").compile("ptx")
add, fault, one = code.get_kernel("add"), code.get_kernel("fault"), LaunchConfig(grid=1, block=1)
stream, other = healthy.create_stream(), broken.create_stream()
buffer = healthy.allocate(4, stream=stream)
buffer.fill(np.int32(0), stream=stream)
launch(stream, one, add, buffer, ctypes.c_int32(1))
stream.sync()
launch(other, one, fault)
for call in (other.sync, broken.sync, other.sync, lambda: launch(other, one, fault)):
    try:
        call()
    except CUDAError as error:
        print(str(error).partition(":")[0])
broken.set_current()
for _ in range(10):
    launch(stream, one, add, buffer, ctypes.c_int32(1))
fresh = healthy.create_stream()
fresh.wait(stream)
out = np.zeros(1, np.int32)
buffer.copy_to(out, stream=fresh)
fresh.sync()
print(out[0])
"""


@both_orders
def test_a_fault_ends_all_contexts_of_gpus_and_one_of_the_cpu_device(order):
    error = "CUDA_ERROR_ILLEGAL_ADDRESS"
    done = python(FAULT, *order)
    assert done.stdout.split()[:4] == [error] * 4
    if on_cpu_device():
        assert done.returncode == 0 and done.stdout.split()[4:] == ["11"]
    else:
        # Measured on two H200: the process can use no GPU any more.
        assert done.returncode == 1 and error in done.stderr
