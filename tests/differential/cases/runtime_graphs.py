"""The runtime on a GPU: graphs and capture."""

import ctypes

from cases.driver_real import HOST, KERNELS, Caller, compiled

SEEN = []
CALLED = HOST(lambda data: SEEN.append(data))


def _memset(m, address, value=3, width=16):
    out = m.cudaMemsetParams()
    out.dst, out.value, out.elementSize, out.width, out.height = address or 0, value, 4, width, 1
    return out


def _host(m):
    out = m.cudaHostNodeParams()
    out.fn = m.cudaHostFn_t(ctypes.cast(CALLED, ctypes.c_void_p).value)
    out.userData = 9
    return out


def _kernel(m, kernel, arguments):
    out = m.cudaKernelNodeParams()
    out.func = kernel
    out.gridDim.x = out.gridDim.y = out.gridDim.z = 1
    out.blockDim.x, out.blockDim.y, out.blockDim.z = 32, 1, 1
    out.kernelParams = arguments
    return out


def _parts(m, go):
    go("cudaSetDevice", 0)
    go("cudaFree", 0)
    library = go("cudaLibraryLoadData", compiled(KERNELS, "CUBIN"), [], [], 0, [], [], 0)
    return go("cudaLibraryGetKernel", library, b"add"), go.address("cudaMalloc", 1024), go.address("cudaMalloc", 1024)


def _read(m, go, address):
    out = (ctypes.c_int * 4)()
    go("cudaMemcpy", ctypes.addressof(out), address or 0, 16, m.cudaMemcpyKind(2), label="content")
    go.call("content", list, out)


