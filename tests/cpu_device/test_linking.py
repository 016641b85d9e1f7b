"""Linked code runs: objects and LTO IR from NVRTC through nvJitLink, PTX through the driver's linker.

On the CPU device a cubin carries the PTX that it was compiled from. Unmarked tests run on both devices.
"""

import ctypes

import numpy as np
import pytest
from cuda import pathfinder
from cuda.bindings import driver, nvfatbin, nvjitlink, nvrtc, runtime
from cuda.bindings.nvjitlink import InputType

from helpers.device import check, compute_capability
from helpers.programs import output

HELPER = """
__device__ int counter = 5;
static __device__ int own[2] = {1, 2};
extern "C" __device__ float helper(float x) { return x * x + own[0]; }
"""
MAIN = """
extern "C" __device__ float helper(float x);
extern __device__ int counter;
static __device__ int own = 40;
extern "C" __global__ void run(float *data, unsigned long long n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = helper(data[i]) + counter + own;
}
"""


def expected(values):
    return values * values + 1 + 5 + 40


@pytest.fixture(scope="module")
def arch(shared_context):
    major, minor = compute_capability()
    return f"{major}{minor}"


def compile_to(source, what, arch, *options):
    """NVRTC's output of the kind `what`: CUBIN, PTX or LTOIR."""
    program = check(nvrtc.nvrtcCreateProgram(source.encode(), b"test.cu", 0, [], []))
    target = "compute" if what == "PTX" else "sm"
    options = [f"--gpu-architecture={target}_{arch}".encode(), *(o.encode() for o in options)]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(status):
        log = bytearray(check(nvrtc.nvrtcGetProgramLogSize(program)))
        check(nvrtc.nvrtcGetProgramLog(program, log))
        pytest.fail(log.decode())
    out = bytearray(check(getattr(nvrtc, f"nvrtcGet{what}Size")(program)))
    check(getattr(nvrtc, f"nvrtcGet{what}")(program, out))
    check(nvrtc.nvrtcDestroyProgram(program))
    return bytes(out)


def jit_link(inputs, *options, what="cubin"):
    """Links `(kind, data, name)` through nvJitLink."""
    handle = nvjitlink.create(len(options), list(options))
    try:
        for kind, data, name in inputs:
            if isinstance(data, str):
                nvjitlink.add_file(handle, kind, data)
            else:
                nvjitlink.add_data(handle, kind, data, len(data), name)
        nvjitlink.complete(handle)
        out = bytearray(getattr(nvjitlink, f"get_linked_{what}_size")(handle))
        getattr(nvjitlink, f"get_linked_{what}")(handle, out)
        return bytes(out)
    finally:
        nvjitlink.destroy(handle)


def run(code, kernel=b"run"):
    """Loads code as a module and as a library, and runs the kernel of `MAIN` from each."""
    library = check(driver.cuLibraryLoadData(code, [], [], 0, [], [], 0))
    module = check(driver.cuModuleLoadData(code))
    functions = [
        check(driver.cuModuleGetFunction(module, kernel)),
        check(driver.cuKernelGetFunction(check(driver.cuLibraryGetKernel(library, kernel)))),
    ]
    values = np.arange(100, dtype=np.float32)
    memory = check(driver.cuMemAlloc(values.nbytes))
    for function in functions:
        check(driver.cuMemcpyHtoD(memory, values, values.nbytes))
        arguments = ((int(memory), 100), (ctypes.c_void_p, ctypes.c_ulonglong))
        check(driver.cuLaunchKernel(function, 4, 1, 1, 32, 1, 1, 0, 0, arguments, 0))
        out = np.zeros_like(values)
        check(driver.cuMemcpyDtoH(out, memory, out.nbytes))
        np.testing.assert_array_equal(out, expected(values))
    check(driver.cuMemFree(memory))
    check(driver.cuModuleUnload(module))
    check(driver.cuLibraryUnload(library))


# -------------------------------------------------------------------------------------------------------------
# nvJitLink


