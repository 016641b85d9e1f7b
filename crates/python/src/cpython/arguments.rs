//! Binds the positional and keyword arguments of a call to parameters.
//!
//! The names of a call site are interned strings. They are compared by identity with the interned parameter names where a
//! signature has these, and else as text.

use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::{ExceptionKind, raise};
use crate::cpython::internals::tuple;
use crate::cpython::{Obj, R, Raised};

/// The parameters of a callable.
pub trait Signature {
    /// Qualified name of the callable, for messages.
    fn function(&self) -> &str;

    /// Number of parameters.
    fn parameters(&self) -> usize;

    /// Name of the parameter at `index`.
    fn name(&self, index: usize) -> &str;

    /// Whether a call must have an argument for the parameter at `index`.
    fn is_required(&self, index: usize) -> bool;

    /// Number of parameters that positional arguments are bound to; the others are keyword-only.
    #[inline(always)]
    fn positional(&self) -> usize {
        self.parameters()
    }

    /// Index of the parameter that the first positional argument is bound to.
    #[inline(always)]
    fn first(&self) -> usize {
        0
    }

    /// The parameter whose interned name is this object. `None` if the name must be compared as text.
    #[inline(always)]
    fn find_interned(&self, _name: *mut ffi::PyObject) -> Option<usize> {
        None
    }
}

/// Binds the arguments of a call: writes each to the slot of its parameter. `slots` has one for each parameter, all null;
/// those of omitted arguments stay null.
///
/// # Safety
///
/// `args` holds `count` positional arguments followed by one for each name in `keywords`, which is null or a tuple of `str`.
/// The thread is attached.
///
/// # Errors
///
/// `TypeError`: too many or too few arguments, an unknown name, or two arguments for one parameter.
#[inline(always)]
pub unsafe fn bind<S: Signature>(
    signature: &S,
    args: *const *mut ffi::PyObject,
    count: usize,
    keywords: *mut ffi::PyObject,
    slots: &mut [*mut ffi::PyObject],
) -> R<()> {
    let first = signature.first();
    if count > signature.positional() {
        return Err(wrong_count(signature, count));
    }
    for (index, slot) in slots[first..].iter_mut().enumerate().take(count) {
        // SAFETY: the caller guarantees `count` positional arguments.
        *slot = unsafe { *args.add(index) };
    }
    if !keywords.is_null() {
        // SAFETY: the caller guarantees a tuple of names, and a value for each after the positional arguments.
        unsafe {
            let names = Obj::new(keywords);
            let items = tuple::items(names);
            let len = match items {
                Some(_) => tuple::known_len(names),
                None => ffi::PyTuple_Size(keywords).max(0).cast_unsigned(),
            };
            for place in 0..len {
                let name = match items {
                    Some(items) => *items.add(place),
                    None => ffi::PyTuple_GetItem(keywords, place.cast_signed()),
                };
                let index = match signature.find_interned(name) {
                    Some(index) => index,
                    None => find_by_text(signature, Obj::new(name), count + place)?,
                };
                if !slots[index].is_null() {
                    return Err(given_twice(signature, index));
                }
                slots[index] = *args.add(count + place);
            }
        }
    }
    for (index, slot) in slots
        .iter()
        .enumerate()
        .take(signature.parameters())
        .skip(first)
    {
        if slot.is_null() && signature.is_required(index) {
            return Err(missing(signature, index, count, !keywords.is_null()));
        }
    }
    Ok(())
}

/// The parameter with this name. `guess` is tried first: most calls pass keywords in the order of the parameters.
#[inline(never)]
fn find_by_text<S: Signature>(signature: &S, name: Obj<'_>, guess: usize) -> R<usize> {
    let mut len: ffi::Py_ssize_t = 0;
    // SAFETY: a live object; other types than `str` raise.
    let text = unsafe { ffi::PyUnicode_AsUTF8AndSize(name.ptr(), &raw mut len) };
    if !text.is_null() {
        // SAFETY: `PyUnicode_AsUTF8AndSize` returned a pointer to `len` bytes, which live as long as the object.
        let text =
            unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len.max(0).cast_unsigned()) };
        let is_name = |index: usize| signature.name(index).as_bytes() == text;
        let parameters = signature.parameters();
        if guess < parameters && is_name(guess) {
            return Ok(guess);
        }
        if let Some(index) = (0..parameters).find(|&index| is_name(index)) {
            return Ok(index);
        }
    }
    cpython::clear();
    Err(unexpected(signature, name))
}

/// The names of the parameters, for messages.
fn names(signature: &dyn Signature) -> String {
    let names: Vec<&str> = (0..signature.parameters())
        .map(|i| signature.name(i))
        .collect();
    names.join(", ")
}

#[cold]
#[inline(never)]
fn unexpected(signature: &dyn Signature, name: Obj<'_>) -> Raised {
    let expected = match signature.parameters() {
        0 => "no arguments".to_owned(),
        _ => names(signature),
    };
    let message = format!(
        "{}() got an unexpected keyword argument '{}'; expected {expected}",
        signature.function(),
        name.text().unwrap_or_default(),
    );
    raise(ExceptionKind::Type, &message)
}

#[cold]
#[inline(never)]
fn given_twice(signature: &dyn Signature, index: usize) -> Raised {
    let message = format!(
        "{}() got multiple values for argument '{}'",
        signature.function(),
        signature.name(index)
    );
    raise(ExceptionKind::Type, &message)
}

#[cold]
#[inline(never)]
fn missing(signature: &dyn Signature, index: usize, count: usize, keywords: bool) -> Raised {
    if !keywords {
        return wrong_count(signature, count);
    }
    let message = format!(
        "{}() missing required argument: '{}'",
        signature.function(),
        signature.name(index)
    );
    raise(ExceptionKind::Type, &message)
}

/// Too few or too many positional arguments.
#[cold]
#[inline(never)]
fn wrong_count(signature: &dyn Signature, given: usize) -> Raised {
    let function = signature.function();
    let most = signature.parameters();
    if most > 0 && signature.positional() == 0 {
        let message = format!(
            "{function}() takes keyword arguments only: {}",
            names(signature)
        );
        return raise(ExceptionKind::Type, &message);
    }
    let least = (0..most).filter(|&i| signature.is_required(i)).count();
    let s = if most == 1 { "" } else { "s" };
    let message = if most == 0 {
        format!("{function}() takes no arguments ({given} given)")
    } else if given < least {
        let missing: Vec<String> = (given..most)
            .filter(|&i| signature.is_required(i))
            .map(|i| format!("'{}'", signature.name(i)))
            .collect();
        format!(
            "{function}() takes {} {least} positional argument{s} ({given} given); missing: {}",
            if least == most { "exactly" } else { "at least" },
            missing.join(", ")
        )
    } else {
        format!(
            "{function}() takes {} {most} positional argument{s} ({given} given)",
            if least == most { "exactly" } else { "at most" },
        )
    };
    raise(ExceptionKind::Type, &message)
}
