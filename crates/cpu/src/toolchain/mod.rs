//! Interposed NVRTC and nvJitLink functions for the CPU device.
//!
//! Belongs here: wrappers around the libraries' functions that embed the PTX in the machine code they return
//! ([`crate::code`]). Does not belong here: compilation and linking (the driver's `cuLink*` links).
//!
//! The wrappers have the functions' C signatures and serve all callers, in Rust and in Python: if the CPU device is chosen,
//! the loader asks [`interpose`] for the address of each function of [`INTERPOSED`](cupyrite_sys::loader::INTERPOSED) that it
//! resolves.

mod lto;
mod nvjitlink;
mod nvrtc;

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};

use cupyrite_sys::loader::CudaLibrary;

pub(crate) use lto::{Lto, lto_to_ptx};

/// The address of the library's function, once the loader has resolved it.
struct OriginalFunction(AtomicPtr<c_void>);

impl OriginalFunction {
    const fn new() -> OriginalFunction {
        OriginalFunction(AtomicPtr::new(std::ptr::null_mut()))
    }

    fn address(&self) -> *const c_void {
        self.0.load(Ordering::Acquire)
    }
}

/// A wrapped function: its name, the storage for its original address, and its wrapper.
struct Wrapped {
    name: &'static str,
    real: &'static OriginalFunction,
    wrapper: *const c_void,
}

// SAFETY: a constant name, a reference to an atomic, and a function address.
unsafe impl Sync for Wrapped {}

/// Defines wrappers of a library's functions (a module of `cupyrite_sys`) that return a status, the table `WRAPPED`
/// that lists them, and in `real` the original functions of the same names, which return `$failed` if they are missing.
macro_rules! wrappers {
    ($library:ident, $status:ident, $failed:ident; $(
        fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block
    )*) => {
        $(
            /// # Safety
            /// As the C function of this name.
            #[allow(non_snake_case)]
            unsafe extern "C" fn $name($($arg: $ty),*) -> $status {
                $crate::toolchain::contained($status::$failed, || $body)
            }
        )*
        #[allow(non_upper_case_globals)]
        mod found {
            $(pub(super) static $name: $crate::toolchain::OriginalFunction = $crate::toolchain::OriginalFunction::new();)*
        }
        #[allow(non_snake_case)]
        mod real {
            use super::*;
            $(
                /// # Safety
                /// As the C function of this name.
                pub(super) unsafe fn $name($($arg: $ty),*) -> $status {
                    let mut address = found::$name.address();
                    if address.is_null() {
                        let index = cupyrite_sys::$library::Symbol::$name as usize;
                        let Ok(resolved) = cupyrite_sys::$library::TABLE.get(index) else {
                            return $status::$failed;
                        };
                        // If the device is linked into the program, the table holds the wrapper, and `interpose` has
                        // stored the original. In a shared library, the table holds the original.
                        address = match found::$name.address() {
                            original if original.is_null() => resolved,
                            original => original,
                        };
                    }
                    // SAFETY: the loader resolved this address by this name, so it is a function of this type; the
                    // caller upholds its contract.
                    unsafe {
                        let function = std::mem::transmute::<
                            *const std::ffi::c_void,
                            unsafe extern "C" fn($($ty),*) -> $status,
                        >(address);
                        function($($arg),*)
                    }
                }
            )*
        }
        /// The functions that this module wraps.
        pub(super) static WRAPPED: &[$crate::toolchain::Wrapped] = &[$(
            $crate::toolchain::Wrapped {
                name: stringify!($name),
                real: &found::$name,
                wrapper: $name as *const std::ffi::c_void,
            },
        )*];
    };
}
use wrappers;

/// Runs a wrapper's body; no panic crosses the FFI boundary.
fn contained<T>(panicked: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(panicked)
}

/// The loader's hook, see [`SymbolInterposer`](cupyrite_sys::loader::SymbolInterposer).
pub(crate) fn interpose(
    library: CudaLibrary,
    name: &CStr,
    address: *const c_void,
) -> *const c_void {
    let table = match library {
        CudaLibrary::Nvrtc => nvrtc::WRAPPED,
        CudaLibrary::NvJitLink => nvjitlink::WRAPPED,
        _ => return address,
    };
    let Some(wrapped) = table.iter().find(|w| w.name.as_bytes() == name.to_bytes()) else {
        return address;
    };
    wrapped.real.0.store(address.cast_mut(), Ordering::Release);
    wrapped.wrapper
}

#[cfg(test)]
mod tests {
    use cupyrite_sys::loader::{CudaLibrary, INTERPOSED};

    use super::{nvjitlink, nvrtc};

    #[test]
    fn the_loader_asks_for_every_wrapped_function() {
        for (library, table) in [
            (CudaLibrary::Nvrtc, nvrtc::WRAPPED),
            (CudaLibrary::NvJitLink, nvjitlink::WRAPPED),
        ] {
            let wrapped: Vec<&str> = table.iter().map(|wrapped| wrapped.name).collect();
            let asked: Vec<&str> = INTERPOSED
                .iter()
                .filter(|(of, _)| *of == library)
                .filter_map(|(_, name)| name.to_str().ok())
                .collect();
            assert_eq!(wrapped, asked);
        }
    }
}
