//! What kernels ask the device: attributes, limits, versions, occupancy, texts of errors.

use std::collections::HashMap;
use std::mem::offset_of;

use cupyrite_engine::memory::RegionKind;
use cupyrite_engine::{KernelMemory, RuntimeCall, RuntimeFault, RuntimeFunction as F};
use cupyrite_sys::driver::{CUdevice_attribute, CUfunction_attribute as A};
use cupyrite_sys::runtime::{cudaError_t, cudaFuncAttributes};
use parking_lot::Mutex;

use super::calls::Status;
use super::grid::Grid;
use crate::driver::device::{self, attributes};
use crate::driver::entry::errors::{self, Code};
use crate::driver::memory::space::space;
use crate::driver::module::{function, occupancy};

const INVALID_VALUE: u32 = cudaError_t::cudaErrorInvalidValue.0;
const INVALID_FUNCTION: u32 = cudaError_t::cudaErrorInvalidDeviceFunction.0;

/// Texts of the errors that the driver does not have, or has for something else.
const TEXTS: [(cudaError_t, &str); 6] = [
    (
        cudaError_t::cudaErrorInvalidConfiguration,
        "the launch configuration exceeds the device's resources",
    ),
    (
        cudaError_t::cudaErrorInvalidPitchValue,
        "the pitch is outside the acceptable range",
    ),
    (
        cudaError_t::cudaErrorInvalidMemcpyDirection,
        "the copy direction is unknown",
    ),
    (
        cudaError_t::cudaErrorLaunchMaxDepthExceeded,
        "the launch would exceed the limit of nested grids",
    ),
    (
        cudaError_t::cudaErrorLaunchPendingCountExceeded,
        "the launch would exceed the limit of pending launches",
    ),
    (
        cudaError_t::cudaErrorInvalidDeviceFunction,
        "the function is not a kernel that the device can run",
    ),
];

/// Address of the name or the description of an error, in device memory. Kernels may store it, so that it is never freed.
pub(super) fn error_text(error: u32, name: bool) -> u64 {
    static PLACED: Mutex<Option<HashMap<(u32, bool), u64>>> = Mutex::new(None);
    let known = cudaError_t(error).name();
    // One text for all numbers that are no error.
    let key = (known.map_or(u32::MAX, |_| error), name);
    let mut placed = PLACED.lock();
    let placed = placed.get_or_insert_default();
    if let Some(&address) = placed.get(&key) {
        return address;
    }
    let text = match known {
        None => "unrecognized error code",
        Some(known) if name => known,
        Some(known) => {
            let own = TEXTS.iter().find(|t| t.0.0 == error).map(|t| t.1);
            own.or_else(|| errors::description(error)).unwrap_or(known)
        }
    };
    let bytes = text.len() as u64 + 1;
    let Ok(address) = space().alloc(bytes, 16, RegionKind::Internal) else {
        return 0;
    };
    // SAFETY: the allocation has room for the text and a NUL, and no other thread knows its address.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), address as *mut u8, text.len());
        *((address + bytes - 1) as *mut u8) = 0;
    }
    placed.insert(key, address);
    address
}

