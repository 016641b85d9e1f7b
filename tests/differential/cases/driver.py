"""The driver: every function with the recorder; on a GPU calls without side effects on the machine."""

import ctypes
import os

from cases import driver_graphs as graphs
from cases import driver_real as real
from cases import driver_real_memory as real_memory

MODULE = "cuda.bindings.driver"
MODES = ("ok", "fill", "error:1", "error:700", "error:999", "error:12345")
SCRIPTS = (
    real.before_init, real.devices, real.errors, real.contexts, real.green_contexts, real_memory.memory, real_memory.pools, real_memory.virtual_memory,
    real.streams, real.modules, real.libraries, real.others, graphs.graphs, graphs.capture, graphs.arrays, graphs.node_parameters, real.sizes,
)  # fmt: skip


def _node_params(m):
    out = m.CUgraphNodeParams()
    out.type = m.CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET
    out.memset.dst, out.memset.value, out.memset.elementSize, out.memset.width, out.memset.height = 4096, 3, 4, 16, 1
    return out


def _numbers(kind, count):
    return lambda m: [getattr(m, kind)(i + 1) for i in range(count)]


ARGUMENTS = {
    ("sizeof", "objType"): lambda m: m.CUuuid,
    # A struct with pointers needs targets.
    ("cuDevResourceGenerateDesc", "resources"): lambda m: [m.CUdevResource(), m.CUdevResource()],
    ("*", "input_"): lambda m: m.CUdevResource(),
    ("cuSignalExternalSemaphoresAsync", "paramsArray"): lambda m: [
        m.CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS() for _ in range(2)
    ],
    ("cuWaitExternalSemaphoresAsync", "paramsArray"): lambda m: [
        m.CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS() for _ in range(2)
    ],
    ("cuDeviceSetGraphMemAttribute", "value"): lambda m: m.cuuint64_t(5),
    ("cuDeviceSetGraphMemAttribute", "attr"): lambda m: m.CUgraphMem_attribute.CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
    ("cuPointerSetAttribute", "attribute"): lambda m: m.CUpointer_attribute.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
    ("cuGetProcAddress", "symbol"): b"cuInit",
    ("cuGetProcAddress", "cudaVersion"): 13000,
    ("cuGetProcAddress", "flags"): 0,
    ("cuMemBatchDecompressAsync", "count"): 1,
    # Three dimensions, and lists of that length.
    ("*", "tensorRank"): 3,
    ("*", "globalDim"): _numbers("cuuint64_t", 3),
    ("*", "globalStrides"): _numbers("cuuint64_t", 2),
    ("*", "boxDim"): _numbers("cuuint32_t", 3),
    ("*", "elementStrides"): _numbers("cuuint32_t", 3),
    ("*", "pixelBoxLowerCorner"): lambda m: [-1],
    ("*", "pixelBoxUpperCorner"): lambda m: [2],
}
for _name in (
    "cuGraphAddNode",
    "cuGraphAddNode_v3",
    "cuGraphNodeSetParams",
    "cuGraphNodeSetParams_v2",
    "cuGraphExecNodeSetParams",
):
    ARGUMENTS[_name, "nodeParams"] = _node_params


def _in_mode(mode, call, kernel=None):
    """`call`, made in a mode of the recorder, which receives the sizes of a kernel's parameters."""

    def made():
        os.environ["RECORDER_MODE"] = mode
        if kernel:
            os.environ["RECORDER_KERNEL"] = kernel
        return call()

    return made


