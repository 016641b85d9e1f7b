"""GraphBuilder: captures, splits, child graphs, callbacks, conditions, and every wrong order of calls."""

import contextlib
import ctypes
import gc
import threading
import warnings
import weakref

import numpy as np
import pytest
from cuda.bindings import driver, runtime
from cuda.core import Device, LaunchConfig, Stream, launch
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.graph import (
    Graph,
    GraphBuilder,
    GraphCompleteOptions,
    GraphDebugPrintOptions,
    KernelNode,
)

from helpers.threads import in_a_thread, in_threads


def test_captured_launches_run_when_the_graph_is_launched(device, stream, code, one, numbers):
    x = numbers(1)
    builder = device.create_graph_builder()
    assert not builder.is_building and not builder.is_closed
    assert builder.begin_building() is builder
    assert builder.is_building
    launch(builder, one, code.get_kernel("add"), x.buffer, np.int32(2))
    launch(builder, one, code.get_kernel("twice"), x.buffer)
    assert builder.end_building() is builder
    assert not builder.is_building
    assert x.get() == [1]
    graph = builder.complete()
    assert isinstance(graph, Graph) and int(graph.handle) != 0
    graph.upload(stream)
    graph.launch(stream)
    graph.launch(stream)
    assert x.get() == [((1 + 2) * 2 + 2) * 2]
    graph.close()
    assert graph.is_closed and int(graph.handle) == 0
    graph.close()
    with pytest.raises(RuntimeError, match="Graph was closed"):
        graph.launch(stream)


def test_builder_of_a_stream_captures_that_stream(stream, code, one, numbers):
    x = numbers(1)
    builder = stream.create_graph_builder().begin_building("thread_local")
    assert builder.stream == stream
    assert builder.__cuda_stream__() == (0, int(stream.handle))
    launch(stream, one, code.get_kernel("add"), x.buffer, np.int32(5))
    launch(builder.stream, one, code.get_kernel("add"), x.buffer, np.int32(6))
    graph = builder.end_building().complete()
    assert x.get() == [1]
    graph.launch(stream)
    assert x.get() == [12]


def test_launch_with_a_builder_does_not_warn(device, code, one, numbers):
    x = numbers(1)
    builder = device.create_graph_builder().begin_building()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        launch(builder, one, code.get_kernel("twice"), x.buffer)
    builder.end_building()


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed", None])
def test_modes(device, mode):
    builder = device.create_graph_builder()
    builder.begin_building(mode) if mode else builder.begin_building()
    # An allocation outside of the stream's order is allowed in the default mode, "relaxed", alone.
    status, address = driver.cuMemAlloc(64)
    if mode in (None, "relaxed"):
        assert status == 0
        builder.end_building().complete().close()
        assert driver.cuMemFree(address) == (0,)
    else:
        assert status == driver.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        with pytest.raises(CUDAError, match="CAPTURE_INVALIDATED"):
            builder.end_building()


def test_wrong_modes(device):
    builder = device.create_graph_builder()
    for mode in ("GLOBAL", "", None, 3, object()):
        with pytest.raises(
            ValueError if mode is None or isinstance(mode, str) else TypeError,
            match="'mode' is .*; expected 'global', 'thread_local' or 'relaxed'",
        ):
            builder.begin_building(mode)
    assert not builder.is_building


