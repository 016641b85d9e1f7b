"""nvJitLink: the real library, which needs no GPU, with inputs from NVRTC."""

MODULE = "cuda.bindings.nvjitlink"

CALLER = b'extern "C" __device__ int helper(int); extern "C" __global__ void kernel(int *p) { *p = helper(*p); }'
HELPER = b'extern "C" __device__ int helper(int x) { return x + 1; }'


def compiled(source, kind, *options):
    """NVRTC's output of a source: CUBIN, PTX or LTOIR."""
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(source, b"a.cu", 0, None, None)
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), list(options))
    assert int(status) == 0
    _, size = getattr(nvrtc, f"nvrtcGet{kind}Size")(program)
    out = bytearray(size)
    (status,) = getattr(nvrtc, f"nvrtcGet{kind}")(program, out)
    assert int(status) == 0
    nvrtc.nvrtcDestroyProgram(program)
    return bytes(out)


def result(call, size, get, handle):
    n = call(size.__name__, size, handle) or 0
    out = bytearray(n)
    call(get.__name__, get, handle, out)
    call("content", bytes, out)


def linking(m, call):
    call("version", m.version)
    for kind, input_type, options in (
        ("CUBIN", m.InputType.CUBIN, (b"-arch=sm_80", b"-rdc=true")),
        ("PTX", m.InputType.PTX, (b"-arch=compute_80", b"-rdc=true")),
        ("LTOIR", m.InputType.LTOIR, (b"-arch=compute_80", b"-rdc=true", b"-dlto")),
    ):
        one, two = compiled(CALLER, kind, *options), compiled(HELPER, kind, *options)
        for link in (
            ["-arch=sm_80"],
            ["-arch=sm_80", "-lto"],
            ["-arch=sm_80", "-lto", "-ptx"],
            [b"-arch=sm_90", "-verbose"],
        ):
            handle = call(f"create {kind} {link}", m.create, len(link), link, volatile=True)
            if handle is None:
                continue
            call("add one", m.add_data, handle, input_type, one, len(one), "one")
            call("add two", m.add_data, handle, int(input_type), bytearray(two), len(two), "two")
            call("complete", m.complete, handle)
            result(call, m.get_linked_cubin_size, m.get_linked_cubin, handle)
            result(call, m.get_linked_ptx_size, m.get_linked_ptx, handle)
            result(call, m.get_linked_ltoir_size, m.get_linked_ltoir, handle)
            n = call("get_error_log_size", m.get_error_log_size, handle) or 0
            log = bytearray(n)
            call("get_error_log", m.get_error_log, handle, log)
            call("error log", bytes, log)
            call("get_info_log_size", m.get_info_log_size, handle, volatile=True)
            call("get_info_log", m.get_info_log, handle, bytearray(1 << 16))
            call("destroy", m.destroy, handle)


def mistakes(m, call):
    for options in ([], ["-arch=bogus"], ["--foo", "-arch=sm_80"], ["-lto"]):
        handle = call(f"create {options}", m.create, len(options), options, volatile=True)
        if handle:
            m.destroy(handle)
    handle = m.create(1, ["-arch=sm_80"])
    call("nonsense", m.add_data, handle, m.InputType.CUBIN, b"nonsense", 8, "bad")
    call("bad PTX", m.add_data, handle, m.InputType.PTX, b"nonsense\0", 9, "bad")
    call("wrong type", m.add_data, handle, 99, b"nonsense", 8, "bad")
    call("wrong size", m.add_data, handle, m.InputType.CUBIN, b"abc", 5, "bad")
    call("no file", m.add_file, handle, m.InputType.CUBIN, "/no/such/file")
    call("complete", m.complete, handle)
    call("cubin size", m.get_linked_cubin_size, handle, volatile=True)
    call("destroy", m.destroy, handle)
    one = compiled(CALLER, "CUBIN", b"-arch=sm_80", b"-rdc=true")
    handle = m.create(1, ["-arch=sm_80"])
    call("add", m.add_data, handle, m.InputType.CUBIN, one, len(one), "one")
    call("unresolved", m.complete, handle)
    n = m.get_error_log_size(handle)
    log = bytearray(n)
    call("log", m.get_error_log, handle, log)
    call("log's text", bytes, log)
    call("destroy unresolved", m.destroy, handle)
    for name in ("complete", "destroy", "get_linked_cubin_size", "get_error_log_size"):
        call(f"{name} of handle 0", getattr(m, name), 0)


SCRIPTS = (linking, mistakes)
