"""The calls of the CUDA driver that the plugin makes, through ctypes.

They depend on neither the native module nor `cuda.bindings`, and reach the driver that everything else in the process finds
as `libcuda.so.1`. A process that has loaded the native module resets contexts through it.
"""

from __future__ import annotations

import ctypes
import os
import sys

from cupyrite.run import FOLDER

LIBRARY = "libcuda.so.1"
CUDA_SUCCESS = 0
CUDA_ERROR_NOT_INITIALIZED = 3
CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7
NVML_SUCCESS = 0


class _ProcessInfo(ctypes.Structure):
    """`nvmlProcessInfo_t` of NVML 12 and later."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("usedGpuMemory", ctypes.c_ulonglong),
        ("gpuInstanceId", ctypes.c_uint),
        ("computeInstanceId", ctypes.c_uint),
    )


class Driver:
    """The driver of a device: "cpu" or "gpu". Raises OSError if its library cannot be loaded."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._library = ctypes.CDLL(os.path.join(FOLDER, LIBRARY) if device == "cpu" else LIBRARY)
        self._nvml: ctypes.CDLL | None = None

    def _call(self, name: str, *arguments: object) -> int:
        return int(getattr(self._library, name)(*arguments))

    def initialize(self) -> int:
        """Status of `cuInit`."""
        return self._call("cuInit", 0)

    def error_name(self, status: int) -> str:
        """Name of a status, such as CUDA_ERROR_ILLEGAL_ADDRESS."""
        text = ctypes.c_char_p()
        if self._call("cuGetErrorName", status, ctypes.byref(text)) or not text.value:
            return f"CUDA error {status}"
        return text.value.decode()

    def count(self) -> int:
        """Number of devices; 0 if the driver is not initialised."""
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        return count.value

    def name(self, ordinal: int) -> str:
        """Name of a device."""
        text = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", text, len(text), ordinal)
        return text.value.decode(errors="replace")

    def compute_capability(self, ordinal: int) -> tuple[int, int]:
        """(major, minor) of a device."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        attribute = "cuDeviceGetAttribute"
        self._call(attribute, ctypes.byref(major), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal)
        self._call(attribute, ctypes.byref(minor), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ordinal)
        return major.value, minor.value

    def synchronize(self, ordinal: int) -> int:
        """Waits for the device's primary context and returns the status. Does not create a primary context just to check."""
        flags, active = ctypes.c_uint(), ctypes.c_int()
        state = self._call("cuDevicePrimaryCtxGetState", ordinal, ctypes.byref(flags), ctypes.byref(active))
        if state == CUDA_ERROR_NOT_INITIALIZED or (state == CUDA_SUCCESS and not active.value):
            return CUDA_SUCCESS
        context, popped = ctypes.c_void_p(), ctypes.c_void_p()
        if status := state or self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal):
            return status
        try:
            if status := self._call("cuCtxPushCurrent_v2", context):
                return status
            status = self._call("cuCtxSynchronize")
            self._call("cuCtxPopCurrent_v2", ctypes.byref(popped))
            return status
        finally:
            self._call("cuDevicePrimaryCtxRelease_v2", ordinal)

    def reset(self, ordinal: int) -> int:
        """Resets the device's primary context; returns the status of making it usable again.

        After the fault of a kernel, a GPU's driver resets the context, but creates no other in the same process.
        """
        context = ctypes.c_void_p()
        if status := (self._reset(ordinal) or self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)):
            return status
        return self._call("cuDevicePrimaryCtxRelease_v2", ordinal)

    def _reset(self, ordinal: int) -> int:
        if "cupyrite._native" not in sys.modules:
            return self._call("cuDevicePrimaryCtxReset_v2", ordinal)
        # The owners of streams, events and buffers see only resets that the native module makes.
        from cuda.bindings import driver

        return int(driver.cuDevicePrimaryCtxReset(ordinal)[0])

    def memory_in_use(self, count: int) -> int | None:
        """Bytes that this process has allocated on its `count` devices; None if unknown.

        Memory that a pool keeps for reuse does not count. On the CPU device the figure has all allocations of the process, each
        rounded up; on a GPU those of each device's current memory pool, the only ones that the driver counts per process.
        """
        if self.device == "cpu":
            return self._memory_of_process(count)
        total = 0
        for ordinal in range(count):
            pool, used = ctypes.c_void_p(), ctypes.c_uint64()
            if self._call("cuDeviceGetMemPool", ctypes.byref(pool), ordinal) or self._call(
                "cuMemPoolGetAttribute", pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, ctypes.byref(used)
            ):
                return None
            total += used.value
        return total

    def _memory_of_process(self, count: int) -> int | None:
        # The CPU device's NVML shows the calling process only, with what its contexts own.
        if self._nvml is None:
            nvml = ctypes.CDLL(os.path.join(FOLDER, "libnvidia-ml.so.1"))
            if nvml.nvmlInit_v2() != NVML_SUCCESS:
                return None
            self._nvml = nvml
        total = 0
        for index in range(count):
            device = ctypes.c_void_p()
            entries, info = ctypes.c_uint(1), _ProcessInfo()
            if (
                self._nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) != NVML_SUCCESS
                or self._nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(entries), ctypes.byref(info))
                != NVML_SUCCESS
            ):
                return None
            if entries.value:
                total += int(info.usedGpuMemory)
        return total
