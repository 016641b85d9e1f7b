//! Records memory that the program frees, so that its owners do not free it again.
//!
//! Programs free memory far more often than they destroy handles, and a record of each address would let the table grow
//! without limit. A small table therefore counts the owners by address: a call that frees memory without an owner pays
//! one load. Each call that frees memory is counted for later waits ([`waits`]).

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use super::wrappers::Original;
use super::{OwnedKind, is_refusal, noting};
use cupyrite_sys::driver::{self, CUdeviceptr, CUresult, CUstream, Symbol};
use cupyrite_sys::loader::{CudaLibrary, LoadError};
use cupyrite_sys::waits;

/// Number of owners with memory at an address, by [`memory_slot`]. Only addresses that may have an owner are recorded.
static OWNED_MEMORY: [AtomicU32; 4096] = [const { AtomicU32::new(0) }; 4096];

/// The owner count of an address. The driver aligns memory to at least 256 bytes.
#[inline(always)]
fn memory_slot(address: u64) -> &'static AtomicU32 {
    let mixed = (address >> 8).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    &OWNED_MEMORY[(mixed >> 52) as usize]
}

/// The epoch of memory that was just allocated and now has an owner: see [`OwnedKind::epoch`]. The owner calls
/// [`disown_memory`] before it frees the memory. Address 0 is not recorded.
#[inline(always)]
pub fn own_memory(address: u64) -> u32 {
    if address != 0 {
        memory_slot(address).fetch_add(1, Ordering::AcqRel);
    }
    OwnedKind::Memory.current()
}

/// The opposite of [`own_memory`].
#[inline(always)]
pub fn disown_memory(address: u64) {
    if address != 0 {
        memory_slot(address).fetch_sub(1, Ordering::AcqRel);
    }
}

/// Whether the program has freed memory that has had an owner since the epoch `created`.
#[inline(always)]
pub fn is_memory_freed(address: u64, created: u32) -> bool {
    let address = std::ptr::without_provenance_mut::<c_void>(address as usize);
    OwnedKind::Memory.is_destroyed(address, std::ptr::null_mut(), created)
}

/// Makes the program's call that frees memory; first records the address if it may have an owner.
fn noted_memory(address: u64, call: impl FnOnce() -> c_int) -> c_int {
    if memory_slot(address).load(Ordering::Acquire) == 0 {
        return call();
    }
    noting(OwnedKind::Memory, address as usize, is_refusal, call)
}

macro_rules! memory_wrappers {
    ($($wrapper:ident $original:ident ($($stream:ident: $type:ty)?);)*) => {$(
        static $original: Original = Original::new();

        unsafe extern "C" fn $wrapper(address: u64 $(, $stream: $type)?) -> c_int {
            let status = noted_memory(address, || {
                // SAFETY: `wrap` stores the address of the function, which has this signature, before it gives out this one.
                unsafe {
                    let function: unsafe extern "C" fn(u64 $(, $type)?) -> c_int =
                        std::mem::transmute($original.0.load(Ordering::Acquire));
                    function(address $(, $stream)?)
                }
            });
            waits::note();
            status
        }
    )*};
}

memory_wrappers! {
    cu_mem_free CU_MEM_FREE ();
    cu_mem_free_async CU_MEM_FREE_ASYNC (stream: *mut c_void);
    cu_mem_free_host CU_MEM_FREE_HOST ();
    cuda_free CUDA_FREE ();
    cuda_free_async CUDA_FREE_ASYNC (stream: *mut c_void);
    cuda_free_host CUDA_FREE_HOST ();
}

/// The wrapper of a function that frees memory, and where it finds the function.
pub(super) fn wrapper(
    library: CudaLibrary,
    name: &CStr,
) -> Option<(&'static Original, *const c_void)> {
    type Free = unsafe extern "C" fn(u64) -> c_int;
    type FreeAsync = unsafe extern "C" fn(u64, *mut c_void) -> c_int;
    Some(match (library, name.to_bytes()) {
        (CudaLibrary::Driver, b"cuMemFree") => (&CU_MEM_FREE, cu_mem_free as Free as *const c_void),
        (CudaLibrary::Driver, b"cuMemFreeAsync") => (
            &CU_MEM_FREE_ASYNC,
            cu_mem_free_async as FreeAsync as *const c_void,
        ),
        (CudaLibrary::Driver, b"cuMemFreeHost") => {
            (&CU_MEM_FREE_HOST, cu_mem_free_host as Free as *const c_void)
        }
        (CudaLibrary::Runtime, b"cudaFree") => (&CUDA_FREE, cuda_free as Free as *const c_void),
        (CudaLibrary::Runtime, b"cudaFreeAsync") => (
            &CUDA_FREE_ASYNC,
            cuda_free_async as FreeAsync as *const c_void,
        ),
        (CudaLibrary::Runtime, b"cudaFreeHost") => {
            (&CUDA_FREE_HOST, cuda_free_host as Free as *const c_void)
        }
        _ => return None,
    })
}

macro_rules! memory_owners {
    ($($name:ident($address:ident: $type:ty $(, $stream:ident: $stream_type:ty)?) $original:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, called by the memory's owner: not recorded.")]
        ///
        /// # Errors
        ///
        /// The driver or the symbol is missing.
        ///
        /// # Safety
        ///
        /// The contract of the driver's function.
        #[allow(non_snake_case)]
        #[inline(always)]
        pub unsafe fn $name(
            $address: $type
            $(, $stream: $stream_type)?
        ) -> Result<CUresult, &'static LoadError> {
            // Resolving the function stores its address.
            driver::TABLE.get(Symbol::$name as usize)?;
            // SAFETY: resolved above, with this signature; the caller's promise.
            let status = unsafe {
                let function: unsafe extern "C" fn($type $(, $stream_type)?) -> c_int =
                    std::mem::transmute($original.0.load(Ordering::Acquire));
                function($address $(, $stream)?)
            };
            waits::note();
            Ok(CUresult(status.cast_unsigned()))
        }
    )*};
}

memory_owners! {
    cuMemFree(address: CUdeviceptr) CU_MEM_FREE;
    cuMemFreeAsync(address: CUdeviceptr, stream: CUstream) CU_MEM_FREE_ASYNC;
    cuMemFreeHost(address: *mut c_void) CU_MEM_FREE_HOST;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_with_an_owner_is_noted() {
        let (mine, other) = (0x7000_0000, 0x7100_0000);
        assert!(!std::ptr::eq(memory_slot(mine), memory_slot(other)));
        let before = OwnedKind::Memory.current();
        assert_eq!(noted_memory(other, || 0), 0);
        assert_eq!(OwnedKind::Memory.current(), before);

        let created = own_memory(mine);
        assert_eq!(noted_memory(mine, || 1), 1);
        assert!(!is_memory_freed(mine, created), "the call was refused");
        assert_eq!(noted_memory(mine, || 0), 0);
        assert!(is_memory_freed(mine, created));
        // The driver reuses the address for a new owner.
        let again = own_memory(mine);
        assert!(!is_memory_freed(mine, again) && is_memory_freed(mine, created));
        disown_memory(mine);
        disown_memory(mine);
        let epoch = OwnedKind::Memory.current();
        assert_eq!(noted_memory(mine, || 0), 0);
        assert_eq!(OwnedKind::Memory.current(), epoch);
    }
}