@pytest.mark.parametrize("kinds", [("CUBIN", "CUBIN"), ("PTX", "CUBIN"), ("CUBIN", "PTX"), ("PTX", "PTX")])
@pytest.mark.parametrize("first", [0, 1])
def test_relocatable_objects_link(arch, kinds, first):
    inputs = [
        (getattr(InputType, kind), compile_to(source, kind, arch, "-rdc=true"), name)
        for kind, source, name in zip(kinds, (HELPER, MAIN), ("helper", "main"))
    ]
    if first:
        inputs.reverse()
    run(jit_link(inputs, f"-arch=sm_{arch}"))


def test_linker_detects_kinds_and_reads_files(arch, tmp_path):
    helper = compile_to(HELPER, "CUBIN", arch, "-rdc=true")
    (tmp_path / "main.cubin").write_bytes(compile_to(MAIN, "CUBIN", arch, "-rdc=true"))
    linked = jit_link(
        [(InputType.ANY, helper, "helper"), (InputType.CUBIN, str(tmp_path / "main.cubin"), None)], f"-arch=sm_{arch}"
    )
    run(linked)


@pytest.mark.parametrize("first", [0, 1])
def test_lto_ir_links(arch, first):
    inputs = [
        (InputType.LTOIR, compile_to(source, "LTOIR", arch, "-rdc=true", "-dlto"), name)
        for source, name in ((HELPER, "helper"), (MAIN, "main"))
    ]
    if first:
        inputs.reverse()
    run(jit_link(inputs, f"-arch=sm_{arch}", "-lto"))
    run(jit_link(inputs, f"-arch=sm_{arch}", "-lto", "-ptx", what="ptx") + b"\0")


def test_lto_ir_and_machine_code_link_together(arch):
    inputs = [
        (InputType.LTOIR, compile_to(MAIN, "LTOIR", arch, "-rdc=true", "-dlto"), "main"),
        (InputType.CUBIN, compile_to(HELPER, "CUBIN", arch, "-rdc=true"), "helper"),
    ]
    run(jit_link(inputs, f"-arch=sm_{arch}", "-lto"))


@pytest.mark.parametrize("kind", ["PTX", "CUBIN"])
def test_functions_in_lto_ir_serve_other_inputs(arch, kind):
    """The only callers of the functions are not in LTO IR; one of these calls a third function in LTO IR."""
    helper = """
    extern "C" __device__ float third(float x);
    __device__ int counter = 5;
    extern "C" __device__ float helper(float x) { return third(x) + 1; }
    """
    third = 'extern "C" __device__ float third(float x) { return x * x; }'
    inputs = [
        (getattr(InputType, kind), compile_to(MAIN, kind, arch, "-rdc=true"), "main"),
        (InputType.LTOIR, compile_to(helper, "LTOIR", arch, "-rdc=true", "-dlto"), "helper"),
        (InputType.LTOIR, compile_to(third, "LTOIR", arch, "-rdc=true", "-dlto"), "third"),
    ]
    code = jit_link(inputs, f"-arch=sm_{arch}", "-lto")
    run(code)
    library = check(driver.cuLibraryLoadData(code, [], [], 0, [], [], 0))
    assert check(driver.cuLibraryGetKernelCount(library)) == 1
    status, *_ = driver.cuLibraryGetGlobal(library, b"__cupyrite_keep")
    assert status == driver.CUresult.CUDA_ERROR_NOT_FOUND
    check(driver.cuLibraryUnload(library))


def test_undefined_functions_that_nothing_calls_do_not_matter(arch):
    """Their names cannot be declared in CUDA C++."""
    main = compile_to(MAIN, "PTX", arch, "-rdc=true").replace(
        b".address_size 64", b".address_size 64\n.extern .func odd$name;\n.extern .func cudaGetDevice;", 1
    )
    whole = HELPER + 'extern "C" __global__ void other() {}'
    helper = compile_to(whole, "PTX", arch, "-rdc=true")
    lto = compile_to('extern "C" __global__ void third() {}', "LTOIR", arch, "-rdc=true", "-dlto")
    inputs = [(InputType.PTX, main, "main"), (InputType.PTX, helper, "helper"), (InputType.LTOIR, lto, "third")]
    run(jit_link(inputs, f"-arch=sm_{arch}", "-lto"))


