"""Graphs and captures through cuda.bindings.runtime: conversion of lists and structs."""

import pytest
from cuda.bindings import driver, runtime

from helpers.device import check

E = runtime.cudaError_t


def test_graph_memory_attributes():
    used = check(
        runtime.cudaDeviceGetGraphMemAttribute(0, runtime.cudaGraphMemAttributeType.cudaGraphMemAttrUsedMemCurrent)
    )
    assert type(used) is driver.cuuint64_t


def test_capture_info():
    stream = check(runtime.cudaStreamCreateWithFlags(runtime.cudaStreamNonBlocking))
    status = runtime.cudaStreamCaptureStatus
    idle = check(runtime.cudaStreamGetCaptureInfo(stream))
    assert len(idle) == 6 and idle[0] is status.cudaStreamCaptureStatusNone
    check(runtime.cudaStreamBeginCapture(stream, runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal))
    device = check(runtime.cudaMallocAsync(64, stream))
    check(runtime.cudaMemsetAsync(device, 1, 64, stream))
    state, identity, graph, nodes, edges, count = check(runtime.cudaStreamGetCaptureInfo(stream))
    assert state is status.cudaStreamCaptureStatusActive and type(identity) is int and identity > 0
    assert type(graph) is runtime.cudaGraph_t and count == len(nodes) == 1 and type(nodes[0]) is runtime.cudaGraphNode_t
    assert all(type(e) is runtime.cudaGraphEdgeData for e in edges)
    check(runtime.cudaFreeAsync(device, stream))
    done = check(runtime.cudaStreamEndCapture(stream))
    assert type(done) is runtime.cudaGraph_t
    check(runtime.cudaGraphDestroy(done))
    check(runtime.cudaStreamDestroy(stream))


def test_graph_nodes_and_edges():
    graph = check(runtime.cudaGraphCreate(0))
    first = check(runtime.cudaGraphAddEmptyNode(graph, None, 0))
    second = check(runtime.cudaGraphAddEmptyNode(graph, [first], 1))
    assert runtime.cudaGraphGetNodes(graph) == (E.cudaSuccess, [], 2)
    nodes, count = check(runtime.cudaGraphGetNodes(graph, 2))
    assert count == 2 and set(nodes) == {first, second} and type(nodes[0]) is runtime.cudaGraphNode_t
    assert check(runtime.cudaGraphGetRootNodes(graph, 1)) == ([first], 1)
    before, after, edges, count = check(runtime.cudaGraphGetEdges(graph, 1))
    assert (before, after, len(edges), count) == ([first], [second], 1, 1)
    assert check(runtime.cudaGraphNodeGetDependencies(second, 1))[0] == [first]
    assert check(runtime.cudaGraphNodeGetDependentNodes(first, pNumDependentNodes=1))[0] == [second]
    kind = check(runtime.cudaGraphNodeGetType(first))
    assert kind is runtime.cudaGraphNodeType.cudaGraphNodeTypeEmpty
    with pytest.raises(ValueError):
        runtime.cudaGraphAddEmptyNode(graph, [first], 2)
    check(runtime.cudaGraphDestroy(graph))
