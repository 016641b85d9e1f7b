"""Conditional graph nodes through the driver and runtime bindings, on both devices."""

import contextlib
import ctypes
import gc
import threading

import numpy as np
import pytest
from cuda.bindings import driver, runtime

from helpers.device import DeviceArray, Module, callback, check, on_cpu_device
from helpers.programs import python
from helpers.threads import in_threads

SOURCE = """
extern "C" __device__ __cudart_builtin__ void CUDARTAPI
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);

extern "C" __global__ void add(int *p, int n) { atomicAdd(p, n); }
extern "C" __global__ void set(cudaGraphConditionalHandle h, const unsigned *value) { cudaGraphSetConditional(h, *value); }
extern "C" __global__ void count(cudaGraphConditionalHandle h, int *p, int below)
{
    cudaGraphSetConditional(h, ++*p < below);
}
"""
NON_BLOCKING = 1
ASSIGN_DEFAULT = driver.CU_GRAPH_COND_ASSIGN_DEFAULT
IF, WHILE, SWITCH = (
    driver.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_IF,
    driver.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE,
    driver.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_SWITCH,
)
RELAXED = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
Status = driver.CUresult


def status(result):
    return int(result[0])


@pytest.fixture(scope="module")
def module(shared_context):
    made = Module.from_source(SOURCE)
    yield made
    made.unload()


@pytest.fixture
def stream(shared_context):
    made = check(driver.cuStreamCreate(NON_BLOCKING))
    yield made
    check(driver.cuStreamDestroy(made))


@pytest.fixture
def graph(shared_context):
    made = check(driver.cuGraphCreate(0))
    yield made
    driver.cuGraphDestroy(made)


@pytest.fixture
def numbers(shared_context):
    """Eight integers in device memory, zeroed."""
    made = DeviceArray(np.zeros(8, np.int32))
    yield made
    made.free()


def kernel(module, graph, before, name, *arguments):
    params = driver.CUDA_KERNEL_NODE_PARAMS()
    params.func = module.function(name)
    params.gridDimX = params.gridDimY = params.gridDimZ = 1
    params.blockDimX = params.blockDimY = params.blockDimZ = 1
    kinds = {int: ctypes.c_int, driver.CUgraphConditionalHandle: ctypes.c_uint64}
    values = tuple(int(a) for a in arguments)
    types = tuple(kinds.get(type(a), ctypes.c_void_p) for a in arguments)
    params.kernelParams = (values, types)
    return check(driver.cuGraphAddKernelNode(graph, before, len(before), params))


class Address(int):
    """An int that is passed as a pointer."""


def at(array, index=0):
    return Address(array.address + 4 * index)


def put(array):
    """Copies the host's values to the device."""
    check(driver.cuMemcpyHtoD(array.address, array.host.ctypes.data, array.host.nbytes))


def condition(graph, default=0, flags=ASSIGN_DEFAULT):
    return check(driver.cuGraphConditionalHandleCreate(graph, check(driver.cuCtxGetCurrent()), default, flags))


def conditional_params(handle, kind, size):
    params = driver.CUgraphNodeParams()
    params.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
    params.conditional.handle = handle
    params.conditional.type = kind
    params.conditional.size = size
    params.conditional.ctx = check(driver.cuCtxGetCurrent())
    return params


def conditional(graph, before, handle, kind, size=1):
    """(node, bodies)"""
    params = conditional_params(handle, kind, size)
    node = check(driver.cuGraphAddNode(graph, before, None, len(before), params))
    bodies = params.conditional.phGraph_out
    assert len(bodies) == size and all(isinstance(b, driver.CUgraph) and int(b) for b in bodies)
    return node, bodies


def launch(exec_, stream, times=1):
    for _ in range(times):
        check(driver.cuGraphLaunch(exec_, stream))
    check(driver.cuStreamSynchronize(stream))


def instantiated(graph):
    return check(driver.cuGraphInstantiate(graph, 0))


