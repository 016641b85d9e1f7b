"""The driver on a GPU: graphs, capture, arrays, textures and surfaces."""

import ctypes

from cases.driver_real import HOST, KERNELS, compiled, read, started


def _memset(m, memory_, value=3, width=16):
    out = m.CUDA_MEMSET_NODE_PARAMS()
    out.dst, out.value, out.elementSize, out.width, out.height = memory_, value, 4, width, 1
    return out


def _kernel(m, function, arguments):
    out = m.CUDA_KERNEL_NODE_PARAMS()
    out.func = function
    out.gridDimX = out.gridDimY = out.gridDimZ = 1
    out.blockDimX, out.blockDimY, out.blockDimZ = 32, 1, 1
    out.kernelParams = arguments
    return out


def _copy(m, to, source, n):
    out = m.CUDA_MEMCPY3D()
    out.srcMemoryType = out.dstMemoryType = m.CUmemorytype.CU_MEMORYTYPE_DEVICE
    out.srcDevice, out.dstDevice = source, to
    out.WidthInBytes, out.Height, out.Depth = n, 1, 1
    return out


def _parts(m, go):
    """(function, memory, its copy) that the nodes use."""
    library = go("cuLibraryLoadData", compiled(KERNELS, "CUBIN"), [], [], 0, [], [], 0)
    kernel = go("cuLibraryGetKernel", library, b"add")
    function = go("cuKernelGetFunction", kernel)
    return function, go("cuMemAlloc", 1024), go("cuMemAlloc", 1024)


SEEN = []
CALLED = HOST(lambda data: SEEN.append(data))


