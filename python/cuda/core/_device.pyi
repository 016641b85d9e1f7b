"""Devices and what they can do."""

from types import TracebackType
from typing import Any, SupportsIndex, final

from typing_extensions import Self, disjoint_base

from cuda.core._context import Context, ContextOptions
from cuda.core._event import Event, EventOptions
from cuda.core._memory._buffer import Buffer, MemoryResource
from cuda.core._stream import IsStreamType, Stream, StreamOptions
from cuda.core._utils.cuda_utils import ComputeCapability

__all__ = ["Device", "DeviceProperties"]

@disjoint_base
class Device:
    """A device of this machine: one object a device and thread.

    ``Device()`` is the device of the thread's current context, or device 0 where it has none. A device needs no
    preparation: whatever needs a context takes the current one if it is of this device, else the primary one.
    """

    def __new__(cls, device_id: Device | SupportsIndex | None = None) -> Device: ...
    @classmethod
    def get_all_devices(cls) -> tuple[Device, ...]:
        """All devices, in the order of their numbers."""
    @property
    def device_id(self) -> int:
        """The device's number, counted from 0."""
    @property
    def pci_bus_id(self) -> str:
        """Where the device is on the PCI bus: ``domain:bus:device.function`` in hexadecimal."""
    @property
    def uuid(self) -> str:
        """The UUID: 32 hexadecimal digits in five groups, without the prefix ``GPU-``."""
    @property
    def name(self) -> str:
        """The name; that of the CPU device begins with ``CPU``."""
    @property
    def total_memory(self) -> int:
        """Bytes of memory."""
    @property
    def arch(self) -> str:
        """The compute capability without the point: ``'90'``."""
    @property
    def compute_capability(self) -> ComputeCapability:
        """The compute capability."""
    @property
    def properties(self) -> DeviceProperties:
        """What the device can do and how much of everything it has."""
    @property
    def context(self) -> Context:
        """The context that this device's work goes to on the calling thread."""
    @property
    def default_stream(self) -> Stream:
        """The default stream."""
    @property
    def memory_resource(self) -> MemoryResource:
        """Where :meth:`allocate` gets its memory."""
    @memory_resource.setter
    def memory_resource(self, mr: MemoryResource) -> None: ...
    def can_access_peer(self, peer: Device | SupportsIndex) -> bool:
        """Whether kernels of this device can reach another one's memory."""
    def set_current(self, ctx: Context | None = None) -> Context | None:
        """Makes the device current on the calling thread."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, *_args: type[BaseException] | BaseException | TracebackType | None
    ) -> None: ...
    def create_context(self, options: ContextOptions | dict[str, Any] | None = None) -> Context:
        """Makes a green context, which owns a part of the device."""
    def create_stream(
        self, obj: IsStreamType | None = None, options: StreamOptions | dict[str, Any] | None = None
    ) -> Stream:
        """Makes a stream, or takes that of `obj`."""
    def create_event(self, options: EventOptions | dict[str, Any] | None = None) -> Event:
        """Makes an event that is not recorded yet."""
    def allocate(self, size: SupportsIndex, *, stream: Stream | None = None) -> Buffer:
        """Allocates `size` bytes of the device's memory in the order of `stream`."""
    def sync(self) -> None:
        """Waits until all work of the device is done."""
    def __int__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Device], tuple[int]]: ...

