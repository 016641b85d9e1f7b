"""The runtime: scripts of calls without side effects on the machine; without a GPU every call fails equally on both
sides.

NVIDIA's module contains its runtime, so no recording library can replace it; with the recorder's folder of descriptions
(``--recorder``) every function is called with typed arguments on whichever runtime each side has.
"""

import ctypes

from cuda.bindings import driver

from cases import runtime_graphs as graphs
from cases.driver_real import HOST, KERNELS, STREAM, Caller, compiled, sizes

MODULE = "cuda.bindings.runtime"


def started(m, call):
    """A Caller on the first device."""
    go = Caller(m, call)
    go("cudaSetDevice", 0)
    go("cudaFree", 0)
    return go


def numbers(m, go, address, n=8):
    """The first `n` integers of memory, as an entry."""
    out = (ctypes.c_int * n)()
    go("cudaMemcpy", ctypes.addressof(out), address, 4 * n, m.cudaMemcpyKind.cudaMemcpyDefault, label="content")
    go.call("content", list, out)


def without_a_device(m, call):
    """Calls that need no device."""
    go = Caller(m, call)
    go("cudaRuntimeGetVersion", volatile=True)
    go("cudaDriverGetVersion")
    go("cudaGetLastError")
    go("cudaPeekAtLastError")
    for error in m.cudaError_t:
        go("cudaGetErrorName", error, label=error.name)
        go("cudaGetErrorString", error, label=error.name)
    for kind in m.cudaChannelFormatKind:
        for bits in ((8, 0, 0, 0), (16, 16, 0, 0), (32, 32, 32, 32), (32, 0, 0, 0)):
            go("cudaCreateChannelDesc", *bits, kind)
    call("make_cudaExtent", m.make_cudaExtent, 1, 2, 3)
    call("make_cudaPos", m.make_cudaPos, 1, 2, 3)
    call("make_cudaPitchedPtr", m.make_cudaPitchedPtr, 4096, 2, 3, 4)
    go("cudaMemcpy", 0, 0, 0, m.cudaMemcpyKind.cudaMemcpyHostToHost)
    go("cudaGetDeviceCount")
    go("cudaFree", 0)
    go("cudaGetLastError")
    go("cudaGetLastError")


