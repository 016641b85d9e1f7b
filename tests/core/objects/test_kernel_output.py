"""What kernels print is there after a wait, whoever launched them and however early they were done."""

import pytest

from helpers.programs import python

PROGRAM = """
import os, sys, time
from cuda.bindings import driver, runtime
from cuda.bindings._v2 import driver as raising
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

device = Device(0)
device.set_current()
stream = device.create_stream()
code = 'extern "C" __global__ void k() { printf("printed\\\\n"); }'
kernel = Program(code, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("k")
one = LaunchConfig(grid=1, block=1)
builder = device.create_graph_builder().begin_building()
launch(builder, one, kernel)
graph = builder.end_building().complete()
graph.upload(stream)
event = device.create_event()

def wait():
    if sys.argv[2] == "stream":
        stream.sync()
    else:
        stream.record(event)
        event.sync()

calls = {
    "launch": lambda: launch(stream, one, kernel),
    "cuLaunchKernel": lambda: driver.cuLaunchKernel(kernel.handle, 1, 1, 1, 1, 1, 1, 0, stream.handle, 0, 0),
    "Graph.launch": lambda: graph.launch(stream),
    "cuGraphLaunch": lambda: driver.cuGraphLaunch(graph.handle, stream.handle),
    "cudaGraphLaunch": lambda: runtime.cudaGraphLaunch(int(graph.handle), int(stream.handle)),
    "_v2.graph_launch": lambda: raising.graph_launch(int(graph.handle), int(stream.handle)),
}
for _ in range(3):
    wait()
    wait()
    calls[sys.argv[1]]()
    while driver.cuStreamQuery(stream.handle)[0] != 0:
        pass
    wait()
    os.write(1, b"waited\\n")
os._exit(0)
"""


@pytest.mark.parametrize("waited", ["stream", "event"])
@pytest.mark.parametrize(
    "call", ["launch", "cuLaunchKernel", "Graph.launch", "cuGraphLaunch", "cudaGraphLaunch", "_v2.graph_launch"]
)
def test_output_is_flushed_by_waits(call, waited):
    done = python(PROGRAM, call, waited, timeout=120)
    assert (done.stdout, done.stderr) == ("printed\nwaited\n" * 3, ""), done
