"""Devices and their properties."""

from types import TracebackType
from typing import Any, SupportsIndex, final

from typing_extensions import Self, disjoint_base

from cuda.core._context import Context, ContextOptions
from cuda.core._device_resources import DeviceResources
from cuda.core._event import Event, EventOptions
from cuda.core._memory._buffer import Buffer, MemoryResource
from cuda.core._stream import IsStreamType, Stream, StreamOptions
from cuda.core.graph._graph_builder import GraphBuilder
from cuda.core._utils.cuda_utils import ComputeCapability
from cuda.core.system._device import Device as _SystemDevice
from cuda.core.texture._array import OpaqueArray, OpaqueArrayOptions
from cuda.core.texture._mipmapped_array import MipmappedArray, MipmappedArrayOptions
from cuda.core.texture._surface import SurfaceObject
from cuda.core.texture._texture import ResourceDescriptor, TextureObject, TextureObjectOptions

__all__ = ["Device", "DeviceProperties"]

@disjoint_base
class Device:
    """A CUDA device."""

    def __new__(cls, device_id: Device | SupportsIndex | None = None) -> Device: ...
    @classmethod
    def get_all_devices(cls) -> tuple[Device, ...]:
        """All devices, ordered by number."""
    @property
    def device_id(self) -> int:
        """Device number, counted from 0."""
    @property
    def pci_bus_id(self) -> str:
        """PCI bus ID, ``domain:bus:device.function`` in hexadecimal."""
    @property
    def uuid(self) -> str:
        """UUID: 32 hexadecimal digits in five groups, without the prefix ``GPU-``."""
    @property
    def name(self) -> str:
        """Device name; the CPU device's name begins with ``CPU``."""
    @property
    def total_memory(self) -> int:
        """Total memory in bytes."""
    @property
    def arch(self) -> str:
        """Compute capability without the point, as in compiler options: ``'90'``."""
    @property
    def compute_capability(self) -> ComputeCapability:
        """Compute capability, a named tuple ``(major, minor)``."""
    @property
    def properties(self) -> DeviceProperties:
        """Attributes of the device."""
    @property
    def context(self) -> Context:
        """The context used for this device on the calling thread: the current context if it belongs to this device,
        else the primary context."""
    @property
    def default_stream(self) -> Stream:
        """The default stream: :data:`LEGACY_DEFAULT_STREAM`, or :data:`PER_THREAD_DEFAULT_STREAM` if the environment
        variable ``CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM`` selects it."""
    @property
    def memory_resource(self) -> MemoryResource:
        """Memory resource of :meth:`allocate`. Default: a :class:`DeviceMemoryResource` of this device."""
    @memory_resource.setter
    def memory_resource(self, mr: MemoryResource) -> None: ...
    def to_system_device(self) -> _SystemDevice:
        """The `cuda.core.system.Device` with the same UUID: the device as NVML sees it.

        Raises
        ------
        NvmlError
            If NVML cannot be initialised or does not have the device.
        """
    def can_access_peer(self, peer: Device | SupportsIndex) -> bool:
        """Whether kernels of this device can access the memory of another device."""
    def set_current(self, ctx: Context | None = None) -> Context | None:
        """Makes the device current on the calling thread, for default streams and other libraries."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, *_args: type[BaseException] | BaseException | TracebackType | None
    ) -> None: ...
    def create_context(self, options: ContextOptions | dict[str, Any] | None = None) -> Context:
        """Creates a green context, which owns a part of the device. It does not become current."""
    @property
    def resources(self) -> DeviceResources:
        """The resources of the device: all multiprocessors and work queues."""
    def create_stream(
        self, obj: IsStreamType | None = None, options: StreamOptions | dict[str, Any] | None = None
    ) -> Stream:
        """Creates a stream."""
    def create_graph_builder(self) -> GraphBuilder:
        """Creates a graph builder with a stream of its own."""
    def create_event(self, options: EventOptions | dict[str, Any] | None = None) -> Event:
        """Creates an event, not yet recorded."""
    def create_opaque_array(self, options: OpaqueArrayOptions | dict[str, Any]) -> OpaqueArray:
        """Creates an array for textures and surfaces."""
    def create_mipmapped_array(self, options: MipmappedArrayOptions | dict[str, Any]) -> MipmappedArray:
        """Creates an array with levels of detail."""
    def create_texture_object(
        self, *, resource: ResourceDescriptor, options: TextureObjectOptions | dict[str, Any] | None = None
    ) -> TextureObject:
        """Creates a texture, for sampled reads in kernels."""
    def create_surface_object(self, *, resource: ResourceDescriptor) -> SurfaceObject:
        """Creates a surface, for reads and writes of an array in kernels."""
    def allocate(self, size: SupportsIndex, *, stream: Stream | GraphBuilder | None = None) -> Buffer:
        """Allocates device memory."""
    def sync(self) -> None:
        """Waits for all work of the device."""
    def _repr_html_(self) -> str:
        """HTML for notebooks."""
    def __int__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[type[Device], tuple[int]]: ...

@final
class DeviceProperties:
    """Attributes of a device."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> DeviceProperties: ...
    @property
    def async_engine_count(self) -> int:
        """Number of asynchronous copy engines."""
    @property
    def can_flush_remote_writes(self) -> bool:
        """Whether `cuStreamWaitValue` supports flushing remote writes (`CU_STREAM_WAIT_VALUE_FLUSH`)."""
    @property
    def can_map_host_memory(self) -> bool:
        """Whether host memory can be mapped into the address space of the device."""
    @property
    def can_tex2d_gather(self) -> bool:
        """Whether texture gather from 2D CUDA arrays is supported."""
    @property
    def can_use_64_bit_stream_mem_ops(self) -> bool:
        """Whether 64-bit stream memory operations are supported."""
    @property
    def can_use_host_pointer_for_registered_mem(self) -> bool:
        """Whether the device can access registered host memory at the host's virtual addresses."""
    @property
    def can_use_stream_wait_value_nor(self) -> bool:
        """Whether `cuStreamWaitValue` supports `CU_STREAM_WAIT_VALUE_NOR`."""
    @property
    def clock_rate(self) -> int:
        """Peak clock frequency in kilohertz."""
    @property
    def cluster_launch(self) -> bool:
        """Whether cluster launches are supported."""
    @property
    def compute_capability_major(self) -> int:
        """Major compute capability."""
    @property
    def compute_capability_minor(self) -> int:
        """Minor compute capability."""
    @property
    def compute_mode(self) -> int:
        """Compute mode, a `CUcomputemode` as an int; 0: default."""
    @property
    def compute_preemption_supported(self) -> bool:
        """Whether compute preemption is supported."""
    @property
    def concurrent_kernels(self) -> bool:
        """Whether kernels of a context can run concurrently."""
    @property
    def concurrent_managed_access(self) -> bool:
        """Whether host and device can access managed memory concurrently."""
    @property
    def cooperative_launch(self) -> bool:
        """Whether cooperative launches are supported."""
    @property
    def d3d12_cig_supported(self) -> bool:
        """Whether contexts can share the GPU with Direct3D 12 work (CUDA in Graphics)."""
    @property
    def deferred_mapping_cuda_array_supported(self) -> bool:
        """Whether CUDA arrays support deferred mapping."""
    @property
    def direct_managed_mem_access_from_host(self) -> bool:
        """Whether the host can access managed memory on the device without migration."""
    @property
    def dma_buf_supported(self) -> bool:
        """Whether memory can be shared as a dma-buf."""
    @property
    def ecc_enabled(self) -> bool:
        """Whether ECC is enabled."""
    @property
    def generic_compression_supported(self) -> bool:
        """Whether compressible memory is supported."""
    @property
    def global_l1_cache_supported(self) -> bool:
        """Whether global memory is cached in L1."""
    @property
    def global_memory_bus_width(self) -> int:
        """Width of the memory bus in bits."""
    @property
    def gpu_direct_rdma_flush_writes_options(self) -> int:
        """Flush options for remote writes, bits of `CUflushGPUDirectRDMAWritesOptions`."""
    @property
    def gpu_direct_rdma_supported(self) -> bool:
        """Whether GPUDirect RDMA is supported."""
    @property
    def gpu_direct_rdma_with_cuda_vmm_supported(self) -> bool:
        """Whether GPUDirect RDMA supports memory of the virtual memory management API."""
    @property
    def gpu_direct_rdma_writes_ordering(self) -> int:
        """Ordering of remote writes, a `CUGPUDirectRDMAWritesOrdering` as an int."""
    @property
    def gpu_overlap(self) -> bool:
        """Whether copies and kernels can overlap; see `async_engine_count`."""
    @property
    def gpu_pci_device_id(self) -> int:
        """PCI device and vendor ID."""
    @property
    def gpu_pci_subsystem_id(self) -> int:
        """PCI subsystem ID."""
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
        """Whether memory pools of host memory are supported."""
    @property
    def host_native_atomic_supported(self) -> bool:
        """Whether native atomic operations between device and host are supported."""
    @property
    def host_numa_id(self) -> int:
        """Nearest NUMA node of the host; -1 if there is none."""
    @property
    def host_numa_memory_pools_supported(self) -> bool:
        """Whether memory pools of a host NUMA node are supported."""
    @property
    def host_numa_multinode_ipc_supported(self) -> bool:
        """Whether memory of a host NUMA node can be shared between machines."""
    @property
    def host_numa_virtual_memory_management_supported(self) -> bool:
        """Whether the virtual memory management API supports host NUMA nodes."""
    @property
    def host_register_supported(self) -> bool:
        """Whether host memory can be registered (`cuMemHostRegister`)."""
    @property
    def host_virtual_memory_management_supported(self) -> bool:
        """Whether the virtual memory management API supports host memory."""
    @property
    def integrated(self) -> bool:
        """Whether the device shares its memory with the host."""
    @property
    def ipc_event_supported(self) -> bool:
        """Whether other processes can open events."""
    @property
    def kernel_exec_timeout(self) -> bool:
        """Whether kernels have a run time limit."""
    @property
    def l2_cache_size(self) -> int:
        """Size of the L2 cache in bytes."""
    @property
    def local_l1_cache_supported(self) -> bool:
        """Whether local memory is cached in L1."""
    @property
    def managed_memory(self) -> bool:
        """Whether managed memory is supported."""
    @property
    def max_access_policy_window_size(self) -> int:
        """Maximum size of a `CUaccessPolicyWindow` in bytes."""
    @property
    def max_block_dim_x(self) -> int:
        """Maximum x dimension of a block."""
    @property
    def max_block_dim_y(self) -> int:
        """Maximum y dimension of a block."""
    @property
    def max_block_dim_z(self) -> int:
        """Maximum z dimension of a block."""
    @property
    def max_blocks_per_multiprocessor(self) -> int:
        """Maximum number of resident blocks per multiprocessor."""
    @property
    def max_grid_dim_x(self) -> int:
        """Maximum x dimension of a grid."""
    @property
    def max_grid_dim_y(self) -> int:
        """Maximum y dimension of a grid."""
    @property
    def max_grid_dim_z(self) -> int:
        """Maximum z dimension of a grid."""
    @property
    def max_persisting_l2_cache_size(self) -> int:
        """Maximum L2 cache size for persisting accesses in bytes."""
    @property
    def max_pitch(self) -> int:
        """Maximum pitch of a copy in bytes."""
    @property
    def max_registers_per_block(self) -> int:
        """32-bit registers per block."""
    @property
    def max_registers_per_multiprocessor(self) -> int:
        """32-bit registers per multiprocessor."""
    @property
    def max_shared_memory_per_block(self) -> int:
        """Maximum shared memory per block in bytes."""
    @property
    def max_shared_memory_per_block_optin(self) -> int:
        """Maximum opt-in shared memory per block in bytes."""
    @property
    def max_shared_memory_per_multiprocessor(self) -> int:
        """Shared memory per multiprocessor in bytes."""
    @property
    def max_threads_per_block(self) -> int:
        """Maximum number of threads per block."""
    @property
    def max_threads_per_multiprocessor(self) -> int:
        """Maximum number of resident threads per multiprocessor."""
    @property
    def maximum_surface1d_layered_layers(self) -> int:
        """Maximum number of layers of layered 1D surfaces."""
    @property
    def maximum_surface1d_layered_width(self) -> int:
        """Maximum width of layered 1D surfaces."""
    @property
    def maximum_surface1d_width(self) -> int:
        """Maximum width of 1D surfaces."""
    @property
    def maximum_surface2d_height(self) -> int:
        """Maximum height of 2D surfaces."""
    @property
    def maximum_surface2d_layered_height(self) -> int:
        """Maximum height of layered 2D surfaces."""
    @property
    def maximum_surface2d_layered_layers(self) -> int:
        """Maximum number of layers of layered 2D surfaces."""
    @property
    def maximum_surface2d_layered_width(self) -> int:
        """Maximum width of layered 2D surfaces."""
    @property
    def maximum_surface2d_width(self) -> int:
        """Maximum width of 2D surfaces."""
    @property
    def maximum_surface3d_depth(self) -> int:
        """Maximum depth of 3D surfaces."""
    @property
    def maximum_surface3d_height(self) -> int:
        """Maximum height of 3D surfaces."""
    @property
    def maximum_surface3d_width(self) -> int:
        """Maximum width of 3D surfaces."""
    @property
    def maximum_surfacecubemap_layered_layers(self) -> int:
        """Maximum number of layers of layered cubemap surfaces."""
    @property
    def maximum_surfacecubemap_layered_width(self) -> int:
        """Maximum width of layered cubemap surfaces."""
    @property
    def maximum_surfacecubemap_width(self) -> int:
        """Maximum width of cubemap surfaces."""
    @property
    def maximum_texture1d_layered_layers(self) -> int:
        """Maximum number of layers of layered 1D textures."""
    @property
    def maximum_texture1d_layered_width(self) -> int:
        """Maximum width of layered 1D textures."""
    @property
    def maximum_texture1d_linear_width(self) -> int:
        """Maximum width of linear-memory 1D textures."""
    @property
    def maximum_texture1d_mipmapped_width(self) -> int:
        """Maximum width of mipmapped 1D textures."""
    @property
    def maximum_texture1d_width(self) -> int:
        """Maximum width of 1D textures."""
    @property
    def maximum_texture2d_gather_height(self) -> int:
        """Maximum height of 2D textures for texture gather."""
    @property
    def maximum_texture2d_gather_width(self) -> int:
        """Maximum width of 2D textures for texture gather."""
    @property
    def maximum_texture2d_height(self) -> int:
        """Maximum height of 2D textures."""
    @property
    def maximum_texture2d_layered_height(self) -> int:
        """Maximum height of layered 2D textures."""
    @property
    def maximum_texture2d_layered_layers(self) -> int:
        """Maximum number of layers of layered 2D textures."""
    @property
    def maximum_texture2d_layered_width(self) -> int:
        """Maximum width of layered 2D textures."""
    @property
    def maximum_texture2d_linear_height(self) -> int:
        """Maximum height of linear-memory 2D textures."""
    @property
    def maximum_texture2d_linear_pitch(self) -> int:
        """Maximum pitch in bytes of linear-memory 2D textures."""
    @property
    def maximum_texture2d_linear_width(self) -> int:
        """Maximum width of linear-memory 2D textures."""
    @property
    def maximum_texture2d_mipmapped_height(self) -> int:
        """Maximum height of mipmapped 2D textures."""
    @property
    def maximum_texture2d_mipmapped_width(self) -> int:
        """Maximum width of mipmapped 2D textures."""
    @property
    def maximum_texture2d_width(self) -> int:
        """Maximum width of 2D textures."""
    @property
    def maximum_texture3d_depth(self) -> int:
        """Maximum depth of 3D textures."""
    @property
    def maximum_texture3d_depth_alternate(self) -> int:
        """Maximum depth of 3D textures in the alternate shape."""
    @property
    def maximum_texture3d_height(self) -> int:
        """Maximum height of 3D textures."""
    @property
    def maximum_texture3d_height_alternate(self) -> int:
        """Maximum height of 3D textures in the alternate shape."""
    @property
    def maximum_texture3d_width(self) -> int:
        """Maximum width of 3D textures."""
    @property
    def maximum_texture3d_width_alternate(self) -> int:
        """Maximum width of 3D textures in the alternate shape."""
    @property
    def maximum_texturecubemap_layered_layers(self) -> int:
        """Maximum number of layers of layered cubemap textures."""
    @property
    def maximum_texturecubemap_layered_width(self) -> int:
        """Maximum width of layered cubemap textures."""
    @property
    def maximum_texturecubemap_width(self) -> int:
        """Maximum width of cubemap textures."""
    @property
    def mem_decompress_algorithm_mask(self) -> int:
        """Algorithms of the decompression engine, bits of `CUmemDecompressAlgorithm`."""
    @property
    def mem_decompress_maximum_length(self) -> int:
        """Maximum size of a decompression operation in bytes."""
    @property
    def mem_sync_domain_count(self) -> int:
        """Number of memory synchronization domains."""
    @property
    def memory_clock_rate(self) -> int:
        """Peak clock frequency of the memory in kilohertz."""
    @property
    def memory_pools_supported(self) -> bool:
        """Whether stream-ordered allocation is supported."""
    @property
    def mempool_supported_handle_types(self) -> int:
        """Handle types for sharing memory pools, bits of `CUmemAllocationHandleType`."""
    @property
    def mps_enabled(self) -> bool:
        """Whether contexts share the device through MPS."""
    @property
    def multi_gpu_board(self) -> bool:
        """Whether the device is on a multi-GPU board."""
    @property
    def multi_gpu_board_group_id(self) -> int:
        """Group ID shared by all GPUs of a board."""
    @property
    def multicast_supported(self) -> bool:
        """Whether multicast objects are supported."""
    @property
    def multiprocessor_count(self) -> int:
        """Number of multiprocessors."""
    @property
    def numa_config(self) -> int:
        """NUMA configuration of the device's memory, a `CUdeviceNumaConfig` as an int."""
    @property
    def numa_id(self) -> int:
        """NUMA node of the device's memory; -1 if there is none."""
    @property
    def only_partial_host_native_atomic_supported(self) -> bool:
        """Whether native atomic operations between device and host are supported only partially."""
    @property
    def pageable_memory_access(self) -> bool:
        """Whether the device can access pageable host memory."""
    @property
    def pageable_memory_access_uses_host_page_tables(self) -> bool:
        """Whether the device accesses pageable host memory through the host's page tables."""
    @property
    def pci_bus_id(self) -> int:
        """PCI bus number."""
    @property
    def pci_device_id(self) -> int:
        """PCI slot number."""
    @property
    def pci_domain_id(self) -> int:
        """PCI domain number."""
    @property
    def read_only_host_register_supported(self) -> bool:
        """Whether host memory can be registered read-only."""
    @property
    def reserved_shared_memory_per_block(self) -> int:
        """Shared memory per block reserved by the driver, in bytes."""
    @property
    def single_to_double_precision_perf_ratio(self) -> int:
        """Ratio of single-precision to double-precision throughput."""
    @property
    def sparse_cuda_array_supported(self) -> bool:
        """Whether sparse CUDA arrays are supported."""
    @property
    def stream_priorities_supported(self) -> bool:
        """Whether stream priorities are supported."""
    @property
    def surface_alignment(self) -> int:
        """Alignment of surfaces in bytes."""
    @property
    def tcc_driver(self) -> bool:
        """Whether the Windows driver is in TCC mode."""
    @property
    def tensor_map_access_supported(self) -> bool:
        """Whether tensor maps are supported."""
    @property
    def texture_alignment(self) -> int:
        """Alignment of textures in bytes."""
    @property
    def texture_pitch_alignment(self) -> int:
        """Pitch alignment of 2D textures in bytes."""
    @property
    def timeline_semaphore_interop_supported(self) -> bool:
        """Whether external timeline semaphores are supported."""
    @property
    def total_constant_memory(self) -> int:
        """Constant memory per kernel in bytes."""
    @property
    def unified_addressing(self) -> bool:
        """Whether unified addressing is supported."""
    @property
    def unified_function_pointers(self) -> bool:
        """Whether unified function pointers are supported."""
    @property
    def virtual_memory_management_supported(self) -> bool:
        """Whether the virtual memory management API is supported."""
    @property
    def vulkan_cig_supported(self) -> bool:
        """Whether contexts can share the GPU with Vulkan work (CUDA in Graphics)."""
    @property
    def warp_size(self) -> int:
        """Threads per warp."""
