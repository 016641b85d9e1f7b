"""Object code and its kernels."""

from collections.abc import Callable
from os import PathLike
from typing import Any, NamedTuple, NoReturn, SupportsIndex

from cuda.bindings.driver import CUkernel, CUlibrary, CUmodule, CUoccupancyB2DSize
from typing_extensions import Buffer, Self, disjoint_base

from ._device import Device
from ._launch_config import LaunchConfig
from ._stream import Stream

__all__ = ["Kernel", "ObjectCode"]

@disjoint_base
class ObjectCode:
    """PTX, machine code, or linker input."""

    def __new__(cls, *_args: object, **_kwargs: object) -> Self:
        """Create and return a new object. See help(type) for accurate signature."""
    @staticmethod
    def from_cubin(
        module: Buffer | str | PathLike[str],
        *,
        name: str = "",
        symbol_mapping: dict[str, str] | dict[str, bytes] | dict[bytes, bytes] | dict[bytes, str] | None = None,
    ) -> ObjectCode:
        """Wraps machine code of one architecture."""
    @staticmethod
    def from_ptx(
        module: Buffer | str | PathLike[str],
        *,
        name: str = "",
        symbol_mapping: dict[str, str] | dict[str, bytes] | dict[bytes, bytes] | dict[bytes, str] | None = None,
    ) -> ObjectCode:
        """Wraps PTX. Parameters as for :meth:`from_cubin`."""
    @staticmethod
    def from_ltoir(
        module: Buffer | str | PathLike[str],
        *,
        name: str = "",
        symbol_mapping: dict[str, str] | dict[str, bytes] | dict[bytes, bytes] | dict[bytes, str] | None = None,
    ) -> ObjectCode:
        """Wraps LTO IR, the input of a :class:`Linker`. Parameters as for :meth:`from_cubin`."""
    @staticmethod
    def from_fatbin(
        module: Buffer | str | PathLike[str],
        *,
        name: str = "",
        symbol_mapping: dict[str, str] | dict[str, bytes] | dict[bytes, bytes] | dict[bytes, str] | None = None,
    ) -> ObjectCode:
        """Wraps a fat binary: code for several architectures. Parameters as for :meth:`from_cubin`."""
    @staticmethod
    def from_object(
        module: Buffer | str | PathLike[str],
        *,
        name: str = "",
        symbol_mapping: dict[str, str] | dict[str, bytes] | dict[bytes, bytes] | dict[bytes, str] | None = None,
    ) -> ObjectCode:
        """Wraps a host object file with device code, the input of a :class:`Linker`. Parameters as for
        :meth:`from_cubin`."""
    @staticmethod
    def from_library(
        module: Buffer | str | PathLike[str],
        *,
        name: str = "",
        symbol_mapping: dict[str, str] | dict[str, bytes] | dict[bytes, bytes] | dict[bytes, str] | None = None,
    ) -> ObjectCode:
        """Wraps an archive of host object files with device code, the input of a :class:`Linker`. Parameters as for
        :meth:`from_cubin`."""
    @property
    def name(self) -> str:
        """Name for messages; may be empty."""
    @property
    def code(self) -> bytes | str:
        """The code, or the path of its file."""
    @property
    def code_type(self) -> str:
        """Format of the code: ``"cubin"``, ``"ptx"``, ``"ltoir"``, ``"fatbin"``, ``"object"`` or ``"library"``."""
    @property
    def symbol_mapping(self) -> dict[Any, Any]:
        """Copy of the symbol mapping: kernel aliases and their symbol names."""
    @property
    def handle(self) -> CUlibrary:
        """Handle of the loaded code; loads it on first use. Reading it leaves unloading to the program."""
    def get_kernel(self, name: str | bytes) -> Kernel:
        """Returns a kernel by name; loads the code on first use."""
    def get_module(self) -> CUmodule:
        """The loaded code as a module of the current context, or of the current device's primary context if there is
        none. Leaves unloading to the program."""
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@disjoint_base
class Kernel:
    """A kernel of loaded code, returned by :meth:`ObjectCode.get_kernel`."""

    def __new__(cls, *_args: object, **_kwargs: object) -> Self:
        """Create and return a new object. See help(type) for accurate signature."""
    def __getitem__(self, key: object, /) -> NoReturn: ...
    @staticmethod
    def from_handle(handle: CUkernel | int, mod: ObjectCode | None = None) -> Kernel:
        """Wraps a kernel handle."""
    @property
    def handle(self) -> CUkernel:
        """Driver handle. Reading it leaves unloading of the code to the program."""
    @property
    def attributes(self) -> KernelAttributes:
        """Driver attributes on the current device, or indexed by device."""
    @property
    def occupancy(self) -> KernelOccupancy:
        """Occupancy queries."""
    @property
    def num_arguments(self) -> int:
        """Number of parameters."""
    @property
    def arguments_info(self) -> list[ParamInfo]:
        """Offset and size in bytes of each parameter, in order."""
    @property
    def _name(self) -> str: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@disjoint_base