def devices(m, call):
    go = Caller(m, call)
    go("cudaGetDeviceCount")
    go("cudaGetDevice")
    go("cudaInitDevice", 0, 0, 0)
    go("cudaInitDevice", 99, 0, 0)
    for device in (0, 99, -1):
        go("cudaSetDevice", device)
        go("cudaGetLastError")
    go("cudaGetDeviceFlags")
    go("cudaSetDeviceFlags", 4)
    go("cudaGetDeviceFlags")
    go("cudaSetDeviceFlags", 99)
    go("cudaGetDeviceProperties", 0)
    go("cudaGetDeviceProperties", 99)
    for attribute in m.cudaDeviceAttr:
        go("cudaDeviceGetAttribute", attribute, 0, label=attribute.name)
    bus = go("cudaDeviceGetPCIBusId", 64, 0)
    go("cudaDeviceGetByPCIBusId", bus or b"0")
    go("cudaDeviceGetByPCIBusId", b"nonsense")
    go("cudaChooseDevice", m.cudaDeviceProp())
    go("cudaDeviceCanAccessPeer", 0, 0)
    go("cudaDeviceCanAccessPeer", 0, 99)
    go("cudaDeviceEnablePeerAccess", 0, 0)
    go("cudaDeviceDisablePeerAccess", 0)
    for limit in m.cudaLimit:
        value = go("cudaDeviceGetLimit", limit, label=limit.name)
        if value:
            go("cudaDeviceSetLimit", limit, value, label=limit.name)
    for config in m.cudaFuncCache:
        go("cudaDeviceSetCacheConfig", config)
        go("cudaDeviceGetCacheConfig")
    for config in m.cudaSharedMemConfig:
        go("cudaDeviceSetSharedMemConfig", config)
        go("cudaDeviceGetSharedMemConfig")
    go("cudaDeviceGetStreamPriorityRange")
    for attribute in m.cudaDeviceP2PAttr:
        go("cudaDeviceGetP2PAttribute", attribute, 0, 0, label=attribute.name)
    go(
        "cudaDeviceGetTexture1DLinearMaxWidth",
        m.cudaCreateChannelDesc(32, 0, 0, 0, m.cudaChannelFormatKind.cudaChannelFormatKindFloat)[1],
        0,
    )
    go("cudaDeviceGetDefaultMemPool", 0)
    pool = go("cudaDeviceGetMemPool", 0)
    go("cudaDeviceSetMemPool", 0, pool)
    for attribute in m.cudaGraphMemAttributeType:
        go("cudaDeviceGetGraphMemAttribute", 0, attribute, label=attribute.name)
    go("cudaDeviceSetGraphMemAttribute", 0, m.cudaGraphMemAttributeType(1), driver.cuuint64_t(0))
    go("cudaDeviceGraphMemTrim", 0)
    go(
        "cudaDeviceFlushGPUDirectRDMAWrites",
        m.cudaFlushGPUDirectRDMAWritesTarget(0),
        m.cudaFlushGPUDirectRDMAWritesScope(100),
    )
    operations = list(m.cudaAtomicOperation)[:4] if hasattr(m, "cudaAtomicOperation") else []
    go("cudaDeviceGetHostAtomicCapabilities", operations, len(operations), 0)
    go("cudaDeviceGetP2PAtomicCapabilities", operations, len(operations), 0, 0)
    go("cudaCtxResetPersistingL2Cache")
    go("cudaDeviceSynchronize")
    go.address("cudaGetDriverEntryPoint", b"cuMemAlloc", 0)
    go("cudaGetDriverEntryPoint", b"cuNoSuch", 0)
    go.address("cudaGetDriverEntryPointByVersion", b"cuMemAlloc", 12000, 0)
    go("cudaProfilerStart")
    go("cudaProfilerStop")
    go("cudaDeviceReset")
    go("cudaGetDevice")


