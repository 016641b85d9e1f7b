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
    # The edge's data is part of the edge.
    assert driver.cuGraphRemoveDependencies(graph, [a], [b], [edge()], 1)[0] == Status.CUDA_ERROR_INVALID_VALUE
    check(driver.cuGraphRemoveDependencies(graph, [a], [b], [edge(port, 0, PROGRAMMATIC)], 1))
    assert check(driver.cuGraphGetEdges(graph, 4))[-1] == 0
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


def test_memory_is_reserved_until_a_trim(graph, stream):
    device = check(driver.cuCtxGetDevice())
    check(driver.cuDeviceGraphMemTrim(device))
    start = memory(MEMORY.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)
    last = []
    for _ in range(3):
        node, address = allocation(graph, last, 2 * PAGE)
        last = [check(driver.cuGraphAddMemFreeNode(graph, [node], 1, address))]
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    for _ in range(3):
        check(driver.cuGraphLaunch(exec_, stream))
    check(driver.cuStreamSynchronize(stream))
    assert memory(MEMORY.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == start
    assert memory(MEMORY.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) >= 2 * PAGE
    # The allocations follow each other, so that the second and third one reuse the memory of the first one.
    reserved = memory(MEMORY.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)
    assert 2 * PAGE <= reserved - start < 6 * PAGE
    check(driver.cuGraphExecDestroy(exec_))
    check(driver.cuDeviceGraphMemTrim(device))
    assert memory(MEMORY.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) < reserved
    assert memory(MEMORY.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) >= reserved
