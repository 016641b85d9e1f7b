"""Conditional nodes of builders and definitions."""

import gc
import weakref

import numpy as np
import pytest
from cuda.core import launch
from cuda.core.graph import GraphDefinition, IfElseNode, IfNode, SwitchNode, WhileNode
from cuda.core.typing import GraphConditionalType


@pytest.mark.parametrize("value", [0, 1])
def test_if_and_else_of_a_builder(device, stream, code, conditional_code, one, numbers, value):
    x, given = numbers(0, 0, 0), numbers(value)
    store = code.get_kernel("store")
    builder = device.create_graph_builder().begin_building()
    condition, other = builder.create_condition(default_value=0), builder.create_condition(0)
    for each in (condition, other):
        launch(builder, one, conditional_code.get_kernel("set"), each, given.buffer)
    then = builder.if_then(condition).begin_building()
    launch(then, one, store, x.buffer, np.int32(0), np.int32(1))
    then.end_building()
    yes, no = builder.if_else(other)
    for branch, number in ((yes, 2), (no, 3)):
        branch.begin_building()
        launch(branch, one, store, x.buffer, np.int32(number - 1), np.int32(number))
        branch.end_building()
    builder.end_building().complete().launch(stream)
    assert x.get() == ([1, 2, 0] if value else [0, 0, 3])


def test_while_of_a_builder(device, stream, conditional_code, one, numbers):
    x = numbers(5, 0)
    builder = device.create_graph_builder().begin_building()
    condition = builder.create_condition(1)
    body = builder.while_loop(condition).begin_building()
    launch(body, one, conditional_code.get_kernel("count_down"), condition, x.buffer)
    body.end_building()
    graph = builder.end_building().complete()
    graph.launch(stream)
    assert x.get() == [0, 5]


@pytest.mark.parametrize("value", [0, 1, 2, 3])
def test_switch_of_a_builder(device, stream, code, conditional_code, one, numbers, value):
    x, given = numbers(0, 0, 0), numbers(value)
    builder = device.create_graph_builder().begin_building()
    condition = builder.create_condition(7)
    launch(builder, one, conditional_code.get_kernel("set"), condition, given.buffer)
    branches = builder.switch(condition, 3)
    assert len(branches) == 3
    for index, branch in enumerate(branches):
        branch.begin_building()
        launch(branch, one, code.get_kernel("store"), x.buffer, np.int32(index), np.int32(1))
        branch.end_building()
    builder.end_building().complete().launch(stream)
    assert x.get() == [int(index == value) for index in range(3)]


def test_conditional_nodes_of_a_definition(device, stream, code, conditional_code, one, numbers):
    x, given = numbers(0, 0, 0), numbers(1)
    add = code.get_kernel("add")
    definition = GraphDefinition()
    conditions = [definition.create_condition(0) for _ in range(3)]
    last = definition
    for condition in conditions:
        last = last.launch(one, conditional_code.get_kernel("set"), condition, given.buffer)
    first = last.if_then(conditions[0])
    second = first.if_else(conditions[1])
    third = second.switch(conditions[2], 2)
    kinds = {first: (IfNode, "if", 1), second: (IfElseNode, "if", 2), third: (SwitchNode, "switch", 2)}
    for condition, (node, (cls, kind, count)) in zip(conditions, kinds.items(), strict=True):
        assert type(node) is cls and node.condition == condition and len(node.branches) == count
        assert node.cond_type == GraphConditionalType(kind)
    assert first.then == first.branches[0] and second.else_ == second.branches[1]
    first.then.launch(one, add, x.buffer, 1)
    second.then.launch(one, add, x.buffer, 10)
    second.else_.launch(one, add, x.buffer, 100)
    third.branches[1].launch(one, add, x.buffer, 1000)
    graph = definition.instantiate()
    graph.launch(stream)
    assert x.get()[0] == 1011
    body = first.then
    first.destroy()
    assert not body.is_valid
    with pytest.raises(RuntimeError, match="not valid"):
        body.nodes()


def test_while_of_a_definition(device, stream, conditional_code, one, numbers):
    x = numbers(3, 0)
    definition = GraphDefinition()
    condition = definition.create_condition(1)
    loop = definition.while_loop(condition)
    assert type(loop) is WhileNode and loop.cond_type == "while"
    loop.body.launch(one, conditional_code.get_kernel("count_down"), condition, x.buffer)
    definition.instantiate().launch(stream)
    assert x.get() == [0, 3]


class Callback:
    def __call__(self):
        pass


def test_a_destroyed_node_releases_what_its_branches_hold(device, released):
    """While the definition lives, and also from branches within branches."""
    definition = GraphDefinition()
    node = definition.if_else(definition.create_condition(1))
    loop = node.else_.while_loop(node.else_.create_condition(0))
    callbacks = [Callback() for _ in range(3)]
    kept = Callback()
    graphs = [node.then, node.else_, loop.body]
    nodes = [graph.callback(callback) for graph, callback in zip(graphs, callbacks, strict=True)]
    definition.callback(kept)
    references = [weakref.ref(callback) for callback in callbacks]
    assert all(int(graph.handle) for graph in graphs) and all(int(inner.handle) for inner in nodes)
    del callbacks
    gc.collect()
    assert all(reference() for reference in references)
    node.destroy()
    released(references)
    for graph in graphs:
        assert not graph.is_valid and int(graph.handle) == 0
    for inner in [*nodes, loop, node]:
        assert not inner.is_valid and inner.handle is None
        inner.destroy()
    assert len(definition.nodes()) == 1


def test_an_instantiated_graph_keeps_what_destroyed_branches_held(device, stream, code, one, numbers, released):
    x = numbers(1)
    buffer = device.allocate(4, stream=stream)
    buffer.copy_from(x.buffer, stream=stream)
    reference = weakref.ref(buffer)
    definition = GraphDefinition()
    node = definition.if_then(definition.create_condition(1))
    node.then.launch(one, code.get_kernel("add"), buffer, 1).memcpy(x.buffer, buffer, 4)
    graph = definition.instantiate()
    del buffer
    node.destroy()
    gc.collect()
    for _ in range(2):
        graph.launch(stream)
    assert x.get() == [3] and reference() is not None
    graph.close()
    released([reference])


def test_conditions_are_weakly_referable(device):
    definition = GraphDefinition()
    condition = definition.create_condition(1)
    reference = weakref.ref(condition)
    assert reference() is condition
    del condition
    gc.collect()
    assert reference() is None


def test_wrong_switches(device):
    definition = GraphDefinition()
    condition = definition.create_condition(0)
    for count, error in ((0, ValueError), (-1, ValueError), (2**32, ValueError), ("x", TypeError)):
        with pytest.raises(error, match="'count'"):
            definition.switch(condition, count)


def test_conditions_of_another_graph_are_refused(device):
    other = GraphDefinition()
    condition = other.create_condition(1)
    definition = GraphDefinition()
    builder = device.create_graph_builder().begin_building()
    for place in (definition, builder):
        for add in (place.if_then, place.while_loop, place.if_else, lambda it, place=place: place.switch(it, 2)):
            with pytest.raises(ValueError, match="'condition' belongs to another graph"):
                add(condition)
    assert not definition.nodes()
    builder.end_building()
    # Also if the other graph is gone.
    del other
    with pytest.raises(ValueError, match="'condition' belongs to another graph"):
        definition.if_then(condition)
    body = definition.if_then(definition.create_condition(1)).then
    body.if_then(body.create_condition(1))
