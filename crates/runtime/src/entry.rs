//! Definition of entry points: the C function, the guard around its body, and its table row.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::errors::{Error, Res};
use crate::thread;

/// One entry point: exported name and address.
pub(crate) struct EntryPoint {
    pub(crate) name: &'static str,
    pub(crate) address: *const c_void,
}

// SAFETY: an entry holds a constant name and a function address.
unsafe impl Sync for EntryPoint {}

/// Defines entry points and the table `ENTRIES` that lists them.
///
/// Each is `fn name "cudaName" (args) { body }`, where the body returns a [`Res`](crate::errors::Res). A second string after
/// `|` names the variant for the per-thread default stream; the body distinguishes the two by the constant
/// `PER_THREAD`.
///
/// A leading `quiet;` defines functions that do not change the thread's last error. `also [...]` adds entry points
/// defined separately because they do not return a status.
macro_rules! runtime_entry_points {
    (quiet; $($rest:tt)*) => { $crate::entry::runtime_entry_points!(@with $crate::entry::guard_quiet; $($rest)*); };
    (@with $guard:path; $($(#[$doc:meta])* fn $name:ident $c:literal $(| $per_thread:literal)*
        ($($arg:ident: $ty:ty),* $(,)?) $body:block)* $(also [$($by_hand:expr),* $(,)?])?) => {
        $(
            $(#[$doc])*
            #[allow(clippy::too_many_arguments)]
            extern "C" fn $name<const PER_THREAD: bool>($($arg: $ty),*) -> u32 {
                $guard(|| $body)
            }
        )*
        /// The entry points of this file.
        pub(crate) static ENTRIES: &[$crate::entry::EntryPoint] = &[
            $(
                $crate::entry::EntryPoint {
                    name: $c,
                    address: $name::<false> as *const std::ffi::c_void,
                },
                $($crate::entry::EntryPoint {
                    name: $per_thread,
                    address: $name::<true> as *const std::ffi::c_void,
                },)*
            )*
            $($($by_hand,)*)?
        ];
    };
    ($($rest:tt)*) => { $crate::entry::runtime_entry_points!(@with $crate::entry::guard; $($rest)*); };
}
pub(crate) use runtime_entry_points;

/// Runs an entry point's body; turns a panic into a status.
pub(crate) fn guard_quiet(body: impl FnOnce() -> Res) -> u32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Error::SUCCESS.0,
        Ok(Err(error)) => error.0,
        Err(_) => Error::UNKNOWN.0,
    }
}

/// [`guard_quiet`] for all functions except those that report errors: a failure becomes the thread's last error.
/// `cudaErrorNotReady` is a query result, not a failure.
pub(crate) fn guard(body: impl FnOnce() -> Res) -> u32 {
    let status = guard_quiet(body);
    if status != Error::SUCCESS.0 && status != Error::NOT_READY.0 {
        thread::set_last_error(Error(status));
    }
    status
}

/// Calls the driver: `cu!(cuMemFree(address))` returns a [`Res`](crate::errors::Res) with the runtime's code.
macro_rules! cu {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        // Evaluated outside the unsafe block.
        #[allow(clippy::macro_metavars_in_unsafe)]
        // SAFETY: the driver accesses locals that live during the call, or memory that the runtime's caller passed for
        // the same purpose, which the driver validates.
        let result = unsafe { cupyrite_sys::driver::$name($($arg),*) };
        $crate::errors::status(result)
    }};
}
pub(crate) use cu;
