//! `cudaGetDeviceProperties` in the layouts of CUDA 13 and CUDA 12, and `cudaChooseDevice`.

use std::ffi::c_char;

use cupyrite_sys::driver::{CUdevice, CUdevice_attribute};
use cupyrite_sys::runtime::{cudaDeviceProp, cudaDeviceProp_cuda12, cudaUUID_t};

use crate::checked::{get, non_null, put};
use crate::entry::{cu, runtime_entry_points};
use crate::errors::Res;
use crate::{context, device};

/// An attribute, convertible to the integer types of the structure's fields.
struct Value(i32);
macro_rules! into {
    ($($t:ty),*) => {$(impl From<Value> for $t {
        fn from(value: Value) -> $t { value.0 as $t }
    })*};
}
into!(i32, u32, usize);

/// Properties that are not attributes. The LUID, which exists on Windows only, remains zero.
struct Identity {
    name: [c_char; 256],
    uuid: cudaUUID_t,
    memory: usize,
}

fn identity(device: CUdevice) -> Res<Identity> {
    let mut identity = Identity {
        name: [0; 256],
        uuid: cudaUUID_t::default(),
        memory: 0,
    };
    cu!(cuDeviceGetName(identity.name.as_mut_ptr(), 256, device))?;
    cu!(cuDeviceTotalMem(&mut identity.memory, device))?;
    cu!(cuDeviceGetUuid((&raw mut identity.uuid).cast(), device))?;
    Ok(identity)
}

/// Fills fields from attributes. Attributes unknown to an older driver leave their field zero.
macro_rules! fill {
    ($properties:ident, $device:ident: $($field:ident = $attribute:tt;)*) => {
        $(fill!(@field $properties.$field, $device, $attribute);)*
    };
    (@field $properties:ident.$field:ident, $device:ident, [$($attribute:ident),*]) => {
        $properties.$field = [$(fill!(@value $device, $attribute)),*];
    };
    (@field $properties:ident.$field:ident, $device:ident, $attribute:ident) => {
        $properties.$field = fill!(@value $device, $attribute);
    };
    (@value $device:ident, $attribute:ident) => {
        Value(device::attribute($device, CUdevice_attribute::$attribute).unwrap_or(0)).into()
    };
}

/// The fields common to both layouts.
macro_rules! fill_common {
    ($properties:ident, $device:ident) => {
        let identity = identity($device)?;
        $properties.name = identity.name;
        $properties.uuid = identity.uuid;
        $properties.totalGlobalMem = identity.memory;
        fill! { $properties, $device:
            sharedMemPerBlock = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK;
            regsPerBlock = CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK;
            warpSize = CU_DEVICE_ATTRIBUTE_WARP_SIZE;
            memPitch = CU_DEVICE_ATTRIBUTE_MAX_PITCH;
            maxThreadsPerBlock = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
            maxThreadsDim = [CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z];
            maxGridSize = [CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z];
            totalConstMem = CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY;
            major = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
            minor = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
            textureAlignment = CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT;
            texturePitchAlignment = CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT;
            multiProcessorCount = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
            integrated = CU_DEVICE_ATTRIBUTE_INTEGRATED;
            canMapHostMemory = CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY;
            maxTexture1D = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH;
            maxTexture1DMipmap = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH;
            maxTexture2D = [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT];
            maxTexture2DMipmap = [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT];
            maxTexture2DLinear = [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH];
            maxTexture2DGather = [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT];
            maxTexture3D = [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH];
            maxTexture3DAlt = [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE];
            maxTextureCubemap = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH;
            maxTexture1DLayered = [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS];
            maxTexture2DLayered = [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS];
            maxTextureCubemapLayered = [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS];
            maxSurface1D = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH;
            maxSurface2D = [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT];
            maxSurface3D = [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH];
            maxSurface1DLayered = [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS];
            maxSurface2DLayered = [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS];
            maxSurfaceCubemap = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH;
            maxSurfaceCubemapLayered = [CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS];
            surfaceAlignment = CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT;
            concurrentKernels = CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS;
            ECCEnabled = CU_DEVICE_ATTRIBUTE_ECC_ENABLED;
            pciBusID = CU_DEVICE_ATTRIBUTE_PCI_BUS_ID;
            pciDeviceID = CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID;
            pciDomainID = CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID;
            tccDriver = CU_DEVICE_ATTRIBUTE_TCC_DRIVER;
            asyncEngineCount = CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT;
            unifiedAddressing = CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING;
            memoryBusWidth = CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH;
            l2CacheSize = CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE;
            persistingL2CacheMaxSize = CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE;
            maxThreadsPerMultiProcessor = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR;
            streamPrioritiesSupported = CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED;
            globalL1CacheSupported = CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED;
            localL1CacheSupported = CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED;
            sharedMemPerMultiprocessor = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR;
            regsPerMultiprocessor = CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR;
            managedMemory = CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY;
            isMultiGpuBoard = CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD;
            multiGpuBoardGroupID = CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID;
            hostNativeAtomicSupported = CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED;
            pageableMemoryAccess = CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
            concurrentManagedAccess = CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
            computePreemptionSupported = CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED;
            canUseHostPointerForRegisteredMem = CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM;
            cooperativeLaunch = CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH;
            sharedMemPerBlockOptin = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
            pageableMemoryAccessUsesHostPageTables = CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES;
            directManagedMemAccessFromHost = CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST;
            maxBlocksPerMultiProcessor = CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR;
            accessPolicyMaxWindowSize = CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE;
            reservedSharedMemPerBlock = CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK;
            hostRegisterSupported = CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED;
            sparseCudaArraySupported = CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED;
            hostRegisterReadOnlySupported = CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED;
            timelineSemaphoreInteropSupported = CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED;
            memoryPoolsSupported = CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
            gpuDirectRDMASupported = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED;
            gpuDirectRDMAFlushWritesOptions = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS;
            gpuDirectRDMAWritesOrdering = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING;
            memoryPoolSupportedHandleTypes = CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES;
            deferredMappingCudaArraySupported = CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED;
            ipcEventSupported = CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED;
            clusterLaunch = CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH;
            unifiedFunctionPointers = CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS;
        }
    };
}

