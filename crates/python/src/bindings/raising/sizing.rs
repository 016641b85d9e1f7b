//! Functions that are called twice: the first call returns the number of elements, the second fills the arrays.

use std::ffi::c_void;

use crate::bindings::call::frame::Frame;
use crate::bindings::call::results::Returned;
use crate::bindings::call::words::{address, low_bytes};
use crate::bindings::descriptor::Arguments;
use crate::bindings::descriptor::{MAX_WORDS, Out, Sizing, Word};
use crate::bindings::raising::{TOO_SMALL, check, exit_guard};
use crate::bindings::symbols;
use crate::cpython::{Owned, R};
use crate::types;

/// Maximum number of attempts to read a list that grows between the calls.
const TRIES: usize = 8;

/// Makes a call that queries the element count first.
///
/// # Errors
///
/// C returns an error to the query, a signal handler raised, or `MemoryError`.
pub fn invoke(
    frame: &mut Frame,
    arguments: Arguments<'_>,
    symbol: *const c_void,
    sizing: &Sizing,
) -> R<Returned> {
    let f = arguments.f;
    let Sizing {
        count: kind,
        arrays,
    } = *sizing;
    let mut words = [0; MAX_WORDS];
    frame.write_words(arguments, &mut words);
    for (word, from) in words.iter_mut().zip(f.words) {
        if let Word::Result(result) = from
            && arrays.contains(result)
        {
            *word = 0;
        }
    }
    let mut returned = exit_guard::invoke(f, symbol, words.as_ptr());
    symbols::check_interrupt()?;
    if returned.value == TOO_SMALL {
        returned.value = 0;
    }
    check(f, returned, None)?;
    let mut len = low_bytes(count(frame), kind);
    for _ in 0..TRIES {
        for array in arrays {
            let index = *array as usize;
            frame.outs[index] = frame.array(index, f.results[index].kind, len)?;
        }
        if len == 0 {
            break;
        }
        frame.count = len;
        frame.write_words(arguments, &mut words);
        returned = exit_guard::invoke(f, symbol, words.as_ptr());
        symbols::check_interrupt()?;
        let now = low_bytes(count(frame), kind);
        if returned.value == TOO_SMALL && now > len {
            // The list has grown since the query.
            len = now;
            continue;
        }
        if returned.value == 0 && now < len {
            shrink(frame, arguments, arrays, now)?;
        }
        frame.count = now.min(len);
        break;
    }
    if len == 0 {
        frame.count = 0;
    }
    Ok(returned)
}

/// Hook of functions whose struct points at arrays: C writes the element counts, and the arrays are allocated before the
/// next call.
///
/// # Errors
///
/// Those of any call.
pub fn lists_in_struct(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut frame = Frame::new();
    frame.prepare(arguments)?;
    let symbol = symbols::symbol(f)?;
    let mut words = [0; MAX_WORDS];
    frame.write_words(arguments, &mut words);
    let mut returned = exit_guard::invoke(f, symbol, words.as_ptr());
    symbols::check_interrupt()?;
    for turn in 0..TRIES {
        if returned.value != 0 && returned.value != TOO_SMALL {
            break;
        }
        let mut grew = false;
        for (_, object) in &frame.objects {
            grew |= types::provide_arrays(object.obj())?;
        }
        if !grew {
            if turn == 0 {
                // The list is empty: NVML returns "too small" even then if no array is given.
                returned.value = 0;
            }
            break;
        }
        returned = exit_guard::invoke(f, symbol, words.as_ptr());
        symbols::check_interrupt()?;
    }
    check(f, returned, None)?;
    frame.answer(arguments, returned)
}

/// The element count that C wrote.
fn count(frame: &Frame) -> u64 {
    // SAFETY: the pointer comes from a field of a reference.
    unsafe { (&raw const frame.count).read_volatile() }
}

/// Replaces arrays of structs with shorter ones: C filled fewer elements than it reported.
fn shrink(frame: &mut Frame, arguments: Arguments<'_>, arrays: &[u8], count: u64) -> R<()> {
    for array in arrays {
        let index = *array as usize;
        let Out::BufferStructs(id, _) = arguments.f.results[index].kind else {
            continue;
        };
        let from = frame.outs[index];
        let old = frame.object(index)?;
        let to = frame.array(index, arguments.f.results[index].kind, count)?;
        let bytes = address(count) * types::class_size(id);
        // SAFETY: both arrays hold at least `count` structs, and `old` keeps the source alive for this iteration.
        unsafe {
            std::ptr::copy_nonoverlapping(
                std::ptr::with_exposed_provenance::<u8>(address(from)),
                std::ptr::with_exposed_provenance_mut::<u8>(address(to)),
                bytes,
            );
        }
        frame.outs[index] = to;
        drop(old);
    }
    Ok(())
}
