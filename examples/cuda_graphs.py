"""Work described once and launched many times: CUDA graphs, built node by node and captured from a stream.

Both graphs do the same: copy two arrays to the device, multiply them element by element in one kernel, sum the products
in another, copy the sum back. The graph built by nodes expresses that the two copies are independent.
"""

import numpy as np
from cuda.bindings import driver
from sample import Kernels, Skip, check, run, verify, view

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


class Work:
    """The arrays on host and device, and the kernels."""

    def __init__(self, n):
        self.n, self.bytes = n, 8 * n
        self.kernels = Kernels(SOURCE)
        # Page-locked: copies from and to it are asynchronous.
        self.pinned = check(driver.cuMemHostAlloc(2 * self.bytes + 8, 0))
        self.host = view(self.pinned, 2 * n + 1, np.float64)
        self.a, self.b, self.product = (check(driver.cuMemAlloc(self.bytes)) for _ in range(3))
        self.sum = check(driver.cuMemAlloc(8))
        self.addresses = [int(self.pinned), int(self.pinned) + self.bytes, int(self.pinned) + 2 * self.bytes]

    def fill(self, seed):
        """Writes new numbers; returns their scalar product."""
        values = np.random.default_rng(seed).integers(-9, 10, 2 * self.n).astype(np.float64)
        self.host[: 2 * self.n] = values
        self.host[2 * self.n] = np.nan
        return float(values[: self.n] @ values[self.n :])

    def close(self):
        del self.host
        check(driver.cuMemFreeHost(self.pinned))
        for pointer in (self.a, self.b, self.product, self.sum):
            check(driver.cuMemFree(pointer))


def captured(work, stream):
    """A graph of the work queued between begin and end of the capture; nothing runs yet."""
    check(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    check(driver.cuMemcpyHtoDAsync(work.a, work.addresses[0], work.bytes, stream))
    check(driver.cuMemcpyHtoDAsync(work.b, work.addresses[1], work.bytes, stream))
    work.kernels["multiply"](-(-work.n // 256), 256, work.a, work.b, work.product, np.int32(work.n), stream=stream)
    work.kernels["add_up"](1, 256, work.product, work.sum, np.int32(work.n), stream=stream)
    check(driver.cuMemcpyDtoHAsync(work.addresses[2], work.sum, 8, stream))
    return check(driver.cuStreamEndCapture(stream))


def copy_node(graph, after, context, to, source, size, to_host=False):
    """A node that copies bytes between host and device."""
    host, device = driver.CUmemorytype.CU_MEMORYTYPE_HOST, driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    copy = driver.CUDA_MEMCPY3D()
    if to_host:
        copy.srcMemoryType, copy.srcDevice, copy.dstMemoryType, copy.dstHost = device, source, host, to
    else:
        copy.srcMemoryType, copy.srcHost, copy.dstMemoryType, copy.dstDevice = host, source, device, to
    copy.WidthInBytes, copy.Height, copy.Depth = size, 1, 1
    return check(driver.cuGraphAddMemcpyNode(graph, after, len(after), copy, context))


def kernel_node(graph, after, function, grid, block, *arguments):
    """A node that launches a kernel; the graph keeps a copy of the arguments."""
    parameters = driver.CUDA_KERNEL_NODE_PARAMS()
    parameters.func = function
    parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ = grid, 1, 1
    parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ = block, 1, 1
    values = [np.asarray(a if isinstance(a, np.generic) else np.uint64(int(a))) for a in arguments]
    pointers = np.array([v.ctypes.data for v in values], np.uint64)
    parameters.kernelParams = pointers.ctypes.data
    return check(driver.cuGraphAddKernelNode(graph, after, len(after), parameters))


def built(work, context):
    """The same graph, node by node."""
    graph = check(driver.cuGraphCreate(0))
    n = np.int32(work.n)
    first = copy_node(graph, [], context, work.a, work.addresses[0], work.bytes)
    second = copy_node(graph, [], context, work.b, work.addresses[1], work.bytes)
    multiply, add_up = work.kernels.function("multiply"), work.kernels.function("add_up")
    product = kernel_node(graph, [first, second], multiply, -(-work.n // 256), 256, work.a, work.b, work.product, n)
    total = kernel_node(graph, [product], add_up, 1, 256, work.product, work.sum, n)
    copy_node(graph, [total], context, work.addresses[2], work.sum, 8, to_host=True)
    return graph


def main():
    context = check(driver.cuCtxGetCurrent())
    status, probe = driver.cuGraphCreate(0)
    if status == driver.CUresult.CUDA_ERROR_NOT_SUPPORTED:
        raise Skip("the device does not support graphs")
    check((status,))
    check(driver.cuGraphDestroy(probe))
    work = Work(50_000)
    stream = check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    for way, graph in (("captured", captured(work, stream)), ("built", built(work, context))):
        _, count = check(driver.cuGraphGetNodes(graph))
        executable = check(driver.cuGraphInstantiate(graph, 0))
        # The executable graph is independent of the graph.
        check(driver.cuGraphDestroy(graph))
        for round_ in range(4):
            wanted = work.fill(round_)
            check(driver.cuGraphLaunch(executable, stream))
            check(driver.cuStreamSynchronize(stream))
            verify(work.host[2 * work.n] == wanted, f"the scalar product in round {round_} of the graph that was {way}")
        check(driver.cuGraphExecDestroy(executable))
        print(f"the graph that was {way} has {count} nodes and ran 4 times")
    check(driver.cuStreamDestroy(stream))
    work.close()


if __name__ == "__main__":
    run(main)
