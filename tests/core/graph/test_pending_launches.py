"""What a graph owns stays until its launches are done, in whatever stream they run, when the graph is closed or updated."""

import pytest

from helpers.device import on_cpu_device
from helpers.programs import python

# In a process of its own: once a program has taken the handle of a graph, the driver keeps track of later graphs.
PRELUDE = """
    import gc, sys, threading, time, weakref
    from cuda.bindings import driver
    from cuda.core import Device, LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Stream
    from cuda.core.graph import GraphDefinition
    from helpers.waits import until, until_blocked

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    entered, proceed = threading.Event(), threading.Event()

    def block():
        entered.set()
        assert proceed.wait(60)

    class Callback:
        # Runs after `block`: a callable is referred to while it runs.

        def __call__(self):
            calls.append(1)

    calls = []

    def after(definition, first):
        return definition.join(definition.callback(first))

    def made(first=block):
        definition, callback = GraphDefinition(), Callback()
        after(definition, first).callback(callback)
        return definition.instantiate(), weakref.ref(callback)

    def expect_alive(alive):
        for _ in range(5):
            gc.collect()
            device.create_stream().sync()
        assert alive() is not None

    def expect_released(alive, wait):
        until = time.monotonic() + 20
        while alive() is not None and time.monotonic() < until:
            wait()
            gc.collect()
        assert alive() is None

    def finish(graph, alive, wait=stream.sync):
        expect_alive(alive)
        graph.close()
        expect_alive(alive)
        before = len(calls)
        proceed.set()
        expect_released(alive, wait)
        assert len(calls) == before + 1
        print("done")
"""


def run(code, *arguments):
    done = python(PRELUDE + code, *arguments)
    assert done.returncode == 0 and done.stdout == "done\n", (done.returncode, done.stdout, done.stderr[-3000:])


@pytest.mark.parametrize(
    "launch_stream",
    ["stream", "LEGACY_DEFAULT_STREAM", "PER_THREAD_DEFAULT_STREAM", "device.default_stream"],
)
def test_closed_while_a_launch_runs(launch_stream):
    run(
        """
    graph, alive = made()
    graph.launch(eval(sys.argv[1]))
    assert entered.wait(60)
    finish(graph, alive)
    """,
        launch_stream,
    )


def test_closed_by_another_thread_than_the_one_that_launched_in_its_default_stream():
    run("""
    graph, alive = made()
    launched = threading.Event()

    def launch():
        device.set_current()
        graph.launch(PER_THREAD_DEFAULT_STREAM)
        launched.set()
        assert proceed.wait(60)
        PER_THREAD_DEFAULT_STREAM.sync()

    thread = threading.Thread(target=launch)
    thread.start()
    assert launched.wait(60) and entered.wait(60)
    finish(graph, alive)
    thread.join()
    """)


@pytest.mark.parametrize("owned", [False, True])
def test_streams_that_the_program_destroys_by_handle(owned):
    """Their work goes on. It is done when the device is, if no event could tell."""
    run(
        """
    if sys.argv[1] == "owned":
        queue = device.create_stream()
        handle = int(queue.handle)
    else:
        status, handle = driver.cuStreamCreate(1)
        assert status == 0
        queue = Stream.from_handle(int(handle))
    graph, alive = made()
    graph.launch(queue)
    assert entered.wait(60)
    assert driver.cuStreamDestroy(handle) == (0,)
    finish(graph, alive, device.sync)
    """,
        "owned" if owned else "foreign",
    )


def test_a_stream_that_is_captured_when_the_graph_is_closed():
    run("""
    graph, alive = made()
    queue = device.create_stream()
    graph.launch(queue)
    assert entered.wait(60)
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    assert driver.cuStreamBeginCapture(queue.handle, mode) == (0,)
    expect_alive(alive)
    graph.close()
    expect_alive(alive)
    status, captured = driver.cuStreamEndCapture(queue.handle)
    assert status == 0 and driver.cuGraphDestroy(captured) == (0,)
    expect_alive(alive)
    finish(graph, alive)
    """)


def test_launches_by_handle():
    run("""
    graph, alive = made()
    assert driver.cuGraphLaunch(graph.handle, stream.handle) == (0,)
    assert entered.wait(60)
    graph.close()
    expect_alive(alive)
    proceed.set()
    expect_released(alive, device.sync)
    entered.clear(), proceed.clear()
    # The driver keeps track of graphs from now on, so that no wait for the device is needed.
    graph, alive = made()
    assert driver.cuGraphLaunch(graph.handle, stream.handle) == (0,)
    assert entered.wait(60)
    finish(graph, alive)
    """)


@pytest.mark.parametrize("taken", ["definition", "node"])
def test_graphs_that_the_program_instantiates_by_handle(taken):
    run(
        """
    definition, callback = GraphDefinition(), Callback()
    node = after(definition, block).callback(callback)
    alive = weakref.ref(callback)
    handle = int(definition.handle)
    if sys.argv[1] == "node":
        assert int(node.handle)
    status, instance = driver.cuGraphInstantiate(handle, 0)
    assert status == 0
    assert driver.cuGraphLaunch(instance, stream.handle) == (0,)
    assert entered.wait(60)
    del callback, node, definition
    expect_alive(alive)
    assert driver.cuGraphExecDestroy(instance) == (0,)
    expect_alive(alive)
    proceed.set()
    expect_released(alive, stream.sync)
    print("done")
    """,
        taken,
    )