class KernelAttributes:
    """Driver attributes of a kernel on the current device; ``attributes[device]`` selects another device."""

    def __new__(cls, *_args: object, **_kwargs: object) -> Self:
        """Create and return a new object. See help(type) for accurate signature."""
    def __getitem__(self, device: Device | int | None, /) -> KernelAttributes: ...
    @property
    def max_threads_per_block(self) -> _AttributeValue:
        """Maximum number of threads per block."""
    @property
    def shared_size_bytes(self) -> _AttributeValue:
        """Bytes of static shared memory per block."""
    @property
    def const_size_bytes(self) -> _AttributeValue:
        """Bytes of constant memory declared by the code."""
    @property
    def local_size_bytes(self) -> _AttributeValue:
        """Bytes of local memory per thread."""
    @property
    def num_regs(self) -> _AttributeValue:
        """Registers per thread."""
    @property
    def ptx_version(self) -> _AttributeValue:
        """PTX version of the source, 10 * major + minor."""
    @property
    def binary_version(self) -> _AttributeValue:
        """Architecture of the machine code, 10 * major + minor."""
    @property
    def cache_mode_ca(self) -> bool:
        """Whether loads from global memory are cached in L1 by default (``-Xptxas --dlcm=ca``)."""
    @property
    def max_dynamic_shared_size_bytes(self) -> _AttributeValue:
        """Maximum bytes of dynamic shared memory of a launch."""
    @property
    def preferred_shared_memory_carveout(self) -> _AttributeValue:
        """Preferred percentage of the L1 cache used as shared memory; -1: the driver decides."""
    @property
    def cluster_size_must_be_set(self) -> bool:
        """Whether the kernel can only be launched with a cluster."""
    @property
    def required_cluster_width(self) -> _AttributeValue:
        """Required cluster width in blocks; 0: any."""
    @property
    def required_cluster_height(self) -> _AttributeValue:
        """Required cluster height in blocks; 0: any."""
    @property
    def required_cluster_depth(self) -> _AttributeValue:
        """Required cluster depth in blocks; 0: any."""
    @property
    def non_portable_cluster_size_allowed(self) -> bool:
        """Whether clusters may exceed the portable cluster size of the architecture."""
    @property
    def cluster_scheduling_policy_preference(self) -> _AttributeValue:
        """Scheduling policy of the blocks of a cluster (``CUclusterSchedulingPolicy``)."""

@disjoint_base
class KernelOccupancy:
    """Occupancy queries of a kernel."""

    def __new__(cls, *_args: object, **_kwargs: object) -> Self:
        """Create and return a new object. See help(type) for accurate signature."""
    def max_active_blocks_per_multiprocessor(self, block_size: int, dynamic_shared_memory_size: SupportsIndex) -> int:
        """Maximum number of resident blocks per multiprocessor of the current device."""
    def max_potential_block_size(
        self,
        dynamic_shared_memory_needed: int | CUoccupancyB2DSize | Callable[[int], int],
        block_size_limit: int,
    ) -> MaxPotentialBlockSizeOccupancyResult:
        """Block size with the highest occupancy on the current device."""
    def available_dynamic_shared_memory_per_block(self, num_blocks_per_multiprocessor: int, block_size: int) -> int:
        """Bytes of dynamic shared memory available per block if a number of blocks is resident per multiprocessor of
        the current device."""
    def max_potential_cluster_size(self, config: LaunchConfig, *, stream: Stream) -> int:
        """Maximum cluster size in blocks for a launch configuration; the configuration's own cluster is ignored."""
    def max_active_clusters(self, config: LaunchConfig, *, stream: Stream) -> int:
        """Maximum number of resident clusters of a launch configuration on the stream's device."""

class ParamInfo(NamedTuple):
    """ParamInfo(offset, size)"""

    offset: int
    size: int

class MaxPotentialBlockSizeOccupancyResult(NamedTuple):
    """MaxPotentialBlockSizeOccupancyResult(min_grid_size, max_block_size)"""

    min_grid_size: int
    max_block_size: int

class _AttributeValue(int):
    """Integer kernel attribute that is also callable, as in cuda.core 0.x: ``attributes.num_regs()``."""

    def __call__(self, device_id: Device | int | None = None) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
