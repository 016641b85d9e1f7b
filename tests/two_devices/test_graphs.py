"""Graphs with nodes of two devices."""

import ctypes
import gc

import pytest
from cuda.core import Program, launch
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.graph import GraphDefinition

from helpers.two_devices import ONE, SOURCE, after, both_orders

LAUNCHES = 20
STEPS = [(3, 1), (5, 2), (7, 3)]


def fork_and_join(first, second, step, word, steps=STEPS):
    """A builder with three steps. The second one is captured in the other device's stream."""
    builder = first.create_graph_builder().begin_building()
    step(first, word, *steps[0], 300)
    second.wait(first.record())
    step(second, word, *steps[1], 300)
    first.wait(second.record())
    step(first, word, *steps[2])
    return builder.end_building()


def launch_often(graph, devices, streams):
    """Launches of a graph run one after the other, also those in different streams."""
    for turn in range(LAUNCHES):
        devices[turn // 2 % 2].set_current()
        graph.launch(streams[turn % len(streams)])
    for stream in streams:
        stream.sync()


class Chain:
    """A graph definition whose nodes run one after the other. A node's device is current when the node is added."""

    def __init__(self, devices, kernel):
        self.definition, self.devices, self.kernel = GraphDefinition(), devices, kernel
        self.node = self.definition.empty()

    def on(self, number):
        self.devices[number].set_current()
        return self.node

    def step(self, number, pointer, factor, summand, microseconds=200):
        arguments = map(ctypes.c_uint32, (factor, summand, microseconds))
        self.node = self.on(number).launch(ONE, self.kernel, pointer, *arguments)
        return self.node

    def copy(self, number, target, source):
        self.node = self.on(number).memcpy(target, source, 4)
        return self.node


@pytest.fixture
def chain(devices, code, step):
    """Creates a chain; `step` loads the kernel on both devices."""
    return lambda: Chain(devices, code.get_kernel("step"))


@both_orders
@pytest.mark.parametrize("memory", [0, 1])
@pytest.mark.parametrize("launched", [[0], [1], [0, 1]], ids=["on-0", "on-1", "on-both"])
def test_a_capture_forks_to_the_other_device_and_joins(devices, streams, words, step, order, memory, launched):
    first, second = (streams[n] for n in order)
    word = words(memory, 1)
    graph = fork_and_join(first, second, step, word).complete()
    assert word.get() == [1]
    graph.upload(streams[launched[0]])
    launch_often(graph, devices, [streams[n] for n in launched])
    assert word.get() == [after(1, *STEPS * LAUNCHES)]
    # The streams are not captured any longer.
    word.set(1)
    second.wait(first)
    step(second, word, 3, 1)
    second.sync()
    assert word.get() == [after(1, (3, 1))]
    graph.close()


@both_orders
def test_captured_kernels_run_on_the_device_of_their_stream(devices, streams, words, code, located, order):
    first, second = (streams[n] for n in order)
    kernel = code.get_kernel("where")
    mine, theirs = (words(n, 99) for n in order)
    for device in devices:
        device.set_current()
        builder = first.create_graph_builder().begin_building()
        second.wait(first)
        launch(second, ONE, kernel, theirs.buffer)
        launch(first, ONE, kernel, mine.buffer)
        first.wait(second)
        graph = builder.end_building().complete()
        for stream in streams:
            mine.set(99)
            theirs.set(99)
            graph.launch(stream)
            stream.sync()
            assert (mine.get(), theirs.get()) == ([order[0]], [order[1]])
        graph.close()


@both_orders
def test_a_capture_copies_between_devices(devices, streams, words, step, order):
    """Each device's kernel uses memory of its own device."""
    first, second = (streams[n] for n in order)
    mine, theirs = (words(n, 1) for n in order)
    builder = first.create_graph_builder().begin_building()
    step(first, mine, 3, 1, 300)
    second.wait(first)
    theirs.buffer.copy_from(mine.buffer, stream=second)
    step(second, theirs, 5, 2, 300)
    first.wait(second)
    mine.buffer.copy_from(theirs.buffer, stream=first)
    graph = builder.end_building().complete()
    launch_often(graph, devices, streams)
    assert mine.get() == theirs.get() == [after(1, *[(3, 1), (5, 2)] * LAUNCHES)]
    graph.close()


@both_orders
def test_a_fork_to_the_other_device_must_be_joined(streams, words, step, order):
    first, second = (streams[n] for n in order)
    word = words(order[1], 1)
    builder = first.create_graph_builder().begin_building()
    second.wait(first)
    step(second, word, 3, 1)
    with pytest.raises(CUDAError, match="CUDA_ERROR_STREAM_CAPTURE_UNJOINED"):
        builder.end_building()
    builder.close()
    for stream in (second, first):
        step(stream, word, 5, 2)
        stream.sync()
    assert word.get() == [after(1, (5, 2), (5, 2))]


@pytest.mark.parametrize("instantiated", [0, 1])
def test_a_definition_has_nodes_of_both_devices(devices, streams, words, chain, code, located, instantiated):
    """The context that is current when a kernel node is added is the node's."""
    made, kernel = chain(), code.get_kernel("where")
    a, b = words(0, 1), words(1, 1)
    places = words(0, 99), words(1, 99)
    made.step(0, a.buffer, 3, 1)
    made.copy(0, b.buffer, a.buffer)
    made.step(1, b.buffer, 5, 2)
    made.copy(1, a.buffer, b.buffer)
    for number in (1, 0):
        made.node = made.on(number).launch(ONE, kernel, places[number].buffer)
    devices[instantiated].set_current()
    graph = made.definition.instantiate()
    launch_often(graph, devices, streams)
    assert a.get() == b.get() == [after(1, *[(3, 1), (5, 2)] * LAUNCHES)]
    assert [word.get() for word in places] == [[0], [1]]
    graph.close()


def test_independent_nodes_of_both_devices_join(devices, streams, words, chain):
    made = chain()
    a, b = words(0, 1), words(1, 1)
    ends = []
    for number, word in enumerate((a, b)):
        made.node = made.definition.empty()
        ends.append(made.step(number, word.buffer, 3, number, 1000))
    made.node = made.definition.join(*ends)
    called = []
    made.node = made.node.callback(lambda: called.append(1))
    made.copy(0, b.buffer, a.buffer)
    graph = made.definition.instantiate()
    graph.launch(streams[1])
    streams[1].sync()
    assert a.get() == b.get() == [after(1, (3, 0))] and called == [1]
    graph.close()


def test_graphs_are_updated_by_definitions_with_the_same_devices(devices, streams, words, chain):
    a, b, c, d = words(0, 1), words(1, 1), words(0, 1), words(1, 1)

    def build(first, second, factor, devices=(0, 1)):
        made = chain()
        made.step(devices[0], first.buffer, factor, 1)
        made.copy(0, second.buffer, first.buffer)
        made.step(devices[1], second.buffer, factor, 2)
        return made.definition

    graph = build(a, b, 3).instantiate()
    for device, stream in zip(devices, streams):
        for one in (a, b, c, d):
            one.set(1)
        source = build(c, d, 5)
        device.set_current()
        graph.update(source)
        graph.launch(stream)
        stream.sync()
        assert [one.get()[0] for one in (a, b, c, d)] == [1, 1, after(1, (5, 1)), after(1, (5, 1), (5, 2))]
        # The context of a kernel node cannot change.
        with pytest.raises(CUDAError, match="CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"):
            graph.update(build(c, d, 7, (1, 0)))
        source = build(a, b, 3)
        device.set_current()
        graph.update(source)
        graph.launch(stream)
        stream.sync()
        assert [a.get(), b.get()] == [[after(1, (3, 1))], [after(1, (3, 1), (3, 2))]]
    graph.close()


@both_orders
def test_graphs_are_updated_by_captures_with_the_same_devices(devices, streams, words, step, order):
    first, second = (streams[n] for n in order)
    a, b = words(0, 1), words(0, 1)
    graph = fork_and_join(first, second, step, a).complete()
    steps = [(11, 4), (13, 5), (17, 6)]
    graph.update(fork_and_join(first, second, step, b, steps))
    launch_often(graph, devices, streams)
    assert a.get() == [1] and b.get() == [after(1, *steps * LAUNCHES)]
    with pytest.raises(CUDAError, match="CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"):
        graph.update(fork_and_join(second, first, step, b, steps))
    graph.close()


def test_nodes_of_an_instantiated_graph_are_updated(devices, streams, words, chain):
    """Each with its own device current."""
    made = chain()
    a, b = words(0, 1), words(1, 1)
    nodes = [made.step(0, a.buffer, 3, 1), made.step(1, b.buffer, 3, 1)]
    graph = made.definition.instantiate()
    for number, (node, word) in enumerate(zip(nodes, (a, b))):
        devices[number].set_current()
        arguments = (word.buffer, *map(ctypes.c_uint32, (5, number, 0)))
        graph[node].update(config=ONE, kernel=made.kernel, args=arguments)
    graph.launch(streams[0])
    graph[nodes[0]].disable()
    graph.launch(streams[1])
    for stream in streams:
        stream.sync()
    assert [a.get(), b.get()] == [[after(1, (5, 0))], [after(1, (5, 1), (5, 1))]]
    graph.close()


@both_orders
@pytest.mark.parametrize("memory", [0, 1])
def test_a_child_graph_of_the_other_device(devices, streams, words, chain, order, memory):
    mine, other = order
    word = words(memory, 1)
    child = chain()
    child.step(other, word.buffer, *STEPS[1])
    made = chain()
    made.step(mine, word.buffer, *STEPS[0])
    made.node = made.on(mine).embed(child.definition)
    made.step(mine, word.buffer, *STEPS[2])
    del child
    graph = made.definition.instantiate()
    launch_often(graph, devices, streams)
    assert word.get() == [after(1, *STEPS * LAUNCHES)]
    graph.close()


@both_orders
def test_a_capture_embeds_a_capture_of_the_other_device(devices, streams, words, step, order):
    first, second = (streams[n] for n in order)
    word = words(order[0], 1)
    child = second.create_graph_builder().begin_building()
    step(second, word, *STEPS[1], 300)
    child.end_building()
    builder = first.create_graph_builder().begin_building()
    step(first, word, *STEPS[0], 300)
    builder.embed(child)
    step(first, word, *STEPS[2])
    child.close()
    graph = builder.end_building().complete()
    launch_often(graph, devices, streams)
    assert word.get() == [after(1, *STEPS * LAUNCHES)]
    graph.close()


@both_orders
def test_memory_of_a_graph_is_used_by_both_devices(devices, streams, words, chain, order):
    owner, other = order
    made, result = chain(), words(other, 0)
    allocated = made.on(owner).allocate(4, device=owner, peer_access=[other])
    assert allocated.device_id == owner and allocated.peer_access == (other,)
    made.node = allocated
    made.node = made.on(owner).memset(allocated.dptr, 1, 4)
    pointer = ctypes.c_uint64(allocated.dptr)
    made.step(owner, pointer, 3, 1)
    made.step(other, pointer, 5, 2)
    made.copy(owner, result.buffer, allocated.dptr)
    made.node = made.on(owner).deallocate(allocated.dptr)
    graph = made.definition.instantiate()
    for stream in (*streams, *streams):
        result.set(0)
        graph.launch(stream)
        stream.sync()
        assert result.get() == [after(0x01010101, (3, 1), (5, 2))]
    graph.close()


@both_orders
def test_event_nodes_order_a_graph_and_streams_of_the_other_device(devices, streams, words, chain, step, order):
    """The graph of one device waits for an event of the other one and records an event of its own."""
    first, second = (streams[n] for n in order)
    before, done = (devices[n].create_event() for n in reversed(order))
    word, made = words(0, 1), chain()
    made.node = made.on(order[0]).wait(before)
    made.step(order[0], word.buffer, *STEPS[1], 1000)
    made.node = made.on(order[0]).record(done)
    graph = made.definition.instantiate()
    for turn in range(LAUNCHES):
        devices[turn % 2].set_current()
        step(second, word, *STEPS[0], 300)
        second.record(before)
        graph.launch(first)
        second.wait(done)
        step(second, word, *STEPS[2])
        second.sync()
        assert done.is_done
    assert word.get() == [after(1, *STEPS * LAUNCHES)]
    graph.close()


@both_orders
def test_everything_is_closed_while_launches_are_pending(devices, words, order):
    """In any order, also with the other device current: the launches complete."""
    for closing in (("code", "builder", "streams", "graph"), ("graph", "streams", "builder", "code")):
        for device in devices:
            device.set_current()
            made = {"code": Program(SOURCE, "c++").compile("ptx")}
            kernel = made["code"].get_kernel("step")
            first, second = made["streams"] = [devices[n].create_stream() for n in order]
            word = words(order[1], 1)

            def step(stream, word, factor, summand, microseconds=0, kernel=kernel):
                launch(stream, ONE, kernel, word.buffer, *map(ctypes.c_uint32, (factor, summand, microseconds)))

            made["builder"] = fork_and_join(first, second, step, word)
            made["graph"] = made["builder"].complete()
            made["graph"].launch(first)
            made["graph"].launch(second)
            last = second.record()
            del step, kernel, first, second
            for name in closing:
                for one in made[name] if name == "streams" else [made[name]]:
                    if name != "code":  # Code has no close().
                        one.close()
                del made[name], one
                gc.collect()
            devices[1 - device.device_id].set_current()
            last.sync()
            for each in devices:
                each.sync()
            assert word.get() == [after(1, *STEPS * 2)]
            last.close()
