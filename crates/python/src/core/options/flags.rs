//! Reading options that are all flags, in the inner loops of programs.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::core::options::{OptionClass, Options};
use crate::cpython;

/// Where the instances of an option class keep the values of their `N` fields.
///
/// The dictionaries of the instances of one class share the table of their names, to which names are only ever added, and
/// have a row of values each, in the order of that table. So a dictionary with the very table that [`FlagPlaces::find`] has
/// tried out has the values at the places that it has found, whatever was done to the dictionary since: one that Python has
/// given a table of its own, as it does when names are taken out, has another address there. The values are read each time;
/// to have Python look them up costs several times what an event costs beside the driver's calls.
///
/// Nothing is found, and Python is asked each time, in versions that this was not tried with, and without a GIL.
pub struct FlagPlaces<const N: usize> {
    asked: AtomicBool,
    /// The class, once the places are known; null before.
    class: AtomicPtr<ffi::PyTypeObject>,
    /// The table of names.
    names: AtomicPtr<c_void>,
}

const WORD: usize = size_of::<usize>();
/// The parts of a dictionary: its head, the number of its items, a word for who watches it, the table of names, and the row
/// of values, null where the dictionary shares nothing.
const NAMES: usize = size_of::<ffi::PyObject>() + 2 * WORD;
const VALUES: usize = NAMES + WORD;
const SIZE: usize = VALUES + WORD;

/// Since Python 3.13 a row of values begins with a word about itself.
#[inline(always)]
fn first_value() -> usize {
    // SAFETY: a constant of the interpreter's.
    usize::from(unsafe { ffi::Py_Version } >= 0x030D_0000)
}

impl<const N: usize> FlagPlaces<N> {
    /// Nothing is known yet.
    pub const fn new() -> FlagPlaces<N> {
        FlagPlaces {
            asked: AtomicBool::new(false),
            class: AtomicPtr::new(ptr::null_mut()),
            names: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The fields of an instance of the class itself, where each is True, False or None, which counts as false; `None` where
    /// that is not so, or not known.
    #[inline(always)]
    pub fn read(&self, given: &Bound<'_, PyAny>) -> Option<[bool; N]> {
        // Acquire, so that the table of names is there as well.
        if !ptr::eq(given.get_type_ptr(), self.class.load(Ordering::Acquire)) {
            return None;
        }
        let fields = Options::fields_of(given)?;
        // SAFETY: a dictionary of a version that has these parts, or else no class would have been put there. Nothing of
        // Python's runs while this thread looks at it, so that the values stay; only their addresses are looked at.
        let values = unsafe {
            let (names, row) = parts(&fields);
            if ptr::eq(names, self.names.load(Ordering::Relaxed)) && !row.is_null() {
                row.add(first_value()).cast::<[_; N]>().read()
            } else {
                [ptr::null_mut(); N]
            }
        };
        // Before the values are compared: the instance keeps its dictionary.
        drop(fields);
        // SAFETY: only the addresses of the singletons are taken.
        let (yes, no, none) = unsafe { (ffi::Py_True(), ffi::Py_False(), ffi::Py_None()) };
        let mut flags = [false; N];
        for (value, flag) in values.into_iter().zip(&mut flags) {
            *flag = ptr::eq(value, yes);
            if !*flag && !ptr::eq(value, no) && !ptr::eq(value, none) {
                // Null where the field was taken out.
                return None;
            }
        }
        Some(flags)
    }

    /// Finds the places, once, for later calls of [`FlagPlaces::read`]: an instance is made and looked at.
    #[cold]
    pub fn find(&self, class: &OptionClass, names: [&Bound<'_, PyString>; N]) {
        let py = match names.first() {
            Some(name) => name.py(),
            None => return,
        };
        if self.asked.swap(true, Ordering::Relaxed) || !cpython::tuples_known_before(0x030E_0000) {
            return;
        }
        // What fails here fails again, and is told, where Python is asked for the fields.
        if let Ok(class) = class.get(py)
            && let Ok(Some(table)) = Self::try_out(class, names)
        {
            self.names.store(table, Ordering::Relaxed);
            self.class.store(class.as_ptr().cast(), Ordering::Release);
        }
    }

    /// The table of names of an instance whose values are found where they were expected.
    fn try_out(
        class: &Bound<'_, PyAny>,
        names: [&Bound<'_, PyString>; N],
    ) -> PyResult<Option<*mut c_void>> {
        let py = class.py();
        let size = py
            .get_type::<PyDict>()
            .getattr(intern!(py, "__basicsize__"))?;
        if size.extract::<usize>()? != SIZE {
            return Ok(None);
        }
        let instance = class.call_method1(intern!(py, "__new__"), (class,))?;
        let Some(fields) = Options::fields_of(&instance) else {
            return Ok(None);
        };
        // Different objects, none of which is anywhere else.
        let wanted = names.map(|_| PyList::empty(py));
        for (name, value) in names.iter().zip(&wanted) {
            fields.set_item(name, value)?;
        }
        // SAFETY: a dictionary has that size, and these versions have these parts in it. A row of values has room for as many
        // as there are items.
        let (table, found) = unsafe {
            let (table, values) = parts(&fields);
            if table.is_null() || values.is_null() {
                return Ok(None);
            }
            let values = values.add(first_value());
            let is = |place: usize| ptr::eq(values.add(place).read(), wanted[place].as_ptr());
            (table, (0..N).all(is))
        };
        if !found {
            return Ok(None);
        }
        for name in names {
            fields.set_item(name, py.None())?;
        }
        // Kept, so that no other table gets the address of this one.
        let _ = ManuallyDrop::new((instance, fields));
        Ok(Some(table))
    }
}

/// The table of names of a dictionary and its row of values.
///
/// # Safety
///
/// The interpreter's dictionaries have them there.
#[inline(always)]
unsafe fn parts(fields: &Bound<'_, PyDict>) -> (*mut c_void, *const *mut ffi::PyObject) {
    let fields = fields.as_ptr();
    // SAFETY: the caller's promise; a live dictionary.
    unsafe {
        (
            fields.byte_add(NAMES).cast::<*mut c_void>().read(),
            fields
                .byte_add(VALUES)
                .cast::<*const *mut ffi::PyObject>()
                .read(),
        )
    }
}
