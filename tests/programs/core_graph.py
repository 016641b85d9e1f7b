"""cuda.core: kernels, memory and a callback captured into a graph, which is launched many times."""

import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
from cuda.core.graph import GraphDebugPrintOptions

SOURCE = """
extern "C" __global__ void add(int *numbers, int count, int term)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        numbers[i] += term;
}
extern "C" __global__ void triple(int *numbers, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        numbers[i] *= 3;
}
"""
COUNT = np.int32(500)
LAUNCHES = 12

device = Device()
device.set_current()
stream = device.create_stream()
code = Program(SOURCE, code_type="c++", options=ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin")
add, triple = code.get_kernel("add"), code.get_kernel("triple")
numbers = device.allocate(4 * int(COUNT), stream=stream)
numbers.fill(0, stream=stream)
stream.sync()

builder = stream.create_graph_builder()
builder.begin_building()
config = LaunchConfig(grid=2, block=256)
launch(builder, config, add, numbers, COUNT, np.int32(1))
launch(builder, config, triple, numbers, COUNT)
# Memory that lives during each launch.
scratch = device.allocate(2048, stream=builder)
scratch.fill(7, stream=builder)
scratch.close(builder)
captured = builder.end_building()
captured.debug_print(options=GraphDebugPrintOptions(verbose=True, kernel_node_params=True))

graph = captured.complete()
graph.upload(stream)
for _ in range(LAUNCHES):
    graph.launch(stream)
result = np.zeros(int(COUNT), np.int32)
numbers.copy_to(result, stream=stream)
stream.sync()
expected = 0
for _ in range(LAUNCHES):
    expected = 3 * (expected + 1)
assert (result == expected).all(), (result, expected)
print(f"launched {LAUNCHES} times: {result[0]}")
graph.close()
builder.close()
numbers.close(stream)
stream.close()
print("closed")