def graphs(m, call):
    """Every kind of node, edges, clones, instances, launches, updates."""
    go, _device, context = started(m, call)
    function, a, b = _parts(m, go)
    graph = go("cuGraphCreate", 0)
    go("cuGraphCreate", 5)
    go("cuGraphGetId", graph, volatile=True)
    empty = go("cuGraphAddEmptyNode", graph, [], 0)
    memset = go("cuGraphAddMemsetNode", graph, [empty], 1, _memset(m, a), context)
    arguments = ((int(a), 16), (ctypes.c_void_p, ctypes.c_int))
    kernel = go("cuGraphAddKernelNode", graph, [memset], 1, _kernel(m, function, arguments))
    copy = go("cuGraphAddMemcpyNode", graph, [kernel], 1, _copy(m, b, a, 64), context)
    host_params = m.CUDA_HOST_NODE_PARAMS()
    host_params.fn = m.CUhostFn(ctypes.cast(CALLED, ctypes.c_void_p).value)
    host_params.userData = 9
    host = go("cuGraphAddHostNode", graph, [copy], 1, host_params)
    event, other = go("cuEventCreate", 2), go("cuEventCreate", 2)
    record = go("cuGraphAddEventRecordNode", graph, [host], 1, event)
    wait = go("cuGraphAddEventWaitNode", graph, [], 0, other)
    child_graph = go("cuGraphCreate", 0)
    go("cuGraphAddEmptyNode", child_graph, None, 0)
    child = go("cuGraphAddChildGraphNode", graph, [record], 1, child_graph)
    allocation = m.CUDA_MEM_ALLOC_NODE_PARAMS()
    allocation.poolProps.allocType = m.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    allocation.poolProps.location.type = m.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    allocation.bytesize = 256
    alloc = go("cuGraphAddMemAllocNode", graph, [], 0, allocation)
    free = go("cuGraphAddMemFreeNode", graph, [alloc], 1, allocation.dptr)
    batch = m.CUDA_BATCH_MEM_OP_NODE_PARAMS()
    operation = m.CUstreamBatchMemOpParams()
    operation.writeValue.operation = m.CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WRITE_VALUE_32
    operation.writeValue.address = b
    operation.writeValue.value = 77
    batch.ctx, batch.count, batch.paramArray = context, 1, [operation]
    written = go("cuGraphAddBatchMemOpNode", graph, [copy], 1, batch)
    nodes = [empty, memset, kernel, copy, host, record, wait, child, alloc, free, written]
    for node in nodes:
        go("cuGraphNodeGetType", node)
        go("cuGraphNodeGetDependencies", node)
        go("cuGraphNodeGetDependencies", node, 4)
        go("cuGraphNodeGetDependentNodes", node)
        go("cuGraphNodeGetDependentNodes", node, 4)
        go("cuGraphNodeGetLocalId", node)
        go.address("cuGraphNodeGetToolsId", node)
        go("cuGraphNodeGetContainingGraph", node)
    go("cuGraphGetNodes", graph)
    go("cuGraphGetNodes", graph, 4)
    go("cuGraphGetNodes", graph, 40)
    go("cuGraphGetRootNodes", graph)
    go("cuGraphGetRootNodes", graph, 8)
    go("cuGraphGetEdges", graph)
    go("cuGraphGetEdges", graph, 3)
    go("cuGraphAddDependencies", graph, [wait], [child], [m.CUgraphEdgeData()], 1)
    go("cuGraphAddDependencies", graph, [child], [wait], [m.CUgraphEdgeData()], 1)
    go("cuGraphRemoveDependencies", graph, [wait], [child], [m.CUgraphEdgeData()], 1)
    go.address("cuGraphKernelNodeGetParams", kernel)
    go("cuGraphKernelNodeSetParams", kernel, _kernel(m, function, arguments))
    go("cuGraphMemcpyNodeGetParams", copy, volatile=True)
    go("cuGraphMemcpyNodeSetParams", copy, _copy(m, b, a, 32))
    go("cuGraphMemsetNodeGetParams", memset, volatile=True)
    go("cuGraphMemsetNodeSetParams", memset, _memset(m, a, 4))
    go("cuGraphHostNodeGetParams", host, volatile=True)
    go("cuGraphHostNodeSetParams", host, host_params)
    go("cuGraphEventRecordNodeGetEvent", record)
    go("cuGraphEventRecordNodeSetEvent", record, other)
    go("cuGraphEventWaitNodeGetEvent", wait)
    go("cuGraphEventWaitNodeSetEvent", wait, event)
    go("cuGraphChildGraphNodeGetGraph", child)
    go("cuGraphMemAllocNodeGetParams", alloc, volatile=True)
    go("cuGraphMemFreeNodeGetParams", free, volatile=True)
    go("cuGraphBatchMemOpNodeGetParams", written, volatile=True)
    go("cuGraphBatchMemOpNodeSetParams", written, batch)
    for attribute in m.CUkernelNodeAttrID:
        value = go("cuGraphKernelNodeGetAttribute", kernel, attribute, volatile=True, label=attribute.name)
        if value is not None:
            go("cuGraphKernelNodeSetAttribute", kernel, attribute, value, label=attribute.name)
    go("cuGraphKernelNodeCopyAttributes", kernel, kernel)
    go("cuGraphExternalSemaphoresSignalNodeGetParams", kernel)
    go("cuGraphExternalSemaphoresWaitNodeGetParams", kernel)
    go("cuGraphNodeGetType", 0)
    # A graph with memory nodes cannot be cloned; one without can.
    go("cuGraphClone", graph)
    plain = go("cuGraphCreate", 0)
    one = go("cuGraphAddMemsetNode", plain, [], 0, _memset(m, a, 5), context)
    two = go("cuGraphAddKernelNode", plain, [one], 1, _kernel(m, function, arguments))
    three = go("cuGraphAddMemcpyNode", plain, [two], 1, _copy(m, b, a, 64), context)
    four = go("cuGraphAddHostNode", plain, [three], 1, host_params)
    clone = go("cuGraphClone", plain)
    found = go("cuGraphNodeFindInClone", two, clone)
    go("cuGraphNodeFindInClone", memset, clone)
    go("cuGraphDestroyNode", found)
    stream = go("cuStreamCreate", 1)
    for flags in (0, 1, 2, 8):
        instance = go("cuGraphInstantiate", plain, flags)
        go("cuGraphExecGetFlags", instance)
        go("cuGraphExecGetId", instance, volatile=True)
        go("cuGraphUpload", instance, stream)
        go("cuGraphLaunch", instance, stream)
        go("cuStreamSynchronize", stream)
        read(go, b, 4)
        go("cuGraphExecDestroy", instance)
    params = m.CUDA_GRAPH_INSTANTIATE_PARAMS()
    params.hUploadStream = stream
    params.flags = 2
    instance = go("cuGraphInstantiateWithParams", plain, params)
    go.call("result_out", lambda: params.result_out)
    go(
        "cuGraphExecKernelNodeSetParams",
        instance,
        two,
        _kernel(m, function, ((int(a), 1), (ctypes.c_void_p, ctypes.c_int))),
    )
    go("cuGraphExecMemcpyNodeSetParams", instance, three, _copy(m, b, a, 32), context)
    go("cuGraphExecMemsetNodeSetParams", instance, one, _memset(m, a, 6), context)
    go("cuGraphExecHostNodeSetParams", instance, four, host_params)
    go("cuGraphExecEventRecordNodeSetEvent", instance, two, event)
    go("cuGraphExecEventWaitNodeSetEvent", instance, two, event)
    go("cuGraphExecChildGraphNodeSetParams", instance, two, child_graph)
    go("cuGraphExecBatchMemOpNodeSetParams", instance, written, batch)
    go("cuGraphNodeSetEnabled", instance, two, 0)
    go("cuGraphNodeGetEnabled", instance, two)
    go("cuGraphNodeSetEnabled", instance, two, 1)
    go("cuGraphNodeGetEnabled", instance, two)
    go("cuGraphLaunch", instance, stream)
    go("cuStreamSynchronize", stream)
    read(go, b, 4)
    go("cuGraphExecUpdate", instance, plain, volatile=True)
    go("cuGraphExecUpdate", instance, child_graph, volatile=True)
    go("cuGraphDebugDotPrint", plain, b"/no/such/folder/graph.dot", 0)
    go("cuGraphConditionalHandleCreate", plain, context, 1, 1, volatile=True)
    destroy = HOST(lambda data: SEEN.append(("destroyed", data)))
    object_ = go("cuUserObjectCreate", 11, m.CUhostFn(ctypes.cast(destroy, ctypes.c_void_p).value), 2, 1)
    go("cuGraphRetainUserObject", plain, object_, 1, 0)
    go("cuGraphReleaseUserObject", plain, object_, 1)
    go("cuUserObjectRetain", object_, 1)
    go("cuUserObjectRelease", object_, 1)
    go("cuUserObjectRelease", object_, 2)
    go("cuGraphDestroyNode", four)
    go("cuGraphExecDestroy", instance)
    for g in (graph, plain, clone, child_graph):
        go("cuGraphDestroy", g)
    go.call("seen", lambda: [s if isinstance(s, tuple) else (s,) for s in SEEN])


