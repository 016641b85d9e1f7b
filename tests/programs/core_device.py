"""cuda.core: the properties of a device."""

from cuda.core import Device

device = Device(0)
device.set_current()
capability = device.compute_capability
assert tuple(capability) == (capability.major, capability.minor)
assert device.arch == f"{capability.major}{capability.minor}"
assert Device(0) is device
print("device:", device.name)
print("uuid:", device.uuid)
print("bus:", device.pci_bus_id)
properties = device.properties
assert properties.multiprocessor_count >= 1 and properties.max_shared_memory_per_block >= 16 << 10
print("pools:", bool(properties.memory_pools_supported))
print("warp size:", properties.warp_size, "threads a block:", properties.max_threads_per_block)
device.sync()
devices = Device.get_all_devices()
assert [each.device_id for each in devices] == list(range(len(devices)))
if len(devices) > 1:
    assert isinstance(device.can_access_peer(devices[1]), bool)
