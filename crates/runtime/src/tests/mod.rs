//! Calls the C entry points as a program would, on the CPU device.

// References stand for their address and numbers for themselves, so the borrows are intentional.
#![allow(clippy::needless_borrows_for_generic_args)]

mod arrays;
mod basics;
mod cuda12;
mod garbage;
mod memory;
mod registered;
mod work;

use std::ffi::{CString, c_void};
use std::sync::Once;

use super::{Error, get_proc, get_proc_cuda12};

/// An entry point called with words only: narrower parameters use the low part, surplus arguments are ignored.
type Words =
    unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> u32;

pub(crate) fn address(name: &str) -> *const c_void {
    let address = get_proc(&CString::new(name).unwrap());
    assert!(!address.is_null(), "{name} has no address");
    address
}

/// Makes the CPU device the driver of this process.
pub(crate) fn plug_in() {
    static PLUG_IN: Once = Once::new();
    PLUG_IN.call_once(|| {
        // SAFETY: the first action of every test; no other test code reads the environment.
        unsafe { std::env::set_var("CUPYRITE_DEVICE", "cpu") };
        cupyrite_cpu::install();
    });
}

/// Calls an entry point on the CPU device.
pub(crate) fn call(name: &str, args: &[u64]) -> u32 {
    call_at(address(name), args)
}

/// [`call`] for the functions of CUDA 12.
pub(crate) fn call_cuda12(name: &str, args: &[u64]) -> u32 {
    let address = get_proc_cuda12(&CString::new(name).unwrap());
    assert!(!address.is_null(), "{name} has no address");
    call_at(address, args)
}

fn call_at(address: *const c_void, args: &[u64]) -> u32 {
    plug_in();
    let mut a = [0u64; 12];
    a[..args.len()].copy_from_slice(args);
    // SAFETY: the tested entry points are C functions of at most twelve integer arguments, which both ABIs pass as
    // words.
    unsafe {
        let f = std::mem::transmute::<*const c_void, Words>(address);
        f(
            a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
        )
    }
}

/// Calls an entry point; arguments are integers or references.
macro_rules! rt {
    ($name:literal $(, $arg:expr)* $(,)?) => {
        $crate::Error($crate::tests::call($name, &[$($crate::tests::Word::word($arg)),*]))
    };
}
/// Calls an entry point that must succeed.
macro_rules! ok {
    ($name:literal $(, $arg:expr)* $(,)?) => {
        assert_eq!($crate::tests::rt!($name $(, $arg)*), $crate::Error::SUCCESS, $name)
    };
}
pub(crate) use {ok, rt};

/// An argument of a tested entry point.
pub(crate) trait Word {
    fn word(self) -> u64;
}
macro_rules! words {
    ($($t:ty),*) => {$(impl Word for $t { fn word(self) -> u64 { self as u64 } })*};
}
words!(u64, u32, i32, usize, u8);
impl<T> Word for &mut T {
    fn word(self) -> u64 {
        std::ptr::from_mut(self) as u64
    }
}
impl<T> Word for &T {
    fn word(self) -> u64 {
        std::ptr::from_ref(self) as u64
    }
}
impl Word for &std::ffi::CStr {
    fn word(self) -> u64 {
        self.as_ptr() as u64
    }
}
