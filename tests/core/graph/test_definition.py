"""GraphDefinition and its nodes: construction, edges, identity, parameters, updates."""

import ctypes
import gc
import weakref

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import Device, EventOptions, LaunchConfig
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.graph import (
    AllocNode,
    ChildGraphNode,
    EmptyNode,
    EventRecordNode,
    EventWaitNode,
    ExecutableGraphNode,
    ExecutableKernelNode,
    FreeNode,
    GraphCondition,
    GraphDefinition,
    GraphNode,
    HostCallbackNode,
    KernelNode,
    MemcpyNode,
    MemsetNode,
)

from helpers.threads import in_threads


@pytest.fixture
def definition(device):
    return GraphDefinition()


def test_nodes_run_in_the_order_of_their_edges(definition, stream, code, one, numbers):
    x = numbers(1)
    add, twice = code.get_kernel("add"), code.get_kernel("twice")
    last = definition.launch(one, add, x.buffer, 2).launch(one, twice, x.buffer).launch(one, add, x.buffer, 1)
    graph = definition.instantiate()
    graph.launch(stream)
    assert x.get() == [7]
    assert len(definition.nodes()) == 3 and len(definition.edges()) == 2
    assert last.graph == definition and last.is_valid


def test_node_objects_are_unique_while_they_live(definition):
    first = definition.empty()
    second = first.join()
    third = definition.join(first, second)
    assert definition.nodes() == {first, second, third}
    assert all(any(node is known for known in (first, second, third)) for node in definition.nodes())
    assert definition.edges() == {(first, second), (first, third), (second, third)}
    (found,) = second.pred
    assert found is first
    handle, alive = int(first.handle), weakref.ref(first)
    del first, found
    gc.collect()
    assert alive() is None
    (again,) = second.pred
    assert int(again.handle) == handle and type(again) is EmptyNode
    assert {again: 1}[next(iter(second.pred))] == 1


def test_types_and_parameters(definition, device, code, stream):
    buffer, source = device.allocate(64, stream=stream), device.allocate(64, stream=stream)
    event = device.create_event()
    kernel = code.get_kernel("twice")
    config = LaunchConfig(grid=(2, 3, 4), block=(5, 6), shmem_size=128)
    empty = definition.empty()
    launch = empty.launch(config, kernel, buffer)
    copy = empty.memcpy(buffer, source, 16)
    fill = empty.memset(buffer, b"\1\2", 8, 2, 32)
    host = empty.callback(print)
    record, wait = empty.record(event), empty.wait(event)
    alloc = empty.allocate(256)
    free = alloc.deallocate(alloc.dptr)
    child = GraphDefinition()
    child.empty()
    embedded = empty.embed(child)
    kinds = {
        empty: (EmptyNode, "EMPTY"),
        launch: (KernelNode, "KERNEL"),
        copy: (MemcpyNode, "MEMCPY"),
        fill: (MemsetNode, "MEMSET"),
        host: (HostCallbackNode, "HOST"),
        record: (EventRecordNode, "EVENT_RECORD"),
        wait: (EventWaitNode, "WAIT_EVENT"),
        alloc: (AllocNode, "MEM_ALLOC"),
        free: (FreeNode, "MEM_FREE"),
        embedded: (ChildGraphNode, "GRAPH"),
    }
    for node, (cls, name) in kinds.items():
        assert type(node) is cls and isinstance(node, GraphNode)
        assert node.type == getattr(driver.CUgraphNodeType, f"CU_GRAPH_NODE_TYPE_{name}")
        assert repr(node).startswith(f"<{cls.__name__} handle=0x")
        assert isinstance(node.handle, driver.CUgraphNode)
    assert (launch.grid, launch.block, launch.shmem_size) == ((2, 3, 4), (5, 6, 1), 128)
    assert launch.kernel is kernel and launch.config == config
    assert (copy.dst, copy.src, copy.size) == (int(buffer.handle), int(source.handle), 16)
    assert (fill.dptr, fill.value, fill.element_size, fill.width, fill.height, fill.pitch) == (
        int(buffer.handle),
        0x0201,
        2,
        8,
        2,
        32,
    )
    assert host.callback is print
    assert record.event == event and wait.event == event
    assert alloc.bytesize == 256 and alloc.device_id == 0 and alloc.memory_type == "device" and alloc.peer_access == ()
    assert free.dptr == alloc.dptr != 0
    assert len(embedded.child_graph.nodes()) == 1
    assert embedded.child_graph == embedded.child_graph != child
    kept = set(kinds)
    assert definition.nodes() == kept


