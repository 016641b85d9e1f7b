//! Hooks of `cuda.bindings._v2.nvrtc`: lists whose length Python does not repeat, and bytes whose number NVRTC tells.

use crate::bindings::call::convert;
use crate::bindings::call::convert::Keep;
use crate::bindings::call::general;
use crate::bindings::call::results::answer;
use crate::bindings::custom::nvrtc;
use crate::bindings::custom::required;
use crate::bindings::descriptor::Arguments;
use crate::bindings::descriptor::{MAX_WORDS, Slice};
use crate::bindings::errors::{self, ExceptionKind};
use crate::bindings::exceptions;
use crate::bindings::raising;
use crate::cpython;
use crate::cpython::{Owned, R};
use crate::types;

/// An optional list of strings: the address of C's array, and the number.
fn texts(arguments: Arguments<'_>, index: usize, keep: &mut Keep) -> R<(u64, u64)> {
    let Some(obj) = arguments.get(index).filter(|obj| !obj.is_none()) else {
        return Ok((0, 0));
    };
    let site = arguments.site(index);
    if obj.is_int() {
        return Err(errors::wrong_type(site, "a list of bytes or None", obj));
    }
    let at = convert::text_list(obj, None, site, keep)?;
    let count = match keep.objects.last() {
        Some(items) => items.obj().snapshot()?.len(),
        None => 0,
    };
    Ok((if count == 0 { 0 } else { at }, count as u64))
}

/// `create_program(src, name, headers=None, include_names=None)`
pub fn create(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut keep = Keep::default();
    let source = convert::text(required(arguments, 0)?, arguments.site(0), &mut keep)?;
    let name = convert::text(required(arguments, 1)?, arguments.site(1), &mut keep)?;
    let headers = texts(arguments, 2, &mut keep)?;
    let names = texts(arguments, 3, &mut keep)?;
    if headers.1 != names.1 {
        let message = format!(
            "{}() takes as many headers as include_names ({} != {})",
            f.name, headers.1, names.1
        );
        return Err(errors::raise(ExceptionKind::Value, &message));
    }
    let mut program = 0u64;
    let made = &raw mut program;
    let mut words = [0u64; MAX_WORDS];
    words[..6].copy_from_slice(&[
        made.addr() as u64,
        source,
        name,
        headers.1,
        headers.0,
        names.0,
    ]);
    let status = general::invoke(f, &words)?;
    answer(f, status, |_| {
        // SAFETY: the pointer comes from the initialized local above, which C wrote to.
        cpython::from_i64(unsafe { made.read_volatile() }.cast_signed())
    })
}

/// `compile_program(prog, options=None)`. The exception has the compiler's log.
pub fn compile(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut keep = Keep::default();
    let program = convert::address(required(arguments, 0)?, arguments.site(0))?;
    let (options, count) = texts(arguments, 1, &mut keep)?;
    let mut words = [0u64; MAX_WORDS];
    words[..3].copy_from_slice(&[program, count, options]);
    let status = general::invoke(f, &words)?;
    if status == 0 {
        return Ok(cpython::none());
    }
    let log = match output(arguments, "get_program_log", program) {
        Ok(Ok(log)) => log,
        Ok(Err(_)) => Vec::new(),
        Err(cpython::Raised) => {
            cpython::clear();
            Vec::new()
        }
    };
    let end = log.iter().position(|&b| b == 0).unwrap_or(log.len());
    let log = Some(&log[..end]).filter(|log| !log.is_empty());
    Err(exceptions::raise_call(f, status, log))
}

/// What the function `name` writes; another one tells the size. An error status.
fn output(arguments: Arguments<'_>, name: &str, program: u64) -> R<Result<Vec<u8>, i64>> {
    if !nvrtc::is_program(program) {
        return Ok(Err(nvrtc::INVALID_PROGRAM));
    }
    let module = arguments.f.module;
    let size = match raising::entry_points::size_named(module, &format!("{name}_size"), program)? {
        Ok(size) => size,
        Err(status) => return Ok(Err(status)),
    };
    if size == 0 {
        return Ok(Ok(Vec::new()));
    }
    let mut bytes = vec![0u8; size];
    let at = bytes.as_mut_ptr().expose_provenance() as u64;
    let status = raising::call_named(module, name, &[program, at])?;
    Ok(if status == 0 { Ok(bytes) } else { Err(status) })
}

/// `get_ptx(prog)` and similar functions.
pub fn bytes(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let program = convert::address(required(arguments, 0)?, arguments.site(0))?;
    match output(arguments, f.name, program)? {
        Ok(bytes) => cpython::from_bytes(&bytes),
        Err(status) => Err(raising::status_error(f, status)),
    }
}

/// `get_supported_archs()`
pub fn supported_archs(arguments: Arguments<'_>) -> R<Owned> {
    let f = arguments.f;
    let mut count: i32 = 0;
    let counter = &raw mut count;
    let at = counter.addr() as u64;
    let status = raising::call_named(f.module, "get_num_supported_archs", &[at])?;
    if status != 0 {
        return Err(raising::status_error(f, status));
    }
    // SAFETY: the pointer comes from the initialized local above, which C wrote to.
    let count = usize::try_from(unsafe { counter.read_volatile() }).unwrap_or(0);
    if count == 0 {
        return types::new_slice(Slice::I32, &[]);
    }
    let mut keep = Keep::default();
    let array = keep.array((count * 4).max(8))?;
    raising::by_words(f, &[array.addr() as u64])?;
    // SAFETY: the array has `count` numbers.
    types::new_slice(Slice::I32, unsafe {
        std::slice::from_raw_parts(array, count * 4)
    })
}
