"""Graphs and stream capture through the runtime bindings, on both devices."""

import contextlib
import ctypes

import numpy as np
import pytest
from cuda.bindings import driver, runtime

from helpers.device import check, compile_cuda
from helpers.threads import in_a_thread

SOURCE = 'extern "C" __global__ void add(int *p, int n) { atomicAdd(p, n); }'


@pytest.fixture
def current():
    """The primary context is current, as in runtime programs; the previous context is restored afterwards."""
    before = driver.cuCtxGetCurrent()[1]
    driver.cuInit(0)
    check(driver.cuCtxSetCurrent(0))
    check(runtime.cudaSetDevice(0))
    check(runtime.cudaFree(0))
    check(driver.cuThreadExchangeStreamCaptureMode(driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    yield
    check(driver.cuCtxSetCurrent(before))


def test_capture_and_launch(current):
    code, _ = compile_cuda(SOURCE, kind="cubin")
    library = check(runtime.cudaLibraryLoadData(code, None, None, 0, None, None, 0))
    kernel = check(runtime.cudaLibraryGetKernel(library, b"add"))
    stream = check(runtime.cudaStreamCreateWithFlags(runtime.cudaStreamNonBlocking))
    p = check(runtime.cudaMalloc(16))
    check(runtime.cudaMemset(p, 0, 16))
    mode = runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
    check(runtime.cudaStreamBeginCapture(stream, mode))
    check(runtime.cudaMemsetAsync(p, 0, 16, stream))
    arguments = ((p, 7), (ctypes.c_void_p, ctypes.c_int))
    check(driver.cuLaunchKernel(int(kernel), 1, 1, 1, 1, 1, 1, 0, int(stream), arguments, 0))
    graph = check(runtime.cudaStreamEndCapture(stream))
    _nodes, count = check(runtime.cudaGraphGetNodes(graph, 10))
    assert count == 2
    exec_ = check(runtime.cudaGraphInstantiate(graph, 0))
    for _ in range(2):
        check(runtime.cudaGraphLaunch(exec_, stream))
    check(runtime.cudaStreamSynchronize(stream))
    out = np.zeros(4, np.int32)
    to_host = runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
    check(runtime.cudaMemcpy(out.ctypes.data, p, 16, to_host))
    assert out[0] == 7
    check(runtime.cudaGraphExecDestroy(exec_))
    check(runtime.cudaGraphDestroy(graph))
    check(runtime.cudaFree(p))
    check(runtime.cudaStreamDestroy(stream))
    check(runtime.cudaLibraryUnload(library))


def test_graph_nodes(current):
    stream = check(runtime.cudaStreamCreate())
    graph = check(runtime.cudaGraphCreate(0))
    p = check(runtime.cudaMalloc(64))
    out = np.zeros(16, np.int32)
    fill = runtime.cudaMemsetParams()
    fill.dst, fill.value, fill.elementSize, fill.width, fill.height = p, 3, 4, 16, 1
    first = check(runtime.cudaGraphAddMemsetNode(graph, None, 0, fill))
    to_host = runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
    second = check(runtime.cudaGraphAddMemcpyNode1D(graph, [first], 1, out.ctypes.data, p, 64, to_host))
    reported = check(runtime.cudaGraphMemsetNodeGetParams(first))
    assert (reported.value, reported.elementSize, reported.width, reported.height) == (3, 4, 16, 1)
    copy = check(runtime.cudaGraphMemcpyNodeGetParams(second))
    assert (copy.extent.width, copy.extent.height, copy.extent.depth) == (64, 1, 1)
    exec_ = check(runtime.cudaGraphInstantiate(graph, 0))
    check(runtime.cudaGraphLaunch(exec_, stream))
    check(runtime.cudaStreamSynchronize(stream))
    assert (out == 3).all()
    fill.value = 8
    check(runtime.cudaGraphExecMemsetNodeSetParams(exec_, first, fill))
    check(runtime.cudaGraphLaunch(exec_, stream))
    check(runtime.cudaStreamSynchronize(stream))
    assert (out == 8).all()
    empty = runtime.cudaGraphNodeParams()
    empty.type = runtime.cudaGraphNodeType.cudaGraphNodeTypeEmpty
    node = check(runtime.cudaGraphAddNode(graph, [second], None, 1, empty))
    assert int(check(runtime.cudaGraphNodeGetType(node))) == 5
    check(runtime.cudaGraphExecDestroy(exec_))
    check(runtime.cudaGraphDestroy(graph))
    check(runtime.cudaFree(p))
    check(runtime.cudaStreamDestroy(stream))


def ends(what, stream, later):
    """(create, call that destroys or changes it, check that the call had no effect); `later` cleans up."""
    if what == "cudaFreeAsync":
        p = check(runtime.cudaMallocAsync(64, stream))
        check(runtime.cudaStreamSynchronize(stream))
        return lambda: runtime.cudaFreeAsync(p, stream), lambda: check(runtime.cudaMemset(p, 0, 64))
    properties = runtime.cudaMemPoolProps()
    properties.allocType = runtime.cudaMemAllocationType.cudaMemAllocationTypePinned
    properties.location.type = runtime.cudaMemLocationType.cudaMemLocationTypeDevice
    if what == "cudaMemPoolCreate":

        def create():
            status, pool = runtime.cudaMemPoolCreate(properties)
            if int(status) == 0:
                later.callback(lambda: check(runtime.cudaMemPoolDestroy(pool)))
            return (status,)

        return create, lambda: None
    if what == "cudaMemPoolSetAttribute":
        pool, name = (
            check(runtime.cudaMemPoolCreate(properties)),
            runtime.cudaMemPoolAttr.cudaMemPoolAttrReleaseThreshold,
        )
        later.callback(lambda: check(runtime.cudaMemPoolDestroy(pool)))

        def unset():
            assert int(check(runtime.cudaMemPoolGetAttribute(pool, name))) == 0

        return lambda: runtime.cudaMemPoolSetAttribute(pool, name, driver.cuuint64_t(4096)), unset
    if what == "cudaGraphExecDestroy":
        graph = check(runtime.cudaGraphCreate(0))
        exec_ = check(runtime.cudaGraphInstantiate(graph, 0))
        check(runtime.cudaGraphDestroy(graph))
        return lambda: runtime.cudaGraphExecDestroy(exec_), lambda: check(runtime.cudaGraphLaunch(exec_, stream))
    assert what == "cudaLibraryUnload"
    code, _ = compile_cuda(SOURCE, kind="cubin")
    library = check(runtime.cudaLibraryLoadData(code, None, None, 0, None, None, 0))
    return lambda: runtime.cudaLibraryUnload(library), lambda: check(runtime.cudaLibraryGetKernel(library, b"add"))


REFUSED = ["cudaFreeAsync", "cudaMemPoolCreate", "cudaMemPoolSetAttribute", "cudaGraphExecDestroy", "cudaLibraryUnload"]


@pytest.mark.parametrize("what", REFUSED)
def test_calls_refused_during_capture(current, what):
    """As in the driver, for which driver/test_stream_capture_rules.py has the full table."""
    modes, error = runtime.cudaStreamCaptureMode, runtime.cudaError_t
    everywhere, here = modes.cudaStreamCaptureModeGlobal, modes.cudaStreamCaptureModeThreadLocal
    context = check(driver.cuCtxGetCurrent())
    captured, stream = (check(runtime.cudaStreamCreateWithFlags(runtime.cudaStreamNonBlocking)) for _ in range(2))

    def in_a_capture(mode, work):
        check(runtime.cudaStreamBeginCapture(captured, mode))
        answer = work()
        status, graph = runtime.cudaStreamEndCapture(captured)
        if int(status) == 0:
            check(runtime.cudaGraphDestroy(graph))
        return answer[0], status

    def elsewhere(work):
        def run():
            check(driver.cuCtxSetCurrent(context))
            return work()

        return in_a_thread(run)

    with contextlib.ExitStack() as later:
        for made in (captured, stream):
            later.callback(lambda made=made: check(runtime.cudaStreamDestroy(made)))
        later.callback(lambda: check(runtime.cudaDeviceSynchronize()))
        for mode, where in ((everywhere, lambda work: work()), (everywhere, elsewhere), (here, lambda work: work())):
            end, untouched = ends(what, stream, later)
            refused = error.cudaErrorStreamCaptureUnsupported, error.cudaErrorStreamCaptureInvalidated
            assert in_a_capture(mode, lambda: where(end)) == refused
            runtime.cudaGetLastError()
            untouched()
            check(end())

            def relaxed():
                before = check(runtime.cudaThreadExchangeStreamCaptureMode(modes.cudaStreamCaptureModeRelaxed))
                answer = end()
                check(runtime.cudaThreadExchangeStreamCaptureMode(before))
                return answer

            end, _ = ends(what, stream, later)
            assert in_a_capture(mode, lambda: where(relaxed)) == (error.cudaSuccess, error.cudaSuccess)
