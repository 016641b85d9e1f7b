"""Device code for the tests of compilers and linkers: NVRTC output for two sources, and NVVM IR as text."""

import functools

CALLER = 'extern "C" __device__ int next(int);\nextern "C" __global__ void kernel(int *p) { *p = next(*p); }\n'
CALLEE = 'extern "C" __device__ int next(int x) { return x + 1; }\n'
ALONE = 'extern "C" __global__ void kernel(int *p) { *p = 7; }\n'


@functools.cache
def nvrtc_output(source, kind, *options):
    """NVRTC's output of a `kind` ("CUBIN", "PTX", "LTOIR") for a source."""
    from cuda.bindings import nvrtc

    success = nvrtc.nvrtcResult.NVRTC_SUCCESS
    status, program = nvrtc.nvrtcCreateProgram(source.encode(), b"test.cu", 0, None, None)
    assert status == success
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    assert status == success
    status, size = getattr(nvrtc, f"nvrtcGet{kind}Size")(program)
    assert status == success
    output = bytearray(size)
    (status,) = getattr(nvrtc, f"nvrtcGet{kind}")(program, output)
    assert status == success
    (status,) = nvrtc.nvrtcDestroyProgram(program)
    assert status == success
    return bytes(output)


def nvvm_ir(body, version):
    """NVVM IR with a kernel `kernel(i32 *p)`; `version` is the result of `nvvm.ir_version()`."""
    major, minor, debug_major, debug_minor = version
    return f"""\
target triple = "nvptx64-nvidia-cuda"
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
{body}
!nvvm.annotations = !{{!0}}
!0 = !{{void (i32*)* @kernel, !"kernel", i32 1}}
!nvvmir.version = !{{!1}}
!1 = !{{i32 {major}, i32 {minor}, i32 {debug_major}, i32 {debug_minor}}}
""".encode()


STORE_SEVEN = """\
define void @kernel(i32* %p) {
  store i32 7, i32* %p
  ret void
}
"""

# Calls the sine of libdevice, which is linked in as bitcode.
SINE = """\
declare double @__nv_sin(double)
define void @kernel(i32* %p) {
  %i = load i32, i32* %p
  %x = sitofp i32 %i to double
  %y = call double @__nv_sin(double %x)
  %z = fmul double %y, 1.000000e+03
  %j = fptosi double %z to i32
  store i32 %j, i32* %p
  ret void
}
"""


def or_skip(function, *arguments):
    """The result of the function; skips the test where the installed library is too old to have it."""
    import pytest
    from cuda.bindings._internal.utils import FunctionNotFoundError

    try:
        return function(*arguments)
    except FunctionNotFoundError as error:
        pytest.skip(str(error))


def library_of(code):
    """The library of loaded code. `ObjectCode.handle` would leave unloading to the program."""
    from cuda.bindings import driver

    return driver.CUlibrary(int(repr(code).partition("handle=")[2].split()[0], 16))