def test_many_streams_and_many_launches():
    """Streams whose work is done are forgotten; one that is busy is not."""
    run("""
    def block_the_last():
        if len(calls) == 100:
            block()

    graph, alive = made(block_the_last)
    for _ in range(50):
        queue = device.create_stream()
        graph.launch(queue)
        graph.launch(PER_THREAD_DEFAULT_STREAM)
        queue.sync()
    PER_THREAD_DEFAULT_STREAM.sync()
    graph.launch(stream)
    assert entered.wait(60)
    finish(graph, alive)
    """)


def test_many_streams_that_the_program_destroys_by_handle():
    run("""
    def block_the_last():
        if len(calls) == 40:
            block()

    graph, alive = made(block_the_last)
    for _ in range(40):
        queue = device.create_stream()
        graph.launch(queue)
        assert driver.cuStreamDestroy(queue.handle) == (0,)
    device.sync()
    assert len(calls) == 40
    graph.launch(stream)
    assert entered.wait(60)
    finish(graph, alive, device.sync)
    """)


def test_updates_drop_what_only_earlier_launches_use():
    run("""
    definition, callback = GraphDefinition(), Callback()
    node = after(definition, block).callback(callback)
    first = weakref.ref(callback)
    graph = definition.instantiate()
    callback = Callback()
    second = weakref.ref(callback)
    graph[node].update(callback)
    graph.launch(stream)
    assert entered.wait(60)
    graph[node].update(print)
    del callback
    expect_alive(second)
    del definition, node
    graph.close()
    expect_alive(second)
    proceed.set()
    expect_released(first, stream.sync)
    expect_released(second, stream.sync)
    print("done")
    """)


def test_a_context_that_is_reset_after_the_launch():
    run("""
    graph, alive = made()
    proceed.set()
    graph.launch(stream)
    stream.sync()
    assert driver.cuDevicePrimaryCtxReset(0) == (0,)
    graph.close()
    expect_released(alive, lambda: None)
    print("done")
    """)


@pytest.mark.skipif(not on_cpu_device(), reason="a GPU's driver need not wait for host functions in a reset")
def test_a_context_that_is_reset_while_a_launch_runs():
    run("""
    graph, alive = made()
    graph.launch(stream)
    assert entered.wait(60)
    thread = threading.Thread(target=driver.cuDevicePrimaryCtxReset, args=(0,))
    thread.start()
    until_blocked(thread.native_id)
    graph.close()
    for _ in range(20):
        GraphDefinition().instantiate().close()
        gc.collect()
    assert alive() is not None
    proceed.set()
    thread.join()
    expect_released(alive, lambda: GraphDefinition().instantiate().close())
    print("done")
    """)


def test_a_captured_graph_that_the_program_instantiates_by_the_capture_s_handle():
    run("""
    builder, callback = device.create_graph_builder().begin_building(), Callback()
    builder.callback(block)
    builder.callback(callback)
    alive = weakref.ref(callback)
    handle = driver.cuStreamGetCaptureInfo(builder.stream.handle)[3]
    graph = builder.end_building().complete()
    status, instance = driver.cuGraphInstantiate(handle, 0)
    assert status == 0
    graph.close()
    builder.close()
    del builder, callback
    assert driver.cuGraphLaunch(instance, stream.handle) == (0,)
    assert entered.wait(60)
    expect_alive(alive)
    proceed.set()
    stream.sync()
    assert calls == [1] and driver.cuGraphExecDestroy(instance) == (0,)
    expect_released(alive, stream.sync)
    print("done")
    """)


def test_owners_of_streams_that_refer_to_the_graph_are_collected():
    run("""
    class Owner:
        def __init__(self):
            status, self.handle = driver.cuStreamCreate(1)
            self.graph, _ = made(lambda: None)
            self.stream = device.create_stream(self)
            self.graph.launch(self.stream)

        def __cuda_stream__(self):
            return (0, int(self.handle))

    owners = [weakref.ref(Owner()) for _ in range(10)]
    device.sync()
    gc.collect()
    assert [owner() for owner in owners] == [None] * 10
    print("done")
    """)


def test_updates_between_launches_in_a_thread_s_default_stream():
    run("""
    definition = GraphDefinition()
    node = definition.callback(print)
    graph = definition.instantiate()
    alive = []
    for _ in range(50):
        callback = Callback()
        alive.append(weakref.ref(callback))
        graph[node].update(callback)
        del callback
        graph.launch(PER_THREAD_DEFAULT_STREAM)
        until(lambda: len(calls) == len(alive), pause=0.0005)

    def most_are_released():
        for _ in range(60):
            GraphDefinition().instantiate().close()
        return sum(reference() is not None for reference in alive) < 10

    until(most_are_released)
    print("done")
    """)
