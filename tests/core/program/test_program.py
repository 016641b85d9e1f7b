"""cuda.core.Program and ProgramOptions: inputs, outputs, options, and errors."""

import collections
import dataclasses
import gc
import io
import os
import pathlib
import pickle
import threading
import weakref

import pytest
from cuda.core import Program, ProgramOptions
from cuda.core._utils.cuda_utils import CUDAError, NVRTCError

pytest.importorskip("cuda.bindings.nvrtc")

KERNEL = 'extern "C" __global__ void k(int *a) { *a = 1; }'
TEMPLATE = "template <typename T> __global__ void t(T *a) { *a = 1; }"
PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry simple(.param .u64 p) { ret; }
"""
LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-"
    "v64:64:64-v128:128:128-n16:32:64"
)


def nvvm(name, body="ret void"):
    return f"""
target datalayout = "{LAYOUT}"
target triple = "nvptx64-nvidia-cuda"
define void @{name}() {{
entry:
  {body}
}}
!nvvm.annotations = !{{!0}}
!0 = !{{void ()* @{name}, !"kernel", i32 1}}
!nvvmir.version = !{{!1}}
!1 = !{{i32 2, i32 0, i32 3, i32 1}}
"""


def need(library):
    """Skips the test where the library is not installed."""
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    try:
        load_nvidia_dynamic_lib(library)
    except DynamicLibNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def _nvrtc():
    need("nvrtc")


class Log:
    def __init__(self):
        self.parts = []

    def write(self, text):
        assert type(text) is str
        self.parts.append(text)


# ---------------------------------------------------------------------------------------------------------
# Options

EVERY = {
    "relocatable_device_code": (True, ["--relocatable-device-code=true"]),
    "extensible_whole_program": (True, ["--extensible-whole-program"]),
    "debug": (True, ["--device-debug"]),
    "lineinfo": (True, ["--generate-line-info"]),
    "device_code_optimize": (True, ["--dopt=on"]),
    "ptxas_options": (["-v", "-O2"], ["--ptxas-options=-v", "--ptxas-options=-O2"]),
    "max_register_count": (32, ["--maxrregcount=32"]),
    "ftz": (True, ["--ftz=true"]),
    "prec_sqrt": (False, ["--prec-sqrt=false"]),
    "prec_div": (True, ["--prec-div=true"]),
    "fma": (False, ["--fmad=false"]),
    "use_fast_math": (True, ["--use_fast_math"]),
    "extra_device_vectorization": (True, ["--extra-device-vectorization"]),
    "link_time_optimization": (True, ["--dlink-time-opt"]),
    "gen_opt_lto": (True, ["--gen-opt-lto"]),
    "define_macro": (["A", ("B", "2")], ["--define-macro=A", "--define-macro=B=2"]),
    "undefine_macro": ("C", ["--undefine-macro=C"]),
    "include_path": (("x", "y"), ["--include-path=x", "--include-path=y"]),
    "pre_include": ("p.h", ["--pre-include=p.h"]),
    "no_source_include": (True, ["--no-source-include"]),
    "std": ("c++17", ["--std=c++17"]),
    "builtin_move_forward": (False, ["--builtin-move-forward=false"]),
    "builtin_initializer_list": (True, ["--builtin-initializer-list=true"]),
    "disable_warnings": (True, ["--disable-warnings"]),
    "restrict": (True, ["--restrict"]),
    "device_as_default_execution_space": (True, ["--device-as-default-execution-space"]),
    "device_int128": (True, ["--device-int128"]),
    "device_float128": (True, ["--device-float128"]),
    "optimization_info": ("inline", ["--optimization-info=inline"]),
    "no_display_error_number": (True, ["--no-display-error-number"]),
    "diag_error": (1, ["--diag-error=1"]),
    "diag_suppress": ([2, 3], ["--diag-suppress=2", "--diag-suppress=3"]),
    "diag_warn": ((4,), ["--diag-warn=4"]),
    "brief_diagnostics": (True, ["--brief-diagnostics=true"]),
    "time": ("t.csv", ["--time=t.csv"]),
    "split_compile": (2, ["--split-compile=2"]),
    "fdevice_syntax_only": (True, ["--fdevice-syntax-only"]),
    "minimal": (True, ["--minimal"]),
    "no_cache": (True, ["--no-cache"]),
    "fdevice_time_trace": ("t.json", ["--fdevice-time-trace=t.json"]),
    "frandom_seed": ("s", ["--frandom-seed=s"]),
    "ofast_compile": ("min", ["--Ofast-compile=min"]),
    "pch": (True, ["--pch"]),
    "create_pch": ("c.pch", ["--create-pch=c.pch"]),
    "use_pch": ("u.pch", ["--use-pch=u.pch"]),
    "pch_dir": ("d", ["--pch-dir=d"]),
    "pch_verbose": (True, ["--pch-verbose=true"]),
    "pch_messages": (False, ["--pch-messages=false"]),
    "instantiate_templates_in_pch": (True, ["--instantiate-templates-in-pch=true"]),
    "numba_debug": (True, ["--numba-debug"]),
}
# Ignored by libNVVM, or different there.
NOT_NVRTC = {"name", "arch", "use_bundled_headers", "extra_sources", "use_libdevice"}


def test_all_options_are_covered_here():
    names = {field.name for field in dataclasses.fields(ProgramOptions)}
    assert names == set(EVERY) | NOT_NVRTC


def test_nvrtc_options_and_their_order():
    options = ProgramOptions(arch="sm_80", **{name: value for name, (value, _) in EVERY.items()})
    spelled = [text.encode() for _, texts in EVERY.values() for text in texts]
    assert options.as_bytes("nvrtc") == [b"-arch=sm_80", *spelled]
    for name, (value, texts) in EVERY.items():
        alone = ProgramOptions(arch="sm_80", **{name: value}).as_bytes("NVRTC", "ptx")
        assert alone == [b"-arch=sm_80", *(text.encode() for text in texts)], name
        assert ProgramOptions(arch="sm_80", **{name: None}).as_bytes("nvrtc") == [b"-arch=sm_80"]


def test_disabled_flags_produce_no_option():
    for name, (value, texts) in EVERY.items():
        if value is True and "=" not in texts[0].replace("=on", ""):
            assert ProgramOptions(arch="sm_80", **{name: False}).as_bytes("nvrtc") == [b"-arch=sm_80"], name


def test_bundled_headers_are_written_to_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME" if os.name == "posix" else "LOCALAPPDATA", str(tmp_path))
    (_, option) = ProgramOptions(arch="sm_80", use_bundled_headers=True).as_bytes("nvrtc")
    folder = tmp_path / "cuda-python" / "nvrtc-bundled-headers"
    assert option == f"--use-bundled-headers={folder}".encode()


def test_nvvm_options():
    options = ProgramOptions(
        arch="sm_90a", debug=True, numba_debug=True, device_code_optimize=True, ftz=True, prec_sqrt=False, prec_div=True,
        fma=False, lineinfo=False, use_libdevice=True,
    )  # fmt: skip
    right = [
        b"-arch=compute_90a",
        b"-g",
        b"-numba-debug",
        b"-opt=3",
        b"-ftz=1",
        b"-prec-sqrt=0",
        b"-prec-div=1",
        b"-fma=0",
    ]
    assert options.as_bytes("nvvm") == right
    assert options.as_bytes("NVVM", "LTOIR") == [*right, b"-gen-lto"]
    assert ProgramOptions(arch="sm_80", device_code_optimize=False).as_bytes("nvvm") == [b"-arch=compute_80", b"-opt=0"]
    with pytest.raises(CUDAError, match="std, diag_warn"):
        ProgramOptions(arch="sm_80", std="c++17", diag_warn=[1]).as_bytes("nvvm")
    with pytest.raises(CUDAError, match="relocatable_device_code"):
        ProgramOptions(arch="sm_80", relocatable_device_code=False).as_bytes("nvvm")
    with pytest.raises(ValueError, match="'nvjitlink'"):
        options.as_bytes("nvjitlink")


def test_options_are_a_data_class():
    options = ProgramOptions(arch="sm_80", debug=True)
    assert options == ProgramOptions(arch="sm_80", debug=True) != ProgramOptions(arch="sm_80")
    assert repr(options) == "ProgramOptions(name='default_program', arch='sm_80')"
    assert dataclasses.replace(options, arch="sm_90").arch == "sm_90"
    assert pickle.loads(pickle.dumps(options)) == options
    assert ProgramOptions(None, "sm_80").name == "default_program"
    with pytest.raises(TypeError):
        hash(options)
    with pytest.raises(TypeError, match="no_such"):
        ProgramOptions(no_such=1)


def test_default_architecture_is_the_current_devices():
    from cuda.core import Device

    assert ProgramOptions().arch == f"sm_{Device().arch}"


@pytest.mark.parametrize(
    "field, value, error",
    [
        ("name", 5, TypeError),
        ("name", b"x", TypeError),
        ("arch", 80, TypeError),
        ("std", 17, TypeError),
        ("std", ["c++17"], TypeError),
        ("max_register_count", "many", ValueError),
        ("max_register_count", 1.5, TypeError),
        ("max_register_count", -1, ValueError),
        ("max_register_count", True, TypeError),
        ("max_register_count", 1 << 40, ValueError),
        ("split_compile", [1], TypeError),
        ("include_path", 5, TypeError),
        ("include_path", {"a"}, TypeError),
        ("include_path", ["a", 5], TypeError),
        ("ptxas_options", b"-v", TypeError),
        ("pre_include", [None], TypeError),
        ("diag_error", "a", ValueError),
        ("diag_error", [1.5], TypeError),
        ("extra_sources", "abc", TypeError),
        ("extra_sources", [("a",)], TypeError),
        ("extra_sources", [("a", 5)], TypeError),
        ("extra_sources", [(5, "a")], TypeError),
        ("extra_sources", [("a", "")], ValueError),
        ("extra_sources", 5, TypeError),
    ],
)
def test_invalid_options_are_named(field, value, error):
    with pytest.raises(error, match=rf"ProgramOptions\.{field}"):
        ProgramOptions(**{"arch": "sm_80", field: value})
    options = ProgramOptions(arch="sm_80")
    setattr(options, field, value)
    with pytest.raises(error, match=rf"ProgramOptions\.{field}"):
        Program(KERNEL, "c++", options)


@pytest.mark.parametrize(
    "value",
    [
        5, [], (), [5], ("a", 5), [("a", "b", "c")], [("a",)], {"a"}, [None], b"a",
        ("a",), ("a", "b", "c"), (("a", "1"), "b"), (("a", "1"),), [["a", "1"]], [["a"]],
    ],
)  # fmt: skip
def test_invalid_macros_raise_on_use(value):
    options = ProgramOptions(arch="sm_80", define_macro=value)
    with pytest.raises(RuntimeError, match="define_macro"):
        options.as_bytes("nvrtc")
    with pytest.raises(RuntimeError, match="define_macro"):
        Program(KERNEL, "c++", options)


def test_macro_forms():
    for value, texts in (
        ("A", [b"A"]),
        ("A=1", [b"A=1"]),
        (("A", "B"), [b"A=B"]),
        (["A", "B", "C"], [b"A", b"B", b"C"]),
        ([("A", "1"), "B"], [b"A=1", b"B"]),
        ([("A", "1"), ("B", "")], [b"A=1", b"B="]),
    ):
        spelled = ProgramOptions(arch="sm_80", define_macro=value).as_bytes("nvrtc")[1:]
        assert spelled == [b"--define-macro=" + text for text in texts], value


def test_paths_and_numbers_of_other_types(tmp_path):
    np = pytest.importorskip("numpy")
    options = ProgramOptions(
        arch="sm_80", include_path=[tmp_path, pathlib.Path("x")], max_register_count=np.int32(40), diag_warn=np.uint8(7),
        debug=np.bool_(True), ofast_compile=0, pch_dir=tmp_path, split_compile="3",
    )  # fmt: skip
    assert options.as_bytes("nvrtc") == [
        b"-arch=sm_80",
        b"--device-debug",
        b"--maxrregcount=40",
        f"--include-path={tmp_path}".encode(),
        b"--include-path=x",
        b"--diag-warn=7",
        b"--split-compile=3",
        b"--Ofast-compile=0",
        f"--pch-dir={tmp_path}".encode(),
    ]


def test_false_requests_no_path():
    fields = ("time", "include_path", "pre_include", "pch_dir", "use_pch", "create_pch", "fdevice_time_trace")
    for field in fields:
        assert ProgramOptions(**{"arch": "sm_80", field: False}).as_bytes("nvrtc") == [b"-arch=sm_80"], field
    assert ProgramOptions(arch="sm_80", time=True).as_bytes("nvrtc") == [b"-arch=sm_80", b"--time=True"]
    for field in fields[1:]:
        with pytest.raises(TypeError, match=rf"ProgramOptions\.{field} is True"):
            ProgramOptions(**{"arch": "sm_80", field: True})


def test_paths_in_any_sequence():
    np = pytest.importorskip("numpy")
    for value in (
        ["a", "b"],
        ("a", "b"),
        collections.deque(["a", "b"]),
        np.array(["a", "b"]),
        [pathlib.Path("a"), "b"],
    ):
        for field in ("include_path", "pre_include"):
            option = f"--{field.replace('_', '-')}="
            spelled = ProgramOptions(**{"arch": "sm_80", field: value}).as_bytes("nvrtc")[1:]
            assert spelled == [f"{option}a".encode(), f"{option}b".encode()], value
    for value in (b"a", bytearray(b"a"), {"a"}, {"a": 1}, 5, [5], [b"a"], range(2)):
        with pytest.raises(TypeError, match="include_path"):
            ProgramOptions(arch="sm_80", include_path=value)


# ---------------------------------------------------------------------------------------------------------
# CUDA C++


def test_program_compiles():
    from cuda.bindings import nvrtc
    from cuda.core.typing import CompilerBackendType

    program = Program(KERNEL, "C++", {"arch": "sm_80"})
    assert repr(program) == "<Program backend='NVRTC'>"
    assert program.backend is CompilerBackendType.NVRTC and program.backend == "NVRTC"
    assert type(program.handle) is nvrtc.nvrtcProgram and int(program.handle) != 0
    assert not program.is_closed and program.pch_status is None
    assert weakref.ref(program)() is program and program != Program(KERNEL, "c++", ProgramOptions(arch="sm_80"))
    handle = int(program.handle)
    ptx = program.compile("PTX")
    assert int(program.handle) == handle
    assert ptx.code_type == "ptx" and ptx.name == "default_program" and ptx.symbol_mapping == {}
    assert b".entry k" in ptx.code and ptx.code.endswith(b"\0")
    program.close()
    program.close()
    assert program.is_closed and int(program.handle) == 0 and type(program.handle) is nvrtc.nvrtcProgram
    assert repr(program) == "<Program backend='NVRTC'>" and program.backend == "NVRTC"
    with pytest.raises(RuntimeError, match="closed"):
        program.compile("ptx")
    assert b".entry k" in ptx.code


def test_program_compiles_repeatedly():
    program = Program(TEMPLATE, "c++", ProgramOptions(arch="sm_80", name="again.cu"))
    for expression in ("t<float>", "t<double>", "t<float>"):
        for target in ("ptx", "cubin", "ltoir"):
            code = program.compile(target, name_expressions=(expression,))
            assert code.code_type == target and code.name == "again.cu" and code.code
            ((key, name),) = code.symbol_mapping.items()
            assert key == expression and name.startswith(b"_Z1tI")
    assert b".entry" not in program.compile("ptx").code


@pytest.mark.parametrize("kind", [list, tuple, set, iter])
def test_name_expressions(kind):
    program = Program(TEMPLATE, "c++", ProgramOptions(arch="sm_80"))
    code = program.compile("ptx", kind(["t<float>", b"t<int>"]))
    assert code.symbol_mapping == {"t<float>": b"_Z1tIfEvPT_", b"t<int>": b"_Z1tIiEvPT_"}
    for wrong in ("t<float>", b"t<float>", (5,), (bytearray(b"t<float>"),), 5):
        with pytest.raises(TypeError):
            program.compile("ptx", wrong)
    with pytest.raises(ValueError, match="NUL"):
        program.compile("ptx", ("t<\0>",))
    with pytest.raises(NVRTCError, match="nosuch"):
        program.compile("ptx", ("nosuch<int>",))
    assert program.compile("ptx", ("t<int>",)).symbol_mapping


def test_errors_contain_the_log_the_name_and_the_call():
    program = Program("nonsense", "c++", ProgramOptions(arch="sm_80", name="some.cu"))
    log = Log()
    for _ in range(2):
        with pytest.raises(NVRTCError, match=r"NVRTC_ERROR_COMPILATION(.|\n)*some\.cu\(1\): error") as caught:
            program.compile("ptx", logs=log)
        assert "nvrtcCompileProgram" in str(caught.value) and "\0" not in str(caught.value)
    assert log.parts == []
    with pytest.raises(NVRTCError, match="--gpu-architecture"):
        Program(KERNEL, "c++", ProgramOptions(arch="sm_12")).compile("ptx")


def test_logs_are_written():
    program = Program("#warning careful\n" + KERNEL, "c++", ProgramOptions(arch="sm_80"))
    log, text = Log(), io.StringIO()
    program.compile("ptx", logs=log)
    program.compile("ptx", logs=text)
    assert "careful" in log.parts[0] and "\0" not in log.parts[0] and len(log.parts) == 1
    assert text.getvalue() == log.parts[0]
    program.compile("ptx", (), None)
    silent = Log()
    Program(KERNEL, "c++", ProgramOptions(arch="sm_80")).compile("ptx", logs=silent)
    assert silent.parts == []
    with pytest.raises(AttributeError, match="logs"):
        program.compile("ptx", logs=5)
    with pytest.raises(TypeError):
        program.compile("ptx", logs=io.BytesIO())


def test_invalid_arguments_raise():
    for code in (KERNEL.encode(), bytearray(KERNEL.encode()), 5, None):
        with pytest.raises(TypeError, match="code"):
            Program(code, "c++")
    for kind in ("cuda", 5, None, b"c++"):
        with pytest.raises(RuntimeError, match="code_type"):
            Program(KERNEL, kind)
    with pytest.raises(TypeError, match="options"):
        Program(KERNEL, "c++", 5)
    with pytest.raises(TypeError, match="foo"):
        Program(KERNEL, "c++", {"foo": 1})
    with pytest.raises(ValueError, match="NUL"):
        Program(KERNEL + "\0", "c++", ProgramOptions(arch="sm_80"))
    with pytest.raises(ValueError, match="extra_sources"):
        Program(KERNEL, "c++", ProgramOptions(arch="sm_80", extra_sources=[("a", "b")]))
    with pytest.raises(TypeError):
        Program()
    program = Program(KERNEL, "c++", ProgramOptions(arch="sm_80"))
    for target in ("fatbin", "", 5, None, b"ptx"):
        with pytest.raises(ValueError, match="target_type"):
            program.compile(target)
    with pytest.raises(RuntimeError, match="Linker"):
        program.link("cubin")
    with pytest.raises(AttributeError):
        program.backend = "NVRTC"


def test_target_types_that_nvrtc_lacks_raise():
    with pytest.raises(ValueError, match="compute_80"):
        Program(KERNEL, "c++", ProgramOptions(arch="compute_80")).compile("cubin")
    lto = Program(KERNEL, "c++", ProgramOptions(arch="sm_80", link_time_optimization=True))
    for target in ("ptx", "cubin"):
        with pytest.raises(ValueError, match="link_time_optimization"):
            lto.compile(target)
    assert lto.compile("ltoir").code
    syntax = Program(KERNEL, "c++", ProgramOptions(arch="sm_80", fdevice_syntax_only=True))
    assert b".entry" not in syntax.compile("ptx").code


def test_threads_compile_one_program():
    program = Program(TEMPLATE, "c++", ProgramOptions(arch="sm_80"))
    types, results = ("int", "float", "char", "double"), {}

    def work(name):
        results[name] = program.compile("ptx", (f"t<{name}>",))

    threads = [threading.Thread(target=work, args=(name,)) for name in types]
    for thread in threads:
        thread.start()
    program.close()
    for thread in threads:
        thread.join()
    # A compilation after close() raises in its thread; earlier ones return the right code.
    for name, code in results.items():
        assert code.symbol_mapping[f"t<{name}>"] in code.code


def test_programs_are_destroyed():
    class Sub(Program):
        pass

    program = Sub(KERNEL, "c++", ProgramOptions(arch="sm_80"))
    program.compile("ptx")
    reference = weakref.ref(program)
    del program
    gc.collect()
    assert reference() is None


def test_precompiled_headers(tmp_path):
    (tmp_path / "h.h").write_text("__device__ int header() { return 7; }\n")
    source = '#include <h.h>\nextern "C" __global__ void k(int *a) { *a = header(); }'
    made = str(tmp_path / "h.pch")
    common = {"arch": "sm_80", "include_path": tmp_path}
    program = Program(source, "c++", ProgramOptions(create_pch=made, **common))
    assert program.pch_status is None
    program.compile("ptx")
    if program.pch_status is None:
        pytest.skip("this NVRTC has no precompiled headers")
    from cuda.core.typing import PCHStatusType

    assert program.pch_status is PCHStatusType.CREATED and os.path.getsize(made)
    user = Program(source, "c++", ProgramOptions(use_pch=made, **common))
    assert b".entry k" in user.compile("ptx").code and user.pch_status is None
    failing = Program(source, "c++", ProgramOptions(create_pch=str(tmp_path / "no" / "h.pch"), **common))
    with pytest.raises(NVRTCError, match="h.pch"):
        failing.compile("ptx")
    assert failing.pch_status is None
    automatic = Program(source, "c++", ProgramOptions(pch=True, pch_dir=str(tmp_path), **common))
    automatic.compile("ptx")
    assert automatic.pch_status == "created"
    automatic.compile("ptx")
    assert automatic.pch_status == "not_attempted"
    automatic.close()
    assert automatic.pch_status is None


# ---------------------------------------------------------------------------------------------------------
# NVVM IR and PTX


@pytest.mark.parametrize("kind", [str, str.encode, lambda text: bytearray(text.encode())])
def test_nvvm_compiles(kind):
    need("nvvm")
    program = Program(kind(nvvm("one")), "nvvm", ProgramOptions(arch="sm_80", name="one.ll"))
    assert program.backend == "NVVM" and type(program.handle) is int and program.handle != 0
    for _ in range(2):
        assert b".entry one" in program.compile("ptx").code
        assert program.compile("ltoir").code
    assert program.compile("ptx").name == "one.ll" and program.pch_status is None
    assert program.compile("ptx", ("one",)).symbol_mapping == {}
    with pytest.raises(ValueError, match="target_type"):
        program.compile("cubin")
    program.close()
    assert program.handle == 0


def test_nvvm_with_additional_modules():
    need("nvvm")
    for second in (nvvm("two"), nvvm("two").encode(), bytearray(nvvm("two").encode())):
        options = ProgramOptions(arch="sm_80", extra_sources=[("second", second)])
        ptx = Program(nvvm("one"), "nvvm", options).compile("ptx").code
        assert b".entry one" in ptx and b".entry two" in ptx


def test_nvvm_errors():
    need("nvvm")
    from cuda.bindings.nvvm import nvvmError

    with pytest.raises(nvvmError, match=r"ERROR_INVALID_IR(.|\n)*some\.ll"):
        Program("nonsense", "nvvm", ProgramOptions(arch="sm_80", name="some.ll")).compile("ptx")
    with pytest.raises(nvvmError, match=r"second"):
        options = ProgramOptions(arch="sm_80", extra_sources=[("second", "nonsense")])
        Program(nvvm("one"), "nvvm", options).compile("ptx")
    with pytest.raises(nvvmError, match="compute_12"):
        Program(nvvm("one"), "nvvm", ProgramOptions(arch="sm_12")).compile("ptx")
    with pytest.raises(CUDAError, match="std"):
        Program(nvvm("one"), "nvvm", ProgramOptions(arch="sm_80", std="c++17")).compile("ptx")


def test_nvvm_with_libdevice():
    need("nvvm")
    from cuda.pathfinder import BitcodeLibNotFoundError

    source = nvvm("one", "%x = call double @__nv_sin(double 1.0)\n  ret void") + "\ndeclare double @__nv_sin(double)\n"
    try:
        ptx = Program(source, "nvvm", ProgramOptions(arch="sm_80", use_libdevice=True)).compile("ptx").code
    except BitcodeLibNotFoundError as error:
        pytest.skip(str(error))
    assert b"call" not in ptx or b"__nv_sin" not in ptx


def test_ptx_links():
    need("nvJitLink")
    from cuda.core import Device

    Device().set_current()
    program = Program(PTX, "ptx")
    assert program.backend in ("nvJitLink", "driver") and type(program.handle) is int and program.handle != 0
    assert repr(program) == f"<Program backend='{program.backend}'>"
    for _ in range(2):
        cubin = program.compile("cubin")
        assert cubin.code_type == "cubin" and cubin.get_kernel("simple") is not None
    with pytest.warns(DeprecationWarning, match="compile"):
        assert program.link("cubin").get_kernel("simple") is not None
    with pytest.raises(ValueError, match="target_type"):
        program.compile("ltoir")
    program.close()
    assert program.handle == 0 and program.is_closed
    with pytest.raises(RuntimeError, match="closed"):
        program.compile("cubin")
    with pytest.warns(UserWarning, match="numba_debug"):
        Program(PTX, "ptx", ProgramOptions(numba_debug=True))
    with pytest.raises(TypeError, match="code"):
        Program(PTX.encode(), "ptx")


def test_ptx_errors():
    need("nvJitLink")
    from cuda.bindings.nvjitlink import nvJitLinkError

    with pytest.raises((nvJitLinkError, CUDAError)):
        Program("nonsense", "ptx").compile("cubin")
