"""Types for annotations: enumerations of option values, and aliases for accepted arguments.

Every enumeration is a ``StrEnum``: options accept its members and the equal strings.
"""

from enum import StrEnum as _StrEnum

TYPE_CHECKING = False

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
    """Source languages of a `Program`.

    Examples
    --------
    >>> from cuda.core import Program
    >>> from cuda.core.typing import SourceCodeType
    >>> program = Program('extern "C" __global__ void nothing() {}', SourceCodeType.CXX)
    """

    CXX = "c++"
    PTX = "ptx"
    NVVM = "nvvm"


class ObjectCodeFormatType(_StrEnum):
    """Formats of an `ObjectCode`.

    Examples
    --------
    >>> from cuda.core import Program
    >>> from cuda.core.typing import ObjectCodeFormatType
    >>> program = Program('extern "C" __global__ void nothing() {}', "c++")
    >>> program.compile(ObjectCodeFormatType.PTX).code_type == ObjectCodeFormatType.PTX
    True
    """

    PTX = "ptx"
    CUBIN = "cubin"
    LTOIR = "ltoir"
    FATBIN = "fatbin"
    OBJECT = "object"
    LIBRARY = "library"


class CompilerBackendType(_StrEnum):
    """Compilers and linkers.

    Examples
    --------
    >>> from cuda.core import Program
    >>> from cuda.core.typing import CompilerBackendType
    >>> program = Program('extern "C" __global__ void nothing() {}', "c++")
    >>> program.backend is CompilerBackendType.NVRTC
    True
    """

    NVRTC = "NVRTC"
    NVVM = "NVVM"
    NVJITLINK = "nvJitLink"
    DRIVER = "driver"


class PCHStatusType(_StrEnum):
    """Result of creating a precompiled header.

    Examples
    --------
    >>> from cuda.core import Program
    >>> from cuda.core.typing import PCHStatusType
    >>> program = Program('extern "C" __global__ void nothing() {}', "c++", {"pch": True})
    >>> code = program.compile("ptx")
    >>> program.pch_status in list(PCHStatusType)
    True
    """

    CREATED = "created"
    NOT_ATTEMPTED = "not_attempted"
    FAILED = "failed"


class GraphConditionalType(_StrEnum):
    """Types of conditional graph nodes.

    Examples
    --------
    >>> from cuda.core import Device
    >>> from cuda.core.typing import GraphConditionalType
    >>> from cuda.core.graph import GraphDefinition
    >>> Device().set_current()
    >>> definition = GraphDefinition()
    >>> node = definition.while_loop(definition.create_condition(0))
    >>> node.cond_type is GraphConditionalType.WHILE
    True
    """

    IF = "if"
    WHILE = "while"
    SWITCH = "switch"


class GraphMemoryType(_StrEnum):
    """Memory type of a graph memory node.

    Examples
    --------
    >>> from cuda.core import Device
    >>> from cuda.core.graph import GraphDefinition
    >>> from cuda.core.typing import GraphMemoryType
    >>> Device().set_current()
    >>> node = GraphDefinition().allocate(1024, memory_type=GraphMemoryType.DEVICE)
    >>> node.memory_type is GraphMemoryType.DEVICE
    True
    """

    DEVICE = "device"
    HOST = "host"
    MANAGED = "managed"


class ManagedMemoryLocationType(_StrEnum):
    """Type of the preferred location of managed memory.

    Examples
    --------
    >>> from cuda.core import ManagedMemoryResource
    >>> from cuda.core.typing import ManagedMemoryLocationType
    >>> resource = ManagedMemoryResource({"preferred_location_type": ManagedMemoryLocationType.HOST})
    >>> kind, number = resource.preferred_location
    >>> kind is ManagedMemoryLocationType.HOST
    True
    """

    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"


class VirtualMemoryHandleType(_StrEnum):
    """Handle types for sharing a mapped allocation with other processes.

    Examples
    --------
    >>> from cuda.core import VirtualMemoryResourceOptions
    >>> from cuda.core.typing import VirtualMemoryHandleType
    >>> options = VirtualMemoryResourceOptions(handle_type=VirtualMemoryHandleType.POSIX_FD)
    >>> options.handle_type == "posix_fd"
    True
    """

    POSIX_FD = "posix_fd"
    WIN32_KMT = "win32_kmt"
    FABRIC = "fabric"


class VirtualMemoryLocationType(_StrEnum):
    """Location types of a mapped allocation.

    Examples
    --------
    >>> from cuda.core import VirtualMemoryResourceOptions
    >>> from cuda.core.typing import VirtualMemoryLocationType
    >>> options = VirtualMemoryResourceOptions(location_type=VirtualMemoryLocationType.HOST)
    >>> options.location_type == "host"
    True
    """

    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"
    HOST_NUMA_CURRENT = "host_numa_current"


class VirtualMemoryGranularityType(_StrEnum):
    """Granularity to which sizes of mapped allocations are rounded up.

    Examples
    --------
    >>> from cuda.core import VirtualMemoryResourceOptions
    >>> from cuda.core.typing import VirtualMemoryGranularityType
    >>> options = VirtualMemoryResourceOptions(granularity=VirtualMemoryGranularityType.MINIMUM)
    >>> options.granularity == "minimum"
    True
    """

    MINIMUM = "minimum"
    RECOMMENDED = "recommended"


