//! Calls the C entry points as a program would.

// References stand for their address and numbers for themselves, so the borrows are intentional.
#![allow(clippy::needless_borrows_for_generic_args)]

mod arrays;
mod captures;
mod copies;
mod coredump;
mod dynamic_parallelism;
mod external;
mod garbage;
mod graphs;
mod kernels;
mod legacy_launch;
mod libraries;
mod link;
mod logs;
mod processes;
mod ranges;
mod references;
mod semaphores;
mod sparse;
mod streams;
mod surface;

use std::ffi::{CString, c_void};

use super::{Code, get_proc};

/// An entry point called with words only: narrower parameters use the low part, surplus arguments are ignored.
type Words =
    unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> u32;

pub(super) fn address(name: &str) -> *const c_void {
    let address = get_proc(&CString::new(name).unwrap());
    assert!(!address.is_null(), "{name} has no address");
    address
}

pub(super) fn call(name: &str, args: &[u64]) -> u32 {
    let mut a = [0u64; 12];
    a[..args.len()].copy_from_slice(args);
    // SAFETY: all entry points are C functions of at most twelve integer arguments, which both ABIs pass as words.
    unsafe {
        let f = std::mem::transmute::<*const c_void, Words>(address(name));
        f(
            a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
        )
    }
}

/// Calls an entry point; arguments are integers or references.
macro_rules! cu {
    ($name:literal $(, $arg:expr)* $(,)?) => {
        $crate::driver::tests::call($name, &[$($crate::driver::tests::Word::word($arg)),*])
    };
}
/// Calls an entry point that must succeed.
macro_rules! ok {
    ($name:literal $(, $arg:expr)* $(,)?) => {
        assert_eq!($crate::driver::Code($crate::driver::tests::cu!($name $(, $arg)*)), $crate::driver::Code::SUCCESS, $name)
    };
}
pub(super) use {cu, ok};

/// An argument of a tested entry point.
pub(super) trait Word {
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

/// A context, current on this thread, destroyed on drop.
pub(super) struct Session(pub(super) u64);

impl Session {
    pub(super) fn new() -> Self {
        ok!("cuInit", 0);
        let mut context = 0u64;
        ok!("cuCtxCreate_v4", &mut context, 0u64, 0, 0);
        Session(context)
    }
    pub(super) fn alloc(&self, bytes: usize) -> u64 {
        let mut p = 0u64;
        ok!("cuMemAlloc_v2", &mut p, bytes);
        p
    }
    pub(super) fn pinned(&self, bytes: usize) -> u64 {
        let mut p = 0u64;
        ok!("cuMemAllocHost_v2", &mut p, bytes);
        p
    }
    pub(super) fn stream(&self, flags: u32) -> u64 {
        let mut s = 0u64;
        ok!("cuStreamCreate", &mut s, flags);
        s
    }
    pub(super) fn event(&self) -> u64 {
        let mut e = 0u64;
        ok!("cuEventCreate", &mut e, 0);
        e
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        call("cuCtxDestroy_v2", &[self.0]);
    }
}

/// A host function that sleeps for its argument in milliseconds.
pub(super) unsafe extern "C" fn sleep_ms(ms: *mut c_void) {
    std::thread::sleep(std::time::Duration::from_millis(ms as u64));
}

/// Keeps a stream busy for `ms` milliseconds.
pub(super) fn busy(stream: u64, ms: u64) {
    ok!("cuLaunchHostFunc", stream, sleep_ms as *const () as u64, ms);
}

pub(super) const NOT_READY: u32 = Code::NOT_READY.0;
