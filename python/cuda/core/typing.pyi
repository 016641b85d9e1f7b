"""Types for annotations: enumerations of option values, and aliases for accepted arguments."""

from collections.abc import Sequence
from enum import StrEnum as _StrEnum
from typing import Literal, TypeAlias

from cuda.bindings.driver import CUdeviceptr
from cuda.core._device_resources import SMResource, WorkqueueResource
from cuda.core._stream import IsStreamType as IsStreamType

__all__ = [
    "AddressModeType",
    "ArrayFormatType",
    "CompilerBackendType",
    "DevicePointerType",
    "DeviceResourcesType",
    "FilterModeType",
    "GraphConditionalType",
    "GraphMemoryType",
    "IsStreamType",
    "ManagedMemoryLocationType",
    "ObjectCodeFormatType",
    "PCHStatusType",
    "ProcessStateType",
    "ReadModeType",
    "SourceCodeType",
    "VirtualMemoryAccessType",
    "VirtualMemoryAllocationType",
    "VirtualMemoryGranularityType",
    "VirtualMemoryHandleType",
    "VirtualMemoryLocationType",
    "WorkqueueSharingScopeType",
]

class SourceCodeType(_StrEnum):
    """Source languages of a `Program`."""

    CXX = "c++"
    PTX = "ptx"
    NVVM = "nvvm"

class ObjectCodeFormatType(_StrEnum):
    """Formats of an `ObjectCode`."""

    PTX = "ptx"
    CUBIN = "cubin"
    LTOIR = "ltoir"
    FATBIN = "fatbin"
    OBJECT = "object"
    LIBRARY = "library"

class CompilerBackendType(_StrEnum):
    """Compilers and linkers."""

    NVRTC = "NVRTC"
    NVVM = "NVVM"
    NVJITLINK = "nvJitLink"
    DRIVER = "driver"

class PCHStatusType(_StrEnum):
    """Result of creating a precompiled header."""

    CREATED = "created"
    NOT_ATTEMPTED = "not_attempted"
    FAILED = "failed"

class GraphConditionalType(_StrEnum):
    """Types of conditional graph nodes."""

    IF = "if"
    WHILE = "while"
    SWITCH = "switch"

class GraphMemoryType(_StrEnum):
    """Memory type of a graph memory node."""

    DEVICE = "device"
    HOST = "host"
    MANAGED = "managed"

class ManagedMemoryLocationType(_StrEnum):
    """Type of the preferred location of managed memory."""

    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"

class VirtualMemoryHandleType(_StrEnum):
    """Handle types for sharing a mapped allocation with other processes."""

    POSIX_FD = "posix_fd"
    WIN32_KMT = "win32_kmt"
    FABRIC = "fabric"

class VirtualMemoryLocationType(_StrEnum):
    """Location types of a mapped allocation."""

    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"
    HOST_NUMA_CURRENT = "host_numa_current"

class VirtualMemoryGranularityType(_StrEnum):
    """Granularity to which sizes of mapped allocations are rounded up."""

    MINIMUM = "minimum"
    RECOMMENDED = "recommended"

class VirtualMemoryAccessType(_StrEnum):
    """Access rights to a mapped allocation."""

    READ_WRITE = "rw"
    READ = "r"

class VirtualMemoryAllocationType(_StrEnum):
    """Types of mapped allocations."""

    PINNED = "pinned"
    MANAGED = "managed"

class WorkqueueSharingScopeType(_StrEnum):
    """Scope in which a green context shares its work queues."""

    DEVICE_CTX = "device_ctx"
    GREEN_CTX_BALANCED = "green_ctx_balanced"

class ArrayFormatType(_StrEnum):
    """Element formats of CUDA arrays."""

    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    FLOAT16 = "float16"
    FLOAT32 = "float32"

class AddressModeType(_StrEnum):
    """Texture address modes: how coordinates outside the texture are handled."""

    WRAP = "wrap"
    CLAMP = "clamp"
    MIRROR = "mirror"
    BORDER = "border"

class FilterModeType(_StrEnum):
    """Texture filter modes."""

    POINT = "point"
    LINEAR = "linear"

class ReadModeType(_StrEnum):
    """Texture read modes: how integer texels are read."""

    ELEMENT_TYPE = "element_type"
    NORMALIZED_FLOAT = "normalized_float"

DevicePointerType: TypeAlias = CUdeviceptr | int | None
DeviceResourcesType: TypeAlias = Sequence[SMResource | WorkqueueResource]
ProcessStateType: TypeAlias = Literal["running", "locked", "checkpointed", "failed"]