def recorded(m):
    """(label, function's name, call): cases beyond the tables of arguments."""
    for mode in ("ok", "fill"):
        for attribute in m.CUpointer_attribute:
            yield (
                f"{attribute.name} {mode}",
                "cuPointerGetAttribute",
                _in_mode(mode, lambda a=attribute: m.cuPointerGetAttribute(a, 4096)),
            )
        for attribute in m.CUmemPool_attribute:
            yield (
                f"{attribute.name} {mode}",
                "cuMemPoolGetAttribute",
                _in_mode(mode, lambda a=attribute: m.cuMemPoolGetAttribute(m.CUmemoryPool(1), a)),
            )
        for attribute in m.CUgraphMem_attribute:
            yield (
                f"{attribute.name} {mode}",
                "cuDeviceGetGraphMemAttribute",
                _in_mode(mode, lambda a=attribute: m.cuDeviceGetGraphMemAttribute(0, a)),
            )
        for attribute in m.CUmem_range_attribute:
            yield (
                f"{attribute.name} {mode}",
                "cuMemRangeGetAttribute",
                _in_mode(mode, lambda a=attribute: m.cuMemRangeGetAttribute(8, a, 4096, 64)),
            )
        for kind in m.CUmemAllocationHandleType:
            yield (
                f"{kind.name} {mode}",
                "cuMemExportToShareableHandle",
                _in_mode(mode, lambda k=kind: m.cuMemExportToShareableHandle(m.CUmemGenericAllocationHandle(3), k, 0)),
            )
            yield (
                f"{kind.name} {mode}",
                "cuMemPoolExportToShareableHandle",
                _in_mode(mode, lambda k=kind: m.cuMemPoolExportToShareableHandle(m.CUmemoryPool(3), k, 0)),
            )
        for attribute in m.CUcoredumpSettings:
            for name in ("cuCoredumpGetAttribute", "cuCoredumpGetAttributeGlobal"):
                yield f"{attribute.name} {mode}", name, _in_mode(mode, lambda a=attribute, n=name: getattr(m, n)(a))
    for attribute in m.CUmemPool_attribute:
        for what, make in (
            ("u64", lambda: m.cuuint64_t(7)),
            ("int", lambda: 7),
            ("True", lambda: True),
            ("None", lambda: None),
        ):
            yield (
                f"{attribute.name} = {what}",
                "cuMemPoolSetAttribute",
                _in_mode("ok", lambda a=attribute, v=make: m.cuMemPoolSetAttribute(m.CUmemoryPool(1), a, v())),
            )
    for attribute in m.CUpointer_attribute:
        for value in (True, 0, 7):
            yield (
                f"{attribute.name} = {value}",
                "cuPointerSetAttribute",
                _in_mode("ok", lambda a=attribute, v=value: m.cuPointerSetAttribute(v, a, 4096)),
            )
    for attribute in m.CUcoredumpSettings:
        for value in (True, 7, b"a file"):
            for name in ("cuCoredumpSetAttribute", "cuCoredumpSetAttributeGlobal"):
                yield (
                    f"{attribute.name} = {value}",
                    name,
                    _in_mode("ok", lambda a=attribute, v=value, n=name: getattr(m, n)(a, v)),
                )
    for option in m.CUjit_option:
        for value in (
            0,
            1,
            7,
            1.5,
            True,
            bytearray(8),
            None,
            m.CUjit_target.CU_TARGET_COMPUTE_80,
            m.CUjit_fallback.CU_PREFER_PTX,
        ):
            what = f"{option.name} = {type(value).__name__} {int(value) if isinstance(value, (int, float)) else ''}"
            yield what, "cuLinkCreate", _in_mode("ok", lambda o=option, v=value: m.cuLinkCreate(1, [o], [v]))
            yield (
                what,
                "cuModuleLoadDataEx",
                _in_mode("ok", lambda o=option, v=value: m.cuModuleLoadDataEx(b"code", 1, [o], [v])),
            )
    for option in m.CUlibraryOption:
        for value in (0, 1, True, 4096):
            yield (
                f"{option.name} = {value}",
                "cuLibraryLoadData",
                _in_mode("ok", lambda o=option, v=value: m.cuLibraryLoadData(b"code", [], [], 0, [o], [v], 1)),
            )
    yield from _launches(m)


