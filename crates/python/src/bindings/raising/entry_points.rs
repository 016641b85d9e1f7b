//! Single calls of a library's functions by name or with ready words, and what they tell about a failure.

use std::ffi::{CStr, c_char};

use cupyrite_sys::loader::CudaLibrary;

use crate::bindings::call::general::address;
use crate::bindings::descriptor::{Function, HandleKind, MAX_WORDS};
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::raising::exit_guard;
use crate::bindings::{function, symbols};
use crate::cpython;
use crate::cpython::{R, Raised};
use crate::types::exceptions;

/// The exception for a handle that is not alive: the library's own for a null handle.
#[cold]
pub fn dead(f: &Function, kind: HandleKind, value: u64) -> Raised {
    let note = match value {
        0 => format!("{}() was given a null handle", f.name),
        _ => format!(
            "{}() was given {value:#x}, which is no handle of {} or was destroyed",
            f.name,
            kind.maker()
        ),
    };
    exceptions::raise_status(f.library, kind.invalid(), None, None, Some(&note))
}

/// `nvJitLinkError`: a linker is worked on by the wrong thread.
#[cold]
pub fn other_thread(f: &Function) -> Raised {
    /// `NVJITLINK_ERROR_INTERNAL`
    const INTERNAL: i64 = 6;
    let note = format!(
        "{}() was called on another thread than create(): nvJitLink keeps memory of the thread that made a linker \
         until it has linked, and breaks if another one goes on with it",
        f.name
    );
    exceptions::raise_status(f.library, INTERNAL, None, None, Some(&note))
}

/// Refuses a null buffer in the library's stead where some releases follow it: later ones have these statuses.
///
/// # Errors
///
/// It is refused.
pub fn check_null(f: &Function, param: &str) -> R<()> {
    let status = match f.library {
        // `NVJITLINK_ERROR_INVALID_INPUT`; what is written it looks at itself.
        CudaLibrary::NvJitLink if f.name == "add_data" => 3,
        // `NVVM_ERROR_INVALID_INPUT`
        CudaLibrary::Nvvm => 4,
        _ => return Ok(()),
    };
    let note = format!("{}() was given no memory as '{param}'", f.name);
    Err(exceptions::raise_status(
        f.library,
        status,
        None,
        None,
        Some(&note),
    ))
}

/// Calls the function called `name` with these words.
///
/// # Errors
///
/// The function is missing.
pub fn call_named(library: CudaLibrary, name: &str, arguments: &[u64]) -> R<i64> {
    let Some(f) = function::descriptor(library, name) else {
        let message = format!("the table of {} lacks {name}", library.name());
        return Err(errors::raise(ExceptionKind::System, &message));
    };
    let mut words = [0u64; MAX_WORDS];
    words[..arguments.len()].copy_from_slice(arguments);
    let symbol = symbols::symbol(f)?;
    Ok(exit_guard::invoke(f, symbol, words.as_ptr()).value)
}

/// Calls the function with these words; its status.
///
/// # Errors
///
/// The function is missing, or a signal handler raised meanwhile.
pub fn status_of(f: &'static Function, arguments: &[u64]) -> R<i64> {
    let mut words = [0u64; MAX_WORDS];
    words[..arguments.len()].copy_from_slice(arguments);
    let symbol = symbols::symbol(f)?;
    let status = exit_guard::invoke(f, symbol, words.as_ptr()).value;
    symbols::check_interrupt()?;
    Ok(status)
}

/// Calls the function with these words.
///
/// # Errors
///
/// As [`status_of`], or C reports an error.
pub fn by_words(f: &'static Function, arguments: &[u64]) -> R<()> {
    match status_of(f, arguments)? {
        0 => Ok(()),
        status => Err(exceptions::raise_status(
            f.library, status, None, None, None,
        )),
    }
}

/// A size that the function called `name` tells about a handle, or its status.
///
/// # Errors
///
/// The function is missing.
pub fn size_named(library: CudaLibrary, name: &str, handle: u64) -> R<Result<usize, i64>> {
    let mut size = 0usize;
    let at = &raw mut size;
    let status = call_named(library, name, &[handle, at.addr() as u64])?;
    // SAFETY: C wrote a size there, or nothing.
    let size = unsafe { at.read_volatile() };
    Ok(if status == 0 { Ok(size) } else { Err(status) })
}

/// The log that the library keeps for a handle. Runs no Python code: the handle is locked.
pub fn log(kind: HandleKind, handle: u64) -> Option<Vec<u8>> {
    for (library, size, text) in kind.logs() {
        let Ok(Ok(size)) = size_named(*library, size, handle) else {
            cpython::clear();
            continue;
        };
        if size <= 1 {
            continue;
        }
        let mut bytes = vec![0u8; size + 1];
        let at = bytes.as_mut_ptr().expose_provenance() as u64;
        match call_named(*library, text, &[handle, at]) {
            Ok(0) => {
                let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
                bytes.truncate(end);
                if !bytes.is_empty() {
                    return Some(bytes);
                }
            }
            Ok(_) => {}
            Err(Raised) => cpython::clear(),
        }
    }
    None
}

/// What a library says a status means; `None` if the library or its function for that is not there.
///
/// # Errors
///
/// Memory.
pub fn error_string(library: CudaLibrary, status: i64) -> R<Option<String>> {
    let text = match call_named(library, "error_string", &[status.cast_unsigned()]) {
        Ok(text) => text.cast_unsigned(),
        Err(Raised) => {
            cpython::clear();
            return Ok(None);
        }
    };
    if text == 0 {
        return Ok(None);
    }
    let text = std::ptr::with_exposed_provenance::<c_char>(address(text));
    // SAFETY: the library returns the address of a constant string.
    let text = unsafe { CStr::from_ptr(text) };
    Ok(Some(text.to_string_lossy().into_owned()))
}