def memory(m, call):
    go = started(m, call)
    kind = m.cudaMemcpyKind
    go.address("cudaMemGetInfo")
    a, b = go.address("cudaMalloc", 4096), go.address("cudaMalloc", 4096)
    pitched = go.address("cudaMallocPitch", 100, 7)
    extent = m.cudaExtent()
    extent.width, extent.height, extent.depth = 64, 4, 3
    box = go.address("cudaMalloc3D", extent)
    if box:
        go("cudaMemset3D", box, 5, extent)
        go("cudaMemset3DAsync", box, 6, extent, 0)
    go("cudaMalloc", 0)
    go("cudaMalloc", 1 << 60)
    go("cudaGetLastError")
    go("cudaMemset", a, 7, 256)
    go("cudaMemsetAsync", a, 8, 128, 0)
    numbers(m, go, a)
    go("cudaMemset2D", a, 64, 9, 16, 3)
    go("cudaMemset2DAsync", a, 64, 10, 8, 3, 0)
    numbers(m, go, a, 40)
    host = (ctypes.c_int * 256)(*range(256))
    where = ctypes.addressof(host)
    for k in kind:
        go("cudaMemcpy", a, where, 64, k, label=k.name)
        go("cudaMemcpy", b, a, 64, k, label=f"device {k.name}")
        go("cudaGetLastError")
    go("cudaMemcpy", a, where, 1024, kind(1))
    go("cudaMemcpyAsync", b, a, 1024, kind(3), 0)
    go("cudaMemcpyAsync", b, a, 1024, kind(4), 0)
    go("cudaMemcpy2D", b, 64, where, 32, 16, 4, kind(1))
    go("cudaMemcpy2DAsync", b, 64, a, 32, 16, 4, kind(3), 0)
    go("cudaMemcpy2D", b, 8, where, 32, 16, 4, kind(1))
    numbers(m, go, b, 40)
    go("cudaMemcpyPeer", b, 0, a, 0, 64)
    go("cudaMemcpyPeerAsync", b, 0, a, 0, 64, 0)
    for name in ("cudaMemcpy3D", "cudaMemcpy3DAsync"):
        copy = m.cudaMemcpy3DParms()
        copy.srcPtr.ptr, copy.srcPtr.pitch, copy.srcPtr.xsize, copy.srcPtr.ysize = where, 32, 32, 4
        copy.dstPtr.ptr, copy.dstPtr.pitch, copy.dstPtr.xsize, copy.dstPtr.ysize = b, 64, 64, 4
        copy.extent.width, copy.extent.height, copy.extent.depth = 16, 4, 1
        copy.kind = kind(1)
        go(name, copy, *([0] if name.endswith("Async") else []))
        numbers(m, go, b, 40)
        copy.extent.width = 1000
        go(name, copy, *([0] if name.endswith("Async") else []), label="too wide")
    for name in ("cudaMemcpy3DPeer", "cudaMemcpy3DPeerAsync"):
        copy = m.cudaMemcpy3DPeerParms()
        copy.srcPtr.ptr, copy.srcPtr.pitch, copy.srcPtr.xsize, copy.srcPtr.ysize = a, 32, 32, 4
        copy.dstPtr.ptr, copy.dstPtr.pitch, copy.dstPtr.xsize, copy.dstPtr.ysize = b, 64, 64, 4
        copy.extent.width, copy.extent.height, copy.extent.depth = 16, 4, 1
        go(name, copy, *([0] if name.endswith("Async") else []))
    go("cudaGetLastError")
    for flags in (0, 1, 2, 4, 7, 99):
        pinned = go.address("cudaHostAlloc", 256, flags)
        if pinned:
            go("cudaHostGetFlags", pinned)
            go.address("cudaHostGetDevicePointer", pinned, 0)
            go.address("cudaPointerGetAttributes", pinned)
            go("cudaFreeHost", pinned)
    pinned = go.address("cudaMallocHost", 256)
    go("cudaFreeHost", pinned)
    own = ctypes.create_string_buffer(1 << 14)
    aligned = (ctypes.addressof(own) + 4095) & ~4095
    for flags in (0, 1, 2, 8):
        go("cudaHostRegister", aligned, 4096, flags)
        go("cudaHostRegister", aligned, 4096, flags)
        go("cudaHostGetFlags", aligned)
        go("cudaHostUnregister", aligned)
    go("cudaHostUnregister", aligned)
    go("cudaGetLastError")
    go.address("cudaPointerGetAttributes", a)
    go.address("cudaPointerGetAttributes", where)
    go("cudaPointerGetAttributes", 0)
    go.address("cudaIpcGetMemHandle", a)
    managed = go.address("cudaMallocManaged", 1 << 16, 1)
    go("cudaMallocManaged", 64, 99)
    if managed:
        here = m.cudaMemLocation()
        here.type, here.id = m.cudaMemLocationType.cudaMemLocationTypeDevice, 0
        for advice in m.cudaMemoryAdvise:
            go("cudaMemAdvise", managed, 1 << 16, advice, here, label=advice.name)
        go("cudaMemPrefetchAsync", managed, 1 << 16, here, 0, 0)
        go("cudaDeviceSynchronize")
        for attribute in m.cudaMemRangeAttribute:
            go(
                "cudaMemRangeGetAttribute",
                8 if "AccessedBy" in attribute.name else 4,
                attribute,
                managed,
                1 << 16,
                label=attribute.name,
            )
        wanted = [m.cudaMemRangeAttribute(1), m.cudaMemRangeAttribute(2)]
        go("cudaMemRangeGetAttributes", [4, 4], wanted, 2, managed, 1 << 16)
        stream = go("cudaStreamCreateWithFlags", 1)
        go("cudaStreamAttachMemAsync", stream, managed, 0, 4)
        go("cudaStreamAttachMemAsync", stream, managed, 0, 1)
        go("cudaMemPrefetchBatchAsync", [managed], [4096], 1, [here], [0], 1, 0, stream)
        go("cudaMemDiscardBatchAsync", [managed], [4096], 1, 0, stream)
        go("cudaMemDiscardAndPrefetchBatchAsync", [managed], [4096], 1, [here], [0], 1, 0, stream)
        attributes = m.cudaMemcpyAttributes()
        attributes.srcAccessOrder = m.cudaMemcpySrcAccessOrder.cudaMemcpySrcAccessOrderStream
        go("cudaMemcpyBatchAsync", [b, b], [a, a], [16, 32], 2, [attributes], [0], 1, stream)
        go("cudaMemcpyWithAttributesAsync", b, a, 64, attributes, stream)
        go("cudaStreamSynchronize", stream)
        numbers(m, go, b)
        go("cudaFree", managed)
    for address in (a, b, pitched[0] if pitched else 0, box.ptr if box else 0, 0, a, 12345):
        go("cudaFree", address)
        go("cudaPeekAtLastError")
    go("cudaGetLastError")


