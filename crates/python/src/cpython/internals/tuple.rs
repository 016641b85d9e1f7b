//! Reads the items and lengths of tuples in place, for loops over hundreds of kernel arguments: the limited API needs one
//! function call for each item.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::cpython;
use crate::cpython::internals::{PrivateLayout, enabled};
use crate::cpython::{Obj, Owned, as_i64_if_fits};

/// Offset of the items in a tuple, set by [`check`]; 0 if unknown.
static ITEMS: AtomicUsize = AtomicUsize::new(0);

/// Address of a tuple's items; `None` if the layout is unknown. The items live as long as the tuple.
#[inline(always)]
pub fn items(tuple: Obj<'_>) -> Option<*const *mut ffi::PyObject> {
    enabled(PrivateLayout::Tuples).then(|| {
        let offset = ITEMS.load(Ordering::Relaxed);
        tuple
            .ptr()
            .cast::<u8>()
            .cast_const()
            .wrapping_add(offset)
            .cast()
    })
}

/// Number of items of a tuple; valid only if [`items`] returns an address.
#[inline(always)]
pub fn known_len(tuple: Obj<'_>) -> usize {
    // SAFETY: callers pass a live tuple; `check` has verified that its length follows the object head.
    unsafe {
        tuple
            .ptr()
            .byte_add(size_of::<ffi::PyObject>())
            .cast::<usize>()
            .read()
    }
}

/// Determines the offset of the items with a tuple of three: they follow the fixed part, whose size is `__basicsize__`.
pub fn check(_attached: Python<'_>) -> bool {
    let find = || {
        // SAFETY: the tuple type and `None` live as long as the interpreter, and the thread is attached. The size
        // check keeps the read within the new tuple.
        unsafe {
            let class = (&raw mut ffi::PyTuple_Type).cast::<ffi::PyObject>();
            let size = Obj::new(class).attribute(c"__basicsize__").ok()??;
            let size = usize::try_from(as_i64_if_fits(size.obj())?).ok()?;
            // The tuple below has at least 48 bytes, so three items at an offset of at most 32 lie within it and its fixed
            // part.
            if !(24..=32).contains(&size) || size % size_of::<usize>() != 0 {
                return None;
            }
            let items = [ffi::Py_None(), class, ffi::Py_None()];
            let tuple = ffi::PyTuple_Pack(3, items[0], items[1], items[2]);
            let tuple = Owned::take(tuple).ok()?;
            let found = tuple.ptr().cast::<u8>().add(size);
            let found = found.cast::<[*mut ffi::PyObject; 3]>().read();
            (found == items && known_len(tuple.obj()) == 3).then_some(size)
        }
    };
    let found = find();
    if found.is_none() {
        cpython::clear();
    }
    ITEMS.store(found.unwrap_or_default(), Ordering::Relaxed);
    found.is_some()
}
