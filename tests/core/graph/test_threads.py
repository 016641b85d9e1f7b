"""Threads that share definitions, builders and instantiated graphs.

NVIDIA's driver does not synchronise access to its graphs: concurrent calls crash it. So these tests pass on any device if
the calls are serialised, and end the process on a GPU if they are not.
"""

import contextlib
import gc
import itertools
import threading
import weakref

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import Device, launch
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.graph import GraphBuilder, GraphDefinition

from helpers.programs import python
from helpers.threads import in_threads

# What a call may raise because another thread was faster.
LATE = (CUDAError, RuntimeError, ValueError)


@pytest.fixture
def definition(device):
    return GraphDefinition()


def together(*works, count=60):
    """Calls each function `count` times, each in its own thread."""

    def run(number):
        Device(0).set_current()
        for _ in range(count):
            works[number]()

    in_threads(len(works), run)


def late(call):
    """`call`, which may find that another thread was faster."""

    def attempt():
        with contextlib.suppress(*LATE):
            call()

    return attempt


def grow(definition):
    """Adds two nodes and an edge, and destroys one."""
    node = definition.empty()
    after = node.join()
    node.succ.discard(after)
    node.succ.add(after)
    node.destroy()


def test_readers_and_writers_of_a_definition(definition, tmp_path):
    definition.empty().join()

    def read():
        for node in definition.nodes():
            with contextlib.suppress(*LATE):
                assert node.type is not None
                assert len(node.pred) <= 1
        definition.edges()

    numbers = itertools.count()
    together(
        lambda: grow(definition),
        lambda: grow(definition),
        read,
        read,
        lambda: definition.debug_dot_print(tmp_path / f"{next(numbers)}.dot"),
        lambda: definition.instantiate().close(),
    )
    assert len(definition.nodes()) == 2 + 2 * 60


def test_destroying_nodes_that_other_threads_use(definition):
    shared = [definition.empty()]

    def replace():
        shared.append(definition.empty())
        shared[-2].destroy()

    def use():
        node = shared[-1]
        with contextlib.suppress(*LATE):
            node.join()
        with contextlib.suppress(*LATE):
            repr((node.type, node.pred, node.succ))
        with contextlib.suppress(*LATE):
            node.succ = [definition.empty()]

    def destroy():
        shared[-1].destroy()

    def destroy_listed():
        for node in itertools.islice(definition.nodes(), 3):
            node.destroy()

    together(replace, use, use, destroy, destroy_listed)
    assert all(node.is_valid for node in definition.nodes())


def test_one_thread_destroys_a_node_that_several_destroy(definition, released):
    class Callback:
        def __call__(self):
            pass

    callbacks = [Callback() for _ in range(50)]
    alive = [weakref.ref(callback) for callback in callbacks]
    nodes = [definition.callback(callback) for callback in callbacks]
    callbacks.clear()
    in_threads(4, lambda _: [node.destroy() for node in nodes])
    assert not definition.nodes()
    released(alive)


def test_child_graphs_whose_node_is_destroyed(definition):
    shared = []

    def replace():
        shared.append(definition.embed(GraphDefinition()))
        if len(shared) > 1:
            shared[-2].destroy()

    def use():
        if shared:
            inner = shared[-1].child_graph
            inner.nodes()
            inner.instantiate()

    together(replace, late(use), late(use))


def test_definitions_that_embed_each_other(device):
    a, b = GraphDefinition(), GraphDefinition()
    a.empty()
    b.empty()

    def exchange(one, other):
        def work():
            one.embed(other).destroy()
            one.empty()

        return work

    together(exchange(a, b), exchange(b, a), a.nodes, b.edges, count=20)
    assert len(a.nodes()) == len(b.nodes()) == 21


def test_child_graphs_that_several_threads_replace(device):
    a, b, child = GraphDefinition(), GraphDefinition(), GraphDefinition()
    child.empty()
    node_a, node_b = a.embed(child), b.embed(child)
    together(
        late(lambda: node_a.update(child)),
        late(lambda: node_b.update(child)),
        late(lambda: node_a.child_graph.nodes()),
        lambda: grow(child),
        count=20,
    )


def test_updates_of_nodes(definition, device, stream, code, one, numbers):
    x = numbers(0)
    add = code.get_kernel("add")
    kernel = definition.launch(one, add, x.buffer, np.int32(1))
    fill = definition.memset(x.buffer, 0, 4)
    host = definition.callback(lambda: None)
    event = definition.record(stream.record())

    together(
        lambda: kernel.update(kernel=add, args=(x.buffer, np.int32(1))),
        lambda: kernel.update(config=one),
        lambda: fill.update(value=0, width=4),
        lambda: host.update(lambda: None),
        lambda: event.update(stream.record()),
        lambda: repr((kernel.kernel, kernel.config, fill.dptr, host.callback, event.event)),
        lambda: grow(definition),
    )


