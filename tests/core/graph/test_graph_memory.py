"""GraphMemoryResource: allocations in captures, attributes, trim."""

import gc

import pytest
from cuda.core import GraphMemoryResource, launch


@pytest.fixture
def resource(device):
    return GraphMemoryResource(device)


def test_allocations_are_nodes_of_the_graph(resource, device, stream, code, one, numbers):
    x = numbers(0)
    builder = device.create_graph_builder().begin_building()
    scratch = resource.allocate(4, stream=builder)
    assert scratch.memory_resource is resource and scratch.size == 4
    scratch.fill(1, stream=builder)
    launch(builder, one, code.get_kernel("twice"), scratch)
    scratch.copy_to(x.buffer, stream=builder)
    scratch.close(builder)
    builder.end_building()
    assert len(builder.graph_definition.nodes()) == 5
    graph = builder.complete()
    for _ in range(3):
        graph.launch(stream)
    assert x.get() == [0x02020202]


def test_allocation_outside_of_a_capture_is_refused(resource, device, stream):
    with pytest.raises(RuntimeError, match="not being captured"):
        resource.allocate(4, stream=stream)
    with pytest.raises(RuntimeError, match="begin_building"):
        resource.allocate(4, stream=device.create_graph_builder())
    with pytest.raises(TypeError):
        resource.allocate(4)


def test_attributes_and_trim(resource, device, stream):
    assert resource.device_id == 0 and resource.is_device_accessible and not resource.is_host_accessible
    builder = device.create_graph_builder().begin_building()
    scratch = resource.allocate(1 << 20, stream=builder)
    scratch.fill(1, stream=builder)
    scratch.close(builder)
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    attributes = resource.attributes
    assert attributes.used_mem_high >= 1 << 20
    assert attributes.reserved_mem_high >= attributes.reserved_mem_current
    assert "used_mem_high=" in repr(attributes)
    graph.close()
    del builder, scratch, graph
    gc.collect()
    resource.trim()
    attributes.used_mem_high = 0
    attributes.reserved_mem_high = 0
    assert attributes.used_mem_high == attributes.used_mem_current
    for name in ("used_mem_high", "reserved_mem_high"):
        with pytest.raises(AttributeError, match=f"{name} can only be set to 0"):
            setattr(attributes, name, 5)
    with pytest.raises(AttributeError):
        attributes.used_mem_current = 0
    resource.close()


def test_wrong_devices():
    with pytest.raises((TypeError, ValueError)):
        GraphMemoryResource("x")
    with pytest.raises(ValueError):
        GraphMemoryResource(10_000)
