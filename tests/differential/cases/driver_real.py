"""The driver on a GPU: scripts of calls without side effects on the machine."""

import ctypes
import os

KERNELS = b"""
__device__ int table[16];
__constant__ float factors[4];
__managed__ int shared_value;
extern "C" __global__ void add(int *p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] += 3; }
extern "C" __global__ void many(int *out, char a, short b, int c, long long d, float e, double f) {
    out[0] = a; out[1] = b; out[2] = c; out[3] = (int)d; out[4] = (int)(e * 10); out[5] = (int)(f * 10);
}
extern "C" __global__ void shared_memory(int *p) { extern __shared__ int s[]; s[threadIdx.x] = threadIdx.x; __syncthreads(); p[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x]; }
"""
RELOCATABLE = b'extern "C" __device__ int helper(int); extern "C" __global__ void uses(int *p) { *p = helper(*p); }'
HELPER = b'extern "C" __device__ int helper(int x) { return x * 2; }'


class Caller:
    """Calls functions by name; returns the outputs, or None for a failure."""

    def __init__(self, m, call):
        self.m, self.call = m, call

    def __call__(self, name, *args, volatile=False, label=""):
        result = self.call(f"{name} {label}".strip(), getattr(self.m, name), *args, volatile=volatile)
        if not isinstance(result, tuple) or int(result[0]):
            return None
        return result[1] if len(result) == 2 else result[1:] or True

    def address(self, name, *args, **options):
        """As `__call__`, for a call whose outputs are addresses."""
        return self(name, *args, volatile=True, **options)


def started(m, call):
    """A Caller in the primary context of the first device."""
    go = Caller(m, call)
    go("cuInit", 0)
    device = go("cuDeviceGet", 0)
    context = go("cuDevicePrimaryCtxRetain", device)
    go("cuCtxSetCurrent", context)
    return go, device, context


