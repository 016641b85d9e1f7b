"""Updates of instantiated graphs, by type of node: what `cuGraphExecUpdate` accepts and refuses, and replaced child graphs.

The rules are those of the CUDA manual (`cuGraphExecUpdate`, `cuGraphNodeSetParams`). Where drivers may differ, a case lists
every result that the manual allows.
"""

import ctypes

import numpy as np
import pytest
from cuda.bindings import driver

from helpers.device import DeviceArray, Module, callback, check

SOURCE = """
extern "C" __global__ void add(int *p, int n) { atomicAdd(p, n); }
extern "C" __global__ void store(int *p, int n) { *p = n; }
"""
Result = driver.CUgraphExecUpdateResult
OK = Result.CU_GRAPH_EXEC_UPDATE_SUCCESS
TOPOLOGY = Result.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
KIND = Result.CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED
PARAMETERS = Result.CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED
UNSUPPORTED = Result.CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED
ATTRIBUTES = Result.CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED
FUNCTION = Result.CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE
REFUSED = driver.CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
DEVICE, HOST, UNIFIED = (
    driver.CUmemorytype.CU_MEMORYTYPE_DEVICE,
    driver.CUmemorytype.CU_MEMORYTYPE_HOST,
    driver.CUmemorytype.CU_MEMORYTYPE_UNIFIED,
)
ASSIGN_DEFAULT = 1


class Info(ctypes.Structure):
    """`CUgraphExecUpdateResultInfo`."""

    _fields_ = (("result", ctypes.c_int), ("errorNode", ctypes.c_void_p), ("errorFromNode", ctypes.c_void_p))


def updated(exec_, graph):
    """Status and information. `driver.cuGraphExecUpdate` returns no information about an update that was refused."""
    address = check(driver.cuGetProcAddress(b"cuGraphExecUpdate", 12000, 0))[0]
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(Info))(int(address))
    info = Info()
    return function(int(exec_), int(graph), ctypes.byref(info)), info


