//! Shared code of all entry points of the driver: the `driver_entry_points!` macro and its guard, result codes, handle tables,
//! access to the caller's memory, error logs, and initialisation.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use self::errors::Code;

pub(crate) mod api_lock;
pub(crate) mod caller_memory;
pub(crate) mod clock;
pub(crate) mod errors;
pub(crate) mod handles;
pub(crate) mod init;
pub(crate) mod logs;
pub(crate) mod proc_address;

/// Result of the driver's internal functions.
pub(crate) type Res<T = ()> = Result<T, Code>;

/// One entry point: exported name and address.
pub(crate) struct EntryPoint {
    pub(crate) name: &'static str,
    pub(crate) address: *const c_void,
}

// SAFETY: an entry holds a constant name and a function address.
unsafe impl Sync for EntryPoint {}

/// Defines entry points and the table `ENTRIES` that lists them.
///
/// Each is `fn name "cuName" (args) { body }`, where the body returns a [`Res`]. An optional second string names the
/// variant for the per-thread default stream; the body distinguishes the two by the constant `PER_THREAD`. A leading
/// `bare;` omits the check that `cuInit` was called.
macro_rules! driver_entry_points {
    (bare; $($rest:tt)*) => { $crate::driver::entry::driver_entry_points!(@with $crate::driver::entry::guard_bare; $($rest)*); };
    (@with $guard:path; $($(#[$doc:meta])* fn $name:ident $c:literal $(| $ptds:literal)?
        ($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$doc])*
            #[allow(clippy::too_many_arguments)]
            extern "C" fn $name<const PER_THREAD: bool>($($arg: $ty),*) -> u32 {
                $guard($c, || $body)
            }
        )*
        /// The entry points of this file.
        pub(crate) static ENTRIES: &[$crate::driver::entry::EntryPoint] = &[
            $(
                $crate::driver::entry::EntryPoint {
                    name: $c,
                    address: $name::<false> as *const std::ffi::c_void,
                },
                $($crate::driver::entry::EntryPoint {
                    name: $ptds,
                    address: $name::<true> as *const std::ffi::c_void,
                },)?
            )*
        ];
    };
    ($($rest:tt)*) => { $crate::driver::entry::driver_entry_points!(@with $crate::driver::entry::guard; $($rest)*); };
}
pub(crate) use driver_entry_points;

/// Runs an entry point's body. Refuses forked children, turns panics into `CUDA_ERROR_UNKNOWN`, and logs failures.
pub(crate) fn guard_bare(name: &'static str, body: impl FnOnce() -> Res) -> u32 {
    if init::forked() {
        return Code::NOT_INITIALIZED.0;
    }
    let code = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => {
            logs::succeeded();
            return Code::SUCCESS.0;
        }
        Ok(Err(code)) => code,
        Err(_) => Code::UNKNOWN,
    };
    logs::failed(name, code);
    code.0
}

/// [`guard_bare`] for entry points that require `cuInit`, and that run while the process is locked.
pub(crate) fn guard_unlocked(name: &'static str, body: impl FnOnce() -> Res) -> u32 {
    if !init::initialised() {
        logs::failed(name, Code::NOT_INITIALIZED);
        return Code::NOT_INITIALIZED.0;
    }
    guard_bare(name, body)
}

/// [`guard_bare`] for entry points that require `cuInit`. Waits while the process is locked.
pub(crate) fn guard(name: &'static str, body: impl FnOnce() -> Res) -> u32 {
    if !init::initialised() {
        logs::failed(name, Code::NOT_INITIALIZED);
        return Code::NOT_INITIALIZED.0;
    }
    // A forked child inherits the lock of its parent, and cannot use CUDA anyway.
    let _inside = (!init::forked()).then(|| api_lock::enter(name));
    guard_bare(name, body)
}
