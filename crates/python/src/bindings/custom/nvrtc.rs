//! Hooks of NVRTC functions, and of functions that return an error text.

use std::sync::atomic::{AtomicU64, Ordering};

use cupyrite_sys::checked;
use cupyrite_sys::loader::CudaLibrary;
use cupyrite_sys::nvrtc::{Symbol, nvrtcResult};

use crate::bindings::call::convert;
use crate::bindings::call::convert::Keep;
use crate::bindings::call::general;
use crate::bindings::call::results::answer;
use crate::bindings::call::words::address;
use crate::bindings::custom::{nvrtc_v2, required, tagged_values};
use crate::bindings::descriptor::Arguments;
use crate::bindings::descriptor::{Conv, Element, Function, Int, MAX_WORDS, Module, Word};
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::cpython;
use crate::cpython::{Owned, R};

/// The status for an address that is no program.
pub const INVALID_PROGRAM: i64 = nvrtcResult::NVRTC_ERROR_INVALID_PROGRAM.0 as i64;

/// The address of the program last created or found readable, by a hash of the address.
static READABLE: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

#[inline(always)]
fn last_readable(program: u64) -> &'static AtomicU64 {
    &READABLE[(program >> 4) as usize % READABLE.len()]
}

/// Whether a program's address is readable memory, which NVRTC accesses unchecked; null, which it refuses. Looks at an
/// address once, and not at all if NVRTC returned it.
#[inline]
pub fn is_program(value: u64) -> bool {
    value == 0 || last_readable(value).load(Ordering::Relaxed) == value || is_readable(value)
}

#[cold]
#[inline(never)]
fn is_readable(value: u64) -> bool {
    // Room for the first fields.
    let found = value.is_multiple_of(8) && checked::is_readable(address(value) as u64, 64);
    if found {
        last_readable(value).store(value, Ordering::Relaxed);
    }
    found
}

/// Notes the program that a call with these words and this status created, for [`is_program`].
#[inline]
pub fn note_created(f: &Function, status: i64, words: &[u64; MAX_WORDS]) {
    if status == 0 && f.symbol == Symbol::nvrtcCreateProgram as u16 {
        // SAFETY: the first word is the address of the call's result, which C wrote.
        let program =
            unsafe { std::ptr::with_exposed_provenance::<u64>(address(words[0])).read_volatile() };
        last_readable(program).store(program, Ordering::Relaxed);
    }
}

/// Whether a parameter of the bindings that raise is a program, which is an int there.
pub fn is_program_parameter(f: &Function, index: usize) -> bool {
    f.library() == CudaLibrary::Nvrtc && f.params[index].name == "prog"
}

/// Checks the program among the words of a call.
///
/// # Errors
///
/// `NVRTC_ERROR_INVALID_PROGRAM` for an address without readable memory.
pub fn check_program(f: &Function, words: &[u64; MAX_WORDS]) -> Result<(), i64> {
    let program = match (f.params.first().map(|param| param.conv), f.words.first()) {
        (Some(Conv::Handle(..)), Some(Word::Arg(0))) => words[0],
        (Some(Conv::Address), Some(Word::Arg(0))) if is_program_parameter(f, 0) => words[0],
        (Some(Conv::HandlePtr(..) | Conv::Address), Some(Word::ArgAddress(0))) => {
            let at = std::ptr::with_exposed_provenance::<u64>(address(words[0]));
            if at.is_null() {
                return Ok(());
            }
            // SAFETY: the address is that of a converted argument or of a handle's value, which was read during its
            // conversion.
            unsafe { at.read_unaligned() }
        }
        _ => return Ok(()),
    };
    if is_program(program) {
        Ok(())
    } else {
        Err(INVALID_PROGRAM)
    }
}

/// Calls the NVRTC function named `name` with these words and returns its status.
fn nvrtc_call(name: &str, arguments: &[u64]) -> R<i64> {
    let Some(f) = crate::bindings::function::descriptor(Module::Nvrtc, name) else {
        let message = format!("the table of NVRTC lacks {name}");
        return Err(errors::raise(ExceptionKind::System, &message));
    };
    let mut words = [0u64; MAX_WORDS];
    words[..arguments.len()].copy_from_slice(arguments);
    general::invoke(f, &words)
}

/// `nvrtcGetPTX` and similar functions. They write as many bytes to the caller's buffer as another function reports; the
/// buffer's size is checked first.
pub fn get_output(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut keep = Keep::default();
    let program = convert::handle(required(arguments, 0)?, Int::U64, arguments.site(0))?;
    let (buffer, len) = convert::bytes_out(required(arguments, 1)?, arguments.site(1), &mut keep)?;
    let mut size: usize = 0;
    let size_at = (&raw mut size).addr() as u64;
    let status = nvrtc_call(&format!("{}Size", f.name), &[program, size_at])?;
    if status != 0 {
        return answer(f, status, |_| Ok(cpython::none()));
    }
    // SAFETY: the pointer comes from the initialized local above, which C wrote to.
    let size = unsafe { (&raw const size).read_volatile() };
    if len < size {
        let message = format!(
            "{}: the buffer has {len} bytes, but {size} are needed (see {}Size)",
            arguments.site(1).prefix(),
            f.name
        );
        return Err(errors::raise(ExceptionKind::Value, &message));
    }
    let mut words = [0u64; MAX_WORDS];
    words[..2].copy_from_slice(&[program, buffer]);
    let status = general::invoke(f, &words)?;
    answer(f, status, |_| Ok(cpython::none()))
}

pub fn supported_archs(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    if f.raising.is_some() {
        return nvrtc_v2::supported_archs(arguments);
    }
    let mut count: i32 = 0;
    let status = nvrtc_call(
        "nvrtcGetNumSupportedArchs",
        &[(&raw mut count).addr() as u64],
    )?;
    // SAFETY: the pointer comes from the initialized local above, which C may have written to.
    let count = usize::try_from(unsafe { (&raw const count).read_volatile() }).unwrap_or(0);
    if status != 0 {
        return answer(f, status, |_| Ok(cpython::none()));
    }
    let mut keep = Keep::default();
    let array = keep.array((count * 4).max(8))?;
    let mut words = [0u64; MAX_WORDS];
    words[0] = array.addr() as u64;
    let status = general::invoke(f, &words)?;
    answer(f, status, |_| {
        tagged_values::list_from(array, count, Element::Int(Int::I32))
    })
}