def compiled(source, get, *options):
    """NVRTC's output of a source for the first device."""
    from cuda.bindings import driver, nvrtc

    names = driver.CUdevice_attribute
    number = "".join(
        str(driver.cuDeviceGetAttribute(a, driver.CUdevice(0))[1])
        for a in (
            names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    )
    arch = (b"-arch=sm_" if get == "CUBIN" else b"-arch=compute_") + number.encode()
    _, program = nvrtc.nvrtcCreateProgram(source, b"a.cu", 0, None, None)
    options = [arch, *options]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(status):
        raise RuntimeError("NVRTC refuses the source")
    _, size = getattr(nvrtc, f"nvrtcGet{get}Size")(program)
    out = bytearray(size)
    getattr(nvrtc, f"nvrtcGet{get}")(program, out)
    nvrtc.nvrtcDestroyProgram(program)
    return bytes(out)


def read(go, device_memory, n):
    """The first `n` integers of device memory, as an entry of the record."""
    out = (ctypes.c_int * n)()
    go("cuMemcpyDtoH", ctypes.addressof(out), device_memory, 4 * n, label="content")
    go.call("content", list, out)
    return list(out)


# ----------------------------------------------------------------------------------------------------------
# Device and context queries


def before_init(m, call):
    go = Caller(m, call)
    go("cuDeviceGetCount")
    go("cuDeviceGet", 0)
    go("cuCtxGetCurrent")
    go("cuMemAlloc", 16)
    go("cuDriverGetVersion")
    go("cuInit", 1)
    go("cuInit", 0)


def devices(m, call):
    go = Caller(m, call)
    go("cuInit", 0)
    go("cuDriverGetVersion")
    go("cuDeviceGetCount")
    device = go("cuDeviceGet", 0)
    go("cuDeviceGet", 99)
    go("cuDeviceGet", -1)
    go("cuDeviceGetName", 256, device)
    go("cuDeviceGetName", 5, device)
    go("cuDeviceGetUuid", device)
    go("cuDeviceGetLuid", device)
    go("cuDeviceTotalMem", device)
    go("cuDeviceComputeCapability", device)
    go("cuDeviceGetProperties", device)
    for attribute in m.CUdevice_attribute:
        go("cuDeviceGetAttribute", attribute, device, label=attribute.name)
    bus = go("cuDeviceGetPCIBusId", 64, device)
    go("cuDeviceGetByPCIBusId", bus or b"0")
    go("cuDeviceGetByPCIBusId", b"nonsense")
    for affinity in m.CUexecAffinityType:
        go("cuDeviceGetExecAffinitySupport", affinity, device)
    for attribute in m.CUdevice_P2PAttribute:
        go("cuDeviceGetP2PAttribute", attribute, device, device, label=attribute.name)
    go("cuDeviceCanAccessPeer", device, device)
    go("cuDeviceCanAccessPeer", device, m.CUdevice(99))
    for format, channels in ((1, 1), (32, 4), (16, 2)):
        go("cuDeviceGetTexture1DLinearMaxWidth", m.CUarray_format(format), channels, device)
    operations = list(m.CUatomicOperation)[:4] if hasattr(m, "CUatomicOperation") else []
    go("cuDeviceGetHostAtomicCapabilities", operations, len(operations), device)
    go("cuDeviceGetP2PAtomicCapabilities", operations, len(operations), device, device)
    go("cuDeviceGetDefaultMemPool", device)
    pool = go("cuDeviceGetMemPool", device)
    go("cuDeviceSetMemPool", device, pool)
    for attribute in m.CUgraphMem_attribute:
        go("cuDeviceGetGraphMemAttribute", device, attribute, label=attribute.name)
    go("cuDeviceSetGraphMemAttribute", device, m.CUgraphMem_attribute.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, m.cuuint64_t(0))
    go("cuDeviceGraphMemTrim", device)
    go("cuDevicePrimaryCtxGetState", device)
    go("cuDevicePrimaryCtxSetFlags", device, 4)
    go("cuDevicePrimaryCtxGetState", device)
    go("cuDevicePrimaryCtxSetFlags", device, 0)
    go("cuDevicePrimaryCtxRetain", device)
    go("cuDevicePrimaryCtxGetState", device)
    go("cuDevicePrimaryCtxRelease", device)
    go("cuDevicePrimaryCtxReset", device)
    go("cuDevicePrimaryCtxRelease", device)
    for name in ("cuGetProcAddress",):
        go.address(name, b"cuInit", 13000, 0)
        go.address(name, b"cuMemAlloc", 12000, 2)
        go(name, b"cuNoSuchFunction", 13000, 0)
    go("cuGetExportTable", m.CUuuid())


def errors(m, call):
    go = Caller(m, call)
    for status in m.CUresult:
        go("cuGetErrorName", status, label=status.name)
        go("cuGetErrorString", status, label=status.name)
    go("cuInit", 0)
    for name, arguments in (
        ("cuMemFree", (1234,)), ("cuStreamDestroy", (0,)), ("cuEventDestroy", (0,)), ("cuModuleUnload", (0,)), ("cuCtxDestroy", (0,)),
        ("cuGraphDestroy", (0,)), ("cuMemAlloc", (16,)), ("cuCtxSynchronize", ()), ("cuCtxGetDevice", ()), ("cuCtxGetCurrent", ()),
        ("cuStreamCreate", (0,)), ("cuArrayDestroy", (0,)), ("cuLibraryUnload", (0,)), ("cuModuleLoad", (b"/no/such/file",)),
    ):  # fmt: skip
        go(name, *arguments, label="without a context")
    started(m, call)
    for name, arguments in (
        ("cuMemAlloc", (0,)), ("cuMemAlloc", (1 << 60,)), ("cuMemFree", (1234,)), ("cuMemFree", (0,)), ("cuCtxSetLimit", (m.CUlimit(0), 1 << 40)),
        ("cuStreamCreate", (99,)), ("cuEventCreate", (99,)), ("cuModuleLoadData", (b"nonsense",)), ("cuModuleLoad", (b"/no/such/file",)),
        ("cuLibraryLoadFromFile", (b"/no/such/file", [], [], 0, [], [], 0)), ("cuMemcpyDtoD", (16, 32, 4)), ("cuMemsetD8", (16, 1, 4)),
        ("cuMemHostGetDevicePointer", (4096, 0)), ("cuMemGetAddressRange", (4096,)), ("cuPointerGetAttribute", (m.CUpointer_attribute(2), 4096)),
        ("cuDeviceGetName", (0, 0)), ("cuMemAllocPitch", (0, 0, 3)), ("cuLaunchKernel", (0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)),
        ("cuEventElapsedTime", (0, 0)), ("cuGraphInstantiate", (0, 0)), ("cuModuleGetFunction", (0, b"x")), ("cuTexObjectDestroy", (12345,)),
    ):  # fmt: skip
        go(name, *arguments, label="wrong")


def contexts(m, call):
    go, device, primary = started(m, call)
    go("cuCtxGetDevice")
    go("cuCtxGetDevice_v2", primary)
    go("cuCtxGetFlags")
    go("cuCtxSetFlags", 4)
    go("cuCtxGetApiVersion", primary)
    go.address("cuCtxGetId", primary)
    for limit in m.CUlimit:
        value = go("cuCtxGetLimit", limit, label=limit.name)
        if value:
            go("cuCtxSetLimit", limit, value, label=limit.name)
    for config in m.CUfunc_cache:
        go("cuCtxSetCacheConfig", config)
        go("cuCtxGetCacheConfig")
    for config in m.CUsharedconfig:
        go("cuCtxSetSharedMemConfig", config)
        go("cuCtxGetSharedMemConfig")
    go("cuCtxGetStreamPriorityRange")
    go("cuCtxGetExecAffinity", m.CUexecAffinityType(0))
    go("cuCtxResetPersistingL2Cache")
    go("cuCtxEnablePeerAccess", primary, 0)
    go("cuCtxDisablePeerAccess", primary)
    go("cuCtxSynchronize")
    go("cuCtxSynchronize_v2", primary)
    for arguments in (
        (None, 0, device),
        (None, 1, device),
        (m.CUctxCreateParams(), 0, device),
        (None, 1 << 20, device),
    ):
        context = go("cuCtxCreate", *arguments)
        go("cuCtxGetCurrent")
        go("cuCtxGetFlags")
        if context:
            go("cuCtxPopCurrent")
            go("cuCtxPushCurrent", context)
            event = go("cuEventCreate", 2)
            go("cuCtxRecordEvent", context, event)
            go("cuCtxWaitEvent", context, event)
            go("cuCtxDestroy", context)
    context = go("cuCtxCreate", None, 0, device)
    go("cuCtxAttach", 0)
    go("cuCtxDetach", context)
    go("cuCtxDetach", context)
    go("cuCtxSetCurrent", primary)
    go("cuCtxPopCurrent")
    go("cuCtxPopCurrent")
    go("cuCtxSetCurrent", primary)
    go("cuProfilerStart")
    go("cuProfilerStop")
    go("cuFlushGPUDirectRDMAWrites", m.CUflushGPUDirectRDMAWritesTarget(0), m.CUflushGPUDirectRDMAWritesScope(100))
    go("cuDevicePrimaryCtxRelease", device)


def green_contexts(m, call):
    go, device, primary = started(m, call)
    for kind in m.CUdevResourceType:
        go("cuDeviceGetDevResource", device, kind, volatile=True, label=kind.name)
        go("cuCtxGetDevResource", primary, kind, volatile=True, label=kind.name)
    resource = go.address("cuDeviceGetDevResource", device, m.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM)
    if resource:
        go.call("SMs", lambda: resource.sm.smCount)
        split = go.address("cuDevSmResourceSplitByCount", 2, resource, 0, 8)
        if split:
            go.call("groups", lambda: ([r.sm.smCount for r in split[0]], split[1], split[2].sm.smCount))
            description = go("cuDevResourceGenerateDesc", [split[0][0]], 1)
            green = go("cuGreenCtxCreate", description, device, 1)
            if green:
                context = go("cuCtxFromGreenCtx", green)
                go.address("cuGreenCtxGetDevResource", green, m.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM)
                go.address("cuGreenCtxGetId", green)
                stream = go("cuGreenCtxStreamCreate", green, 1, 0)
                go("cuStreamGetGreenCtx", stream)
                go.address("cuStreamGetDevResource", stream, m.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM)
                event = go("cuEventCreate", 2)
                go("cuGreenCtxRecordEvent", green, event)
                go("cuGreenCtxWaitEvent", green, event)
                go("cuStreamDestroy", stream)
                go("cuCtxSetCurrent", context)
                go("cuCtxSetCurrent", primary)
                go("cuGreenCtxDestroy", green)
        params = m.CU_DEV_SM_RESOURCE_GROUP_PARAMS()
        params.smCount = 8
        params.coscheduledSmCount = 2
        go.address("cuDevSmResourceSplit", 1, resource, 0, [params])


# ----------------------------------------------------------------------------------------------------------
# Streams and events

HOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
STREAM = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


def streams(m, call):
    go, _device, _ = started(m, call)
    for flags in (0, 1):
        stream = go("cuStreamCreate", flags)
        go("cuStreamGetFlags", stream)
        go("cuStreamGetPriority", stream)
        go("cuStreamDestroy", stream)
    stream = go("cuStreamCreateWithPriority", 1, -1)
    go("cuStreamGetPriority", stream)
    go("cuStreamGetDevice", stream)
    go.address("cuStreamGetId", stream)
    go("cuStreamGetCtx", stream)
    go("cuStreamGetCtx_v2", stream)
    go("cuStreamQuery", stream)
    go("cuStreamSynchronize", stream)
    for special in (0, 1, 2, m.CUstream(m.CU_STREAM_LEGACY), m.CUstream(m.CU_STREAM_PER_THREAD)):
        go("cuStreamQuery", special)
        go("cuStreamGetFlags", special)
        go("cuStreamGetPriority", special)
    one, two = go("cuEventCreate", 0), go("cuEventCreate", 1)
    plain = go("cuEventCreate", 2)
    go("cuEventQuery", one)
    go("cuEventRecord", one, stream)
    go("cuEventRecordWithFlags", two, stream, 0)
    go("cuEventRecordWithFlags", two, stream, 9)
    go("cuStreamWaitEvent", stream, one, 0)
    go("cuEventSynchronize", two)
    go("cuEventQuery", two)
    go.address("cuEventElapsedTime", one, two)
    go("cuEventElapsedTime", one, plain)
    go("cuIpcGetEventHandle", plain)
    ipc = go("cuEventCreate", 6)
    go.address("cuIpcGetEventHandle", ipc)
    seen = []
    host, callback = HOST(lambda data: seen.append(data)), STREAM(lambda s, status, data: seen.append((status, data)))
    go("cuLaunchHostFunc", stream, m.CUhostFn(ctypes.cast(host, ctypes.c_void_p).value), 5)
    go("cuStreamAddCallback", stream, m.CUstreamCallback(ctypes.cast(callback, ctypes.c_void_p).value), 6, 0)
    go("cuStreamSynchronize", stream)
    go.call("called", list, seen)
    memory_ = go("cuMemAlloc", 64)
    go("cuMemsetD32", memory_, 0, 16)
    for name, value in (("32", 7), ("64", 8)):
        go(f"cuStreamWriteValue{name}", stream, memory_, value, 0)
        go(f"cuStreamWaitValue{name}", stream, memory_, value, 0)
    operation = m.CUstreamBatchMemOpParams()
    operation.writeValue.operation = m.CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WRITE_VALUE_32
    operation.writeValue.address = memory_
    operation.writeValue.value = 77
    go("cuStreamBatchMemOp", stream, 1, [operation], 0)
    go("cuStreamSynchronize", stream)
    read(go, memory_, 4)
    for attribute in m.CUstreamAttrID:
        value = go("cuStreamGetAttribute", stream, attribute, volatile=True, label=attribute.name)
        if value is not None:
            go("cuStreamSetAttribute", stream, attribute, value, label=attribute.name)
    other = go("cuStreamCreate", 1)
    go("cuStreamCopyAttributes", other, stream)
    go("cuThreadExchangeStreamCaptureMode", m.CUstreamCaptureMode(1))
    go("cuThreadExchangeStreamCaptureMode", m.CUstreamCaptureMode(0))
    for event in (one, two, plain, ipc):
        go("cuEventDestroy", event)
    go("cuStreamDestroy", stream)


# ----------------------------------------------------------------------------------------------------------
# Modules, libraries, kernels


def modules(m, call):
    go, _device, _ = started(m, call)
    ptx, cubin = compiled(KERNELS, "PTX"), compiled(KERNELS, "CUBIN")
    names = m.CUjit_option
    log, info = bytearray(1024), bytearray(1024)
    options = [names.CU_JIT_ERROR_LOG_BUFFER, names.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, names.CU_JIT_INFO_LOG_BUFFER, names.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
               names.CU_JIT_MAX_REGISTERS, names.CU_JIT_OPTIMIZATION_LEVEL, names.CU_JIT_GENERATE_LINE_INFO]  # fmt: skip
    values = [log, len(log), info, len(info), 32, 3, 1]
    module = go("cuModuleLoadDataEx", cubin, len(options), options, values)
    go("cuModuleLoadDataEx", b".version 8.0\n.target sm_80\nnonsense\0", len(options), options, values)
    go.call("log", bytes, log)
    go("cuModuleLoadFatBinary", cubin)
    module = go("cuModuleLoadData", cubin) or module
    go("cuModuleLoadData", ptx)
    go("cuModuleGetLoadingMode")
    function = go("cuModuleGetFunction", module, b"add")
    go("cuModuleGetFunction", module, b"no such")
    go("cuModuleGetGlobal", module, b"table")
    go("cuModuleGetGlobal", module, b"factors")
    go("cuModuleGetGlobal", module, b"no such")
    go("cuModuleGetFunctionCount", module)
    go("cuModuleEnumerateFunctions", 3, module)
    go("cuModuleGetTexRef", module, b"x")
    go("cuModuleGetSurfRef", module, b"x")
    kernels(m, go, function)
    many = go("cuModuleGetFunction", module, b"many")
    out = go("cuMemAlloc", 256)
    go("cuMemsetD8", out, 0, 256)
    types = (
        ctypes.c_void_p,
        ctypes.c_char,
        ctypes.c_short,
        ctypes.c_int,
        ctypes.c_longlong,
        ctypes.c_float,
        ctypes.c_double,
    )
    go("cuLaunchKernel", many, 1, 1, 1, 1, 1, 1, 0, 0, ((int(out), 3, -4, 5, 6, 7.5, 8.25), types), 0)
    go(
        "cuLaunchKernel",
        many,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        0,
        (
            (out, b"a", 1, 2, 3, 4.5, 5.5),
            (None, ctypes.c_char, ctypes.c_short, ctypes.c_int, ctypes.c_longlong, ctypes.c_float, ctypes.c_double),
        ),
        0,
    )
    read(go, out, 6)
    arguments = (
        ctypes.c_void_p(int(out)),
        ctypes.c_byte(1),
        ctypes.c_short(2),
        ctypes.c_int(3),
        ctypes.c_longlong(4),
        ctypes.c_float(5),
        ctypes.c_double(6),
    )
    pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(x) for x in arguments])
    go("cuLaunchKernel", many, 1, 1, 1, 1, 1, 1, 0, 0, ctypes.addressof(pointers), 0)
    read(go, out, 6)
    go("cuModuleUnload", module)
    state = go("cuLinkCreate", 0, [], [])
    if state:
        for source, name in ((RELOCATABLE, b"uses"), (HELPER, b"helper")):
            code = compiled(source, "CUBIN", b"-rdc=true")
            go("cuLinkAddData", state, m.CUjitInputType.CU_JIT_INPUT_CUBIN, code, len(code), name, 0, [], [])
        go("cuLinkAddFile", state, m.CUjitInputType.CU_JIT_INPUT_CUBIN, b"/no/such/file", 0, [], [])
        linked = go.address("cuLinkComplete", state)
        if linked:
            module = go("cuModuleLoadData", ctypes.string_at(linked[0], linked[1]))
            go("cuModuleGetFunction", module, b"uses")
        go("cuLinkDestroy", state)
    go("cuLinkCreate", 2, [names.CU_JIT_MAX_REGISTERS, names.CU_JIT_LTO], [32, 1])


