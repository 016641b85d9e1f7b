"""Kernels that access host memory without a copy.

Two ways: memory allocated page-locked and mapped for the device, and ordinary memory that is page-locked afterwards. A
kernel reads one and writes the other. The memory comes from the runtime API, the kernel from `cuda.core`: both use the
device's primary context and can be mixed.
"""

import ctypes
import sys

import numpy as np
from cuda.bindings import runtime
from cuda.core import Device, LaunchConfig, Program, launch

SOURCE = r"""
extern "C" __global__ void scale(const double *in, double *out, double factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = factor * in[i];
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


def check(result):
    """The outputs of a driver or runtime call: None, one value or a tuple. Anything but success raises."""
    status, *outputs = result
    if status != 0:
        raise RuntimeError(repr(status))
    return outputs[0] if len(outputs) == 1 else tuple(outputs) if outputs else None


def main():
    device = first_device()
    if not device.properties.can_map_host_memory:
        skip("the device cannot map host memory")
    stream = device.create_stream()
    scale = Program(SOURCE, "c++").compile("cubin").get_kernel("scale")
    n = 100_000

    # Allocated page-locked: the host writes to it like to any array.
    allocated = check(runtime.cudaHostAlloc(8 * n, runtime.cudaHostAllocMapped))
    source = np.frombuffer((ctypes.c_char * (8 * n)).from_address(allocated), np.float64)
    source[:] = np.arange(n)

    # Page-locked afterwards: an array allocated by NumPy.
    target = np.zeros(n)
    check(runtime.cudaHostRegister(target.ctypes.data, target.nbytes, runtime.cudaHostRegisterMapped))
    try:
        # The device may use other addresses than the host.
        device_in = check(runtime.cudaHostGetDevicePointer(allocated, 0))
        device_out = check(runtime.cudaHostGetDevicePointer(target.ctypes.data, 0))
        config = LaunchConfig(grid=-(-n // 256), block=256)
        launch(stream, config, scale, device_in, device_out, 0.5, np.int32(n))
        # No copy synchronizes here: the host must. A stream of cuda.core is a stream of the runtime, too.
        check(runtime.cudaStreamSynchronize(stream.handle))
        if not (target == np.arange(n) * 0.5).all():
            sys.exit("wrong result: the array that the kernel wrote")
    finally:
        check(runtime.cudaHostUnregister(target.ctypes.data))
        del source
        check(runtime.cudaFreeHost(allocated))
    print(f"a kernel read and wrote {n} numbers of the host's memory")
    print("done: the results are right")


if __name__ == "__main__":
    main()