def pools(m, call):
    go = started(m, call)
    properties = m.cudaMemPoolProps()
    properties.allocType = m.cudaMemAllocationType.cudaMemAllocationTypePinned
    properties.location.type, properties.location.id = m.cudaMemLocationType.cudaMemLocationTypeDevice, 0
    pool = go("cudaMemPoolCreate", properties)
    stream = go("cudaStreamCreate")
    for attribute in m.cudaMemPoolAttr:
        go("cudaMemPoolGetAttribute", pool, attribute, label=attribute.name)
    go("cudaMemPoolSetAttribute", pool, m.cudaMemPoolAttr.cudaMemPoolAttrReleaseThreshold, driver.cuuint64_t(1 << 20))
    go("cudaMemPoolSetAttribute", pool, m.cudaMemPoolAttr.cudaMemPoolReuseFollowEventDependencies, 0)
    go("cudaMemPoolGetAttribute", pool, m.cudaMemPoolAttr.cudaMemPoolAttrReleaseThreshold)
    location = properties.location
    go("cudaMemPoolGetAccess", pool, location)
    access = m.cudaMemAccessDesc()
    access.location, access.flags = location, m.cudaMemAccessFlags.cudaMemAccessFlagsProtReadWrite
    go("cudaMemPoolSetAccess", pool, [access], 1)
    one = go.address("cudaMallocFromPoolAsync", 1000, pool, stream)
    two = go.address("cudaMallocAsync", 1000, stream)
    for memory_ in (one, two):
        if memory_:
            go("cudaMemsetAsync", memory_, 1, 1000, stream)
            go("cudaFreeAsync", memory_, stream)
    go("cudaStreamSynchronize", stream)
    go("cudaMemPoolTrimTo", pool, 0)
    go("cudaMemPoolExportToShareableHandle", pool, m.cudaMemAllocationHandleType(1), 0)
    go("cudaMemPoolDestroy", pool)
    properties.handleTypes = m.cudaMemAllocationHandleType.cudaMemHandleTypePosixFileDescriptor
    shared = go("cudaMemPoolCreate", properties)
    descriptor = go("cudaMemPoolExportToShareableHandle", shared, properties.handleTypes, 0, volatile=True)
    if descriptor is not None:
        imported = go("cudaMemPoolImportFromShareableHandle", descriptor, properties.handleTypes, 0)
        address = go.address("cudaMallocFromPoolAsync", 1000, shared, stream)
        data = go.address("cudaMemPoolExportPointer", address)
        go("cudaMemPoolImportPointer", imported, data, volatile=True)
    go("cudaMemGetDefaultMemPool", location, m.cudaMemAllocationType.cudaMemAllocationTypePinned)
    found = go("cudaMemGetMemPool", location, m.cudaMemAllocationType.cudaMemAllocationTypePinned)
    go("cudaMemSetMemPool", location, m.cudaMemAllocationType.cudaMemAllocationTypePinned, found)