def test_wrong_orders_name_the_missing_call(device, stream, code, one, numbers):
    x = numbers(1)
    with pytest.raises(NotImplementedError, match="create_graph_builder"):
        GraphBuilder()
    with pytest.raises(RuntimeError, match="instantiated"):
        Graph()
    builder = device.create_graph_builder()
    idle = "has not begun building: call begin_building\\(\\) first"
    for call in (
        builder.end_building,
        builder.complete,
        builder.create_condition,
        lambda: builder.split(2),
        lambda: builder.callback(print),
        lambda: builder.embed(builder),
        lambda: builder.debug_dot_print("unused"),
        lambda: builder.graph_definition,
        lambda: launch(builder, one, code.get_kernel("twice"), x.buffer),
        lambda: x.buffer.fill(0, stream=builder),
        lambda: device.allocate(8, stream=builder),
    ):
        with pytest.raises(RuntimeError, match=idle):
            call()
    builder.begin_building()
    with pytest.raises(RuntimeError, match="is building already: call end_building"):
        builder.begin_building()
    with pytest.raises(RuntimeError, match="still building: call end_building"):
        builder.complete()
    other = device.create_graph_builder().begin_building()
    with pytest.raises(RuntimeError, match="still building"):
        other.graph_definition
    other.close()
    builder.end_building()
    for call in (builder.begin_building, builder.end_building, lambda: builder.split(2)):
        with pytest.raises(RuntimeError, match="has finished building: create another one with create_graph_builder"):
            call()
    builder.close()
    builder.close()
    assert builder.is_closed
    for call in (builder.begin_building, builder.complete, lambda: builder.stream, builder.__cuda_stream__):
        with pytest.raises(RuntimeError, match="was closed or joined"):
            call()


def test_the_definition_is_not_used_while_it_is_captured(device):
    builder = device.create_graph_builder().begin_building()
    bodies = builder.if_else(builder.create_condition(0))
    bodies[0].begin_building()
    for building in (builder, bodies[0], builder.split(2)[1]):
        with pytest.raises(RuntimeError, match="graph_definition: this GraphBuilder is"):
            building.graph_definition
    bodies[0].callback(lambda: None)
    bodies[0].end_building()
    assert len(bodies[0].graph_definition.nodes()) == 1 and bodies[1].graph_definition.nodes() == set()
    builder.close()


def test_unfinished_builders_are_no_source_of_a_graph(device):
    """Graph.update and embed raise ValueError for the argument; RuntimeError is for the builder that is called."""
    idle, building, closed = (device.create_graph_builder() for _ in range(3))
    building.begin_building()
    branch = building.split(2)[1]
    closed.close()
    graph = device.create_graph_builder().begin_building().end_building().complete()
    target = device.create_graph_builder().begin_building()
    for source, state in ((idle, "has not begun"), (building, "still building"), (branch, "branch of a split")):
        for use in (graph.update, target.embed):
            with pytest.raises(ValueError, match=state):
                use(source)
    for use in (graph.update, target.embed):
        with pytest.raises(RuntimeError, match="was closed"):
            use(closed)
    target.close()
    building.close()


def test_capturing_a_captured_stream_is_refused(stream):
    builder = stream.create_graph_builder().begin_building()
    with pytest.raises(ValueError, match="captured already; end that capture first"):
        stream.create_graph_builder().begin_building()
    builder.end_building()


LOST = "ended .*with cuStreamEndCapture or cudaStreamEndCapture"


@pytest.mark.parametrize("function", [driver.cuStreamEndCapture, runtime.cudaStreamEndCapture])
def test_a_capture_that_the_program_ends(device, stream, code, one, numbers, function):
    """What is recorded later is refused; it does not run at once."""
    x = numbers(1)
    ran = []
    child = device.create_graph_builder().begin_building().end_building()

    def ended():
        builder = device.create_graph_builder().begin_building()
        launch(builder, one, code.get_kernel("twice"), x.buffer)
        status, graph = function(int(builder.stream.handle))
        assert status == 0
        return builder, graph

    for record in (
        lambda builder: launch(builder, one, code.get_kernel("twice"), x.buffer),
        lambda builder: x.buffer.fill(0, stream=builder),
        lambda builder: device.allocate(8, stream=builder),
        lambda builder: builder.split(2),
        lambda builder: builder.callback(lambda: ran.append(1)),
        lambda builder: builder.embed(child),
        lambda builder: builder.create_condition(),
        lambda builder: child.complete().launch(builder),
    ):
        builder, graph = ended()
        with pytest.raises((CUDAError, RuntimeError), match=LOST):
            record(builder)
        assert not builder.is_building
        with pytest.raises(RuntimeError, match=LOST):
            builder.graph_definition
        with pytest.raises(RuntimeError, match="create another one with create_graph_builder"):
            record(builder)
        assert driver.cuGraphDestroy(int(graph)) == (0,)
        builder.close()
    builder, graph = ended()
    assert not builder.is_building
    with pytest.raises((CUDAError, RuntimeError), match=LOST):
        builder.end_building()
    assert driver.cuGraphDestroy(int(graph)) == (0,)
    builder.begin_building().end_building().complete().close()
    stream.sync()
    assert not ran and x.get() == [1]


