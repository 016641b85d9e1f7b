//! `DeviceProperties`: device attributes by name.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicI64, Ordering};

use cupyrite::sys::driver::{CUdevice_attribute as A, CUresult};
use cupyrite::{Device, Error};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::core::errors::to_python;
use crate::cpython;

/// One attribute. Source: `CUdevice_attribute` of the CUDA driver API.
struct Property {
    name: &'static CStr,
    attribute: A,
    /// Whether the attribute is a bool.
    flag: bool,
    doc: &'static CStr,
}

const fn flag(name: &'static CStr, attribute: A, doc: &'static CStr) -> Property {
    Property {
        name,
        attribute,
        flag: true,
        doc,
    }
}

const fn number(name: &'static CStr, attribute: A, doc: &'static CStr) -> Property {
    Property {
        name,
        attribute,
        flag: false,
        doc,
    }
}

#[rustfmt::skip] // a row an attribute
static PROPERTIES: [Property; 143] = [
    number(c"async_engine_count", A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, c"Number of asynchronous copy engines."),
    flag(c"can_flush_remote_writes", A::CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, c"Whether `cuStreamWaitValue` supports flushing remote writes (`CU_STREAM_WAIT_VALUE_FLUSH`)."),
    flag(c"can_map_host_memory", A::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, c"Whether host memory can be mapped into the address space of the device."),
    flag(c"can_tex2d_gather", A::CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER, c"Whether texture gather from 2D CUDA arrays is supported."),
    flag(c"can_use_64_bit_stream_mem_ops", A::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, c"Whether 64-bit stream memory operations are supported."),
    flag(c"can_use_host_pointer_for_registered_mem", A::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, c"Whether the device can access registered host memory at the host's virtual addresses."),
    flag(c"can_use_stream_wait_value_nor", A::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, c"Whether `cuStreamWaitValue` supports `CU_STREAM_WAIT_VALUE_NOR`."),
    number(c"clock_rate", A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, c"Peak clock frequency in kilohertz."),
    flag(c"cluster_launch", A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, c"Whether cluster launches are supported."),
    number(c"compute_capability_major", A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, c"Major compute capability."),
    number(c"compute_capability_minor", A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, c"Minor compute capability."),
    number(c"compute_mode", A::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, c"Compute mode, a `CUcomputemode` as an int; 0: default."),
    flag(c"compute_preemption_supported", A::CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, c"Whether compute preemption is supported."),
    flag(c"concurrent_kernels", A::CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, c"Whether kernels of a context can run concurrently."),
    flag(c"concurrent_managed_access", A::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, c"Whether host and device can access managed memory concurrently."),
    flag(c"cooperative_launch", A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, c"Whether cooperative launches are supported."),
    flag(c"d3d12_cig_supported", A::CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED, c"Whether contexts can share the GPU with Direct3D 12 work (CUDA in Graphics)."),
    flag(c"deferred_mapping_cuda_array_supported", A::CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, c"Whether CUDA arrays support deferred mapping."),
    flag(c"direct_managed_mem_access_from_host", A::CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, c"Whether the host can access managed memory on the device without migration."),
    flag(c"dma_buf_supported", A::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, c"Whether memory can be shared as a dma-buf."),
    flag(c"ecc_enabled", A::CU_DEVICE_ATTRIBUTE_ECC_ENABLED, c"Whether ECC is enabled."),
    flag(c"generic_compression_supported", A::CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, c"Whether compressible memory is supported."),
    flag(c"global_l1_cache_supported", A::CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, c"Whether global memory is cached in L1."),
    number(c"global_memory_bus_width", A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, c"Width of the memory bus in bits."),
    number(c"gpu_direct_rdma_flush_writes_options", A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, c"Flush options for remote writes, bits of `CUflushGPUDirectRDMAWritesOptions`."),
    flag(c"gpu_direct_rdma_supported", A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, c"Whether GPUDirect RDMA is supported."),
    flag(c"gpu_direct_rdma_with_cuda_vmm_supported", A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, c"Whether GPUDirect RDMA supports memory of the virtual memory management API."),
    number(c"gpu_direct_rdma_writes_ordering", A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, c"Ordering of remote writes, a `CUGPUDirectRDMAWritesOrdering` as an int."),
    flag(c"gpu_overlap", A::CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, c"Whether copies and kernels can overlap; see `async_engine_count`."),
    number(c"gpu_pci_device_id", A::CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID, c"PCI device and vendor ID."),
    number(c"gpu_pci_subsystem_id", A::CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID, c"PCI subsystem ID."),
    flag(c"handle_type_fabric_supported", A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, c"Whether memory can be shared by fabric handles."),
    flag(c"handle_type_posix_file_descriptor_supported", A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, c"Whether memory can be shared by file descriptors."),
    flag(c"handle_type_win32_handle_supported", A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED, c"Whether memory can be shared by Windows handles."),
    flag(c"handle_type_win32_kmt_handle_supported", A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED, c"Whether memory can be shared by KMT handles of Windows."),
    flag(c"host_alloc_dma_buf_supported", A::CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED, c"Whether host memory of CUDA can be shared as a dma-buf."),
    flag(c"host_memory_pools_supported", A::CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, c"Whether memory pools of host memory are supported."),
    flag(c"host_native_atomic_supported", A::CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, c"Whether native atomic operations between device and host are supported."),
    number(c"host_numa_id", A::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, c"Nearest NUMA node of the host; -1 if there is none."),
    flag(c"host_numa_memory_pools_supported", A::CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED, c"Whether memory pools of a host NUMA node are supported."),
    flag(c"host_numa_multinode_ipc_supported", A::CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED, c"Whether memory of a host NUMA node can be shared between machines."),
    flag(c"host_numa_virtual_memory_management_supported", A::CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, c"Whether the virtual memory management API supports host NUMA nodes."),
    flag(c"host_register_supported", A::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, c"Whether host memory can be registered (`cuMemHostRegister`)."),
    flag(c"host_virtual_memory_management_supported", A::CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, c"Whether the virtual memory management API supports host memory."),
    flag(c"integrated", A::CU_DEVICE_ATTRIBUTE_INTEGRATED, c"Whether the device shares its memory with the host."),
    flag(c"ipc_event_supported", A::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, c"Whether other processes can open events."),
    flag(c"kernel_exec_timeout", A::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, c"Whether kernels have a run time limit."),
    number(c"l2_cache_size", A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, c"Size of the L2 cache in bytes."),
    flag(c"local_l1_cache_supported", A::CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, c"Whether local memory is cached in L1."),
    flag(c"managed_memory", A::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, c"Whether managed memory is supported."),
    number(c"max_access_policy_window_size", A::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, c"Maximum size of a `CUaccessPolicyWindow` in bytes."),
    number(c"max_block_dim_x", A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, c"Maximum x dimension of a block."),
    number(c"max_block_dim_y", A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, c"Maximum y dimension of a block."),
    number(c"max_block_dim_z", A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, c"Maximum z dimension of a block."),
    number(c"max_blocks_per_multiprocessor", A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, c"Maximum number of resident blocks per multiprocessor."),
    number(c"max_grid_dim_x", A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, c"Maximum x dimension of a grid."),
    number(c"max_grid_dim_y", A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, c"Maximum y dimension of a grid."),
    number(c"max_grid_dim_z", A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, c"Maximum z dimension of a grid."),
    number(c"max_persisting_l2_cache_size", A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, c"Maximum L2 cache size for persisting accesses in bytes."),
    number(c"max_pitch", A::CU_DEVICE_ATTRIBUTE_MAX_PITCH, c"Maximum pitch of a copy in bytes."),
    number(c"max_registers_per_block", A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, c"32-bit registers per block."),
    number(c"max_registers_per_multiprocessor", A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, c"32-bit registers per multiprocessor."),
    number(c"max_shared_memory_per_block", A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, c"Maximum shared memory per block in bytes."),
    number(c"max_shared_memory_per_block_optin", A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, c"Maximum opt-in shared memory per block in bytes."),
    number(c"max_shared_memory_per_multiprocessor", A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, c"Shared memory per multiprocessor in bytes."),
    number(c"max_threads_per_block", A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, c"Maximum number of threads per block."),
    number(c"max_threads_per_multiprocessor", A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, c"Maximum number of resident threads per multiprocessor."),
    number(c"maximum_surface1d_layered_layers", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS, c"Maximum number of layers of layered 1D surfaces."),
    number(c"maximum_surface1d_layered_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, c"Maximum width of layered 1D surfaces."),
    number(c"maximum_surface1d_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH, c"Maximum width of 1D surfaces."),
    number(c"maximum_surface2d_height", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT, c"Maximum height of 2D surfaces."),
    number(c"maximum_surface2d_layered_height", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT, c"Maximum height of layered 2D surfaces."),
    number(c"maximum_surface2d_layered_layers", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS, c"Maximum number of layers of layered 2D surfaces."),
    number(c"maximum_surface2d_layered_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH, c"Maximum width of layered 2D surfaces."),
    number(c"maximum_surface2d_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, c"Maximum width of 2D surfaces."),
    number(c"maximum_surface3d_depth", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH, c"Maximum depth of 3D surfaces."),
    number(c"maximum_surface3d_height", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT, c"Maximum height of 3D surfaces."),
    number(c"maximum_surface3d_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, c"Maximum width of 3D surfaces."),
    number(c"maximum_surfacecubemap_layered_layers", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, c"Maximum number of layers of layered cubemap surfaces."),
    number(c"maximum_surfacecubemap_layered_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, c"Maximum width of layered cubemap surfaces."),
    number(c"maximum_surfacecubemap_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH, c"Maximum width of cubemap surfaces."),
    number(c"maximum_texture1d_layered_layers", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS, c"Maximum number of layers of layered 1D textures."),
    number(c"maximum_texture1d_layered_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, c"Maximum width of layered 1D textures."),
    number(c"maximum_texture1d_linear_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, c"Maximum width of linear-memory 1D textures."),
    number(c"maximum_texture1d_mipmapped_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, c"Maximum width of mipmapped 1D textures."),
    number(c"maximum_texture1d_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, c"Maximum width of 1D textures."),
    number(c"maximum_texture2d_gather_height", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT, c"Maximum height of 2D textures for texture gather."),
    number(c"maximum_texture2d_gather_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH, c"Maximum width of 2D textures for texture gather."),
    number(c"maximum_texture2d_height", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, c"Maximum height of 2D textures."),
    number(c"maximum_texture2d_layered_height", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, c"Maximum height of layered 2D textures."),
    number(c"maximum_texture2d_layered_layers", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS, c"Maximum number of layers of layered 2D textures."),
    number(c"maximum_texture2d_layered_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, c"Maximum width of layered 2D textures."),
    number(c"maximum_texture2d_linear_height", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, c"Maximum height of linear-memory 2D textures."),
    number(c"maximum_texture2d_linear_pitch", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, c"Maximum pitch in bytes of linear-memory 2D textures."),
    number(c"maximum_texture2d_linear_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, c"Maximum width of linear-memory 2D textures."),
    number(c"maximum_texture2d_mipmapped_height", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, c"Maximum height of mipmapped 2D textures."),
    number(c"maximum_texture2d_mipmapped_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, c"Maximum width of mipmapped 2D textures."),
    number(c"maximum_texture2d_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, c"Maximum width of 2D textures."),
    number(c"maximum_texture3d_depth", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, c"Maximum depth of 3D textures."),
    number(c"maximum_texture3d_depth_alternate", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, c"Maximum depth of 3D textures in the alternate shape."),
    number(c"maximum_texture3d_height", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, c"Maximum height of 3D textures."),
    number(c"maximum_texture3d_height_alternate", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, c"Maximum height of 3D textures in the alternate shape."),
    number(c"maximum_texture3d_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, c"Maximum width of 3D textures."),
    number(c"maximum_texture3d_width_alternate", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, c"Maximum width of 3D textures in the alternate shape."),
    number(c"maximum_texturecubemap_layered_layers", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, c"Maximum number of layers of layered cubemap textures."),
    number(c"maximum_texturecubemap_layered_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, c"Maximum width of layered cubemap textures."),
    number(c"maximum_texturecubemap_width", A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, c"Maximum width of cubemap textures."),
    number(c"mem_decompress_algorithm_mask", A::CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, c"Algorithms of the decompression engine, bits of `CUmemDecompressAlgorithm`."),
    number(c"mem_decompress_maximum_length", A::CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH, c"Maximum size of a decompression operation in bytes."),
    number(c"mem_sync_domain_count", A::CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, c"Number of memory synchronization domains."),
    number(c"memory_clock_rate", A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, c"Peak clock frequency of the memory in kilohertz."),
    flag(c"memory_pools_supported", A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, c"Whether stream-ordered allocation is supported."),
    number(c"mempool_supported_handle_types", A::CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, c"Handle types for sharing memory pools, bits of `CUmemAllocationHandleType`."),
    flag(c"mps_enabled", A::CU_DEVICE_ATTRIBUTE_MPS_ENABLED, c"Whether contexts share the device through MPS."),
    flag(c"multi_gpu_board", A::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, c"Whether the device is on a multi-GPU board."),
    number(c"multi_gpu_board_group_id", A::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID, c"Group ID shared by all GPUs of a board."),
    flag(c"multicast_supported", A::CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, c"Whether multicast objects are supported."),
    number(c"multiprocessor_count", A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, c"Number of multiprocessors."),
    number(c"numa_config", A::CU_DEVICE_ATTRIBUTE_NUMA_CONFIG, c"NUMA configuration of the device's memory, a `CUdeviceNumaConfig` as an int."),
    number(c"numa_id", A::CU_DEVICE_ATTRIBUTE_NUMA_ID, c"NUMA node of the device's memory; -1 if there is none."),
    flag(c"only_partial_host_native_atomic_supported", A::CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED, c"Whether native atomic operations between device and host are supported only partially."),
    flag(c"pageable_memory_access", A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, c"Whether the device can access pageable host memory."),
    flag(c"pageable_memory_access_uses_host_page_tables", A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, c"Whether the device accesses pageable host memory through the host's page tables."),
    number(c"pci_bus_id", A::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, c"PCI bus number."),
    number(c"pci_device_id", A::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, c"PCI slot number."),
    number(c"pci_domain_id", A::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, c"PCI domain number."),
    flag(c"read_only_host_register_supported", A::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, c"Whether host memory can be registered read-only."),
    number(c"reserved_shared_memory_per_block", A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, c"Shared memory per block reserved by the driver, in bytes."),
    number(c"single_to_double_precision_perf_ratio", A::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, c"Ratio of single-precision to double-precision throughput."),
    flag(c"sparse_cuda_array_supported", A::CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, c"Whether sparse CUDA arrays are supported."),
    flag(c"stream_priorities_supported", A::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, c"Whether stream priorities are supported."),
    number(c"surface_alignment", A::CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, c"Alignment of surfaces in bytes."),
    flag(c"tcc_driver", A::CU_DEVICE_ATTRIBUTE_TCC_DRIVER, c"Whether the Windows driver is in TCC mode."),
    flag(c"tensor_map_access_supported", A::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, c"Whether tensor maps are supported."),
    number(c"texture_alignment", A::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, c"Alignment of textures in bytes."),
    number(c"texture_pitch_alignment", A::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, c"Pitch alignment of 2D textures in bytes."),
    flag(c"timeline_semaphore_interop_supported", A::CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, c"Whether external timeline semaphores are supported."),
    number(c"total_constant_memory", A::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, c"Constant memory per kernel in bytes."),
    flag(c"unified_addressing", A::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, c"Whether unified addressing is supported."),
    flag(c"unified_function_pointers", A::CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, c"Whether unified function pointers are supported."),
    flag(c"virtual_memory_management_supported", A::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, c"Whether the virtual memory management API is supported."),
    flag(c"vulkan_cig_supported", A::CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED, c"Whether contexts can share the GPU with Vulkan work (CUDA in Graphics)."),
    number(c"warp_size", A::CU_DEVICE_ATTRIBUTE_WARP_SIZE, c"Threads per warp."),
];

/// Attributes of a device.
///
/// Obtained from :attr:`Device.properties`. Each attribute is queried once and cached. A flag unknown to an older
/// driver is False.
///
/// See `cuDeviceGetAttribute <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__DEVICE.html>`_.
#[pyclass(frozen, module = "cuda.core._device", name = "DeviceProperties")]
pub struct PyDeviceProperties {
    device: Device,
    /// [`UNKNOWN`] until queried.
    known: Box<[AtomicI64]>,
}

const UNKNOWN: i64 = i64::MIN;

impl PyDeviceProperties {
    /// Creates the properties object of a device.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn wrap(py: Python<'_>, device: Device) -> PyResult<Py<PyDeviceProperties>> {
        Py::new(
            py,
            PyDeviceProperties {
                device,
                known: PROPERTIES.iter().map(|_| AtomicI64::new(UNKNOWN)).collect(),
            },
        )
    }

    fn value(&self, index: usize) -> cupyrite::Result<i64> {
        let property = &PROPERTIES[index];
        let known = self.known[index].load(Ordering::Relaxed);
        if known != UNKNOWN {
            return Ok(known);
        }
        let value = match self.device.attribute(property.attribute) {
            Ok(value) => i64::from(value),
            Err(Error::Driver {
                status: CUresult::CUDA_ERROR_INVALID_VALUE,
                ..
            }) if property.flag => 0,
            Err(error) => return Err(error),
        };
        self.known[index].store(value, Ordering::Relaxed);
        Ok(value)
    }
}

#[pymethods]
impl PyDeviceProperties {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyDeviceProperties> {
        Err(PyRuntimeError::new_err(
            "DeviceProperties are not made directly: take Device.properties",
        ))
    }
}

/// Getter of a property; `closure` is its index.
unsafe extern "C" fn get(this: *mut ffi::PyObject, closure: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: Python calls getters attached, with an object whose class the descriptor has checked.
    let (py, this) = unsafe {
        let py = Python::assume_attached();
        (py, Bound::from_borrowed_ptr(py, this))
    };
    let index = closure.addr();
    let value = this
        .cast::<PyDeviceProperties>()
        .map_err(PyErr::from)
        .and_then(|this| {
            this.get()
                .value(index)
                .map_err(|error| to_python(py, &error))
        });
    match value {
        // SAFETY: attached; new references, or null with an exception.
        Ok(value) if PROPERTIES[index].flag => unsafe {
            ffi::PyBool_FromLong(c_int::from(value != 0).into())
        },
        // SAFETY: attached; a new reference, or null with an exception.
        Ok(value) => unsafe { ffi::PyLong_FromLongLong(value) },
        Err(error) => {
            cpython::set(error);
            std::ptr::null_mut()
        }
    }
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = core.py();
    core.add_class::<PyDeviceProperties>()?;
    let class = py.get_type::<PyDeviceProperties>();
    for (index, property) in PROPERTIES.iter().enumerate() {
        // Descriptors refer to their definition, which is leaked.
        let definition = Box::leak(Box::new(ffi::PyGetSetDef {
            name: property.name.as_ptr(),
            get: Some(get),
            set: None,
            doc: property.doc.as_ptr(),
            closure: std::ptr::without_provenance_mut(index),
        }));
        // SAFETY: a live class and a static definition.
        let descriptor = unsafe {
            Bound::from_owned_ptr_or_err(
                py,
                ffi::PyDescr_NewGetSet(class.as_type_ptr(), definition),
            )?
        };
        class.setattr(property.name.to_str().unwrap_or_default(), descriptor)?;
    }
    Ok(())
}