def streams(m, call):
    go = started(m, call)
    for stream in (
        go("cudaStreamCreate"),
        go("cudaStreamCreateWithFlags", 1),
        go("cudaStreamCreateWithPriority", 1, -1),
        go("cudaStreamCreateWithFlags", 99),
        0,
        1,
        2,
    ):
        if stream is None:
            continue
        go("cudaStreamGetFlags", stream)
        go("cudaStreamGetPriority", stream)
        go("cudaStreamGetDevice", stream)
        go.address("cudaStreamGetId", stream)
        go("cudaStreamQuery", stream)
        go("cudaStreamSynchronize", stream)
        go("cudaStreamIsCapturing", stream)
    stream = go("cudaStreamCreate")
    one, two, plain = go("cudaEventCreate"), go("cudaEventCreateWithFlags", 1), go("cudaEventCreateWithFlags", 2)
    go("cudaEventCreateWithFlags", 99)
    go("cudaEventQuery", one)
    go("cudaEventRecord", one, stream)
    go("cudaEventRecordWithFlags", two, stream, 0)
    go("cudaEventRecordWithFlags", two, stream, 9)
    go("cudaStreamWaitEvent", stream, one, 0)
    go("cudaEventSynchronize", two)
    go.address("cudaEventElapsedTime", one, two)
    go("cudaEventElapsedTime", one, plain)
    go("cudaIpcGetEventHandle", plain)
    go.address("cudaIpcGetEventHandle", go("cudaEventCreateWithFlags", 6))
    seen = []
    host, callback = HOST(lambda data: seen.append(data)), STREAM(lambda s, status, data: seen.append((status, data)))
    go("cudaLaunchHostFunc", stream, m.cudaHostFn_t(ctypes.cast(host, ctypes.c_void_p).value), 5)
    go("cudaStreamAddCallback", stream, m.cudaStreamCallback_t(ctypes.cast(callback, ctypes.c_void_p).value), 6, 0)
    go("cudaStreamSynchronize", stream)
    go.call("called", list, seen)
    for attribute in m.cudaStreamAttrID:
        value = go("cudaStreamGetAttribute", stream, attribute, volatile=True, label=attribute.name)
        if value is not None:
            go("cudaStreamSetAttribute", stream, attribute, value, label=attribute.name)
    go("cudaStreamCopyAttributes", go("cudaStreamCreate"), stream)
    go("cudaThreadExchangeStreamCaptureMode", m.cudaStreamCaptureMode(1))
    go("cudaThreadExchangeStreamCaptureMode", m.cudaStreamCaptureMode(0))
    for event in (one, two, plain, 0):
        go("cudaEventDestroy", event)
    go("cudaStreamDestroy", stream)
    go("cudaStreamDestroy", 0)
    go("cudaGetLastError")


def libraries(m, call):
    go = started(m, call)
    cubin = compiled(KERNELS, "CUBIN")
    library = go(
        "cudaLibraryLoadData",
        cubin,
        [m.cudaJitOption.cudaJitMaxRegisters],
        [32],
        1,
        [m.cudaLibraryOption.cudaLibraryBinaryIsPreserved],
        [True],
        1,
    )
    library = go("cudaLibraryLoadData", cubin, [], [], 0, [], [], 0) or library
    go("cudaLibraryLoadData", b"nonsense", [], [], 0, [], [], 0)
    go("cudaLibraryLoadFromFile", b"/no/such/file", [], [], 0, [], [], 0)
    kernel = go("cudaLibraryGetKernel", library, b"add")
    go("cudaLibraryGetKernel", library, b"no such")
    go("cudaLibraryGetKernelCount", library)
    go("cudaLibraryEnumerateKernels", 3, library)
    go.address("cudaLibraryGetGlobal", library, b"table")
    go.address("cudaLibraryGetManaged", library, b"shared_value")
    go.address("cudaLibraryGetUnifiedFunction", library, b"add")
    if kernel is not None:
        go("cudaFuncGetAttributes", kernel)
        go("cudaFuncGetParamCount", kernel)
        for attribute in m.cudaFuncAttribute:
            go("cudaFuncSetAttribute", kernel, attribute, 0, label=attribute.name)
            go("cudaKernelSetAttributeForDevice", kernel, attribute, 0, 0, label=attribute.name)
        go("cudaFuncSetCacheConfig", kernel, m.cudaFuncCache(1))
        go("cudaFuncSetSharedMemConfig", kernel, m.cudaSharedMemConfig(1))
        go("cudaOccupancyMaxActiveBlocksPerMultiprocessor", kernel, 128, 0)
        go("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", kernel, 128, 1024, 1)
        go("cudaOccupancyAvailableDynamicSMemPerBlock", kernel, 2, 128)
        go("cudaGetKernel", kernel)
        # A kernel of the runtime is launched through the driver.
        address = go.address("cudaMalloc", 256)
        go("cudaMemset", address, 0, 256)
        arguments = ((address, 32), (ctypes.c_void_p, ctypes.c_int))
        call("launch", driver.cuLaunchKernel, driver.CUfunction(int(kernel)), 1, 1, 1, 32, 1, 1, 0, 0, arguments, 0)
        go("cudaDeviceSynchronize")
        numbers(m, go, address)
    go("cudaLibraryUnload", library)
    go("cudaGetLastError")


