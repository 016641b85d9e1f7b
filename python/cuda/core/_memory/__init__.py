"""Buffers and memory resources."""

from cuda.core._memory._buffer import Buffer, MemoryResource
from cuda.core._memory._device_memory_resource import DeviceMemoryResource, DeviceMemoryResourceOptions

__all__ = ["Buffer", "DeviceMemoryResource", "DeviceMemoryResourceOptions", "MemoryResource"]