def test_a_capture_that_the_program_ends_and_begins_again(device):
    builder = device.create_graph_builder().begin_building()
    stream = int(builder.stream.handle)
    assert driver.cuStreamEndCapture(stream)[0] == 0
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    assert driver.cuStreamBeginCapture(stream, mode) == (0,)
    assert not builder.is_building
    with pytest.raises(RuntimeError, match=LOST):
        builder.callback(print)
    with pytest.raises((CUDAError, RuntimeError), match=LOST):
        builder.end_building()
    # The program's capture goes on.
    status, graph = driver.cuStreamEndCapture(stream)
    assert status == 0 and driver.cuGraphDestroy(graph) == (0,)


def test_an_invalidated_capture_is_building_until_it_is_ended(device):
    builder = device.create_graph_builder().begin_building()
    assert driver.cuStreamSynchronize(int(builder.stream.handle))[0] != 0
    assert builder.is_building
    with pytest.raises(CUDAError, match="INVALIDATED"):
        builder.callback(print)
    with pytest.raises(CUDAError, match="INVALIDATED"):
        builder.end_building()
    assert not builder.is_building
    builder.begin_building().end_building()


def test_another_thread_cannot_end_a_capture_of_this_thread(device):
    builder = device.create_graph_builder().begin_building("thread_local")
    with pytest.raises(CUDAError, match="WRONG_THREAD"):
        in_a_thread(builder.end_building)
    # A driver may end or invalidate the capture then, or leave it to this thread.
    if builder.is_building:
        with contextlib.suppress(CUDAError):
            builder.end_building()
    assert not builder.is_building
    device.create_graph_builder().begin_building("thread_local").end_building()


def test_closing_during_a_capture_discards_it(stream, code, one, numbers):
    x = numbers(1)
    builder = stream.create_graph_builder().begin_building()
    launch(builder, one, code.get_kernel("twice"), x.buffer)
    builder.close()
    assert x.get() == [1]
    builder = stream.create_graph_builder().begin_building()
    del builder
    gc.collect()
    stream.sync()


def test_split_and_join(device, stream, code, one, numbers):
    x = numbers(0, 0, 0, 0)
    store = code.get_kernel("store")
    builder = device.create_graph_builder().begin_building()
    launch(builder, one, store, x.buffer, np.int32(0), np.int32(1))
    branches = builder.split(3)
    assert branches[0] is builder and len(branches) == 3
    assert [b.is_join_required for b in branches] == [False, True, True]
    for index, branch in enumerate(branches):
        launch(branch, one, store, x.buffer, np.int32(1 + index), np.int32(10 + index))
    with pytest.raises(RuntimeError, match="branch of a split: call GraphBuilder.join"):
        branches[1].end_building()
    assert GraphBuilder.join(*reversed(branches)) is builder
    assert [b.is_closed for b in branches] == [False, True, True]
    graph = builder.end_building().complete()
    assert len(builder.graph_definition.nodes()) == 4
    assert len(builder.graph_definition.edges()) == 3
    graph.launch(stream)
    assert x.get() == [1, 10, 11, 12]


def test_nested_splits(device, stream, code, one, numbers):
    x = numbers(0, 0, 0)
    store = code.get_kernel("store")
    builder = device.create_graph_builder().begin_building()
    left, right = builder.split(2)
    inner = right.split(2)
    for index, branch in enumerate([left, *inner]):
        launch(branch, one, store, x.buffer, np.int32(index), np.int32(1 + index))
    assert GraphBuilder.join(*inner) is right
    GraphBuilder.join(left, right)
    builder.end_building().complete().launch(stream)
    assert x.get() == [1, 2, 3]


