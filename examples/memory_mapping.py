"""A vector that grows in place: addresses are reserved first, memory is mapped on demand.

An ordinary allocation that must grow is allocated anew and copied. With virtual memory management only the new part is
created; pointers that kernels use stay valid.
"""

import numpy as np
from cuda.bindings import driver
from sample import Kernels, Skip, attribute, check, run, verify

SOURCE = r"""
extern "C" __global__ void number(unsigned *out, unsigned long long from, unsigned long long to)
{
    unsigned long long i = from + blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < to)
        out[i] = (unsigned)(i * 2654435761u);
}
"""


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
    if not attribute("VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED"):
        raise Skip("the device does not support virtual memory management")
    kernels = Kernels(SOURCE)
    vector = Vector(64 << 20)
    address, count, sizes = vector.base, 0, []
    for wanted in (100_000, 700_000, 1_500_000, 3_000_000):
        vector.grow(4 * wanted)
        sizes.append(vector.size >> 20)
        # Only the new part is written: the rest must still be intact at the end.
        kernels["number"](-(-(wanted - count) // 256), 256, address, np.uint64(count), np.uint64(wanted))
        count = wanted
    out = np.empty(count, np.uint32)
    check(driver.cuMemcpyDtoH(out.ctypes.data, address, out.nbytes))
    verify((out == np.arange(count, dtype=np.uint32) * np.uint32(2654435761)).all(), "a number changed while growing")
    vector.close()
    print(
        f"{count} numbers at one address, in {' -> '.join(map(str, sizes))} MiB of {vector.reserved >> 20} MiB reserved"
    )


if __name__ == "__main__":
    run(main)
