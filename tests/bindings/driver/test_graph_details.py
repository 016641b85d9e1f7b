"""Edge data, priorities and memory of graphs, on both devices."""

import ctypes

import numpy as np
import pytest
from cuda.bindings import driver

from helpers.device import DeviceArray, Module, check

SOURCE = 'extern "C" __global__ void add(int *p, int n) { atomicAdd(p, n); }'
Status = driver.CUresult
PROGRAMMATIC = driver.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
PRIORITY = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PRIORITY
MEMORY = driver.CUgraphMem_attribute
PAGE = 2 << 20
UNIT = 32 << 20


@pytest.fixture(scope="module")
def module(shared_context):
    made = Module.from_source(SOURCE)
    yield made
    made.unload()


@pytest.fixture
def stream(shared_context):
    made = check(driver.cuStreamCreate(1))
    yield made
    check(driver.cuStreamDestroy(made))


@pytest.fixture
def graph(shared_context):
    made = check(driver.cuGraphCreate(0))
    yield made
    driver.cuGraphDestroy(made)


@pytest.fixture
def number(shared_context):
    made = DeviceArray(np.zeros(1, np.int32))
    yield made
    made.free()


def kernel(module, graph, before, array, n=1):
    params = driver.CUDA_KERNEL_NODE_PARAMS()
    params.func = module.function("add")
    params.gridDimX = params.gridDimY = params.gridDimZ = 1
    params.blockDimX = params.blockDimY = params.blockDimZ = 1
    params.kernelParams = ((array.address, n), (ctypes.c_void_p, ctypes.c_int))
    return check(driver.cuGraphAddKernelNode(graph, before, len(before), params))


def edge(from_port=0, to_port=0, kind=0):
    data = driver.CUgraphEdgeData()
    data.from_port, data.to_port, data.type = from_port, to_port, int(kind)
    return data


@pytest.mark.parametrize("port", [1, 2])
def test_programmatic_edges(module, graph, stream, number, port):
    a = kernel(module, graph, [], number)
    b = kernel(module, graph, [], number)
    check(driver.cuGraphAddDependencies(graph, [a], [b], [edge(port, 0, PROGRAMMATIC)], 1))
    _, _, data, count = check(driver.cuGraphGetEdges(graph, 4))
    assert count == 1
    assert (data[0].from_port, data[0].to_port, int(data[0].type)) == (port, 0, int(PROGRAMMATIC))
    _, data, count = check(driver.cuGraphNodeGetDependencies(b, 4))
    assert count == 1 and data[0].from_port == port
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    check(driver.cuGraphLaunch(exec_, stream))
    check(driver.cuStreamSynchronize(stream))
    assert number.get()[0] == 2
    # The driver ignores the data, here those of another edge.
    check(driver.cuGraphRemoveDependencies(graph, [a], [b], [edge()], 1))
    assert check(driver.cuGraphGetEdges(graph, 4))[-1] == 0
    missing = driver.cuGraphRemoveDependencies(graph, [a], [b], [edge(port, 0, PROGRAMMATIC)], 1)
    assert missing[0] == Status.CUDA_ERROR_INVALID_VALUE
    check(driver.cuGraphExecDestroy(exec_))


def test_invalid_edge_data_is_refused(module, graph, number):
    a = kernel(module, graph, [], number)
    b = kernel(module, graph, [], number)
    empty = check(driver.cuGraphAddEmptyNode(graph, None, 0))
    for data in (edge(3, 0, PROGRAMMATIC), edge(0, 1), edge(1, 0), edge(0, 0, 2), edge(0, 0, PROGRAMMATIC)):
        assert driver.cuGraphAddDependencies(graph, [a], [b], [data], 1)[0] == Status.CUDA_ERROR_INVALID_VALUE
    programmatic = edge(1, 0, PROGRAMMATIC)
    assert driver.cuGraphAddDependencies(graph, [a], [empty], [programmatic], 1)[0] == Status.CUDA_ERROR_INVALID_VALUE
    assert check(driver.cuGraphGetEdges(graph, 4))[-1] == 0


