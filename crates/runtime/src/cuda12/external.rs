//! Memory and semaphores of other APIs: CUDA 13 appended reserved members to the structures. Each function passes a copy in
//! the new layout to CUDA 13's function.

use std::ffi::c_void;
use std::mem::offset_of;

use cupyrite_sys::runtime::{
    cudaExternalMemoryBufferDesc, cudaExternalMemoryBufferDesc_cuda12,
    cudaExternalMemoryHandleDesc, cudaExternalMemoryHandleDesc_cuda12,
    cudaExternalMemoryMipmappedArrayDesc, cudaExternalMemoryMipmappedArrayDesc_cuda12,
    cudaExternalSemaphoreHandleDesc, cudaExternalSemaphoreHandleDesc_cuda12,
    cudaExternalSemaphoreSignalParams, cudaExternalSemaphoreSignalParams_v1,
    cudaExternalSemaphoreWaitParams, cudaExternalSemaphoreWaitParams_v1,
};

use super::layout::reshaped;
use crate::checked::{Plain, get, get_array};
use crate::entry::runtime_entry_points;
use crate::errors::{Error, Res};

/// CUDA 13's function of that name as a function with these parameters.
///
/// # Safety
/// `F` is the type of the function.
unsafe fn function<F: Copy>(name: &str) -> F {
    const { assert!(size_of::<F>() == size_of::<*const c_void>()) };
    let address = crate::address_of(name);
    // SAFETY: `address_of` returns the function for the names in this file; the caller guarantees the type.
    unsafe { std::mem::transmute_copy(&address) }
}

fn status(of: u32) -> Res {
    if of == Error::SUCCESS.0 {
        Ok(())
    } else {
        Err(Error(of))
    }
}

/// Calls a function with a descriptor of which the first `SHARED` bytes are at `descriptor`.
fn with_descriptor<const SHARED: usize, Old: Plain, New: Plain>(
    descriptor: u64,
    call: impl FnOnce(u64) -> u32,
) -> Res {
    if descriptor == 0 {
        return status(call(0));
    }
    let new: New = reshaped::<SHARED, Old, New>(&get(descriptor)?);
    status(call(&raw const new as u64))
}

/// Calls a function with an array of parameters that `convert` makes of the array at `parameters`.
fn with_parameters<Old: Plain, New>(
    parameters: u64,
    count: u32,
    convert: impl Fn(&Old) -> New,
    call: impl FnOnce(u64) -> u32,
) -> Res {
    if parameters == 0 {
        return status(call(0));
    }
    let old = get_array::<Old>(parameters, count as usize)?;
    let new: Vec<New> = old.iter().map(convert).collect();
    status(call(new.as_ptr() as u64))
}

fn signal_parameters(
    old: &cudaExternalSemaphoreSignalParams_v1,
) -> cudaExternalSemaphoreSignalParams {
    let mut new = cudaExternalSemaphoreSignalParams::default();
    new.params.fence.value = old.params.fence.value;
    // SAFETY: both members of the union are 8 bytes of any value.
    new.params.nvSciSync.reserved = unsafe { old.params.nvSciSync.reserved };
    new.params.keyedMutex.key = old.params.keyedMutex.key;
    new.flags = old.flags;
    new
}

fn wait_parameters(old: &cudaExternalSemaphoreWaitParams_v1) -> cudaExternalSemaphoreWaitParams {
    let mut new = cudaExternalSemaphoreWaitParams::default();
    new.params.fence.value = old.params.fence.value;
    // SAFETY: both members of the union are 8 bytes of any value.
    new.params.nvSciSync.reserved = unsafe { old.params.nvSciSync.reserved };
    new.params.keyedMutex.key = old.params.keyedMutex.key;
    new.params.keyedMutex.timeoutMs = old.params.keyedMutex.timeoutMs;
    new.flags = old.flags;
    new
}

type WithTwo = extern "C" fn(u64, u64) -> u32;
type WithThree = extern "C" fn(u64, u64, u64) -> u32;
type WithArrays = extern "C" fn(u64, u64, u32, u64) -> u32;