def test_typed_nodes_come_back_from_the_driver(definition, device, code, one, stream):
    buffer = device.allocate(64, stream=stream)
    definition.launch(one, code.get_kernel("twice"), buffer).memset(buffer, 1, 4).memcpy(buffer, buffer, 4)
    gc.collect()
    found = {type(node): node for node in definition.nodes()}
    assert set(found) == {KernelNode, MemsetNode, MemcpyNode}
    assert found[KernelNode].kernel == code.get_kernel("twice")
    assert found[MemsetNode].dptr == found[MemcpyNode].dst == int(buffer.handle)


def test_edges_can_be_changed(definition):
    a, b, c = (definition.empty() for _ in range(3))
    a.succ.add(b)
    assert set(b.pred) == {a} and len(a.succ) == 1 and b in a.succ
    a.succ.add(b)
    c.pred = [a, b]
    assert definition.edges() == {(a, b), (a, c), (b, c)}
    c.pred.discard(a)
    c.pred.discard(a)
    assert c.pred == {b}
    with pytest.raises(KeyError):
        c.pred.remove(a)
    a.succ |= {c}
    assert a.succ == {b, c}
    a.succ = []
    assert a.succ == set() and b.pred == set()
    a.succ.update([b, c])
    a.succ.clear()
    assert definition.edges() == {(b, c)}
    other = GraphDefinition().empty()
    for wrong, error in ((other, ValueError), (3, TypeError), (definition._entry, ValueError)):
        with pytest.raises(error):
            a.succ.add(wrong)
    with pytest.raises(ValueError, match="itself"):
        a.succ.add(a)
    assert "AdjacencySetProxy" in repr(b.succ)
    assert b.succ | {a} == {a, c}


def test_destroyed_nodes(definition):
    a = definition.empty()
    b = a.join()
    assert a.is_valid
    a.destroy()
    a.destroy()
    assert not a.is_valid and definition.nodes() == {b} and b.pred == set()
    for call in (a.join, lambda: a.pred, lambda: a.type, lambda: a.callback(print)):
        with pytest.raises(RuntimeError, match="not valid: destroy\\(\\) was called"):
            call()
    with pytest.raises(RuntimeError, match="not valid"):
        definition.join(a)
    assert "not valid" in repr(a) or "destroyed" in repr(a)


def test_nodes_without_graph():
    for cls in (GraphNode, KernelNode, EmptyNode):
        node = cls()
        assert not node.is_valid and node.handle is None
        with pytest.raises(RuntimeError, match="belongs to no graph"):
            node.join()
        repr(node)
    assert GraphCondition() == GraphCondition()
    with pytest.raises(RuntimeError):
        ExecutableGraphNode()


def test_entry_point(definition):
    entry = definition._entry
    assert entry.handle is None and entry.type is None and entry.is_valid and entry == definition._entry
    node = entry.callback(print)
    assert node.pred == set() and definition.join(entry, node).pred == {node}
    with pytest.raises(RuntimeError, match="entry point"):
        entry.destroy()


def test_nodes_retain_what_they_use(device, stream, code, one, released):
    class Owner:
        pass

    definition = GraphDefinition()
    buffer, owner, event = device.allocate(4, stream=stream), Owner(), device.create_event()
    alive = [weakref.ref(buffer), weakref.ref(owner)]
    address = int(buffer.handle)
    node = definition.memset(buffer, 5, 4).launch(one, code.get_kernel("twice"), buffer)
    node = node.memset(address, 1, 1, dst_owner=owner).record(event)
    graph = definition.instantiate()
    buffer.close()
    del buffer, owner, event, definition, node
    gc.collect()
    assert all(ref() is not None for ref in alive)
    graph.launch(stream)
    stream.sync()
    value = ctypes.c_int32()
    driver.cuMemcpyDtoH(ctypes.addressof(value), address, 4)
    assert value.value == (2 * 0x05050505 & ~0xFF | 1)
    graph.close()
    released(alive)


def test_destroying_a_node_releases_what_it_retains(definition, device, stream):
    def callback():
        pass

    alive = weakref.ref(callback)
    node = definition.callback(callback)
    del callback
    gc.collect()
    assert alive() is not None
    node.destroy()
    gc.collect()
    assert alive() is None


def test_updates_release_what_they_replace(definition, stream, released):
    calls = []

    def make(value):
        def callback():
            calls.append(value)

        return callback

    first = make(1)
    alive = weakref.ref(first)
    node = definition.callback(first)
    graph = definition.instantiate()
    del first
    node.update(make(2))
    gc.collect()
    assert alive() is not None  # The graph calls it.
    graph.launch(stream)
    stream.sync()
    definition.instantiate().launch(stream)
    stream.sync()
    assert calls == [1, 2]
    graph.close()
    released([alive])


