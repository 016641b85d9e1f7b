"""Compiled code and its kernels."""

from collections.abc import Callable
from os import PathLike
from typing import Any, NamedTuple, SupportsIndex

from cuda.bindings.driver import CUkernel, CUlibrary, CUmodule, CUoccupancyB2DSize
from typing_extensions import Buffer, Self, disjoint_base

from ._device import Device
from ._launch_config import LaunchConfig
from ._stream import Stream

__all__ = ["Kernel", "ObjectCode"]

@disjoint_base
class ObjectCode:
    """Compiled code: PTX, machine code, or something to be linked; loaded when a kernel is first asked for."""

    def __new__(cls, *_args: object, **_kwargs: object) -> Self:
        """Raises ``RuntimeError``: use :meth:`Program.compile`, :meth:`Linker.link` or the functions ``from_...``."""
    @staticmethod
    def from_cubin(
        module: Buffer | str | PathLike[str],
        *,
        name: str = "",
        symbol_mapping: dict[str, str] | dict[str, bytes] | dict[bytes, bytes] | dict[bytes, str] | None = None,
    ) -> ObjectCode:
        """Machine code of one architecture: the bytes, or the path of a file."""
    @staticmethod
    def from_ptx(
        module: Buffer | str | PathLike[str],
        *,
        name: str = "",
        symbol_mapping: dict[str, str] | dict[str, bytes] | dict[bytes, bytes] | dict[bytes, str] | None = None,
    ) -> ObjectCode:
        """PTX text: the bytes, or the path of a file."""
    @staticmethod
    def from_ltoir(
        module: Buffer | str | PathLike[str],
        *,
        name: str = "",
        symbol_mapping: dict[str, str] | dict[str, bytes] | dict[bytes, bytes] | dict[bytes, str] | None = None,
    ) -> ObjectCode:
        """NVVM IR for optimisation at link time: the bytes, or the path of a file."""
    @staticmethod
    def from_fatbin(
        module: Buffer | str | PathLike[str],
        *,
        name: str = "",
        symbol_mapping: dict[str, str] | dict[str, bytes] | dict[bytes, bytes] | dict[bytes, str] | None = None,
    ) -> ObjectCode:
        """Code for several architectures: the bytes, or the path of a file."""
    @staticmethod
    def from_object(
        module: Buffer | str | PathLike[str],
        *,
        name: str = "",
        symbol_mapping: dict[str, str] | dict[str, bytes] | dict[bytes, bytes] | dict[bytes, str] | None = None,
    ) -> ObjectCode:
        """A host object file with device code in it: the bytes, or the path of a file."""
    @staticmethod
    def from_library(
        module: Buffer | str | PathLike[str],
        *,
        name: str = "",
        symbol_mapping: dict[str, str] | dict[str, bytes] | dict[bytes, bytes] | dict[bytes, str] | None = None,
    ) -> ObjectCode:
        """An archive of host objects with device code in them: the bytes, or the path of a file."""
    @property
    def name(self) -> str:
        """The name for messages; may be empty."""
    @property
    def code(self) -> bytes | str:
        """The code, or the path of the file that has it."""
    @property
    def code_type(self) -> str:
        """``"cubin"``, ``"ptx"``, ``"ltoir"``, ``"fatbin"``, ``"object"`` or ``"library"``."""
    @property
    def symbol_mapping(self) -> dict[Any, Any]:
        """Names by which :meth:`get_kernel` knows kernels, each with the name in the code; a copy."""
    @property
    def handle(self) -> CUlibrary:
        """The loaded code; asking for it loads it."""
    def get_kernel(self, name: str | bytes) -> Kernel:
        """A kernel by its name in the code, or by one of :attr:`symbol_mapping`."""
    def get_module(self) -> CUmodule:
        """The loaded code as the module that it is in the current context."""
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@disjoint_base
class Kernel:
    """A kernel of loaded code; it keeps the code loaded."""

    def __new__(cls, *_args: object, **_kwargs: object) -> Self:
        """Raises ``RuntimeError``: use :meth:`ObjectCode.get_kernel` or :meth:`from_handle`."""
    @staticmethod
    def from_handle(handle: CUkernel | int, mod: ObjectCode | None = None) -> Kernel:
        """A kernel that something else has loaded, and the code that it is to keep loaded."""
    @property
    def handle(self) -> CUkernel:
        """The driver's handle; valid while this object lives."""
    @property
    def attributes(self) -> KernelAttributes:
        """What the driver knows of the kernel."""
    @property
    def occupancy(self) -> KernelOccupancy:
        """How much of the kernel fits on a device at once."""
    @property
    def num_arguments(self) -> int:
        """How many parameters the kernel has."""
    @property
    def arguments_info(self) -> list[ParamInfo]:
        """Offset and size in bytes of each parameter, in order."""
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@disjoint_base
class KernelAttributes:
    """What the driver knows of a kernel, on the current device; ``attributes[device]`` is the same for another one."""

    def __new__(cls, *_args: object, **_kwargs: object) -> Self:
        """Raises ``RuntimeError``: use :attr:`Kernel.attributes`."""
    def __getitem__(self, device: Device | int | None, /) -> KernelAttributes: ...
    @property
    def max_threads_per_block(self) -> _AttributeValue:
        """The most threads that a block can have."""
    @property
    def shared_size_bytes(self) -> _AttributeValue:
        """Bytes of static shared memory that a block needs."""
    @property
    def const_size_bytes(self) -> _AttributeValue:
        """Bytes of constant memory that the code declares."""
    @property
    def local_size_bytes(self) -> _AttributeValue:
        """Bytes of local memory that a thread needs."""
    @property
    def num_regs(self) -> _AttributeValue:
        """Registers that a thread needs."""
    @property
    def ptx_version(self) -> _AttributeValue:
        """Version of the PTX that it was made from: 10 times major plus minor."""
    @property
    def binary_version(self) -> _AttributeValue:
        """Architecture of the machine code: 10 times major plus minor."""
    @property
    def cache_mode_ca(self) -> bool:
        """Whether loads from global memory are cached in L1 by default."""
    @property
    def max_dynamic_shared_size_bytes(self) -> _AttributeValue:
        """Bytes of dynamic shared memory that a launch may ask for."""
    @property
    def preferred_shared_memory_carveout(self) -> _AttributeValue:
        """Per cent of the L1 cache that should be shared memory; -1: the driver decides."""
    @property
    def cluster_size_must_be_set(self) -> bool:
        """Whether it can only be launched in clusters."""
    @property
    def required_cluster_width(self) -> _AttributeValue:
        """Blocks in x of the clusters that it must be launched in; 0: any."""
    @property
    def required_cluster_height(self) -> _AttributeValue:
        """Blocks in y of the clusters that it must be launched in; 0: any."""
    @property
    def required_cluster_depth(self) -> _AttributeValue:
        """Blocks in z of the clusters that it must be launched in; 0: any."""
    @property
    def non_portable_cluster_size_allowed(self) -> bool:
        """Whether clusters may be larger than every device of the architecture can run."""
    @property
    def cluster_scheduling_policy_preference(self) -> _AttributeValue:
        """How the blocks of a cluster are spread over the multiprocessors."""

