"""`_repr_html_`: what notebooks show. It is well-formed, escaped, does not raise and creates no context."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from cuda.core import Buffer, Device, DeviceMemoryResource, LaunchConfig, Program
from cuda.core._html import MOST_NODES
from cuda.core.graph import GraphDefinition
from cuda.core.utils import StridedMemoryView

SVG = "{http://www.w3.org/2000/svg}"
SOURCE = 'extern "C" __global__ void step(int *p) {} extern "C" __global__ void finish(int *p) {}'


@pytest.fixture
def device():
    device = Device()
    device.set_current()
    return device


@pytest.fixture
def stream(device):
    return device.create_stream()


@pytest.fixture(scope="module")
def kernels():
    return Program(SOURCE, "c++").compile("cubin")


def parsed(obj):
    """The HTML, which is also well-formed XML, without anything active."""
    root = ElementTree.fromstring(obj._repr_html_())
    for element in root.iter():
        assert element.tag.removeprefix(SVG) not in ("script", "style", "img", "a", "foreignObject")
        assert not [name for name in element.attrib if name.startswith("on") or name.endswith("href")]
    return root


def words(obj):
    return " ".join(parsed(obj).itertext())


def rows(obj):
    return {row[0].text: row[1].text for row in parsed(obj).iter("tr")}


def boxes(obj):
    """The lines of text of each node, by the position of its box."""
    groups = parsed(obj).iter(f"{SVG}g")
    return {
        (float(group.find(f"{SVG}rect").get("x")), float(group.find(f"{SVG}rect").get("y"))): [
            text.text or "" for text in group.iter(f"{SVG}text")
        ]
        for group in groups
    }


def test_device_shows_what_programs_ask_for(device):
    found = rows(device)
    assert found["name"] == device.name and found["UUID"] == device.uuid
    assert found["compute capability"] == f"{device.compute_capability.major}.{device.compute_capability.minor}"
    assert f"({device.total_memory} bytes)" in found["memory"]


def test_buffer_shows_address_size_and_access(device, stream):
    buffer = DeviceMemoryResource(device).allocate(3 << 20, stream=stream)
    found = rows(buffer)
    assert found["address"] == hex(buffer.handle) and found["size"] == "3 MiB (3145728 bytes)"
    assert found["accessible from"] == "device 0" and found["memory resource"] == "DeviceMemoryResource"


def test_host_buffer_is_accessible_from_host():
    array = np.zeros(16)
    assert "host" in rows(Buffer.from_handle(array.ctypes.data, array.nbytes, owner=array))["accessible from"]


def test_closed_objects_say_so(device, stream):
    buffer = device.allocate(64, stream=stream)
    graph = GraphDefinition().instantiate()
    buffer.close()
    graph.close()
    assert words(buffer) == "Buffer , closed" and words(graph) == "Graph , closed"


def test_view_shows_shape_and_type():
    found = rows(StridedMemoryView.from_array_interface(np.zeros((3, 4), np.int16)[:, ::2]))
    assert found["shape"] == "(3, 2)" and found["strides"] == "(4, 2) elements" and found["element type"] == "int16"
    assert found["memory"] == "host" and found["read-only"] == "no" and found["exporting object"] == "ndarray"


def test_view_outlives_its_buffer(device, stream):
    buffer = device.allocate(64, stream=stream)
    view = StridedMemoryView.from_buffer(buffer, (16,), dtype=np.dtype(np.float32))
    buffer.close()
    assert rows(view)["shape"] == "(16,)" and rows(view)["memory"] == "device 0"


def report():
    """A callback. Not `print`, which Ray replaces in the process of its tests."""


def test_graph_is_drawn_in_layers(device, stream, kernels):
    step, finish = kernels.get_kernel("step"), kernels.get_kernel("finish")
    buffer = device.allocate(4096, stream=stream)
    definition = GraphDefinition()
    copy, fill = definition.memcpy(buffer, buffer.handle + 2048, 1024), definition.memset(buffer, 0, 256)
    first = definition.join(copy, fill).launch(LaunchConfig(grid=(4, 2), block=32), step, buffer)
    last = first.launch(LaunchConfig(grid=1, block=64), finish, buffer)
    last.callback(report)
    # An edge across layers.
    copy.succ.add(last)

    found = boxes(definition)
    assert sorted(found.values()) == [
        ["copy", "1 KiB"],
        ["empty", ""],
        ["fill", "256 x 1 elements"],
        ["finish", "grid 1, block 64"],
        ["report", "host callback"],
        ["step", "grid 4 x 2, block 32"],
    ]
    layer = {lines[0]: y for (_, y), lines in found.items()}
    assert layer["copy"] == layer["fill"] < layer["empty"] < layer["step"] < layer["finish"] < layer["report"]
    assert len({x for (x, y) in found if y == layer["copy"]}) == 2, "boxes of a layer overlap"
    paths = [path for path in parsed(definition).iter(f"{SVG}path") if path.get("fill") == "none"]
    assert len(paths) == len(definition.edges()) == 6
    assert "6 nodes and 6 edges" in words(definition)


def test_instantiated_graph_is_drawn_from_its_definition(kernels, device, stream):
    definition = GraphDefinition()
    definition.launch(LaunchConfig(grid=1, block=32), kernels.get_kernel("step"), device.allocate(4, stream=stream))
    graph = definition.instantiate()
    assert list(boxes(graph).values()) == [["step", "grid 1, block 32"]]
    del definition
    assert words(graph) == "Graph , its definition no longer exists"


def test_captured_graph_is_drawn(device, stream):
    buffer = device.allocate(64, stream=stream)
    stream.sync()
    builder = stream.create_graph_builder().begin_building()
    buffer.fill(0, stream=builder)
    graph = builder.end_building().complete()
    assert [lines[0] for lines in boxes(graph).values()] == ["fill"]


def test_names_are_escaped_and_shortened():
    def callback():
        pass

    callback.__name__ = '<script>alert("&")</script>' + "x" * 100
    definition = GraphDefinition()
    definition.callback(callback)
    assert "<script" not in definition._repr_html_()
    ((line, _),) = boxes(definition).values()
    assert line.startswith('<script>alert("&")') and len(line) <= 24


def test_name_that_raises_is_shown_as_unknown():
    class Callback:
        @property
        def __name__(self):
            raise RuntimeError

        def __call__(self):
            pass

    definition = GraphDefinition()
    definition.callback(Callback())
    assert list(boxes(definition).values()) == [["host callback", "?"]]


def test_every_kind_of_node_is_drawn(device, stream):
    definition = GraphDefinition()
    allocation = definition.allocate(64)
    allocation.deallocate(allocation.dptr)
    event = device.create_event()
    definition.record(event)
    definition.wait(event)
    child = GraphDefinition()
    child.empty()
    definition.embed(child)
    names = ["allocation", "child graph", "event record", "event wait", "free"]
    conditions = ("if_then", "if_else", "while_loop")
    try:
        for method in conditions:
            getattr(definition, method)(definition.create_condition(default_value=0))
        names += ["if", "if-else", "while"]
    except Exception as reason:
        assert "NOT_SUPPORTED" in str(reason)
    found = boxes(definition).values()
    assert sorted(lines[0] for lines in found) == sorted(names)
    assert ["child graph", "1 node"] in found and not any("?" in line for lines in found for line in lines)


@pytest.mark.parametrize("count, drawn", [(0, False), (1, True), (MOST_NODES, True), (MOST_NODES + 1, False)])
def test_large_graph_becomes_a_table(count, drawn):
    definition = GraphDefinition()
    node = None
    for _ in range(count):
        node = (node or definition).join(*[node] if node else []) if node else definition.empty()
    assert len(boxes(definition)) == (count if drawn else 0)
    assert rows(definition) == ({} if drawn or not count else {"empty": str(count)})


def test_dense_graph_becomes_a_table():
    definition = GraphDefinition()
    first = [definition.empty() for _ in range(12)]
    for _ in range(12):
        definition.join(*first)
    assert rows(definition) == {"empty": "24"} and "144 edges" in words(definition)


def test_graph_of_destroyed_node_says_so():
    definition = GraphDefinition()
    branch = definition.embed(GraphDefinition())
    child = branch.child_graph
    branch.destroy()
    assert words(child) == "GraphDefinition , not valid"


def test_no_context_is_created():
    """Neither a current context nor the primary one."""
    program = """
import numpy as np
from cuda.bindings import driver
from cuda.core import Buffer, Device
from cuda.core.utils import StridedMemoryView
array = np.zeros(4)
for obj in (Device(0), Buffer.from_handle(array.ctypes.data, 32, owner=array), StridedMemoryView.from_array_interface(array)):
    assert "?" not in obj._repr_html_(), obj._repr_html_()
assert int(driver.cuCtxGetCurrent()[1]) == 0
assert driver.cuDevicePrimaryCtxGetState(0)[2] == 0
"""
    environment = dict(os.environ, PYTHONWARNINGS="ignore")
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