@pytest.mark.parametrize("flags, accepted", [(0, True), (8, False)])
def test_update_of_a_priority(module, graph, number, flags, accepted):
    """With CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY, the priorities of the nodes cannot change."""
    kernel(module, graph, [], number)
    exec_ = check(driver.cuGraphInstantiate(graph, flags))
    other = check(driver.cuGraphCreate(0))
    node = kernel(module, other, [], number)
    value = driver.CUkernelNodeAttrValue()
    value.priority = -1
    check(driver.cuGraphKernelNodeSetAttribute(node, PRIORITY, value))
    status = driver.cuGraphExecUpdate(exec_, other)[0]
    assert status == (Status.CUDA_SUCCESS if accepted else Status.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
    check(driver.cuGraphDestroy(other))
    check(driver.cuGraphExecDestroy(exec_))


def memory(attribute):
    return int(check(driver.cuDeviceGetGraphMemAttribute(check(driver.cuCtxGetDevice()), attribute)))


def allocation(graph, before, size):
    params = driver.CUDA_MEM_ALLOC_NODE_PARAMS()
    params.poolProps.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    params.poolProps.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    params.poolProps.location.id = int(check(driver.cuCtxGetDevice()))
    params.bytesize = size
    node = check(driver.cuGraphAddMemAllocNode(graph, before, len(before), params))
    return node, params.dptr


def freed(graph, before, size):
    """An allocation and the node that frees it: (node, address)."""
    node, address = allocation(graph, before, size)
    return check(driver.cuGraphAddMemFreeNode(graph, [node], 1, address)), int(address)


def test_memory_is_used_and_reserved_until_a_trim(graph, stream):
    device = check(driver.cuCtxGetDevice())
    check(driver.cuDeviceGraphMemTrim(device))
    start = memory(MEMORY.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)
    last = []
    for _ in range(3):
        node, _ = freed(graph, last, UNIT)
        last = [node]
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    assert memory(MEMORY.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == start
    for _ in range(3):
        check(driver.cuGraphLaunch(exec_, stream))
    check(driver.cuStreamSynchronize(stream))
    # The allocations follow each other, so that the second and third one reuse the memory of the first one. It counts as used
    # although the graph has freed it.
    for attribute in (MEMORY.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, MEMORY.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT):
        assert memory(attribute) - start == UNIT
    check(driver.cuGraphExecDestroy(exec_))
    check(driver.cuDeviceGraphMemTrim(device))
    for attribute in (MEMORY.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, MEMORY.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT):
        assert memory(attribute) == start
    for attribute in (MEMORY.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, MEMORY.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH):
        assert memory(attribute) >= start + UNIT
        check(driver.cuDeviceSetGraphMemAttribute(device, attribute, 0))
        assert memory(attribute) == start


def test_memory_is_counted_in_units_of_32_mib(graph, stream):
    device = check(driver.cuCtxGetDevice())
    check(driver.cuDeviceGraphMemTrim(device))
    start = memory(MEMORY.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)
    freed(graph, [], 2 * PAGE)
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    check(driver.cuGraphLaunch(exec_, stream))
    check(driver.cuStreamSynchronize(stream))
    assert memory(MEMORY.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) - start == UNIT
    check(driver.cuGraphExecDestroy(exec_))
    check(driver.cuDeviceGraphMemTrim(device))


def fill(graph, before, address, value, words):
    params = driver.CUDA_MEMSET_NODE_PARAMS()
    params.dst, params.value, params.elementSize, params.width, params.height = address, value, 4, words, 1
    return check(driver.cuGraphAddMemsetNode(graph, before, len(before), params, check(driver.cuCtxGetCurrent())))


def test_an_allocation_reuses_the_address_of_a_freed_one_before_it(module, graph, stream, number):
    """Each allocation is used, with the size of its own."""
    last, addresses = [], []
    for n in range(4):
        node, address = allocation(graph, last, UNIT)
        filled = fill(graph, [node], address, n, 64)
        added = kernel(module, graph, [filled], number, n)
        last = [check(driver.cuGraphAddMemFreeNode(graph, [added], 1, address))]
        addresses.append(int(address))
    assert len(set(addresses)) == 1
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    for _ in range(3):
        check(driver.cuGraphLaunch(exec_, stream))
    check(driver.cuStreamSynchronize(stream))
    assert number.get()[0] == 3 * (0 + 1 + 2 + 3)
    check(driver.cuGraphExecDestroy(exec_))


def test_live_allocations_have_different_addresses(graph):
    first, one = allocation(graph, [], PAGE)
    second, two = allocation(graph, [first], PAGE)
    assert int(one) != int(two)
    # Freed, but not before this node.
    end = check(driver.cuGraphAddMemFreeNode(graph, [second], 1, two))
    _, three = allocation(graph, [first], PAGE)
    assert int(three) not in (int(one), int(two))
    # Only one node takes the address over.
    _, four = allocation(graph, [end], PAGE)
    _, five = allocation(graph, [end], PAGE)
    assert len({int(a) for a in (one, three, four, five)}) == 4


def launched(graph, stream):
    """The bytes that count as used after a launch of the graph."""
    device = check(driver.cuCtxGetDevice())
    check(driver.cuDeviceGraphMemTrim(device))
    start = memory(MEMORY.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    check(driver.cuGraphLaunch(exec_, stream))
    check(driver.cuStreamSynchronize(stream))
    used = memory(MEMORY.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) - start
    check(driver.cuGraphExecDestroy(exec_))
    check(driver.cuDeviceGraphMemTrim(device))
    assert memory(MEMORY.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == start
    return used


@pytest.mark.parametrize(
    "sizes, places, units",
    [((2, 1, 2), (0, 0, 0), 2), ((1, 2, 1), (0, 1, 0), 3), ((3.125, 0.125, 3, 0.125), (0, 0, 0, 0), 4)],
)
def test_sizes_of_allocations_in_a_row(graph, stream, sizes, places, units):
    """What does not fit has memory of its own, and what fits takes the smallest. All of it counts together."""
    last, addresses = [], []
    for size in sizes:
        node, address = freed(graph, last, int(size * UNIT))
        last = [node]
        addresses.append(address)
    assert [sorted(set(addresses), key=addresses.index).index(a) for a in addresses] == list(places)
    assert launched(graph, stream) == units * UNIT


def test_branches_have_memory_of_their_own(graph, stream):
    pairs = []
    for _ in range(2):
        end, one = freed(graph, [], UNIT)
        _, two = freed(graph, [end], UNIT)
        pairs.append((one, two))
    (a, b), (c, d) = pairs
    assert a == b and c == d and a != c
    assert launched(graph, stream) == 2 * UNIT


def test_equal_blocks_are_reused(graph, stream):
    first, one = allocation(graph, [], UNIT)
    second, two = allocation(graph, [], UNIT)
    ends = [
        check(driver.cuGraphAddMemFreeNode(graph, [first], 1, one)),
        check(driver.cuGraphAddMemFreeNode(graph, [second], 1, two)),
    ]
    third, three = allocation(graph, ends, UNIT)
    fourth, four = allocation(graph, [third], UNIT)
    # An H200 reuses them in one order or the other.
    assert {int(three), int(four)} == {int(two), int(one)}
    check(driver.cuGraphAddMemFreeNode(graph, [fourth], 1, three))
    check(driver.cuGraphAddMemFreeNode(graph, [fourth], 1, four))
    assert launched(graph, stream) == 2 * UNIT


def test_an_allocation_is_freed_once(graph):
    node, address = freed(graph, [], PAGE)
    refused = driver.cuGraphAddMemFreeNode(graph, [node], 1, address)
    assert refused[0] == Status.CUDA_ERROR_INVALID_VALUE
    again, same = allocation(graph, [node], PAGE)
    if int(same) == address:
        end = check(driver.cuGraphAddMemFreeNode(graph, [again], 1, address))
        assert driver.cuGraphAddMemFreeNode(graph, [end], 1, address)[0] == Status.CUDA_ERROR_INVALID_VALUE


@pytest.mark.cpu
def test_captured_allocations_reuse_addresses(shared_context, stream):
    """Also smaller ones."""
    check(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    addresses = []
    for size in (UNIT, UNIT // 2, UNIT):
        address = check(driver.cuMemAllocAsync(size, stream))
        check(driver.cuMemsetD8Async(address, 1, size, stream))
        check(driver.cuMemFreeAsync(address, stream))
        addresses.append(int(address))
    graph = check(driver.cuStreamEndCapture(stream))
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    for _ in range(2):
        check(driver.cuGraphLaunch(exec_, stream))
    check(driver.cuStreamSynchronize(stream))
    assert len(set(addresses)) == 1
    check(driver.cuGraphExecDestroy(exec_))
    check(driver.cuGraphDestroy(graph))


@pytest.mark.cpu
def test_many_allocations_in_a_row_need_the_memory_of_one(graph, stream):
    """Together they are larger than the device."""
    device = check(driver.cuCtxGetDevice())
    total = check(driver.cuDeviceTotalMem(device))
    last, size = [], total // 8
    for _ in range(20):
        node, _ = freed(graph, last, size)
        last = [node]
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    check(driver.cuGraphLaunch(exec_, stream))
    check(driver.cuStreamSynchronize(stream))
    check(driver.cuGraphExecDestroy(exec_))
