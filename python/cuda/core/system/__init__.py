"""The machine and its devices as NVML, the management library, sees them.

Public names are imported on first use, and NVML is loaded and initialised by the first call. `Device` describes a device
(memory, clocks, temperature, topology); `cuda.core.Device` computes with it.
"""

# Public name -> module of this package that defines it.
_HOMES = {
    "Device": "_device",
    "NvlinkInfo": "_device",
    "get_driver_branch": "_system",
    "get_kernel_mode_driver_version": "_system",
    "get_num_devices": "_system",
    "get_nvml_version": "_system",
    "get_p2p_status": "_device",
    "get_process_name": "_system",
    "get_topology_common_ancestor": "_device",
    "get_user_mode_driver_version": "_system",
    "register_events": "_system_events",
}

_SUBMODULES = ("exceptions", "typing")

_EXCEPTIONS = (
    "AlreadyInitializedError",
    "ArgumentVersionMismatchError",
    "CorruptedInforomError",
    "DeprecatedError",
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
    "NvmlError",
    "OperatingSystemError",
    "ResetRequiredError",
    "ResetTypeNotSupportedError",
    "TimeoutError",
    "UninitializedError",
    "UnknownError",
    "VgpuEccNotSupportedError",
)
_HOMES.update(dict.fromkeys(_EXCEPTIONS, "exceptions"))

CUDA_BINDINGS_NVML_IS_COMPATIBLE = True
"""Whether the installed `cuda.bindings` has the functions of NVML that this package needs. It is part of Cupyrite."""

__all__ = sorted([*_HOMES, "CUDA_BINDINGS_NVML_IS_COMPATIBLE"])


def __getattr__(name):
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name == "driver_version":
        import warnings

        warnings.warn(
            "cuda.core.system.driver_version is deprecated; use get_user_mode_driver_version()",
            DeprecationWarning,
            stacklevel=2,
        )
        return __getattr__("get_user_mode_driver_version")()
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_HOMES, *_SUBMODULES})
