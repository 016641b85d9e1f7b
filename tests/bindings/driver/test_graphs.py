"""Graphs and stream capture through the driver bindings, on both devices."""

import ctypes
import threading
import time

import numpy as np
import pytest
from cuda.bindings import driver

from helpers.device import DeviceArray, Module, callback, check
from helpers.threads import run_all
from helpers.waits import until

SOURCE = """
extern "C" __global__ void add(int *p, int n) { atomicAdd(p, n); }
extern "C" __global__ void scale(float *p, float f, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] *= f;
}
extern "C" __global__ void sum(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""

Status = driver.CUresult
GLOBAL, LOCAL, RELAXED = (
    driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL,
    driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED,
)
NON_BLOCKING = 1


def status(result):
    return int(result[0])


@pytest.fixture(scope="module")
def module(shared_context):
    made = Module.from_source(SOURCE)
    yield made
    made.unload()


@pytest.fixture(autouse=True)
def mode(shared_context):
    """Restores the thread's default capture mode, which earlier tests may have changed: one calls every function with
    random arguments.
    """
    check(driver.cuThreadExchangeStreamCaptureMode(GLOBAL))


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


def kernel_params(function, *arguments, grid=1, block=1):
    params = driver.CUDA_KERNEL_NODE_PARAMS()
    params.func = function
    params.gridDimX, params.gridDimY, params.gridDimZ = grid, 1, 1
    params.blockDimX, params.blockDimY, params.blockDimZ = block, 1, 1
    kinds = {int: ctypes.c_int, float: ctypes.c_float, DeviceArray: ctypes.c_void_p}
    values = tuple(a.address if isinstance(a, DeviceArray) else a for a in arguments)
    params.kernelParams = (values, tuple(kinds[type(a)] for a in arguments))
    return params


def add_kernel(graph, before, *arguments, **shape):
    return check(driver.cuGraphAddKernelNode(graph, before, len(before), kernel_params(*arguments, **shape)))


def launch(exec_, stream, times=1):
    for _ in range(times):
        check(driver.cuGraphLaunch(exec_, stream))
    check(driver.cuStreamSynchronize(stream))


def test_pipeline_of_every_node_type(module, stream, graph):
    n = 1000
    a, b, c = (DeviceArray(np.zeros(n, np.float32)) for _ in range(3))
    source = np.arange(n, dtype=np.float32)
    result = np.zeros(n, np.float32)
    calls = []
    _pointer, address = callback(lambda data: calls.append(data))

    copy = driver.CUDA_MEMCPY3D()
    copy.srcMemoryType, copy.srcHost = driver.CUmemorytype.CU_MEMORYTYPE_HOST, source.ctypes.data
    copy.dstMemoryType, copy.dstDevice = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE, a.address
    copy.WidthInBytes, copy.Height, copy.Depth = 4 * n, 1, 1
    context = check(driver.cuCtxGetCurrent())
    up = check(driver.cuGraphAddMemcpyNode(graph, None, 0, copy, context))

    fill = driver.CUDA_MEMSET_NODE_PARAMS()
    fill.dst, fill.value, fill.elementSize, fill.width, fill.height = b.address, 0x40000000, 4, n, 1
    two = check(driver.cuGraphAddMemsetNode(graph, None, 0, fill, context))

    doubled = add_kernel(graph, [up], module.function("scale"), a, 2.0, n, grid=8, block=128)
    meet = check(driver.cuGraphAddEmptyNode(graph, [doubled, two], 2))
    added = add_kernel(graph, [meet], module.function("sum"), a, b, c, n, grid=8, block=128)
    host = driver.CUDA_HOST_NODE_PARAMS()
    host.fn, host.userData = address, 7
    reported = check(driver.cuGraphAddHostNode(graph, [added], 1, host))

    copy.srcMemoryType, copy.srcDevice = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE, c.address
    copy.dstMemoryType, copy.dstHost = driver.CUmemorytype.CU_MEMORYTYPE_HOST, result.ctypes.data
    check(driver.cuGraphAddMemcpyNode(graph, [reported], 1, copy, context))

    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    launch(exec_, stream)
    np.testing.assert_array_equal(result, source * 2 + 2)
    # Host memory is read when the graph runs.
    source[:] = 10
    launch(exec_, stream)
    np.testing.assert_array_equal(result, np.full(n, 22, np.float32))
    assert calls == [7, 7]
    kinds = [int(check(driver.cuGraphNodeGetType(m))) for m in (up, two, added, reported, meet)]
    assert kinds == [1, 2, 0, 3, 5]
    check(driver.cuGraphExecDestroy(exec_))
    for array in (a, b, c):
        array.free()


def test_node_parameters_are_copied_and_returned(module, stream, graph):
    p = DeviceArray(np.zeros(4, np.int32))
    params = kernel_params(module.function("add"), p, 5)
    node = check(driver.cuGraphAddKernelNode(graph, None, 0, params))
    del params
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    launch(exec_, stream, 3)
    assert p.get()[0] == 15
    reported = check(driver.cuGraphKernelNodeGetParams(node))
    assert (reported.gridDimX, reported.blockDimX, reported.sharedMemBytes) == (1, 1, 0)
    pointers = (ctypes.c_void_p * 2).from_address(int(reported.kernelParams))
    assert ctypes.c_uint64.from_address(pointers[0]).value == p.address
    assert ctypes.c_int.from_address(pointers[1]).value == 5
    # The parameters of the executable and of the graph are independent.
    check(driver.cuGraphExecKernelNodeSetParams(exec_, node, kernel_params(module.function("add"), p, 100)))
    launch(exec_, stream)
    assert p.get()[0] == 115
    again = check(driver.cuGraphInstantiate(graph, 0))
    launch(again, stream)
    assert p.get()[0] == 120
    for e in (exec_, again):
        check(driver.cuGraphExecDestroy(e))
    p.free()


def test_graph_structure(graph):
    a = check(driver.cuGraphAddEmptyNode(graph, None, 0))
    b = check(driver.cuGraphAddEmptyNode(graph, [a], 1))
    c = check(driver.cuGraphAddEmptyNode(graph, [a], 1))
    check(driver.cuGraphAddDependencies(graph, [b], [c], None, 1))

    def handles(nodes):
        return {int(n) for n in nodes if int(n)}

    nodes, count = check(driver.cuGraphGetNodes(graph, 10))
    assert count == 3 and handles(nodes) == {int(a), int(b), int(c)}
    roots, count = check(driver.cuGraphGetRootNodes(graph, 10))
    assert count == 1 and handles(roots) == {int(a)}
    from_, to, _, count = check(driver.cuGraphGetEdges(graph, 10))
    edges = {(int(f), int(t)) for f, t in list(zip(from_, to))[:count]}
    assert edges == {(int(a), int(b)), (int(a), int(c)), (int(b), int(c))}
    before, _, count = check(driver.cuGraphNodeGetDependencies(c, 10))
    assert count == 2 and handles(before) == {int(a), int(b)}
    after, _, count = check(driver.cuGraphNodeGetDependentNodes(a, 10))
    assert count == 2 and handles(after) == {int(b), int(c)}

    clone = check(driver.cuGraphClone(graph))
    duplicate = check(driver.cuGraphNodeFindInClone(b, clone))
    assert int(duplicate) != int(b)
    assert status(driver.cuGraphNodeFindInClone(duplicate, graph)) == Status.CUDA_ERROR_INVALID_VALUE
    check(driver.cuGraphDestroyNode(b))
    assert check(driver.cuGraphGetNodes(graph, 10))[1] == 2
    assert check(driver.cuGraphGetNodes(clone, 10))[1] == 3
    check(driver.cuGraphDestroy(clone))


def test_non_graphs_are_refused(graph):
    a = check(driver.cuGraphAddEmptyNode(graph, None, 0))
    b = check(driver.cuGraphAddEmptyNode(graph, [a], 1))
    assert status(driver.cuGraphAddDependencies(graph, [a], [b], None, 1)) == Status.CUDA_ERROR_INVALID_VALUE
    assert status(driver.cuGraphCreate(1)) == Status.CUDA_ERROR_INVALID_VALUE
    other = check(driver.cuGraphCreate(0))
    x = check(driver.cuGraphAddEmptyNode(other, None, 0))
    assert status(driver.cuGraphAddDependencies(graph, [a], [x], None, 1)) == Status.CUDA_ERROR_INVALID_VALUE
    assert status(driver.cuGraphRemoveDependencies(graph, [b], [a], None, 1)) == Status.CUDA_ERROR_INVALID_VALUE
    assert status(driver.cuGraphKernelNodeGetParams(a)) == Status.CUDA_ERROR_INVALID_VALUE
    check(driver.cuGraphDestroy(other))


@pytest.mark.cpu
def test_null_handles_are_refused(graph):
    """A GPU's driver dereferences such handles; the CPU device detects them."""
    a = check(driver.cuGraphAddEmptyNode(graph, None, 0))
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    check(driver.cuGraphExecDestroy(exec_))
    invalid = Status.CUDA_ERROR_INVALID_VALUE
    for handle in (0, 1, 12345, int(a), int(exec_), 2**63):
        assert status(driver.cuGraphDestroy(handle)) == invalid
        assert status(driver.cuGraphLaunch(handle, 0)) == invalid
        assert status(driver.cuGraphExecDestroy(handle)) == invalid
        assert status(driver.cuGraphInstantiate(handle, 0)) == invalid
        assert status(driver.cuGraphAddChildGraphNode(graph, None, 0, handle)) == invalid
        assert status(driver.cuUserObjectRelease(handle, 1)) == invalid
        if handle != int(a):
            assert status(driver.cuGraphNodeGetType(handle)) == invalid
            assert status(driver.cuGraphAddEmptyNode(graph, [driver.CUgraphNode(handle)], 1)) == invalid
            assert status(driver.cuGraphDestroyNode(handle)) == invalid
    check(driver.cuGraphDestroyNode(a))
    assert status(driver.cuGraphNodeGetType(a)) == invalid