def node_parameters(m, call):
    """Nodes of any kind through one struct."""
    go, _device, context = started(m, call)
    _function, a, _b = _parts(m, go)
    graph = go("cuGraphCreate", 0)
    empty = go("cuGraphAddEmptyNode", graph, [], 0)
    generic = m.CUgraphNodeParams()
    generic.type = m.CUgraphNodeType.CU_GRAPH_NODE_TYPE_EMPTY
    go("cuGraphAddNode", graph, [empty], None, 1, generic)
    go("cuGraphAddNode", graph, [empty], [m.CUgraphEdgeData()], 1, generic)
    generic = m.CUgraphNodeParams()
    generic.type = m.CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET
    generic.memset.dst, generic.memset.value, generic.memset.elementSize = a, 9, 4
    generic.memset.width, generic.memset.height, generic.memset.ctx = 16, 1, context
    memset = go("cuGraphAddNode", graph, None, None, 0, generic)
    go("cuGraphNodeGetType", memset)
    go("cuGraphNodeSetParams", memset, generic)
    instance = go("cuGraphInstantiate", graph, 0)
    generic.memset.value = 10
    go("cuGraphExecNodeSetParams", instance, memset, generic)
    go("cuGraphLaunch", instance, 0)
    go("cuCtxSynchronize")
    read(go, a, 2)
    wrong = m.CUgraphNodeParams()
    wrong.type = m.CUgraphNodeType.CU_GRAPH_NODE_TYPE_EMPTY
    go("cuGraphNodeSetParams", memset, wrong)
    go("cuGraphAddNode", graph, [empty], None, 1, m.CUgraphNodeParams())
    go("cuGraphNodeGetParams", memset, volatile=True)
    go("cuGraphNodeGetParams", empty, volatile=True)