def test_wrong_splits_and_joins(device):
    builder = device.create_graph_builder().begin_building()
    for count in (1, 0):
        with pytest.raises(ValueError, match=f"'count' is {count}; expected 2 to 1024"):
            builder.split(count)
    with pytest.raises(TypeError, match="count"):
        builder.split("2")
    with pytest.raises(ValueError, match="at least 2 graph builders, not 1"):
        GraphBuilder.join(builder)
    with pytest.raises(ValueError, match="twice"):
        GraphBuilder.join(builder, builder)
    with pytest.raises(TypeError, match="expected a GraphBuilder"):
        GraphBuilder.join(builder, 3)
    other = device.create_graph_builder().begin_building()
    with pytest.raises(ValueError, match="another graph"):
        GraphBuilder.join(builder, other)
    other.end_building()
    builder.end_building()


RECORDED = {
    "callback": lambda branch, child: branch.callback(lambda: None),
    "embedded graph": lambda branch, child: branch.embed(child),
    "condition": lambda branch, child: branch.if_then(branch.create_condition(1)),
    "event": lambda branch, child: branch.stream.record(),
}


@pytest.mark.parametrize("recorded", RECORDED)
def test_an_unjoined_branch_fails_the_capture(device, recorded):
    child = device.create_graph_builder().begin_building()
    child.callback(lambda: None)
    child.end_building()
    builder = device.create_graph_builder().begin_building()
    _, branch = builder.split(2)
    RECORDED[recorded](branch, child)
    if recorded == "event":
        branch.callback(lambda: None)
    with pytest.raises(CUDAError, match="UNJOINED[\\s\\S]*call join\\(\\) first"):
        builder.end_building()
    assert not builder.is_building
    del branch
    builder.begin_building()
    builder.end_building()


def test_a_branch_that_is_joined_with_an_event(device):
    builder = device.create_graph_builder().begin_building()
    _, branch = builder.split(2)
    branch.callback(lambda: None)
    builder.stream.wait(branch.stream.record())
    builder.callback(lambda: None)
    builder.end_building()
    assert len(builder.graph_definition.nodes()) == 2


def test_embed(device, stream, code, one, numbers):
    x = numbers(1)
    child = device.create_graph_builder().begin_building()
    launch(child, one, code.get_kernel("twice"), x.buffer)
    child.end_building()
    builder = device.create_graph_builder().begin_building()
    launch(builder, one, code.get_kernel("add"), x.buffer, np.int32(1))
    builder.embed(child)
    builder.embed(child)
    launch(builder, one, code.get_kernel("add"), x.buffer, np.int32(1))
    with pytest.raises(TypeError, match="'child'"):
        builder.embed(3)
    graph = builder.end_building().complete()
    child.close()
    graph.launch(stream)
    assert x.get() == [9]


def test_callbacks(device, stream):
    calls = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def c_function(data):
        calls.append(ctypes.string_at(data, 4) if data else None)

    data = bytearray(b"abcd")
    builder = device.create_graph_builder().begin_building()
    builder.callback(lambda: calls.append("python"))
    builder.callback(c_function)
    builder.callback(c_function, user_data=data)
    builder.callback(c_function, user_data=ctypes.addressof(address := ctypes.create_string_buffer(b"wxyz")))
    data[:] = b"...."
    graph = builder.end_building().complete()
    builder.close()
    graph.launch(stream)
    stream.sync()
    assert calls == ["python", None, b"abcd", b"wxyz"]
    assert address.value == b"wxyz"


