"""The devices of this machine and their capabilities.

Queries every device's name, memory and attributes from the driver. Programs that adapt to the machine start like this.
"""

from cuda.bindings import driver
from sample import attribute, check, name_of, run, verify

FACTS = [
    ("multiprocessors", "MULTIPROCESSOR_COUNT", ""),
    ("clock rate", "CLOCK_RATE", "kHz"),
    ("threads of a warp", "WARP_SIZE", ""),
    ("threads of a block, at most", "MAX_THREADS_PER_BLOCK", ""),
    ("threads of a multiprocessor, at most", "MAX_THREADS_PER_MULTIPROCESSOR", ""),
    ("registers of a block", "MAX_REGISTERS_PER_BLOCK", ""),
    ("shared memory of a block", "MAX_SHARED_MEMORY_PER_BLOCK", "bytes"),
    ("the same for a kernel that asks", "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", "bytes"),
    ("L2 cache", "L2_CACHE_SIZE", "bytes"),
    ("width of the memory bus", "GLOBAL_MEMORY_BUS_WIDTH", "bits"),
]
ABILITIES = [
    ("kernels at the same time", "CONCURRENT_KERNELS"),
    ("managed memory", "MANAGED_MEMORY"),
    ("memory pools", "MEMORY_POOLS_SUPPORTED"),
    ("virtual memory management", "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED"),
    ("cooperative launches", "COOPERATIVE_LAUNCH"),
    ("atomics shared with the host", "HOST_NATIVE_ATOMIC_SUPPORTED"),
]


def describe(device):
    total = check(driver.cuDeviceTotalMem(device))
    major, minor = attribute("COMPUTE_CAPABILITY_MAJOR", device), attribute("COMPUTE_CAPABILITY_MINOR", device)
    uuid = bytes(check(driver.cuDeviceGetUuid(device)).bytes)
    print(f"device {device}: {name_of(device)}")
    print(f"  {'compute capability':<40} {major}.{minor}")
    print(f"  {'memory':<40} {total / 2**30:.1f} GiB")
    print(f"  {'UUID':<40} {uuid.hex()}")
    for text, name, unit in FACTS:
        print(f"  {text:<40} {attribute(name, device)} {unit}".rstrip())
    block = [attribute(f"MAX_BLOCK_DIM_{axis}", device) for axis in "XYZ"]
    grid = [attribute(f"MAX_GRID_DIM_{axis}", device) for axis in "XYZ"]
    print(f"  {'largest block':<40} {block[0]} x {block[1]} x {block[2]}")
    print(f"  {'largest grid':<40} {grid[0]} x {grid[1]} x {grid[2]}")
    for text, name in ABILITIES:
        print(f"  {text:<40} {'yes' if attribute(name, device) else 'no'}")
    verify(total > 0 and attribute("WARP_SIZE", device) == 32, "a device without memory or with another warp size")
    verify(
        attribute("MAX_THREADS_PER_BLOCK", device) <= block[0] * block[1] * block[2],
        "the block limits contradict each other",
    )
    # The bus id identifies a device.
    bus_id = check(driver.cuDeviceGetPCIBusId(32, device)).split(b"\0")[0]
    verify(int(check(driver.cuDeviceGetByPCIBusId(bus_id))) == device, "the bus id leads to another device")


def main():
    version = check(driver.cuDriverGetVersion())
    print(f"driver for CUDA {version // 1000}.{version % 1000 // 10}")
    for device in range(check(driver.cuDeviceGetCount())):
        describe(device)


if __name__ == "__main__":
    run(main)