def test_cyclic_graph_is_not_instantiated(graph):
    a = check(driver.cuGraphAddEmptyNode(graph, None, 0))
    b = check(driver.cuGraphAddEmptyNode(graph, [a], 1))
    if status(driver.cuGraphAddDependencies(graph, [b], [a], None, 1)) == 0:
        assert status(driver.cuGraphInstantiate(graph, 0)) == Status.CUDA_ERROR_INVALID_VALUE


def test_capture_with_fork_and_join(module, stream):
    n = 512
    a, b = (DeviceArray(np.ones(n, np.float32)) for _ in range(2))
    side = check(driver.cuStreamCreate(NON_BLOCKING))
    forked, joined = (check(driver.cuEventCreate(2)) for _ in range(2))
    check(driver.cuStreamBeginCapture(stream, LOCAL))
    module.launch("scale", 4, 128, a, np.float32(3), np.int32(n), stream=stream)
    check(driver.cuEventRecord(forked, stream))
    check(driver.cuStreamWaitEvent(side, forked, 0))
    module.launch("scale", 4, 128, b, np.float32(5), np.int32(n), stream=side)
    module.launch("scale", 4, 128, a, np.float32(2), np.int32(n), stream=stream)
    check(driver.cuEventRecord(joined, side))
    check(driver.cuStreamWaitEvent(stream, joined, 0))
    info = check(driver.cuStreamGetCaptureInfo(stream))
    assert int(info[0]) == 1 and info[-1] == 2
    module.launch("sum", 4, 128, a, b, a, np.int32(n), stream=stream)
    graph = check(driver.cuStreamEndCapture(stream))
    assert check(driver.cuGraphGetNodes(graph, 10))[1] == 4
    assert check(driver.cuGraphGetEdges(graph, 10))[-1] == 4
    np.testing.assert_array_equal(a.get(), np.ones(n, np.float32))
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    launch(exec_, stream)
    np.testing.assert_array_equal(a.get(), np.full(n, 11, np.float32))
    launch(exec_, stream)
    np.testing.assert_array_equal(a.get(), np.full(n, 11 * 6 + 25, np.float32))
    check(driver.cuGraphExecDestroy(exec_))
    check(driver.cuGraphDestroy(graph))
    check(driver.cuStreamDestroy(side))
    for event in (forked, joined):
        check(driver.cuEventDestroy(event))
    a.free(), b.free()