def test_wrong_callbacks(device):
    builder = device.create_graph_builder().begin_building()
    with pytest.raises(TypeError, match="'fn' is of type int; expected a callable"):
        builder.callback(3)
    with pytest.raises(ValueError, match="'user_data' is only for ctypes"):
        builder.callback(print, user_data=b"x")
    for prototype in (
        ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p),
        ctypes.CFUNCTYPE(None),
        ctypes.CFUNCTYPE(None, ctypes.c_int),
    ):
        with pytest.raises(TypeError, match="another prototype"):
            builder.callback(prototype(lambda *_: 0))
    with pytest.raises(TypeError, match="'user_data' is of type list"):
        builder.callback(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None), user_data=[1])
    builder.end_building()
    assert builder.graph_definition.nodes() == set()


def test_exceptions_of_callbacks_are_unraisable(device, stream, monkeypatch):
    lost = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: lost.append(args.exc_type))
    builder = device.create_graph_builder().begin_building()
    builder.callback(lambda: 1 / 0)
    builder.end_building().complete().launch(stream)
    stream.sync()
    assert lost == [ZeroDivisionError]


def test_allocations_in_a_capture(device, stream, code, one, numbers):
    x = numbers(0)
    builder = device.create_graph_builder().begin_building()
    scratch = device.allocate(4, stream=builder)
    scratch.fill(3, stream=builder)
    launch(builder, one, code.get_kernel("twice"), scratch)
    scratch.copy_to(x.buffer, stream=builder)
    scratch.close(builder)
    graph = builder.end_building().complete()
    for _ in range(3):
        graph.launch(stream)
    assert x.get() == [2 * 0x03030303]


def test_dropping_captured_memory_after_the_capture_leaves_it_to_the_graph(device, stream):
    builder = device.create_graph_builder().begin_building()
    scratch = device.allocate(4, stream=builder)
    scratch.fill(3, stream=builder)
    graph = builder.end_building().complete(GraphCompleteOptions(auto_free_on_launch=True))
    address = int(scratch.handle)
    del scratch
    gc.collect()
    for _ in range(3):
        graph.launch(stream)
    # The memory of the last launch, which no other test counts.
    assert driver.cuMemFreeAsync(address, stream.handle)[0] == driver.CUresult.CUDA_SUCCESS
    stream.sync()


def test_one_graph_in_two_streams(device, stream, code, one, numbers):
    x = numbers(0)
    builder = device.create_graph_builder().begin_building()
    launch(builder, one, code.get_kernel("add"), x.buffer, np.int32(1))
    graph = builder.end_building().complete()
    with Stream() as other:
        for _ in range(20):
            graph.launch(stream)
            graph.launch(other)
        other.sync()
        stream.sync()
    assert x.get() == [40]


def test_threads_with_their_own_graphs(device, code, one):
    def work(number):
        Device(0).set_current()
        with Stream() as own:
            buffer = device.allocate(4, stream=own)
            buffer.fill(0, stream=own)
            for _ in range(10):
                builder = own.create_graph_builder().begin_building("thread_local")
                launch(builder, one, code.get_kernel("add"), buffer, np.int32(number))
                graph = builder.end_building().complete()
                for _ in range(5):
                    graph.launch(own)
                own.sync()
                graph.close()
            out = np.zeros(1, np.int32)
            buffer.copy_to(out, stream=own)
            own.sync()
            assert out[0] == 50 * number
            buffer.close()

    in_threads(8, work)


def test_threads_that_share_a_builder_and_a_graph(device, stream, code, one, numbers):
    x = numbers(0)
    builder = device.create_graph_builder().begin_building()
    start = threading.Barrier(4)

    def record(_):
        start.wait()
        for _ in range(20):
            builder.callback(lambda: None)

    in_threads(4, record)
    launch(builder, one, code.get_kernel("add"), x.buffer, np.int32(1))
    graph = builder.end_building().complete()
    in_threads(4, lambda _: [graph.launch(stream) for _ in range(10)])
    assert x.get() == [40]


