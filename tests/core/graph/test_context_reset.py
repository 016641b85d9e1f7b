"""Graphs whose context the program resets or destroys behind their objects.

Each case runs in a process of its own: using or destroying objects of a context that is gone may crash NVIDIA's driver.
"""

import subprocess
import sys
import textwrap

import pytest

SETUP = """
import gc
import weakref

import numpy as np
from cuda.bindings import driver, runtime
from cuda.core import Device, LaunchConfig, Program, launch
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.graph import GraphDefinition

device = Device(0)
device.set_current()
one = LaunchConfig(grid=1, block=1)
CODE = 'extern "C" __global__ void add(int *x, int value) { x[0] += value; }'
program = Program(CODE, "c++").compile("cubin")
kernel = program.get_kernel("add")


class Callback:
    def __call__(self):
        pass


def refused(*calls):
    for call in calls:
        try:
            call()
        except (CUDAError, RuntimeError) as error:
            assert "not valid" in str(error) or "context" in str(error) or "ended" in str(error), error
        else:
            raise AssertionError("not refused")


def build():
    definition = GraphDefinition()
    node = definition.memset(int(memory.handle), 0, 4)
    callback = Callback()
    alive.append(weakref.ref(callback))
    last = node.launch(one, kernel, memory, np.int32(1)).callback(callback).record(stream.record())
    child = definition.embed(GraphDefinition())
    graph = definition.instantiate()
    graph.launch(stream)
    graph[node].update(dst=int(memory.handle), value=1, width=4)
    graph.launch(stream)
    stream.sync()
    return definition, node, child.child_graph, graph


alive = []
stream = device.create_stream()
memory = device.allocate(64, stream=stream)
"""

USE = """
definition, node, inner, graph = build()
builder = device.create_graph_builder().begin_building()
launch(builder, one, kernel, memory, np.int32(1))
branches = builder.split(2)
unbegun = device.create_graph_builder()
done = device.create_graph_builder().begin_building().end_building()
{gone}
refused(
    definition.nodes, definition.edges, definition.empty, definition.instantiate, definition.create_condition,
    node.join, node.destroy, lambda: node.pred, lambda: node.type, inner.nodes,
    lambda: graph.launch(stream), lambda: graph.upload(stream), lambda: graph.update(definition), lambda: graph[node],
    lambda: builder.callback(print), lambda: builder.split(2), lambda: branches[1].callback(print),
    lambda: launch(builder, one, kernel, memory, np.int32(1)), builder.end_building, done.complete,
)
assert not definition.is_valid and not node.is_valid and not inner.is_valid and not builder.is_building
repr((definition, node, inner, graph, builder))
"""

DROPS = {
    "in order": "del definition, node, inner\ngc.collect()\ndel graph\ngc.collect()",
    "the graph first": "graph.close()\ndel graph\ngc.collect()\ndel definition, node, inner\ngc.collect()",
    "at exit": "alive.clear()",
}

RESETS = {
    "cuDevicePrimaryCtxReset": "assert driver.cuDevicePrimaryCtxReset(0) == (0,)",
    "cudaDeviceReset": "assert runtime.cudaDeviceReset() == (0,)",
}

AGAIN = """
assert not [reference for reference in alive if reference() is not None]
status, context = driver.cuDevicePrimaryCtxRetain(0)
assert status == 0 and driver.cuCtxSetCurrent(context) == (0,)
stream = device.create_stream()
definition = GraphDefinition()
ran = []
definition.callback(lambda: ran.append(1))
graph = definition.instantiate()
graph.launch(stream)
stream.sync()
assert ran == [1]
"""


def run(*parts):
    code = "\n".join([*(textwrap.dedent(part) for part in parts), "print('reached the end')"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "reached the end" in done.stdout, done.stderr[-3000:]


@pytest.mark.parametrize("drops", DROPS)
@pytest.mark.parametrize("reset", RESETS)
def test_reset(reset, drops):
    run(SETUP, USE.format(gone=RESETS[reset]), DROPS[drops], "builder = branches = unbegun = done = None\ngc.collect()")


def test_new_graphs_after_a_reset():
    run(SETUP, USE.format(gone=RESETS["cudaDeviceReset"]), DROPS["in order"], "builder = branches = done = None", AGAIN)


def test_destroyed_context():
    create = """
    primary = device.context
    status, context = driver.cuCtxCreate(None, 0, 0)
    assert status == 0
    """
    run(
        SETUP,
        create,
        """
        definition = GraphDefinition()
        first = definition.callback(print)
        second = first.join()
        graph = definition.instantiate()
        assert driver.cuCtxDestroy(context) == (0,)
        device.set_current()
        refused(definition.nodes, first.join, lambda: graph.launch(stream), definition.instantiate)
        del definition, first, second
        gc.collect()
        del graph
        gc.collect()
        definition = GraphDefinition()
        definition.empty()
        definition.instantiate().launch(stream)
        stream.sync()
        """,
    )