def invalidates(stream, call, expected, mode=GLOBAL):
    """Asserts that the call fails during a capture and invalidates it."""
    check(driver.cuStreamBeginCapture(stream, mode))
    assert status(call()) == expected
    assert int(check(driver.cuStreamIsCapturing(stream))) == 2
    assert status(driver.cuStreamEndCapture(stream)) == Status.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
    assert int(check(driver.cuStreamIsCapturing(stream))) == 0


def test_calls_prohibited_during_capture(stream):
    unsupported = Status.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
    quiet = check(driver.cuEventCreate(2))
    other = check(driver.cuStreamCreate(NON_BLOCKING))
    check(driver.cuEventRecord(quiet, other))
    empty = check(driver.cuGraphCreate(0))
    unsafe = [
        lambda: driver.cuMemAlloc(256),
        lambda: driver.cuEventQuery(quiet),
        lambda: driver.cuEventSynchronize(quiet),
        lambda: driver.cuStreamQuery(other),
        lambda: driver.cuStreamSynchronize(other),
        lambda: driver.cuMemAllocAsync(256, other),
        lambda: driver.cuGraphInstantiate(empty, 0),
    ]
    for call in unsafe:
        for mode in (GLOBAL, LOCAL):
            invalidates(stream, call, unsupported, mode)
        # A relaxed capture permits it.
        check(driver.cuStreamBeginCapture(stream, RELAXED))
        check(call())
        check(driver.cuGraphDestroy(check(driver.cuStreamEndCapture(stream))))
    # These conflict with any capture.
    for mode in (GLOBAL, LOCAL, RELAXED):
        invalidates(stream, driver.cuCtxSynchronize, unsupported, mode)
        invalidates(stream, lambda: driver.cuStreamSynchronize(stream), unsupported, mode)
        invalidates(stream, lambda: driver.cuStreamQuery(stream), unsupported, mode)
    # These conflict with none.
    p = DeviceArray(np.zeros(64, np.int32))
    check(driver.cuStreamBeginCapture(stream, GLOBAL))
    p.get()
    check(driver.cuEventRecord(quiet, other))
    check(driver.cuMemsetD8Async(p.pointer, 0, 64, other))
    check(driver.cuGraphDestroy(check(driver.cuStreamEndCapture(stream))))
    check(driver.cuGraphDestroy(empty))
    check(driver.cuStreamDestroy(other))
    p.free()