def _launches(m):
    """Parameters of kernels in every form."""
    c = ctypes

    class Pair(c.Structure):
        _fields_ = (("a", c.c_int), ("b", c.c_double))

    forms = {
        "int": ("4", lambda: ((5,), (c.c_int,))),
        "all": (
            "1,1,2,2,4,4,8,8,4,8,8,1",
            lambda: (
                (1, 2, 3, 4, 5, 6, 7, 8, 1.5, 2.5, 4096, True),
                (
                    c.c_byte,
                    c.c_ubyte,
                    c.c_short,
                    c.c_ushort,
                    c.c_int,
                    c.c_uint,
                    c.c_longlong,
                    c.c_ulonglong,
                    c.c_float,
                    c.c_double,
                    c.c_void_p,
                    c.c_bool,
                ),
            ),
        ),
        "negative": ("1,2,4,8", lambda: ((-1, -2, -3, -4), (c.c_byte, c.c_short, c.c_int, c.c_longlong))),
        "too large": ("1,2,4", lambda: ((300, 70000, 1 << 33), (c.c_ubyte, c.c_ushort, c.c_uint))),
        "float for int": ("4", lambda: ((1.5,), (c.c_int,))),
        "int for float": ("4,8", lambda: ((3, 4), (c.c_float, c.c_double))),
        "char": ("1", lambda: ((b"a",), (c.c_char,))),
        "handle": ("8", lambda: ((m.CUdeviceptr(4096),), (None,))),
        "handle as pointer": ("8", lambda: ((m.CUdeviceptr(4096),), (c.c_void_p,))),
        "texture": ("8", lambda: ((m.CUtexObject(77),), (None,))),
        "enum": ("4", lambda: ((m.CUmemorytype.CU_MEMORYTYPE_ARRAY,), (None,))),
        "ctypes value": ("4", lambda: ((c.c_int(5),), (None,))),
        "ctypes struct": ("16", lambda: ((Pair(5, 2.5),), (None,))),
        "struct of the driver": ("16", lambda: ((m.CUuuid(),), (None,))),
        "empty": ("", lambda: ((), ())),
        "no types": ("", lambda: ((5,), ())),
        "more types": ("", lambda: ((5,), (c.c_int, c.c_int))),
        "list": ("4", lambda: ([5], [c.c_int])),
        "not a pair": ("", lambda: (5,)),
        "None": ("", lambda: None),
        "0": ("", lambda: 0),
        "text": ("", lambda: (("x",), (c.c_int,))),
        "wrong type": ("", lambda: ((5,), (int,))),
        "size_t": ("8", lambda: ((5,), (c.c_size_t,))),
        "wchar": ("4", lambda: (("x",), (c.c_wchar,))),
        "intp": ("8", lambda: ((-5,), (c.c_ssize_t,))),
    }
    for what, (sizes, make) in forms.items():
        yield (
            what,
            "cuLaunchKernel",
            _in_mode(
                "ok",
                lambda p=make: m.cuLaunchKernel(m.CUfunction(1), 1, 2, 3, 4, 5, 6, 7, m.CUstream(8), p(), 0),
                sizes,
            ),
        )
        yield (
            what,
            "cuLaunchCooperativeKernel",
            _in_mode(
                "ok",
                lambda p=make: m.cuLaunchCooperativeKernel(m.CUfunction(1), 1, 2, 3, 4, 5, 6, 7, m.CUstream(8), p()),
                sizes,
            ),
        )

        def extended(make=make):
            config = m.CUlaunchConfig()
            config.gridDimX, config.blockDimX, config.hStream = 3, 32, m.CUstream(9)
            attribute = m.CUlaunchAttribute()
            attribute.id = m.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PRIORITY
            attribute.value.priority = -2
            config.attrs, config.numAttrs = [attribute], 1
            return m.cuLaunchKernelEx(config, m.CUfunction(1), make(), 0)

        yield what, "cuLaunchKernelEx", _in_mode("ok", extended, sizes)

    def many():
        n = 300
        return m.cuLaunchKernel(m.CUfunction(1), 1, 1, 1, 1, 1, 1, 0, 0, (tuple(range(n)), (c.c_int,) * n), 0)

    yield "300 parameters", "cuLaunchKernel", _in_mode("ok", many, ",".join(["4"] * 300))
