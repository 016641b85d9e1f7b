"""Program, ProgramOptions and the caches."""

from .devices import CURRENT

SOURCES = (
    CURRENT
    + """
import io, os, tempfile, pathlib
from cuda.core.typing import *
code = 'extern "C" __global__ void k(float *a) { a[threadIdx.x] += 1.0f; }'
template = 'template <typename T> __global__ void t(T *x) { x[0] = T(1); } extern "C" __global__ void k() {}'
ptx = '.version 8.0\\n.target sm_80\\n.address_size 64\\n.visible .entry simple(.param .u64 ptr) { ret; }\\n'
nvvm = '''target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
define void @simple() {
entry:
  ret void
}
!nvvm.annotations = !{!0}
!0 = !{void ()* @simple, !"kernel", i32 1}
!nvvmir.version = !{!1}
!1 = !{i32 2, i32 0, i32 3, i32 1}
'''
class Bad(io.StringIO):
    def write(self, text):
        raise OSError("mine")
"""
)

BOOLEANS = """relocatable_device_code extensible_whole_program debug lineinfo device_code_optimize ftz prec_sqrt prec_div
fma use_fast_math extra_device_vectorization link_time_optimization gen_opt_lto no_source_include builtin_move_forward
builtin_initializer_list disable_warnings restrict device_as_default_execution_space device_int128
no_display_error_number brief_diagnostics fdevice_syntax_only minimal no_cache device_float128 pch pch_verbose
pch_messages instantiate_templates_in_pch use_libdevice numba_debug""".split()

OTHERS = {
    "ptxas_options": ("'-v'", "['-v', '-O1']", "('-v',)", "''", "[]", "'-v -O1'", "3", "[3]"),
    "max_register_count": ("32", "0"),
    "define_macro": (
        "'A'",
        "('A', '1')",
        "('A',)",
        "(('A', '1'),)",
        "('A', ('B', '2'))",
        "()",
        "[('A',)]",
        "[['A', '1']]",
        "['A', ('B', '2')]",
        "(('A', '1'), ('B', '2'))",
        "['A', 'B']",
        "('A', 'B')",
        "[('A', 3)]",
        "('A', '1', '2')",
        "[]",
        "''",
        "3",
        "[3]",
        "{'A': '1'}",
    ),
    "undefine_macro": ("'A'", "['A', 'B']", "('A',)", "3"),
    "include_path": ("'/x'", "['/x', '/y']", "('/x',)", "[]", "3", "pathlib.Path('/x')"),
    "pre_include": ("'a.h'", "['a', 'b']", "3"),
    "std": ("'c++17'", "'c++99'"),
    "optimization_info": ("'inline'",),
    "diag_error": ("1", "[1, 2]", "(1,)", "[]"),
    "diag_suppress": ("1", "[1, 2]"),
    "diag_warn": ("1", "[1, 2]"),
    "time": ("'x.csv'", "False"),
    "split_compile": ("0", "4"),
    "fdevice_time_trace": ("'x'", "False"),
    "frandom_seed": ("'x'",),
    "ofast_compile": ("'min'", "'0'", "'x'"),
    "create_pch": ("'a.pch'", "False"),
    "use_pch": ("'a.pch'", "False"),
    "pch_dir": ("'/x'", "False"),
    "name": ("'n'", "None", "3"),
    "arch": ("'sm_75'", "'compute_75'", "'sm_90a'", "'x'"),
    "extra_sources": (
        "[('a', 'b')]",
        "[]",
        "[('a', b'b')]",
        "(('a', bytearray(b'b')),)",
        "'x'",
        "[('a', 3)]",
        "[3]",
        "[('a',)]",
        "[(3, 'a')]",
    ),
}

