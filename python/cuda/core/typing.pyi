"""Names for annotations: the values that options take, and the kinds of objects that functions accept.

Every enumeration here is a ``StrEnum``: its members are the strings that the options take, and either can be given.
"""

from collections.abc import Sequence
from enum import StrEnum as _StrEnum
from typing import Any, Literal, TypeAlias

from cuda.bindings.driver import CUdeviceptr
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
    """Languages that a `Program` compiles."""

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
    """What compiles or links."""

    NVRTC = "NVRTC"
    NVVM = "NVVM"
    NVJITLINK = "nvJitLink"
    DRIVER = "driver"

class PCHStatusType(_StrEnum):
    """What became of an automatic precompiled header."""

    CREATED = "created"
    NOT_ATTEMPTED = "not_attempted"
    FAILED = "failed"

class GraphConditionalType(_StrEnum):
    """Kinds of conditional graph nodes."""

    IF = "if"
    WHILE = "while"
    SWITCH = "switch"

class GraphMemoryType(_StrEnum):
    """Where a graph's memory node allocates."""

    DEVICE = "device"
    HOST = "host"
    MANAGED = "managed"

class ManagedMemoryLocationType(_StrEnum):
    """Where managed memory is preferred to be."""

    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"

class VirtualMemoryHandleType(_StrEnum):
    """How a mapped allocation is shared with other processes."""

    POSIX_FD = "posix_fd"
    WIN32_KMT = "win32_kmt"
    FABRIC = "fabric"

class VirtualMemoryLocationType(_StrEnum):
    """Where a mapped allocation is."""

    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"
    HOST_NUMA_CURRENT = "host_numa_current"

class VirtualMemoryGranularityType(_StrEnum):
    """Which granularity sizes of mapped allocations are rounded up to."""

    MINIMUM = "minimum"
    RECOMMENDED = "recommended"

class VirtualMemoryAccessType(_StrEnum):
    """What may be done with a mapped allocation."""

    READ_WRITE = "rw"
    READ = "r"

class VirtualMemoryAllocationType(_StrEnum):
    """Kinds of mapped allocations."""

    PINNED = "pinned"
    MANAGED = "managed"

class WorkqueueSharingScopeType(_StrEnum):
    """With whom a green context shares its work queues."""

    DEVICE_CTX = "device_ctx"
    GREEN_CTX_BALANCED = "green_ctx_balanced"

class ArrayFormatType(_StrEnum):
    """Element types of arrays."""

    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    FLOAT16 = "float16"
    FLOAT32 = "float32"

class AddressModeType(_StrEnum):
    """What a texture has beyond its edges."""

    WRAP = "wrap"
    CLAMP = "clamp"
    MIRROR = "mirror"
    BORDER = "border"

class FilterModeType(_StrEnum):
    """What a texture has between its texels."""

    POINT = "point"
    LINEAR = "linear"

class ReadModeType(_StrEnum):
    """How a texture's integers are read."""

    ELEMENT_TYPE = "element_type"
    NORMALIZED_FLOAT = "normalized_float"

DevicePointerType: TypeAlias = CUdeviceptr | int | None
DeviceResourcesType: TypeAlias = Sequence[Any]
ProcessStateType: TypeAlias = Literal["running", "locked", "checkpointed", "failed"]
