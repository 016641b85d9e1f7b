//! General route: any call of any function, driven by its descriptor.
//!
//! A call has five steps: bind positional and keyword arguments to parameters; convert them (lists last, when the counts
//! are known); allocate storage for the results; call the symbol without the GIL; convert the results to objects, or raise
//! if C returned an error and the functions of the library raise. A function that needs code of its own has a hook
//! ([`custom::hook`]), which is called after the first step and uses the others.

use std::ffi::c_void;

use pyo3::ffi;

use crate::bindings::call::frame::{Arguments, Frame};
use crate::bindings::call::results::Returned;
use crate::bindings::descriptor::{Function, MAX_PARAMS, MAX_WORDS, Special};
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::{custom, raising, symbols};
use crate::cpython;
use crate::cpython::{Obj, Owned, R, Raised};

/// Calls a function without its hook.
///
/// # Errors
///
/// Any exception that a step raises.
#[inline]
pub fn call(arguments: Arguments<'_>) -> R<Owned> {
    let mut frame = Frame::new();
    frame.prepare(arguments)?;
    let f = arguments.f;
    let returned = match f.raising {
        None => {
            let mut words = [0; MAX_WORDS];
            frame.write_words(arguments, &mut words);
            let value = invoke(f, &words)?;
            Returned { value, errno: 0 }
        }
        Some(raising) => raising::invoke(&mut frame, arguments, raising)?,
    };
    frame.answer(arguments, returned)
}

/// Calls the symbol of `f`, without the GIL unless the descriptor keeps it.
///
/// # Errors
///
/// The library or symbol is missing, or a signal handler raised meanwhile.
#[inline]
pub fn invoke(f: &'static Function, words: &[u64; MAX_WORDS]) -> R<i64> {
    let symbol = symbols::symbol(f)?;
    let status = invoke_at(f, symbol, words.as_ptr());
    symbols::check_interrupt()?;
    Ok(status)
}

/// Calls a symbol with the words for `f`, without the GIL unless the descriptor keeps it.
#[inline(always)]
pub fn invoke_at(f: &'static Function, symbol: *const c_void, words: *const u64) -> i64 {
    // SAFETY: the caller passes words that match this function's C signature, the symbol of that function, and keeps alive
    // the memory that the words point to. The thread is attached again before Python is used.
    unsafe {
        if f.keep_gil && symbols::keeps_gil() {
            (f.thunk)(symbol, words)
        } else {
            cpython::detached(|| (f.thunk)(symbol, words))
        }
    }
}

/// Calls `f` with arguments as the vectorcall protocol passes them.
///
/// # Safety
///
/// `args` holds `nargs` positional arguments followed by one for each name in `kwnames` (null or a tuple of str).
/// The thread is attached.
///
/// # Errors
///
/// Any exception that the call raises.
#[inline]
pub unsafe fn vectorcall(
    f: &'static Function,
    args: *const *mut ffi::PyObject,
    nargs: usize,
    kwnames: *mut ffi::PyObject,
) -> R<Owned> {
    if kwnames.is_null() && nargs == f.params.len() {
        // SAFETY: as promised by the caller.
        return dispatch(unsafe { Arguments::new(f, args) });
    }
    let mut room = [std::ptr::null_mut(); MAX_PARAMS];
    // SAFETY: as promised by the caller.
    unsafe { bind(f, args, nargs, kwnames, &mut room)? };
    // SAFETY: `bind` has filled the slot of each parameter.
    dispatch(unsafe { Arguments::new(f, room.as_ptr()) })
}

#[inline]
fn dispatch(arguments: Arguments<'_>) -> R<Owned> {
    let special = arguments.f.special;
    if special == Special::None {
        return call(arguments);
    }
    custom::hook(special).unwrap_or(call)(arguments)
}

/// Binds positional and keyword arguments to parameters, one element of `room` each.
#[inline(never)]
unsafe fn bind(
    f: &'static Function,
    args: *const *mut ffi::PyObject,
    nargs: usize,
    kwnames: *mut ffi::PyObject,
    room: &mut [*mut ffi::PyObject; MAX_PARAMS],
) -> R<()> {
    let params = f.params;
    let keywords = if kwnames.is_null() {
        0
    } else {
        // SAFETY: the caller passes null or a tuple.
        unsafe { ffi::PyTuple_Size(kwnames) }.max(0).cast_unsigned()
    };
    if nargs > params.len() {
        return Err(wrong_count(f, nargs));
    }
    // Nonzero for the two-argument form of `cuCtxCreate` of CUDA 12, which has no leading parameter block.
    let first = custom::skipped_parameters(f, nargs, keywords);
    for index in 0..nargs {
        // SAFETY: the caller passes `nargs` positional arguments.
        room[first + index] = unsafe { *args.add(index) };
    }
    for index in 0..keywords {
        // SAFETY: the tuple has `keywords` names; the caller passes as many values after the positional arguments.
        let (name, value) = unsafe {
            (
                Obj::new(ffi::PyTuple_GetItem(kwnames, index.cast_signed())),
                *args.add(nargs + index),
            )
        };
        let name = name.text().unwrap_or_default();
        match params.iter().position(|param| param.name == name) {
            Some(at) if room[at].is_null() => room[at] = value,
            Some(_) => {
                let message = format!("{}() got multiple values for argument '{name}'", f.name);
                return Err(errors::raise(ExceptionKind::Type, &message));
            }
            None => {
                let message = format!("{}() got an unexpected keyword argument '{name}'", f.name);
                return Err(errors::raise(ExceptionKind::Type, &message));
            }
        }
    }
    for (index, param) in params.iter().enumerate() {
        if room[index].is_null() && param.default.is_none() && index >= first {
            if keywords == 0 {
                return Err(wrong_count(f, nargs));
            }
            let message = format!("{}() missing required argument: '{}'", f.name, param.name);
            return Err(errors::raise(ExceptionKind::Type, &message));
        }
    }
    Ok(())
}

#[cold]
fn wrong_count(f: &'static Function, given: usize) -> Raised {
    let most = f.params.len();
    let least = f.params.iter().filter(|p| p.default.is_none()).count();
    let s = if most == 1 { "" } else { "s" };
    let missing = f
        .params
        .iter()
        .skip(given)
        .filter(|p| p.default.is_none())
        .map(|p| format!("'{}'", p.name))
        .collect::<Vec<_>>()
        .join(", ");
    let message = if most == 0 {
        format!("{}() takes no arguments ({given} given)", f.name)
    } else if given < least {
        format!(
            "{}() takes {} {} positional argument{s} ({given} given); missing: {missing}",
            f.name,
            if least == most { "exactly" } else { "at least" },
            least
        )
    } else {
        format!(
            "{}() takes {} {most} positional argument{s} ({given} given)",
            f.name,
            if least == most { "exactly" } else { "at most" },
        )
    };
    errors::raise(ExceptionKind::Type, &message)
}