def graphs(m, call):
    """Nodes, edges, clones, instances, launches, updates."""
    go = Caller(m, call)
    kernel_, a, b = _parts(m, go)
    a, b = a or 0, b or 0
    copy_kind = m.cudaMemcpyKind(3)
    graph = go("cudaGraphCreate", 0)
    go("cudaGraphCreate", 5)
    go("cudaGraphGetId", graph, volatile=True)
    empty = go("cudaGraphAddEmptyNode", graph, [], 0)
    memset = go("cudaGraphAddMemsetNode", graph, [empty], 1, _memset(m, a))
    arguments = ((a, 16), (ctypes.c_void_p, ctypes.c_int))
    kernel = go("cudaGraphAddKernelNode", graph, [memset], 1, _kernel(m, kernel_ or 0, arguments))
    copy = go("cudaGraphAddMemcpyNode1D", graph, [memset], 1, b, a, 64, copy_kind)
    params = m.cudaMemcpy3DParms()
    params.srcPtr.ptr, params.srcPtr.pitch, params.srcPtr.xsize, params.srcPtr.ysize = a, 64, 64, 1
    params.dstPtr.ptr, params.dstPtr.pitch, params.dstPtr.xsize, params.dstPtr.ysize = b, 64, 64, 1
    params.extent.width, params.extent.height, params.extent.depth = 64, 1, 1
    params.kind = copy_kind
    box = go("cudaGraphAddMemcpyNode", graph, [copy], 1, params)
    host = go("cudaGraphAddHostNode", graph, [copy], 1, _host(m))
    event, other = go("cudaEventCreateWithFlags", 2), go("cudaEventCreateWithFlags", 2)
    record = go("cudaGraphAddEventRecordNode", graph, [host], 1, event)
    wait = go("cudaGraphAddEventWaitNode", graph, [], 0, other)
    child_graph = go("cudaGraphCreate", 0)
    go("cudaGraphAddEmptyNode", child_graph, None, 0)
    child = go("cudaGraphAddChildGraphNode", graph, [record], 1, child_graph)
    allocation = m.cudaMemAllocNodeParams()
    allocation.poolProps.allocType = m.cudaMemAllocationType.cudaMemAllocationTypePinned
    allocation.poolProps.location.type = m.cudaMemLocationType.cudaMemLocationTypeDevice
    allocation.bytesize = 256
    alloc = go("cudaGraphAddMemAllocNode", graph, [], 0, allocation)
    free = go("cudaGraphAddMemFreeNode", graph, [alloc], 1, allocation.dptr)
    for node in (empty, memset, kernel, copy, box, host, record, wait, child, alloc, free):
        if node is None:
            continue
        go("cudaGraphNodeGetType", node)
        go("cudaGraphNodeGetDependencies", node, 4)
        go("cudaGraphNodeGetDependentNodes", node, 4)
        go("cudaGraphNodeGetLocalId", node)
        go.address("cudaGraphNodeGetToolsId", node)
        go("cudaGraphNodeGetContainingGraph", node)
    go("cudaGraphGetNodes", graph)
    go("cudaGraphGetNodes", graph, 40)
    go("cudaGraphGetRootNodes", graph, 8)
    go("cudaGraphGetEdges", graph, 3)
    go("cudaGraphGetEdges", graph)
    if wait is not None and child is not None:
        go("cudaGraphAddDependencies", graph, [wait], [child], [m.cudaGraphEdgeData()], 1)
        go("cudaGraphAddDependencies", graph, [child], [wait], [m.cudaGraphEdgeData()], 1)
        go("cudaGraphRemoveDependencies", graph, [wait], [child], [m.cudaGraphEdgeData()], 1)
    if kernel is not None:
        go.address("cudaGraphKernelNodeGetParams", kernel)
        go("cudaGraphKernelNodeSetParams", kernel, _kernel(m, kernel_, arguments))
        for attribute in m.cudaKernelNodeAttrID:
            value = go("cudaGraphKernelNodeGetAttribute", kernel, attribute, volatile=True, label=attribute.name)
            if value is not None:
                go("cudaGraphKernelNodeSetAttribute", kernel, attribute, value, label=attribute.name)
        go("cudaGraphKernelNodeCopyAttributes", kernel, kernel)
    go("cudaGraphMemcpyNodeGetParams", box, volatile=True)
    go("cudaGraphMemcpyNodeSetParams", box, params)
    go("cudaGraphMemcpyNodeSetParams1D", copy, b, a, 32, copy_kind)
    go("cudaGraphMemsetNodeGetParams", memset, volatile=True)
    go("cudaGraphMemsetNodeSetParams", memset, _memset(m, a, 4))
    go("cudaGraphHostNodeGetParams", host, volatile=True)
    go("cudaGraphHostNodeSetParams", host, _host(m))
    go("cudaGraphEventRecordNodeGetEvent", record)
    go("cudaGraphEventRecordNodeSetEvent", record, other)
    go("cudaGraphEventWaitNodeGetEvent", wait)
    go("cudaGraphEventWaitNodeSetEvent", wait, event)
    go("cudaGraphChildGraphNodeGetGraph", child)
    go("cudaGraphMemAllocNodeGetParams", alloc, volatile=True)
    go("cudaGraphMemFreeNodeGetParams", free, volatile=True)
    go("cudaGraphClone", graph)
    plain = go("cudaGraphCreate", 0)
    one = go("cudaGraphAddMemsetNode", plain, [], 0, _memset(m, a, 5))
    two = go("cudaGraphAddMemcpyNode1D", plain, [one], 1, b, a, 64, copy_kind)
    three = go("cudaGraphAddHostNode", plain, [two], 1, _host(m))
    clone = go("cudaGraphClone", plain)
    found = go("cudaGraphNodeFindInClone", two, clone)
    go("cudaGraphNodeFindInClone", memset, clone)
    go("cudaGraphDestroyNode", found)
    stream = go("cudaStreamCreateWithFlags", 1)
    for flags in (0, 1, 2, 8):
        for name in ("cudaGraphInstantiate", "cudaGraphInstantiateWithFlags"):
            instance = go(name, plain, flags)
            go("cudaGraphExecGetFlags", instance)
            go("cudaGraphUpload", instance, stream)
            go("cudaGraphLaunch", instance, stream)
            go("cudaStreamSynchronize", stream)
            _read(m, go, b)
            go("cudaGraphExecDestroy", instance)
    instantiate = m.cudaGraphInstantiateParams()
    instantiate.uploadStream, instantiate.flags = stream, 2
    instance = go("cudaGraphInstantiateWithParams", plain, instantiate)
    go("cudaGraphExecMemsetNodeSetParams", instance, one, _memset(m, a, 6))
    go("cudaGraphExecMemcpyNodeSetParams", instance, two, params)
    go("cudaGraphExecMemcpyNodeSetParams1D", instance, two, b, a, 32, copy_kind)
    go("cudaGraphExecHostNodeSetParams", instance, three, _host(m))
    go("cudaGraphExecKernelNodeSetParams", instance, two, _kernel(m, kernel_ or 0, arguments))
    go("cudaGraphExecEventRecordNodeSetEvent", instance, two, event)
    go("cudaGraphExecEventWaitNodeSetEvent", instance, two, event)
    go("cudaGraphExecChildGraphNodeSetParams", instance, two, child_graph)
    go("cudaGraphNodeSetEnabled", instance, one, 0)
    go("cudaGraphNodeGetEnabled", instance, one)
    go("cudaGraphNodeSetEnabled", instance, one, 1)
    go("cudaGraphLaunch", instance, stream)
    go("cudaStreamSynchronize", stream)
    _read(m, go, b)
    go("cudaGraphExecUpdate", instance, plain, volatile=True)
    go("cudaGraphExecUpdate", instance, child_graph, volatile=True)
    go("cudaGraphDebugDotPrint", plain, b"/no/such/folder/graph.dot", 0)
    go("cudaGraphConditionalHandleCreate", plain, 1, 1, volatile=True)
    destroy = HOST(lambda data: SEEN.append(("destroyed", data)))
    object_ = go("cudaUserObjectCreate", 11, m.cudaHostFn_t(ctypes.cast(destroy, ctypes.c_void_p).value), 2, 1)
    go("cudaGraphRetainUserObject", plain, object_, 1, 0)
    go("cudaGraphReleaseUserObject", plain, object_, 1)
    go("cudaUserObjectRetain", object_, 1)
    go("cudaUserObjectRelease", object_, 1)
    go("cudaUserObjectRelease", object_, 2)
    go("cudaGraphExecDestroy", instance)
    for g in (graph, plain, clone):
        go("cudaGraphDestroy", g)
    go.call("seen", lambda: [s if isinstance(s, tuple) else (s,) for s in SEEN])
    go("cudaGetLastError")