def test_debug_output(device, code, one, numbers, tmp_path, capsys):
    x = numbers(1)
    builder = device.create_graph_builder().begin_building()
    launch(builder, one, code.get_kernel("twice"), x.buffer)
    builder.end_building()
    path = tmp_path / "graph.dot"
    builder.debug_dot_print(str(path), GraphDebugPrintOptions(verbose=True))
    assert "digraph" in path.read_text() and "twice" in path.read_text()
    builder.graph_definition.debug_dot_print(path, {"handles": True})
    builder.debug_print(options=GraphDebugPrintOptions(kernel_node_params=True))
    assert "digraph" in capsys.readouterr().out
    with pytest.raises(ValueError, match="NUL"):
        builder.debug_dot_print("a\0b")
    with pytest.raises(CUDAError):
        builder.debug_dot_print(str(tmp_path / "missing" / "graph.dot"))
    with pytest.raises(TypeError, match="options"):
        builder.debug_dot_print(str(path), 3)


def test_wrong_options(device, stream):
    builder = device.create_graph_builder().begin_building().end_building()
    with pytest.raises(TypeError, match="GraphCompleteOptions"):
        builder.complete(3)
    with pytest.raises(TypeError, match="upload_stream"):
        builder.complete(GraphCompleteOptions(upload_stream=3))
    with pytest.raises(AttributeError, match="auto_free_on_launch"):
        GraphCompleteOptions().auto_free = True
    builder.complete({"upload_stream": stream}).launch(stream)
    graph = builder.complete(GraphCompleteOptions(use_node_priority=True))
    for wrong in (None, 3, "stream"):
        with pytest.raises(TypeError, match="'stream'"):
            graph.launch(wrong)
    with pytest.raises(TypeError, match="'source'"):
        graph.update(3)


def test_captured_definition_has_typed_nodes(device, code, numbers):
    x = numbers(1)
    config = LaunchConfig(grid=(2, 3), block=(4, 5), shmem_size=16)
    kernel = code.get_kernel("twice")
    builder = device.create_graph_builder().begin_building()
    launch(builder, config, kernel, x.buffer)
    builder.end_building()
    (node,) = builder.graph_definition.nodes()
    assert type(node) is KernelNode
    assert (node.grid, node.block, node.shmem_size) == ((2, 3, 1), (4, 5, 1), 16)
    assert node.config == config


def test_update_of_a_graph_from_a_builder(device, stream, code, one, numbers):
    x = numbers(0)
    add = code.get_kernel("add")

    def build(value, more=0):
        builder = device.create_graph_builder().begin_building()
        launch(builder, one, add, x.buffer, np.int32(value))
        for _ in range(more):
            launch(builder, one, add, x.buffer, np.int32(value))
        return builder.end_building()

    graph = build(1).complete()
    graph.launch(stream)
    graph.update(build(10))
    graph.launch(stream)
    assert x.get() == [11]
    with pytest.raises(CUDAError, match="nodes or edges differ"):
        graph.update(build(1, more=1))
    graph.launch(stream)
    assert x.get() == [21]
    with pytest.raises(ValueError, match="has not begun building"):
        graph.update(device.create_graph_builder())


def test_many_builds_leave_nothing(stream, code, one, numbers, released):
    x = numbers(0)
    add = code.get_kernel("add")

    class Marker:
        def __call__(self):
            pass

    alive = []
    for _ in range(200):
        builder = stream.create_graph_builder().begin_building()
        launch(builder, one, add, x.buffer, np.int32(1))
        marker = Marker()
        alive.append(weakref.ref(marker))
        builder.callback(marker)
        del marker
        graph = builder.end_building().complete()
        graph.launch(stream)
        builder.close()
        graph.close()
    builder = graph = None
    assert x.get() == [200]
    released(alive)


def test_callbacks_that_are_recorded_while_another_thread_ends_the_capture(device):
    """They become nodes or are refused; none runs."""
    ran = []

    def record(builder):
        for _ in range(50):
            with contextlib.suppress(CUDAError, RuntimeError):
                builder.callback(lambda: ran.append(1))

    for _ in range(100):
        builder = device.create_graph_builder().begin_building()
        thread = threading.Thread(target=record, args=(builder,))
        thread.start()
        with contextlib.suppress(CUDAError, RuntimeError):
            builder.end_building()
        builder.close()
        thread.join()
    assert not ran