@disjoint_base
class KernelOccupancy:
    """How much of a kernel fits on a device at once."""

    def __new__(cls, *_args: object, **_kwargs: object) -> Self:
        """Raises ``RuntimeError``: use :attr:`Kernel.occupancy`."""
    def max_active_blocks_per_multiprocessor(self, block_size: int, dynamic_shared_memory_size: SupportsIndex) -> int:
        """Blocks that a multiprocessor of the current device runs at the same time."""
    def max_potential_block_size(
        self,
        dynamic_shared_memory_needed: int | CUoccupancyB2DSize | Callable[[int], int],
        block_size_limit: int,
    ) -> MaxPotentialBlockSizeOccupancyResult:
        """The size of block with which the kernel fills the current device best."""
    def available_dynamic_shared_memory_per_block(self, num_blocks_per_multiprocessor: int, block_size: int) -> int:
        """Bytes of dynamic shared memory that a block may have for so many blocks to run at the same time."""
    def max_potential_cluster_size(self, config: LaunchConfig, *, stream: Stream) -> int:
        """Blocks of the largest cluster that can be launched with a configuration."""
    def max_active_clusters(self, config: LaunchConfig, *, stream: Stream) -> int:
        """Clusters of a configuration that run on the stream's device at the same time."""

class ParamInfo(NamedTuple):
    """Where a kernel's parameter lies: offset and size in bytes."""

    offset: int
    size: int

class MaxPotentialBlockSizeOccupancyResult(NamedTuple):
    """The launch that fills a device best: its fewest blocks, and the threads of each."""

    min_grid_size: int
    max_block_size: int

class _AttributeValue(int):
    """A number among a kernel's attributes; calling it is the deprecated spelling of cuda.core 0.x."""

    def __call__(self, device_id: Device | int | None = None) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
