"""A vector that grows in place: addresses are reserved first, memory is mapped on demand.

An ordinary allocation that must grow is allocated anew and copied. With virtual memory management only the new part is
created; pointers that kernels use stay valid. The
calls of virtual memory management are the driver's; `cuda.core` has them as `VirtualMemoryResource`.
"""

import sys

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, launch

SOURCE = r"""
extern "C" __global__ void number(unsigned *out, unsigned long long from, unsigned long long to)
{
    unsigned long long i = from + blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < to)
        out[i] = (unsigned)(i * 2654435761u);
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
    """The outputs of a driver call: None, one value or a tuple. Anything but success raises."""
    status, *outputs = result
    if status != 0:
        raise RuntimeError(repr(status))
    return outputs[0] if len(outputs) == 1 else tuple(outputs) if outputs else None


class Vector:
    """Memory on a device that grows without moving."""

    def __init__(self, most, device=0):
        self.properties = driver.CUmemAllocationProp()
        self.properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        self.properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        self.properties.location.id = device
        self.access = driver.CUmemAccessDesc()
        self.access.location = self.properties.location
        self.access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        option = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
        self.unit = int(check(driver.cuMemGetAllocationGranularity(self.properties, option)))
        self.reserved = -(-most // self.unit) * self.unit
        self.base = int(check(driver.cuMemAddressReserve(self.reserved, 0, 0, 0)))
        self.size = 0

    def grow(self, size):
        """Makes at least `size` bytes usable."""
        more = -(-(size - self.size) // self.unit) * self.unit
        if more <= 0:
            return
        if self.size + more > self.reserved:
            raise MemoryError("more than was reserved")
        memory = check(driver.cuMemCreate(more, self.properties, 0))
        check(driver.cuMemMap(self.base + self.size, more, 0, memory, 0))
        # The mapping keeps the memory alive; the handle is no longer needed.
        check(driver.cuMemRelease(memory))
        check(driver.cuMemSetAccess(self.base + self.size, more, [self.access], 1))
        self.size += more

    def close(self):
        if self.size:
            check(driver.cuMemUnmap(self.base, self.size))
        check(driver.cuMemAddressFree(self.base, self.reserved))


def main():
    device = first_device()
    if not device.properties.virtual_memory_management_supported:
        skip("the device does not support virtual memory management")
    stream = device.create_stream()
    number = Program(SOURCE, "c++").compile("cubin").get_kernel("number")
    vector = Vector(64 << 20)
    address, count, sizes = vector.base, 0, []
    for wanted in (100_000, 700_000, 1_500_000, 3_000_000):
        vector.grow(4 * wanted)
        sizes.append(vector.size >> 20)
        # Only the new part is written: the rest must still be intact at the end.
        config = LaunchConfig(grid=-(-(wanted - count) // 256), block=256)
        launch(stream, config, number, address, np.uint64(count), np.uint64(wanted))
        count = wanted
    out = np.empty(count, np.uint32)
    stream.sync()
    check(driver.cuMemcpyDtoH(out.ctypes.data, address, out.nbytes))
    if not (out == np.arange(count, dtype=np.uint32) * np.uint32(2654435761)).all():
        sys.exit("wrong result: a number changed while growing")
    vector.close()
    print(
        f"{count} numbers at one address, in {' -> '.join(map(str, sizes))} MiB of {vector.reserved >> 20} MiB reserved"
    )
    print("done: the results are right")


if __name__ == "__main__":
    main()
