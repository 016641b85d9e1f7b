//! Hooks: functions that need code of their own beside the descriptor tables.
//!
//! The overlay names a function's hook (`hook = "driver::ctx_create"` in `api/overlay/driver.toml`), and the generated row refers
//! to it ([`Function::hook`](crate::bindings::descriptor::Function::hook)). `cuCtxCreate` also binds its arguments in its own
//! way (`call::general::bind`). [`tagged_values`] is shared with the general route.

pub mod cudla;
pub mod cufile;
pub mod driver;
pub mod driver_v2;
pub mod nvml;
pub mod nvrtc;
pub mod nvrtc_v2;
pub mod runtime;
pub mod tagged_values;

use crate::bindings::call::results::answer;
use crate::bindings::call::words::address;
use crate::bindings::call::{convert, general};
use crate::bindings::descriptor::{Arguments, MAX_WORDS};
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
pub use crate::bindings::raising::{interruptible, sizing};
use crate::cpython;
use crate::cpython::{Obj, Owned, R};
use crate::types;

/// The argument for parameter `index`, which has no default.
pub fn required<'a>(arguments: Arguments<'a>, index: usize) -> R<Obj<'a>> {
    arguments.get(index).ok_or_else(|| {
        let message = format!(
            "{}() missing required argument: '{}'",
            arguments.f.name, arguments.f.params[index].name
        );
        errors::raise(ExceptionKind::Type, &message)
    })
}

/// `sizeof(objType)` of the modules whose functions return a status.
///
/// # Errors
///
/// `TypeError` if the argument is no class with a C type.
pub fn sizeof(arguments: Arguments<'_>) -> R<Owned> {
    cpython::from_u64(types::sizeof(required(arguments, 0)?)?)
}

/// `nvrtcGetErrorString`, `cudaGetErrorName` and `cudaGetErrorString`, of which C returns the text instead of a status.
///
/// # Errors
///
/// `TypeError` if the argument is no status, and the errors of a missing library.
pub fn error_text(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut words = [0u64; MAX_WORDS];
    words[0] = convert::enumerator(required(arguments, 0)?, arguments.site(0))?;
    let text = general::invoke(f, &words)?.cast_unsigned();
    answer(f, 0, |_| {
        // SAFETY: by the library's contract, the result is null or a constant string.
        unsafe { convert::c_string(std::ptr::with_exposed_provenance(address(text))) }
    })
}
