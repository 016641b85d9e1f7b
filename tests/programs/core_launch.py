"""cuda.core: launches with buffers and with addresses; grids of three dimensions, cooperative launches, clusters."""

import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = """
extern "C" __global__ void polynomial(float c, const float *x, const float *y, float *out, size_t count)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = c * x[i] * x[i] + y[i];
}

extern "C" __global__ void tally(unsigned *threads) { atomicAdd(threads, 1u); }
"""
COUNT = 5000
BLOCK = 192

device = Device()
device.set_current()
stream = device.create_stream()
code = Program(SOURCE, code_type="c++", options=ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin")
x, y = np.linspace(-2, 2, COUNT, dtype=np.float32), np.linspace(1, 9, COUNT, dtype=np.float32)
buffers = [device.allocate(x.nbytes, stream=stream) for _ in range(3)]
buffers[0].copy_from(x, stream=stream)
buffers[1].copy_from(y, stream=stream)
config = LaunchConfig(grid=-(-COUNT // BLOCK), block=BLOCK, shmem_size=0)
for kind, pointers in {"buffers": buffers, "addresses": [int(buffer.handle) for buffer in buffers]}.items():
    buffers[2].fill(0, stream=stream)
    launch(stream, config, code.get_kernel("polynomial"), np.float32(1.5), *pointers, np.uint64(COUNT))
    out = np.zeros_like(x)
    buffers[2].copy_to(out, stream=stream)
    stream.sync()
    assert np.allclose(out, 1.5 * x * x + y)
    print(kind, "passed to a kernel")

threads = device.allocate(4, stream=stream)
threads.fill(0, stream=stream)
configs = {
    "three dimensions": (LaunchConfig(grid=(4, 3, 2), block=(8, 4, 4)), 4 * 3 * 2 * 8 * 4 * 4),
    "cooperative": (LaunchConfig(grid=1, block=BLOCK, cooperative_launch=True), BLOCK),
}
if device.compute_capability >= (9, 0):
    # The grid counts clusters.
    configs["cluster"] = (LaunchConfig(grid=(2, 1, 1), cluster=(2, 2, 1), block=(64, 1, 1)), 2 * 2 * 2 * 64)
total = 0
for kind, (config, expected) in configs.items():
    launch(stream, config, code.get_kernel("tally"), threads)
    total += expected
    tally = np.zeros(1, np.uint32)
    threads.copy_to(tally, stream=stream)
    stream.sync()
    assert tally[0] == total, (kind, tally[0], total)
    print(kind, "launched")
stream.close()
