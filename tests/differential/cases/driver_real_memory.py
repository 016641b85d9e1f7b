"""The driver's memory on a GPU: scripts of calls without side effects on the machine."""

import ctypes
import os

from cases.driver_real import read, started


def memory(m, call):
    go, _device, _ = started(m, call)
    go.address("cuMemGetInfo")
    a = go("cuMemAlloc", 4096)
    b = go("cuMemAlloc", 4096)
    pitched = go("cuMemAllocPitch", 100, 7, 4)
    go("cuMemGetAddressRange", int(a) + 16)
    for name, value, n in (("cuMemsetD8", 7, 64), ("cuMemsetD16", 300, 32), ("cuMemsetD32", 70000, 16)):
        go(name, a, value, n)
        read(go, a, 4)
        go(f"{name}Async", a, value + 1, n, 0)
        read(go, a, 4)
    for name in ("cuMemsetD2D8", "cuMemsetD2D16", "cuMemsetD2D32"):
        go(name, a, 64, 9, 4, 3)
        read(go, a, 20)
        go(f"{name}Async", a, 64, 10, 4, 3, 0)
        read(go, a, 20)
    host = (ctypes.c_int * 64)(*range(64))
    where = ctypes.addressof(host)
    go("cuMemcpyHtoD", a, where, 256)
    go("cuMemcpyHtoDAsync", a, where, 256, 0)
    go("cuMemcpyDtoD", b, a, 256)
    go("cuMemcpyDtoDAsync", b, a, 256, 0)
    go("cuMemcpy", a, b, 256)
    go("cuMemcpyAsync", a, b, 256, 0)
    go("cuMemcpyDtoH", where, a, 256)
    go("cuMemcpyDtoHAsync", where, a, 256, 0)
    go("cuStreamSynchronize", 0)
    context = go("cuCtxGetCurrent")
    go("cuMemcpyPeer", b, context, a, context, 256)
    go("cuMemcpyPeerAsync", b, context, a, context, 256, 0)
    read(go, b, 8)
    for kind in (
        "cuMemcpy2D",
        "cuMemcpy2DUnaligned",
        "cuMemcpy2DAsync",
        "cuMemcpy3D",
        "cuMemcpy3DAsync",
        "cuMemcpy3DPeer",
        "cuMemcpy3DPeerAsync",
    ):
        if "2D" in kind:
            copy = m.CUDA_MEMCPY2D()
        else:
            copy = m.CUDA_MEMCPY3D_PEER() if "Peer" in kind else m.CUDA_MEMCPY3D()
            copy.Depth = 1
            copy.srcHeight = copy.dstHeight = 4
        if "Peer" in kind:
            copy.srcContext = copy.dstContext = context
        copy.srcMemoryType, copy.srcHost, copy.srcPitch = m.CUmemorytype.CU_MEMORYTYPE_HOST, where, 32
        copy.dstMemoryType, copy.dstDevice, copy.dstPitch = m.CUmemorytype.CU_MEMORYTYPE_DEVICE, b, 64
        copy.WidthInBytes, copy.Height = 16, 4
        go(kind, copy, *([0] if kind.endswith("Async") else []))
        read(go, b, 24)
        copy.WidthInBytes = 1000
        go(kind, copy, *([0] if kind.endswith("Async") else []), label="too wide")
    attributes = m.CUmemcpyAttributes()
    attributes.srcAccessOrder = m.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    stream = go("cuStreamCreate", 1)
    go("cuMemcpyBatchAsync", [b, b], [a, a], [16, 32], 2, [attributes], [0], 1, stream)
    go("cuMemcpyWithAttributesAsync", b, a, 64, attributes, stream)
    go("cuStreamSynchronize", stream)
    read(go, b, 8)
    # Host memory
    for flags in (0, 1, 2, 4, 7):
        pinned = go.address("cuMemHostAlloc", 256, flags)
        if pinned:
            go("cuMemHostGetFlags", pinned)
            go.address("cuMemHostGetDevicePointer", pinned, 0)
            for attribute in m.CUpointer_attribute:
                go(
                    "cuPointerGetAttribute",
                    attribute,
                    pinned,
                    volatile="POINTER" in attribute.name or "ID" in attribute.name or "START" in attribute.name,
                    label=f"pinned {attribute.name}",
                )
            go("cuMemFreeHost", pinned)
    pinned = go.address("cuMemAllocHost", 256)
    go("cuMemFreeHost", pinned)
    own = ctypes.create_string_buffer(1 << 16)
    aligned = (ctypes.addressof(own) + 4095) & ~4095
    for flags in (0, 1, 2, 8, 64):
        go("cuMemHostRegister", aligned, 4096, flags)
        go("cuMemHostGetFlags", aligned)
        go("cuMemHostRegister", aligned, 4096, flags)
        go("cuMemHostUnregister", aligned)
    go("cuMemHostUnregister", aligned)
    # Pointer attributes
    for attribute in m.CUpointer_attribute:
        volatile = any(w in attribute.name for w in ("POINTER", "_ID", "START", "CONTEXT", "P2P_TOKENS", "HANDLE"))
        go("cuPointerGetAttribute", attribute, a, volatile=volatile, label=f"device {attribute.name}")
        go("cuPointerGetAttribute", attribute, where, volatile=volatile, label=f"host {attribute.name}")
    wanted = [m.CUpointer_attribute(n) for n in (2, 8, 9, 10)]
    go("cuPointerGetAttributes", len(wanted), wanted, a)
    go("cuPointerGetAttributes", len(wanted), wanted, where)
    go("cuPointerSetAttribute", True, m.CUpointer_attribute.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a)
    go("cuPointerGetAttribute", m.CUpointer_attribute.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a)
    go.address("cuIpcGetMemHandle", a)
    go("cuMemGetHandleForAddressRange", a, 4096, m.CUmemRangeHandleType(1), 0, volatile=True)
    # Managed memory
    managed = go("cuMemAllocManaged", 1 << 16, 1)
    go("cuMemAllocManaged", 64, 99)
    if managed:
        here = m.CUmemLocation()
        here.type, here.id = m.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, 0
        for advice in m.CUmem_advise:
            go("cuMemAdvise", managed, 1 << 16, advice, here, label=advice.name)
        go("cuMemPrefetchAsync", managed, 1 << 16, here, 0, 0)
        go("cuCtxSynchronize")
        for attribute in m.CUmem_range_attribute:
            go(
                "cuMemRangeGetAttribute",
                4 if attribute.value != 3 else 8,
                attribute,
                managed,
                1 << 16,
                label=attribute.name,
            )
        wanted = [m.CUmem_range_attribute(1), m.CUmem_range_attribute(2), m.CUmem_range_attribute(3)]
        go("cuMemRangeGetAttributes", [4, 4, 8], wanted, 3, managed, 1 << 16)
        go("cuStreamAttachMemAsync", stream, managed, 0, 4)
        go("cuStreamAttachMemAsync", stream, managed, 0, 1)
        go("cuMemPrefetchBatchAsync", [managed], [4096], 1, [here], [0], 1, 0, stream)
        go("cuMemDiscardBatchAsync", [managed], [4096], 1, 0, stream)
        go("cuMemDiscardAndPrefetchBatchAsync", [managed], [4096], 1, [here], [0], 1, 0, stream)
        go("cuStreamSynchronize", stream)
        go("cuMemFree", managed)
    for memory_ in (a, b, pitched[0] if pitched else 0, a):
        go("cuMemFree", memory_)


