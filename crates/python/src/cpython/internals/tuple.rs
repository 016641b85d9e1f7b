//! Items and lengths of tuples, read in place, for loops over hundreds of kernel arguments: the limited API has one
//! function call an item.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::cpython;
use crate::cpython::internals::{Trick, enabled};
use crate::cpython::{Obj, Owned, as_i64_if_fits};

/// Bytes from a tuple to its items, once [`check`] has found them.
static ITEMS: AtomicUsize = AtomicUsize::new(0);

/// Address of a tuple's items; `None` where the layout is not known. The items live as long as the tuple.
#[inline(always)]
pub fn items(tuple: Obj<'_>) -> Option<*const *mut ffi::PyObject> {
    enabled(Trick::Tuples).then(|| {
        let offset = ITEMS.load(Ordering::Relaxed);
        tuple
            .ptr()
            .cast::<u8>()
            .cast_const()
            .wrapping_add(offset)
            .cast()
    })
}

/// Number of items of a tuple, where [`items`] knows the layout.
#[inline(always)]
pub fn known_len(tuple: Obj<'_>) -> usize {
    // SAFETY: a live object of variable size, whose length follows its head.
    unsafe {
        tuple
            .ptr()
            .byte_add(size_of::<ffi::PyObject>())
            .cast::<usize>()
            .read()
    }
}

/// Finds the items of a tuple of three: they follow the fixed part, whose size the type tells.
pub fn check(_attached: Python<'_>) -> bool {
    let find = || {
        // SAFETY: the type is immortal, and a live object.
        unsafe {
            let class = (&raw mut ffi::PyTuple_Type).cast::<ffi::PyObject>();
            let size = Obj::new(class).attribute(c"__basicsize__").ok()??;
            let size = usize::try_from(as_i64_if_fits(size.obj())?).ok()?;
            // The tuple below has 48 bytes at least: three items from offset 32 at most lie within it and its fixed part.
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