def test_operands_and_owners(definition, device, stream):
    buffer = device.allocate(8, stream=stream)
    with pytest.raises(ValueError, match="'dst_owner' is only for an address"):
        definition.memset(buffer, 0, 8, dst_owner=object())
    with pytest.raises(TypeError, match="'dst' is of type str"):
        definition.memset("x", 0, 8)
    with pytest.raises(TypeError, match="'src'"):
        definition.memcpy(buffer, None, 8)
    with pytest.raises(OverflowError, match="'size'"):
        definition.memcpy(buffer, buffer, -1)
    with pytest.raises(OverflowError, match="memset\\(\\) argument 'value' is 256"):
        definition.memset(buffer, 256, 8)
    with pytest.raises(ValueError, match="has 3 bytes"):
        definition.memset(buffer, b"abc", 8)
    buffer.close()
    with pytest.raises(RuntimeError, match="Buffer was closed"):
        definition.memset(buffer, 0, 8)
    assert definition.nodes() == set()


def test_wrong_arguments(definition, device, code, one):
    kernel = code.get_kernel("twice")
    with pytest.raises(TypeError, match="'config'"):
        definition.launch(1, kernel)
    with pytest.raises(TypeError, match="'kernel'"):
        definition.launch(one, 1)
    with pytest.raises(TypeError, match="argument"):
        definition.launch(one, kernel)
    with pytest.raises(TypeError, match="'event'"):
        definition.record(1)
    with pytest.raises(TypeError, match="'child'"):
        definition.embed(1)
    with pytest.raises(ValueError, match="same graph"):
        definition.embed(definition)
    with pytest.raises(TypeError, match="'condition'"):
        definition.if_then(1)
    with pytest.raises(TypeError, match="'nodes'"):
        definition.join(1)
    with pytest.raises(ValueError, match="another graph definition"):
        definition.join(GraphDefinition().empty())
    with pytest.raises(ValueError, match="'memory_type'"):
        definition.allocate(8, memory_type="nowhere")
    for wrong, error in ((-1, OverflowError), (2**32, OverflowError), ("x", TypeError)):
        with pytest.raises(error, match="'default_value'"):
            definition.create_condition(wrong)
    assert definition.nodes() == set()


def test_node_updates(definition, device, stream, code, one, numbers):
    x, y = numbers(1, 0), numbers(5, 6)
    node = definition.launch(one, code.get_kernel("add"), x.buffer, 1)
    node.update(args=(x.buffer, 10))
    definition.instantiate().launch(stream)
    assert x.get() == [11, 0]
    with pytest.raises(ValueError, match="'kernel' requires 'args'"):
        node.update(kernel=code.get_kernel("twice"))
    node.update(kernel=code.get_kernel("twice"), args=[x.buffer])
    assert node.kernel == code.get_kernel("twice")
    definition.instantiate().launch(stream)
    assert x.get() == [22, 0]
    node.update(config=LaunchConfig(grid=1, block=32, shmem_size=64))
    assert (node.block, node.shmem_size) == ((32, 1, 1), 64)
    node.destroy()
    copy = definition.memcpy(x.buffer, y.buffer, 4)
    copy.update(size=8)
    definition.instantiate().launch(stream)
    assert x.get() == [5, 6]
    copy.update(src=x.buffer, dst=y.buffer)
    assert (copy.dst, copy.src, copy.size) == (int(y.buffer.handle), int(x.buffer.handle), 8)
    with pytest.raises(ValueError, match="'dst_owner' requires 'dst'"):
        copy.update(dst_owner=object())
    copy.destroy()
    fill = definition.memset(x.buffer, 1, 4)
    fill.update(value=b"\2\2\2\2", width=2)
    assert (fill.value, fill.element_size, fill.width) == (0x02020202, 4, 2)
    definition.instantiate().launch(stream)
    assert x.get() == [0x02020202] * 2


def test_event_nodes(definition, device, stream):
    first, second = (device.create_event(options=EventOptions(timing_enabled=True)) for _ in range(2))
    record = definition.record(first)
    wait = record.wait(first)
    record.update(second)
    wait.update(second)
    assert record.event == second == wait.event
    definition.instantiate().launch(stream)
    stream.sync()
    assert second.is_done
    with pytest.raises(TypeError, match="'event'"):
        record.update(3)


