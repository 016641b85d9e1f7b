//! Kernels: attributes, parameters, occupancy.
//!
//! A `func` argument of the runtime is the address of a host stub that the program registered ([`registration`]), a
//! `cudaKernel_t`, or a `cudaFunction_t` if the caller has only that.

use cupyrite_sys::driver::{
    CUfunc_cache, CUfunction, CUfunction_attribute, CUkernel, CUsharedconfig,
};
use cupyrite_sys::runtime::{cudaFuncAttribute, cudaFuncAttributes, cudaSharedMemoryMode};

use crate::checked::{get, non_null, put, put_optional};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::{launch, registration};

/// The function of a kernel in the current context.
pub(crate) fn function(of: u64) -> Res<CUfunction> {
    if of == 0 {
        return Err(Error::INVALID_DEVICE_FUNCTION);
    }
    let of = registration::resolve(of)?;
    let mut function: CUfunction = std::ptr::null_mut();
    match cu!(cuKernelGetFunction(&mut function, of as CUkernel)) {
        Ok(()) => return Ok(function),
        Err(Error::INVALID_RESOURCE_HANDLE | Error::INVALID_VALUE) => (),
        Err(error) => return Err(error),
    }
    let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    match cu!(cuFuncGetAttribute(&mut 0, attribute, of as CUfunction)) {
        Ok(()) => Ok(of as CUfunction),
        Err(Error::INVALID_VALUE) => Err(Error::INVALID_RESOURCE_HANDLE),
        Err(error) => Err(error),
    }
}

/// The driver's attribute for a settable `cudaFuncAttribute`.
fn attribute(of: u32) -> Res<CUfunction_attribute> {
    use cudaFuncAttribute as Attribute;
    match Attribute(of as _) {
        Attribute::cudaFuncAttributeMaxDynamicSharedMemorySize
        | Attribute::cudaFuncAttributePreferredSharedMemoryCarveout
        | Attribute::cudaFuncAttributeClusterDimMustBeSet
        | Attribute::cudaFuncAttributeRequiredClusterWidth
        | Attribute::cudaFuncAttributeRequiredClusterHeight
        | Attribute::cudaFuncAttributeRequiredClusterDepth
        | Attribute::cudaFuncAttributeNonPortableClusterSizeAllowed
        | Attribute::cudaFuncAttributeClusterSchedulingPolicyPreference => {
            Ok(CUfunction_attribute(of as _))
        }
        // The only attribute whose number differs from the driver's.
        Attribute::cudaFuncAttributeSharedMemoryMode => {
            Ok(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE)
        }
        _ => Err(Error::INVALID_VALUE),
    }
}

fn occupancy(out: u64, func: u64, threads: i32, shared: usize, flags: u32) -> Res {
    non_null(out)?;
    context::current()?;
    let function = function(func)?;
    let mut blocks = 0;
    cu!(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        &mut blocks,
        function,
        threads,
        shared,
        flags
    ))?;
    put(out, blocks)
}