MANY = """
extern "C" __global__ void many(float *x)
{
    float a[60];
    for (int i = 0; i < 60; i++) a[i] = x[i];
    __syncthreads();
    for (int i = 0; i < 60; i++) x[i] = a[59 - i] * a[(i * 7) % 60];
}
"""


def registers(module, name=b"many"):
    function = check(driver.cuModuleGetFunction(module, name))
    used = check(driver.cuFuncGetAttribute(driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, function))
    check(driver.cuModuleUnload(module))
    return used


def test_registers_have_a_limit(arch):
    many = compile_to(MANY, "PTX", arch)
    assert registers(check(driver.cuModuleLoadData(many))) > 40
    limit = [driver.CUjit_option.CU_JIT_MAX_REGISTERS], [32]
    assert registers(check(driver.cuModuleLoadDataEx(many, 1, *limit))) <= 32
    linked = jit_link([(InputType.PTX, many, "many")], f"-arch=sm_{arch}", "-maxrregcount=32")
    assert registers(check(driver.cuModuleLoadData(linked))) <= 32
    lto = [(InputType.LTOIR, compile_to(MANY, "LTOIR", arch, "-rdc=true", "-dlto"), "many")]
    linked = jit_link(lto, f"-arch=sm_{arch}", "-lto", "-maxrregcount=32")
    assert registers(check(driver.cuModuleLoadData(linked))) <= 32
    state = check(driver.cuLinkCreate(1, *limit))
    check(driver.cuLinkAddData(state, KIND.CU_JIT_INPUT_PTX, many, len(many), b"many", 0, [], []))
    address, size = check(driver.cuLinkComplete(state))
    linked = ctypes.string_at(address, size)
    check(driver.cuLinkDestroy(state))
    assert registers(check(driver.cuModuleLoadData(linked))) <= 32


@pytest.mark.parametrize("bounds, most", [("__launch_bounds__(1024)", 64), ("__launch_bounds__(512, 4)", 32)])
def test_launch_bounds_limit_registers(arch, cpu_device, bounds, most):
    many = compile_to(MANY.replace("void many", f"void {bounds} many"), "PTX", arch)
    assert registers(check(driver.cuModuleLoadData(many))) <= most
    if cpu_device:
        # They take precedence over the limit of a compilation (CUDA Programming Guide, "Launch Bounds").
        limit = [driver.CUjit_option.CU_JIT_MAX_REGISTERS], [24]
        assert 24 < registers(check(driver.cuModuleLoadDataEx(many, 1, *limit))) <= most


def test_linking_one_ptx_gives_a_cubin(arch):
    """Compiles a PTX program to machine code."""
    whole = (HELPER + MAIN).replace('extern "C" __device__ float helper(float x);', "")
    whole = (
        whole.replace("extern __device__ int counter;", "")
        .replace("own = 40", "own2 = 40")
        .replace("+ own;", "+ own2;")
    )
    run(jit_link([(InputType.PTX, compile_to(whole, "PTX", arch), "whole")], f"-arch=sm_{arch}"))


@pytest.mark.parametrize("compress", ["true", "false"])
def test_fat_binaries_link(arch, compress):
    def fatbin(add, code, *more):
        handle = nvfatbin.create([f"-compress={compress}"], 1)
        getattr(nvfatbin, f"add_{add}")(handle, code, len(code), arch, "member", *more)
        out = bytearray(nvfatbin.size(handle))
        nvfatbin.get(handle, out)
        nvfatbin.destroy(handle)
        return bytes(out)

    helper = fatbin("cubin", compile_to(HELPER, "CUBIN", arch, "-rdc=true"))
    main = fatbin("ptx", compile_to(MAIN, "PTX", arch, "-rdc=true"), "")
    run(jit_link([(InputType.FATBIN, helper, "helper"), (InputType.FATBIN, main, "main")], f"-arch=sm_{arch}"))
    lto = [
        (InputType.FATBIN, fatbin("ltoir", compile_to(source, "LTOIR", arch, "-rdc=true", "-dlto"), ""), name)
        for source, name in ((HELPER, "helper"), (MAIN, "main"))
    ]
    run(jit_link(lto, f"-arch=sm_{arch}", "-lto"))
    # A linked cubin can be wrapped again.
    linked = jit_link([(InputType.FATBIN, helper, "h"), (InputType.FATBIN, main, "m")], f"-arch=sm_{arch}")
    run(fatbin("cubin", linked))


