"""The machine: versions, number of devices, processes."""

from ._nvml import call

__all__ = [
    "get_driver_branch",
    "get_kernel_mode_driver_version",
    "get_num_devices",
    "get_nvml_version",
    "get_process_name",
    "get_user_mode_driver_version",
]


def _numbers(version):
    return tuple(int(part) for part in version.split("."))


def get_user_mode_driver_version():
    """CUDA version of the driver library, ``(major, minor)``: the newest CUDA whose programs it runs."""
    from cuda.bindings import driver

    from .._utils.cuda_utils import handle_return

    version = handle_return(driver.cuDriverGetVersion())
    return version // 1000, version % 1000 // 10


def get_kernel_mode_driver_version():
    """Version of the driver, for example ``(580, 65, 6)``."""
    return _numbers(call("system_get_driver_version"))


def get_nvml_version():
    """Version of NVML: numbers whose first is the CUDA version's major."""
    return _numbers(call("system_get_nvml_version"))


def get_driver_branch():
    """Branch of the driver, for example ``"r580_00"``."""
    return call("system_get_driver_branch")


def get_num_devices():
    """Number of devices that NVML reports, whatever ``CUDA_VISIBLE_DEVICES`` is."""
    return call("device_get_count_v2")


def get_process_name(pid):
    """Name of a process.

    Parameters
    ----------
    pid : int
        Process ID.

    Raises
    ------
    NotFoundError
        If there is no such process.
    """
    return call("system_get_process_name", pid)
