"""NVRTC's functions that raise: the real library, which needs no GPU."""

MODULE = "cuda.bindings._v2.nvrtc"

ARGUMENTS = {
    ("compile_program", "options"): [b"-a", b"-b"],
    ("create_program", "headers"): [b"one", b"two"],
    ("create_program", "include_names"): [b"a.h", b"b.h"],
}

SOURCE = b"template <typename T> __global__ void typed(T *p) { *p += T(VALUE); }"


def compiling(m, call):
    call("version", m.version)
    call("archs", m.get_supported_archs)
    call("number of archs", m.get_num_supported_archs)
    for result in m.Result:
        call(f"error {result.name}", m.get_error_string, result)
    for options in ([b"-arch=compute_80", b"-DVALUE=1"], [b"-arch=sm_80", b"-DVALUE=2"], [b"-arch=sm_80"], [b"-bogus"]):
        program = call(f"create {options}", m.create_program, SOURCE, b"a.cu", volatile=True)
        call("name", m.add_name_expression, program, "typed<int>")
        call(f"compile {options}", m.compile_program, program, options)
        call("lowered", m.get_lowered_name, program, "typed<int>")
        call("not lowered", m.get_lowered_name, program, "typed<float>")
        for what in ("program_log", "ptx", "cubin", "ltoir", "optix_ir", "tile_ir"):
            # The CPU device adds the PTX to cubins.
            call(f"size of {what}", getattr(m, f"get_{what}_size"), program, volatile=what == "cubin")
            call(what, getattr(m, f"get_{what}"), program, volatile=what == "cubin")
        call("pch", m.get_pch_create_status, program)
        call("destroy", m.destroy_program, program)


def headers(m, call):
    source = b'#include "a.h"\n__global__ void k(int *p) { *p = A; }'
    for texts, names in (([b"#define A 1"], [b"a.h"]), ((b"#define A 1",), (b"a.h",))):
        program = call("create", m.create_program, source, b"a.cu", texts, names, volatile=True)
        call("compile", m.compile_program, program)
        call("destroy", m.destroy_program, program)
    call("lengths", m.create_program, source, b"a.cu", [b"x"], [])
    call("nothing", m.create_program, b"", None, volatile=True)


def others(m, call):
    call("bundled headers", m.get_bundled_headers_info)
    call("heap", m.get_pch_heap_size)
    for name in ("destroy_program", "compile_program", "get_ptx_size", "get_ptx", "get_program_log"):
        call(f"{name} of nothing", getattr(m, name), 0)


SCRIPTS = (compiling, headers, others)