def test_concurrent_links_are_independent(arch):
    made = []
    for value in range(3):
        source = f'extern "C" __global__ void run(int *out) {{ *out = {value}; }}'
        handle = nvjitlink.create(1, [f"-arch=sm_{arch}"])
        made.append((value, handle, compile_to(source, "CUBIN", arch, "-rdc=true")))
    for _, handle, code in made:
        nvjitlink.add_data(handle, InputType.CUBIN, code, len(code), "same name")
    for _, handle, _ in reversed(made):
        nvjitlink.complete(handle)
    memory = check(driver.cuMemAlloc(4))
    for value, handle, _ in made:
        cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, cubin)
        again = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, again)
        assert cubin == again
        nvjitlink.destroy(handle)
        module = check(driver.cuModuleLoadData(bytes(cubin)))
        function = check(driver.cuModuleGetFunction(module, b"run"))
        check(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, ((int(memory),), (ctypes.c_void_p,)), 0))
        out = np.zeros(1, np.int32)
        check(driver.cuMemcpyDtoH(out, memory, 4))
        assert out[0] == value
        check(driver.cuModuleUnload(module))
    check(driver.cuMemFree(memory))


def test_cubin_file_loads_in_another_process(arch, tmp_path):
    """The other process compiles nothing."""
    inputs = [
        (InputType.CUBIN, compile_to(source, "CUBIN", arch, "-rdc=true"), name)
        for source, name in ((HELPER, "helper"), (MAIN, "main"))
    ]
    path = tmp_path / "linked.cubin"
    path.write_bytes(jit_link(inputs, f"-arch=sm_{arch}"))
    program = (
        "import sys; from cuda.bindings import driver as d\n"
        "d.cuInit(0); e, c = d.cuDevicePrimaryCtxRetain(0); d.cuCtxSetCurrent(c)\n"
        "e, m = d.cuModuleLoad(sys.argv[1].encode()); assert e == 0, e\n"
        "e, f = d.cuModuleGetFunction(m, b'run'); assert e == 0, e\n"
    )
    output(program, path, options=("-W", "ignore"))


GRID = """
extern "C" __global__ void turns(volatile unsigned *last, unsigned *out)
{
    unsigned long long grid = cudaCGGetIntrinsicHandle(cudaCGScopeGrid);
    unsigned blocks = gridDim.x * gridDim.y * gridDim.z, size = blockDim.x * blockDim.y * blockDim.z;
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x, threads = blocks * size;
    unsigned rank = block * size + (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    // In turn r each thread reads what thread (rank + r) wrote in the turn before.
    unsigned sum = 0;
    for (unsigned r = 0; r < 5; r++) {
        last[rank] = rank * r;
        if (cudaCGSynchronize(grid, 0)) return;
        sum += last[(rank + r) % threads];
        if (cudaCGSynchronize(grid, 0)) return;
    }
    out[rank] = sum;
}
extern "C" __global__ void handles(unsigned long long *out)
{
    out[0] = cudaCGGetIntrinsicHandle(cudaCGScopeInvalid);
    out[1] = cudaCGGetIntrinsicHandle(cudaCGScopeGrid) != 0;
    out[2] = cudaCGGetIntrinsicHandle((cudaCGScope)2);
}
extern "C" __global__ void places(unsigned *out, int cooperative)
{
    unsigned long long grid = cudaCGGetIntrinsicHandle(cudaCGScopeGrid);
    unsigned threads = 0, grids = 7, rank = 0, which = 7;
    unsigned status = cudaCGGetSize(&threads, &grids, grid);
    status = status * 1000 + cudaCGGetRank(&rank, &which, grid);
    if (!cooperative) status = status * 1000 + cudaCGSynchronize(grid, 0);
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned values[5] = {status, threads, grids, rank, which};
    for (int k = 0; k < 5; k++) out[5 * at + k] = values[k];
}
"""


