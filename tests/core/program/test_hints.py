"""Messages for what users of other packages try first."""

import pytest
from cuda.core import Device, LinkerOptions, Program, ProgramOptions

CODE = 'extern "C" __global__ void store(int *x) { *x = 1; }'


@pytest.fixture(scope="module")
def kernel():
    return Program(CODE, "c++", ProgramOptions(arch=f"sm_{Device().arch}")).compile("cubin").get_kernel("store")


def test_misspelt_options_name_the_nearest():
    for make in ProgramOptions, lambda **options: Program(CODE, "c++", options):
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'line_info'. Did you mean 'lineinfo'\?"):
            make(line_info=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'line_info'. Did you mean 'lineinfo'"):
        LinkerOptions(line_info=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'xyz'$"):
        ProgramOptions(xyz=1)
    assert ProgramOptions(lineinfo=True).lineinfo is True


def test_numbas_launch_syntax_names_launch(kernel):
    expected = r"launch\(stream, LaunchConfig\(grid={}, block={}\), kernel, \.\.\.\)"
    with pytest.raises(TypeError, match="not subscriptable.*" + expected.format(1, 32)):
        kernel[1, 32](None)
    with pytest.raises(TypeError, match=expected.format(r"\(2, 2\)", 32)):
        kernel[(2, 2), 32, None, 64]
    with pytest.raises(TypeError, match=expected.format(r"\.\.\.", r"\.\.\.")):
        kernel[8]
    with pytest.raises(TypeError, match="not subscriptable"):
        list(kernel)


@pytest.mark.parametrize("path", ["kernel.cu", "/data/my code/kernel.cu", "../include/sum.cuh", "a.cpp"])
def test_a_path_in_place_of_a_source_is_refused(path):
    with pytest.raises(ValueError, match=r"argument 'code' is '.*', a path; .* pathlib\.Path\('.*'\)\.read_text\(\)"):
        Program(path, "c++")


def test_a_path_in_place_of_ptx_is_refused():
    with pytest.raises(ValueError, match=r"'kernel\.ptx', a path"):
        Program("kernel.ptx", "ptx")


@pytest.mark.parametrize(
    "source", ["", "// kernel.cu", "int x; // kernel.cu", '#include "kernel.cu"', "\n/* kernel.cu */"]
)
def test_sources_that_mention_a_file_are_sources(source):
    program = Program(source, "c++")
    assert program.backend == "NVRTC"
    program.close()


def test_get_kernel_of_a_program_says_to_compile():
    program = Program(CODE, "c++")
    with pytest.raises(AttributeError, match=r'compile it first, as in program\.compile\("cubin"\)\.get_kernel'):
        program.get_kernel("store")
    assert not hasattr(program, "get_kernel")
    with pytest.raises(
        AttributeError, match="'cuda.core._program.Program' object has no attribute 'get_kernels'"
    ) as raised:
        program.get_kernels("store")
    assert raised.value.name == "get_kernels" and raised.value.obj is program
    program.close()
