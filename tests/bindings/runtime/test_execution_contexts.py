"""Device resources and execution contexts of the runtime API, on both devices."""

import numpy as np
import pytest
from cuda.bindings import driver, runtime

from helpers.device import check

SM = runtime.cudaDevResourceType.cudaDevResourceTypeSm
NON_BLOCKING = 1
Error = runtime.cudaError_t

pytestmark = pytest.mark.skipif(int(driver.cuDriverGetVersion()[1]) < 13010, reason="needs a driver of CUDA 13.1")


@pytest.fixture
def own_runtime():
    """The runtime in Rust, which validates handles; `libcudart` does not."""
    import os

    if os.environ.get("CUPYRITE_DEVICE") != "cpu":
        pytest.skip("needs the CPU device")


@pytest.fixture
def sms():
    check(runtime.cudaSetDevice(0))
    check(runtime.cudaFree(0))
    return check(runtime.cudaDeviceGetDevResource(0, SM))


@pytest.fixture
def green(sms):
    groups, count, _ = check(runtime.cudaDevSmResourceSplitByCount(1, sms, 0, sms.sm.minSmPartitionSize))
    assert count == 1
    descriptor = check(runtime.cudaDevResourceGenerateDesc(groups, 1))
    context = check(runtime.cudaGreenCtxCreate(descriptor, 0, 0))
    yield context
    runtime.cudaExecutionCtxDestroy(context)


def test_resources_of_contexts(sms, green):
    assert sms.sm.smCount == check(runtime.cudaGetDeviceProperties(0)).multiProcessorCount
    part = check(runtime.cudaExecutionCtxGetDevResource(green, SM))
    assert part.sm.smCount == sms.sm.minSmPartitionSize
    primary = check(runtime.cudaDeviceGetExecutionCtx(0))
    assert check(runtime.cudaExecutionCtxGetDevResource(primary, SM)).sm.smCount == sms.sm.smCount
    assert check(runtime.cudaExecutionCtxGetDevice(green)) == 0
    assert check(runtime.cudaExecutionCtxGetDevice(primary)) == 0
    assert check(runtime.cudaExecutionCtxGetId(green)) != check(runtime.cudaExecutionCtxGetId(primary))


def test_streams_and_events_of_a_green_context(sms, green):
    stream = check(runtime.cudaExecutionCtxStreamCreate(green, NON_BLOCKING, 0))
    assert check(runtime.cudaStreamGetDevResource(stream, SM)).sm.smCount == sms.sm.minSmPartitionSize
    other = check(runtime.cudaExecutionCtxStreamCreate(check(runtime.cudaDeviceGetExecutionCtx(0)), NON_BLOCKING, 0))
    assert check(runtime.cudaStreamGetDevResource(other, SM)).sm.smCount == sms.sm.smCount
    memory = check(runtime.cudaMalloc(1 << 20))
    check(runtime.cudaMemsetAsync(memory, 7, 1 << 20, stream))
    event = check(runtime.cudaEventCreate())
    check(runtime.cudaExecutionCtxRecordEvent(green, event))
    check(runtime.cudaStreamWaitEvent(other, event, 0))
    out = np.zeros(1 << 20, np.uint8)
    to_host = runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
    check(runtime.cudaMemcpyAsync(out.ctypes.data, memory, out.nbytes, to_host, other))
    check(runtime.cudaStreamSynchronize(other))
    assert (out == 7).all()
    check(runtime.cudaEventRecord(event, other))
    check(runtime.cudaExecutionCtxWaitEvent(green, event))
    check(runtime.cudaExecutionCtxSynchronize(green))
    for s in (stream, other):
        check(runtime.cudaStreamDestroy(s))
    check(runtime.cudaEventDestroy(event))
    check(runtime.cudaFree(memory))


def test_invalid_handles_are_refused(own_runtime, sms, green):
    check(runtime.cudaExecutionCtxDestroy(green))
    primary = check(runtime.cudaDeviceGetExecutionCtx(0))
    for context in (int(green), 0, 1, 12345):
        assert runtime.cudaExecutionCtxSynchronize(context)[0] != 0
        assert runtime.cudaExecutionCtxGetDevResource(context, SM)[0] != 0
        assert runtime.cudaExecutionCtxStreamCreate(context, NON_BLOCKING, 0)[0] != 0
        assert runtime.cudaExecutionCtxDestroy(context)[0] != 0
    assert runtime.cudaExecutionCtxDestroy(primary)[0] != 0
    assert runtime.cudaGreenCtxCreate(12345, 0, 0)[0] == Error.cudaErrorInvalidValue
    assert runtime.cudaGreenCtxCreate(12345, 0, 1)[0] == Error.cudaErrorInvalidValue
    assert runtime.cudaDeviceGetDevResource(99, SM)[0] != 0
    assert runtime.cudaGetLastError()[0] != 0


def test_conditional_nodes_of_an_execution_context(green):
    graph = check(runtime.cudaGraphCreate(0))
    handle = check(runtime.cudaGraphConditionalHandleCreate_v2(graph, green, 1, 1))
    params = runtime.cudaGraphNodeParams()
    params.type = runtime.cudaGraphNodeType.cudaGraphNodeTypeConditional
    params.conditional.handle = handle
    params.conditional.type = runtime.cudaGraphConditionalNodeType.cudaGraphCondTypeWhile
    params.conditional.size = 1
    params.conditional.ctx = green
    check(runtime.cudaGraphAddNode(graph, None, None, 0, params))
    assert len(params.conditional.phGraph_out) == 1
    check(runtime.cudaGraphDestroy(graph))
