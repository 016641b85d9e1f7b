"""Fixtures of the tests of graphs."""

import gc
import time

import numpy as np
import pytest
from cuda.core import LaunchConfig, Program

CODE = r"""
extern "C" __global__ void add(int *x, int value) { if (threadIdx.x == 0 && blockIdx.x == 0) x[0] += value; }
extern "C" __global__ void twice(int *x) { x[0] *= 2; }
extern "C" __global__ void store(int *x, int index, int value) { x[index] = value; }
"""
CONDITIONAL_CODE = r"""
extern "C" __device__ __cudart_builtin__ void CUDARTAPI
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
extern "C" __global__ void set(cudaGraphConditionalHandle condition, const int *x)
{
    cudaGraphSetConditional(condition, x[0]);
}
extern "C" __global__ void count_down(cudaGraphConditionalHandle condition, int *x)
{
    x[0] -= 1;
    x[1] += 1;
    cudaGraphSetConditional(condition, x[0] > 0);
}
"""


@pytest.fixture(scope="session")
def code():
    """Kernels on integers."""
    return Program(CODE, "c++").compile("cubin")


@pytest.fixture(scope="session")
def conditional_code():
    """Kernels that set conditions."""
    return Program(CONDITIONAL_CODE, "c++").compile("cubin")


@pytest.fixture
def one():
    """A launch of one thread."""
    return LaunchConfig(grid=1, block=1)


class Numbers:
    """Integers in device memory."""

    def __init__(self, device, stream, values):
        self.stream, self.count = stream, len(values)
        self.buffer = device.allocate(4 * len(values), stream=stream)
        self.set(values)

    def set(self, values):
        """Write the values."""
        self.buffer.copy_from(np.array(values, np.int32), stream=self.stream)
        self.stream.sync()

    def get(self):
        """Read the values."""
        out = np.zeros(self.count, np.int32)
        self.buffer.copy_to(out, stream=self.stream)
        self.stream.sync()
        return out.tolist()


@pytest.fixture
def numbers(device, stream):
    """Creates integers in device memory."""

    def create(*values):
        return Numbers(device, stream, values)

    return create


@pytest.fixture
def released(stream):
    """Waits until weakly referenced objects are gone: the driver releases them soon after the last launch."""

    def wait(references):
        deadline = time.monotonic() + 10
        while any(reference() is not None for reference in references) and time.monotonic() < deadline:
            stream.sync()
            gc.collect()
            time.sleep(0.001)
        assert sum(reference() is not None for reference in references) == 0

    return wait
