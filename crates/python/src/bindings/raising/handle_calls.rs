//! Calls with a handle that must be live. Calls with the same handle are serialized.

use std::ffi::{CStr, c_char, c_void};
use std::sync::MutexGuard;

use crate::bindings::call::frame::{Frame, HandleArgument, UncheckedBuffer};
use crate::bindings::call::memory_checks::no_memory_at;
use crate::bindings::call::results::Returned;
use crate::bindings::call::words::address;
use crate::bindings::descriptor::Arguments;
use crate::bindings::descriptor::{Conv, Function, HandleKind, MAX_WORDS, OutSize, Param, Word};
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::exceptions;
use crate::bindings::raising::entry_points::{log, not_live, other_thread, size_named};
use crate::bindings::raising::live_handles::HandleState;
use crate::bindings::raising::{exit_guard, live_handles};
use crate::cpython::{R, Raised};
use cupyrite_sys::checked;

/// The entry of the handle that a call is given.
fn find(f: &Function, kind: HandleKind, value: u64) -> R<live_handles::SharedState> {
    live_handles::find(kind, value).ok_or_else(|| not_live(f, kind, value))
}

/// Locks the handle for a call; `None` for a kind that is not locked.
fn lock<'a>(
    f: &Function,
    kind: HandleKind,
    value: u64,
    entry: &'a live_handles::SharedState,
) -> R<Option<MutexGuard<'a, HandleState>>> {
    if !kind.exclusive() {
        return Ok(None);
    }
    match live_handles::lock(entry) {
        None => Err(not_live(f, kind, value)),
        guard => Ok(guard),
    }
}

/// Whether the fast route may make the calls of a function with a handle that must be live: the call neither destroys the
/// handle nor changes its state.
pub fn allows_fast_route(f: &Function) -> bool {
    let plain = |param: &Param| matches!(param.conv, Conv::LiveHandle(_) | Conv::Int(_));
    f.params.iter().all(plain) && f.name != "complete"
}

/// Makes a call of the fast route whose handle must be live.
///
/// # Errors
///
/// The handle is not live or belongs to another thread, or the library returns an error.
///
/// # Safety
///
/// `symbol` is the function of `f`, and `words` holds its C arguments.
pub unsafe fn invoke_words(
    f: &'static Function,
    kind: HandleKind,
    value: u64,
    symbol: *const c_void,
    words: *const u64,
) -> R<i64> {
    let entry = find(f, kind, value)?;
    let guard = lock(f, kind, value, &entry)?;
    if guard
        .as_deref()
        .is_some_and(HandleState::belongs_to_other_thread)
    {
        drop(guard);
        return Err(other_thread(f));
    }
    let status = exit_guard::invoke(f, symbol, words).value;
    if status == 0 {
        return Ok(0);
    }
    let log = log(kind, value);
    drop(guard);
    Err(exceptions::raise_call(f, status, log.as_deref()))
}

/// Makes a call whose handle must be live. Also returns the library's log if the call fails.
///
/// # Errors
///
/// The handle is not live or belongs to another thread, or a buffer is too small.
pub fn invoke(
    frame: &Frame,
    arguments: Arguments<'_>,
    handle: HandleArgument,
    symbol: *const c_void,
    words: &mut [u64; MAX_WORDS],
) -> R<(Returned, Option<Vec<u8>>)> {
    let f = arguments.f;
    let HandleArgument {
        kind,
        value,
        destroys,
    } = handle;
    let entry = find(f, kind, value)?;
    let mut guard = lock(f, kind, value, &entry)?;
    if let Some(state) = guard.as_deref_mut()
        && state.belongs_to_other_thread()
    {
        match (destroys, state.thread) {
            (true, Some(thread)) => {
                live_handles::unregister(kind, value, state);
                live_handles::defer_destroy(thread, value);
                return Ok((Returned { value: 0, errno: 0 }, None));
            }
            _ => {
                drop(guard);
                return Err(other_thread(f));
            }
        }
    }
    if let Some(UncheckedBuffer { index, len }) = frame.unchecked
        && let Conv::BufferOut(OutSize::Call(name)) = f.params[index as usize].conv
    {
        let at = frame.vals[index as usize];
        match size_named(f.module, name, value) {
            Ok(Ok(size)) => {
                // The library refuses null itself. A bare address has no known size: check that it is readable.
                let fits = match len {
                    Some(len) => size <= len,
                    None => at == 0 || size == 0 || checked::is_readable(address(at) as u64, size),
                };
                if !fits {
                    drop(guard);
                    let site = arguments.site(index as usize);
                    return Err(match len {
                        Some(len) => {
                            let message = format!(
                                "{}: the buffer has {len} bytes, but {name}() says {size}",
                                site.prefix()
                            );
                            errors::raise(ExceptionKind::Value, &message)
                        }
                        None => no_memory_at(at, size as u64, site),
                    });
                }
            }
            // The call itself would fail for the same reason as the size query: report the query's status.
            Ok(Err(status)) => {
                let log = log(kind, value);
                drop(guard);
                return Ok((
                    Returned {
                        value: status,
                        errno: 0,
                    },
                    log,
                ));
            }
            Err(Raised) => {
                drop(guard);
                return Err(Raised);
            }
        }
    }
    if let Some(state) = guard.as_deref_mut() {
        for (word, from) in words.iter_mut().zip(f.words) {
            if let Word::Arg(arg) = *from
                && matches!(f.params[arg as usize].conv, Conv::Str)
                && *word != 0
            {
                let text = std::ptr::with_exposed_provenance::<c_char>(address(*word));
                // SAFETY: `Conv::Str` converted the argument to text that ends with a nul; the argument keeps it
                // alive.
                let text = unsafe { CStr::from_ptr(text) }.to_owned();
                *word = text.as_ptr().addr() as u64;
                state.texts.push(text);
            }
        }
    }
    let returned = exit_guard::invoke(f, symbol, words.as_ptr());
    let log = if returned.value != 0 {
        log(kind, value)
    } else {
        None
    };
    if destroys && returned.value == 0 {
        match guard.as_deref_mut() {
            Some(state) => live_handles::unregister(kind, value, state),
            None => live_handles::unregister_unlocked(kind, value),
        }
    }
    if returned.value == 0
        && f.name == "complete"
        && let Some(state) = guard.as_deref_mut()
    {
        // Once linked, the linker no longer depends on memory of the thread that created it.
        state.thread = None;
    }
    drop(guard);
    Ok((returned, log))
}
