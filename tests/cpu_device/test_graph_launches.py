"""Graphs that kernels launch with cudaGraphLaunch."""

import ctypes

import numpy as np
import pytest
from cuda.bindings import driver

from helpers.device import DeviceArray, Module, check
from helpers.threads import in_threads

SOURCE = """
extern "C" __device__ __cudart_builtin__ cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);

extern "C" __global__ void add(int *p, int n) { atomicAdd(p, n); }
extern "C" __global__ void note(int *p, const int *q) { *p = *q; }
extern "C" __global__ void launch(unsigned long long graph, unsigned long long stream, int *status)
{
    *status = cudaGraphLaunch((cudaGraphExec_t)graph, (cudaStream_t)stream);
}
extern "C" __global__ void again(int *p, int below)
{
    unsigned long long self;
    asm("mov.u64 %0, %%current_graph_exec;" : "=l"(self));
    if (++*p < below) cudaGraphLaunch((cudaGraphExec_t)self, (cudaStream_t)0x0100000000000000);
}
extern "C" __global__ void self(unsigned long long *out)
{
    asm("mov.u64 %0, %%current_graph_exec;" : "=l"(*out));
}
extern "C" __global__ void many(const unsigned long long *graphs, int step, unsigned long long stream, int n, int *statuses)
{
    for (int i = 0; i < n; i++)
        statuses[i] = cudaGraphLaunch((cudaGraphExec_t)graphs[i * step], (cudaStream_t)stream);
}
"""
TAIL, FIRE_AND_FORGET, SIBLING = 1 << 56, 2 << 56, 3 << 56
DEVICE_LAUNCH = 4
Status = driver.CUresult
Result = driver.CUgraphInstantiateResult
TYPES = {int: ctypes.c_int, np.uint64: ctypes.c_uint64}


@pytest.fixture(scope="module")
def module(shared_context):
    made = Module.from_source(SOURCE)
    yield made
    made.unload()


@pytest.fixture
def stream(shared_context):
    made = check(driver.cuStreamCreate(1))
    yield made
    check(driver.cuStreamSynchronize(made))
    check(driver.cuStreamDestroy(made))


@pytest.fixture
def numbers(shared_context):
    made = DeviceArray(np.zeros(8, np.int32))
    yield made
    made.free()


def at(array, index=0):
    return np.uint64(array.address + 4 * index)


def kernel(module, graph, before, name, *arguments):
    params = driver.CUDA_KERNEL_NODE_PARAMS()
    params.func = module.function(name)
    params.gridDimX = params.gridDimY = params.gridDimZ = 1
    params.blockDimX = params.blockDimY = params.blockDimZ = 1
    params.kernelParams = (tuple(int(a) for a in arguments), tuple(TYPES[type(a)] for a in arguments))
    return check(driver.cuGraphAddKernelNode(graph, before, len(before), params))


def chain(module, *kernels, flags=0):
    """An executable graph of kernels in a row."""
    graph = check(driver.cuGraphCreate(0))
    before = []
    for name, *arguments in kernels:
        before = [kernel(module, graph, before, name, *arguments)]
    exec_ = check(driver.cuGraphInstantiate(graph, flags))
    check(driver.cuGraphDestroy(graph))
    return exec_


def for_device(module, stream, *kernels):
    """A graph that kernels can launch: it was uploaded."""
    exec_ = chain(module, *kernels, flags=DEVICE_LAUNCH)
    check(driver.cuGraphUpload(exec_, stream))
    check(driver.cuStreamSynchronize(stream))
    return exec_


def launching(module, numbers, graph, how):
    """A graph with a kernel that launches a graph and notes the status in the second number."""
    return chain(module, ("launch", np.uint64(int(graph)), np.uint64(how), at(numbers, 1)))


def launch(exec_, stream):
    check(driver.cuGraphLaunch(exec_, stream))
    check(driver.cuStreamSynchronize(stream))


@pytest.mark.parametrize("how", [FIRE_AND_FORGET, SIBLING])
def test_graphs_are_fired(module, stream, numbers, how):
    inner = for_device(module, stream, ("add", at(numbers), 5))
    outer = launching(module, numbers, inner, how)
    launch(outer, stream)
    launch(outer, stream)
    assert numbers.get()[:2].tolist() == [10, 0]


@pytest.mark.parametrize("how", [TAIL, FIRE_AND_FORGET, SIBLING])
def test_a_graph_must_be_uploaded(module, stream, numbers, how):
    inner = chain(module, ("add", at(numbers), 5), flags=DEVICE_LAUNCH)
    outer = launching(module, numbers, inner, how)
    launch(outer, stream)
    assert numbers.get()[:2].tolist() == [0, 1]
    # A launch by the host uploads it.
    launch(inner, stream)
    launch(outer, stream)
    assert numbers.get()[:2].tolist() == [10, 0]


