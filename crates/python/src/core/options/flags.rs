//! Fast reading of option objects whose fields are all flags.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::core::options::{OptionClass, Options};
use crate::cpython::internals::{Trick, enabled, split_dict};

/// Location of the values of an option class's `N` fields in its instances.
///
/// Relies on split-table dictionaries of CPython: the instance dictionaries of one class share a keys table, which only
/// grows, and each has its own values array in the order of that table. A dictionary with the keys table that
/// [`FlagPlaces::find`] examined therefore has the values at the same indices. A dictionary that CPython has unshared,
/// as on the removal of a key, has another table. The values are read on every call; dictionary lookups would cost
/// several times as much as the event call without the driver.
///
/// In Python versions on which this was not checked, and without a GIL, nothing is found and every call uses lookups.
pub struct FlagPlaces<const N: usize> {
    asked: AtomicBool,
    /// The class, once the layout is known; null before.
    class: AtomicPtr<ffi::PyTypeObject>,
    /// The shared keys table.
    names: AtomicPtr<c_void>,
}

impl<const N: usize> FlagPlaces<N> {
    /// The initial state: layout unknown.
    pub const fn new() -> FlagPlaces<N> {
        FlagPlaces {
            asked: AtomicBool::new(false),
            class: AtomicPtr::new(ptr::null_mut()),
            names: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Values of the fields of an instance of the class itself, if each is True, False or None (false); otherwise
    /// `None`.
    #[inline(always)]
    pub fn read(&self, given: &Bound<'_, PyAny>) -> Option<[bool; N]> {
        // Acquire: pairs with the store in `find`, so that the keys table is visible.
        if !ptr::eq(given.get_type_ptr(), self.class.load(Ordering::Acquire)) {
            return None;
        }
        let fields = Options::fields_of(given)?;
        // SAFETY: `find` has checked the dictionary layout of this Python version before storing the class. No Python
        // code runs here, so the values stay valid; only their addresses are compared.
        let values = unsafe {
            let (names, row) = split_dict::parts(&fields);
            if ptr::eq(names, self.names.load(Ordering::Relaxed)) && !row.is_null() {
                row.cast::<[_; N]>().read()
            } else {
                [ptr::null_mut(); N]
            }
        };
        // Before the comparison: the instance keeps its dictionary alive.
        drop(fields);
        // SAFETY: takes the addresses of singletons.
        let (yes, no, none) = unsafe { (ffi::Py_True(), ffi::Py_False(), ffi::Py_None()) };
        let mut flags = [false; N];
        for (value, flag) in values.into_iter().zip(&mut flags) {
            *flag = ptr::eq(value, yes);
            if !*flag && !ptr::eq(value, no) && !ptr::eq(value, none) {
                // Null: the field was deleted.
                return None;
            }
        }
        Some(flags)
    }

    /// Determines the layout, once, for later calls of [`FlagPlaces::read`], by examining a new instance.
    #[cold]
    pub fn find(&self, class: &OptionClass, names: [&Bound<'_, PyString>; N]) {
        let py = match names.first() {
            Some(name) => name.py(),
            None => return,
        };
        if self.asked.swap(true, Ordering::Relaxed) || !enabled(Trick::Dicts) {
            return;
        }
        // An error here is raised again by the lookups.
        if let Ok(class) = class.get(py)
            && let Ok(Some(table)) = Self::try_out(class, names)
        {
            self.names.store(table, Ordering::Relaxed);
            self.class.store(class.as_ptr().cast(), Ordering::Release);
        }
    }

    /// The keys table of an instance whose values are at the expected indices.
    fn try_out(
        class: &Bound<'_, PyAny>,
        names: [&Bound<'_, PyString>; N],
    ) -> PyResult<Option<*mut c_void>> {
        let py = class.py();
        let instance = class.call_method1(intern!(py, "__new__"), (class,))?;
        let Some(fields) = Options::fields_of(&instance) else {
            return Ok(None);
        };
        // Distinct objects that exist nowhere else.
        let wanted = names.map(|_| PyList::empty(py));
        for (name, value) in names.iter().zip(&wanted) {
            fields.set_item(name, value)?;
        }
        // SAFETY: the dictionary has the expected size, and these Python versions this layout. A values array has room
        // for all items.
        let (table, found) = unsafe {
            let (table, values) = split_dict::parts(&fields);
            if table.is_null() || values.is_null() {
                return Ok(None);
            }
            let is = |place: usize| ptr::eq(values.add(place).read(), wanted[place].as_ptr());
            (table, (0..N).all(is))
        };
        if !found {
            return Ok(None);
        }
        for name in names {
            fields.set_item(name, py.None())?;
        }
        // Leaked, so that no other keys table can get the address of this one.
        let _ = ManuallyDrop::new((instance, fields));
        Ok(Some(table))
    }
}