def arrays(m, call):
    go = started(m, call)
    kinds, copy = m.cudaChannelFormatKind, m.cudaMemcpyKind
    host = (ctypes.c_ubyte * 4096)(*[i & 255 for i in range(4096)])
    where = ctypes.addressof(host)
    for bits, kind in (
        ((8, 0, 0, 0), kinds(1)),
        ((32, 0, 0, 0), kinds(2)),
        ((16, 16, 16, 16), kinds(0)),
        ((16, 0, 0, 0), kinds(2)),
        ((8, 8, 8, 0), kinds(1)),
    ):
        desc = m.cudaCreateChannelDesc(*bits, kind)[1]
        for width, height, flags in ((16, 8, 0), (16, 0, 0), (16, 8, 2), (16, 8, 8), (0, 0, 0)):
            array = go("cudaMallocArray", desc, width, height, flags)
            go("cudaArrayGetInfo", array)
            go("cudaGetChannelDesc", array)
            go("cudaArrayGetMemoryRequirements", array, 0)
            go("cudaArrayGetSparseProperties", array)
            go("cudaArrayGetPlane", array, 0)
            if array:
                go("cudaFreeArray", array)
        for size, flags in (((8, 8, 4), 0), ((8, 0, 4), 1), ((8, 8, 6), 4), ((8, 8, 12), 5), ((8, 4, 6), 4)):
            extent = m.cudaExtent()
            extent.width, extent.height, extent.depth = size
            array = go("cudaMalloc3DArray", desc, extent, flags)
            go("cudaArrayGetInfo", array)
            mipmap = go("cudaMallocMipmappedArray", desc, extent, 3, flags)
            level = go("cudaGetMipmappedArrayLevel", mipmap, 1)
            go("cudaArrayGetInfo", level)
            go("cudaGetMipmappedArrayLevel", mipmap, 9)
            go("cudaMipmappedArrayGetMemoryRequirements", mipmap, 0)
            go("cudaMipmappedArrayGetSparseProperties", mipmap)
            if mipmap:
                go("cudaFreeMipmappedArray", mipmap)
    go("cudaGetLastError")
    desc = m.cudaCreateChannelDesc(8, 0, 0, 0, kinds(1))[1]
    array, other = go("cudaMallocArray", desc, 32, 4, 0), go("cudaMallocArray", desc, 32, 4, 2)
    memory_ = go.address("cudaMalloc", 4096)
    out = (ctypes.c_ubyte * 128)()
    to = ctypes.addressof(out)
    go("cudaMemcpy2DToArray", array, 0, 0, where, 32, 32, 4, copy(1))
    go("cudaMemcpy2DToArrayAsync", array, 0, 0, where, 32, 32, 4, copy(1), 0)
    go("cudaMemcpy2DArrayToArray", other, 0, 0, array, 4, 1, 16, 2, copy(3))
    go("cudaMemcpy2DFromArray", to, 32, array, 0, 0, 32, 4, copy(2))
    go("cudaMemcpy2DFromArrayAsync", to, 32, array, 0, 0, 32, 4, copy(2), 0)
    go("cudaMemcpyToArray", array, 0, 0, where, 64, copy(1))
    go("cudaMemcpyToArrayAsync", array, 0, 0, where, 64, copy(1), 0)
    go("cudaMemcpyFromArray", to, array, 0, 0, 64, copy(2))
    go("cudaMemcpyFromArrayAsync", to, array, 0, 0, 64, copy(2), 0)
    go("cudaMemcpyArrayToArray", other, 0, 0, array, 0, 0, 32, copy(3))
    go("cudaMemcpy2DToArray", array, 0, 0, where, 32, 64, 4, copy(1), label="too wide")
    go("cudaDeviceSynchronize")
    go.call("content", bytes, out)
    resource = m.cudaResourceDesc()
    resource.resType = m.cudaResourceType.cudaResourceTypeArray
    resource.res.array.array = other
    for mode in m.cudaTextureAddressMode:
        for filter in m.cudaTextureFilterMode:
            for read in m.cudaTextureReadMode:
                texture = m.cudaTextureDesc()
                texture.addressMode = [mode] * 3
                texture.filterMode, texture.mipmapFilterMode, texture.readMode = filter, filter, read
                texture.normalizedCoords, texture.maxAnisotropy, texture.borderColor = 1, 4, [0.5, 1.0, 2.0, 3.0]
                view = m.cudaResourceViewDesc()
                view.format, view.width, view.height = m.cudaResourceViewFormat(1), 32, 4
                for v in (None, view):
                    handle = go("cudaCreateTextureObject", resource, texture, v)
                    if handle:
                        go("cudaGetTextureObjectResourceDesc", handle, volatile=True)
                        go("cudaGetTextureObjectTextureDesc", handle)
                        go("cudaGetTextureObjectResourceViewDesc", handle)
                        go("cudaDestroyTextureObject", handle)
    linear = m.cudaResourceDesc()
    linear.resType = m.cudaResourceType.cudaResourceTypeLinear
    linear.res.linear.devPtr, linear.res.linear.desc, linear.res.linear.sizeInBytes = memory_ or 0, desc, 64
    go("cudaCreateTextureObject", linear, m.cudaTextureDesc(), None)
    go("cudaCreateTextureObject", m.cudaResourceDesc(), m.cudaTextureDesc(), None)
    surface = go("cudaCreateSurfaceObject", resource)
    go("cudaGetSurfaceObjectResourceDesc", surface, volatile=True)
    go("cudaDestroySurfaceObject", surface)
    go("cudaDestroyTextureObject", 12345)
    go("cudaGetLastError")