/// The attributes of a kernel in the current context.
pub(crate) fn attributes(func: u64) -> Res<cudaFuncAttributes> {
    context::current()?;
    let function = function(func)?;
    let value = |attribute: CUfunction_attribute| -> Res<i32> {
        let mut value = 0;
        cu!(cuFuncGetAttribute(&mut value, attribute, function))?;
        Ok(value)
    };
    // A driver older than an attribute does not report it.
    let newer = |attribute| value(attribute).unwrap_or(0);
    use CUfunction_attribute as A;
    Ok(cudaFuncAttributes {
        sharedSizeBytes: value(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)? as usize,
        constSizeBytes: value(A::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)? as usize,
        localSizeBytes: value(A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)? as usize,
        maxThreadsPerBlock: value(A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        numRegs: value(A::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        ptxVersion: value(A::CU_FUNC_ATTRIBUTE_PTX_VERSION)?,
        binaryVersion: value(A::CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
        cacheModeCA: value(A::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA)?,
        maxDynamicSharedSizeBytes: value(A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?,
        preferredShmemCarveout: value(A::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)?,
        clusterDimMustBeSet: newer(A::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET),
        requiredClusterWidth: newer(A::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
        requiredClusterHeight: newer(A::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
        requiredClusterDepth: newer(A::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH),
        clusterSchedulingPolicyPreference: newer(
            A::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
        ),
        nonPortableClusterSizeAllowed: newer(
            A::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
        ),
        deviceNodeUpdateStatus: newer(A::CU_FUNC_ATTRIBUTE_DEVICE_NODE_UPDATE_SUPPORTED),
        sharedMemoryMode: cudaSharedMemoryMode(newer(A::CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE) as _),
        ..cudaFuncAttributes::default()
    })
}

runtime_entry_points! {
    fn func_get_attributes "cudaFuncGetAttributes" (out: u64, func: u64) {
        non_null(out)?;
        put(out, attributes(func)?)
    }
    fn func_set_attribute "cudaFuncSetAttribute" (func: u64, which: u32, value: i32) {
        context::current()?;
        let function = function(func)?;
        cu!(cuFuncSetAttribute(function, attribute(which)?, value))
    }
    fn kernel_set_attribute "cudaKernelSetAttributeForDevice" (kernel: u64, which: u32, value: i32, ordinal: i32) {
        let device = context::device(ordinal)?;
        cu!(cuKernelSetAttribute(attribute(which)?, value, kernel as CUkernel, device))
    }
    fn func_set_cache_config "cudaFuncSetCacheConfig" (func: u64, config: u32) {
        context::current()?;
        cu!(cuFuncSetCacheConfig(function(func)?, CUfunc_cache(config as _)))
    }
    fn func_set_shared_config "cudaFuncSetSharedMemConfig" (func: u64, config: u32) {
        context::current()?;
        cu!(cuFuncSetSharedMemConfig(function(func)?, CUsharedconfig(config as _)))
    }
    fn func_get_name "cudaFuncGetName" (out: u64, func: u64) {
        non_null(out)?;
        context::current()?;
        let function = function(func)?;
        let mut name = std::ptr::null();
        cu!(cuFuncGetName(&mut name, function))?;
        put(out, name as u64)
    }
    fn func_get_param_info "cudaFuncGetParamInfo" (func: u64, index: usize, offset: u64, size: u64) {
        non_null(offset)?;
        context::current()?;
        let function = function(func)?;
        let (mut at, mut bytes) = (0usize, 0usize);
        cu!(cuFuncGetParamInfo(function, index, &mut at, &mut bytes))?;
        put(offset, at)?;
        put_optional(size, bytes)
    }
    fn func_get_param_count "cudaFuncGetParamCount" (func: u64, out: u64) {
        non_null(out)?;
        context::current()?;
        let function = function(func)?;
        let mut count = 0usize;
        cu!(cuFuncGetParamCount(function, &mut count))?;
        put(out, count)
    }
    fn occupancy_blocks "cudaOccupancyMaxActiveBlocksPerMultiprocessor"
        (out: u64, func: u64, threads: i32, shared: usize) {
        occupancy(out, func, threads, shared, 0)
    }
    fn occupancy_blocks_with_flags "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"
        (out: u64, func: u64, threads: i32, shared: usize, flags: u32) {
        occupancy(out, func, threads, shared, flags)
    }
    fn occupancy_shared "cudaOccupancyAvailableDynamicSMemPerBlock"
        (out: u64, func: u64, blocks: i32, threads: i32) {
        non_null(out)?;
        context::current()?;
        let function = function(func)?;
        let mut bytes = 0usize;
        cu!(cuOccupancyAvailableDynamicSMemPerBlock(&mut bytes, function, blocks, threads))?;
        put(out, bytes)
    }
    fn occupancy_clusters "cudaOccupancyMaxActiveClusters" (out: u64, func: u64, config: u64) {
        non_null(out)?;
        context::current()?;
        let config = launch::config::<PER_THREAD>(get(config)?)?;
        let function = function(func)?;
        let mut clusters = 0;
        cu!(cuOccupancyMaxActiveClusters(&mut clusters, function, &config))?;
        put(out, clusters)
    }
    fn occupancy_cluster_size "cudaOccupancyMaxPotentialClusterSize" (out: u64, func: u64, config: u64) {
        non_null(out)?;
        context::current()?;
        let config = launch::config::<PER_THREAD>(get(config)?)?;
        let function = function(func)?;
        let mut size = 0;
        cu!(cuOccupancyMaxPotentialClusterSize(&mut size, function, &config))?;
        put(out, size)
    }
}
