"""NVRTC: every function with the recorder; the real library, which needs no GPU."""

from cases.driver_real import sizes

MODULE = "cuda.bindings.nvrtc"
MODES = ("ok", "fill", "error:1", "error:6", "error:11", "error:12345")

ARGUMENTS = {("sizeof", "objType"): lambda m: m.nvrtcProgram}

SOURCE = b"""
template <typename T> __global__ void typed(T *p) { *p += T(1); }
extern "C" __global__ void kernel(int *p) { *p = 42; }
__constant__ int constant_value;
"""


def compiling(m, call):
    call("version", m.nvrtcVersion)
    _status, _archs = call("archs", m.nvrtcGetNumSupportedArchs)
    call("list", m.nvrtcGetSupportedArchs)
    for result in m.nvrtcResult:
        call(f"error {result.name}", m.nvrtcGetErrorString, result)
    for options in ([], [b"-arch=compute_80"], [b"-arch=sm_80"], [b"-arch=sm_90", b"-rdc=true"], [b"-arch=sm_80", b"-dlto"], [b"-bogus"], [b"--time=-"],
                    [b"-arch=sm_80", b"-lineinfo"], [b"-std=c++20"]):  # fmt: skip
        _, program = call(f"create {options}", m.nvrtcCreateProgram, SOURCE, b"a.cu", 0, None, None, volatile=True)
        call("name", m.nvrtcAddNameExpression, program, b"typed<int>")
        call("constant", m.nvrtcAddNameExpression, program, b"&constant_value")
        call(f"compile {options}", m.nvrtcCompileProgram, program, len(options), options)
        call("lowered", m.nvrtcGetLoweredName, program, b"typed<int>")
        call("lowered constant", m.nvrtcGetLoweredName, program, b"&constant_value")
        call("lowered nothing", m.nvrtcGetLoweredName, program, b"typed<float>")
        for what in ("ProgramLog", "PTX", "CUBIN", "LTOIR", "OptiXIR", "TileIR"):
            if not hasattr(m, f"nvrtcGet{what}"):
                continue
            size = call(
                f"size of {what}",
                getattr(m, f"nvrtcGet{what}Size"),
                program,
                volatile=what == "ProgramLog" and b"--time=-" in options,
            )
            out = bytearray(size[1] or 0) if size and len(size) > 1 else bytearray()
            call(what, getattr(m, f"nvrtcGet{what}"), program, out)
            call(f"content of {what}", bytes, out, volatile=what == "ProgramLog" and b"--time=-" in options)
        call("destroy", m.nvrtcDestroyProgram, program)


def headers(m, call):
    source = b'#include "a.h"\n#include "b.h"\nextern "C" __global__ void k(int *p) { *p = A + B; }'
    for texts, names in (
        ([b"#define A 1", b"#define B 2"], [b"a.h", b"b.h"]),
        ([b"#define A 1"], [b"a.h"]),
        ((b"#define A 1", b"#define B 2"), (b"a.h", b"b.h")),
    ):
        result = call("create", m.nvrtcCreateProgram, source, b"a.cu", len(texts), texts, names, volatile=True)
        if result:
            call("compile", m.nvrtcCompileProgram, result[1], 0, [])
            call("log size", m.nvrtcGetProgramLogSize, result[1])
            call("destroy", m.nvrtcDestroyProgram, result[1])
    call("too few", m.nvrtcCreateProgram, source, b"a.cu", 2, [b"x"], [b"y"])
    call("no source", m.nvrtcCreateProgram, None, b"a.cu", 0, None, None)
    call("str", m.nvrtcCreateProgram, "source", b"a.cu", 0, None, None)
    call("no name", m.nvrtcCreateProgram, b"", None, 0, None, None, volatile=True)


def others(m, call):
    call("nvrtcGetBundledHeadersInfo", m.nvrtcGetBundledHeadersInfo)
    for name in ("nvrtcGetPCHHeapSize", "nvrtcGetPCHHeapSizeRequired", "nvrtcGetPCHCreateStatus"):
        function = getattr(m, name, None)
        if function:
            call(name, function, *([] if name == "nvrtcGetPCHHeapSize" else [m.nvrtcProgram()]))
    if hasattr(m, "nvrtcSetPCHHeapSize"):
        call("nvrtcSetPCHHeapSize", m.nvrtcSetPCHHeapSize, 1 << 20)
        call("nvrtcGetPCHHeapSize", m.nvrtcGetPCHHeapSize)
    for name in ("nvrtcDestroyProgram", "nvrtcCompileProgram", "nvrtcGetPTXSize", "nvrtcGetProgramLogSize"):
        arguments = [m.nvrtcProgram()] + ([0, []] if name == "nvrtcCompileProgram" else [])
        call(f"{name} of nothing", getattr(m, name), *arguments)


SCRIPTS = (compiling, headers, others, sizes)