def cooperative(function, grid, block, *arguments):
    types = (ctypes.c_void_p,) * len(arguments)
    check(driver.cuLaunchCooperativeKernel(function, *grid, *block, 0, 0, (tuple(map(int, arguments)), types)))
    check(driver.cuCtxSynchronize())


@pytest.mark.parametrize("how", ["library", pytest.param("alone", marks=pytest.mark.cpu)])
@pytest.mark.parametrize("kind", ["PTX", "CUBIN", "LTOIR"])
def test_grids_synchronize_through_the_device_runtime(arch, kind, how):
    """Linked with libcudadevrt. The CPU device has these functions also without it."""
    code = compile_to(GRID, kind, arch, "-rdc=true", *(["-dlto"] if kind == "LTOIR" else []))
    if how == "library" or kind == "LTOIR":
        inputs = [(getattr(InputType, kind), code, "grid")]
        inputs.append((InputType.LIBRARY, pathfinder.find_static_lib("cudadevrt"), None))
        code = jit_link(inputs, f"-arch=sm_{arch}", *(["-lto"] if kind == "LTOIR" else []))
    module = check(driver.cuModuleLoadData(code))
    grid, block = (2, 3, 2), (8, 4, 3)
    threads = 12 * 96
    last, out = check(driver.cuMemAlloc(4 * threads)), check(driver.cuMemAlloc(4 * threads))
    check(driver.cuMemsetD8(out, 0xFF, 4 * threads))
    cooperative(check(driver.cuModuleGetFunction(module, b"turns")), grid, block, last, out)
    have = np.zeros(threads, np.uint32)
    check(driver.cuMemcpyDtoH(have, out, have.nbytes))
    rank = np.arange(threads, dtype=np.uint32)
    np.testing.assert_array_equal(have, sum((rank + r) % threads * r for r in range(5)))
    for memory in (last, out):
        check(driver.cuMemFree(memory))
    check(driver.cuModuleUnload(module))


@pytest.mark.cpu
def test_handles_of_grids(arch):
    module = check(driver.cuModuleLoadData(compile_to(GRID, "PTX", arch, "-rdc=true")))
    out = check(driver.cuMemAlloc(5 * 4 * 64))

    def run(name, cooperates, shape, words, *arguments):
        function = check(driver.cuModuleGetFunction(module, name))
        types = (ctypes.c_void_p, *(ctypes.c_int for _ in arguments))
        launch = driver.cuLaunchCooperativeKernel if cooperates else driver.cuLaunchKernel
        call = (function, *shape, 1, 1, 0, 0, ((int(out), *arguments), types))
        check(launch(*call) if cooperates else launch(*call, 0))
        found = np.zeros(*words)
        check(driver.cuMemcpyDtoH(found, out, found.nbytes))
        return found.tolist()

    # Of the invalid scope, the grid and several grids.
    assert run(b"handles", True, (1, 1, 1, 1), (3, np.uint64)) == [0, 1, 0]
    assert run(b"handles", False, (1, 1, 1, 1), (3, np.uint64)) == [0, 0, 0]
    found = np.reshape(run(b"places", True, (2, 1, 1, 32), (5 * 64, np.uint32), 1), (64, 5))
    assert found.tolist() == [[0, 64, 1, n, 0] for n in range(64)]
    invalid = int(runtime.cudaError_t.cudaErrorInvalidValue)
    found = np.reshape(run(b"places", False, (2, 1, 1, 32), (5 * 64, np.uint32), 0), (64, 5))
    assert found.tolist() == [[invalid * 1_001_001, 0, 7, 0, 7]] * 64
    check(driver.cuMemFree(out))
    check(driver.cuModuleUnload(module))


