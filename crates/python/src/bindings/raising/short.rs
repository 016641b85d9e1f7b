//! Fast path for functions whose arguments and results are one word each. It needs no frame.

use std::mem::MaybeUninit;

use cupyrite_sys::loader::CudaLibrary;

use crate::bindings::call::convert;
use crate::bindings::call::general::{Arguments, invoke_at};
use crate::bindings::custom::nvml;
use crate::bindings::descriptor::{Conv, MAX_WORDS, PLAIN_RESULTS, Word};
use crate::bindings::exceptions;
use crate::bindings::raising::{answer, dead, entry_points, exit_guard, live_handles, word_result};
use crate::bindings::symbols;
use crate::cpython::{Owned, R};

/// Calls a function whose arguments and results are one word each.
///
/// # Errors
///
/// As [`crate::bindings::raising::call`].
pub fn call(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut outs = [0u64; PLAIN_RESULTS];
    let out = outs.as_mut_ptr();
    let mut words = [const { MaybeUninit::<u64>::uninit() }; MAX_WORDS];
    let mut live = None;
    for (word, from) in words.iter_mut().zip(f.words) {
        word.write(match *from {
            Word::Arg(arg) => {
                let value = short_word(arguments, arg as usize)?;
                if let Conv::LiveHandle(kind) = f.params[arg as usize].conv {
                    live = Some((kind, value));
                }
                value
            }
            // SAFETY: `descriptor::verify` limits a short function to `PLAIN_RESULTS` results.
            Word::Result(result) => unsafe { out.add(result as usize).addr() as u64 },
            Word::Const(value) => value,
            _ => 0,
        });
    }
    let symbol = symbols::symbol(f)?;
    let words = words.as_ptr().cast::<u64>();
    if f.library == CudaLibrary::Nvml && !f.words.is_empty() {
        // SAFETY: the loop above wrote a word for each C parameter, and there is at least one.
        nvml::check_handle(arguments, unsafe { words.read() })?;
    }
    let status = match live {
        None => {
            let status = invoke_at(f, symbol, words);
            symbols::check_interrupt()?;
            if status != 0 {
                return Err(exceptions::raise_status(
                    f.library, status, None, None, None,
                ));
            }
            status
        }
        Some((kind, value)) => {
            let Some(entry) = live_handles::find(kind, value) else {
                return Err(dead(f, kind, value));
            };
            let mut guard = None;
            if kind.exclusive() {
                guard = live_handles::lock(&entry);
                match guard.as_deref() {
                    None => return Err(dead(f, kind, value)),
                    Some(state) if state.elsewhere() => {
                        drop(guard);
                        return Err(entry_points::other_thread(f));
                    }
                    Some(_) => {}
                }
            }
            let status = exit_guard::invoke(f, symbol, words).value;
            let log = if status == 0 {
                None
            } else {
                entry_points::log(kind, value)
            };
            drop(guard);
            symbols::check_interrupt()?;
            if status != 0 {
                let log = log.as_deref();
                return Err(exceptions::raise_status(f.library, status, None, log, None));
            }
            status
        }
    };
    debug_assert_eq!(status, 0);
    answer(f.results.len(), |index| {
        // SAFETY: the index is below `PLAIN_RESULTS`, as above. `outs` is alive, and C wrote through the same pointer.
        word_result(f.results[index].kind, unsafe { out.add(index).read() })
    })
}

#[inline]
fn short_word(arguments: Arguments<'_>, index: usize) -> R<u64> {
    let param = &arguments.f.params[index];
    let Some(obj) = arguments.get(index) else {
        return Ok(param.default.unwrap_or(0).cast_unsigned());
    };
    let site = arguments.site(index);
    match param.conv {
        Conv::Address | Conv::LiveHandle(_) => convert::address(obj, site),
        Conv::Int(kind) => convert::int(obj, kind, site),
        Conv::Bool => convert::truth(obj),
        _ => Ok(0),
    }
}