def test_if_runs_its_body_for_values_other_than_zero(module, graph, stream, numbers):
    handle = condition(graph)
    first = kernel(module, graph, [], "set", handle, at(numbers, 7))
    node, [body] = conditional(graph, [first], handle, IF)
    kernel(module, body, [], "add", at(numbers), 1)
    kernel(module, graph, [node], "add", at(numbers, 1), 1)
    exec_ = instantiated(graph)
    expected = 0
    for value in (0, 1, 0, 5, 0xFFFFFFFF):
        numbers.host[7] = np.uint32(value).astype(np.int32)
        numbers.host[0] = expected
        put(numbers)
        launch(exec_, stream)
        expected += value != 0
        assert numbers.get()[0] == expected
    check(driver.cuGraphExecDestroy(exec_))


def test_else_body_runs_for_zero(module, graph, stream, numbers):
    handle = condition(graph)
    first = kernel(module, graph, [], "set", handle, at(numbers, 7))
    _, [then, otherwise] = conditional(graph, [first], handle, IF, 2)
    kernel(module, then, [], "add", at(numbers), 1)
    kernel(module, otherwise, [], "add", at(numbers, 1), 1)
    exec_ = instantiated(graph)
    launch(exec_, stream, 2)
    assert numbers.get()[:2].tolist() == [0, 2]
    numbers.host[:] = [0, 2, 0, 0, 0, 0, 0, 1]
    put(numbers)
    launch(exec_, stream, 3)
    assert numbers.get()[:2].tolist() == [3, 2]
    check(driver.cuGraphExecDestroy(exec_))


def test_while_repeats_its_body(module, graph, stream, numbers):
    handle = condition(graph, default=1)
    node, [body] = conditional(graph, [], handle, WHILE)
    first = kernel(module, body, [], "add", at(numbers, 1), 2)
    kernel(module, body, [first], "count", handle, at(numbers), 10)
    kernel(module, graph, [node], "add", at(numbers, 2), 1)
    exec_ = instantiated(graph)
    launch(exec_, stream)
    assert numbers.get()[:3].tolist() == [10, 20, 1]
    # The default applies to each launch; the counter is not reset, so the body runs once.
    launch(exec_, stream)
    assert numbers.get()[:3].tolist() == [11, 22, 2]
    check(driver.cuGraphExecDestroy(exec_))


@pytest.mark.parametrize("default", [0, 1, 2, 3, 100])
def test_switch_runs_the_body_of_the_value(module, graph, stream, numbers, default):
    handle = condition(graph, default)
    node, bodies = conditional(graph, [], handle, SWITCH, 3)
    for n, body in enumerate(bodies):
        kernel(module, body, [], "add", at(numbers, n), 1)
    kernel(module, graph, [node], "add", at(numbers, 3), 1)
    exec_ = instantiated(graph)
    launch(exec_, stream)
    assert numbers.get()[:4].tolist() == [int(default == n) for n in range(3)] + [1]
    check(driver.cuGraphExecDestroy(exec_))


def test_nested_loops(module, graph, stream, numbers):
    """Four rounds of three: the inner counter is reset by a memset node in the outer body."""
    outer, inner = condition(graph, 1), condition(graph, 1)
    _, [outer_body] = conditional(graph, [], outer, WHILE)
    fill = driver.CUDA_MEMSET_NODE_PARAMS()
    fill.dst, fill.value, fill.elementSize, fill.width, fill.height = int(at(numbers, 1)), 0, 4, 1, 1
    reset = check(driver.cuGraphAddMemsetNode(outer_body, None, 0, fill, check(driver.cuCtxGetCurrent())))
    one = check(driver.cuMemAlloc(4))
    check(driver.cuMemsetD32(one, 1, 1))
    again = kernel(module, outer_body, [reset], "set", inner, Address(int(one)))
    node, [inner_body] = conditional(outer_body, [again], inner, WHILE)
    kernel(module, inner_body, [], "add", at(numbers, 2), 1)
    kernel(module, inner_body, [], "count", inner, at(numbers, 1), 3)
    kernel(module, outer_body, [node], "count", outer, at(numbers), 4)
    exec_ = instantiated(graph)
    launch(exec_, stream)
    assert numbers.get()[:3].tolist() == [4, 3, 12]
    check(driver.cuGraphExecDestroy(exec_))
    check(driver.cuMemFree(one))


