//! NVRTC and nvJitLink as the CPU device sees them: the real libraries, followed in what they do.
//!
//! Belongs here: wrappers around their functions, so that the machine code they give out carries the PTX it was made from
//! ([`crate::code`]). Does not belong here: compiling or linking anything by ourselves (the driver's `cuLink*` does).
//!
//! The wrappers have the functions' own C signatures and stand below every caller, in Rust and in Python: the loader asks
//! [`interpose`] for the address of each function it resolves. On a GPU they pass everything on.

mod nvjitlink;
mod nvrtc;

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};

use cupyrite_sys::loader::{self, Backend, CudaLibrary};

pub(crate) use nvjitlink::{Lto, lto_to_ptx};

/// The address of a library's own function, once the loader has found it.
struct Real(AtomicPtr<c_void>);

impl Real {
    const fn new() -> Real {
        Real(AtomicPtr::new(std::ptr::null_mut()))
    }

    fn address(&self) -> *const c_void {
        self.0.load(Ordering::Acquire)
    }
}

/// A function that is wrapped: its name, where its own address is kept, and the wrapper's.
struct Wrapped {
    name: &'static str,
    real: &'static Real,
    wrapper: *const c_void,
}

// SAFETY: a constant name, a reference to an atomic, and the address of a function.
unsafe impl Sync for Wrapped {}

/// Defines wrappers of functions of a library (a module of `cupyrite_sys`) that return a status, the table `WRAPPED` that
/// lists them, and in `real` the library's own functions of the same names, which answer `$failed` if they are missing.
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
            $(pub(super) static $name: $crate::toolchain::Real = $crate::toolchain::Real::new();)*
        }
        #[allow(non_snake_case)]
        mod real {
            use super::*;
            $(
                /// # Safety
                /// As the C function of this name.
                pub(super) unsafe fn $name($($arg: $ty),*) -> $status {
                    let index = cupyrite_sys::$library::Symbol::$name as usize;
                    if found::$name.address().is_null() && cupyrite_sys::$library::TABLE.get(index).is_err() {
                        return $status::$failed;
                    }
                    let address = found::$name.address();
                    if address.is_null() {
                        return $status::$failed;
                    }
                    // SAFETY: the loader found this address under this name, so it is a function of this type; the
                    // caller keeps its contract.
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
        /// The functions that this file wraps.
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

/// Runs a wrapper's body: no panic crosses the border to C.
fn contained<T>(panicked: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(panicked)
}

/// Whether machine code is to carry its PTX. Chooses the device if nothing has yet.
fn wanted() -> bool {
    matches!(loader::driver_backend(), Ok(Backend::Cpu))
}

/// What the loader calls: see [`loader::SymbolInterposer`].
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