def test_capture_modes_apply_to_other_threads(shared_context, stream):
    def elsewhere(exchange):
        answers = []

        def work():
            check(driver.cuCtxSetCurrent(shared_context))
            if exchange is not None:
                answers.append(int(check(driver.cuThreadExchangeStreamCaptureMode(exchange))))
            answers.append(status(driver.cuMemAlloc(256)))

        thread = threading.Thread(target=work)
        run_all([thread])
        return answers

    for mode, exchange, expected in (
        (GLOBAL, None, [900]),
        (GLOBAL, LOCAL, [0, 0]),
        (GLOBAL, RELAXED, [0, 0]),
        (LOCAL, None, [0]),
        (RELAXED, None, [0]),
    ):
        check(driver.cuStreamBeginCapture(stream, mode))
        assert elsewhere(exchange) == expected, (mode, exchange)
        ended = status(driver.cuStreamEndCapture(stream))
        assert ended == (901 if expected == [900] else 0)
    # For its own captures the thread's own mode counts.
    assert int(check(driver.cuThreadExchangeStreamCaptureMode(RELAXED))) == 0
    check(driver.cuStreamBeginCapture(stream, GLOBAL))
    check(driver.cuMemFree(check(driver.cuMemAlloc(256))))
    check(driver.cuGraphDestroy(check(driver.cuStreamEndCapture(stream))))
    assert int(check(driver.cuThreadExchangeStreamCaptureMode(GLOBAL))) == 2