impl Grid {
    /// Executes a call that asks for something.
    pub(super) fn query(
        &self,
        call: &RuntimeCall<'_>,
        memory: &mut dyn KernelMemory,
    ) -> Result<Status, RuntimeFault> {
        let arg = |n: usize| call.args.get(n).copied().unwrap_or(0);
        let to = arg(0);
        let mut put = |value: i32| memory.write(to, &value.to_le_bytes()).map(|()| Ok(()));
        match call.function {
            F::DeviceGetAttribute => {
                let attribute = CUdevice_attribute(arg(1) as u32);
                let device = device::by_ordinal(arg(2) as i32);
                match device.and_then(|d| attributes::get(d, attribute)) {
                    Ok(value) => put(value),
                    Err(code) => Ok(Err(code.0)),
                }
            }
            F::DeviceGetLimit => match self.context.limit(arg(1) as u32) {
                Ok(value) => memory.write(to, &value.to_le_bytes()).map(|()| Ok(())),
                Err(code) => Ok(Err(code.0)),
            },
            // `cudaFuncCachePreferNone`; banks of four bytes.
            F::DeviceGetCacheConfig => put(0),
            F::DeviceGetSharedMemConfig => put(1),
            F::GetDeviceCount => put(device::all().map_or(1, <[_]>::len) as i32),
            F::GetDevice => put(self.context.device),
            // What `libcudadevrt` of CUDA 13 returns: its version has not changed since CUDA 6.
            F::RuntimeGetVersion => put(6000),
            F::FuncGetAttributes => self.function_attributes(to, arg(1), memory),
            F::OccupancyMaxActiveBlocksPerMultiprocessor
            | F::OccupancyMaxActiveBlocksPerMultiprocessorWithFlags => {
                let Some(f) = self.function.launched_by(arg(1)) else {
                    return Ok(Err(INVALID_FUNCTION));
                };
                let threads = arg(2) as i32;
                if threads <= 0 || arg(4) > 1 {
                    return Ok(Err(INVALID_VALUE));
                }
                match occupancy::blocks_per_sm(&f, threads as u32, arg(3)) {
                    Ok(blocks) => put(blocks as i32),
                    Err(code) => Ok(Err(code.0)),
                }
            }
            _ => Ok(Err(Code::NOT_SUPPORTED.0)),
        }
    }

    /// `cudaFuncGetAttributes`.
    fn function_attributes(
        &self,
        to: u64,
        kernel: u64,
        memory: &mut dyn KernelMemory,
    ) -> Result<Status, RuntimeFault> {
        let Some(f) = self.function.launched_by(kernel) else {
            return Ok(Err(INVALID_FUNCTION));
        };
        let device = match f.device() {
            Ok(device) => device,
            Err(code) => return Ok(Err(code.0)),
        };
        let value = |a: A| function::attribute(&f.kernel, |a| f.setting(a), device, a).unwrap_or(0);
        let mut bytes = [0; size_of::<cudaFuncAttributes>()];
        let sizes = [
            (
                offset_of!(cudaFuncAttributes, sharedSizeBytes),
                A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
            ),
            (
                offset_of!(cudaFuncAttributes, constSizeBytes),
                A::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
            ),
            (
                offset_of!(cudaFuncAttributes, localSizeBytes),
                A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
            ),
        ];
        for (at, attribute) in sizes {
            let value = i64::from(value(attribute));
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let integers = [
            (
                offset_of!(cudaFuncAttributes, maxThreadsPerBlock),
                A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
            ),
            (
                offset_of!(cudaFuncAttributes, numRegs),
                A::CU_FUNC_ATTRIBUTE_NUM_REGS,
            ),
            (
                offset_of!(cudaFuncAttributes, ptxVersion),
                A::CU_FUNC_ATTRIBUTE_PTX_VERSION,
            ),
            (
                offset_of!(cudaFuncAttributes, binaryVersion),
                A::CU_FUNC_ATTRIBUTE_BINARY_VERSION,
            ),
            (
                offset_of!(cudaFuncAttributes, cacheModeCA),
                A::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA,
            ),
            (
                offset_of!(cudaFuncAttributes, maxDynamicSharedSizeBytes),
                A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            ),
            (
                offset_of!(cudaFuncAttributes, preferredShmemCarveout),
                A::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
            ),
            (
                offset_of!(cudaFuncAttributes, clusterDimMustBeSet),
                A::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET,
            ),
            (
                offset_of!(cudaFuncAttributes, requiredClusterWidth),
                A::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
            ),
            (
                offset_of!(cudaFuncAttributes, requiredClusterHeight),
                A::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
            ),
            (
                offset_of!(cudaFuncAttributes, requiredClusterDepth),
                A::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
            ),
            (
                offset_of!(cudaFuncAttributes, clusterSchedulingPolicyPreference),
                A::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
            ),
            (
                offset_of!(cudaFuncAttributes, nonPortableClusterSizeAllowed),
                A::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
            ),
        ];
        for (at, attribute) in integers {
            bytes[at..at + 4].copy_from_slice(&value(attribute).to_le_bytes());
        }
        memory.write(to, &bytes).map(|()| Ok(()))
    }
}
