"""Worker processes on shared device memory, with `cuda.core` and `multiprocessing`.

The main process creates a shareable memory pool and allocates slices of a table from it. Each slice is sent through a
queue to one of two workers, with an event that completes when the slice is filled. Only a descriptor is transferred:
the workers square the numbers in place, and no data is copied between the processes.
"""

import multiprocessing
import sys

import numpy as np
from cuda.core import Device, DeviceMemoryResource, EventOptions, LaunchConfig, Program, launch

SOURCE = r"""
extern "C" __global__ void ramp(double *x, double first, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = first + i;
}
extern "C" __global__ void square(double *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= x[i];
}
"""
N = 1000
SLICES = 6
CONFIG = LaunchConfig(grid=(N + 127) // 128, block=128)


def skip(reason):
    """Ends with status 77, which test programs count as skipped."""
    print(f"skipped: {reason}")
    sys.exit(77)


def first_device():
    """The first device, made current."""
    try:
        device = Device(0)
        device.set_current()
    except Exception as reason:
        skip(f"no device: {reason}")
    print(f"on {device.name}")
    return device


def verify(holds, what):
    """Ends the program with an error unless the result is right."""
    if not holds:
        sys.exit(f"wrong result: {what}")


def prepare(device):
    """The device, one of its streams, and the kernels."""
    device.set_current()
    return device, device.create_stream(), Program(SOURCE, "c++").compile("cubin")


def work(tasks, done):
    """Works until it receives the end marker."""
    _, stream, kernels = prepare(Device())
    for number, table, filled in iter(tasks.get, None):
        stream.wait(filled)
        launch(stream, CONFIG, kernels.get_kernel("square"), table, np.int32(N))
        # Release the memory before reporting: its owner may free it then.
        table.close(stream)
        filled.close()
        stream.sync()
        done.put(number)


def main():
    device, stream, kernels = prepare(first_device())
    if not device.properties.memory_pools_supported or not device.properties.mempool_supported_handle_types & 1:
        skip("the device does not support shareable memory pools")
    # Workers are new interpreters: CUDA does not survive a fork.
    multiprocessing.set_start_method("spawn")
    tasks, done = multiprocessing.Queue(), multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(tasks, done), daemon=True) for _ in range(2)]
    for worker in workers:
        worker.start()

    memory = DeviceMemoryResource(device, {"ipc_enabled": True})
    tables, events = [], []
    for number in range(SLICES):
        table = memory.allocate(N * 8, stream=stream)
        launch(stream, CONFIG, kernels.get_kernel("ramp"), table, float(number * N), np.int32(N))
        events.append(stream.record(options=EventOptions(ipc_enabled=True)))
        tables.append(table)
        tasks.put((number, table, events[-1]))
    finished = {done.get(timeout=120) for _ in tables}
    verify(finished == set(range(SLICES)), "every slice is returned once")
    for _ in workers:
        tasks.put(None)
    for worker in workers:
        worker.join(60)
        verify(worker.exitcode == 0, f"a worker ended with {worker.exitcode}")

    for number, table in enumerate(tables):
        squares = np.empty(N)
        table.copy_to(squares, stream=stream)
        stream.sync()
        verify((squares == (np.arange(N) + number * N) ** 2.0).all(), f"slice {number}")
        table.close(stream)
    print(f"two workers squared {SLICES} slices of {N} numbers in place")
    print("done: the results are right")


if __name__ == "__main__":
    main()
