"""Memory of devices, from pools of the driver's."""

from cupyrite._native.core import DeviceMemoryResource, mempool_get_access

from cuda.core._options import options

__all__ = ["DMR_mempool_get_access", "DeviceMemoryResource", "DeviceMemoryResourceOptions"]


@options
class DeviceMemoryResourceOptions:
    """How the pool of a :class:`DeviceMemoryResource` is made.

    Attributes
    ----------
    ipc_enabled : bool
        Whether its memory can be shared with other processes.
    max_size : int
        Most bytes that the pool takes from the device; 0 leaves the limit to the driver.
    """

    ipc_enabled: "bool" = False
    max_size: "int" = 0

    def __post_init__(self):
        if type(self.ipc_enabled) is not bool:
            self.ipc_enabled = bool(self.ipc_enabled)
        if not hasattr(self.max_size, "__index__"):
            raise TypeError(
                f"DeviceMemoryResourceOptions.max_size is {self.max_size!r}; expected an int, a number of bytes"
            )


def DMR_mempool_get_access(dmr: "DeviceMemoryResource", device_id: "int") -> "str":
    """What a device may do with the memory of a resource: ``"rw"``, ``"r"`` or ``""`` for nothing.

    Parameters
    ----------
    dmr : DeviceMemoryResource
        The resource.
    device_id : int
        The number of the device.
    """
    from cuda.core._device import Device

    return mempool_get_access(dmr, Device(device_id).device_id)