EVERYTHING = """o = ProgramOptions(arch='sm_80', name='n', relocatable_device_code=True, extensible_whole_program=True, debug=True,
lineinfo=True, device_code_optimize=True, ptxas_options=['-v'], max_register_count=16, ftz=True, prec_sqrt=False,
prec_div=False, fma=False, use_fast_math=True, extra_device_vectorization=True, link_time_optimization=True,
gen_opt_lto=True, define_macro=['A', ('B', '2')], undefine_macro='U', include_path='/i', pre_include='p.h',
no_source_include=True, std='c++20', builtin_move_forward=True, builtin_initializer_list=True, disable_warnings=True,
restrict=True, device_as_default_execution_space=True, device_int128=True, optimization_info='inline',
no_display_error_number=True, diag_error=1, diag_suppress=2, diag_warn=3, brief_diagnostics=True, time='t',
split_compile=2, fdevice_syntax_only=True, minimal=True, no_cache=True, fdevice_time_trace='f', device_float128=True,
frandom_seed='s', ofast_compile='min', pch=True, create_pch='c', use_pch='u', pch_dir='d', pch_verbose=True,
pch_messages=True, instantiate_templates_in_pch=True)
"""

GROUPS = {
    "program options: booleans": (
        SOURCES,
        "\n".join(
            f"ProgramOptions(arch='sm_80', {field}={value}).as_bytes({backend!r})"
            for field in BOOLEANS
            for value in ("True", "False")
            for backend in ("nvrtc", "nvvm")
        ),
    ),
    "program options: others": (
        SOURCES,
        "\n".join(
            f"ProgramOptions(**{{'arch': 'sm_80', **dict({field}={value})}}).as_bytes({backend!r})"
            for field, values in OTHERS.items()
            for value in values
            for backend in ("nvrtc", "nvvm")
        ),
    ),
    "program options: object": (
        SOURCES + EVERYTHING,
        """
        o.as_bytes("nvrtc")
        o.as_bytes("nvvm")
        ProgramOptions(arch="sm_80")
        ProgramOptions().arch == "sm_" + d.arch, ProgramOptions(arch=None).arch == "sm_" + d.arch
        ProgramOptions(arch="sm_80").as_bytes("NVRTC"), ProgramOptions(arch="sm_80").as_bytes("nvvm", "ltoir"), ProgramOptions(arch="sm_80").as_bytes("nvrtc", "ltoir")
        ProgramOptions(arch="sm_80").as_bytes("nvjitlink")
        ProgramOptions(arch="sm_80").as_bytes("driver")
        ProgramOptions(arch="sm_80").as_bytes("x")
        ProgramOptions().as_bytes()
        ProgramOptions().as_bytes(3)
        ProgramOptions(arch="sm_80").as_bytes(CompilerBackendType.NVRTC)
        ProgramOptions("n").name, ProgramOptions(name=None).name
        ProgramOptions(foo=1)
        ProgramOptions(arch="sm_80") == ProgramOptions(arch="sm_80"), ProgramOptions(arch="sm_80") == ProgramOptions(arch="sm_81"), ProgramOptions() == 3
        hash(ProgramOptions())
        p = ProgramOptions(arch="sm_80"); p.std = "c++14"; p.as_bytes("nvrtc")
        p.foo = 3; p.foo
        pickle.loads(pickle.dumps(ProgramOptions(std="c++17"))) == ProgramOptions(std="c++17")
        copy.copy(ProgramOptions()) == ProgramOptions(), copy.deepcopy(ProgramOptions(define_macro=["A"])).define_macro
        dataclasses.is_dataclass(ProgramOptions), [(f.name, f.default) for f in dataclasses.fields(ProgramOptions)]
        dataclasses.replace(ProgramOptions(arch="sm_80"), std="c++17").as_bytes("nvrtc")
        ProgramOptions(arch="sm_80", use_bundled_headers=False).as_bytes("nvrtc")
        """,
    ),
    "program: made": (
        SOURCES,
        """
        public(Program)
        Program()
        Program(code)
        Program(code, "c++"), Program(code, "C++"), Program(code, SourceCodeType.CXX), Program(ptx, "ptx"), Program(nvvm, "nvvm")
        Program(code, "cuda")
        Program(code, "")
        Program(code, 3)
        Program(code, None)
        Program(code.encode(), "c++")
        Program(3, "c++")
        Program(None, "c++")
        Program(ptx.encode(), "ptx")
        Program(nvvm.encode(), "nvvm"), Program(bytearray(nvvm.encode()), "nvvm")
        Program(memoryview(nvvm.encode()), "nvvm")
        Program(3, "nvvm")
        Program("", "c++").compile("ptx").code_type
        Program(code, "c++", 3)
        Program(code, "c++", {"std": "c++17"}).compile("ptx").code_type
        Program(code, "c++", {"foo": 1})
        Program(code, "c++", LinkerOptions())
        Program(code=code, code_type="c++", options=None).backend
        """,
    ),
    "program: object": (
        SOURCES + "p = Program(code, 'c++')\n",
        """
        p.backend
        p.backend == "NVRTC", Program(nvvm, "nvvm").backend, Program(ptx, "ptx").backend in ("nvJitLink", "driver")
        type(p.handle).__name__, int(p.handle) != 0
        type(Program(nvvm, "nvvm").handle)
        p.pch_status, p.is_closed
        hash(p) == hash(p), p == p, p == Program(code, "c++")
        copy.copy(p)
        pickle.dumps(p)
        weakref.ref(p)() is p
        p.foo = 1
        p.backend = 1
        with Program(code, "c++") as q: pass
        p.close(), p.close(), p.is_closed
        p
        int(p.handle), type(p.handle).__name__
        p.backend, p.pch_status
        p.compile("ptx")
        """,
    ),
    "program: compile": (
        SOURCES + "p = Program(code, 'c++', ProgramOptions(name='mine'))\n",
        """
        p.compile()
        p.compile("x")
        p.compile(None)
        p.compile(3)
        p.compile("object")
        p.compile("fatbin")
        o = p.compile("ptx"); o.code_type, type(o.code_type), o.name, type(o.code), o.symbol_mapping
        p.compile("PTX").code_type, p.compile(ObjectCodeFormatType.PTX).code_type, p.compile(target_type="cubin").code_type
        p.compile("cubin").code[:4]
        Program(code, "c++", ProgramOptions(relocatable_device_code=True)).compile("ltoir").code[:4]
        Program(template, "c++").compile("ptx", name_expressions=("t<float>", "t<int>", "k")).symbol_mapping
        Program(template, "c++").compile("ptx", name_expressions=["k"]).symbol_mapping
        Program(template, "c++").compile("ptx", name_expressions="k").symbol_mapping
        Program(template, "c++").compile("ptx", name_expressions=(b"t<float>",)).symbol_mapping
        Program(template, "c++").compile("ptx", name_expressions=("t<float>",)).get_kernel("t<float>").num_arguments
        Program(template, "c++").compile("ptx", name_expressions=("nope<float>",))
        Program(template, "c++").compile("ptx", name_expressions=(3,))
        Program(code, "c++").compile("ptx", name_expressions=None).symbol_mapping
        Program("nonsense;", "c++").compile("ptx")
        Program("#include <cstdint_nope>", "c++").compile("ptx")
        Program(code, "c++", ProgramOptions(arch="sm_1")).compile("ptx")
        Program(code, "c++", ProgramOptions(std="c++99")).compile("ptx")
        Program(code, "c++", ProgramOptions(arch="sm_80")).compile("ptx").code.count(b".target sm_80")
        Program(code, "c++", ProgramOptions(define_macro=["A", ("B", "2")], std="c++17", max_register_count=32, ftz=True)).compile("ptx").code_type
        p.compile("ptx", foo=1)
        Program(code, "c++", ProgramOptions(link_time_optimization=True)).compile("ltoir").code[:4]
        Program(code, "c++", ProgramOptions(link_time_optimization=True)).compile("ptx").code
        Program(code, "c++", ProgramOptions(link_time_optimization=True)).compile("cubin").code
        """,
    ),
    "program: repeated": (
        SOURCES + "p = Program(template, 'c++')\n",
        """
        p.compile("ptx", name_expressions=("t<float>",)).symbol_mapping
        p.compile("ptx", name_expressions=("t<int>",)).symbol_mapping
        p.compile("ptx").symbol_mapping
        p.compile("cubin").code_type
        """,
    ),
    "program: logs": (
        SOURCES + "log = io.StringIO()\n",
        """
        Program(code, "c++").compile("ptx", logs=log).code_type, log.getvalue()
        Program("#warning hi", "c++").compile("ptx", logs=log).code_type, "hi" in log.getvalue()
        Program("#warning hi", "c++").compile("ptx", logs=Bad())
        Program("#warning hi", "c++").compile("ptx", logs=3)
        Program("#warning hi", "c++").compile("ptx", logs=io.BytesIO())
        Program(code, "c++").compile("ptx", logs=3).code_type
        log = io.StringIO(); Program("nonsense;", "c++").compile("ptx", logs=log)
        log.getvalue()
        Program("nonsense", "nvvm").compile("ptx", logs=log)
        log.getvalue()
        """,
    ),
    "program: precompiled headers": (
        SOURCES + "folder = tempfile.mkdtemp()\n",
        """
        Program(code, "c++", ProgramOptions(pch=True, pch_dir=folder)).pch_status
        p = Program(code, "c++", ProgramOptions(create_pch=folder + "/x.pch")); p.compile("ptx").code_type
        p.pch_status, type(p.pch_status)
        os.path.exists(folder + "/x.pch")
        p = Program(code, "c++", ProgramOptions(use_pch=folder + "/none.pch")); p.compile("ptx")
        p.pch_status
        p = Program(code, "c++"); p.compile("ptx").code_type, p.pch_status
        """,
    ),
    "program: ptx": (
        SOURCES + "p = Program(ptx, 'ptx')\n",
        """
        p.pch_status, p.is_closed
        p.compile("cubin").code_type
        p.compile("ltoir")
        Program(ptx, "ptx").compile("cubin", name_expressions=("x",)).symbol_mapping
        Program(ptx, "ptx", ProgramOptions(name="mine")).compile("cubin").name
        Program("nonsense", "ptx")
        Program("nonsense", "ptx").compile("cubin")
        Program(ptx, "ptx", ProgramOptions(debug=True, lineinfo=True, max_register_count=32, ftz=True, prec_div=False, prec_sqrt=False, fma=False)).compile("cubin").code[:4]
        p.close(); p.is_closed
        p.compile("cubin")
        Program(ptx, "ptx").link("cubin").code_type
        """,
    ),
    "program: nvvm": (
        SOURCES,
        """
        b".visible .entry simple" in Program(nvvm, "nvvm").compile("ptx").code
        Program(nvvm, "nvvm").compile("ltoir").code[:4]
        Program(nvvm, "nvvm").compile("cubin")
        Program(nvvm, "nvvm").compile("ptx", name_expressions=("x",)).symbol_mapping
        Program("nonsense", "nvvm")
        Program("nonsense", "nvvm").compile("ptx")
        Program(nvvm, "nvvm", ProgramOptions(name="mine")).compile("ptx").name
        Program(nvvm, "nvvm", ProgramOptions(std="c++17"))
        Program(nvvm, "nvvm", ProgramOptions(std="c++17")).compile("ptx")
        Program(nvvm, "nvvm", ProgramOptions(extra_sources=[("a", nvvm.replace("simple", "other"))])).compile("ptx").code.count(b".entry")
        Program(code, "c++", ProgramOptions(extra_sources=[("a", "b")]))
        Program(code, "c++", ProgramOptions(use_libdevice=True)).compile("ptx").code_type
        Program(nvvm, "nvvm", ProgramOptions(arch="sm_80", debug=True)).compile("ptx").code_type
        p = Program(nvvm, "nvvm"); p.close(); p.compile("ptx")
        Program(nvvm, "nvvm").compile("ptx").get_kernel("simple").num_arguments
        """,
    ),
}