def test_child_graph_in_a_body(module, graph, stream, numbers):
    child = check(driver.cuGraphCreate(0))
    a = kernel(module, child, [], "add", at(numbers), 1)
    kernel(module, child, [a], "add", at(numbers, 1), 2)
    handle = condition(graph, 1)
    _, [body] = conditional(graph, [], handle, WHILE)
    inner = check(driver.cuGraphAddChildGraphNode(body, None, 0, child))
    empty = check(driver.cuGraphAddEmptyNode(body, [inner], 1))
    kernel(module, body, [empty], "count", handle, at(numbers, 2), 3)
    check(driver.cuGraphDestroy(child))
    exec_ = instantiated(graph)
    launch(exec_, stream)
    assert numbers.get()[:3].tolist() == [3, 6, 3]
    check(driver.cuGraphExecDestroy(exec_))


def test_capture_builds_a_body(module, graph, stream, numbers):
    handle = condition(graph, 1)
    _, [body] = conditional(graph, [], handle, IF)
    check(driver.cuStreamBeginCaptureToGraph(stream, body, None, None, 0, RELAXED))
    module.launch("add", 1, 1, np.uint64(numbers.address), np.int32(4), stream=stream)
    assert int(check(driver.cuStreamEndCapture(stream))) == int(body)
    exec_ = instantiated(graph)
    launch(exec_, stream)
    assert numbers.get()[0] == 4
    check(driver.cuGraphExecDestroy(exec_))


def test_conditional_node_in_a_capture(module, stream, numbers):
    check(driver.cuStreamBeginCapture(stream, RELAXED))
    info = check(driver.cuStreamGetCaptureInfo(stream))
    graph = info[2]
    handle = condition(graph)
    module.launch("set", 1, 1, np.uint64(int(handle)), np.uint64(at(numbers, 7)), stream=stream)
    _, _, _, before, _, count = check(driver.cuStreamGetCaptureInfo(stream))
    node, [body] = conditional(graph, list(before)[:count], handle, IF)
    check(driver.cuStreamUpdateCaptureDependencies(stream, [node], None, 1, 1))
    module.launch("add", 1, 1, np.uint64(at(numbers, 1)), np.int32(1), stream=stream)
    graph = check(driver.cuStreamEndCapture(stream))
    kernel(module, body, [], "add", at(numbers), 1)
    exec_ = instantiated(graph)
    launch(exec_, stream)
    assert numbers.get()[:2].tolist() == [0, 1]
    numbers.host[7] = 3
    put(numbers)
    launch(exec_, stream)
    assert numbers.get()[:2].tolist() == [1, 1]
    check(driver.cuGraphExecDestroy(exec_))
    check(driver.cuGraphDestroy(graph))


def test_graphs_with_conditional_nodes_are_neither_cloned_nor_embedded(graph):
    handle = condition(graph)
    conditional(graph, [], handle, IF)
    assert status(driver.cuGraphClone(graph)) != 0
    parent = check(driver.cuGraphCreate(0))
    assert status(driver.cuGraphAddChildGraphNode(parent, None, 0, graph)) != 0
    assert check(driver.cuGraphGetNodes(parent, 4))[1] == 0
    check(driver.cuGraphDestroy(parent))


def test_one_executable_graph_at_a_time(graph, stream):
    conditional(graph, [], condition(graph), IF)
    exec_ = instantiated(graph)
    assert status(driver.cuGraphInstantiate(graph, 0)) != 0
    check(driver.cuGraphExecDestroy(exec_))
    exec_ = instantiated(graph)
    launch(exec_, stream)
    check(driver.cuGraphExecDestroy(exec_))