def test_an_instantiated_graph_in_all_threads(definition, device, stream, code, one, numbers):
    x = numbers(0)
    add = code.get_kernel("add")
    node = definition.launch(one, add, x.buffer, np.int32(1))
    other = GraphDefinition()
    other.launch(one, add, x.buffer, np.int32(1))
    graph = definition.instantiate()
    streams = [device.create_stream() for _ in range(2)]
    together(
        lambda: graph.launch(streams[0]),
        lambda: graph.launch(streams[1]),
        lambda: graph[node].update(config=one, kernel=add, args=(x.buffer, np.int32(1))),
        lambda: graph.update(other),
        lambda: graph.update(definition),
        lambda: (graph[node].disable(), graph[node].enable()),
        lambda: graph.upload(streams[0]),
        lambda: definition.instantiate().close(),
        lambda: other.edges(),
    )
    for own in streams:
        own.sync()
    # Some launches ran while the node was disabled.
    assert 0 <= x.get()[0] <= 120


def test_updates_from_definitions_in_both_directions(device, stream):
    a, b = GraphDefinition(), GraphDefinition()
    node_a, node_b = a.embed(GraphDefinition()), b.embed(GraphDefinition())
    graph_a, graph_b = a.instantiate(), b.instantiate()
    together(
        lambda: graph_a.update(b),
        lambda: graph_b.update(a),
        lambda: graph_a[node_a].update(GraphDefinition()),
        lambda: graph_b[node_b].update(GraphDefinition()),
        lambda: graph_a.launch(stream),
        lambda: graph_b.launch(stream),
    )
    stream.sync()


def test_closing_a_graph_that_other_threads_use(definition, device, stream, code, one, numbers):
    x = numbers(0)
    add = code.get_kernel("add")
    node = definition.launch(one, add, x.buffer, np.int32(1))
    shared = [definition.instantiate()]

    def replace():
        shared.append(definition.instantiate())
        shared[-2].close()

    together(
        replace,
        late(lambda: shared[-1].launch(stream)),
        late(lambda: shared[-1][node].update(config=one, kernel=add, args=(x.buffer, np.int32(1)))),
        late(lambda: shared[-1].update(definition)),
        late(lambda: shared[-1].close()),
    )
    stream.sync()


def test_dropping_definitions_while_their_graphs_are_closed(device, stream):
    ran = []
    for _ in range(100):
        definitions = [GraphDefinition()]
        definitions[0].callback(lambda: ran.append(1))
        graphs = [definitions[0].instantiate() for _ in range(2)]
        graphs[0].launch(stream)
        objects = [definitions, graphs[:1], graphs[1:]]
        del definitions, graphs
        in_threads(3, lambda number, objects=objects: objects[number].clear())
    stream.sync()
    assert len(ran) == 100


def test_recorders_of_a_builder(device, code, one, numbers):
    x = numbers(0)
    add = code.get_kernel("add")
    builder = device.create_graph_builder().begin_building()
    child = GraphDefinition()
    child.empty()
    embedded = device.create_graph_builder().begin_building()
    embedded.callback(lambda: None)
    embedded.end_building()
    together(
        lambda: launch(builder, one, add, x.buffer, np.int32(1)),
        lambda: builder.callback(lambda: None),
        lambda: builder.embed(embedded),
        lambda: x.buffer.fill(0, stream=builder),
        lambda: builder.is_building and builder.stream,
        count=30,
    )
    builder.end_building()
    assert len(builder.graph_definition.nodes()) == 120


def test_branches_in_threads(device, stream, code, one, numbers):
    x = numbers(*[0] * 4)
    store = code.get_kernel("store")
    builder = device.create_graph_builder().begin_building()
    branches = builder.split(4)

    def work(number):
        Device(0).set_current()
        for value in range(20):
            launch(branches[number], one, store, x.buffer, np.int32(number), np.int32(value))
            branches[number].callback(lambda: None)

    in_threads(4, work)
    GraphBuilder.join(*branches)
    graph = builder.end_building().complete()
    assert len(builder.graph_definition.nodes()) == 160
    graph.launch(stream)
    assert x.get() == [19] * 4


