"""The devices of this machine and their capabilities.

Prints every device's name, memory and properties. Programs that adapt to the machine start like this.
"""

import sys

from cuda.bindings import driver
from cuda.core import Device

FACTS = [
    ("multiprocessors", "multiprocessor_count", ""),
    ("clock rate", "clock_rate", "kHz"),
    ("threads of a warp", "warp_size", ""),
    ("threads of a block, at most", "max_threads_per_block", ""),
    ("threads of a multiprocessor, at most", "max_threads_per_multiprocessor", ""),
    ("registers of a block", "max_registers_per_block", ""),
    ("shared memory of a block", "max_shared_memory_per_block", "bytes"),
    ("the same for a kernel that asks", "max_shared_memory_per_block_optin", "bytes"),
    ("L2 cache", "l2_cache_size", "bytes"),
    ("width of the memory bus", "global_memory_bus_width", "bits"),
]
ABILITIES = [
    ("kernels at the same time", "concurrent_kernels"),
    ("managed memory", "managed_memory"),
    ("memory pools", "memory_pools_supported"),
    ("virtual memory management", "virtual_memory_management_supported"),
    ("cooperative launches", "cooperative_launch"),
    ("atomics shared with the host", "host_native_atomic_supported"),
]


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


def verify(holds, what):
    """Ends the program with an error unless the result is right."""
    if not holds:
        sys.exit(f"wrong result: {what}")


def describe(device):
    properties = device.properties
    print(f"device {device.device_id}: {device.name}")
    print(f"  {'compute capability':<40} {device.compute_capability.major}.{device.compute_capability.minor}")
    print(f"  {'memory':<40} {device.total_memory / 2**30:.1f} GiB")
    print(f"  {'UUID':<40} {device.uuid}")
    print(f"  {'PCI bus id':<40} {device.pci_bus_id}")
    for text, name, unit in FACTS:
        print(f"  {text:<40} {getattr(properties, name)} {unit}".rstrip())
    block = [getattr(properties, f"max_block_dim_{axis}") for axis in "xyz"]
    grid = [getattr(properties, f"max_grid_dim_{axis}") for axis in "xyz"]
    print(f"  {'largest block':<40} {block[0]} x {block[1]} x {block[2]}")
    print(f"  {'largest grid':<40} {grid[0]} x {grid[1]} x {grid[2]}")
    for text, name in ABILITIES:
        print(f"  {text:<40} {'yes' if getattr(properties, name) else 'no'}")
    verify(device.total_memory > 0 and properties.warp_size == 32, "a device without memory or with another warp size")
    verify(
        properties.max_threads_per_block <= block[0] * block[1] * block[2],
        "the block limits contradict each other",
    )
    # The bus id identifies a device, to other libraries as well.
    status, number = driver.cuDeviceGetByPCIBusId(device.pci_bus_id.encode())
    verify(status == 0 and int(number) == device.device_id, "the bus id leads to another device")


def main():
    first_device()
    _, version = driver.cuDriverGetVersion()
    print(f"driver for CUDA {version // 1000}.{version % 1000 // 10}")
    for device in Device.get_all_devices():
        describe(device)
    print("done: the results are right")


if __name__ == "__main__":
    main()