def test_unused_handle_is_refused_at_instantiation(graph):
    condition(graph)
    params = driver.CUDA_GRAPH_INSTANTIATE_PARAMS()
    assert status(driver.cuGraphInstantiateWithParams(graph, params)) != 0
    result = driver.CUgraphInstantiateResult.CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED
    assert params.result_out == result


@pytest.mark.parametrize(
    "kind, size",
    [(IF, 0), (IF, 3), (WHILE, 0), (WHILE, 2), (SWITCH, 0)],
)
def test_invalid_number_of_bodies_is_refused(graph, kind, size):
    params = conditional_params(condition(graph), kind, size)
    assert status(driver.cuGraphAddNode(graph, None, None, 0, params)) == Status.CUDA_ERROR_INVALID_VALUE
    assert not any(int(graph) for graph in params.conditional.phGraph_out)
    assert check(driver.cuGraphGetNodes(graph, 4))[1] == 0


def test_invalid_handle_flags_are_refused(graph):
    context = check(driver.cuCtxGetCurrent())
    assert status(driver.cuGraphConditionalHandleCreate(graph, context, 0, 2)) == Status.CUDA_ERROR_INVALID_VALUE


def test_a_second_node_cannot_use_the_handle(graph):
    handle = condition(graph)
    conditional(graph, [], handle, IF)
    params = conditional_params(handle, IF, 1)
    assert status(driver.cuGraphAddNode(graph, None, None, 0, params)) != 0


@pytest.mark.cpu
def test_hostile_handles_are_refused(module, graph, numbers):
    """A GPU's driver does not detect all of them."""
    other = check(driver.cuGraphCreate(0))
    for handle in (0, 1, 2**63, int(condition(other)), int(graph)):
        params = conditional_params(handle, IF, 1)
        assert status(driver.cuGraphAddNode(graph, None, None, 0, params)) == Status.CUDA_ERROR_INVALID_VALUE
    check(driver.cuGraphDestroy(other))
    params = conditional_params(condition(graph), SWITCH, 2**32 - 1)
    assert status(driver.cuGraphAddNode(graph, None, None, 0, params)) == Status.CUDA_ERROR_OUT_OF_MEMORY
    params.conditional.size = 1
    params.conditional.type = WHILE
    check(driver.cuGraphAddNode(graph, None, None, 0, params))
    [body] = params.conditional.phGraph_out
    # A body is destroyed with its node, and not instantiated without it.
    assert status(driver.cuGraphDestroy(body)) == Status.CUDA_ERROR_INVALID_VALUE
    assert status(driver.cuGraphInstantiate(body, 0)) == Status.CUDA_ERROR_NOT_SUPPORTED
    check(driver.cuGraphDestroy(graph))
    assert status(driver.cuGraphAddEmptyNode(body, None, 0)) == Status.CUDA_ERROR_INVALID_VALUE


@pytest.mark.cpu
def test_kernels_that_set_no_condition_fail():
    """In a process of its own: the failure ends the context."""
    code = f"""
import numpy as np
from cuda.bindings import driver
from helpers.device import Module, check
check(driver.cuInit(0))
check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(check(driver.cuDeviceGet(0))))))
module = Module.from_source({SOURCE!r})
value = check(driver.cuMemAlloc(4))
module.launch("set", 1, 1, np.uint64(12345), np.uint64(int(value)))
print(int(driver.cuCtxSynchronize()[0]))
"""
    done = python(code)
    assert done.stdout.split() == [str(int(Status.CUDA_ERROR_ILLEGAL_ADDRESS))]
    assert "cudaGraphSetConditional: 0x3039 is not a condition handle" in done.stderr