fn properties(device: CUdevice) -> Res<cudaDeviceProp> {
    let mut properties = cudaDeviceProp::default();
    fill_common!(properties, device);
    fill! { properties, device:
            deviceNumaConfig = CU_DEVICE_ATTRIBUTE_NUMA_CONFIG;
            deviceNumaId = CU_DEVICE_ATTRIBUTE_NUMA_ID;
            mpsEnabled = CU_DEVICE_ATTRIBUTE_MPS_ENABLED;
            hostNumaId = CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID;
            gpuPciDeviceID = CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID;
            gpuPciSubsystemID = CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID;
            hostNumaMultinodeIpcSupported = CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED;
    }
    Ok(properties)
}

/// The properties in the layout of CUDA 12.
pub(crate) fn properties_cuda12(device: CUdevice) -> Res<cudaDeviceProp_cuda12> {
    let mut properties = cudaDeviceProp_cuda12::default();
    fill_common!(properties, device);
    fill! { properties, device:
            clockRate = CU_DEVICE_ATTRIBUTE_CLOCK_RATE;
            deviceOverlap = CU_DEVICE_ATTRIBUTE_GPU_OVERLAP;
            kernelExecTimeoutEnabled = CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT;
            computeMode = CU_DEVICE_ATTRIBUTE_COMPUTE_MODE;
            maxTexture1DLinear = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH;
            memoryClockRate = CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE;
            singleToDoublePrecisionPerfRatio = CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO;
            cooperativeMultiDeviceLaunch = CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH;
    }
    Ok(properties)
}

/// What `cudaChooseDevice` compares.
pub(crate) struct Requirements {
    name: [c_char; 256],
    /// The compute capability.
    version: (i32, i32),
    /// Minimum values.
    least: [usize; 8],
}

/// The requirements in a structure of either layout.
macro_rules! requirements {
    ($of:expr) => {{
        let of = $of;
        Requirements {
            name: of.name,
            version: (of.major, of.minor),
            least: [
                of.totalGlobalMem,
                of.sharedMemPerBlock,
                of.multiProcessorCount as usize,
                of.maxThreadsPerBlock as usize,
                of.regsPerBlock as usize,
                of.concurrentKernels as usize,
                of.canMapHostMemory as usize,
                of.managedMemory as usize,
            ],
        }
    }};
}

/// The requirements in the layout of CUDA 12.
pub(crate) fn requirements_cuda12(of: &cudaDeviceProp_cuda12) -> Requirements {
    requirements!(of)
}

/// How well a device matches `wanted`, ignoring zero fields: the compute capability has priority over minimum
/// requirements, and these over the memory size.
fn fitness(wanted: &Requirements, have: &Requirements) -> usize {
    let mut score = 0;
    if wanted.name[0] != 0 && wanted.name == have.name {
        score += 1000;
    }
    if wanted.version.0 != 0 {
        score += match have.version.cmp(&wanted.version) {
            std::cmp::Ordering::Equal => 400,
            std::cmp::Ordering::Greater => 200,
            std::cmp::Ordering::Less => 0,
        };
    }
    let pairs = wanted.least.iter().zip(&have.least);
    score
        + pairs
            .filter(|(want, have)| **want != 0 && have >= want)
            .count()
            * 20
}

/// `cudaChooseDevice`: stores the ordinal of the first device with the highest fitness.
pub(crate) fn choose(out: u64, wanted: &Requirements) -> Res {
    let mut best = (0, 0);
    for ordinal in 0..context::device_count()? {
        let have = properties(context::device(ordinal)?)?;
        let score = fitness(wanted, &requirements!(have));
        if ordinal == 0 || score > best.0 {
            best = (score, ordinal);
        }
    }
    put(out, best.1)
}

runtime_entry_points! {
    fn get_properties "cudaGetDeviceProperties" (out: u64, ordinal: i32) {
        non_null(out)?;
        let device = context::device(ordinal)?;
        put(out, properties(device)?)
    }
    fn get_properties_cuda12 "cudaGetDeviceProperties_v2" (out: u64, ordinal: i32) {
        non_null(out)?;
        let device = context::device(ordinal)?;
        put(out, properties_cuda12(device)?)
    }
    fn choose_device "cudaChooseDevice" (out: u64, wanted: u64) {
        non_null(out)?;
        choose(out, &requirements!(get::<cudaDeviceProp>(wanted)?))
    }
}
