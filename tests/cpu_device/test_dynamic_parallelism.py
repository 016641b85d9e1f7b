"""Kernels that launch kernels, compiled by NVRTC with `-rdc=true`.

What is expected was observed on an H100 (driver 580) where CUDA's manual is silent.
"""

import ctypes

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.pathfinder import find_static_lib

from helpers.device import (
    DeviceArray,
    Module,
    check,
    compile_cuda,
    load_with_device_runtime,
    on_cpu_device,
    synchronize,
)
from helpers.programs import python
from helpers.waits import LIMIT, until

RDC = ["-rdc=true"]
SOURCE = r"""
extern "C" __global__ void add(int *p, int n) { atomicAdd(p, n); }
extern "C" __global__ void note(int *list, int value) { list[atomicAdd(list, 1) + 1] = value; }
extern "C" __global__ void shared_sum(int *out)
{
    extern __shared__ int values[];
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) for (int i = 0; i < blockDim.x; i++) *out += values[i];
}
struct Pair { char c; double d; };
extern "C" __global__ void mixed(char a, Pair p, short b, double *out) { *out = a + p.c + p.d + b; }

extern "C" __global__ void sum(const int *values, int n, int *out)
{
    if (n <= 32) { for (int i = 0; i < n; i++) atomicAdd(out, values[i]); return; }
    sum<<<1, 1>>>(values, n / 2, out);
    sum<<<1, 1, 0, cudaStreamFireAndForget>>>(values + n / 2, n - n / 2, out);
}
extern "C" __global__ void arguments(double *out, int *total)
{
    mixed<<<1, 1>>>(1, Pair{2, 0.5}, 300, out);
    shared_sum<<<1, 64, 64 * sizeof(int)>>>(total);
}
extern "C" __global__ void ordered(int *list)
{
    note<<<1, 1, 0, cudaStreamTailLaunch>>>(list, 100);
    for (int i = 0; i < 10; i++) note<<<1, 1>>>(list, i);
    note<<<1, 1, 0, cudaStreamTailLaunch>>>(list, 101);
}
extern "C" __global__ void fork_and_join(int *list)
{
    cudaStream_t a, b;
    cudaEvent_t e;
    int status = cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking) | cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking)
        | cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
    note<<<1, 1, 0, a>>>(list, 1);
    status |= cudaEventRecord(e, a) | cudaStreamWaitEvent(b, e, 0);
    note<<<1, 1, 0, b>>>(list, 2);
    status |= cudaEventDestroy(e) | cudaStreamDestroy(a) | cudaStreamDestroy(b);
    list[15] = status;
}
extern "C" __global__ void refused(int *p)
{
    add<<<0, 1>>>(p, 1);
    p[1] = cudaPeekAtLastError();
    p[2] = cudaGetLastError();
    p[3] = cudaGetLastError();
    shared_sum<<<1, 1, 1 << 30>>>(p);
    p[4] = cudaGetLastError();
    add<<<1, 1, 0, (cudaStream_t)12345>>>(p, 1);
    p[5] = cudaGetLastError();
    printf("%s: %s\n", cudaGetErrorName((cudaError_t)p[1]), cudaGetErrorString(cudaSuccess));
}
extern "C" __global__ void memory(int *p)
{
    int *q;
    int status = cudaMalloc((void **)&q, 64);
    cudaMemsetAsync(p, 1, 16, 0);
    cudaMemcpyAsync(p + 4, p, 16, cudaMemcpyDeviceToDevice, 0);
    cudaMemcpy2DAsync(p + 8, 8, p, 4, 4, 2, cudaMemcpyDefault, 0);
    cudaMemset2DAsync(p + 12, 8, 2, 4, 2, 0);
    p[16] = status | cudaFree(q);
}
extern "C" __global__ void queries(int *p)
{
    int device = -1, count = -1, warp = -1, blocks = -1, version = 0;
    size_t limit = 0;
    cudaFuncAttributes attributes;
    p[0] = cudaGetDevice(&device) | cudaGetDeviceCount(&count) | cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, 0)
        | cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount) | cudaRuntimeGetVersion(&version)
        | cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)add, 128, 0)
        | cudaFuncGetAttributes(&attributes, (const void *)shared_sum);
    p[1] = device; p[2] = count; p[3] = warp; p[4] = (int)limit; p[5] = blocks > 0; p[6] = version == 6000;
    p[7] = attributes.maxThreadsPerBlock;
}
extern "C" __global__ void again(int *p, int n)
{
    p[0]++;
    if (n > 0) again<<<1, 1, 0, cudaStreamTailLaunch>>>(p, n - 1);
}
extern "C" __global__ void polling(int *p)
{
    add<<<1, 1, 0, cudaStreamFireAndForget>>>(p, 1);
    while (*(volatile int *)p == 0);
    p[1] = 7;
}
extern "C" __global__ void many(int *p) { add<<<1, 1>>>(p, 1); if (cudaGetLastError()) atomicAdd(p + 1, 1); }
extern "C" __global__ void address(unsigned long long *p) { *p = (unsigned long long)(void *)add; }
extern "C" __global__ void at(unsigned long long kernel, int *p) { ((void (*)(int *, int))kernel)<<<1, 1>>>(p, 5); }
"""
PARTS = (
    'extern "C" __global__ void add(int *p, int n);\nextern "C" __global__ void go(int *p) { add<<<1, 8>>>(p, 3); }',
    'extern "C" __global__ void add(int *p, int n) { atomicAdd(p, n); }',
)


