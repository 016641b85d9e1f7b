//! Calls of single library functions by name or with packed words, and the exceptions, logs and error texts for failures.

use std::ffi::{CStr, c_char};

use cupyrite_sys::loader::CudaLibrary;

use crate::bindings::call::words::address;
use crate::bindings::descriptor::{Function, HandleKind, MAX_WORDS, Module};
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::exceptions;
use crate::bindings::raising::exit_guard;
use crate::bindings::{function, symbols};
use crate::cpython;
use crate::cpython::{R, Raised};

/// The exception for a handle that is not alive: the one that the library defines for a null handle.
#[cold]
pub fn not_live(f: &Function, kind: HandleKind, value: u64) -> Raised {
    let note = match value {
        0 => format!("{}() was given a null handle", f.name),
        _ => format!(
            "{}() was given {value:#x}, which is no handle of {} or was destroyed",
            f.name,
            kind.constructor()
        ),
    };
    exceptions::raise_status(f.module, kind.invalid(), None, None, Some(&note))
}

/// `nvJitLinkError`: a linker is used on another thread than the one that created it.
#[cold]
pub fn other_thread(f: &Function) -> Raised {
    /// `NVJITLINK_ERROR_INTERNAL`
    const INTERNAL: i64 = 6;
    let note = format!(
        "{}() was called on another thread than create(): nvJitLink keeps memory of the thread that made a linker \
         until it has linked, and breaks if another one goes on with it",
        f.name
    );
    exceptions::raise_status(f.module, INTERNAL, None, None, Some(&note))
}

/// Refuses a null buffer where some releases of the library dereference it. Later releases return the same statuses.
///
/// # Errors
///
/// The library does not accept null for this parameter.
pub fn check_null(f: &Function, param: &str) -> R<()> {
    let status = match f.library() {
        // `NVJITLINK_ERROR_INVALID_INPUT`. nvJitLink checks output buffers itself.
        CudaLibrary::NvJitLink if f.name == "add_data" => 3,
        // `NVVM_ERROR_INVALID_INPUT`
        CudaLibrary::Nvvm => 4,
        _ => return Ok(()),
    };
    let note = format!("{}() was given no memory as '{param}'", f.name);
    Err(exceptions::raise_status(
        f.module,
        status,
        None,
        None,
        Some(&note),
    ))
}

/// Calls the function named `name` with these words and returns its status.
///
/// # Errors
///
/// The function is missing.
pub fn call_named(module: Module, name: &str, arguments: &[u64]) -> R<i64> {
    let Some(f) = function::descriptor(module, name) else {
        let message = format!("the table of {} lacks {name}", module.name());
        return Err(errors::raise(ExceptionKind::System, &message));
    };
    let mut words = [0u64; MAX_WORDS];
    words[..arguments.len()].copy_from_slice(arguments);
    let symbol = symbols::symbol(f)?;
    Ok(exit_guard::invoke(f, symbol, words.as_ptr()).value)
}

/// Calls the function with these words and returns its status.
///
/// # Errors
///
/// The function is missing, or a signal handler raised during the call.
pub fn status_of(f: &'static Function, arguments: &[u64]) -> R<i64> {
    let mut words = [0u64; MAX_WORDS];
    words[..arguments.len()].copy_from_slice(arguments);
    let symbol = symbols::symbol(f)?;
    let status = exit_guard::invoke(f, symbol, words.as_ptr()).value;
    symbols::check_interrupt()?;
    Ok(status)
}

/// Calls the function with these words and raises for an error status.
///
/// # Errors
///
/// As [`status_of`], or C returns an error.
pub fn by_words(f: &'static Function, arguments: &[u64]) -> R<()> {
    match status_of(f, arguments)? {
        0 => Ok(()),
        status => Err(exceptions::raise_call(f, status, None)),
    }
}

/// The size that the function named `name` reports for a handle, or its error status.
///
/// # Errors
///
/// The function is missing.
pub fn size_named(module: Module, name: &str, handle: u64) -> R<Result<usize, i64>> {
    let mut size = 0usize;
    let at = &raw mut size;
    let status = call_named(module, name, &[handle, at.addr() as u64])?;
    // SAFETY: the pointer comes from the local above, which is initialized whether or not C wrote to it.
    let size = unsafe { at.read_volatile() };
    Ok(if status == 0 { Ok(size) } else { Err(status) })
}

/// The library's log for a handle. Runs no Python code, because the handle is locked.
pub fn log(kind: HandleKind, handle: u64) -> Option<Vec<u8>> {
    for (module, size, text) in kind.logs() {
        let Ok(Ok(size)) = size_named(*module, size, handle) else {
            cpython::clear();
            continue;
        };
        if size <= 1 {
            continue;
        }
        let mut bytes = vec![0u8; size + 1];
        let at = bytes.as_mut_ptr().expose_provenance() as u64;
        match call_named(*module, text, &[handle, at]) {
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

/// The library's text for a status; `None` if the library or its error-text function is missing.
///
/// # Errors
///
/// `MemoryError`.
pub fn error_string(module: Module, status: i64) -> R<Option<String>> {
    let text = match call_named(module, "error_string", &[status.cast_unsigned()]) {
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
    // SAFETY: by the library's contract, a non-null result is a constant string.
    let text = unsafe { CStr::from_ptr(text) };
    Ok(Some(text.to_string_lossy().into_owned()))
}