@pytest.mark.parametrize("end", ["end_building", "close"])
def test_ending_a_capture_into_which_others_record(device, code, one, numbers, end):
    """What is recorded becomes part of the graph or is refused; nothing runs."""
    x = numbers(0)
    add = code.get_kernel("add")
    ran = []
    child = device.create_graph_builder().begin_building()
    child.callback(lambda: ran.append(1))
    child.end_building()

    def recorders(builder):
        return [
            lambda: builder.callback(lambda: ran.append(1)),
            lambda: builder.embed(child),
            lambda: launch(builder, one, add, x.buffer, np.int32(1)),
            lambda: x.buffer.fill(1, stream=builder),
            lambda: builder.if_then(builder.create_condition(1)).graph_definition.nodes(),
            lambda: builder.if_then(builder.create_condition(1)),
        ]

    for _ in range(20):
        builder = device.create_graph_builder().begin_building()

        def record(number, builder=builder):
            Device(0).set_current()
            call = late(recorders(builder)[number])
            for _ in range(10):
                call()

        threads = [threading.Thread(target=record, args=(number,), daemon=True) for number in range(6)]
        for thread in threads:
            thread.start()
        with contextlib.suppress(*LATE):
            getattr(builder, end)()
        for thread in threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in threads)
        with contextlib.suppress(*LATE):
            builder.end_building()
        builder.close()
    gc.collect()
    assert not ran
    assert x.get() == [0]


def test_several_threads_end_a_capture(device):
    for _ in range(20):
        builder = device.create_graph_builder().begin_building()
        ended = []

        def end(_, builder=builder, ended=ended):
            with contextlib.suppress(*LATE):
                ended.append(builder.end_building())

        in_threads(4, end)
        assert ended == [builder]
        builder.complete().close()
        builder.close()


def test_callbacks_run_while_other_threads_use_the_graph(definition, stream):
    """No thread keeps the GIL, which a callback needs, while it waits for a lock of a graph."""
    seen = []
    node = definition.callback(lambda: seen.append(definition.is_valid))
    graph = definition.instantiate()
    together(
        lambda: graph.launch(stream),
        lambda: grow(definition),
        lambda: node.callback,
        lambda: (node.type, node.pred),
        lambda: definition.instantiate(),
        stream.sync,
        count=20,
    )
    stream.sync()
    assert seen == [True] * 20


def test_destructors_of_what_a_graph_retained_use_graphs(definition, stream):
    """They run without a lock."""
    other = GraphDefinition()
    seen = []

    class Callback:
        def __call__(self):
            pass

        def __del__(self):
            seen.append(len(other.nodes()) + len(definition.nodes()))
            other.empty()

    def work():
        node = definition.callback(Callback())
        node.update(Callback())
        node.destroy()

    def reverse():
        other.callback(Callback()).destroy()

    together(work, work, reverse, reverse, count=20)
    gc.collect()
    definition.nodes()
    assert len(seen) == 2 * 2 * 20 + 2 * 20


def test_handles_of_destroyed_nodes_are_used_again(definition):
    """An object of a destroyed node never refers to a later node with the same handle."""
    for _ in range(50):
        node = definition.empty()
        (listed,) = definition.nodes()
        assert listed is node
        assert driver.cuGraphDestroyNode(int(node.handle)) == (0,)
        again = definition.empty()
        assert not node.is_valid and again.is_valid and again is not node
        assert definition.nodes() == {again}
        again.destroy()


REPLACED = """
    import contextlib, sys, threading, time
    import numpy as np
    from cuda.core import Device, LaunchConfig, Program, launch

    device = Device(0)
    device.set_current()
    code = Program('extern "C" __global__ void add(int *x, int value) { atomicAdd(x, value); }', "c++").compile("cubin")
    add, one = code.get_kernel("add"), LaunchConfig(grid=1, block=1)
    stream = device.create_stream()
    memory = device.allocate(256, stream=stream)
    child = device.create_graph_builder().begin_building()
    child.callback(lambda: None)
    child.end_building()
    current = [device.create_graph_builder().begin_building()]
    done = threading.Event()
    calls = {
        "callback": lambda it: it.callback(lambda: None),
        "launch": lambda it: launch(it, one, add, memory, np.int32(1)),
        "embed": lambda it: it.embed(child),
        "fill": lambda it: memory.fill(0, stream=it),
        "nodes": lambda it: it.if_then(it.create_condition(1)).graph_definition.nodes(),
        "condition": lambda it: it.if_then(it.create_condition(1)),
    }
    chosen = [calls[name] for name in sys.argv[1:]] or list(calls.values())

    def run(call):
        Device(0).set_current()
        while not done.is_set():
            with contextlib.suppress(Exception):
                call(current[0])

    threads = [threading.Thread(target=run, args=(call,)) for call in chosen * (4 // len(chosen) or 1)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 1
    while time.monotonic() < until:
        time.sleep(0.002)
        old, current[0] = current[0], device.create_graph_builder().begin_building()
        with contextlib.suppress(Exception):
            old.end_building().complete().close()
        old.close()
    done.set()
    for thread in threads:
        thread.join()
    print("done")
"""


@pytest.mark.parametrize("calls", ["callback", "launch", "embed", "fill", "nodes", "condition", ""])
def test_builders_that_are_replaced_while_threads_record(calls):
    """One thread ends, instantiates and destroys captures into which others record. In a process of its own."""
    done = python(REPLACED, *calls.split())
    assert done.returncode == 0 and done.stdout == "done\n", (done.returncode, done.stderr[-3000:])
