"""Loading code: invalid PTX, other architectures, logs, libraries, parameter information."""

import ctypes

import numpy as np
import pytest

from helpers.device import DeviceArray, Module, check, compile_cuda, driver, nvrtc, synchronize

pytestmark = pytest.mark.usefixtures("shared_context")
R = driver.CUresult
JIT = driver.CUjit_option

GOOD = b""".version 7.8
.target sm_80
.address_size 64
.visible .entry store(.param .u64 p, .param .u32 v)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [v];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
}
\0"""


def load_with_logs(code):
    info, error = bytearray(4096), bytearray(4096)
    options = [
        JIT.CU_JIT_INFO_LOG_BUFFER,
        JIT.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        JIT.CU_JIT_ERROR_LOG_BUFFER,
        JIT.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ]
    status, module = driver.cuModuleLoadDataEx(code, 4, options, [info, len(info), error, len(error)])
    return status, module, info.split(b"\0")[0].decode(), error.split(b"\0")[0].decode()


def test_handwritten_ptx_loads():
    module = Module(GOOD)
    out = DeviceArray(np.zeros(1, np.uint32))
    module.launch("store", 1, 1, out, np.uint32(77))
    synchronize()
    assert out.get()[0] == 77


@pytest.mark.parametrize(
    "old, new, token, line",
    [
        (b"ld.param.u32 %r1, [v];", b"ld.param.u32 %r1, [v]", "cvta", 10),
        (b"st.global.u32 [%rd2], %r1;", b"st.global.u32 [%rd2], %r9;", "%r9", 11),
        (b"    ret;", b"    bogus.u32 %r1, %r1;", "bogus", 12),
    ],
)
def test_invalid_ptx_is_refused(old, new, token, line, cpu_device):
    status, module, _, log = load_with_logs(GOOD.replace(old, new))
    assert status == R.CUDA_ERROR_INVALID_PTX and module is None
    if cpu_device:
        assert f"line {line}" in log and "column" in log and token in log, log
    else:
        assert "line" in log, log
    assert driver.cuModuleLoadData(GOOD.replace(old, new))[0] == R.CUDA_ERROR_INVALID_PTX


def test_ptx_newer_than_the_device_is_refused():
    status, *_ = driver.cuModuleLoadData(GOOD.replace(b"7.8", b"99.0"))
    assert status in (R.CUDA_ERROR_UNSUPPORTED_PTX_VERSION, R.CUDA_ERROR_INVALID_PTX)


def test_data_that_is_not_code_is_refused():
    status, *_ = driver.cuModuleLoadData(b"\x01\x02\x03\x04 neither PTX nor a cubin\0")
    assert status in (R.CUDA_ERROR_INVALID_IMAGE, R.CUDA_ERROR_INVALID_PTX)


@pytest.mark.cpu
def test_foreign_machine_code_is_explained():
    code, _ = compile_cuda('extern "C" __global__ void k() {}', kind="cubin")
    # Without the PTX that it carries.
    foreign = code.replace(b".cupyrite.ptx", b".another.ptx!")
    assert foreign != code
    status, _, info, log = load_with_logs(foreign)
    assert status == R.CUDA_ERROR_NO_BINARY_FOR_GPU
    assert "PTX" in log + info


@pytest.mark.parametrize("form", [bytes, bytearray, lambda c: np.frombuffer(c, np.uint8)])
def test_images_of_every_kind_load(form):
    code, _ = compile_cuda('extern "C" __global__ void k() {}', kind="cubin")
    module = check(driver.cuModuleLoadData(form(code)))
    check(driver.cuModuleGetFunction(module, b"k"))
    check(driver.cuModuleUnload(module))


def test_loading_from_files(tmp_path):
    path = tmp_path / "store.ptx"
    path.write_bytes(GOOD[:-1])
    module = check(driver.cuModuleLoad(str(path).encode()))
    check(driver.cuModuleGetFunction(module, b"store"))
    check(driver.cuModuleUnload(module))
    library = check(driver.cuLibraryLoadFromFile(str(path).encode(), None, None, 0, None, None, 0))
    check(driver.cuLibraryUnload(library))
    assert driver.cuModuleLoad(str(tmp_path / "none.ptx").encode())[0] == R.CUDA_ERROR_FILE_NOT_FOUND