runtime_entry_points! {
    fn import_memory "cudaImportExternalMemory" (out: u64, descriptor: u64) {
        type Old = cudaExternalMemoryHandleDesc_cuda12;
        const SHARED: usize = offset_of!(cudaExternalMemoryHandleDesc, reserved);
        with_descriptor::<SHARED, Old, cudaExternalMemoryHandleDesc>(descriptor, |descriptor| {
            // SAFETY: the type of `cuda_runtime_api.h`, where all pointers are passed as numbers.
            let call: WithTwo = unsafe { function("cudaImportExternalMemory") };
            call(out, descriptor)
        })
    }
    fn mapped_buffer "cudaExternalMemoryGetMappedBuffer" (out: u64, memory: u64, descriptor: u64) {
        type Old = cudaExternalMemoryBufferDesc_cuda12;
        const SHARED: usize = offset_of!(cudaExternalMemoryBufferDesc, reserved);
        with_descriptor::<SHARED, Old, cudaExternalMemoryBufferDesc>(descriptor, |descriptor| {
            // SAFETY: the type of `cuda_runtime_api.h`, where all pointers are passed as numbers.
            let call: WithThree = unsafe { function("cudaExternalMemoryGetMappedBuffer") };
            call(out, memory, descriptor)
        })
    }
    fn mapped_array "cudaExternalMemoryGetMappedMipmappedArray" (out: u64, memory: u64, descriptor: u64) {
        type Old = cudaExternalMemoryMipmappedArrayDesc_cuda12;
        const SHARED: usize = offset_of!(cudaExternalMemoryMipmappedArrayDesc, reserved);
        with_descriptor::<SHARED, Old, cudaExternalMemoryMipmappedArrayDesc>(descriptor, |descriptor| {
            // SAFETY: the type of `cuda_runtime_api.h`, where all pointers are passed as numbers.
            let call: WithThree = unsafe { function("cudaExternalMemoryGetMappedMipmappedArray") };
            call(out, memory, descriptor)
        })
    }
    fn import_semaphore "cudaImportExternalSemaphore" (out: u64, descriptor: u64) {
        type Old = cudaExternalSemaphoreHandleDesc_cuda12;
        const SHARED: usize = offset_of!(cudaExternalSemaphoreHandleDesc, reserved);
        with_descriptor::<SHARED, Old, cudaExternalSemaphoreHandleDesc>(descriptor, |descriptor| {
            // SAFETY: the type of `cuda_runtime_api.h`, where all pointers are passed as numbers.
            let call: WithTwo = unsafe { function("cudaImportExternalSemaphore") };
            call(out, descriptor)
        })
    }
    /// The first version. CUDA 12's header names the second one.
    fn signal "cudaSignalExternalSemaphoresAsync" | "cudaSignalExternalSemaphoresAsync_ptsz"
        (semaphores: u64, parameters: u64, count: u32, stream: u64) {
        let name = match PER_THREAD {
            true => "cudaSignalExternalSemaphoresAsync_ptsz",
            false => "cudaSignalExternalSemaphoresAsync",
        };
        with_parameters(parameters, count, signal_parameters, |parameters| {
            // SAFETY: the type of `cuda_runtime_api.h`, where all pointers are passed as numbers.
            let call: WithArrays = unsafe { function(name) };
            call(semaphores, parameters, count, stream)
        })
    }
    /// The first version. CUDA 12's header names the second one.
    fn wait "cudaWaitExternalSemaphoresAsync" | "cudaWaitExternalSemaphoresAsync_ptsz"
        (semaphores: u64, parameters: u64, count: u32, stream: u64) {
        let name = match PER_THREAD {
            true => "cudaWaitExternalSemaphoresAsync_ptsz",
            false => "cudaWaitExternalSemaphoresAsync",
        };
        with_parameters(parameters, count, wait_parameters, |parameters| {
            // SAFETY: the type of `cuda_runtime_api.h`, where all pointers are passed as numbers.
            let call: WithArrays = unsafe { function(name) };
            call(semaphores, parameters, count, stream)
        })
    }
}
