"""cuda.core: programs from CUDA C++, PTX and NVVM IR."""

import sys

from cuda.core import Device, Program, ProgramOptions

CUDA = """
template <typename T> __global__ void add(T *sum, const T *values, size_t count)
{
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        sum[i] += values[i];
}
"""
PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry idle(.param .u64 unused) { ret; }
"""
NVVM = """
target triple = "nvptx64-nvidia-cuda"
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64\
-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"

define void @idle() {
  ret void
}

!nvvm.annotations = !{!0}
!nvvmir.version = !{!1}
!0 = !{void ()* @idle, !"kernel", i32 1}
!1 = !{i32 2, i32 0, i32 3, i32 1}
"""

device = Device()
device.set_current()
options = ProgramOptions(
    name="sums",
    arch=f"sm_{device.arch}",
    std="c++17",
    relocatable_device_code=False,
    debug=False,
    lineinfo=False,
    ftz=False,
    prec_sqrt=True,
    prec_div=True,
    fma=True,
    use_fast_math=False,
    max_register_count=None,
    define_macro=["TRACE", ("LEVEL", "3")],
    include_path=["/usr/include"],
)
program = Program(CUDA, code_type="c++", options=options)
code = program.compile(target_type="cubin", name_expressions=("add<int>", "add<double>"), logs=sys.stderr)
for name in ("add<int>", "add<double>"):
    assert code.get_kernel(name) is not None
print("c++:", program.backend, code.code_type)
print("c++:", program.compile(target_type="ptx", name_expressions=("add<int>",)).code_type)
program.close()

code = Program(PTX, code_type="ptx").link("cubin")
assert code.get_kernel("idle") is not None
print("ptx:", code.code_type)

code = Program(NVVM, code_type="nvvm", options=ProgramOptions(use_libdevice=True)).compile("ptx")
assert b"idle" in code.code
print("nvvm:", code.code_type)
