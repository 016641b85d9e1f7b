"""Two devices: copies between them, and a kernel on one that uses the memory of the other.

On a machine without GPUs, `CUPYRITE_CPU_DEVICES=2` configures two CPU devices.
"""

import sys

import numpy as np
from cuda.core import Device, DeviceMemoryResource, LaunchConfig, Program, launch

SOURCE = r"""
extern "C" __global__ void twice(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 2 * in[i];
}
"""


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


def main():
    first_device()
    devices = Device.get_all_devices()
    if len(devices) < 2:
        skip("two devices are needed (CUPYRITE_CPU_DEVICES=2 configures two CPU devices)")
    first, second = devices[:2]
    if not (first.can_access_peer(second) and second.can_access_peer(first)):
        skip("the first two devices cannot access each other's memory")
    print(f"and on {second.name}")
    n = 1 << 18
    data = np.arange(n, dtype=np.float32)

    streams, buffers, kernels = [], [], []
    for device, other in ((first, second), (second, first)):
        device.set_current()
        streams.append(device.create_stream())
        pool = DeviceMemoryResource(device)
        pool.peer_accessible_by = [other]
        buffers.append(pool.allocate(data.nbytes, stream=streams[-1]))
        # Allocation is stream-ordered: the other device's stream must not come first.
        streams[-1].sync()
        kernels.append(Program(SOURCE, "c++").compile("cubin").get_kernel("twice"))

    # To the first device, and from there to the second.
    buffers[0].copy_from(data, stream=streams[0])
    buffers[1].copy_from(buffers[0], stream=streams[0])

    # A kernel on the first device reads the second's memory and writes its own; then one on the second does the
    # reverse. Events order the two streams.
    config = LaunchConfig(grid=n // 256, block=256)
    first.set_current()
    launch(streams[0], config, kernels[0], buffers[1], buffers[0], np.int32(n))
    streams[1].wait(streams[0].record())
    second.set_current()
    launch(streams[1], config, kernels[1], buffers[0], buffers[1], np.int32(n))
    out = np.empty_like(data)
    buffers[1].copy_to(out, stream=streams[1])
    streams[1].sync()
    if not (out == 4 * data).all():
        sys.exit("wrong result: the numbers after two kernels, each on the other's memory")
    print(f"{n} numbers copied to both devices, and doubled twice")
    print("done: the results are right")


if __name__ == "__main__":
    main()
