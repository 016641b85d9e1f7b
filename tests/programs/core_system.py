"""cuda.core.system: the driver, the devices, and the device of cuda.core among them."""

from cuda.core import Device, system

count = system.get_num_devices()
print("devices known:", count >= 1)
print("driver known:", system.driver_version > (11, 0))
device = Device(0)
device.set_current()
managed = device.to_system_device()
print("same name:", managed.name == device.name)
print("same device:", device.uuid in managed.uuid)
