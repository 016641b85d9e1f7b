"""Headers that a source includes: the installed CUDA headers are found without an option, and errors say what to do."""

import os
import subprocess
import sys

import pytest
from cuda.core import Program, ProgramOptions
from cuda.core._utils.cuda_utils import NVRTCError
from cuda.pathfinder import find_nvidia_header_directory

NAMES = ["cooperative_groups.h", "cuda_fp16.h", "mma.h", "cuda/std/atomic", "cuda/std/cstdint"]
OPTIONS = {"arch": "sm_80"}


def source(header):
    return f'#include <{header}>\nextern "C" __global__ void k() {{}}'


def needs(*sets):
    missing = [name for name in sets if find_nvidia_header_directory(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs the headers of {missing}")


def compiled(text, **options):
    return Program(text, "c++", ProgramOptions(**OPTIONS, **options)).compile("ptx")


@needs("cudart", "cccl")
@pytest.mark.parametrize("name", NAMES)
def test_installed_headers_are_found_without_an_option(name):
    assert b"k()" in compiled(source(name)).code or b".entry k" in compiled(source(name)).code


@needs("cudart", "cccl")
def test_name_expressions_survive_the_second_compilation():
    text = "#include <cuda_fp16.h>\ntemplate <class T> __global__ void fill(T *p) { *p = T(1); }"
    program = Program(text, "c++", ProgramOptions(**OPTIONS))
    made = program.compile("ptx", name_expressions=["fill<__half>"])
    assert b"_Z4fillI6__halfEvPT_" in made.code
    assert program.compile("ptx", name_expressions=["fill<float>"]).code != made.code


@needs("cudart")
def test_headers_of_the_program_come_first(tmp_path):
    (tmp_path / "cuda_fp16.h").write_text("#define OWN 1\n")
    text = '#include <cuda_fp16.h>\nextern "C" __global__ void k() { static_assert(OWN == 1); }'
    assert b".entry k" in compiled(text, include_path=str(tmp_path)).code
    # A header that the folder lacks comes from the installed ones, and the folder keeps its place.
    assert b".entry k" in compiled("#include <cuda_bf16.h>\n" + text, include_path=str(tmp_path)).code


@needs("cudart")
def test_a_source_that_compiles_does_not_see_them():
    text = '#if __has_include(<cuda_fp16.h>)\n#error seen\n#endif\nextern "C" __global__ void k() {}'
    assert b".entry k" in compiled(text).code


@pytest.mark.parametrize(
    "name, advice",
    [
        ("cstdio", "`printf` is built in; remove the #include"),
        ("assert.h", "`assert` is built in; remove the #include"),
        ("vector", "`vector` is a header of the host's library, which kernels cannot use: remove the #include"),
        ("stdint.h", "write #include <cuda/std/cstdint>, whose names are in `cuda::std`"),
        ("type_traits", "write #include <cuda/std/type_traits>"),
        ("nowhere/mine.h", "`nowhere/mine.h` is in no folder of include_path"),
    ],
)
def test_an_error_about_another_header_says_what_to_do(name, advice):
    with pytest.raises(NVRTCError) as refused:
        compiled(source(name))
    text = str(refused.value)
    assert f'open source file "{name}"' in text and text.count(advice) == 1, text
    with pytest.raises(NVRTCError) as refused:
        compiled('extern "C" __global__ void k() {}', pre_include=name)
    assert advice in str(refused.value)


CHILD = """
import os, pathlib, sys
from cuda.core import Program, ProgramOptions
from cuda.core.utils import make_program_cache_key
text = '#include <curand_kernel.h>\\nextern "C" __global__ void k(int *p) { *p = VALUE; }'
options = ProgramOptions(arch="sm_80")
def key(**more):
    return make_program_cache_key(code=text, code_type="c++", options=options, target_type="ptx", **more)
try:
    Program(text, "c++", options).compile("ptx")
except Exception as error:
    assert "pip install nvidia-curand" in str(error), error
    assert "include_path" not in str(error)
else:
    sys.exit("found")
include = pathlib.Path(sys.argv[1]) / "include"
include.mkdir()
without, given = key(), key(extra_digest=b"1" * 32)
(include / "cuda.h").write_text("#define CUDA_VERSION %d\\n" % int(sys.argv[2]))
(include / "curand.h").write_text("")
(include / "curand_kernel.h").write_text("#define VALUE 1\\n")
first = key()
assert Program(text, "c++", options).compile("ptx").code
(include / "curand_kernel.h").write_text("#define VALUE 2\\n")
second = key()
assert len({without, first, second}) == 3
(include / "curand_kernel.h").write_text("#define VALUE 2\\n#define NAME <curand.h>\\n#include NAME\\n")
assert key() not in (without, first, second)
assert key(extra_digest=b"1" * 32) != given
"""


@pytest.mark.skipif(find_nvidia_header_directory("curand") is not None, reason="needs an environment without cuRAND")
def test_a_cache_key_depends_on_the_installed_headers(tmp_path):
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    environment = {**os.environ, "CUDA_PATH": str(tmp_path)}
    words = [sys.executable, "-c", CHILD, str(tmp_path), str(1000 * major + 10 * minor)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_cache_key_of_a_source_without_includes_does_not_depend_on_them(tmp_path):
    text = 'extern "C" __global__ void k() {}'
    key = "from cuda.core import ProgramOptions; from cuda.core.utils import make_program_cache_key; " + (
        f"print(make_program_cache_key(code={text!r}, code_type='c++', options=ProgramOptions(arch='sm_80'), "
        "target_type='ptx').hex())"
    )
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "curand.h").write_text("")
    found = {
        subprocess.run(
            [sys.executable, "-c", key], env={**os.environ, **more}, capture_output=True, text=True, check=True
        ).stdout
        for more in ({}, {"CUDA_PATH": str(tmp_path)})
    }
    assert len(found) == 1
