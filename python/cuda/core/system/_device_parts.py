"""Parts of a device: its InfoROM, its partitions (MIG), its NVLink links."""

from cuda.bindings import nvml

from ._mapping import Mapping
from ._nvml import call, symbol
from .typing import InforomObject

__all__ = ["InforomInfo", "MigInfo", "NvlinkInfo", "checked"]

_INFOROM_OBJECTS = Mapping(InforomObject, "inforom", "InforomObject")

_NVLINK_VERSIONS = {
    "1_0": (1, 0),
    "2_0": (2, 0),
    "2_2": (2, 2),
    "3_0": (3, 0),
    "3_1": (3, 1),
    "4_0": (4, 0),
    "5_0": (5, 0),
    "6_0": (6, 0),
}


def checked(device, name):
    """The argument, if it is a `Device`.

    Raises
    ------
    TypeError
        For other objects.
    """
    from ._device import Device

    if not isinstance(device, Device):
        raise TypeError(f"{name} is of type {type(device).__name__}; expected a cuda.core.system.Device")
    return device


def _device(value):
    """The device of a handle that NVML returned."""
    from ._device import Device

    return Device._of(value)


class InforomInfo:
    """The InfoROM, a memory on the board with its configuration.

    Parameters
    ----------
    device : Device
    """

    __slots__ = ("_handle",)

    def __init__(self, device):
        self._handle = checked(device, "device")._nvml_handle

    def get_version(self, inforom):
        """Version of an object of the InfoROM.

        Parameters
        ----------
        inforom : InforomObject or str
        """
        return call("device_get_inforom_version", self._handle, _INFOROM_OBJECTS.number(inforom))

    @property
    def image_version(self):
        """Version of the whole InfoROM."""
        return call("device_get_inforom_image_version", self._handle)

    @property
    def configuration_checksum(self):
        """Checksum of the configuration."""
        return call("device_get_inforom_configuration_checksum", self._handle)

    @property
    def board_part_number(self):
        """Part number of the board."""
        return call("device_get_board_part_number", self._handle)

    @property
    def bbx_flush_time(self):
        """Time of the last flush of the black box object, and its duration in microseconds."""
        return tuple(call("device_get_last_bbx_flush_time", self._handle))

    def validate(self):
        """Verify the checksums.

        Raises
        ------
        CorruptedInforomError
            If the InfoROM is corrupted.
        """
        call("device_validate_inforom", self._handle)


class MigInfo:
    """Partitions of a GPU (MIG).

    Parameters
    ----------
    device : Device
    """

    __slots__ = ("_handle",)

    def __init__(self, device):
        self._handle = checked(device, "device")._nvml_handle

    @property
    def is_mig_device(self):
        """Whether the device is a partition."""
        return bool(call("device_is_mig_device_handle", self._handle))

    @property
    def mode(self):
        """Whether the GPU is partitioned. Setting it requires root; where it takes effect only after a reset,
        `pending_mode` shows it."""
        return call("device_get_mig_mode", self._handle)[0] == 1

    @mode.setter
    def mode(self, enabled):
        # NVML_DEVICE_MIG_ENABLE, NVML_DEVICE_MIG_DISABLE
        call("device_set_mig_mode", self._handle, 1 if enabled else 0)

    @property
    def pending_mode(self):
        """Whether the GPU will be partitioned after the next reset."""
        return call("device_get_mig_mode", self._handle)[1] == 1

    @property
    def device_count(self):
        """Largest number of partitions."""
        return call("device_get_max_mig_device_count", self._handle)

    @property
    def parent(self):
        """The GPU of a partition."""
        return _device(call("device_get_device_handle_from_mig_device_handle", self._handle))

    def get_device_by_index(self, index):
        """The partition of that number, counted from 0."""
        return _device(call("device_get_mig_device_handle_by_index", self._handle, index))

    def get_all_devices(self):
        """Iterator over the partitions that exist."""
        for index in range(self.device_count):
            try:
                device = self.get_device_by_index(index)
            except nvml.NotFoundError:
                continue
            yield device


class _NvlinkInfo:
    """One NVLink link of a device."""

    def __init__(self, device, link):
        self._handle = checked(device, "device")._nvml_handle
        self._link = link

    @property
    def state(self):
        """Whether the link is active."""
        return call("device_get_nvlink_state", self._handle, self._link) == nvml.EnableState.ENABLED

    @property
    def version(self):
        """NVLink version, ``(major, minor)``.

        Raises
        ------
        RuntimeError
            If the driver reports a version that this package does not know.
        """
        number = call("device_get_nvlink_version", self._handle, self._link)
        for name, version in _NVLINK_VERSIONS.items():
            if getattr(nvml.NvlinkVersion, f"VERSION_{name}") == number:
                return version
        raise RuntimeError(
            f"{symbol('device_get_nvlink_version')} returned {number} for link {self._link}, "
            "which this package does not know"
        )


class _NvlinkInfoMeta(type):
    @property
    def max_links(cls):
        """Deprecated: use `Device.get_nvlink_count`."""
        import warnings

        warnings.warn(
            "NvlinkInfo.max_links is deprecated; use Device.get_nvlink_count()", DeprecationWarning, stacklevel=2
        )
        return nvml.NVLINK_MAX_LINKS


class NvlinkInfo(_NvlinkInfo, metaclass=_NvlinkInfoMeta):
    """One NVLink link of a device.

    Parameters
    ----------
    device : Device
    link : int
        Number of the link, counted from 0.

    Examples
    --------
    >>> import contextlib
    >>> from cuda.core import system
    >>> with contextlib.suppress(system.NotSupportedError):
    ...     versions = [link.version for link in system.Device(index=0).get_nvlinks() if link.state]
    """