def pools(m, call):
    go, _device, _ = started(m, call)
    properties = m.CUmemPoolProps()
    properties.allocType = m.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type, properties.location.id = m.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, 0
    properties.maxSize = 1 << 26
    pool = go("cuMemPoolCreate", properties)
    stream = go("cuStreamCreate", 1)
    for attribute in m.CUmemPool_attribute:
        go("cuMemPoolGetAttribute", pool, attribute, label=attribute.name)
    for attribute, value in (
        (1, 0),
        (2, 1),
        (3, 0),
        (4, m.cuuint64_t(1 << 20)),
        (6, m.cuuint64_t(0)),
        (8, m.cuuint64_t(0)),
        (5, m.cuuint64_t(0)),
        (1, None),
    ):
        go("cuMemPoolSetAttribute", pool, m.CUmemPool_attribute(attribute), value)
        go("cuMemPoolGetAttribute", pool, m.CUmemPool_attribute(attribute))
    location = m.CUmemLocation()
    location.type, location.id = m.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, 0
    go("cuMemPoolGetAccess", pool, location)
    access = m.CUmemAccessDesc()
    access.location, access.flags = location, m.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    go("cuMemPoolSetAccess", pool, [access], 1)
    one = go("cuMemAllocFromPoolAsync", 1000, pool, stream)
    two = go("cuMemAllocAsync", 1000, stream)
    go("cuMemPoolGetAttribute", pool, m.CUmemPool_attribute(7))
    for memory_ in (one, two):
        if memory_:
            go("cuMemsetD8Async", memory_, 1, 1000, stream)
            go("cuMemFreeAsync", memory_, stream)
    go("cuStreamSynchronize", stream)
    go("cuMemPoolTrimTo", pool, 0)
    go("cuMemPoolExportToShareableHandle", pool, m.CUmemAllocationHandleType(1), 0)
    if one:
        go("cuMemPoolExportPointer", one)
    go("cuMemPoolDestroy", pool)
    go("cuMemPoolDestroy", pool if pool is None else m.CUmemoryPool(0))
    properties.handleTypes = m.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    shared = go("cuMemPoolCreate", properties)
    descriptor = go("cuMemPoolExportToShareableHandle", shared, properties.handleTypes, 0, volatile=True)
    if descriptor is not None:
        imported = go("cuMemPoolImportFromShareableHandle", descriptor, properties.handleTypes, 0)
        memory_ = go("cuMemAllocFromPoolAsync", 1000, shared, stream)
        data = go.address("cuMemPoolExportPointer", memory_)
        go("cuMemPoolImportPointer", imported, data, volatile=True)
    here = m.CUmemLocation()
    here.type, here.id = m.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, 0
    go("cuMemGetDefaultMemPool", here, m.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED)
    found = go("cuMemGetMemPool", here, m.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED)
    go("cuMemSetMemPool", here, m.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED, found)