@pytest.fixture(scope="module")
def module(shared_context):
    made = load_with_device_runtime(SOURCE)
    yield made
    made.unload()


def run(module, name, *args, size=20, dtype=np.int32, grid=1, block=1):
    """The array that is the kernel's first argument, after the kernel has run."""
    out = DeviceArray(np.zeros(size, dtype))
    module.launch(name, grid, block, out, *args)
    synchronize()
    result = out.get()
    out.free()
    return result


def test_a_sum_by_divide_and_conquer(module):
    values, total = DeviceArray(np.arange(5000, dtype=np.int32)), DeviceArray(np.zeros(1, np.int32))
    module.launch("sum", 1, 1, values, np.int32(5000), total)
    synchronize()
    assert total.get()[0] == 5000 * 4999 // 2
    values.free()
    total.free()


def test_arguments_and_shared_memory_of_children(module):
    total = DeviceArray(np.zeros(1, np.int32))
    assert run(module, "arguments", total, dtype=np.float64)[0] == 303.5
    assert total.get()[0] == 64 * 63 // 2
    total.free()


def test_children_run_in_stream_order_and_tails_at_the_end(module):
    assert run(module, "ordered").tolist()[:13] == [12, *range(10), 100, 101]


def test_streams_and_events_of_a_kernel(module):
    result = run(module, "fork_and_join").tolist()
    assert result[:3] == [2, 1, 2] and result[15] == 0


def test_refused_launches_set_the_last_error_of_the_thread(module):
    configuration, value = 9, 1
    assert run(module, "refused").tolist()[:6] == [0, configuration, configuration, 0, configuration, value]


@pytest.mark.cpu  # On an H100 with driver 580, `cudaMemsetAsync` of a kernel succeeds and writes nothing, in programs of nvcc as well.
def test_copies_fills_and_memory_of_the_heap(module):
    ones, twos = 0x01010101, 0x02020202
    expected = [ones] * 9 + [0, ones, 0, twos, 0, twos, 0, 0]
    assert run(module, "memory").tolist()[:17] == expected


def test_queries(module):
    count = check(driver.cuDeviceGetCount())
    assert run(module, "queries").tolist()[:8] == [0, 0, count, 32, 2048, 1, 1, 1024]


def test_a_kernel_repeats_itself_with_tail_launches(module):
    assert run(module, "again", np.int32(3000))[0] == 3001


def test_a_kernel_waits_for_what_it_launched(module):
    assert run(module, "polling").tolist()[:2] == [1, 7]


@pytest.mark.cpu  # A GPU refuses launches beyond the 2,048 that may be pending.
def test_each_of_many_blocks_launches(module):
    assert run(module, "many", grid=5000, block=2).tolist()[:2] == [10000, 0]