class Place:
    """What the graphs of a test use."""

    def __init__(self, module):
        self.module = module
        self.x = DeviceArray(np.arange(64, dtype=np.int32))
        self.y = DeviceArray(np.zeros(64, np.int32))
        self.pinned = check(driver.cuMemAllocHost(256))
        ctypes.memset(int(self.pinned), 0, 256)
        self.events = [check(driver.cuEventCreate(0)) for _ in range(2)]
        self.calls = []
        self._functions = [callback(lambda data: self.calls.append(data or 0)) for _ in range(2)]
        self.functions = [address for _, address in self._functions]
        self.stream = check(driver.cuStreamCreate(1))
        self.context = check(driver.cuCtxGetCurrent())
        self.allocated = None

    def close(self):
        check(driver.cuStreamDestroy(self.stream))
        for event in self.events:
            check(driver.cuEventDestroy(event))
        check(driver.cuMemFreeHost(self.pinned))
        self.x.free()
        self.y.free()

    # Nodes. Each returns the node.

    def kernel(self, graph, before=(), name="add", value=1, grid=1, block=1, cooperative=False):
        params = driver.CUDA_KERNEL_NODE_PARAMS()
        params.func = self.module.function(name)
        params.gridDimX, params.gridDimY, params.gridDimZ = grid, 1, 1
        params.blockDimX, params.blockDimY, params.blockDimZ = block, 1, 1
        params.kernelParams = ((self.y.address, value), (ctypes.c_void_p, ctypes.c_int))
        node = check(driver.cuGraphAddKernelNode(graph, list(before), len(before), params))
        if cooperative:
            attribute = driver.CUlaunchAttributeValue()
            attribute.cooperative = 1
            check(
                driver.cuGraphKernelNodeSetAttribute(
                    node, driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, attribute
                )
            )
        return node

    def copy(self, graph, before=(), kind=DEVICE, source=0, size=4, height=1, depth=1):
        params = driver.CUDA_MEMCPY3D()
        params.srcMemoryType = kind
        if kind == HOST:
            params.srcHost = int(self.pinned) + source
        else:
            params.srcDevice = self.x.address + source
        params.dstMemoryType = DEVICE if kind == HOST else kind
        params.dstDevice = self.y.address
        params.srcPitch = params.dstPitch = 16
        params.srcHeight = params.dstHeight = 2
        params.WidthInBytes, params.Height, params.Depth = size, height, depth
        return check(driver.cuGraphAddMemcpyNode(graph, list(before), len(before), params, self.context))

    def fill(self, graph, before=(), value=1, width=1, height=1, element=4, at=0):
        params = driver.CUDA_MEMSET_NODE_PARAMS()
        params.dst, params.value, params.elementSize = self.y.address + at, value, element
        params.width, params.height, params.pitch = width, height, 32
        return check(driver.cuGraphAddMemsetNode(graph, list(before), len(before), params, self.context))

    def host(self, graph, before=(), function=0, data=7):
        params = driver.CUDA_HOST_NODE_PARAMS()
        params.fn, params.userData = self.functions[function], data
        return check(driver.cuGraphAddHostNode(graph, list(before), len(before), params))

    def child(self, graph, before=(), build=None):
        inner = check(driver.cuGraphCreate(0))
        build(inner)
        node = check(driver.cuGraphAddChildGraphNode(graph, list(before), len(before), inner))
        check(driver.cuGraphDestroy(inner))
        return node

    def record(self, graph, before=(), event=0):
        return check(driver.cuGraphAddEventRecordNode(graph, list(before), len(before), self.events[event]))

    def wait(self, graph, before=(), event=0):
        return check(driver.cuGraphAddEventWaitNode(graph, list(before), len(before), self.events[event]))

    def empty(self, graph, before=()):
        return check(driver.cuGraphAddEmptyNode(graph, list(before), len(before)))

    def allocate(self, graph, before=(), size=64):
        params = driver.CUDA_MEM_ALLOC_NODE_PARAMS()
        params.poolProps.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        params.poolProps.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        params.poolProps.location.id = 0
        params.bytesize = size
        node = check(driver.cuGraphAddMemAllocNode(graph, list(before), len(before), params))
        self.allocated = params.dptr
        return node

    def free(self, graph, before=()):
        return check(driver.cuGraphAddMemFreeNode(graph, list(before), len(before), self.allocated))

    def conditional(self, graph, before=(), kind="IF", size=1, default=1, build=None):
        handle = check(driver.cuGraphConditionalHandleCreate(graph, self.context, default, ASSIGN_DEFAULT))
        params = driver.CUgraphNodeParams()
        params.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        params.conditional.handle = handle
        params.conditional.type = getattr(driver.CUgraphConditionalNodeType, f"CU_GRAPH_COND_TYPE_{kind}")
        params.conditional.size = size
        params.conditional.ctx = self.context
        node = check(driver.cuGraphAddNode(graph, list(before), None, len(before), params))
        (build or self.kernel)(params.conditional.phGraph_out[0])
        return node

    def launch(self, exec_):
        """What a launch leaves: the first numbers of `y`, the calls, and the event that was recorded last."""
        zeros = np.zeros(64, np.int32)
        check(driver.cuMemcpyHtoD(self.y.address, zeros.ctypes.data, 256))
        # A copy from pageable memory may return before its end, and the stream does not wait for the default stream.
        check(driver.cuCtxSynchronize())
        self.calls.clear()
        check(driver.cuGraphLaunch(exec_, self.stream))
        check(driver.cuStreamSynchronize(self.stream))
        return self.y.get()[:16].tolist(), list(self.calls)


@pytest.fixture(scope="module")
def module(shared_context):
    made = Module.from_source(SOURCE)
    yield made
    made.unload()


@pytest.fixture
def place(module):
    made = Place(module)
    yield made
    made.close()


def child(build):
    return lambda place, graph: place.child(graph, build=lambda inner: build(place, inner))


def body(build, **options):
    return lambda place, graph: place.conditional(graph, build=lambda inner: build(place, inner), **options)


def node(method, **options):
    return lambda place, graph: getattr(place, method)(graph, **options)


def pair(first, second, edge=True):
    """Two nodes, the second after the first."""

    def build(place, graph):
        before = getattr(place, first)(graph)
        return getattr(place, second)(graph, before=(before,) if edge else ())

    return build