def test_child_graphs(definition, device, stream, code, one, numbers):
    x = numbers(1)
    child = GraphDefinition()
    child.launch(one, code.get_kernel("add"), x.buffer, 1)
    node = definition.embed(child)
    inner = node.child_graph
    (kernel,) = inner.nodes()
    assert kernel.graph == inner and kernel != next(iter(child.nodes()))
    del child
    gc.collect()
    definition.instantiate().launch(stream)
    assert x.get() == [2]
    node.destroy()
    assert not inner.is_valid and int(inner.handle) == 0 and kernel.handle is None
    with pytest.raises(RuntimeError, match="not valid"):
        inner.nodes()


class Callback:
    def __call__(self):
        pass


def test_a_destroyed_node_releases_what_its_child_graph_holds(definition, released):
    """What the clone holds of its original, and what was added to the clone."""
    child = GraphDefinition()
    callbacks = [Callback() for _ in range(3)]
    references = [weakref.ref(callback) for callback in callbacks]
    child.callback(callbacks[0])
    child.callback(callbacks[1])
    node = definition.embed(child)
    del child
    inner = node.child_graph
    added = inner.callback(callbacks.pop())
    callbacks.clear()
    gc.collect()
    assert all(reference() for reference in references)
    added.destroy()
    released(references[2:])
    assert references[0]() and references[1]() and len(inner.nodes()) == 2
    added = inner.callback(Callback())
    references.append(weakref.ref(added.callback))
    node.update(GraphDefinition())
    released(references)
    assert not added.is_valid and len(definition.nodes()) == 1
    references = [weakref.ref(node.child_graph.callback(Callback()).callback)]
    node.destroy()
    released(references)
    assert not definition.nodes()


def test_update_of_a_child_graph(definition, device, stream, code, one, numbers):
    x = numbers(1)
    children = []
    for value in (1, 10):
        child = GraphDefinition()
        child.launch(one, code.get_kernel("add"), x.buffer, value)
        children.append(child)
    node = definition.embed(children[0])
    inner = node.child_graph
    graph = definition.instantiate()
    graph[node].update(children[1])
    graph.launch(stream)
    assert x.get() == [11]
    try:
        node.update(children[1])
    except CUDAError as error:
        if "CUDA_ERROR_NOT_SUPPORTED" not in str(error):
            raise
        pytest.skip("the driver cannot replace the graph of a child graph node")
    assert not inner.is_valid and node.child_graph.is_valid
    definition.instantiate().launch(stream)
    assert x.get() == [21]


def test_allocation_nodes(definition, device, stream, code, one, numbers):
    x = numbers(0)
    alloc = definition.allocate(4, device=device)
    fill = alloc.memset(alloc.dptr, 1, 4)
    copy = fill.memcpy(x.buffer, alloc.dptr, 4)
    free = copy.deallocate(alloc.dptr)
    graph = definition.instantiate()
    for _ in range(3):
        graph.launch(stream)
    assert x.get() == [0x01010101]
    with pytest.raises(CUDAError):
        free.destroy()
    assert free.is_valid


def test_executable_nodes(definition, device, stream, code, one, numbers):
    x, y = numbers(0, 0), numbers(7, 8)
    calls = []
    kernel = definition.launch(one, code.get_kernel("add"), x.buffer, 1)
    fill = kernel.memset(y.buffer, 0, 4)
    copy = fill.memcpy(int(x.buffer.handle) + 4, y.buffer, 4, dst_owner=x.buffer)
    host = copy.callback(lambda: calls.append(1))
    graph = definition.instantiate()
    assert type(graph[kernel]) is ExecutableKernelNode and "ExecutableKernelNode" in repr(graph[kernel])
    graph[kernel].update(config=one, kernel=code.get_kernel("add"), args=(x.buffer, 5))
    graph[fill].update(dst=y.buffer, value=b"\3\0\0\0", width=1)
    graph[host].update(lambda: calls.append(2))
    graph.launch(stream)
    assert x.get() == [5, 3] and calls == [2]
    assert graph[kernel].is_enabled
    graph[kernel].disable()
    assert not graph[kernel].is_enabled
    graph.launch(stream)
    assert x.get() == [5, 3]
    graph[kernel].enable()
    graph[copy].update(dst=x.buffer, src=y.buffer, size=4)
    graph.launch(stream)
    assert x.get() == [3, 3]
    with pytest.raises(TypeError, match="'config'"):
        graph[kernel].update(config=3, kernel=code.get_kernel("add"), args=())
    with pytest.raises(TypeError, match="'args' must be a sequence"):
        graph[kernel].update(config=one, kernel=code.get_kernel("add"), args=3)
    with pytest.raises(ValueError, match="another definition"):
        graph[GraphDefinition().empty()]
    with pytest.raises(TypeError, match="indexed by nodes"):
        graph[3]
    host.destroy()
    with pytest.raises(RuntimeError, match="not valid"):
        graph[host]
    graph.close()
    with pytest.raises(RuntimeError, match="closed"):
        graph[kernel]


