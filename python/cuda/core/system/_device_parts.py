"""Parts of a device: its InfoROM, its partitions (MIG), its NVLink links."""

from __future__ import annotations

from cuda.bindings import nvml

from ._mapping import Mapping
from ._nvml import symbol
from ._properties import _Queried, enabled, reading
from .typing import InforomObject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ._device import Device

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


def checked(device: object, name: str) -> Device:
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


def _device(value: int) -> Device:
    """The device of a handle that NVML returned."""
    from ._device import Device

    return Device._of(value)


class _PartOfDevice(_Queried):
    __slots__ = ()

    def __init__(self, device: Device) -> None:
        self._nvml_handle = checked(device, "device")._nvml_handle


class InforomInfo(_PartOfDevice):
    """The InfoROM, a memory on the board with its configuration.

    Parameters
    ----------
    device : Device
    """

    __slots__ = ()

    def get_version(self, inforom: InforomObject | str) -> str:
        """Version of an object of the InfoROM.

        Parameters
        ----------
        inforom : InforomObject or str
        """
        return str(self._call("device_get_inforom_version", _INFOROM_OBJECTS.number(inforom)))

    image_version = reading(str, "inforom_image_version", "Version of the whole InfoROM.")
    configuration_checksum = reading(int, "inforom_configuration_checksum", "Checksum of the configuration.")
    board_part_number = reading(str, "board_part_number", "Part number of the board.")
    bbx_flush_time = reading(
        tuple[int, int],
        "last_bbx_flush_time",
        "Time of the last flush of the black box object, and its duration in microseconds.",
    )

    def validate(self) -> None:
        """Verify the checksums.

        Raises
        ------
        CorruptedInforomError
            If the InfoROM is corrupted.
        """
        self._call("device_validate_inforom")


class MigInfo(_PartOfDevice):
    """Partitions of a GPU (MIG).

    Parameters
    ----------
    device : Device
    """

    __slots__ = ()

    @property
    def is_mig_device(self) -> bool:
        """Whether the device is a partition."""
        return bool(self._call("device_is_mig_device_handle"))

    @property
    def mode(self) -> bool:
        """Whether the GPU is partitioned. Setting it requires root; where it takes effect only after a reset,
        `pending_mode` shows it."""
        return bool(self._call("device_get_mig_mode")[0] == 1)

    @mode.setter
    def mode(self, enabled: bool) -> None:
        # NVML_DEVICE_MIG_ENABLE, NVML_DEVICE_MIG_DISABLE
        self._call("device_set_mig_mode", 1 if enabled else 0)

    pending_mode = reading(
        bool, "mig_mode", "Whether the GPU will be partitioned after the next reset.", lambda modes: modes[1] == 1
    )
    device_count = reading(int, "max_mig_device_count", "Largest number of partitions.")

    @property
    def parent(self) -> Device:
        """The GPU of a partition."""
        return _device(self._call("device_get_device_handle_from_mig_device_handle"))

    def get_device_by_index(self, index: int) -> Device:
        """The partition of that number, counted from 0."""
        return _device(self._call("device_get_mig_device_handle_by_index", index))

    def get_all_devices(self) -> Iterator[Device]:
        """Iterator over the partitions that exist."""
        for index in range(self.device_count):
            try:
                device = self.get_device_by_index(index)
            except nvml.NotFoundError:
                continue
            yield device


class _NvlinkInfo(_Queried):
    """One NVLink link of a device."""

    def __init__(self, device: Device, link: int) -> None:
        self._nvml_handle, self._link = checked(device, "device")._nvml_handle, link

    def _call(self, name: str, *arguments: object) -> Any:
        return super()._call(name, self._link, *arguments)

    state = reading(bool, "nvlink_state", "Whether the link is active.", enabled)

    @property
    def version(self) -> tuple[int, int]:
        """NVLink version, ``(major, minor)``.

        Raises
        ------
        RuntimeError
            If the driver reports a version that this package does not know.
        """
        number = self._call("device_get_nvlink_version")
        for name, version in _NVLINK_VERSIONS.items():
            if getattr(nvml.NvlinkVersion, f"VERSION_{name}") == number:
                return version
        raise RuntimeError(
            f"{symbol('device_get_nvlink_version')} returned {number} for link {self._link}, "
            "which this package does not know"
        )


class _NvlinkInfoMeta(type):
    @property
    def max_links(cls) -> int:
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