# name: (the instantiated graph, the new graph, results that the manual allows)
CASES = {
    "kernel, same": (node("kernel"), node("kernel"), {OK}),
    "kernel, arguments": (node("kernel"), node("kernel", value=5), {OK}),
    "kernel, shape": (node("kernel"), node("kernel", grid=2, block=3), {OK}),
    "kernel, function": (node("kernel"), node("kernel", name="store", value=9), {OK}),
    "kernel, becomes cooperative": (node("kernel"), node("kernel", cooperative=True), {ATTRIBUTES, FUNCTION}),
    "kernel, no longer cooperative": (node("kernel", cooperative=True), node("kernel"), {ATTRIBUTES, FUNCTION}),
    "copy, source": (node("copy"), node("copy", source=8), {OK}),
    "copy, size": (node("copy"), node("copy", size=16), {OK}),
    "copy, unified addresses": (node("copy", kind=UNIFIED), node("copy", kind=UNIFIED, source=4), {OK}),
    "copy, type of memory": (node("copy"), node("copy", kind=HOST), {PARAMETERS}),
    "copy from the host, source": (node("copy", kind=HOST), node("copy", kind=HOST, source=4), {OK}),
    "copy of rows, same": (node("copy", height=2), node("copy", height=2), {OK}),
    "copy of rows, source": (node("copy", height=2), node("copy", height=2, source=4), {OK, PARAMETERS}),
    "copy of layers, same": (node("copy", height=2, depth=2), node("copy", height=2, depth=2), {OK}),
    "copy of layers, source": (
        node("copy", height=2, depth=2),
        node("copy", height=2, depth=2, source=4),
        {OK, PARAMETERS},
    ),
    "copy becomes one of rows": (node("copy"), node("copy", height=2), {OK, PARAMETERS}),
    "fill, value": (node("fill"), node("fill", value=3), {OK}),
    "fill, width": (node("fill"), node("fill", width=4), {OK}),
    "fill, destination": (node("fill"), node("fill", at=8), {OK}),
    "fill, size of elements": (node("fill"), node("fill", element=1, width=4), {OK}),
    "fill of rows, same": (node("fill", height=2), node("fill", height=2), {OK}),
    "fill of rows, value": (node("fill", height=2), node("fill", height=2, value=3), {OK, PARAMETERS}),
    "fill becomes one of rows": (node("fill"), node("fill", height=2), {OK, PARAMETERS}),
    "host, data": (node("host"), node("host", data=8), {OK}),
    "host, function": (node("host"), node("host", function=1, data=9), {OK}),
    "child graph, same": (child(node("kernel")), child(node("kernel")), {OK}),
    "child graph, arguments": (child(node("kernel")), child(node("kernel", value=5)), {OK}),
    "child graph in a child graph": (child(child(node("fill"))), child(child(node("fill", value=4))), {OK}),
    "child graph, type": (child(node("kernel")), child(node("fill")), {KIND}),
    "child graph, more nodes": (child(node("kernel")), child(pair("kernel", "kernel")), {TOPOLOGY}),
    "child graph, refused parameters": (child(node("copy")), child(node("copy", kind=HOST)), {PARAMETERS}),
    "record, event": (node("record"), node("record", event=1), {OK}),
    "wait, event": (pair("record", "wait"), pair("record", "wait"), {OK}),
    "record becomes wait": (node("record"), node("wait"), {KIND}),
    "allocation of another graph": (pair("allocate", "free"), pair("allocate", "free"), {UNSUPPORTED, PARAMETERS, OK}),
    "conditional, body": (body(node("kernel")), body(node("kernel", value=5)), {OK}),
    "conditional, default": (body(node("kernel")), body(node("kernel"), default=0), {OK}),
    "conditional, kind": (
        body(node("kernel"), default=0),
        body(node("kernel"), kind="WHILE", default=0),
        {PARAMETERS, UNSUPPORTED},
    ),
    "conditional, number of bodies": (
        body(node("kernel")),
        body(node("kernel"), size=2),
        {PARAMETERS, UNSUPPORTED, TOPOLOGY},
    ),
    "conditional, nodes of a body": (body(node("kernel")), body(pair("kernel", "kernel")), {TOPOLOGY}),
    "conditional, type in a body": (body(node("kernel")), body(node("fill")), {KIND}),
    "empty": (node("empty"), node("empty"), {OK}),
    "empty becomes host": (node("empty"), node("host"), {KIND}),
    "kernel becomes fill": (node("kernel"), node("fill"), {KIND}),
    "no nodes": (lambda place, graph: None, lambda place, graph: None, {OK}),
    "a node more": (node("empty"), pair("empty", "empty"), {TOPOLOGY}),
    "a node less": (pair("empty", "empty"), node("empty"), {TOPOLOGY}),
    "an edge less": (pair("kernel", "host"), pair("kernel", "host", edge=False), {TOPOLOGY}),
    "an edge more": (pair("kernel", "host", edge=False), pair("kernel", "host"), {TOPOLOGY}),
    "an edge reversed": (pair("kernel", "fill"), pair("fill", "kernel"), {KIND}),
}