@final
class DeviceProperties:
    """What a device can do and how much of everything it has; from :attr:`Device.properties`."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> DeviceProperties: ...
    @property
    def async_engine_count(self) -> int:
        """How many copies can run beside kernels at once."""
    @property
    def can_flush_remote_writes(self) -> bool:
        """Whether `cuStreamWaitValue` can flush writes of other devices (`CU_STREAM_WAIT_VALUE_FLUSH`)."""
    @property
    def can_map_host_memory(self) -> bool:
        """Whether host memory can be mapped into the address space of the device."""
    @property
    def can_tex2d_gather(self) -> bool:
        """Whether kernels can gather texels of 2D CUDA arrays."""
    @property
    def can_use_64_bit_stream_mem_ops(self) -> bool:
        """Whether stream memory operations take 64-bit values."""
    @property
    def can_use_host_pointer_for_registered_mem(self) -> bool:
        """Whether the device reaches registered host memory by the host's own pointers."""
    @property
    def can_use_stream_wait_value_nor(self) -> bool:
        """Whether `cuStreamWaitValue` knows `CU_STREAM_WAIT_VALUE_NOR`."""
    @property
    def clock_rate(self) -> int:
        """Peak clock frequency in kilohertz."""
    @property
    def cluster_launch(self) -> bool:
        """Whether launches can group blocks into clusters."""
    @property
    def compute_capability_major(self) -> int:
        """The compute capability's number before the point."""
    @property
    def compute_capability_minor(self) -> int:
        """The compute capability's number after the point."""
    @property
    def compute_mode(self) -> int:
        """Who may use the device, a `CUcomputemode` as an int: 0 is everybody."""
    @property
    def compute_preemption_supported(self) -> bool:
        """Whether kernels can be interrupted for others."""
    @property
    def concurrent_kernels(self) -> bool:
        """Whether several kernels of a context can run at once."""
    @property
    def concurrent_managed_access(self) -> bool:
        """Whether host and device can use managed memory at the same time."""
    @property
    def cooperative_launch(self) -> bool:
        """Whether cooperative launches are there."""
    @property
    def d3d12_cig_supported(self) -> bool:
        """Whether contexts can share the GPU with Direct3D 12 work (CUDA in Graphics)."""
    @property
    def deferred_mapping_cuda_array_supported(self) -> bool:
        """Whether CUDA arrays can get their memory after they were made."""
    @property
    def direct_managed_mem_access_from_host(self) -> bool:
        """Whether the host reaches managed memory on the device without moving it."""
    @property
    def dma_buf_supported(self) -> bool:
        """Whether memory can be shared as a dma-buf."""
    @property
    def ecc_enabled(self) -> bool:
        """Whether memory errors are corrected."""
    @property
    def generic_compression_supported(self) -> bool:
        """Whether memory can be compressible."""
    @property
    def global_l1_cache_supported(self) -> bool:
        """Whether global memory goes through the L1 cache."""
    @property
    def global_memory_bus_width(self) -> int:
        """Width of the memory bus in bits."""
    @property
    def gpu_direct_rdma_flush_writes_options(self) -> int:
        """How remote writes are flushed, bits of `CUflushGPUDirectRDMAWritesOptions`."""
    @property
    def gpu_direct_rdma_supported(self) -> bool:
        """Whether other PCI devices can reach the memory (GPUDirect RDMA)."""
    @property
    def gpu_direct_rdma_with_cuda_vmm_supported(self) -> bool:
        """Whether GPUDirect RDMA reaches memory of the virtual memory functions."""
    @property
    def gpu_direct_rdma_writes_ordering(self) -> int:
        """For whom remote writes need no flush, a `CUGPUDirectRDMAWritesOrdering` as an int."""
    @property
    def gpu_overlap(self) -> bool:
        """Whether copies and kernels can overlap; `async_engine_count` tells more."""
    @property
    def gpu_pci_device_id(self) -> int:
        """The device and vendor numbers of PCI."""
    @property
    def gpu_pci_subsystem_id(self) -> int:
        """The subsystem numbers of PCI."""
    @property
    def handle_type_fabric_supported(self) -> bool:
        """Whether memory can be shared by fabric handles."""
    @property
    def handle_type_posix_file_descriptor_supported(self) -> bool:
        """Whether memory can be shared by file descriptors."""
    @property
    def handle_type_win32_handle_supported(self) -> bool:
        """Whether memory can be shared by Windows handles."""
    @property
    def handle_type_win32_kmt_handle_supported(self) -> bool:
        """Whether memory can be shared by KMT handles of Windows."""
    @property
    def host_alloc_dma_buf_supported(self) -> bool:
        """Whether host memory of CUDA can be shared as a dma-buf."""
    @property
    def host_memory_pools_supported(self) -> bool:
        """Whether memory pools can be of host memory."""
    @property
    def host_native_atomic_supported(self) -> bool:
        """Whether atomic operations between device and host are native."""
    @property
    def host_numa_id(self) -> int:
        """The host's NUMA node nearest to the device; -1 where there is none."""
    @property
    def host_numa_memory_pools_supported(self) -> bool:
        """Whether memory pools can be of a NUMA node of the host."""
    @property
    def host_numa_multinode_ipc_supported(self) -> bool:
        """Whether host memory of a NUMA node can be shared between machines."""
    @property
    def host_numa_virtual_memory_management_supported(self) -> bool:
        """Whether the virtual memory functions know NUMA nodes of the host."""
    @property
    def host_register_supported(self) -> bool:
        """Whether host memory can be registered (`cuMemHostRegister`)."""
    @property
    def host_virtual_memory_management_supported(self) -> bool:
        """Whether the virtual memory functions know host memory."""
    @property
    def integrated(self) -> bool:
        """Whether the device shares its memory with the host."""
    @property
    def ipc_event_supported(self) -> bool:
        """Whether other processes can open events."""
    @property
    def kernel_exec_timeout(self) -> bool:
        """Whether kernels are stopped when they run too long."""
    @property
    def l2_cache_size(self) -> int:
        """Bytes of L2 cache."""
    @property
    def local_l1_cache_supported(self) -> bool:
        """Whether local memory goes through the L1 cache."""
    @property
    def managed_memory(self) -> bool:
        """Whether managed memory is there."""
    @property
    def max_access_policy_window_size(self) -> int:
        """Most bytes of a window of `CUaccessPolicyWindow`."""
    @property
    def max_block_dim_x(self) -> int:
        """Most threads of a block in x."""
    @property
    def max_block_dim_y(self) -> int:
        """Most threads of a block in y."""
    @property
    def max_block_dim_z(self) -> int:
        """Most threads of a block in z."""
    @property
    def max_blocks_per_multiprocessor(self) -> int:
        """Most blocks that reside on a multiprocessor."""
    @property
    def max_grid_dim_x(self) -> int:
        """Most blocks of a grid in x."""
    @property
    def max_grid_dim_y(self) -> int:
        """Most blocks of a grid in y."""
    @property
    def max_grid_dim_z(self) -> int:
        """Most blocks of a grid in z."""
    @property
    def max_persisting_l2_cache_size(self) -> int:
        """Most bytes of L2 cache that can be set aside for persisting accesses."""
    @property
    def max_pitch(self) -> int:
        """Most bytes of a row that copies take."""
    @property
    def max_registers_per_block(self) -> int:
        """32-bit registers that a block can have."""
    @property
    def max_registers_per_multiprocessor(self) -> int:
        """32-bit registers of a multiprocessor."""
    @property
    def max_shared_memory_per_block(self) -> int:
        """Bytes of shared memory that a block can have."""
    @property
    def max_shared_memory_per_block_optin(self) -> int:
        """The same for kernels that ask for more than the usual."""
    @property
    def max_shared_memory_per_multiprocessor(self) -> int:
        """Bytes of shared memory of a multiprocessor."""
    @property
    def max_threads_per_block(self) -> int:
        """Most threads of a block."""
    @property
    def max_threads_per_multiprocessor(self) -> int:
        """Most threads that reside on a multiprocessor."""
    @property
    def maximum_surface1d_layered_layers(self) -> int:
        """Most layers of layered 1D surfaces."""
    @property
    def maximum_surface1d_layered_width(self) -> int:
        """Greatest width of layered 1D surfaces."""
    @property
    def maximum_surface1d_width(self) -> int:
        """Greatest width of 1D surfaces."""
    @property
    def maximum_surface2d_height(self) -> int:
        """Greatest height of 2D surfaces."""
    @property
    def maximum_surface2d_layered_height(self) -> int:
        """Greatest height of layered 2D surfaces."""
    @property
    def maximum_surface2d_layered_layers(self) -> int:
        """Most layers of layered 2D surfaces."""
    @property
    def maximum_surface2d_layered_width(self) -> int:
        """Greatest width of layered 2D surfaces."""
    @property
    def maximum_surface2d_width(self) -> int:
        """Greatest width of 2D surfaces."""
    @property
    def maximum_surface3d_depth(self) -> int:
        """Greatest depth of 3D surfaces."""
    @property
    def maximum_surface3d_height(self) -> int:
        """Greatest height of 3D surfaces."""
    @property
    def maximum_surface3d_width(self) -> int:
        """Greatest width of 3D surfaces."""
    @property
    def maximum_surfacecubemap_layered_layers(self) -> int:
        """Most layers of layered cubemap surfaces."""
    @property
    def maximum_surfacecubemap_layered_width(self) -> int:
        """Greatest width of layered cubemap surfaces."""
    @property
    def maximum_surfacecubemap_width(self) -> int:
        """Greatest width of cubemap surfaces."""
    @property
    def maximum_texture1d_layered_layers(self) -> int:
        """Most layers of layered 1D textures."""
    @property
    def maximum_texture1d_layered_width(self) -> int:
        """Greatest width of layered 1D textures."""
    @property
    def maximum_texture1d_linear_width(self) -> int:
        """Greatest width of linear-memory 1D textures."""
    @property
    def maximum_texture1d_mipmapped_width(self) -> int:
        """Greatest width of mipmapped 1D textures."""
    @property
    def maximum_texture1d_width(self) -> int:
        """Greatest width of 1D textures."""
    @property
    def maximum_texture2d_gather_height(self) -> int:
        """Greatest height of 2D textures that can be gathered from."""
    @property
    def maximum_texture2d_gather_width(self) -> int:
        """Greatest width of 2D textures that can be gathered from."""
    @property
    def maximum_texture2d_height(self) -> int:
        """Greatest height of 2D textures."""
    @property
    def maximum_texture2d_layered_height(self) -> int:
        """Greatest height of layered 2D textures."""
    @property
    def maximum_texture2d_layered_layers(self) -> int:
        """Most layers of layered 2D textures."""
    @property
    def maximum_texture2d_layered_width(self) -> int:
        """Greatest width of layered 2D textures."""
    @property
    def maximum_texture2d_linear_height(self) -> int:
        """Greatest height of linear-memory 2D textures."""
    @property
    def maximum_texture2d_linear_pitch(self) -> int:
        """Greatest pitch in bytes of linear-memory 2D textures."""
    @property
    def maximum_texture2d_linear_width(self) -> int:
        """Greatest width of linear-memory 2D textures."""
    @property
    def maximum_texture2d_mipmapped_height(self) -> int:
        """Greatest height of mipmapped 2D textures."""
    @property
    def maximum_texture2d_mipmapped_width(self) -> int:
        """Greatest width of mipmapped 2D textures."""
    @property
    def maximum_texture2d_width(self) -> int:
        """Greatest width of 2D textures."""
    @property
    def maximum_texture3d_depth(self) -> int:
        """Greatest depth of 3D textures."""
    @property
    def maximum_texture3d_depth_alternate(self) -> int:
        """Greatest depth of 3D textures in the other of two shapes."""
    @property
    def maximum_texture3d_height(self) -> int:
        """Greatest height of 3D textures."""
    @property
    def maximum_texture3d_height_alternate(self) -> int:
        """Greatest height of 3D textures in the other of two shapes."""
    @property
    def maximum_texture3d_width(self) -> int:
        """Greatest width of 3D textures."""
    @property
    def maximum_texture3d_width_alternate(self) -> int:
        """Greatest width of 3D textures in the other of two shapes."""
    @property
    def maximum_texturecubemap_layered_layers(self) -> int:
        """Most layers of layered cubemap textures."""
    @property
    def maximum_texturecubemap_layered_width(self) -> int:
        """Greatest width of layered cubemap textures."""
    @property
    def maximum_texturecubemap_width(self) -> int:
        """Greatest width of cubemap textures."""
    @property
    def mem_decompress_algorithm_mask(self) -> int:
        """Which algorithms the decompression engine knows, bits of `CUmemDecompressAlgorithm`."""
    @property
    def mem_decompress_maximum_length(self) -> int:
        """Most bytes that one operation of the decompression engine takes."""
    @property
    def mem_sync_domain_count(self) -> int:
        """How many memory synchronisation domains there are."""
    @property
    def memory_clock_rate(self) -> int:
        """Peak clock frequency of the memory in kilohertz."""
    @property
    def memory_pools_supported(self) -> bool:
        """Whether stream-ordered allocation is there."""
    @property
    def mempool_supported_handle_types(self) -> int:
        """How memory pools can be shared, bits of `CUmemAllocationHandleType`."""
    @property
    def mps_enabled(self) -> bool:
        """Whether contexts of the device share it through MPS."""
    @property
    def multi_gpu_board(self) -> bool:
        """Whether the board has more GPUs."""
    @property
    def multi_gpu_board_group_id(self) -> int:
        """The same number for all GPUs of a board."""
    @property
    def multicast_supported(self) -> bool:
        """Whether multicast objects are there."""
    @property
    def multiprocessor_count(self) -> int:
        """How many multiprocessors there are."""
    @property
    def numa_config(self) -> int:
        """How the device's memory appears to the host, a `CUdeviceNumaConfig` as an int."""
    @property
    def numa_id(self) -> int:
        """The NUMA node of the device's memory; -1 where there is none."""
    @property
    def only_partial_host_native_atomic_supported(self) -> bool:
        """Whether only some atomic operations between device and host are native."""
    @property
    def pageable_memory_access(self) -> bool:
        """Whether the device reaches pageable host memory."""
    @property
    def pageable_memory_access_uses_host_page_tables(self) -> bool:
        """Whether it does so by the host's page tables."""
    @property
    def pci_bus_id(self) -> int:
        """The device's bus number of PCI."""
    @property
    def pci_device_id(self) -> int:
        """The device's slot number of PCI."""
    @property
    def pci_domain_id(self) -> int:
        """The device's domain number of PCI."""
    @property
    def read_only_host_register_supported(self) -> bool:
        """Whether host memory can be registered read-only."""
    @property
    def reserved_shared_memory_per_block(self) -> int:
        """Bytes of shared memory of each block that the driver takes for itself."""
    @property
    def single_to_double_precision_perf_ratio(self) -> int:
        """How many times faster single precision is than double."""
    @property
    def sparse_cuda_array_supported(self) -> bool:
        """Whether sparse CUDA arrays are there."""
    @property
    def stream_priorities_supported(self) -> bool:
        """Whether streams can have priorities."""
    @property
    def surface_alignment(self) -> int:
        """What addresses of surfaces are multiples of, in bytes."""
    @property
    def tcc_driver(self) -> bool:
        """Whether this is a compute-only driver of Windows."""
    @property
    def tensor_map_access_supported(self) -> bool:
        """Whether tensor maps are there."""
    @property
    def texture_alignment(self) -> int:
        """What addresses of textures are multiples of, in bytes."""
    @property
    def texture_pitch_alignment(self) -> int:
        """What the pitch of 2D textures is a multiple of, in bytes."""
    @property
    def timeline_semaphore_interop_supported(self) -> bool:
        """Whether external timeline semaphores are there."""
    @property
    def total_constant_memory(self) -> int:
        """Bytes of constant memory that a kernel can have."""
    @property
    def unified_addressing(self) -> bool:
        """Whether host and device share an address space."""
    @property
    def unified_function_pointers(self) -> bool:
        """Whether function pointers are the same on all devices."""
    @property
    def virtual_memory_management_supported(self) -> bool:
        """Whether the virtual memory functions are there."""
    @property
    def vulkan_cig_supported(self) -> bool:
        """Whether contexts can share the GPU with Vulkan work (CUDA in Graphics)."""
    @property
    def warp_size(self) -> int:
        """Threads of a warp."""
