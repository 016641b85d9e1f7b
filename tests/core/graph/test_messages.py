"""Errors of graphs name the parameter, the value given, and what is expected."""

import ctypes

import pytest
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.graph import GraphDefinition


@pytest.fixture
def definition(device):
    return GraphDefinition()


@pytest.fixture(params=["definition", "node"])
def place(request, definition):
    """A definition, or a node of it."""
    return definition if request.param == "definition" else definition.empty()


@pytest.fixture
def address(device, stream):
    buffer = device.allocate(256, stream=stream)
    yield int(buffer.handle)
    buffer.close()


@pytest.mark.parametrize(
    "value, size, message",
    [
        (b"\1\2\3\4", (0,), "'width' is 0; expected 1 element or more"),
        (b"\1\2\3\4", (4, 0), "'height' is 0; expected 1 row or more"),
        (b"\1\2\3\4", (4, 2, 8), "'pitch' is 8; expected 16 bytes or more, the size of a row of 4 elements of 4 bytes"),
    ],
)
def test_fills(place, address, value, size, message):
    with pytest.raises(CUDAError, match=message):
        place.memset(address, value, *size)


def test_unaligned_fills(place, address):
    with pytest.raises(CUDAError, match=f"'dst' is {address + 2:#x}; expected an address aligned to 4 bytes"):
        place.memset(address + 2, b"\1\2\3\4", 4)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (("4",), TypeError, "'width' is of type str; expected a number of elements as int"),
        ((-1,), OverflowError, "'width' is -1; expected a number of elements from 0"),
        ((4, 1.5), TypeError, "'height' is of type float; expected a number of rows as int"),
        ((4, 2, None), CUDAError, "'pitch' is 0; expected 4 bytes or more"),
        ((4, 2, "x"), TypeError, "'pitch' is of type str; expected a number of bytes as int"),
    ],
)
def test_sizes_of_fills(place, address, arguments, error, message):
    with pytest.raises(error, match=message):
        place.memset(address, 0, *arguments)


def test_updates_of_fills(definition, address):
    node = definition.memset(address, 0, 4)
    with pytest.raises(CUDAError, match="'width' is 0; expected 1 element or more"):
        node.update(width=0)
    graph = definition.instantiate()
    with pytest.raises(CUDAError, match="'height' is 0; expected 1 row or more"):
        graph[node].update(dst=address, value=0, width=4, height=0)


def test_copies(place, address):
    with pytest.raises(CUDAError, match="'size' is 0; expected 1 byte or more"):
        place.memcpy(address, address + 128, 0)
    with pytest.raises(TypeError, match="'size' is of type str"):
        place.memcpy(address, address, "4")
    with pytest.raises(TypeError, match="'src' is of type list; expected a Buffer or an address"):
        place.memcpy(address, [1], 4)


def test_allocations(place):
    with pytest.raises(CUDAError, match="'size' is 0; expected 1 byte or more"):
        place.allocate(0)
    with pytest.raises(ValueError, match="'memory_type' is 'disk'; expected 'device', 'host' or 'managed'"):
        place.allocate(4, memory_type="disk")
    for kind in ("host", "managed"):
        try:
            place.allocate(4, memory_type=kind)
        except CUDAError as error:
            assert f"'memory_type' is '{kind}', which this driver does not allocate in graphs" in str(error)
    with pytest.raises(TypeError, match="'peer_access' is of type int; expected an iterable of Device or int"):
        place.allocate(4, peer_access=3)


def test_frees(place):
    for wrong, error, message in (
        ("1", TypeError, "'dptr' is of type str; expected an int or a CUdeviceptr"),
        (-1, OverflowError, "'dptr' is -1; expected an address from 0"),
        (16, CUDAError, "'dptr' is 0x10; expected the address of memory that an allocation node"),
    ):
        with pytest.raises(error, match=message):
            place.deallocate(wrong)


def test_callbacks(place, device):
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
    builder = device.create_graph_builder().begin_building()
    for callback in (place.callback, builder.callback):
        for wrong in (-1, 2**64):
            with pytest.raises(
                OverflowError, match=f"'user_data' is {wrong}; expected an address from 0 to 2\\*\\*64-1"
            ):
                callback(function, user_data=wrong)
    builder.end_building()


def test_splits(device):
    builder = device.create_graph_builder().begin_building()
    for wrong, error, message in (
        (
            "2",
            TypeError,
            "GraphBuilder.split\\(\\) argument 'count' is of type str; expected a number of builders as int",
        ),
        (-1, OverflowError, "'count' is -1; expected a number of builders"),
        (1, ValueError, "'count' is 1; expected 2 to 1024"),
    ):
        with pytest.raises(error, match=message):
            builder.split(wrong)
    builder.end_building()


def test_switches(place):
    condition = GraphDefinition().create_condition()
    for wrong, error, message in (
        ("2", TypeError, "'count' is of type str; expected an int"),
        (0, ValueError, "'count' is 0; expected a number of branches from 1 on"),
        (-1, ValueError, "'count' is -1; expected a number of branches from 1 on"),
        (2**40, ValueError, f"'count' is {2**40}; expected a number of branches from 1 on"),
    ):
        with pytest.raises(error, match=message):
            place.switch(condition, wrong)
    with pytest.raises(TypeError, match="'condition' is of type int; expected a GraphCondition"):
        place.switch(2, 2)


def test_neighbours(definition):
    node = definition.empty()
    for name in ("pred", "succ"):
        with pytest.raises(
            TypeError, match=f"GraphNode.{name} is set to an object of type int; expected an iterable of Gr"
        ):
            setattr(node, name, 5)
        with pytest.raises(TypeError, match="is of type int; expected a GraphNode"):
            setattr(node, name, [5])
        with pytest.raises(TypeError, match="is of type int; expected a GraphNode"):
            getattr(node, name).add(5)


def test_child_graphs(definition, place):
    node = definition.embed(GraphDefinition())
    kind = type(place).__name__.replace("EmptyNode", "GraphNode")
    for wrong in (definition, node.child_graph):
        with pytest.raises(
            ValueError, match=f"{kind}.embed\\(\\) argument 'child' belongs to the same graph; expected an"
        ):
            place.embed(wrong)
        with pytest.raises(ValueError, match="ChildGraphNode.update\\(\\) argument 'child' belongs to the same graph"):
            node.update(wrong)
    with pytest.raises(TypeError, match="'child' is of type int; expected a GraphDefinition"):
        place.embed(3)


def test_joins_of_other_graphs(device):
    builder = device.create_graph_builder().begin_building()
    other = device.create_graph_builder().begin_building()
    with pytest.raises(
        ValueError, match="GraphBuilder.join\\(\\) argument 'graph_builders' contains a builder of another graph"
    ):
        type(builder).join(builder, other)
    other.end_building()
    builder.end_building()