@pytest.mark.parametrize("name", CASES)
def test_update(place, name):
    before, after, results = CASES[name]
    graphs = [check(driver.cuGraphCreate(0)) for _ in range(2)]
    before(place, graphs[0])
    exec_ = check(driver.cuGraphInstantiate(graphs[0], 0))
    try:
        former = place.launch(exec_)
        after(place, graphs[1])
        status, info = updated(exec_, graphs[1])
        assert info.result in results, Result(info.result)
        assert status == (0 if info.result == OK else REFUSED)
        assert (driver.cuGraphExecUpdate(exec_, graphs[1])[0] == 0) == (info.result == OK)
        if info.result == OK:
            assert not info.errorNode and not info.errorFromNode
            changed = place.launch(exec_)
            fresh = check(driver.cuGraphClone(graphs[1])) if "allocation" not in name and "cond" not in name else None
            if fresh is not None:
                other = check(driver.cuGraphInstantiate(fresh, 0))
                assert place.launch(other) == changed
                check(driver.cuGraphExecDestroy(other))
                check(driver.cuGraphDestroy(fresh))
            # And back.
            if "allocation" not in name:
                assert driver.cuGraphExecUpdate(exec_, graphs[0])[0] == 0
                assert place.launch(exec_) == former
        else:
            # Refused: unchanged. The node at fault, if there is one, is one of the new graph or of a graph in it.
            assert place.launch(exec_) == former
            if info.result in (KIND, PARAMETERS) and name.partition(",")[0] not in ("child graph", "conditional"):
                assert info.errorNode in [int(n) for n in check(driver.cuGraphGetNodes(graphs[1], 10))[0]]
    finally:
        check(driver.cuGraphExecDestroy(exec_))
        for graph in graphs:
            check(driver.cuGraphDestroy(graph))


def test_the_order_of_creation_does_not_matter_for_chains(place):
    """Nodes are paired by edges, from the last ones back."""
    graphs = [check(driver.cuGraphCreate(0)) for _ in range(2)]
    first = place.fill(graphs[0], value=1)
    place.kernel(graphs[0], before=(first,))
    last = place.kernel(graphs[1])
    fill = place.fill(graphs[1], value=10)
    check(driver.cuGraphAddDependencies(graphs[1], [fill], [last], None, 1))
    exec_ = check(driver.cuGraphInstantiate(graphs[0], 0))
    assert place.launch(exec_)[0][0] == 2
    status, info = driver.cuGraphExecUpdate(exec_, graphs[1])
    assert status == 0 and info.result == OK
    assert place.launch(exec_)[0][0] == 11
    check(driver.cuGraphExecDestroy(exec_))
    for graph in graphs:
        check(driver.cuGraphDestroy(graph))


def test_the_new_graph_may_be_destroyed(place):
    graphs = [check(driver.cuGraphCreate(0)) for _ in range(2)]
    for graph, value in zip(graphs, (1, 5), strict=True):
        place.kernel(graph, value=value)
    exec_ = check(driver.cuGraphInstantiate(graphs[0], 0))
    check(driver.cuGraphExecUpdate(exec_, graphs[1]))
    for graph in graphs:
        check(driver.cuGraphDestroy(graph))
    assert place.launch(exec_)[0][0] == 5
    check(driver.cuGraphExecDestroy(exec_))


def child_params(graph):
    params = driver.CUgraphNodeParams()
    params.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH
    params.graph.graph = graph
    return params


@pytest.fixture
def graphs(place):
    """A graph with a child graph node, which adds 1, and a graph that adds 5."""
    made = [check(driver.cuGraphCreate(0)) for _ in range(2)]
    inner = place.child(made[0], build=lambda graph: place.kernel(graph))
    place.kernel(made[1], value=5)
    yield *made, inner
    for graph in made:
        driver.cuGraphDestroy(graph)


def replaced(node, graph):
    """`cuGraphNodeSetParams`; skips the test on a driver that cannot replace child graphs."""
    (status,) = driver.cuGraphNodeSetParams(node, child_params(graph))
    if status == driver.CUresult.CUDA_ERROR_NOT_SUPPORTED:
        pytest.skip("the driver cannot replace the graph of a child graph node")
    check((status,))