def virtual_memory(m, call):
    go, _device, _ = started(m, call)
    properties = m.CUmemAllocationProp()
    properties.type = m.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type, properties.location.id = m.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, 0
    properties.requestedHandleTypes = m.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    for option in m.CUmemAllocationGranularity_flags:
        go("cuMemGetAllocationGranularity", properties, option)
    size = go("cuMemGetAllocationGranularity", properties, m.CUmemAllocationGranularity_flags(0)) or 1 << 21
    handle = go("cuMemCreate", size, properties, 0)
    go("cuMemCreate", size + 1, properties, 0)
    go("cuMemCreate", size, m.CUmemAllocationProp(), 0)
    address = go("cuMemAddressReserve", 2 * size, 0, 0, 0)
    go("cuMemMap", address, size, 0, handle, 0)
    go("cuMemMap", address, size, 0, handle, 0)
    access = m.CUmemAccessDesc()
    access.location = properties.location
    access.flags = m.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    go("cuMemGetAccess", properties.location, address)
    go("cuMemSetAccess", address, size, [access], 1)
    go("cuMemGetAccess", properties.location, address)
    go("cuMemsetD32", address, 5, 16)
    read(go, address, 4)
    go("cuMemRetainAllocationHandle", int(address or 0), volatile=True)
    go("cuMemGetAllocationPropertiesFromHandle", handle)
    descriptor = go("cuMemExportToShareableHandle", handle, properties.requestedHandleTypes, 0, volatile=True)
    if descriptor is not None:
        imported = go("cuMemImportFromShareableHandle", descriptor, properties.requestedHandleTypes)
        go("cuMemRelease", imported)
        os.close(int(descriptor))
    go("cuMemUnmap", address, size)
    go("cuMemUnmap", address, size)
    go("cuMemRelease", handle)
    go("cuMemRelease", handle)
    go("cuMemRelease", handle)
    go("cuMemAddressFree", address, 2 * size)
    go("cuMemAddressFree", address, 2 * size)
    object_ = m.CUmulticastObjectProp()
    object_.numDevices, object_.size = 1, size
    go("cuMulticastGetGranularity", object_, m.CUmulticastGranularity_flags(0))