def node_parameters(m, call):
    """Nodes of any kind through one struct."""
    go = Caller(m, call)
    _, a, _b = _parts(m, go)
    graph = go("cudaGraphCreate", 0)
    generic = m.cudaGraphNodeParams()
    generic.type = m.cudaGraphNodeType.cudaGraphNodeTypeMemset
    (
        generic.memset.dst,
        generic.memset.value,
        generic.memset.elementSize,
        generic.memset.width,
        generic.memset.height,
    ) = a or 0, 9, 4, 16, 1
    memset = go("cudaGraphAddNode", graph, None, None, 0, generic)
    go("cudaGraphNodeGetType", memset)
    go("cudaGraphNodeSetParams", memset, generic)
    instance = go("cudaGraphInstantiate", graph, 0)
    generic.memset.value = 10
    go("cudaGraphExecNodeSetParams", instance, memset, generic)
    go("cudaGraphLaunch", instance, 0)
    go("cudaDeviceSynchronize")
    _read(m, go, a)
    go("cudaGraphAddNode", graph, None, None, 0, m.cudaGraphNodeParams())
    go("cudaGraphNodeGetParams", memset, volatile=True)


def capture(m, call):
    go = Caller(m, call)
    _, a, b = _parts(m, go)
    a, b = a or 0, b or 0
    stream, second = go("cudaStreamCreateWithFlags", 1), go("cudaStreamCreateWithFlags", 1)
    event, back = go("cudaEventCreateWithFlags", 2), go("cudaEventCreateWithFlags", 2)
    for mode in m.cudaStreamCaptureMode:
        go("cudaStreamIsCapturing", stream)
        go("cudaStreamBeginCapture", stream, mode)
        go("cudaStreamBeginCapture", stream, mode)
        go("cudaStreamIsCapturing", stream)
        go("cudaMemsetAsync", a, 7, 64, stream)
        go("cudaEventRecord", event, stream)
        go("cudaStreamWaitEvent", second, event, 0)
        go("cudaMemcpyAsync", b, a, 64, m.cudaMemcpyKind(3), second)
        go("cudaEventRecord", back, second)
        go("cudaStreamWaitEvent", stream, back, 0)
        go.address("cudaStreamGetCaptureInfo", stream)
        graph = go("cudaStreamEndCapture", stream)
        go("cudaGraphGetNodes", graph, 8)
        go("cudaGraphGetEdges", graph, 8)
        instance = go("cudaGraphInstantiate", graph, 0)
        go("cudaGraphLaunch", instance, stream)
        go("cudaStreamSynchronize", stream)
        _read(m, go, b)
        go("cudaStreamEndCapture", stream)
    graph = go("cudaGraphCreate", 0)
    go("cudaStreamBeginCaptureToGraph", stream, graph, [], [], 0, m.cudaStreamCaptureMode(2))
    go("cudaMemsetAsync", a, 8, 16, stream)
    go("cudaStreamUpdateCaptureDependencies", stream, [], [], 0, 1)
    go("cudaStreamEndCapture", stream)
    go("cudaStreamBeginCapture", stream, m.cudaStreamCaptureMode(2))
    go("cudaEventRecord", event, stream)
    go("cudaStreamWaitEvent", second, event, 0)
    go("cudaMemsetAsync", a, 8, 16, second)
    go("cudaStreamEndCapture", stream)
    go("cudaStreamIsCapturing", stream)
    go("cudaGetLastError")
    go("cudaStreamBeginCapture", stream, m.cudaStreamCaptureMode(0))
    go("cudaMalloc", 16, volatile=True)
    go("cudaStreamSynchronize", stream)
    go("cudaStreamIsCapturing", stream)
    go("cudaStreamEndCapture", stream)
    go("cudaStreamBeginCapture", 0, m.cudaStreamCaptureMode(0))
    go("cudaGetLastError")
