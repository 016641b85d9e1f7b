"""Device memory from driver memory pools."""

from cuda.core._options import options
from cupyrite._native.core import DeviceMemoryResource, mempool_get_access

__all__ = ["DMR_mempool_get_access", "DeviceMemoryResource", "DeviceMemoryResourceOptions"]


@options
class DeviceMemoryResourceOptions:
    """Options of the pool of a :class:`DeviceMemoryResource`.

    Attributes
    ----------
    ipc_enabled : bool
        Whether the memory can be shared with other processes.
    max_size : int
        Maximum size of the pool in bytes; 0 selects the driver's limit.

    Examples
    --------
    >>> from cuda.core import Device, DeviceMemoryResource, DeviceMemoryResourceOptions
    >>> options = DeviceMemoryResourceOptions(ipc_enabled=True, max_size=64 << 20)
    >>> DeviceMemoryResource(Device(), options).is_ipc_enabled
    True
    """

    ipc_enabled: "bool" = False
    max_size: "int" = 0

    def __post_init__(self):
        if type(self.ipc_enabled) is not bool:
            self.ipc_enabled = bool(self.ipc_enabled)
        if not hasattr(self.max_size, "__index__"):
            raise TypeError(
                f"DeviceMemoryResourceOptions.max_size is {self.max_size!r}; expected a number of bytes as int"
            )


def DMR_mempool_get_access(dmr: "DeviceMemoryResource", device_id: "int") -> "str":
    """Access rights of a device to the memory of a resource: ``"rw"``, ``"r"`` or ``""`` (none).

    Parameters
    ----------
    dmr : DeviceMemoryResource
        The resource.
    device_id : int
        Device number.
    """
    from cuda.core._device import Device

    return mempool_get_access(dmr, Device(device_id).device_id)