def test_module_lists_its_functions():
    module = Module.from_source(
        'extern "C" __global__ void a(int x, double y, char z) {} extern "C" __global__ void b() {}'
    )
    assert check(driver.cuModuleGetFunctionCount(module.handle)) == 2
    names = {check(driver.cuFuncGetName(f)) for f in check(driver.cuModuleEnumerateFunctions(2, module.handle))}
    assert names == {b"a", b"b"}
    a = module.function("a")
    assert [check(driver.cuFuncGetParamInfo(a, i)) for i in range(3)] == [(0, 4), (8, 8), (16, 1)]
    assert driver.cuFuncGetParamInfo(a, 3)[0] == R.CUDA_ERROR_INVALID_VALUE
    assert int(check(driver.cuFuncGetModule(a))) == int(module.handle)
    assert driver.cuModuleGetFunction(module.handle, b"c")[0] == R.CUDA_ERROR_NOT_FOUND
    attribute = driver.CUfunction_attribute
    assert check(driver.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, a)) == 1024
    assert check(driver.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, a)) > 0


def test_function_attributes_report_static_memory(cpu_device):
    module = Module.from_source("""
    __constant__ float c[10];
    extern "C" __global__ void __launch_bounds__(256) k(int *p, int i)
    {
        __shared__ int s[100];
        int local[64];
        for (int n = 0; n < 64; n++) local[n] = p[n];
        s[threadIdx.x % 100] = local[i & 63];
        __syncthreads();
        p[0] = s[i % 100] + (int)c[i % 10];
    }""")
    k, attribute = module.function("k"), driver.CUfunction_attribute
    assert check(driver.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k)) == 400
    # A GPU's assembler may avoid local memory.
    assert check(driver.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, k)) >= (
        256 if cpu_device else 0
    )
    assert check(driver.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, k)) >= 40
    assert check(driver.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k)) == 256


def test_libraries():
    source = '__device__ int g = 3; extern "C" __global__ void k(int *out) { *out = g; }'
    code, lowered = compile_cuda(source, names=["&g"], kind="cubin")
    library = check(driver.cuLibraryLoadData(code, None, None, 0, None, None, 0))
    kernel = check(driver.cuLibraryGetKernel(library, b"k"))
    assert check(driver.cuKernelGetName(kernel)) == b"k"
    assert check(driver.cuLibraryGetKernelCount(library)) == 1
    assert [int(k) for k in check(driver.cuLibraryEnumerateKernels(1, library))] == [int(kernel)]
    address, size = check(driver.cuLibraryGetGlobal(library, lowered["&g"]))
    assert size == 4
    check(driver.cuMemsetD32(address, 9, 1))
    out = DeviceArray(np.zeros(1, np.int32))
    arguments = ((out.pointer,), (None,))
    check(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, arguments, 0))
    check(driver.cuLaunchKernel(check(driver.cuKernelGetFunction(kernel)), 1, 1, 1, 1, 1, 1, 0, 0, arguments, 0))
    synchronize()
    assert out.get()[0] == 9
    assert check(driver.cuKernelGetParamInfo(kernel, 0)) == (0, 8)
    check(driver.cuLibraryUnload(library))


def test_attributes_of_a_function_override_those_of_its_kernel():
    """cuKernelSetAttribute: "irrespective of whether the call to cuFuncSetAttribute() is made before or after"."""
    code, _ = compile_cuda('extern "C" __global__ void k() {}', kind="cubin")
    library = check(driver.cuLibraryLoadData(code, None, None, 0, None, None, 0))
    kernel = check(driver.cuLibraryGetKernel(library, b"k"))
    function, device = check(driver.cuKernelGetFunction(kernel)), check(driver.cuCtxGetDevice())
    shared = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    carveout = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT

    def values(name):
        of_kernel = check(driver.cuKernelGetAttribute(name, kernel, device))
        return of_kernel, check(driver.cuFuncGetAttribute(name, function))

    def launches(size):
        (status,) = driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, size, 0, 0, 0)
        return status == R.CUDA_SUCCESS

    before, _ = values(shared)
    check(driver.cuKernelSetAttribute(shared, 51200, kernel, device))
    assert values(shared) == (51200, 51200)
    assert launches(51200) and not launches(53248)
    check(driver.cuFuncSetAttribute(function, shared, 55296))
    assert values(shared) == (51200, 55296)
    check(driver.cuKernelSetAttribute(shared, 57344, kernel, device))
    assert values(shared) == (57344, 55296)
    assert launches(55296) and not launches(57344)
    # A default value that is set overrides the kernel's, too.
    check(driver.cuFuncSetAttribute(function, shared, before))
    assert values(shared) == (57344, before)
    assert launches(before) and not launches(51200)
    # The other attributes of the function are those of the kernel.
    check(driver.cuKernelSetAttribute(carveout, 30, kernel, device))
    assert values(carveout) == (30, 30)
    synchronize()
    check(driver.cuLibraryUnload(library))