def test_executable_updates_retain_and_release(definition, stream, released):
    calls = []

    def make(value):
        def callback():
            calls.append(value)

        return callback

    node = definition.callback(make(0))
    graph = definition.instantiate()
    alive = []
    for value in range(1, 50):
        callback = make(value)
        alive.append(weakref.ref(callback))
        graph[node].update(callback)
        del callback
        graph.launch(stream)
    stream.sync()
    graph[node].update(make(100))
    gc.collect()
    assert calls == list(range(1, 50))
    assert sum(ref() is not None for ref in alive) <= 1
    graph.launch(stream)
    graph.close()
    released(alive)
    stream.sync()
    assert calls[-1] == 100


def test_refused_updates_name_the_node(definition, device, stream, code, one, numbers):
    x = numbers(0)
    definition.launch(one, code.get_kernel("add"), x.buffer, 1)
    graph = definition.instantiate()
    other = GraphDefinition()
    other.memset(x.buffer, 0, 4)
    with pytest.raises(CUDAError, match="GRAPH_EXEC_UPDATE_FAILURE[\\s\\S]*(type|differ)"):
        graph.update(other)
    graph.launch(stream)
    assert x.get() == [1]


def test_definitions_compare_by_handle(definition):
    assert definition == definition != GraphDefinition()
    assert definition.empty().graph == definition and hash(definition.empty().graph) == hash(definition)
    assert definition != 3 and definition.empty() != 3
    assert definition.is_valid and isinstance(definition.handle, driver.CUgraph)
    assert repr(definition).startswith("<GraphDefinition handle=0x")


def test_dropping_in_any_order(device, stream, code, one, numbers):
    x = numbers(0)
    for order in range(6):
        definition = GraphDefinition()
        node = definition.launch(one, code.get_kernel("add"), x.buffer, 1)
        graph = definition.instantiate()
        graph.launch(stream)
        kept = [definition, node, graph]
        del definition, node, graph
        for index in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))[order]:
            kept[index] = None
            gc.collect()
    assert x.get() == [6]


def test_many_definitions_leave_nothing(stream, released):
    alive = []
    for _ in range(500):
        definition = GraphDefinition()

        def callback():
            pass

        alive.append(weakref.ref(callback))
        definition.callback(callback).join(definition.empty())
        definition.instantiate().launch(stream)
    del callback, definition
    released(alive)


def test_threads_with_their_own_definitions(device, code, one):
    def work(_):
        Device(0).set_current()
        stream = Device(0).create_stream()
        buffer = Device(0).allocate(4, stream=stream)
        buffer.fill(0, stream=stream)
        stream.sync()
        for _ in range(20):
            definition = GraphDefinition()
            node = definition.launch(one, code.get_kernel("add"), buffer, 1)
            for _ in range(5):
                node = node.launch(one, code.get_kernel("add"), buffer, 1)
            graph = definition.instantiate()
            graph.launch(stream)
            graph.close()
        out = np.zeros(1, np.int32)
        buffer.copy_to(out, stream=stream)
        stream.sync()
        assert out[0] == 120

    in_threads(8, work)


def test_threads_that_share_a_definition(definition):
    def work(_):
        for _ in range(50):
            node = definition.empty()
            node.succ.add(definition.empty())
            node.destroy()

    in_threads(4, work)
    assert len(definition.nodes()) == 200


def test_copies_and_fills_of_small_buffers_are_refused(device, stream):
    """A node that accesses more than its buffer has would change neighbouring memory."""
    buffer = device.allocate(64, stream=stream)
    part, other = buffer[:4], device.allocate(64, stream=stream)
    definition = GraphDefinition()
    with pytest.raises(ValueError, match="'dst' has 4 bytes; the node accesses 64"):
        definition.memset(part, 0, 64)
    with pytest.raises(ValueError, match="'dst' has 64 bytes; the node accesses 104"):
        definition.memset(buffer, 0, 8, 4, 32)
    with pytest.raises(ValueError, match="'dst' has 4 bytes; the node accesses 64"):
        definition.memcpy(part, other, 64)
    with pytest.raises(ValueError, match="'src' has 4 bytes; the node accesses 64"):
        definition.memcpy(other, part, 64)
    assert not definition.nodes()
    definition.memset(buffer, 0, 8, 4, 8)
    definition.memcpy(part, other, 4)