def kernels(m, go, function):
    """Attributes, occupancy and launches of a function."""
    go("cuFuncGetModule", function)
    go("cuFuncGetName", function)
    go("cuFuncIsLoaded", function)
    go("cuFuncLoad", function)
    for attribute in m.CUfunction_attribute:
        value = go("cuFuncGetAttribute", attribute, function, label=attribute.name)
        if value is not None:
            go("cuFuncSetAttribute", function, attribute, value, label=attribute.name)
    go("cuFuncGetParamInfo", function, 0)
    go("cuFuncGetParamInfo", function, 1)
    go("cuFuncGetParamInfo", function, 9)
    go("cuFuncGetParamCount", function)
    go("cuFuncSetCacheConfig", function, m.CUfunc_cache(1))
    go("cuFuncSetSharedMemConfig", function, m.CUsharedconfig(1))
    go("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, 128, 0)
    go("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", function, 128, 1024, 1)
    go("cuOccupancyMaxPotentialBlockSize", function, 0, 0, 0)
    go("cuOccupancyMaxPotentialBlockSizeWithFlags", function, 0, 0, 0, 0)
    go("cuOccupancyAvailableDynamicSMemPerBlock", function, 2, 128)
    memory_ = go("cuMemAlloc", 256)
    go("cuMemsetD32", memory_, 1, 64)
    arguments = ((int(memory_ or 0), 64), (ctypes.c_void_p, ctypes.c_int))
    go("cuLaunchKernel", function, 2, 1, 1, 32, 1, 1, 0, 0, arguments, 0)
    go("cuLaunchKernel", function, 2, 1, 1, 32, 1, 1, 0, 0, ((memory_, 64), (None, ctypes.c_int)), 0)
    go("cuLaunchCooperativeKernel", function, 2, 1, 1, 32, 1, 1, 0, 0, arguments)
    config = m.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = 2, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = 32, 1, 1
    go("cuLaunchKernelEx", config, function, arguments, 0)
    attribute = m.CUlaunchAttribute()
    attribute.id = m.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    attribute.value.cooperative = 1
    config.attrs, config.numAttrs = [attribute], 1
    go("cuLaunchKernelEx", config, function, arguments, 0)
    go("cuOccupancyMaxPotentialClusterSize", function, config)
    go("cuOccupancyMaxActiveClusters", function, config)
    go("cuLaunchKernel", function, 0, 1, 1, 32, 1, 1, 0, 0, arguments, 0)
    go("cuLaunchKernel", function, 1, 1, 1, 4096, 1, 1, 0, 0, arguments, 0)
    go("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 1 << 30, 0, arguments, 0)
    go("cuCtxSynchronize")
    read(go, memory_, 4)
    for name, arguments in (
        ("cuFuncSetBlockShape", (32, 1, 1)),
        ("cuFuncSetSharedSize", (0,)),
        ("cuParamSetSize", (12,)),
        ("cuParamSeti", (8, 64)),
    ):
        go(name, function, *arguments)
    go("cuLaunch", function)
    go("cuLaunchGrid", function, 1, 1)
    go("cuLaunchGridAsync", function, 1, 1, 0)
    go("cuCtxSynchronize")


def libraries(m, call):
    go, device, _ = started(m, call)
    cubin = compiled(KERNELS, "CUBIN")
    options = m.CUlibraryOption.CU_LIBRARY_BINARY_IS_PRESERVED
    library = go("cuLibraryLoadData", cubin, [m.CUjit_option.CU_JIT_MAX_REGISTERS], [32], 1, [options], [True], 1)
    library = go("cuLibraryLoadData", cubin, [], [], 0, [], [], 0) or library
    go("cuLibraryLoadData", b"nonsense", [], [], 0, [], [], 0)
    kernel = go("cuLibraryGetKernel", library, b"add")
    go("cuLibraryGetKernel", library, b"no such")
    go("cuLibraryGetKernelCount", library)
    go("cuLibraryEnumerateKernels", 3, library)
    go("cuLibraryGetModule", library)
    go("cuLibraryGetGlobal", library, b"table")
    go("cuLibraryGetManaged", library, b"shared_value")
    go("cuLibraryGetUnifiedFunction", library, b"add")
    function = go("cuKernelGetFunction", kernel)
    go("cuKernelGetLibrary", kernel)
    go("cuKernelGetName", kernel)
    go("cuKernelGetParamInfo", kernel, 0)
    go("cuKernelGetParamInfo", kernel, 7)
    go("cuKernelGetParamCount", kernel)
    for attribute in m.CUfunction_attribute:
        value = go("cuKernelGetAttribute", attribute, kernel, device, label=attribute.name)
        if value is not None:
            go("cuKernelSetAttribute", attribute, value, kernel, device, label=attribute.name)
    go("cuKernelSetCacheConfig", kernel, m.CUfunc_cache(2), device)
    kernels(m, go, function)
    memory_ = go("cuMemAlloc", 256)
    kernel_as_function = m.CUfunction(int(kernel or 0))
    go(
        "cuLaunchKernel",
        kernel_as_function,
        1,
        1,
        1,
        32,
        1,
        1,
        0,
        0,
        ((int(memory_), 32), (ctypes.c_void_p, ctypes.c_int)),
        0,
    )
    go("cuCtxSynchronize")
    go("cuLibraryUnload", library)
    go("cuLibraryUnload", None)


# ----------------------------------------------------------------------------------------------------------
# Other


def sizes(m, call):
    """The size of every class."""
    for name in sorted(
        n
        for n in dir(m)
        if isinstance(getattr(m, n), type) and hasattr(getattr(m, n), "getPtr") and not n.startswith("_")
    ):
        call(f"sizeof {name}", m.sizeof, getattr(m, name))


def others(m, call):
    go, _device, _ = started(m, call)
    for attribute in m.CUcoredumpSettings:
        if "MAX" in attribute.name:
            continue
        go("cuCoredumpGetAttribute", attribute, label=attribute.name)
        go("cuCoredumpGetAttributeGlobal", attribute, label=attribute.name)
    go("cuCoredumpSetAttribute", m.CUcoredumpSettings.CU_COREDUMP_ENABLE_ON_EXCEPTION, False)
    go("cuCoredumpSetAttributeGlobal", m.CUcoredumpSettings.CU_COREDUMP_LIGHTWEIGHT, True)
    iterator = go("cuLogsCurrent", 0, volatile=True)
    go("cuLogsDumpToMemory", iterator, bytearray(1024), 1024, 0, volatile=True)
    go("cuLogsDumpToFile", iterator, b"/no/such/folder/log", 0, volatile=True)
    memory_ = go("cuMemAlloc", 1 << 16)
    u64 = m.cuuint64_t
    for swizzle in list(m.CUtensorMapSwizzle)[:3]:
        tensor = go("cuTensorMapEncodeTiled", m.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, memory_,
            [u64(64), u64(16)], [u64(256)], [m.cuuint32_t(8), m.cuuint32_t(8)], [m.cuuint32_t(1), m.cuuint32_t(1)],
            m.CUtensorMapInterleave(0), swizzle, m.CUtensorMapL2promotion(0), m.CUtensorMapFloatOOBfill(0), volatile=True)  # fmt: skip
        if tensor:
            go("cuTensorMapReplaceAddress", tensor, memory_)
    go("cuTensorMapEncodeIm2col", m.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, memory_,
        [u64(32), u64(16), u64(4)], [u64(128), u64(2048)], [0], [0], 8, 8, [m.cuuint32_t(1)] * 3,
        m.CUtensorMapInterleave(0), m.CUtensorMapSwizzle(0), m.CUtensorMapL2promotion(0), m.CUtensorMapFloatOOBfill(0), volatile=True)  # fmt: skip
    go("cuCheckpointProcessGetState", 1)
    go("cuCheckpointProcessGetState", os.getpid())
    go.address("cuCheckpointProcessGetRestoreThreadId", os.getpid())
    for name in ("cuGraphicsUnregisterResource", "cuDestroyExternalMemory", "cuDestroyExternalSemaphore"):
        go(name, 0)
    go("cuGraphicsMapResources", 0, None, 0)
    go("cuGraphicsUnmapResources", 0, None, 0)
    for kind in list(m.CUexternalMemoryHandleType)[:1]:
        description = m.CUDA_EXTERNAL_MEMORY_HANDLE_DESC()
        description.type, description.handle.fd, description.size = kind, -1, 4096
        go("cuImportExternalMemory", description)
    description = m.CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC()
    description.type, description.handle.fd = next(iter(m.CUexternalSemaphoreHandleType)), -1
    go("cuImportExternalSemaphore", description)