def test_a_kernel_of_another_module_is_launched_by_its_address(module):
    other = load_with_device_runtime(SOURCE)
    address = run(other, "address", dtype=np.uint64)[0]
    out = DeviceArray(np.zeros(1, np.int32))
    module.launch("at", 1, 1, np.uint64(address), out)
    synchronize()
    assert out.get()[0] == 5
    out.free()
    other.unload()


@pytest.mark.parametrize("with_runtime", [pytest.param(False, marks=pytest.mark.cpu), True])
def test_the_driver_links_relocatable_ptx(module, with_runtime):
    """`libcudadevrt`, which a GPU needs, may be linked with."""
    state = check(driver.cuLinkCreate(0, [], []))
    for text in PARTS:
        ptx, _ = compile_cuda(text, options=RDC)
        check(driver.cuLinkAddData(state, driver.CUjitInputType.CU_JIT_INPUT_PTX, ptx, len(ptx), b"part", 0, [], []))
    if with_runtime:
        library = find_static_lib("cudadevrt").encode()
        check(driver.cuLinkAddFile(state, driver.CUjitInputType.CU_JIT_INPUT_LIBRARY, library, 0, [], []))
    code, _ = check(driver.cuLinkComplete(state))
    linked = Module(code)
    assert run(linked, "go")[0] == 24
    linked.unload()
    check(driver.cuLinkDestroy(state))


