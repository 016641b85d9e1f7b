//! Device attributes, consistent with the behaviour of the rest of the driver.
//!
//! The figures are those of the presented compute capability (CUDA C++ Programming Guide, "Compute Capabilities").

use cupyrite_engine::RESERVED_SHARED;
use cupyrite_sys::driver::{
    CUGPUDirectRDMAWritesOrdering, CUdevice_attribute as A, CUflushGPUDirectRDMAWritesOptions,
    CUmemAllocationHandleType,
};

use crate::driver::device::Device;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::memory::decompress;

/// The PCI domain of CPU devices.
pub(crate) const PCI_DOMAIN: i32 = 0xC0DE;

pub(crate) const MAX_THREADS_PER_BLOCK: u32 = 1024;
pub(crate) const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
pub(crate) const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];
pub(crate) const WARP: u32 = 32;
pub(crate) const REGISTERS_PER_SM: u32 = 65536;
/// Shared memory available to a block without opting in to more, in bytes.
pub(crate) const SHARED_PER_BLOCK: u32 = 48 << 10;
pub(crate) const MAX_REGISTERS_PER_THREAD: u32 = 255;

/// Multiprocessor figures that depend on the compute capability.
pub(crate) struct Multiprocessor {
    pub(crate) threads: u32,
    pub(crate) blocks: u32,
    /// Bytes of shared memory.
    pub(crate) shared: u32,
    /// Maximum shared memory of one block, in bytes.
    pub(crate) shared_optin: u32,
    /// Shared memory of each block that the system reserves, in bytes.
    pub(crate) shared_reserved: u32,
}

/// The multiprocessor of a compute capability.
pub(crate) fn multiprocessor(capability: (i32, i32)) -> Multiprocessor {
    let (threads, blocks, shared_kib) = match capability {
        (5, 2) => (2048, 32, 96),
        (6, 1) => (2048, 32, 96),
        (5 | 6, _) => (2048, 32, 64),
        (7, 5) => (1024, 16, 64),
        (7, _) => (2048, 32, 96),
        (8, 0) => (2048, 32, 164),
        (8, 7) => (1536, 16, 164),
        (8, 9) => (1536, 24, 100),
        (8, _) => (1536, 16, 100),
        (9..=11, _) => (2048, 32, 228),
        _ => (1536, 24, 100),
    };
    let shared = shared_kib << 10;
    let shared_reserved = match capability.0 {
        ..=7 => 0,
        _ => RESERVED_SHARED,
    };
    let shared_optin = match capability.0 {
        5 | 6 => SHARED_PER_BLOCK,
        _ => shared - shared_reserved,
    };
    Multiprocessor {
        threads,
        blocks,
        shared,
        shared_optin,
        shared_reserved,
    }
}

impl Device {
    pub(crate) fn multiprocessor(&self) -> Multiprocessor {
        multiprocessor(self.capability)
    }
}

