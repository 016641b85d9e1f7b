"""Graphs in large numbers leave nothing behind.

`CUPYRITE_GRAPH_BUILDS` is the number of graphs that each test builds and destroys (default 500).
"""

import os

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import launch
from cuda.core.graph import GraphBuilder, GraphDefinition

from helpers.memory import assert_flat

COUNT = int(os.environ.get("CUPYRITE_GRAPH_BUILDS", "500"))


@pytest.fixture
def build(device, stream, code, one, numbers):
    """Builds a definition of every type of node that needs no other object."""
    x, add = numbers(0), code.get_kernel("add")
    child = GraphDefinition()
    child.empty()

    def make():
        definition = GraphDefinition()
        node = definition.memset(x.buffer, 0, 4).launch(one, add, x.buffer, np.int32(1)).callback(int)
        node.embed(child).record(stream.record()).if_then(definition.create_condition(0)).then.empty()
        return definition, node

    return make


def test_definitions(build):
    assert_flat(build, COUNT)


def test_instantiated_graphs(build):
    assert_flat(lambda: build()[0].instantiate().close(), COUNT)


def test_launches_and_updates(build, stream):
    def make():
        definition, node = build()
        graph = definition.instantiate()
        graph.launch(stream)
        graph[node].update(int)
        graph.launch(stream)
        stream.sync()

    assert_flat(make, COUNT)


def test_builders(device, stream, code, one, numbers):
    x, add = numbers(0), code.get_kernel("add")

    def make():
        builder = device.create_graph_builder().begin_building()
        launch(builder, one, add, x.buffer, np.int32(1))
        left, right = builder.split(2)
        right.callback(int)
        GraphBuilder.join(left, right)
        builder.end_building().complete().launch(stream)
        stream.sync()

    assert_flat(make, COUNT)


def test_failed_captures(device, code, one, numbers):
    x, add = numbers(0), code.get_kernel("add")

    def make():
        builder = device.create_graph_builder().begin_building()
        launch(builder, one, add, x.buffer, np.int32(1))
        builder.callback(int)
        builder.close()
        builder = device.create_graph_builder().begin_building()
        builder.callback(int)
        graph = driver.cuStreamEndCapture(int(builder.stream.handle))[1]
        assert not builder.is_building
        driver.cuGraphDestroy(graph)

    assert_flat(make, COUNT)


def test_nodes_of_one_definition(device):
    definition = GraphDefinition()
    definition.empty()

    def make():
        definition.callback(int).destroy()
        definition.embed(GraphDefinition()).destroy()

    assert_flat(make, COUNT)
    assert len(definition.nodes()) == 1
