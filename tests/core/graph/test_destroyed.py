"""Graphs, instantiated graphs and nodes that the program destroys by handle, behind the objects of cuda.core."""

import gc

import numpy as np
import pytest
from cuda.bindings import driver, runtime
from cuda.core import launch
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.graph import EmptyNode, GraphDefinition


def destroy(result):
    assert result == (0,), result


@pytest.mark.parametrize("function", [driver.cuGraphDestroy, runtime.cudaGraphDestroy])
def test_definitions(device, stream, function):
    definition = GraphDefinition()
    node = definition.empty()
    child = node.embed(GraphDefinition())
    inner = child.child_graph
    graph = definition.instantiate()
    destroy(function(int(definition.handle)))
    assert not definition.is_valid and not node.is_valid and not inner.is_valid
    for use in (definition.empty, definition.nodes, definition.instantiate, node.join, inner.nodes):
        with pytest.raises((RuntimeError, CUDAError), match="not valid"):
            use()
    with pytest.raises((RuntimeError, ValueError, CUDAError)):
        graph.update(definition)
    graph.launch(stream)
    stream.sync()
    others = [GraphDefinition() for _ in range(20)]
    del definition, node, child, inner
    gc.collect()
    for other in others:
        other.empty()
        assert len(other.nodes()) == 1


@pytest.mark.parametrize("function", [driver.cuGraphExecDestroy, runtime.cudaGraphExecDestroy])
def test_instantiated_graphs(device, stream, code, one, numbers, function):
    x = numbers(0)
    definition = GraphDefinition()
    node = definition.launch(one, code.get_kernel("add"), x.buffer, np.int32(1))
    graph = definition.instantiate()
    graph.launch(stream)
    stream.sync()
    destroy(function(int(graph.handle)))
    for use in (graph.launch, graph.upload):
        with pytest.raises(CUDAError, match="destroyed by the program"):
            use(stream)
    with pytest.raises(CUDAError, match="destroyed by the program"):
        graph.update(definition)
    with pytest.raises(CUDAError, match="destroyed by the program"):
        graph[node].disable()
    others = [definition.instantiate() for _ in range(20)]
    graph.close()
    graph = None
    gc.collect()
    for other in others:
        other.launch(stream)
    assert x.get() == [21]


@pytest.mark.parametrize("function", [driver.cuGraphDestroyNode, runtime.cudaGraphDestroyNode])
def test_nodes(device, stream, function):
    definition = GraphDefinition()
    first, second = definition.empty(), definition.empty()
    child = definition.embed(GraphDefinition())
    inner = child.child_graph
    for node in (first, child):
        destroy(function(int(node.handle)))
    assert not first.is_valid and second.is_valid and not inner.is_valid
    for use in (first.join, lambda: first.pred, lambda: second.join(first), inner.nodes, lambda: child.child_graph):
        with pytest.raises(RuntimeError, match="not valid"):
            use()
    first.destroy()
    # New nodes get the handles of destroyed ones, and objects of their own.
    new = [definition.empty() for _ in range(20)]
    assert first not in [node for node in new if node is first] and not first.is_valid
    assert all(type(node) is EmptyNode and node.is_valid for node in new)
    assert definition.nodes() == {second, *new}
    definition.instantiate().launch(stream)
    stream.sync()


def test_a_graph_that_a_builder_made(device, stream, code, one, numbers):
    x = numbers(0)
    builder = stream.create_graph_builder().begin_building()
    launch(builder, one, code.get_kernel("add"), x.buffer, np.int32(1))
    builder.end_building()
    graph = builder.complete()
    destroy(driver.cuGraphExecDestroy(int(graph.handle)))
    with pytest.raises(CUDAError, match="destroyed by the program"):
        graph.launch(stream)
    again = builder.complete()
    again.launch(stream)
    again.close()
    builder.close()
    graph.close()
    assert x.get() == [1]