def load_error(code):
    """(status, error log) of a load that must fail."""
    log = bytearray(4096)
    options = driver.CUjit_option
    status, *_ = driver.cuModuleLoadDataEx(
        code, 2, [options.CU_JIT_ERROR_LOG_BUFFER, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES], [log, len(log)]
    )
    return status, log.rstrip(b"\0").decode()


@pytest.mark.cpu
def test_cubin_without_ptx_explains_why_it_cannot_run(arch):
    """Machine code linked by other compilers."""
    own = compile_to(MAIN, "CUBIN", arch, "-rdc=true")
    # Makes the section with the PTX unrecognizable: like a cubin of another compiler.
    foreign = compile_to(HELPER, "CUBIN", arch, "-rdc=true").replace(b".cupyrite.ptx", b".another.ptx!")
    status, log = load_error(foreign)
    assert status == driver.CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU
    assert "machine code" in log
    linked = jit_link([(InputType.CUBIN, own, "own"), (InputType.CUBIN, foreign, "foreign")], f"-arch=sm_{arch}")
    status, log = load_error(linked)
    assert status == driver.CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU
    assert "'foreign'" in log


# -------------------------------------------------------------------------------------------------------------
# The driver's linker

JIT = driver.CUjit_option
KIND = driver.CUjitInputType


class Linker:
    """`cuLink*` calls with log buffers."""

    def __init__(self, *options):
        self.info, self.error = bytearray(8192), bytearray(8192)
        pairs = [
            (JIT.CU_JIT_INFO_LOG_BUFFER, self.info),
            (JIT.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, len(self.info)),
            (JIT.CU_JIT_ERROR_LOG_BUFFER, self.error),
            (JIT.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, len(self.error)),
            *options,
        ]
        keys, values = zip(*pairs)
        self.state = check(driver.cuLinkCreate(len(pairs), list(keys), list(values)))

    def add(self, kind, data, name):
        return driver.cuLinkAddData(self.state, kind, data, len(data), name, 0, [], [])[0]

    def complete(self):
        """(status, image or None)."""
        status, address, size = driver.cuLinkComplete(self.state)
        return status, ctypes.string_at(address, size) if int(status) == 0 else None

    def error_log(self):
        return self.error.rstrip(b"\0").decode()

    def close(self):
        check(driver.cuLinkDestroy(self.state))


@pytest.fixture
def linker(shared_context):
    made = Linker()
    yield made
    made.close()


@pytest.mark.parametrize("kinds", [("PTX", "PTX"), ("CUBIN", "PTX"), ("CUBIN", "CUBIN")])
def test_driver_linker_links_ptx(linker, arch, kinds):
    for kind, source, name in zip(kinds, (HELPER, MAIN), (b"helper", b"main")):
        code = compile_to(source, kind, arch, "-rdc=true")
        assert int(linker.add(getattr(KIND, f"CU_JIT_INPUT_{kind}"), code, name)) == 0, linker.error_log()
    status, image = linker.complete()
    assert int(status) == 0, linker.error_log()
    assert linker.error_log() == ""
    run(image)


def test_driver_linker_reads_files(linker, arch, tmp_path):
    for source, name in ((HELPER, "helper.ptx"), (MAIN, "main.ptx")):
        path = tmp_path / name
        path.write_bytes(compile_to(source, "PTX", arch, "-rdc=true"))
        check(driver.cuLinkAddFile(linker.state, KIND.CU_JIT_INPUT_PTX, str(path).encode(), 0, [], []))
    status, image = linker.complete()
    assert int(status) == 0
    run(image)
    status, *_ = driver.cuLinkAddFile(linker.state, KIND.CU_JIT_INPUT_PTX, b"/nowhere/at.all", 0, [], [])
    assert status != 0