/// The value of a `CUdevice_attribute`.
///
/// # Errors
/// `INVALID_VALUE` for an unknown attribute.
pub(crate) fn get(device: &Device, attribute: A) -> Res<i32> {
    let sm = device.multiprocessor();
    Ok(match attribute {
        A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK => MAX_THREADS_PER_BLOCK as i32,
        A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X => MAX_BLOCK[0] as i32,
        A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y => MAX_BLOCK[1] as i32,
        A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z => MAX_BLOCK[2] as i32,
        A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X => MAX_GRID[0] as i32,
        A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y => MAX_GRID[1] as i32,
        A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z => MAX_GRID[2] as i32,
        A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK => SHARED_PER_BLOCK as i32,
        A::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY => 64 << 10,
        A::CU_DEVICE_ATTRIBUTE_WARP_SIZE => WARP as i32,
        A::CU_DEVICE_ATTRIBUTE_MAX_PITCH => i32::MAX,
        A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK
        | A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR => REGISTERS_PER_SM as i32,
        A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE => clock_rate_khz(),
        A::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT => 512,
        // One multiprocessor per hardware thread: a block runs on one of them.
        A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => device.threads,
        // Kernels have no time limit. The device is not integrated: its memory is separate, as on a GPU.
        A::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT | A::CU_DEVICE_ATTRIBUTE_INTEGRATED => 0,
        A::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY => 1,
        A::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE => 0,
        // Texture and surface sizes of compute capability 8.9.
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH => 131_072,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH => 131_072,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT => 65_536,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH
        | A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT
        | A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH => 16_384,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH
        | A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT => 32_768,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS => 2048,
        A::CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT => 512,
        A::CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS => 1,
        A::CU_DEVICE_ATTRIBUTE_ECC_ENABLED => 0,
        A::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID => device.pci_bus(),
        A::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID => 0,
        A::CU_DEVICE_ATTRIBUTE_TCC_DRIVER => 0,
        A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE => 1_600_000,
        A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH => 64,
        A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE => l2_bytes(),
        A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR => sm.threads as i32,
        A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT => 2,
        A::CU_DEVICE_ATTRIBUTE_GPU_OVERLAP | A::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING => 1,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH => 32_768,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS => 2048,
        A::CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER => 0,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH
        | A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT => 32_768,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE
        | A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE => 8192,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE => 32_768,
        A::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID => PCI_DOMAIN,
        A::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT => 32,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH
        | A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH => 32_768,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS => 2046,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH => 32_768,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH => 131_072,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT => 65_536,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH
        | A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT
        | A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH => 16_384,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH => 32_768,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS => 2048,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH
        | A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT => 32_768,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS => 2048,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH
        | A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH => 32_768,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS => 2046,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH => 268_435_456,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH => 131_072,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT => 65_000,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH => 2_097_120,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH
        | A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT => 32_768,
        A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => device.capability.0,
        A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => device.capability.1,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH => 32_768,
        A::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => sm.shared as i32,
        A::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY => 1,
        A::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD => 0,
        A::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID => device.ordinal,
        // Host and kernel atomics are the same instructions.
        A::CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO => 2,
        // Pageable memory is deliberately inaccessible: kernels may access only memory known to CUDA.
        A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS => 0,
        A::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS
        | A::CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM => 1,
        A::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1
        | A::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1
        | A::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1 => 0,
        A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH
        | A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH => 1,
        A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => sm.shared_optin as i32,
        A::CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES => 0,
        A::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES => 0,
        A::CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST => 1,
        // Virtual memory is shared with other processes only as a file descriptor.
        A::CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED => 0,
        A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR => sm.blocks as i32,
        A::CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE
        | A::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE
        | A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED => 0,
        A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK => sm.shared_reserved as i32,
        A::CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH => device.has_clusters().into(),
        // Not supported: GPUDirect.
        A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED => 0,
        // Kernels see the writes of other processes without a flush, which the host may still request.
        A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS => {
            CUflushGPUDirectRDMAWritesOptions::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST.0 as i32
        }
        A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING => {
            CUGPUDirectRDMAWritesOrdering::CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES.0 as i32
        }
        // Memory pools are shared as file descriptors.
        A::CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES => {
            CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0 as i32
        }
        // Stream memory operations.
        A::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS
        | A::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR => 1,
        // Descriptors of device memory, which can be mapped.
        A::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_DMA_BUF_MMAP_SUPPORTED => 1,
        // Interprocess events.
        A::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT => 1,
        A::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED => i32::from(device.capability.0 >= 9),
        A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED => 0,
        A::CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS => 1,
        // The device has no NUMA node of its own (-1); the host node is the first one.
        A::CU_DEVICE_ATTRIBUTE_NUMA_CONFIG => 0,
        A::CU_DEVICE_ATTRIBUTE_NUMA_ID => -1,
        A::CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED => device.has_multicast().into(),
        A::CU_DEVICE_ATTRIBUTE_MPS_ENABLED => 0,
        A::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID => 0,
        A::CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED => 0,
        A::CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK => decompress::ALGORITHMS as i32,
        A::CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH => decompress::MAXIMUM_LENGTH as i32,
        A::CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID
        | A::CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED => 0,
        // Memory mapping and pools on NUMA nodes of the host.
        A::CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED => 1,
        // Memory pools in host memory.
        A::CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED => 1,
        // Memory mapping in host memory.
        A::CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_ATOMIC_REDUCTION_SUPPORTED => 0,
        A::CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT => 1,
        A::CU_DEVICE_ATTRIBUTE_MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK
        | A::CU_DEVICE_ATTRIBUTE_D3D12_CIG_STREAMS_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_UNICAST_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_MULTICAST_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_COUNTED_OPS_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_UNICAST_ACCESS_ON_OWNER_DEVICE_SUPPORTED => 0,
        A::CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT => device.threads,
        A::CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID
        | A::CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_SUPPORTED_HANDLE_TYPES
        | A::CU_DEVICE_ATTRIBUTE_VULKAN_CIG_STREAMS_SUPPORTED
        | A::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_LARGE_TENSOR_MIN_SIZE
        | A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_LOCALIZED_MEMORY_SUPPORTED => 0,
        _ => return Err(Code::INVALID_VALUE),
    })
}

/// Frequency of the processor in kHz, when the process started.
pub(crate) fn clock_rate_khz() -> i32 {
    static RATE: std::sync::OnceLock<i32> = std::sync::OnceLock::new();
    *RATE.get_or_init(|| {
        std::fs::read_to_string("/proc/cpuinfo")
            .ok()
            .and_then(|t| {
                let line = t.lines().find(|l| l.starts_with("cpu MHz"))?;
                line.split(':').nth(1)?.trim().parse::<f64>().ok()
            })
            .map_or(2_000_000, |mhz| (mhz * 1000.0) as i32)
    })
}

fn l2_bytes() -> i32 {
    static SIZE: std::sync::OnceLock<i32> = std::sync::OnceLock::new();
    *SIZE.get_or_init(|| {
        // The host's last-level cache is the closest equivalent.
        ["index3", "index2"]
            .iter()
            .find_map(|level| {
                let text = std::fs::read_to_string(format!(
                    "/sys/devices/system/cpu/cpu0/cache/{level}/size"
                ))
                .ok()?;
                text.trim()
                    .strip_suffix('K')?
                    .parse::<i32>()
                    .ok()?
                    .checked_mul(1024)
            })
            .unwrap_or(4 << 20)
    })
}