def capture(m, call):
    go, _device, _ = started(m, call)
    function, a, b = _parts(m, go)
    stream, second = go("cuStreamCreate", 1), go("cuStreamCreate", 1)
    event, back = go("cuEventCreate", 2), go("cuEventCreate", 2)
    for mode in m.CUstreamCaptureMode:
        go("cuStreamIsCapturing", stream)
        go("cuStreamBeginCapture", stream, mode)
        go("cuStreamBeginCapture", stream, mode)
        go("cuStreamIsCapturing", stream)
        go("cuMemsetD32Async", a, 7, 16, stream)
        go("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, stream, ((int(a), 16), (ctypes.c_void_p, ctypes.c_int)), 0)
        go("cuEventRecord", event, stream)
        go("cuStreamWaitEvent", second, event, 0)
        go("cuMemcpyDtoDAsync", b, a, 64, second)
        go("cuEventRecord", back, second)
        go("cuStreamWaitEvent", stream, back, 0)
        go.address("cuStreamGetCaptureInfo", stream)
        graph = go("cuStreamEndCapture", stream)
        go("cuGraphGetNodes", graph, 8)
        go("cuGraphGetEdges", graph, 8)
        instance = go("cuGraphInstantiate", graph, 0)
        go("cuGraphLaunch", instance, stream)
        go("cuStreamSynchronize", stream)
        read(go, b, 4)
        go("cuStreamEndCapture", stream)
    graph = go("cuGraphCreate", 0)
    go("cuStreamBeginCaptureToGraph", stream, graph, [], [], 0, m.CUstreamCaptureMode(2))
    go("cuMemsetD32Async", a, 8, 16, stream)
    info = go.address("cuStreamGetCaptureInfo", stream)
    if info and len(info) > 2:
        go("cuStreamUpdateCaptureDependencies", stream, [], [], 0, 1)
    go("cuStreamEndCapture", stream)
    # Forks that do not join, and operations prohibited during capture.
    go("cuStreamBeginCapture", stream, m.CUstreamCaptureMode(2))
    go("cuEventRecord", event, stream)
    go("cuStreamWaitEvent", second, event, 0)
    go("cuMemsetD32Async", a, 8, 16, second)
    go("cuStreamEndCapture", stream)
    go("cuStreamIsCapturing", stream)
    go("cuStreamBeginCapture", stream, m.CUstreamCaptureMode(2))
    go("cuStreamSynchronize", stream)
    go("cuStreamIsCapturing", stream)
    go("cuMemsetD32Async", a, 8, 16, stream)
    go("cuStreamEndCapture", stream)
    go("cuStreamIsCapturing", stream)
    go("cuStreamBeginCapture", 0, m.CUstreamCaptureMode(0))


def arrays(m, call):
    go, device, _ = started(m, call)
    formats = {
        m.CUarray_format.CU_AD_FORMAT_FLOAT: 4,
        m.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8: 1,
        m.CUarray_format.CU_AD_FORMAT_HALF: 2,
    }
    host = (ctypes.c_ubyte * 4096)(*[i & 255 for i in range(4096)])
    where = ctypes.addressof(host)
    memory_ = go("cuMemAlloc", 4096)
    for format in formats:
        for channels in (1, 2, 4, 3):
            two = m.CUDA_ARRAY_DESCRIPTOR()
            two.Width, two.Height, two.Format, two.NumChannels = 16, 8, format, channels
            array = go("cuArrayCreate", two)
            go("cuArrayGetDescriptor", array)
            go("cuArray3DGetDescriptor", array)
            go("cuArrayDestroy", array)
            for size, flags in (
                ((16, 0, 0), 0),
                ((16, 8, 0), 2),
                ((8, 8, 4), 0),
                ((8, 0, 4), 1),
                ((8, 8, 6), 4),
                ((8, 8, 12), 5),
                ((8, 4, 6), 4),
                ((16, 8, 0), 8),
                ((0, 0, 0), 0),
            ):
                three = m.CUDA_ARRAY3D_DESCRIPTOR()
                three.Width, three.Height, three.Depth = size
                three.Format, three.NumChannels, three.Flags = format, channels, flags
                array = go("cuArray3DCreate", three)
                go("cuArray3DGetDescriptor", array)
                go("cuArrayGetMemoryRequirements", array, device)
                go("cuArrayGetSparseProperties", array)
                go("cuArrayGetPlane", array, 0)
                if array:
                    go("cuArrayDestroy", array)
    three = m.CUDA_ARRAY3D_DESCRIPTOR()
    three.Width, three.Height, three.Format, three.NumChannels = 64, 0, m.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8, 1
    line = go("cuArray3DCreate", three)
    other = go("cuArray3DCreate", three)
    go("cuMemcpyHtoA", line, 0, where, 64)
    go("cuMemcpyHtoAAsync", line, 0, where, 64, 0)
    go("cuMemcpyAtoD", memory_, line, 0, 64)
    go("cuMemcpyDtoA", other, 0, memory_, 64)
    go("cuMemcpyAtoA", other, 8, line, 0, 32)
    out = (ctypes.c_ubyte * 64)()
    go("cuMemcpyAtoH", ctypes.addressof(out), other, 0, 64)
    go("cuMemcpyAtoHAsync", ctypes.addressof(out), other, 0, 64, 0)
    go("cuCtxSynchronize")
    go.call("content", bytes, out)
    go("cuMemcpyAtoH", ctypes.addressof(out), other, 60, 64)
    three.Height, three.Width = 16, 16
    for levels in (1, 3, 5, 9, 0):
        mipmap = go("cuMipmappedArrayCreate", three, levels)
        go("cuMipmappedArrayGetMemoryRequirements", mipmap, device)
        go("cuMipmappedArrayGetSparseProperties", mipmap)
        for level in (0, 2, 7):
            part = go("cuMipmappedArrayGetLevel", mipmap, level)
            go("cuArray3DGetDescriptor", part)
        if mipmap:
            go("cuMipmappedArrayDestroy", mipmap)
    three.Flags = 2
    plane = go("cuArray3DCreate", three)
    resource = m.CUDA_RESOURCE_DESC()
    resource.resType = m.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
    resource.res.array.hArray = plane
    for mode in m.CUaddress_mode:
        for filter in m.CUfilter_mode:
            texture = m.CUDA_TEXTURE_DESC()
            texture.addressMode = [mode] * 3
            texture.filterMode, texture.mipmapFilterMode = filter, filter
            texture.flags, texture.maxAnisotropy, texture.borderColor = 2, 4, [0.5, 1.0, 2.0, 3.0]
            view = m.CUDA_RESOURCE_VIEW_DESC()
            view.format, view.width, view.height = m.CUresourceViewFormat(1), 16, 16
            for v in (None, view):
                handle = go("cuTexObjectCreate", resource, texture, v)
                if handle:
                    go("cuTexObjectGetResourceDesc", handle, volatile=True)
                    go("cuTexObjectGetTextureDesc", handle)
                    go("cuTexObjectGetResourceViewDesc", handle)
                    go("cuTexObjectDestroy", handle)
    go("cuTexObjectCreate", m.CUDA_RESOURCE_DESC(), m.CUDA_TEXTURE_DESC(), None)
    surface = go("cuSurfObjectCreate", resource)
    go("cuSurfObjectGetResourceDesc", surface, volatile=True)
    go("cuSurfObjectDestroy", surface)
    go("cuSurfObjectCreate", m.CUDA_RESOURCE_DESC())
    # The former texture references.
    reference = go("cuTexRefCreate")
    if reference:
        go("cuTexRefSetArray", reference, plane, 1)
        go("cuTexRefGetArray", reference)
        go("cuTexRefSetAddressMode", reference, 0, m.CUaddress_mode(1))
        go("cuTexRefGetAddressMode", reference, 0)
        go("cuTexRefSetFilterMode", reference, m.CUfilter_mode(1))
        go("cuTexRefGetFilterMode", reference)
        go("cuTexRefSetFlags", reference, 2)
        go("cuTexRefGetFlags", reference)
        go("cuTexRefSetFormat", reference, m.CUarray_format(1), 1)
        go("cuTexRefGetFormat", reference)
        go("cuTexRefSetMaxAnisotropy", reference, 4)
        go("cuTexRefGetMaxAnisotropy", reference)
        go("cuTexRefSetMipmapFilterMode", reference, m.CUfilter_mode(1))
        go("cuTexRefGetMipmapFilterMode", reference)
        go("cuTexRefSetMipmapLevelBias", reference, 1.5)
        go("cuTexRefGetMipmapLevelBias", reference)
        go("cuTexRefSetMipmapLevelClamp", reference, 1.0, 2.5)
        go("cuTexRefGetMipmapLevelClamp", reference)
        go("cuTexRefSetBorderColor", reference, [1.0, 2.0, 3.0, 4.0])
        go("cuTexRefGetBorderColor", reference)
        go("cuTexRefSetAddress", reference, memory_, 256)
        go("cuTexRefGetAddress", reference)
        two = m.CUDA_ARRAY_DESCRIPTOR()
        two.Width, two.Height, two.Format, two.NumChannels = 16, 8, m.CUarray_format(1), 1
        go("cuTexRefSetAddress2D", reference, two, memory_, 512)
        go("cuTexRefGetMipmappedArray", reference)
        go("cuTexRefSetMipmappedArray", reference, go("cuMipmappedArrayCreate", three, 2), 1)
        go("cuTexRefDestroy", reference)