def test_instantiation_can_upload(module, stream, numbers):
    graph = check(driver.cuGraphCreate(0))
    kernel(module, graph, [], "add", at(numbers), 5)
    params = driver.CUDA_GRAPH_INSTANTIATE_PARAMS()
    params.flags, params.hUploadStream = DEVICE_LAUNCH | 2, stream
    inner = check(driver.cuGraphInstantiateWithParams(graph, params))
    check(driver.cuStreamSynchronize(stream))
    launch(launching(module, numbers, inner, FIRE_AND_FORGET), stream)
    assert numbers.get()[:2].tolist() == [5, 0]


def test_updates_count_for_kernels_after_an_upload(module, stream, numbers):
    def adding(number):
        graph = check(driver.cuGraphCreate(0))
        kernel(module, graph, [], "add", at(numbers), number)
        return graph

    inner = check(driver.cuGraphInstantiate(adding(1), DEVICE_LAUNCH))
    check(driver.cuGraphUpload(inner, stream))
    outer = launching(module, numbers, inner, FIRE_AND_FORGET)
    check(driver.cuGraphExecUpdate(inner, adding(100)))
    launch(outer, stream)
    assert numbers.get()[0] == 1
    check(driver.cuGraphUpload(inner, stream))
    launch(outer, stream)
    assert numbers.get()[0] == 101


def test_a_graph_with_a_pending_launch_cannot_be_launched(module, stream, numbers):
    inner = for_device(module, stream, ("add", at(numbers), 1))
    graphs, statuses = DeviceArray(np.array([int(inner)], np.uint64)), DeviceArray(np.zeros(3, np.int32))
    arguments = (np.uint64(graphs.address), 0, np.uint64(TAIL), 3, np.uint64(statuses.address))
    outer = chain(module, ("many", *arguments))
    for launches in (1, 2):
        launch(outer, stream)
        assert (numbers.get()[0], statuses.get().tolist()) == (launches, [0, 1, 1])
    graphs.free()
    statuses.free()


def test_tail_launches_run_after_the_graph(module, stream, numbers):
    inner = for_device(module, stream, ("note", at(numbers, 2), at(numbers)))
    outer = chain(
        module,
        ("launch", np.uint64(int(inner)), np.uint64(TAIL), at(numbers, 1)),
        ("add", at(numbers), 7),
    )
    launch(outer, stream)
    assert numbers.get()[:3].tolist() == [7, 0, 7]


def test_tail_launches_of_a_graph_with_branches(module, stream, numbers):
    inner = for_device(module, stream, ("note", at(numbers, 2), at(numbers)))
    graph = check(driver.cuGraphCreate(0))
    for _ in range(8):
        kernel(module, graph, [], "add", at(numbers), 1)
    kernel(module, graph, [], "launch", np.uint64(int(inner)), np.uint64(TAIL), at(numbers, 1))
    outer = check(driver.cuGraphInstantiate(graph, 0))
    for _ in range(5):
        launch(outer, stream)
    assert numbers.get()[:3].tolist() == [40, 0, 40]
    # The work of the stream waits for them.
    check(driver.cuGraphLaunch(outer, stream))
    module.launch("note", 1, 1, at(numbers, 3), at(numbers, 2), stream=stream)
    check(driver.cuStreamSynchronize(stream))
    assert numbers.get()[3] == 48


def test_a_graph_relaunches_itself(module, stream, numbers):
    loop = chain(module, ("again", at(numbers), 20_000), flags=DEVICE_LAUNCH)
    launch(loop, stream)
    assert numbers.get()[0] == 20_000


def test_current_graph(module, stream):
    out = DeviceArray(np.full(1, 7, np.uint64))
    host_only = chain(module, ("self", np.uint64(out.address)))
    launch(host_only, stream)
    assert out.get()[0] == 0
    of_device = chain(module, ("self", np.uint64(out.address)), flags=DEVICE_LAUNCH)
    launch(of_device, stream)
    # The kernel launches no graph; it is still told its graph.
    assert out.get()[0] == int(of_device)
    module.launch("self", 1, 1, np.uint64(out.address), stream=stream)
    check(driver.cuStreamSynchronize(stream))
    assert out.get()[0] == 0
    out.free()


def test_invalid_launches_return_errors(module, stream, numbers):
    inner = for_device(module, stream, ("add", at(numbers), 1))
    for graph, how in ((0, TAIL), (inner, 0), (inner, 4 << 56), (inner, int(stream))):
        launch(launching(module, numbers, graph, how), stream)
        assert numbers.get()[:2].tolist() == [0, 1]


