"""Pythonic CUDA: devices, streams, memory, programs and launches."""

from cuda.core._context import Context as Context
from cuda.core._context import ContextOptions as ContextOptions
from cuda.core._device import Device as Device
from cuda.core._device_resources import DeviceResources as DeviceResources
from cuda.core._device_resources import SMResource as SMResource
from cuda.core._device_resources import SMResourceOptions as SMResourceOptions
from cuda.core._device_resources import WorkqueueResource as WorkqueueResource
from cuda.core._device_resources import WorkqueueResourceOptions as WorkqueueResourceOptions
from cuda.core._event import Event as Event
from cuda.core._event import EventOptions as EventOptions
from cuda.core._graphics import GraphicsResource as GraphicsResource
from cuda.core._host import Host as Host
from cuda.core._launch_config import LaunchConfig as LaunchConfig
from cuda.core._launcher import launch as launch
from cuda.core._linker import Linker as Linker
from cuda.core._linker import LinkerOptions as LinkerOptions
from cuda.core._memory._buffer import Buffer as Buffer
from cuda.core._memory._buffer import MemoryResource as MemoryResource
from cuda.core._memory._device_memory_resource import DeviceMemoryResource as DeviceMemoryResource
from cuda.core._memory._device_memory_resource import DeviceMemoryResourceOptions as DeviceMemoryResourceOptions
from cuda.core._memory._graph_memory_resource import GraphMemoryResource as GraphMemoryResource
from cuda.core._memory._legacy import LegacyPinnedMemoryResource as LegacyPinnedMemoryResource
from cuda.core._memory._managed_buffer import ManagedBuffer as ManagedBuffer
from cuda.core._memory._managed_memory_resource import ManagedMemoryResource as ManagedMemoryResource
from cuda.core._memory._managed_memory_resource import ManagedMemoryResourceOptions as ManagedMemoryResourceOptions
from cuda.core._memory._pinned_memory_resource import PinnedMemoryResource as PinnedMemoryResource
from cuda.core._memory._pinned_memory_resource import PinnedMemoryResourceOptions as PinnedMemoryResourceOptions
from cuda.core._memory._virtual_memory_resource import VirtualMemoryResource as VirtualMemoryResource
from cuda.core._memory._virtual_memory_resource import VirtualMemoryResourceOptions as VirtualMemoryResourceOptions
from cuda.core._module import Kernel as Kernel
from cuda.core._module import ObjectCode as ObjectCode
from cuda.core._program import Program as Program
from cuda.core._program import ProgramOptions as ProgramOptions
from cuda.core._stream import LEGACY_DEFAULT_STREAM as LEGACY_DEFAULT_STREAM
from cuda.core._stream import PER_THREAD_DEFAULT_STREAM as PER_THREAD_DEFAULT_STREAM
from cuda.core._stream import Stream as Stream
from cuda.core._stream import StreamOptions as StreamOptions
from cuda.core._tensor_map import TensorMapDescriptor as TensorMapDescriptor
from cuda.core._tensor_map import TensorMapDescriptorOptions as TensorMapDescriptorOptions

__version__: str

__all__ = [
    "Buffer",
    "Context",
    "ContextOptions",
    "Device",
    "DeviceMemoryResource",
    "DeviceMemoryResourceOptions",
    "DeviceResources",
    "Event",
    "EventOptions",
    "GraphMemoryResource",
    "GraphicsResource",
    "Host",
    "Kernel",
    "LEGACY_DEFAULT_STREAM",
    "LaunchConfig",
    "LegacyPinnedMemoryResource",
    "Linker",
    "LinkerOptions",
    "ManagedBuffer",
    "ManagedMemoryResource",
    "ManagedMemoryResourceOptions",
    "MemoryResource",
    "ObjectCode",
    "PER_THREAD_DEFAULT_STREAM",
    "PinnedMemoryResource",
    "PinnedMemoryResourceOptions",
    "Program",
    "ProgramOptions",
    "SMResource",
    "SMResourceOptions",
    "Stream",
    "StreamOptions",
    "TensorMapDescriptor",
    "TensorMapDescriptorOptions",
    "VirtualMemoryResource",
    "VirtualMemoryResourceOptions",
    "WorkqueueResource",
    "WorkqueueResourceOptions",
    "launch",
]
