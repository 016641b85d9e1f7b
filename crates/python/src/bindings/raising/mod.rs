//! The parts of the general route for libraries whose functions raise: they return values without a status, and an error
//! status becomes an exception. Functions with one-word arguments and results take the fast route
//! ([`crate::bindings::call::fast`]).
//!
//! The other calls have in addition request structs that Python does not see ([`requests`]), arrays whose length is queried
//! first ([`sizing`]), handles that must be live ([`handle_calls`], [`live_handles`]), calls that Ctrl-C can abandon
//! ([`interruptible`]), and calls that delay the exit of the process ([`exit_guard`]).

pub mod entry_points;
pub mod exit_guard;
pub mod explanation;
pub mod handle_calls;
pub mod interruptible;
pub mod live_handles;
pub mod requests;
pub mod sizing;

use cupyrite_sys::loader::CudaLibrary;
use pyo3::ffi;

use crate::bindings::call::frame::Frame;
use crate::bindings::call::results::Returned;
use crate::bindings::custom::{nvml, nvrtc};
use crate::bindings::descriptor::Arguments;
use crate::bindings::descriptor::{
    Function, HandleKind, Len, MAX_WORDS, Out, Output, Raising, Ret,
};
use crate::bindings::exceptions;
pub use crate::bindings::raising::entry_points::{
    by_words, call_named, error_string, not_live, status_of,
};
use crate::bindings::symbols;
use crate::cpython::{R, Raised};

/// `NVML_ERROR_INSUFFICIENT_SIZE`. Only NVML has calls that query a size first.
pub const TOO_SMALL: i64 = 7;

/// `CU_FILE_CUDA_DRIVER_ERROR`: the other half of cuFile's error is a `CUresult`.
const CUDA_DRIVER_ERROR: i64 = 5011;

/// Calls C with a prepared frame.
///
/// # Errors
///
/// The library or the function is missing, a signal handler raised, or C returns an error.
#[inline(never)]
pub fn invoke(
    frame: &mut Frame,
    arguments: Arguments<'_>,
    raising: &'static Raising,
) -> R<Returned> {
    let f = arguments.f;
    let symbol = symbols::symbol(f)?;
    if f.library() == CudaLibrary::Nvml {
        nvml::check_handle(arguments, frame.vals[0])?;
        if let [Output { kind, .. }] = f.results
            && let Out::Slice(_, len @ Len::Arg(_)) = *kind
            && frame.len(arguments, len) == 0
        {
            // No elements are requested. NVML returns an error; NVIDIA's package returns an empty array.
            return Ok(Returned { value: 0, errno: 0 });
        }
    }
    if let [
        Output {
            kind: Out::NewHandle(HandleKind::NvJitLink),
            ..
        },
    ] = f.results
    {
        for mut left in live_handles::take_deferred() {
            let at = (&raw mut left).addr() as u64;
            // A failure leaks the linker; it must not fail the creation of the next one.
            let _ = call_named(f.module, "destroy", &[at])?;
        }
    }
    if let Some(sizing) = &raising.sizing {
        let returned = sizing::invoke(frame, arguments, symbol, sizing)?;
        check(f, returned, None)?;
        return Ok(returned);
    }
    let mut words = [0; MAX_WORDS];
    frame.write_words(arguments, &mut words);
    let (mut returned, log) = match frame.handle {
        None if f.library() == CudaLibrary::Nvrtc
            && let Err(value) = nvrtc::check_program(f, &words) =>
        {
            (Returned { value, errno: 0 }, None)
        }
        None => (exit_guard::invoke(f, symbol, words.as_ptr()), None),
        Some(handle) => handle_calls::invoke(frame, arguments, handle, symbol, &mut words)?,
    };
    symbols::check_interrupt()?;
    if returned.value == TOO_SMALL && nvml::fills_what_fits(f) {
        returned.value = 0;
    }
    check(f, returned, log.as_deref())?;
    Ok(returned)
}

/// Raises for an error status of a function whose C function returns a plain status ([`Ret::Status`]).
#[cold]
#[inline(never)]
pub fn status_error(f: &Function, status: i64) -> Raised {
    exceptions::raise_call(f, status, None)
}

/// Raises if C returned an error.
///
/// # Errors
///
/// C returned an error.
pub fn check(f: &Function, returned: Returned, log: Option<&[u8]>) -> R<()> {
    let module = f.module;
    let Some(raising) = f.raising else {
        return Ok(());
    };
    match raising.ret {
        Ret::Status if returned.value != 0 => Err(exceptions::raise_call(f, returned.value, log)),
        #[allow(clippy::cast_possible_truncation)] // two 32-bit values share the word
        Ret::CuFile if returned.value as i32 != 0 => {
            let status = i64::from(returned.value as i32);
            let driver = i64::from((returned.value >> 32) as i32);
            let driver = (status == CUDA_DRIVER_ERROR).then_some(driver);
            let note = exceptions::call_note(f);
            Err(exceptions::raise_status(
                module,
                status,
                driver,
                None,
                Some(&note),
            ))
        }
        Ret::Size if returned.value == -1 => {
            // SAFETY: `errno` is thread-local, and the built-in class is immortal.
            unsafe {
                *libc::__errno_location() = returned.errno;
                ffi::PyErr_SetFromErrno(ffi::PyExc_OSError);
            }
            Err(Raised)
        }
        _ => Ok(()),
    }
}