@pytest.mark.cpu
def test_capture_ends_with_its_stream_thread_or_context(shared_context):
    own_stream = driver.CU_STREAM_PER_THREAD
    context = check(driver.cuCtxCreate(None, 0, 0))

    def begin():
        check(driver.cuCtxSetCurrent(context))
        check(driver.cuStreamBeginCapture(own_stream, GLOBAL))

    begin()
    check(driver.cuCtxDestroy(context))
    check(driver.cuCtxSetCurrent(shared_context))
    check(driver.cuMemFree(check(driver.cuMemAlloc(256))))
    context = shared_context
    thread = threading.Thread(target=begin)
    run_all([thread])

    def allocate():
        status, pointer = driver.cuMemAlloc(256)
        return status == Status.CUDA_SUCCESS and pointer

    # The driver notices the end of a thread a moment after its function returned.
    check(driver.cuMemFree(until(allocate)))


def test_legacy_stream_and_blocking_streams_during_capture(shared_context):
    blocking = check(driver.cuStreamCreate(0))
    implicit = Status.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
    p = DeviceArray(np.zeros(64, np.int32))
    invalidates(blocking, lambda: driver.cuMemsetD8Async(p.pointer, 0, 64, 0), implicit, RELAXED)
    invalidates(blocking, lambda: driver.cuStreamQuery(0), implicit, RELAXED)
    host = np.zeros(64, np.int32)
    invalidates(blocking, lambda: driver.cuMemcpyDtoH(host.ctypes.data, p.pointer, 256), implicit, RELAXED)
    check(driver.cuStreamDestroy(blocking))
    p.free()


def test_update_of_whole_graphs(module, stream):
    p = DeviceArray(np.zeros(4, np.int32))

    def build(value, kernels):
        graph = check(driver.cuGraphCreate(0))
        last = []
        for _ in range(kernels):
            last = [add_kernel(graph, last, module.function("add"), p, value)]
        return graph

    first, second, longer = build(1, 2), build(10, 2), build(1, 3)
    exec_ = check(driver.cuGraphInstantiate(first, 0))
    info = check(driver.cuGraphExecUpdate(exec_, second))
    assert int(info.result) == 0
    launch(exec_, stream)
    assert p.get()[0] == 20
    refused, info = driver.cuGraphExecUpdate(exec_, longer)
    assert int(refused) == Status.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
    launch(exec_, stream)
    assert p.get()[0] == 40
    check(driver.cuGraphExecDestroy(exec_))
    for graph in (first, second, longer):
        check(driver.cuGraphDestroy(graph))
    p.free()


def test_disabled_nodes(module, stream, graph):
    p = DeviceArray(np.zeros(4, np.int32))
    a = add_kernel(graph, [], module.function("add"), p, 1)
    add_kernel(graph, [a], module.function("add"), p, 10)
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    check(driver.cuGraphNodeSetEnabled(exec_, a, 0))
    assert check(driver.cuGraphNodeGetEnabled(exec_, a)) == 0
    launch(exec_, stream)
    check(driver.cuGraphNodeSetEnabled(exec_, a, 1))
    launch(exec_, stream)
    assert p.get()[0] == 21
    check(driver.cuGraphExecDestroy(exec_))
    p.free()


def test_child_graphs_are_copied(module, stream, graph):
    p = DeviceArray(np.zeros(4, np.int32))
    child = check(driver.cuGraphCreate(0))
    add_kernel(child, [], module.function("add"), p, 3)
    one = check(driver.cuGraphAddChildGraphNode(graph, None, 0, child))
    check(driver.cuGraphAddChildGraphNode(graph, [one], 1, child))
    add_kernel(child, [], module.function("add"), p, 1000)
    check(driver.cuGraphDestroy(child))
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    launch(exec_, stream)
    assert p.get()[0] == 6
    inner = check(driver.cuGraphChildGraphNodeGetGraph(one))
    assert check(driver.cuGraphGetNodes(inner, 10))[1] == 1
    check(driver.cuGraphExecDestroy(exec_))
    p.free()


