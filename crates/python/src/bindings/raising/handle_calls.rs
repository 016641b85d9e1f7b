//! Calls with a handle that must be live. Calls with the same handle are serialized.

use std::ffi::{CStr, c_char, c_void};

use crate::bindings::call::frame::{Arguments, Frame, HandleArgument, UncheckedBuffer};
use crate::bindings::call::memory_checks::no_memory_at;
use crate::bindings::call::results::Returned;
use crate::bindings::call::words::address;
use crate::bindings::descriptor::{Conv, MAX_WORDS, OutSize, Word};
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::raising::entry_points::{dead, log, other_thread, size_named};
use crate::bindings::raising::{exit_guard, live_handles};
use crate::cpython::{R, Raised};
use crate::types;

/// Makes a call whose handle must be alive. Also returns the library's log if the call fails.
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
    let Some(entry) = live_handles::find(kind, value) else {
        return Err(dead(f, kind, value));
    };
    let mut guard = None;
    if kind.exclusive() {
        guard = live_handles::lock(&entry);
        if guard.is_none() {
            return Err(dead(f, kind, value));
        }
    }
    if let Some(state) = guard.as_deref_mut()
        && state.elsewhere()
    {
        match (destroys, state.thread) {
            (true, Some(thread)) => {
                live_handles::ended(kind, value, state);
                live_handles::put_off(thread, value);
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
                    None => at == 0 || size == 0 || types::readable(address(at), size),
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
            Some(state) => live_handles::ended(kind, value, state),
            None => live_handles::ended_unlocked(kind, value),
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
