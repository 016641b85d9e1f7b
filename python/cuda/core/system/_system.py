"""The machine: versions, number of devices, processes."""

from __future__ import annotations

from ._nvml import call

__all__ = [
    "get_driver_branch",
    "get_kernel_mode_driver_version",
    "get_num_devices",
    "get_nvml_version",
    "get_process_name",
    "get_user_mode_driver_version",
]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def get_user_mode_driver_version() -> tuple[int, ...]:
    """CUDA version of the driver library, ``(major, minor)``: the newest CUDA whose programs it runs.

    Examples
    --------
    >>> from cuda.core import system
    >>> system.get_user_mode_driver_version() >= (12, 0)
    True
    """
    from cuda.bindings import driver

    from .._utils.cuda_utils import handle_return

    version = handle_return(driver.cuDriverGetVersion())
    return version // 1000, version % 1000 // 10


def get_kernel_mode_driver_version() -> tuple[int, ...]:
    """Version of the driver, for example ``(580, 65, 6)``.

    Examples
    --------
    >>> from cuda.core import system
    >>> print("driver", ".".join(map(str, system.get_kernel_mode_driver_version())))
    driver ...
    """
    return _numbers(call("system_get_driver_version"))


def get_nvml_version() -> tuple[int, ...]:
    """Version of NVML: numbers whose first is the CUDA version's major.

    Examples
    --------
    >>> from cuda.core import system
    >>> system.get_nvml_version() >= (12,)
    True
    """
    return _numbers(call("system_get_nvml_version"))


def get_driver_branch() -> str:
    """Branch of the driver, for example ``"r580_00"``.

    Examples
    --------
    >>> from cuda.core import system
    >>> print("driver branch", system.get_driver_branch())
    driver branch ...
    """
    return str(call("system_get_driver_branch"))


def get_num_devices() -> int:
    """Number of devices that NVML reports, whatever ``CUDA_VISIBLE_DEVICES`` is.

    Examples
    --------
    >>> from cuda.core import system
    >>> system.get_num_devices() >= 1
    True
    """
    return int(call("device_get_count_v2"))


def get_process_name(pid: int) -> str:
    """Name of a process.

    Parameters
    ----------
    pid : int
        Process ID.

    Raises
    ------
    NotFoundError
        If there is no such process.

    Examples
    --------
    >>> import contextlib
    >>> import os
    >>> from cuda.core import system
    >>> with contextlib.suppress(system.NotFoundError):
    ...     name = system.get_process_name(os.getpid())
    """
    return str(call("system_get_process_name", pid))