def test_user_objects_are_released_with_their_last_owner(graph, stream):
    released = []
    _pointer, address = callback(lambda data: released.append(data))
    object_ = check(driver.cuUserObjectCreate(42, address, 1, 1))
    check(driver.cuGraphRetainUserObject(graph, object_, 1, 1))
    check(driver.cuGraphAddEmptyNode(graph, None, 0))
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    check(driver.cuGraphDestroy(graph))
    launch(exec_, stream)
    time.sleep(0.02)
    assert released == []
    check(driver.cuGraphExecDestroy(exec_))
    until(lambda: released)
    assert released == [42]


def test_allocation_nodes(module, stream, graph):
    params = driver.CUDA_MEM_ALLOC_NODE_PARAMS()
    params.poolProps.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    params.poolProps.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    params.bytesize = 4096
    alloc = check(driver.cuGraphAddMemAllocNode(graph, None, 0, params))
    address = int(params.dptr)
    assert address
    fill = driver.CUDA_MEMSET_NODE_PARAMS()
    fill.dst, fill.value, fill.elementSize, fill.width, fill.height = address, 5, 4, 64, 1
    filled = check(driver.cuGraphAddMemsetNode(graph, [alloc], 1, fill, check(driver.cuCtxGetCurrent())))
    out = DeviceArray(np.zeros(64, np.int32))
    copy = driver.CUDA_MEMCPY3D()
    copy.srcMemoryType = copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    copy.srcDevice, copy.dstDevice = address, out.address
    copy.WidthInBytes, copy.Height, copy.Depth = 256, 1, 1
    copied = check(driver.cuGraphAddMemcpyNode(graph, [filled], 1, copy, check(driver.cuCtxGetCurrent())))
    check(driver.cuGraphAddMemFreeNode(graph, [copied], 1, address))
    assert status(driver.cuGraphAddMemFreeNode(graph, [copied], 1, address)) != 0
    assert status(driver.cuGraphClone(graph)) != 0
    assert status(driver.cuGraphDestroyNode(copied)) != 0
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    assert status(driver.cuGraphInstantiate(graph, 0)) != 0
    launch(exec_, stream, 3)
    np.testing.assert_array_equal(out.get(), np.full(64, 5, np.int32))
    check(driver.cuGraphExecDestroy(exec_))
    out.free()


def test_captured_allocations(module, stream):
    out = DeviceArray(np.zeros(64, np.int32))
    check(driver.cuStreamBeginCapture(stream, LOCAL))
    p = check(driver.cuMemAllocAsync(256, stream))
    check(driver.cuMemsetD32Async(p, 9, 64, stream))
    check(driver.cuMemcpyDtoDAsync(out.pointer, p, 256, stream))
    check(driver.cuMemFreeAsync(p, stream))
    graph = check(driver.cuStreamEndCapture(stream))
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    launch(exec_, stream, 2)
    np.testing.assert_array_equal(out.get(), np.full(64, 9, np.int32))
    check(driver.cuGraphExecDestroy(exec_))
    check(driver.cuGraphDestroy(graph))
    out.free()


def test_dot_output(module, graph, tmp_path):
    p = DeviceArray(np.zeros(4, np.int32))
    a = add_kernel(graph, [], module.function("add"), p, 3)
    check(driver.cuGraphAddEmptyNode(graph, [a], 1))
    path = tmp_path / "graph.dot"
    check(driver.cuGraphDebugDotPrint(graph, str(path).encode(), 1))
    text = path.read_text()
    assert text.startswith("digraph") and "->" in text and "add" in text
    p.free()


def test_graph_with_many_nodes(stream, graph):
    last = None
    for _ in range(3000):
        last = check(driver.cuGraphAddEmptyNode(graph, [last] if last else None, 1 if last else 0))
    exec_ = check(driver.cuGraphInstantiate(graph, 0))
    launch(exec_, stream, 3)
    check(driver.cuGraphExecDestroy(exec_))