def test_missing_and_duplicate_symbols_are_reported(arch, shared_context):
    main = compile_to(MAIN, "PTX", arch, "-rdc=true")
    linker = Linker()
    assert int(linker.add(KIND.CU_JIT_INPUT_PTX, main, b"the main module")) == 0
    status, _ = linker.complete()
    assert int(status) != 0
    assert "helper" in linker.error_log() and "the main module" in linker.error_log()
    linker.close()

    helper = compile_to(HELPER, "PTX", arch, "-rdc=true")
    linker = Linker()
    for name in (b"first", b"second"):
        linker.add(KIND.CU_JIT_INPUT_PTX, helper, name)
    status, _ = linker.complete()
    assert int(status) != 0
    assert "helper" in linker.error_log()
    linker.close()


def test_ptx_error_is_reported(linker):
    status = linker.add(KIND.CU_JIT_INPUT_PTX, b".version 8.0\n.target sm_80\n.visible .entry k() { wrong; }\0", b"bad")
    assert status == driver.CUresult.CUDA_ERROR_INVALID_PTX
    assert "wrong" in linker.error_log()


@pytest.mark.cpu
def test_driver_linker_links_lto_ir(arch, shared_context):
    linker = Linker((JIT.CU_JIT_FTZ, 1))
    for source, name in ((HELPER, b"helper"), (MAIN, b"main")):
        code = compile_to(source, "LTOIR", arch, "-rdc=true", "-dlto")
        assert int(linker.add(KIND.CU_JIT_INPUT_NVVM, code, name)) == 0, linker.error_log()
    status, image = linker.complete()
    assert int(status) == 0, linker.error_log()
    run(image)
    linker.close()


@pytest.mark.cpu
def test_inputs_of_the_wrong_kind_are_refused(arch, shared_context):
    cases = [
        (KIND.CU_JIT_INPUT_CUBIN, compile_to(MAIN, "PTX", arch), "not a cubin"),
        (KIND.CU_JIT_INPUT_PTX, compile_to(MAIN, "CUBIN", arch, "-rdc=true"), "not PTX"),
        (KIND.CU_JIT_INPUT_LIBRARY, b"!<arch>\nnonsense", "corrupted"),
        (KIND.CU_JIT_INPUT_FATBINARY, b"\x50\xed\x55\xba" + bytes(4), "corrupted"),
        (KIND.CU_JIT_INPUT_OBJECT, b"\x7fELF\2\1\1" + bytes(57), "no device code"),
    ]
    for kind, code, says in cases:
        linker = Linker()
        assert int(linker.add(kind, code, b"the input")) != 0
        assert says in linker.error_log() and "the input" in linker.error_log()
        linker.close()


def messages(iterator):
    """(new messages, iterator after them)."""
    buffer = bytearray(25600)
    outputs = check(driver.cuLogsDumpToMemory(iterator, buffer, len(buffer), 0))
    return buffer.split(b"\0")[0].decode(), outputs


@pytest.mark.cpu
def test_refused_launch_is_explained_in_the_driver_log(arch, shared_context):
    module = check(driver.cuModuleLoadData(compile_to('extern "C" __global__ void k(int n) {}', "CUBIN", arch)))
    function = check(driver.cuModuleGetFunction(module, b"k"))
    heard = []
    signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint, ctypes.c_char_p, ctypes.c_size_t)

    @signature
    def callback(data, level, message, length):
        heard.append((data, level, message, length))

    handle = check(driver.cuLogsRegisterCallback(ctypes.cast(callback, ctypes.c_void_p).value, 17))
    start = check(driver.cuLogsCurrent(0))
    arguments = ((1,), (ctypes.c_int,))
    (status,) = driver.cuLaunchKernel(function, 1, 1, 1, 64, 32, 1, 0, 0, arguments, 0)
    assert status == driver.CUresult.CUDA_ERROR_INVALID_VALUE
    check(driver.cuLogsUnregisterCallback(handle))
    text, _ = messages(start)
    assert "2048 threads" in text and "at most 1024" in text
    assert "cuLaunchKernel returned CUDA_ERROR_INVALID_VALUE" in text
    assert any(b"2048 threads" in message and len(message) == length for _, _, message, length in heard)
    assert {(data, level) for data, level, _, _ in heard} == {(17, 0)}
    check(driver.cuModuleUnload(module))