def others(m, call):
    go = started(m, call)
    for kind in m.cudaDevResourceType:
        go("cudaDeviceGetDevResource", 0, kind, volatile=True, label=kind.name)
    context = go("cudaDeviceGetExecutionCtx", 0)
    go("cudaExecutionCtxGetDevice", context)
    go.address("cudaExecutionCtxGetId", context)
    go("cudaExecutionCtxSynchronize", context)
    go("cudaLogsCurrent", 0, volatile=True)
    for name in ("cudaGraphicsUnregisterResource", "cudaDestroyExternalMemory", "cudaDestroyExternalSemaphore"):
        go(name, 0)
    description = m.cudaExternalMemoryHandleDesc()
    description.type, description.handle.fd, description.size = next(iter(m.cudaExternalMemoryHandleType)), -1, 4096
    go("cudaImportExternalMemory", description)
    description = m.cudaExternalSemaphoreHandleDesc()
    description.type, description.handle.fd = next(iter(m.cudaExternalSemaphoreHandleType)), -1
    go("cudaImportExternalSemaphore", description)
    go("cudaGetLastError")


SCRIPTS = (
    without_a_device,
    devices,
    memory,
    pools,
    streams,
    libraries,
    arrays,
    others,
    graphs.graphs,
    graphs.capture,
    graphs.node_parameters,
    sizes,
)
