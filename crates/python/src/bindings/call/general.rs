//! General route: any call of any function, driven by its descriptor.
//!
//! A call has five steps: bind positional and keyword arguments to parameters; convert them (lists last, when the counts
//! are known); allocate storage for the results; call the symbol, without the GIL unless the descriptor keeps it; convert
//! the results to objects, or raise if C returned an error and the functions of the library raise. If the function has a
//! fast route, which refused only the arguments, the last three steps are those of the fast route. A function that needs
//! code of its own has a hook ([`custom::hook`]), which is called after the first step and uses the others.

use std::ffi::c_void;

use cupyrite_sys::loader::CudaLibrary;
use pyo3::ffi;

use crate::bindings::call::fast::FastRoute;
use crate::bindings::call::frame::Frame;
use crate::bindings::call::results::Returned;
use crate::bindings::custom::nvrtc;
use crate::bindings::descriptor::Arguments;
use crate::bindings::descriptor::{Function, MAX_PARAMS, MAX_WORDS};
use crate::bindings::raising::exit_guard;
use crate::bindings::{custom, raising, symbols};
use crate::cpython;
use crate::cpython::arguments;
use crate::cpython::arguments::Signature;
use crate::cpython::{Owned, R};

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
    let is_nvrtc = f.library() == CudaLibrary::Nvrtc;
    if is_nvrtc && let Err(status) = nvrtc::check_program(f, words) {
        return Ok(status);
    }
    let status = if exit_guard::covers(f.library()) {
        exit_guard::invoke(f, symbol, words.as_ptr()).value
    } else {
        invoke_at(f, symbol, words.as_ptr())
    };
    if is_nvrtc {
        nvrtc::note_created(f, status, words);
    }
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

/// Calls `f` with arguments as the vectorcall protocol passes them: calls that the fast route refused, and calls whose
/// arguments must be bound first.
///
/// # Safety
///
/// `fast` is the fast route of `f`, in a live function object. `args` holds `nargs` positional arguments followed by one for each name in `kwnames` (null or a tuple of str).
/// The thread is attached.
///
/// # Errors
///
/// Any exception that the call raises.
#[inline]
pub unsafe fn vectorcall(
    fast: *mut FastRoute,
    f: &'static Function,
    args: *const *mut ffi::PyObject,
    nargs: usize,
    kwnames: *mut ffi::PyObject,
) -> R<Owned> {
    if kwnames.is_null() && nargs == f.params.len() {
        // SAFETY: as promised by the caller.
        return unsafe { dispatch(fast, Arguments::new(f, args)) };
    }
    let mut room = [std::ptr::null_mut(); MAX_PARAMS];
    // SAFETY: as promised by the caller.
    unsafe { bind(f, args, nargs, kwnames, &mut room)? };
    let bound = &room[..f.params.len()];
    if bound.iter().all(|argument| !argument.is_null()) {
        // SAFETY: as promised by the caller; `bound` has an argument for each parameter.
        let answer = unsafe { FastRoute::call(fast, f, bound.as_ptr(), bound.len()) };
        if let Some(answer) = answer {
            return answer;
        }
    }
    // SAFETY: as promised by the caller; `room` has a slot for each parameter: null, or an argument of the caller.
    unsafe { dispatch(fast, Arguments::new(f, room.as_ptr())) }
}

/// Makes a call with bound arguments that the fast route refused.
///
/// # Safety
///
/// `fast` is the fast route of the arguments' function, in a live function object. The thread is attached.
#[inline]
unsafe fn dispatch(fast: *mut FastRoute, arguments: Arguments<'_>) -> R<Owned> {
    // SAFETY: as promised by the caller.
    if unsafe { (*fast).is_usable() } {
        // Only the arguments are not those of the fast route.
        let mut frame = Frame::new();
        frame.convert(arguments)?;
        let mut words = [0; MAX_WORDS];
        frame.write_words(arguments, &mut words);
        if arguments.f.library() == CudaLibrary::Nvrtc
            && let Err(status) = nvrtc::check_program(arguments.f, &words)
        {
            // SAFETY: as promised by the caller; the frame has the outputs and outlives the call.
            return unsafe { FastRoute::answer(fast, arguments.f, status, frame.outs.as_ptr()) };
        }
        // SAFETY: as promised by the caller; the frame outlives the call.
        return unsafe {
            FastRoute::finish(fast, arguments.f, frame.outs.as_ptr(), words.as_ptr())
        };
    }
    match arguments.f.hook {
        None => call(arguments),
        Some(hook) => hook(arguments),
    }
}

/// The parameters of a function.
struct Parameters {
    f: &'static Function,
    /// Number of leading parameters that the call omits.
    first: usize,
}

impl Signature for Parameters {
    fn function(&self) -> &str {
        self.f.name
    }

    #[inline]
    fn parameters(&self) -> usize {
        self.f.params.len()
    }

    #[inline]
    fn name(&self, index: usize) -> &str {
        self.f.params[index].name
    }

    #[inline]
    fn is_required(&self, index: usize) -> bool {
        self.f.params[index].default.is_none()
    }

    #[inline]
    fn first(&self) -> usize {
        self.first
    }
}

/// Binds positional and keyword arguments to parameters, one element of `room` each.
///
/// # Safety
///
/// As [`vectorcall`].
#[inline(never)]
unsafe fn bind(
    f: &'static Function,
    args: *const *mut ffi::PyObject,
    nargs: usize,
    kwnames: *mut ffi::PyObject,
    room: &mut [*mut ffi::PyObject; MAX_PARAMS],
) -> R<()> {
    let first = if custom::driver::is_ctx_create(f) {
        // SAFETY: as promised by the caller.
        unsafe { custom::driver::omitted_parameters(nargs, kwnames) }
    } else {
        0
    };
    // SAFETY: as promised by the caller.
    unsafe { arguments::bind(&Parameters { f, first }, args, nargs, kwnames, room) }
}