def test_replacing_a_child_graph(place, graphs):
    outer, other, inner = graphs
    former = check(driver.cuGraphChildGraphNodeGetGraph(inner))
    exec_ = check(driver.cuGraphInstantiate(outer, 0))
    replaced(inner, other)
    now = check(driver.cuGraphChildGraphNodeGetGraph(inner))
    assert int(now) not in (int(former), int(other))
    # The node has a copy, and the instantiated graph its own.
    place.kernel(other, value=1000)
    assert place.launch(exec_)[0][0] == 1
    fresh = check(driver.cuGraphInstantiate(outer, 0))
    assert place.launch(fresh)[0][0] == 5
    assert check(driver.cuGraphGetNodes(now, 4))[1] == 1
    for made in (exec_, fresh):
        check(driver.cuGraphExecDestroy(made))


def test_replacing_a_child_graph_by_one_with_other_nodes(place, graphs):
    outer, _, inner = graphs
    last = place.fill(outer, before=(inner,), at=4, value=3)
    other = check(driver.cuGraphCreate(0))
    place.kernel(other, before=(place.fill(other, value=20),))
    replaced(inner, other)
    check(driver.cuGraphDestroy(other))
    exec_ = check(driver.cuGraphInstantiate(outer, 0))
    assert place.launch(exec_)[0][:2] == [21, 3]
    assert int(check(driver.cuGraphNodeGetDependencies(last, 1))[0][0]) == int(inner)
    check(driver.cuGraphExecDestroy(exec_))


def test_refused_replacements_leave_the_child_graph(place, graphs):
    outer, other, inner = graphs
    former = check(driver.cuGraphChildGraphNodeGetGraph(inner))
    with_condition = check(driver.cuGraphCreate(0))
    place.conditional(with_condition)
    kernel = place.kernel(outer)
    fresh = driver.CUgraphNodeParams()
    fresh.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_EMPTY
    for node, params in (
        (inner, child_params(with_condition)),
        (inner, child_params(0)),
        (inner, fresh),
        (kernel, child_params(other)),
    ):
        assert driver.cuGraphNodeSetParams(node, params)[0] != 0
    assert int(check(driver.cuGraphChildGraphNodeGetGraph(inner))) == int(former)
    check(driver.cuGraphDestroy(with_condition))


@pytest.mark.parametrize("function", ["cuGraphExecChildGraphNodeSetParams", "cuGraphExecNodeSetParams"])
def test_replacing_a_child_graph_of_an_instantiated_graph(place, graphs, function):
    outer, other, inner = graphs
    exec_ = check(driver.cuGraphInstantiate(outer, 0))

    def replace(graph):
        given = graph if "Child" in function else child_params(graph)
        return int(getattr(driver, function)(exec_, inner, given)[0])

    status = replace(other)
    if status == driver.CUresult.CUDA_ERROR_NOT_SUPPORTED and "Child" not in function:
        pytest.skip("the driver cannot replace child graphs with this function")
    assert status == 0
    assert place.launch(exec_)[0][0] == 5
    # The structure has to be the same.
    longer = check(driver.cuGraphCreate(0))
    place.kernel(longer, before=(place.kernel(longer),))
    different = check(driver.cuGraphCreate(0))
    place.fill(different)
    for graph in (longer, different):
        assert replace(graph) != 0
        assert place.launch(exec_)[0][0] == 5
        check(driver.cuGraphDestroy(graph))
    # The definition is unchanged.
    again = check(driver.cuGraphInstantiate(outer, 0))
    assert place.launch(again)[0][0] == 1
    for made in (exec_, again):
        check(driver.cuGraphExecDestroy(made))


def test_replaced_child_graphs_release_their_user_objects(place, graphs):
    outer, other, inner = graphs
    released = []
    _pointer, address = callback(lambda data: released.append(data))
    owned = check(driver.cuUserObjectCreate(1, address, 1, 1))
    check(driver.cuGraphRetainUserObject(other, owned, 1, 1))
    replaced(inner, other)
    check(driver.cuGraphDestroy(other))
    assert released == []
    empty = check(driver.cuGraphCreate(0))
    replaced(inner, empty)
    check(driver.cuGraphDestroy(empty))
    check(driver.cuCtxSynchronize())
    assert driver.cuGraphDestroy(outer)[0] == 0
    assert len(released) <= 1