class VirtualMemoryAccessType(_StrEnum):
    """Access rights to a mapped allocation.

    Examples
    --------
    >>> from cuda.core import VirtualMemoryResourceOptions
    >>> from cuda.core.typing import VirtualMemoryAccessType
    >>> options = VirtualMemoryResourceOptions(peers=[], peer_access=VirtualMemoryAccessType.READ)
    >>> options.peer_access == "r"
    True
    """

    READ_WRITE = "rw"
    READ = "r"


class VirtualMemoryAllocationType(_StrEnum):
    """Types of mapped allocations.

    Examples
    --------
    >>> from cuda.core import VirtualMemoryResourceOptions
    >>> from cuda.core.typing import VirtualMemoryAllocationType
    >>> options = VirtualMemoryResourceOptions(allocation_type=VirtualMemoryAllocationType.PINNED)
    >>> options.allocation_type == "pinned"
    True
    """

    PINNED = "pinned"
    MANAGED = "managed"


class WorkqueueSharingScopeType(_StrEnum):
    """Scope in which a green context shares its work queues.

    Examples
    --------
    >>> from cuda.core import Device
    >>> from cuda.core.typing import WorkqueueSharingScopeType
    >>> queues = Device().resources.workqueue
    >>> queues.configure({"sharing_scope": WorkqueueSharingScopeType.GREEN_CTX_BALANCED})
    >>> queues.sharing_scope is WorkqueueSharingScopeType.GREEN_CTX_BALANCED
    True
    """

    DEVICE_CTX = "device_ctx"
    GREEN_CTX_BALANCED = "green_ctx_balanced"


class ArrayFormatType(_StrEnum):
    """Element formats of CUDA arrays.

    Examples
    --------
    >>> from cuda.core import Device
    >>> from cuda.core.texture import OpaqueArrayOptions
    >>> from cuda.core.typing import ArrayFormatType
    >>> options = OpaqueArrayOptions(shape=(8,), format=ArrayFormatType.FLOAT16, num_channels=4)
    >>> Device().create_opaque_array(options).element_bytes
    8
    """

    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    FLOAT16 = "float16"
    FLOAT32 = "float32"


class AddressModeType(_StrEnum):
    """Texture address modes: how coordinates outside the texture are handled.

    Examples
    --------
    >>> from cuda.core.texture import TextureObjectOptions
    >>> from cuda.core.typing import AddressModeType
    >>> TextureObjectOptions(address_mode=AddressModeType.WRAP, normalized_coords=True).address_mode
    <AddressModeType.WRAP: 'wrap'>
    """

    WRAP = "wrap"
    CLAMP = "clamp"
    MIRROR = "mirror"
    BORDER = "border"


class FilterModeType(_StrEnum):
    """Texture filter modes.

    Examples
    --------
    >>> from cuda.core.texture import TextureObjectOptions
    >>> from cuda.core.typing import FilterModeType
    >>> TextureObjectOptions(filter_mode=FilterModeType.LINEAR).filter_mode
    <FilterModeType.LINEAR: 'linear'>
    """

    POINT = "point"
    LINEAR = "linear"


class ReadModeType(_StrEnum):
    """Texture read modes: how integer texels are read.

    Examples
    --------
    >>> from cuda.core.texture import TextureObjectOptions
    >>> from cuda.core.typing import ReadModeType
    >>> TextureObjectOptions(read_mode=ReadModeType.NORMALIZED_FLOAT).read_mode
    <ReadModeType.NORMALIZED_FLOAT: 'normalized_float'>
    """

    ELEMENT_TYPE = "element_type"
    NORMALIZED_FLOAT = "normalized_float"


if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, TypeAlias

    from cuda.bindings.driver import CUdeviceptr
    from cuda.core._device_resources import SMResource, WorkqueueResource
    from cuda.core._stream import IsStreamType as IsStreamType

    DevicePointerType: TypeAlias = CUdeviceptr | int | None
    DeviceResourcesType: TypeAlias = Sequence[SMResource | WorkqueueResource]
    ProcessStateType: TypeAlias = Literal["running", "locked", "checkpointed", "failed"]


# The aliases above need further modules; at run time they are created on first use.


def _device_pointer() -> object:
    from cuda.bindings.driver import CUdeviceptr

    return CUdeviceptr | int | None


def _device_resources() -> object:
    from collections.abc import Sequence

    from cuda.core._device_resources import SMResource, WorkqueueResource

    return Sequence[SMResource | WorkqueueResource]


def _stream() -> object:
    from cuda.core._stream import IsStreamType

    return IsStreamType


def _process_state() -> object:
    from typing import Literal

    return Literal["running", "locked", "checkpointed", "failed"]


_ALIASES = {
    "DevicePointerType": _device_pointer,
    "DeviceResourcesType": _device_resources,
    "IsStreamType": _stream,
    "ProcessStateType": _process_state,
}


def _create_alias(name: str) -> object:
    make = _ALIASES.get(name)
    if make is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, make())


if not TYPE_CHECKING:
    # Type checkers would accept every name of a module with this function.
    __getattr__ = _create_alias


def __dir__() -> list[str]:
    return sorted({*globals(), *_ALIASES})


del TYPE_CHECKING