def test_graphs_contain_kernels_that_launch_kernels(module):
    stream = check(driver.cuStreamCreate(1))
    out = DeviceArray(np.zeros(20, np.int32))
    check(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    module.launch("many", 3, 1, out, stream=stream)
    module.launch("again", 1, 1, out, np.int32(4), stream=stream)
    graph = check(driver.cuStreamEndCapture(stream))
    executable = check(driver.cuGraphInstantiate(graph, 0))
    check(driver.cuGraphLaunch(executable, stream))
    check(driver.cuStreamSynchronize(stream))
    # On an H200 (driver 580), a graph ends before the tail launches of its kernels. The CPU device waits for them.
    until(lambda: out.get()[0] == 3 + 5, limit=0 if on_cpu_device() else LIMIT)
    params = driver.CUDA_GRAPH_INSTANTIATE_PARAMS()
    params.flags = 4
    status, _ = driver.cuGraphInstantiateWithParams(graph, params)
    unsupported = driver.CUgraphInstantiateResult.CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
    assert status == driver.CUresult.CUDA_ERROR_INVALID_VALUE and params.result_out == unsupported
    check(driver.cuGraphExecDestroy(executable))
    check(driver.cuGraphDestroy(graph))
    check(driver.cuStreamDestroy(stream))
    out.free()


def captured(module, name, *args):
    stream = check(driver.cuStreamCreate(1))
    check(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    module.launch(name, 1, 1, *args, stream=stream)
    graph = check(driver.cuStreamEndCapture(stream))
    check(driver.cuStreamDestroy(stream))
    return graph


def test_updates_do_not_add_kernels_that_launch_kernels(module):
    out = DeviceArray(np.zeros(20, np.int32))
    plain, parallel = captured(module, "add", out, np.int32(1)), captured(module, "many", out)
    executable = check(driver.cuGraphInstantiate(plain, 0))
    # The bindings return no information about an update that was refused.
    status = driver.cuGraphExecUpdate(executable, parallel)[0]
    assert status == driver.CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
    other = check(driver.cuGraphInstantiate(parallel, 0))
    assert driver.cuGraphExecUpdate(other, plain)[0] == driver.CUresult.CUDA_SUCCESS
    for handle in (executable, other):
        check(driver.cuGraphExecDestroy(handle))
    for graph in (plain, parallel):
        check(driver.cuGraphDestroy(graph))
    out.free()


def test_conditional_bodies_do_not(module, shared_context):
    graph = check(driver.cuGraphCreate(0))
    handle = check(driver.cuGraphConditionalHandleCreate(graph, check(driver.cuCtxGetCurrent()), 1, 1))
    params = driver.CUgraphNodeParams()
    params.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
    params.conditional.handle = handle
    params.conditional.type = driver.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_IF
    params.conditional.size = 1
    params.conditional.ctx = check(driver.cuCtxGetCurrent())
    check(driver.cuGraphAddNode(graph, None, None, 0, params))
    kernel = driver.CUDA_KERNEL_NODE_PARAMS()
    kernel.func = module.function("again")
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1
    kernel.kernelParams = ((0, 1), (ctypes.c_void_p, ctypes.c_int))
    check(driver.cuGraphAddKernelNode(params.conditional.phGraph_out[0], None, 0, kernel))
    status, _ = driver.cuGraphInstantiate(graph, 0)
    assert status == driver.CUresult.CUDA_ERROR_INVALID_VALUE
    check(driver.cuGraphDestroy(graph))


# -------------------------------------------------------------------------------------------------------------
# In other processes

PROGRAM = """
import sys
import numpy as np
from cuda.bindings import driver
from helpers.device import DeviceArray, check, load_with_device_runtime, synchronize
check(driver.cuInit(0))
check(driver.cuCtxCreate(None, 0, check(driver.cuDeviceGet(0))))
load = load_with_device_runtime
"""


def output(body, **variables):
    done = python(PROGRAM + body, environment=variables, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr


CORE = """
from cuda.core import Device, LaunchConfig, Linker, LinkerOptions, ObjectCode, Program, ProgramOptions, launch
from cuda.pathfinder import find_static_lib
device = Device()
device.set_current()
arch = f"sm_{device.arch}"
parts = [
    Program(text, "c++", ProgramOptions(relocatable_device_code=True, arch=arch)).compile(sys.argv[1]) for text in PARTS
]
parts.append(ObjectCode.from_library(find_static_lib("cudadevrt")))
linked = Linker(*parts, options=LinkerOptions(arch=arch)).link("cubin")
stream = device.create_stream()
out = DeviceArray(np.zeros(1, np.int32))
launch(stream, LaunchConfig(grid=1, block=1), linked.get_kernel("go"), out.address)
stream.sync()
print(out.get()[0])
"""


@pytest.mark.parametrize("kind", ["ptx", "cubin"])
def test_cuda_core_links_programs(kind):
    done = python(f"{PROGRAM}PARTS = {PARTS!r}{CORE}", kind)
    assert (done.returncode, done.stdout.split()) == (0, ["24"]), done.stderr


TREE = r'''
module = load(r"""
extern "C" __global__ void tree(int *p, int depth)
{
    atomicAdd(p, 1);
    if (depth > 0) tree<<<2, 2>>>(p, depth - 1);
}
""")
out = DeviceArray(np.zeros(1, np.int32))
module.launch("tree", 1, 1, out, np.int32(6))
synchronize()
print(out.get()[0])
'''


@pytest.mark.cpu
@pytest.mark.parametrize("threads", ["1", "4"])
def test_children_need_no_threads_of_their_own(threads):
    # Each thread launches four.
    assert output(TREE, CUPYRITE_CPU_THREADS=threads)[0].split() == [str(sum(4**n for n in range(7)))]


@pytest.mark.cpu
def test_a_fault_names_the_child():
    body = r'''
module = load(r"""
__global__ void bad_child(int *p) { p[1000] = 1; }
extern "C" __global__ void parent(int *p) { bad_child<<<2, 1>>>(p); }
""")
out = DeviceArray(np.zeros(10, np.int32))
module.launch("parent", 1, 1, out)
print(driver.cuCtxSynchronize()[0].name)
'''
    out, report = output(body)
    assert out.split() == ["CUDA_ERROR_ILLEGAL_ADDRESS"]
    assert "illegal memory access in kernel" in report and "bad_child" in report


def test_statuses_of_copies_and_handles_are_those_of_an_h100():
    body = r"""
module = load(r'''
extern "C" __global__ void parent(int *p) {
    int local[4]; cudaStream_t s; cudaEvent_t e; int *d = p + 32, i = 0;
    p[i++] = cudaMemcpyAsync(d, local, 16, cudaMemcpyDeviceToDevice, 0);
    p[i++] = cudaMemcpyAsync((void *)16, d, 16, cudaMemcpyDeviceToDevice, 0);
    p[i++] = cudaMemsetAsync(0, 0, 16, 0);
    p[i++] = cudaMemset2DAsync(d, 4, 3, 8, 2, 0);
    p[i++] = cudaMemcpy2DAsync(d, 8, p + 64, 4, 8, 2, cudaMemcpyDeviceToDevice, 0);
    p[i++] = cudaMemcpyAsync(d, p + 64, 16, cudaMemcpyHostToDevice, 0);
    for (unsigned f = 0; f < 3; f++) p[i++] = cudaStreamCreateWithFlags(&s, f);
    for (unsigned f = 0; f < 5; f++) p[i++] = cudaEventCreateWithFlags(&e, f);
    p[i++] = cudaStreamDestroy(0);
    p[i++] = cudaEventDestroy(0);
    p[i++] = cudaMalloc((void **)0, 16);
}
''')
out = DeviceArray(np.full(128, -1, np.int32))
module.launch("parent", 1, 1, out)
synchronize()
print(*out.get()[:17])
"""
    assert output(body)[0].split() == "1 1 1 1 12 21 0 0 1 1 1 0 0 1 1 1 1".split()


@pytest.mark.cpu
def test_the_log_says_why_a_launch_is_refused():
    body = r'''
module = load(r"""
__global__ void child() {}
extern "C" __global__ void parent(int *p) { for (int i = 0; i < 9; i++) child<<<1, 1025>>>(); *p = cudaGetLastError(); }
""")
out = DeviceArray(np.zeros(1, np.int32))
module.launch("parent", 5, 1, out)
synchronize()
print(out.get()[0])
'''
    out, log = output(body, CUDA_LOG_FILE="stderr")
    assert out.split() == ["9"]
    (line,) = (line for line in log.splitlines() if "'parent'" in line)
    assert "1025 x 1 x 1" in line


@pytest.mark.cpu
def test_printf_of_children_and_clusters():
    body = r'''
module = load(r"""
__global__ void __cluster_dims__(2) child() { if (threadIdx.x == 0) printf("block %d\n", blockIdx.x); }
extern "C" __global__ void parent(int *p)
{
    child<<<4, 32>>>();
    child<<<3, 32>>>();
    *p = cudaGetLastError();
}
""")
out = DeviceArray(np.zeros(1, np.int32))
module.launch("parent", 1, 1, out)
synchronize()
print("error", out.get()[0])
'''
    out, _ = output(body, CUPYRITE_CPU_COMPUTE_CAPABILITY="9.0")
    assert sorted(out.splitlines()) == [*(f"block {n}" for n in range(4)), "error 912"]


@pytest.mark.cpu
def test_a_program_may_end_while_children_are_pending():
    body = r'''
module = load(r"""
__global__ void slow() { for (int i = 0; i < 1000; i++) __nanosleep(1000000); }
extern "C" __global__ void parent(int *p) { for (int i = 0; i < 1000; i++) slow<<<4, 32>>>(); }
""")
out = DeviceArray(np.zeros(1, np.int32))
module.launch("parent", 1, 1, out)
print("end")
'''
    assert output(body)[0].split() == ["end"]


@pytest.mark.cpu
def test_waiting_for_children_is_refused_when_loading():
    body = r'''
from helpers.device import compile_cuda
text, _ = compile_cuda("""
extern "C" __device__ int cuda_device_synchronize(void);
extern "C" __global__ void parent(int *p) { *p = cuda_device_synchronize(); }
""", options=["-rdc=true"])
text = bytes(text).replace(b"cuda_device_synchronize", b"cudaDeviceSynchronize")
print(driver.cuModuleLoadData(text)[0].name)
'''
    out, log = output(body, CUDA_LOG_FILE="stderr")
    assert out.split() == ["CUDA_ERROR_INVALID_PTX"] and "cudaStreamTailLaunch" in log
