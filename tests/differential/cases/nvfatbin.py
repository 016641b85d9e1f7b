"""nvFatbin: the real library, which needs no GPU, with inputs from NVRTC."""

from cases.nvjitlink import CALLER, HELPER, compiled

MODULE = "cuda.bindings.nvfatbin"


def making(m, call):
    call("version", m.version)
    for status in range(20):
        call(f"get_error_string {status}", m.get_error_string, status)
    ptx = compiled(HELPER, "PTX", b"-arch=compute_80", b"-rdc=true")
    parts = {arch: compiled(CALLER, "CUBIN", b"-arch=sm_" + arch, b"-rdc=true") for arch in (b"80", b"90")}
    ltoir = compiled(CALLER, "LTOIR", b"-arch=compute_80", b"-rdc=true", b"-dlto")
    for options in ([], ["-64"], ["-64", "-cuda"], [b"-64"], ["-bogus"], ["-32"]):
        handle = call(f"create {options}", m.create, options, len(options), volatile=True)
        if handle is None:
            continue
        for arch, cubin in parts.items():
            call(f"add_cubin {arch.decode()}", m.add_cubin, handle, cubin, len(cubin), arch.decode(), "kernel")
        call("add_ptx", m.add_ptx, handle, ptx, len(ptx), "80", "helper", "")
        call("add_ltoir", m.add_ltoir, handle, ltoir, len(ltoir), "80", "kernel", "")
        n = call("size", m.size, handle) or 0
        out = bytearray(n)
        call("get", m.get, handle, out)
        call("content", bytes, out)
        call("destroy", m.destroy, handle)


def mistakes(m, call):
    handle = m.create([], 0)
    call("nonsense", m.add_cubin, handle, b"nonsense", 8, "80", "bad")
    call("bad arch", m.add_ptx, handle, b".version 8.0", 12, "x", "bad", "")
    call("wrong size", m.add_cubin, handle, b"abc", 5, "80", "bad")
    call("bytes for str", m.add_cubin, handle, b"abc", 3, b"80", "bad")
    call("None", m.add_index, handle, None, 0, "bad")
    call("reloc", m.add_reloc, handle, b"nonsense", 8)
    call("size", m.size, handle)
    call("destroy", m.destroy, handle)
    for name in ("destroy", "size"):
        call(f"{name} of handle 0", getattr(m, name), 0)


SCRIPTS = (making, mistakes)
