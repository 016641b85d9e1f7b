"""The machine: versions, number of devices, processes."""

__all__ = [
    "get_driver_branch",
    "get_kernel_mode_driver_version",
    "get_num_devices",
    "get_nvml_version",
    "get_process_name",
    "get_user_mode_driver_version",
]

def get_user_mode_driver_version() -> tuple[int, ...]:
    """CUDA version of the driver library, ``(major, minor)``: the newest CUDA whose programs it runs."""

def get_kernel_mode_driver_version() -> tuple[int, ...]:
    """Version of the driver, for example ``(580, 65, 6)``."""

def get_nvml_version() -> tuple[int, ...]:
    """Version of NVML: numbers whose first is the CUDA version's major."""

def get_driver_branch() -> str:
    """Branch of the driver, for example ``"r580_00"``."""

def get_num_devices() -> int:
    """Number of devices that NVML reports, whatever ``CUDA_VISIBLE_DEVICES`` is."""

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
    """
