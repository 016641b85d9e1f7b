"""The machine and its devices as NVML, the management library, sees them."""

from cuda.core.system import exceptions as exceptions
from cuda.core.system import typing as typing
from cuda.core.system._device import Device as Device, NvlinkInfo as NvlinkInfo, get_p2p_status as get_p2p_status, get_topology_common_ancestor as get_topology_common_ancestor
from cuda.core.system._system import get_driver_branch as get_driver_branch, get_kernel_mode_driver_version as get_kernel_mode_driver_version, get_num_devices as get_num_devices, get_nvml_version as get_nvml_version, get_process_name as get_process_name, get_user_mode_driver_version as get_user_mode_driver_version
from cuda.core.system._system_events import register_events as register_events
from cuda.core.system.exceptions import AlreadyInitializedError as AlreadyInitializedError, ArgumentVersionMismatchError as ArgumentVersionMismatchError, CorruptedInforomError as CorruptedInforomError, DeprecatedError as DeprecatedError, DriverNotLoadedError as DriverNotLoadedError, FreqNotSupportedError as FreqNotSupportedError, FunctionNotFoundError as FunctionNotFoundError, GpuIsLostError as GpuIsLostError, GpuNotFoundError as GpuNotFoundError, InUseError as InUseError, InsufficientPowerError as InsufficientPowerError, InsufficientResourcesError as InsufficientResourcesError, InsufficientSizeError as InsufficientSizeError, InvalidArgumentError as InvalidArgumentError, InvalidStateError as InvalidStateError, IrqIssueError as IrqIssueError, LibRmVersionMismatchError as LibRmVersionMismatchError, LibraryNotFoundError as LibraryNotFoundError, MemoryError as MemoryError, NoDataError as NoDataError, NoPermissionError as NoPermissionError, NotFoundError as NotFoundError, NotReadyError as NotReadyError, NotSupportedError as NotSupportedError, NvmlError as NvmlError, OperatingSystemError as OperatingSystemError, ResetRequiredError as ResetRequiredError, ResetTypeNotSupportedError as ResetTypeNotSupportedError, TimeoutError as TimeoutError, UninitializedError as UninitializedError, UnknownError as UnknownError, VgpuEccNotSupportedError as VgpuEccNotSupportedError

__all__ = [
    "AlreadyInitializedError",
    "ArgumentVersionMismatchError",
    "CUDA_BINDINGS_NVML_IS_COMPATIBLE",
    "CorruptedInforomError",
    "DeprecatedError",
    "Device",
    "DriverNotLoadedError",
    "FreqNotSupportedError",
    "FunctionNotFoundError",
    "GpuIsLostError",
    "GpuNotFoundError",
    "InUseError",
    "InsufficientPowerError",
    "InsufficientResourcesError",
    "InsufficientSizeError",
    "InvalidArgumentError",
    "InvalidStateError",
    "IrqIssueError",
    "LibRmVersionMismatchError",
    "LibraryNotFoundError",
    "MemoryError",
    "NoDataError",
    "NoPermissionError",
    "NotFoundError",
    "NotReadyError",
    "NotSupportedError",
    "NvlinkInfo",
    "NvmlError",
    "OperatingSystemError",
    "ResetRequiredError",
    "ResetTypeNotSupportedError",
    "TimeoutError",
    "UninitializedError",
    "UnknownError",
    "VgpuEccNotSupportedError",
    "get_driver_branch",
    "get_kernel_mode_driver_version",
    "get_num_devices",
    "get_nvml_version",
    "get_p2p_status",
    "get_process_name",
    "get_topology_common_ancestor",
    "get_user_mode_driver_version",
    "register_events",
]

CUDA_BINDINGS_NVML_IS_COMPATIBLE: bool
driver_version: tuple[int, ...]