def test_compile_errors_are_logged():
    program = check(nvrtc.nvrtcCreateProgram(b"__global__ void k() { nonsense; }", b"wrong.cu", 0, [], []))
    assert nvrtc.nvrtcCompileProgram(program, 0, [])[0] == nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION
    log = bytearray(check(nvrtc.nvrtcGetProgramLogSize(program)))
    check(nvrtc.nvrtcGetProgramLog(program, log))
    assert b"wrong.cu" in log and b"nonsense" in log
    check(nvrtc.nvrtcDestroyProgram(program))


def test_invalid_launches_are_refused():
    module = Module.from_source('extern "C" __global__ void k() {}')
    k = module.function("k")
    shapes = [
        (0, 1, 1, 1, 1, 1),
        (1, 1, 1, 0, 1, 1),
        (1, 1, 1, 1025, 1, 1),
        (1, 1, 1, 64, 64, 1),
        (1, 70_000, 1, 1, 1, 1),
        (1, 1, 1, 1, 1, 65),
    ]
    for shape in shapes:
        assert driver.cuLaunchKernel(k, *shape, 0, 0, 0, 0)[0] == R.CUDA_ERROR_INVALID_VALUE, shape
    assert driver.cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 10**6, 0, 0, 0)[0] == R.CUDA_ERROR_INVALID_VALUE
    check(driver.cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0))
    synchronize()


def test_launch_ex_and_extra():
    module = Module(GOOD)
    out = DeviceArray(np.zeros(1, np.uint32))
    config = driver.CUlaunchConfig()
    for name in ("gridDimX", "gridDimY", "gridDimZ", "blockDimX", "blockDimY", "blockDimZ"):
        setattr(config, name, 1)
    arguments = ((out.pointer, 5), (None, ctypes.c_uint32))
    check(driver.cuLaunchKernelEx(config, module.function("store"), arguments, 0))
    synchronize()
    assert out.get()[0] == 5
    # The packed form: CU_LAUNCH_PARAM_BUFFER_POINTER = 1, CU_LAUNCH_PARAM_BUFFER_SIZE = 2, CU_LAUNCH_PARAM_END = 0.
    packed = np.array((out.address, 6), np.dtype([("p", "u8"), ("v", "u4")]))
    size = ctypes.c_size_t(packed.nbytes)
    extra = (ctypes.c_void_p * 5)(1, packed.ctypes.data, 2, ctypes.addressof(size), 0)
    check(driver.cuLaunchKernel(module.function("store"), 1, 1, 1, 1, 1, 1, 0, 0, 0, ctypes.addressof(extra)))
    synchronize()
    assert out.get()[0] == 6


def test_occupancy():
    module = Module.from_source(
        'extern "C" __global__ void k(int *p) { __shared__ int s[1024]; s[threadIdx.x] = p[0]; p[1] = s[0]; }'
    )
    k = module.function("k")
    one = check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(k, 1024, 0))
    many = check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(k, 64, 0))
    assert 1 <= one <= 2 < many <= 32
    grid, block = check(driver.cuOccupancyMaxPotentialBlockSize(k, None, 0, 0))
    assert grid >= 1 and 32 <= block <= 1024
    assert check(driver.cuOccupancyAvailableDynamicSMemPerBlock(k, 1, 128)) > 0