DEVICE_LAUNCH = int(driver.CUgraphInstantiate_flags.CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
_KEPT, NOTHING = callback(lambda data: None)


def add_host(graph, _event=None):
    host = driver.CUDA_HOST_NODE_PARAMS()
    host.fn = NOTHING
    check(driver.cuGraphAddHostNode(graph, None, 0, host))


def add_event_record(graph, event):
    check(driver.cuGraphAddEventRecordNode(graph, None, 0, event))


def add_allocation(graph, _event):
    params = driver.CUDA_MEM_ALLOC_NODE_PARAMS()
    params.poolProps.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    params.poolProps.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    params.bytesize = 4096
    check(driver.cuGraphAddMemAllocNode(graph, None, 0, params))


def add_child_with_host(graph, _event):
    child = check(driver.cuGraphCreate(0))
    add_host(child)
    check(driver.cuGraphAddChildGraphNode(graph, None, 0, child))
    check(driver.cuGraphDestroy(child))


@pytest.mark.parametrize("add", [add_host, add_event_record, add_allocation, add_child_with_host])
def test_other_types_of_nodes_in_a_body_are_refused_at_instantiation(graph, add):
    _, [body] = conditional(graph, [], condition(graph), IF)
    event = check(driver.cuEventCreate(0))
    add(body, event)
    assert check(driver.cuGraphGetNodes(body, 4))[1] == 1
    assert status(driver.cuGraphInstantiate(graph, 0)) == Status.CUDA_ERROR_INVALID_VALUE
    check(driver.cuEventDestroy(event))


@pytest.mark.parametrize("flags", [0, DEVICE_LAUNCH])
def test_a_host_node_in_a_body_is_an_unsupported_operation(graph, flags):
    _, [body] = conditional(graph, [], condition(graph), IF)
    add_host(body)
    params = driver.CUDA_GRAPH_INSTANTIATE_PARAMS()
    params.flags = flags
    assert status(driver.cuGraphInstantiateWithParams(graph, params)) == Status.CUDA_ERROR_INVALID_VALUE
    result = driver.CUgraphInstantiateResult.CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
    assert params.result_out == result


def child_of(graph, before=()):
    """A child graph node and its empty graph."""
    empty = check(driver.cuGraphCreate(0))
    node = check(driver.cuGraphAddChildGraphNode(graph, list(before), len(before), empty))
    check(driver.cuGraphDestroy(empty))
    return node, check(driver.cuGraphChildGraphNodeGetGraph(node))


def test_conditional_node_in_a_child_graph(graph):
    _, inner = child_of(graph)
    conditional(inner, [], condition(graph), IF)
    check(driver.cuGraphExecDestroy(instantiated(graph)))


@pytest.mark.cpu
def test_conditional_node_in_a_child_graph_runs(module, graph, stream, numbers):
    before = kernel(module, graph, [], "add", at(numbers), 10)
    child, inner = child_of(graph, [before])
    loop = condition(graph, 1)
    node, [body] = conditional(inner, [], loop, WHILE)
    kernel(module, body, [], "count", loop, at(numbers), 13)
    kernel(module, inner, [node], "add", at(numbers, 1), 1)
    kernel(module, graph, [child], "add", at(numbers, 1), 1)
    exec_ = instantiated(graph)
    launch(exec_, stream)
    assert numbers.get()[:2].tolist() == [13, 2]
    check(driver.cuGraphExecDestroy(exec_))
    # The default value applies again. Two child graphs deep.
    _, inner = child_of(inner)
    twice = condition(graph, 1)
    _, [body] = conditional(inner, [], twice, IF)
    kernel(module, body, [], "add", at(numbers, 2), 5)
    exec_ = instantiated(graph)
    launch(exec_, stream, 2)
    assert numbers.get()[2] == 10
    check(driver.cuGraphExecDestroy(exec_))


@pytest.mark.cpu
def test_conditional_nodes_in_child_graphs_have_the_same_rules(graph):
    """Those of their graph, for clones, embedding, executable graphs, launches from the device and handles."""
    unsupported = Status.CUDA_ERROR_NOT_SUPPORTED
    handle = condition(graph)
    child, inner = child_of(graph)
    conditional(inner, [], handle, IF)
    assert status(driver.cuGraphClone(graph)) == unsupported
    other = check(driver.cuGraphCreate(0))
    assert status(driver.cuGraphAddChildGraphNode(other, None, 0, graph)) == unsupported
    assert status(driver.cuGraphAddChildGraphNode(other, None, 0, inner)) == unsupported
    check(driver.cuGraphDestroy(other))
    params = driver.CUDA_GRAPH_INSTANTIATE_PARAMS()
    params.flags = DEVICE_LAUNCH
    assert status(driver.cuGraphInstantiateWithParams(graph, params)) == Status.CUDA_ERROR_INVALID_VALUE
    exec_ = instantiated(graph)
    assert status(driver.cuGraphInstantiate(graph, 0)) == unsupported
    assert status(driver.cuGraphExecChildGraphNodeSetParams(exec_, child, inner)) == unsupported
    check(driver.cuGraphExecDestroy(exec_))
    # With the child graph, the handle becomes free.
    check(driver.cuGraphDestroyNode(child))
    assert status(driver.cuGraphInstantiate(graph, 0)) == Status.CUDA_ERROR_INVALID_VALUE
    conditional(graph, [], handle, IF)
    check(driver.cuGraphExecDestroy(instantiated(graph)))


@pytest.mark.cpu
def test_update_of_conditional_nodes_in_child_graphs(module, stream, numbers):
    graphs = []
    for amount, default in ((1, 1), (10, 1), (100, 0)):
        graph = check(driver.cuGraphCreate(0))
        _, inner = child_of(graph)
        _, [body] = conditional(inner, [], condition(graph, default), IF)
        kernel(module, body, [], "add", at(numbers), amount)
        graphs.append(graph)
    exec_ = instantiated(graphs[0])
    for graph in graphs[1:]:
        launch(exec_, stream)
        check(driver.cuGraphExecUpdate(exec_, graph))
    launch(exec_, stream)
    assert numbers.get()[0] == 11
    check(driver.cuGraphExecDestroy(exec_))
    for graph in graphs:
        check(driver.cuGraphDestroy(graph))


def test_conditional_node_in_a_child_graph_of_a_body(graph):
    _, [body] = conditional(graph, [], condition(graph), IF)
    empty = check(driver.cuGraphCreate(0))
    inner = check(driver.cuGraphAddChildGraphNode(body, None, 0, empty))
    inner = check(driver.cuGraphChildGraphNodeGetGraph(inner))
    conditional(inner, [], condition(graph), IF)
    check(driver.cuGraphDestroy(empty))


@pytest.mark.cpu
def test_conditional_node_in_a_child_graph_of_a_body_runs(module, graph, stream, numbers):
    _, [body] = conditional(graph, [], condition(graph, 1), IF)
    empty = check(driver.cuGraphCreate(0))
    inner = check(driver.cuGraphAddChildGraphNode(body, None, 0, empty))
    inner = check(driver.cuGraphChildGraphNodeGetGraph(inner))
    check(driver.cuGraphDestroy(empty))
    loop = condition(graph, 1)
    node, [innermost] = conditional(inner, [], loop, WHILE)
    kernel(module, innermost, [], "count", loop, at(numbers), 3)
    kernel(module, inner, [node], "add", at(numbers, 1), 1)
    exec_ = instantiated(graph)
    launch(exec_, stream)
    assert numbers.get()[:2].tolist() == [3, 1]
    check(driver.cuGraphExecDestroy(exec_))
    add_host(innermost)
    assert status(driver.cuGraphInstantiate(graph, 0)) == Status.CUDA_ERROR_INVALID_VALUE


def test_handles_and_nodes_need_a_context(graph):
    """The current context is not the default."""
    refused = Status.CUDA_ERROR_INVALID_CONTEXT
    assert status(driver.cuGraphConditionalHandleCreate(graph, 0, 0, 0)) == refused
    params = conditional_params(condition(graph), IF, 1)
    params.conditional.ctx = driver.CUcontext()
    assert status(driver.cuGraphAddNode(graph, None, None, 0, params)) == refused


def test_conditional_nodes_cannot_be_launched_from_the_device(graph):
    conditional(graph, [], condition(graph), IF)
    params = driver.CUDA_GRAPH_INSTANTIATE_PARAMS()
    params.flags = DEVICE_LAUNCH
    assert status(driver.cuGraphInstantiateWithParams(graph, params)) == Status.CUDA_ERROR_INVALID_VALUE
    result = driver.CUgraphInstantiateResult.CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
    assert params.result_out == result


def test_copies_with_pageable_memory_in_a_body_are_refused(graph, numbers):
    _, [body] = conditional(graph, [], condition(graph), IF)
    source = np.zeros(4, np.int32)
    copy = driver.CUDA_MEMCPY3D()
    copy.srcMemoryType, copy.srcHost = driver.CUmemorytype.CU_MEMORYTYPE_HOST, source.ctypes.data
    copy.dstMemoryType, copy.dstDevice = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE, numbers.address
    copy.WidthInBytes, copy.Height, copy.Depth = 16, 1, 1
    check(driver.cuGraphAddMemcpyNode(body, None, 0, copy, check(driver.cuCtxGetCurrent())))
    assert status(driver.cuGraphInstantiate(graph, 0)) == Status.CUDA_ERROR_INVALID_VALUE


def test_executable_nodes_in_bodies_can_be_updated(module, graph, stream, numbers):
    _, [body] = conditional(graph, [], condition(graph, 1), IF)
    node = kernel(module, body, [], "add", at(numbers), 1)
    exec_ = instantiated(graph)
    launch(exec_, stream)
    params = check(driver.cuGraphKernelNodeGetParams(node))
    params.kernelParams = ((int(at(numbers)), 10), (ctypes.c_void_p, ctypes.c_int))
    check(driver.cuGraphExecKernelNodeSetParams(exec_, node, params))
    launch(exec_, stream)
    assert numbers.get()[0] == 11
    check(driver.cuGraphExecDestroy(exec_))


def build_switch(module, numbers, amount, default, size=2):
    graph = check(driver.cuGraphCreate(0))
    handle = condition(graph, default)
    first = kernel(module, graph, [], "set", handle, at(numbers, 7))
    _, bodies = conditional(graph, [first], handle, SWITCH, size)
    for n, body in enumerate(bodies):
        kernel(module, body, [], "add", at(numbers, n), amount)
    return graph


def test_update_from_a_graph_with_another_handle(module, stream, numbers):
    graph = build_switch(module, numbers, 1, 0)
    exec_ = instantiated(graph)
    launch(exec_, stream)
    other = build_switch(module, numbers, 10, 1)
    check(driver.cuGraphExecUpdate(exec_, other))
    launch(exec_, stream)
    assert numbers.get()[:2].tolist() == [11, 0]
    numbers.host[:] = [11, 0, 0, 0, 0, 0, 0, 1]
    put(numbers)
    launch(exec_, stream)
    assert numbers.get()[:2].tolist() == [11, 10]
    larger = build_switch(module, numbers, 1, 0, 3)
    assert status(driver.cuGraphExecUpdate(exec_, larger)) == Status.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
    for g in (graph, other, larger):
        check(driver.cuGraphDestroy(g))
    launch(exec_, stream)
    assert numbers.get()[:2].tolist() == [11, 20]
    check(driver.cuGraphExecDestroy(exec_))


def test_executable_graph_outlives_its_graph(module, stream, numbers):
    graph = check(driver.cuGraphCreate(0))
    handle = condition(graph, 1)
    _, [body] = conditional(graph, [], handle, WHILE)
    kernel(module, body, [], "count", handle, at(numbers), 5)
    exec_ = instantiated(graph)
    check(driver.cuGraphDestroy(graph))
    gc.collect()
    launch(exec_, stream)
    assert numbers.get()[0] == 5
    # Destroyed while it may run.
    check(driver.cuGraphLaunch(exec_, stream))
    check(driver.cuGraphExecDestroy(exec_))
    check(driver.cuStreamSynchronize(stream))
    assert numbers.get()[0] == 6


def test_destroyed_nodes_and_parameters(graph):
    handle = condition(graph)
    node, [_body] = conditional(graph, [], handle, IF)
    assert check(driver.cuGraphNodeGetType(node)) == driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
    assert int(check(driver.cuGraphNodeGetContainingGraph(node))) == int(graph) if supports_containing() else True
    check(driver.cuGraphDestroyNode(node))
    assert check(driver.cuGraphGetNodes(graph, 4))[1] == 0


def supports_containing():
    return check(driver.cuDriverGetVersion()) >= 13010


def test_output_list_is_empty_for_other_types_of_nodes():
    """In the union, the bytes of the pointer belong to another member."""
    params = driver.CUgraphNodeParams()
    params.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET
    params.memset.width, params.memset.value, params.memset.elementSize = 4096, 7, 4
    assert params.conditional.phGraph_out == []
    params.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
    params.conditional.size = 3
    assert params.conditional.phGraph_out == []


def test_output_list_survives_unmapped_pointers():
    params = driver.CUgraphNodeParams()
    params.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET
    params.memset.pitch = (1 << 32) | 1
    params.memset.value, params.memset.elementSize = 8, 0
    params.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
    assert params.conditional.phGraph_out == []


def test_runtime_twins(module, stream, numbers):
    graph = check(runtime.cudaGraphCreate(0))
    flags = int(runtime.cudaGraphConditionalHandleFlags.cudaGraphCondAssignDefault)
    handle = check(runtime.cudaGraphConditionalHandleCreate(graph, 1, flags))
    params = runtime.cudaGraphNodeParams()
    params.type = runtime.cudaGraphNodeType.cudaGraphNodeTypeConditional
    params.conditional.handle = handle
    params.conditional.type = runtime.cudaGraphConditionalNodeType.cudaGraphCondTypeIf
    params.conditional.size = 2
    check(runtime.cudaGraphAddNode(graph, None, None, 0, params))
    then, otherwise = params.conditional.phGraph_out
    assert isinstance(then, runtime.cudaGraph_t)
    kernel(module, driver.CUgraph(int(then)), [], "add", at(numbers), 1)
    kernel(module, driver.CUgraph(int(otherwise)), [], "add", at(numbers, 1), 1)
    exec_ = check(runtime.cudaGraphInstantiate(graph, 0))
    check(runtime.cudaGraphLaunch(exec_, stream))
    check(runtime.cudaStreamSynchronize(stream))
    assert numbers.get()[:2].tolist() == [1, 0]
    check(runtime.cudaGraphExecDestroy(exec_))
    check(runtime.cudaGraphDestroy(graph))


def test_threads_with_graphs_of_their_own(module):
    context = check(driver.cuCtxGetCurrent())
    # Threads that make graphs with conditions at the same time make driver 580 fail kernels (CUDA_ERROR_LAUNCH_FAILED).
    making = contextlib.nullcontext() if on_cpu_device() else threading.Lock()

    def work(n):
        check(driver.cuCtxSetCurrent(context))
        own = check(driver.cuStreamCreate(NON_BLOCKING))
        result = DeviceArray(np.zeros(8, np.int32))
        for round_ in range(5):
            with making:
                graph = check(driver.cuGraphCreate(0))
                handle = condition(graph, 1)
                _, [body] = conditional(graph, [], handle, WHILE)
                kernel(module, body, [], "count", handle, at(result), 4 * (round_ + 1))
                exec_ = instantiated(graph)
                check(driver.cuGraphDestroy(graph))
            launch(exec_, own)
            with making:
                check(driver.cuGraphExecDestroy(exec_))
        assert result.get()[0] == 20
        result.free()
        check(driver.cuStreamDestroy(own))

    in_threads(4, work)