@pytest.mark.cpu  # A GPU's context does not survive it.
def test_launches_of_what_is_no_graph_for_the_device_return_errors(module, stream, numbers):
    not_for_device = chain(module, ("add", at(numbers), 1))
    destroyed = for_device(module, stream, ("add", at(numbers), 1))
    check(driver.cuGraphExecDestroy(destroyed))
    for graph in (not_for_device, 12345, destroyed):
        launch(launching(module, numbers, graph, TAIL), stream)
        assert numbers.get()[:2].tolist() == [0, 1]


def test_a_kernel_outside_of_graphs_cannot_launch_graphs(module, stream, numbers):
    inner = for_device(module, stream, ("add", at(numbers), 1))
    with pytest.raises(RuntimeError, match="NOT_SUPPORTED"):
        module.launch("launch", 1, 1, np.uint64(int(inner)), np.uint64(TAIL), at(numbers, 1), stream=stream)
    # The context is as good as before.
    launch(launching(module, numbers, inner, TAIL), stream)
    assert numbers.get()[:2].tolist() == [1, 0]


@pytest.mark.cpu  # On a GPU the number depends on how fast the graphs run.
@pytest.mark.parametrize("how, most", [(FIRE_AND_FORGET, 120), (TAIL, 255)])
def test_number_of_launches_of_a_graph(module, stream, numbers, how, most):
    graphs = [int(for_device(module, stream, ("add", at(numbers), 1))) for _ in range(300)]
    graphs, statuses = DeviceArray(np.array(graphs, np.uint64)), DeviceArray(np.zeros(300, np.int32))
    arguments = (np.uint64(graphs.address), 1, np.uint64(how), 300, np.uint64(statuses.address))
    launch(chain(module, ("many", *arguments)), stream)
    too_many = 69
    assert statuses.get().tolist() == [0] * most + [too_many] * (300 - most)
    assert numbers.get()[0] == most
    graphs.free()
    statuses.free()


def test_graphs_that_cannot_be_launched_from_the_device(module, shared_context):
    def outcome(graph, flags=DEVICE_LAUNCH):
        params = driver.CUDA_GRAPH_INSTANTIATE_PARAMS()
        params.flags = flags
        (status, *_) = driver.cuGraphInstantiateWithParams(graph, params)
        return status, params.result_out, int(params.hErrNode_out)

    graph = check(driver.cuGraphCreate(0))
    assert outcome(graph)[0] == Status.CUDA_ERROR_INVALID_VALUE
    node = check(driver.cuGraphAddEmptyNode(graph, None, 0))
    unsupported = Result.CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
    assert outcome(graph) == (Status.CUDA_ERROR_INVALID_VALUE, unsupported, int(node))
    assert outcome(graph, DEVICE_LAUNCH | 1)[0] == Status.CUDA_ERROR_INVALID_VALUE
    check(driver.cuGraphDestroy(graph))


@pytest.mark.parametrize(
    "flags, status", [(0, Status.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE), (DEVICE_LAUNCH, Status.CUDA_SUCCESS)]
)
def test_update_to_a_kernel_that_launches_graphs(module, numbers, flags, status):
    graph = check(driver.cuGraphCreate(0))
    kernel(module, graph, [], "add", at(numbers), 1)
    exec_ = check(driver.cuGraphInstantiate(graph, flags))
    other = check(driver.cuGraphCreate(0))
    kernel(module, other, [], "again", at(numbers), 1)
    assert driver.cuGraphExecUpdate(exec_, other)[0] == status


def test_threads_launch_the_same_graphs(module, stream, numbers):
    context = check(driver.cuCtxGetCurrent())
    inner = for_device(module, stream, ("add", at(numbers), 1))
    launched = []

    def work(_):
        check(driver.cuCtxSetCurrent(context))
        own = check(driver.cuStreamCreate(1))
        statuses = DeviceArray(np.zeros(1, np.int32))
        outer = chain(module, ("launch", np.uint64(int(inner)), np.uint64(FIRE_AND_FORGET), at(statuses)))
        for _ in range(20):
            launch(outer, own)
            # A launch of another thread may be pending.
            (status,) = statuses.get().tolist()
            assert status in (0, 1)
            launched.append(status == 0)
        check(driver.cuGraphExecDestroy(outer))
        check(driver.cuStreamDestroy(own))
        statuses.free()

    in_threads(4, work)
    assert sum(launched) > 0 and numbers.get()[0] == sum(launched)
