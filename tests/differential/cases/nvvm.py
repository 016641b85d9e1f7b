"""libNVVM: the real library, which needs no GPU."""

MODULE = "cuda.bindings.nvvm"

DATA_LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-"
    "v64:64:64-v128:128:128-n16:32:64"
)


def source(m):
    """A kernel in NVVM IR."""
    return (
        f'target triple = "nvptx64-nvidia-cuda"\ntarget datalayout = "{DATA_LAYOUT}"\n'
        "define void @kernel(i32 addrspace(1)* %p) {\n  %v = load i32, i32 addrspace(1)* %p\n  %w = add i32 %v, 42\n"
        "  store i32 %w, i32 addrspace(1)* %p\n  ret void\n}\n"
        '!nvvm.annotations = !{!1}\n!1 = !{void (i32 addrspace(1)*)* @kernel, !"kernel", i32 1}\n'
        "!nvvmir.version = !{!0}\n!0 = !{" + ", ".join(f"i32 {n}" for n in m.ir_version()) + "}\n"
    ).encode()


def buffer(call, size, get, program):
    """Queries a size, then as many bytes."""
    n = call(f"{size.__name__}", size, program) or 0
    out = bytearray(n)
    call(f"{get.__name__}", get, program, out)
    call("content", bytes, out)
    return out


def versions(m, call):
    call("version", m.version)
    call("ir_version", m.ir_version)
    for arch in ("compute_75", "compute_80", "compute_90", "compute_100", "compute_120", "sm_80", "x", ""):
        call(f"llvm_version {arch}", m.llvm_version, arch)
    for status in range(12):
        call(f"get_error_string {status}", m.get_error_string, status)
    call("get_error_string 99", m.get_error_string, 99)


def compiling(m, call):
    for options in ([], ["-arch=compute_80"], ["-arch=compute_90", "-opt=0"], ["-g"], ["-gen-lto", "-arch=compute_80"], ["-bogus"],
                    ["-arch=compute_1"], [b"-opt=3"], ("-ftz=1", "-prec-div=0")):  # fmt: skip
        program = m.create_program()
        text = source(m)
        call(f"add {options}", m.add_module_to_program, program, text, len(text), "kernel")
        call(f"verify {options}", m.verify_program, program, len(options), options)
        call(f"compile {options}", m.compile_program, program, len(options), options)
        buffer(call, m.get_program_log_size, m.get_program_log, program)
        buffer(call, m.get_compiled_result_size, m.get_compiled_result, program)
        call("destroy_program", m.destroy_program, program)


def mistakes(m, call):
    program = m.create_program()
    call("compile nothing", m.compile_program, program, 0, [])
    call("result of nothing", m.get_compiled_result_size, program)
    call("no IR", m.add_module_to_program, program, b"nonsense", 8, "bad")
    call("wrong size", m.add_module_to_program, program, b"abc", 5, "bad")
    call("null", m.add_module_to_program, program, None, 0, "bad")
    call("lazy", m.lazy_add_module_to_program, program, b"nonsense", 8, "bad")
    call("str for bytes", m.add_module_to_program, program, "abc", 3, "bad")
    call("bytes for str", m.add_module_to_program, program, b"abc", 3, b"bad")
    call("compile nonsense", m.compile_program, program, 0, [])
    buffer(call, m.get_program_log_size, m.get_program_log, program)
    call("destroy", m.destroy_program, program)
    call("handle 0", m.destroy_program, 0)
    call("compile handle 0", m.compile_program, 0, 0, [])
    call("size of handle 0", m.get_compiled_result_size, 0)


SCRIPTS = (versions, compiling, mistakes)
