"""Work described once and launched many times: CUDA graphs, built node by node and captured from a stream.

Both graphs do the same: copy two arrays to the device, multiply them element by element in one kernel, sum the products
in another, copy the sum back. The graph built by nodes expresses that the two copies are independent.
"""

import sys

import numpy as np
from cuda.core import Device, LaunchConfig, PinnedMemoryResource, Program, launch
from cuda.core.graph import GraphDefinition

SOURCE = r"""
extern "C" __global__ void multiply(const double *a, const double *b, double *product, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        product[i] = a[i] * b[i];
}

// One block adds everything up, always in the same order.
extern "C" __global__ void add_up(const double *in, double *sum, int n)
{
    __shared__ double part[256];
    double mine = 0;
    for (int i = threadIdx.x; i < n; i += 256)
        mine += in[i];
    part[threadIdx.x] = mine;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        *sum = part[0];
}
"""


def first_device():
    """The first device, made current. Exit status 77 means "skipped" to test programs."""
    try:
        device = Device(0)
        device.set_current()
    except Exception as reason:
        print(f"skipped: no device: {reason}")
        sys.exit(77)
    print(f"on {device.name}")
    return device


class Work:
    """The arrays on host and device, and the kernels."""

    def __init__(self, device, n):
        self.n, self.bytes = n, 8 * n
        self.stream = device.create_stream()
        kernels = Program(SOURCE, "c++").compile("cubin")
        self.multiply, self.add_up = kernels.get_kernel("multiply"), kernels.get_kernel("add_up")
        self.wide, self.one = LaunchConfig(grid=-(-n // 256), block=256), LaunchConfig(grid=1, block=256)
        # Page-locked: copies from and to it are asynchronous.
        pinned = PinnedMemoryResource()
        sizes = (self.bytes, self.bytes, 8)
        self.host = [pinned.allocate(size, stream=self.stream) for size in sizes]
        self.a, self.b, self.product = (device.allocate(self.bytes, stream=self.stream) for _ in range(3))
        self.sum = device.allocate(8, stream=self.stream)
        self.stream.sync()
        self.left, self.right, self.result = (np.from_dlpack(buffer).view(np.float64) for buffer in self.host)

    def fill(self, seed):
        """Writes new numbers; returns their scalar product."""
        random = np.random.default_rng(seed)
        self.left[:], self.right[:] = random.integers(-9, 10, (2, self.n))
        self.result[0] = np.nan
        return self.left @ self.right


def captured(work):
    """A graph of the work queued between begin and end of the capture; nothing runs yet."""
    builder = work.stream.create_graph_builder().begin_building()
    work.a.copy_from(work.host[0], stream=builder)
    work.b.copy_from(work.host[1], stream=builder)
    launch(builder, work.wide, work.multiply, work.a, work.b, work.product, np.int32(work.n))
    launch(builder, work.one, work.add_up, work.product, work.sum, np.int32(work.n))
    work.sum.copy_to(work.host[2], stream=builder)
    return builder.end_building().graph_definition


def built(work):
    """The same graph, node by node: a method of a node adds work that waits for it."""
    graph = GraphDefinition()
    first = graph.memcpy(work.a, work.host[0], work.bytes)
    second = graph.memcpy(work.b, work.host[1], work.bytes)
    product = graph.join(first, second).launch(work.wide, work.multiply, work.a, work.b, work.product, np.int32(work.n))
    total = product.launch(work.one, work.add_up, work.product, work.sum, np.int32(work.n))
    total.memcpy(work.host[2], work.sum, 8)
    return graph


def main():
    work = Work(first_device(), 50_000)
    for way, definition in (("captured", captured(work)), ("built", built(work))):
        graph = definition.instantiate()
        for round_ in range(4):
            wanted = work.fill(round_)
            graph.launch(work.stream)
            work.stream.sync()
            if work.result[0] != wanted:
                sys.exit(f"wrong result: the scalar product in round {round_} of the graph that was {way}")
        print(f"the graph that was {way} has {len(definition.nodes())} nodes and ran 4 times")
    print("done: the results are right")


if __name__ == "__main__":
    main()
