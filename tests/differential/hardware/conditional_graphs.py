"""Prints one line per question about conditional graph nodes that the manual leaves open. Needs cuda.bindings and NVRTC."""

import ctypes

import numpy as np
from cuda.bindings import driver as d
from cuda.bindings import nvrtc

SRC = b"""
extern "C" __device__ __cudart_builtin__ void CUDARTAPI cudaGraphSetConditional(cudaGraphConditionalHandle h, unsigned v);
extern "C" __device__ __cudart_builtin__ cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t s);
extern "C" __global__ void add(int *p, int n) { atomicAdd(p, n); }
extern "C" __global__ void set(cudaGraphConditionalHandle h, unsigned v) { cudaGraphSetConditional(h, v); }
extern "C" __global__ void count(cudaGraphConditionalHandle h, int *p, int below) { cudaGraphSetConditional(h, ++*p < below); }
"""
CDP = b"""
extern "C" __device__ __cudart_builtin__ cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t s);
extern "C" __global__ void go(cudaGraphExec_t e, unsigned long long s) { cudaGraphLaunch(e, (cudaStream_t)s); }
"""


def ok(r):
    assert int(r[0]) == 0, r
    return r[1] if len(r) == 2 else r[1:]


def compile(src, kind="cubin"):
    p = ok(nvrtc.nvrtcCreateProgram(src, b"a.cu", 0, [], []))
    n = f"{'sm' if kind == 'cubin' else 'compute'}_{CC}".encode()
    r = nvrtc.nvrtcCompileProgram(p, 1, [b"--gpu-architecture=" + n])
    if int(r[0]):
        b = bytearray(ok(nvrtc.nvrtcGetProgramLogSize(p)))
        nvrtc.nvrtcGetProgramLog(p, b)
        return b.decode()
    size, get = (
        (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        if kind == "cubin"
        else (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
    )
    b = bytearray(ok(size(p)))
    get(p, b)
    return bytes(b)


d.cuInit(0)
dev = ok(d.cuDeviceGet(0))
CTX = ok(d.cuDevicePrimaryCtxRetain(dev))
d.cuCtxSetCurrent(CTX)
A = d.CUdevice_attribute
CC = "".join(
    str(ok(d.cuDeviceGetAttribute(a, dev)))
    for a in (A.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, A.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
)
for kind in ("cubin", "ptx"):
    code = compile(SRC, kind)
    r = d.cuModuleLoadData(code) if isinstance(code, bytes) else code
    print(f"module with cudaGraphSetConditional from {kind}:", r)
mod = ok(d.cuModuleLoadData(compile(SRC, "ptx")))
fn = {n: ok(d.cuModuleGetFunction(mod, n.encode())) for n in ("add", "set", "count")}
stream = ok(d.cuStreamCreate(1))
buf = ok(d.cuMemAlloc(64))
d.cuMemsetD32(buf, 0, 16)
IF, WHILE, SWITCH = (d.CUgraphConditionalNodeType(n) for n in range(3))


def say(what, r):
    print(f"{what}: {r[0].name if isinstance(r, tuple) else r}")
    return r


def graph():
    return ok(d.cuGraphCreate(0))


def handle(g, default=0, flags=1):
    return ok(d.cuGraphConditionalHandleCreate(g, CTX, default, flags))


def add_cond(g, h, kind=IF, size=1, ctx=CTX):
    p = d.CUgraphNodeParams()
    p.type = d.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
    p.conditional.handle, p.conditional.type, p.conditional.size = h, kind, size
    if ctx is not None:
        p.conditional.ctx = ctx
    r = d.cuGraphAddNode(g, None, None, 0, p)
    return r, p


def kernel(g, name, *args):
    p = d.CUDA_KERNEL_NODE_PARAMS()
    p.func = fn[name]
    p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1
    types = {
        "add": (ctypes.c_void_p, ctypes.c_int),
        "set": (ctypes.c_uint64, ctypes.c_uint),
        "count": (ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int),
    }[name]
    p.kernelParams = (tuple(int(a) for a in args), types)
    return p


def body():
    g = graph()
    r, p = add_cond(g, handle(g))
    ok(r)
    return g, p.conditional.phGraph_out[0], r[1]


g, b, n = body()
print("phGraph_out:", b)
host = d.CUDA_HOST_NODE_PARAMS()
F = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda x: None)
host.fn = ctypes.cast(F, ctypes.c_void_p).value
say("host node in a body", d.cuGraphAddHostNode(b, None, 0, host))
say(" instantiate", d.cuGraphInstantiate(g, 0))
g, b, n = body()
e = ok(d.cuEventCreate(0))
say("event record in a body", d.cuGraphAddEventRecordNode(b, None, 0, e))
say(" instantiate", d.cuGraphInstantiate(g, 0))
g, b, n = body()
m = d.CUDA_MEM_ALLOC_NODE_PARAMS()
m.poolProps.allocType = d.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
m.poolProps.location.type = d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
m.bytesize = 4096
say("allocation in a body", d.cuGraphAddMemAllocNode(b, None, 0, m))
say(" instantiate", d.cuGraphInstantiate(g, 0))
for pageable in (True, False):
    g, b, n = body()
    c = d.CUDA_MEMCPY3D()
    x = np.zeros(4, np.int32)
    address = x.ctypes.data if pageable else int(ok(d.cuMemAllocHost(64)))
    c.srcMemoryType, c.srcHost = d.CUmemorytype.CU_MEMORYTYPE_HOST, address
    c.dstMemoryType, c.dstDevice, c.WidthInBytes, c.Height, c.Depth = d.CUmemorytype.CU_MEMORYTYPE_DEVICE, buf, 16, 1, 1
    say(
        f"copy from {'pageable' if pageable else 'page-locked'} memory in a body",
        d.cuGraphAddMemcpyNode(b, None, 0, c, CTX),
    )
    say(" instantiate", d.cuGraphInstantiate(g, 0))
g, b, n = body()
child = graph()
d.cuGraphAddHostNode(child, None, 0, host)
say("child graph with a host node in a body", d.cuGraphAddChildGraphNode(b, None, 0, child))
say(" instantiate", d.cuGraphInstantiate(g, 0))
g, b, n = body()
empty = graph()
inner = ok(d.cuGraphAddChildGraphNode(b, None, 0, empty))
inner = ok(d.cuGraphChildGraphNodeGetGraph(inner))
say("conditional node in a child graph in a body", add_cond(inner, handle(g))[0])
g, b, n = body()
say("clone", d.cuGraphClone(g))
say("as child graph", d.cuGraphAddChildGraphNode(graph(), None, 0, g))
e1 = say("instantiate", d.cuGraphInstantiate(g, 0))
say("instantiate again", d.cuGraphInstantiate(g, 0))
say("instantiate a body", d.cuGraphInstantiate(b, 0))
say("destroy a body", (d.cuGraphDestroyNode(n)[0],))
g = graph()
h = handle(g)
p = d.CUDA_GRAPH_INSTANTIATE_PARAMS()
say("instantiate with an unused handle", d.cuGraphInstantiateWithParams(g, p))
print(" result", p.result_out)
say("cuGraphInstantiate with it", d.cuGraphInstantiate(g, 0))
other = graph()
say("handle of another graph", add_cond(other, h)[0])
say("first node of a handle", add_cond(g, h)[0])
say("second node of a handle", add_cond(g, h)[0])
g = graph()
h = handle(g)
r, p = add_cond(g, h)
say("destroy the node", d.cuGraphDestroyNode(r[1]))
say("the handle again", add_cond(g, h)[0])
say("node without context", add_cond(graph(), handle(graph()), ctx=None)[0])
g = graph()
say("node without context, own graph", add_cond(g, handle(g), ctx=None)[0])
say("handle without context", d.cuGraphConditionalHandleCreate(graph(), 0, 0, 1))
for kind, size in ((IF, 0), (IF, 3), (WHILE, 2), (SWITCH, 0), (SWITCH, 1000)):
    g = graph()
    say(f"{kind.name} with {size} bodies", add_cond(g, handle(g), kind, size)[0])
say("flags 2", d.cuGraphConditionalHandleCreate(graph(), CTX, 0, 2))

# Is the default of a handle of a body applied once for each launch, or for each run of the body?
d.cuMemsetD32(buf, 0, 16)
g = graph()
outer = handle(g, 1)
r, p = add_cond(g, outer, WHILE)
b = p.conditional.phGraph_out[0]
r = d.cuGraphConditionalHandleCreate(b, CTX, 1, 1)
say("handle of a body", r)
if int(r[0]) == 0:
    q, p2 = add_cond(b, r[1], IF)
    say("node with it", q)
    ib = p2.conditional.phGraph_out[0]
    a = ok(d.cuGraphAddKernelNode(ib, None, 0, kernel(ib, "add", int(buf) + 4, 1)))
    ok(d.cuGraphAddKernelNode(ib, [a], 1, kernel(ib, "set", r[1], 0)))
    ok(d.cuGraphAddKernelNode(b, [q[1]], 1, kernel(b, "count", outer, buf, 3)))
    x = say(" instantiate", d.cuGraphInstantiate(g, 0))
    d.cuGraphLaunch(x[1], stream)
    say(" run", d.cuStreamSynchronize(stream))
    out = np.zeros(2, np.int32)
    d.cuMemcpyDtoH(out.ctypes.data, buf, 8)
    print(" rounds, runs of the inner body (1: default once a launch, 3: each round):", out)
# Without the flag, does the value survive between launches?
d.cuMemsetD32(buf, 0, 16)
g = graph()
h = handle(g, 1, 0)
r, p = add_cond(g, h, IF, 2)
b = p.conditional.phGraph_out
ok(d.cuGraphAddKernelNode(b[0], None, 0, kernel(b[0], "add", buf, 1)))
z = ok(d.cuGraphAddKernelNode(b[1], None, 0, kernel(b[1], "add", int(buf) + 4, 1)))
ok(d.cuGraphAddKernelNode(b[1], [z], 1, kernel(b[1], "set", h, 1)))
x = ok(d.cuGraphInstantiate(g, 0))
for _ in range(3):
    d.cuGraphLaunch(x, stream)
d.cuStreamSynchronize(stream)
out = np.zeros(2, np.int32)
d.cuMemcpyDtoH(out.ctypes.data, buf, 8)
print("without default, three launches (if, else):", out)


# Updates.
def switch(size, default=0):
    g = graph()
    h = handle(g, default)
    _r, p = add_cond(g, h, SWITCH, size)
    for b in p.conditional.phGraph_out:
        ok(d.cuGraphAddKernelNode(b, None, 0, kernel(b, "add", buf, 1)))
    return g


x = ok(d.cuGraphInstantiate(switch(2), 0))
say("update with another handle", d.cuGraphExecUpdate(x, switch(2, 1)))
say("update with more bodies", d.cuGraphExecUpdate(x, switch(3)))
# Device-side launch.
code = compile(CDP, "ptx")
say("module with cudaGraphLaunch from PTX", d.cuModuleLoadData(code) if isinstance(code, bytes) else code)
g = graph()
ok(d.cuGraphAddKernelNode(g, None, 0, kernel(g, "add", buf, 1)))
say("instantiate for device launch", d.cuGraphInstantiate(g, 4))
say("an empty graph", d.cuGraphInstantiate(graph(), 4))
g2, b2, n2 = body()
p = d.CUDA_GRAPH_INSTANTIATE_PARAMS()
p.flags = 4
say("a graph with a conditional node", d.cuGraphInstantiateWithParams(g2, p))
print(" result", p.result_out)
# Graph memory.
Attribute = d.CUgraphMem_attribute


def memory(what):
    print(
        what,
        [
            int(ok(d.cuDeviceGetGraphMemAttribute(dev, i)))
            for i in (
                Attribute.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
                Attribute.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
                Attribute.CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                Attribute.CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
            )
        ],
    )


memory("graph memory")
g = graph()
last, addresses = [], []
for _ in range(3):
    m = d.CUDA_MEM_ALLOC_NODE_PARAMS()
    m.poolProps.allocType = d.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    m.poolProps.location.type = d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    m.bytesize = 64 << 20
    r = ok(d.cuGraphAddMemAllocNode(g, last, len(last), m))
    a, address = (r, m.dptr) if not isinstance(r, tuple) else (r[0], m.dptr)
    addresses.append(int(address))
    last = [ok(d.cuGraphAddMemFreeNode(g, [a], 1, address))]
print("addresses of allocations one after the other:", [hex(a) for a in addresses])
memory("after nodes")
x = ok(d.cuGraphInstantiate(g, 0))
memory("after instantiation")
d.cuGraphLaunch(x, stream)
d.cuStreamSynchronize(stream)
memory("after launch")
d.cuDeviceGraphMemTrim(dev)
memory("after trim")
d.cuGraphExecDestroy(x)
d.cuGraphDestroy(g)
memory("after destruction")
d.cuDeviceGraphMemTrim(dev)
memory("after trim")
