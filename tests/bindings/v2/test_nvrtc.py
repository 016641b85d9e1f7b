"""`cuda.bindings._v2.nvrtc`: compilation, outputs as bytes, and the compiler's log in the exception."""

import pytest
from cuda.bindings._v2 import nvrtc

KERNEL = b"template <typename T> __global__ void k(T *p) { *p = T(VALUE); }"


@pytest.fixture
def create():
    made = []

    def make(*arguments):
        made.append(nvrtc.create_program(*arguments))
        return made[-1]

    yield make
    for program in made:
        nvrtc.destroy_program(program)


def test_outputs_are_bytes(create):
    program = create(KERNEL, b"k.cu")
    nvrtc.add_name_expression(program, "k<int>")
    nvrtc.compile_program(program, [b"-arch=compute_80", "-DVALUE=3"])
    lowered = nvrtc.get_lowered_name(program, "k<int>")
    ptx = nvrtc.get_ptx(program)
    assert type(ptx) is bytes and lowered in ptx and len(ptx) == nvrtc.get_ptx_size(program)
    assert nvrtc.get_ltoir(program) == b""
    assert type(nvrtc.get_program_log(program)) is bytes


def test_headers_are_given_by_lists(create):
    program = create(b'#include "v.h"\n__global__ void k(int *p) { *p = V; }', None, [b"#define V 5"], [b"v.h"])
    nvrtc.compile_program(program, None)
    with pytest.raises(ValueError, match="include_names"):
        nvrtc.create_program(b"", b"", [b"x"], None)
    with pytest.raises(TypeError, match="headers"):
        nvrtc.create_program(b"", b"", 5, 5)


def test_failed_compilation_raises_with_the_log(create):
    program = create(b"int x = y;", b"bad.cu")
    with pytest.raises(nvrtc.CompilationError) as caught:
        nvrtc.compile_program(program)
    error = caught.value
    assert error.status == 6 and error.name == "ERROR_COMPILATION" and error.function == "compile_program"
    assert str(error) == "NVRTC_ERROR_COMPILATION (6)"
    assert 'identifier "y" is undefined' in error.log
    with pytest.raises(nvrtc.InvalidOptionError):
        nvrtc.compile_program(program, [b"--bogus"])
    with pytest.raises(nvrtc.InvalidProgramError):
        nvrtc.get_ptx(0)


def test_queries():
    assert nvrtc.version() >= (12, 0)
    assert (
        80 in list(nvrtc.get_supported_archs()) and len(nvrtc.get_supported_archs()) == nvrtc.get_num_supported_archs()
    )
    assert memoryview(nvrtc.get_supported_archs()).format == "i"
    assert nvrtc.get_error_string(6) == "NVRTC_ERROR_COMPILATION"
    for arguments in (("text", b"k.cu"), (b"", "name"), (5.0, None)):
        with pytest.raises(ValueError, match="must be None, an address or bytes"):
            nvrtc.create_program(*arguments)
    with pytest.raises(ValueError, match="there is no memory"):
        nvrtc.create_program(99, b"k.cu")
