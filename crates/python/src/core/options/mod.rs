//! Reading option objects: instances of the option classes of `cuda.core`, or dictionaries with the same keys.

pub mod flags;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

use crate::core::numbers::shown;

/// An option class of Python's, found once.
pub struct OptionClass {
    module: &'static str,
    name: &'static str,
    class: PyOnceLock<Py<PyAny>>,
}

impl OptionClass {
    /// The class `name` of the Python module `module`, which is imported when the class is first needed.
    pub const fn new(module: &'static str, name: &'static str) -> OptionClass {
        OptionClass {
            module,
            name,
            class: PyOnceLock::new(),
        }
    }

    fn find<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        PyModule::import(py, self.module)?.getattr(self.name)
    }

    /// The class itself.
    ///
    /// # Errors
    ///
    /// What importing its module raises.
    #[inline]
    pub fn get<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        self.class
            .get_or_try_init(py, || self.find(py).map(Bound::unbind))
            .map(|class| class.bind(py))
    }
}

/// What a field can hold.
pub trait Value: for<'a, 'py> FromPyObject<'a, 'py> {
    /// What is right, in words.
    const EXPECTED: &'static str;
}

impl Value for bool {
    const EXPECTED: &'static str = "a bool or None";
}

impl Value for u32 {
    const EXPECTED: &'static str = "an int from 0 to 2**32 - 1, or None";
}

impl Value for String {
    const EXPECTED: &'static str = "a str or None";
}

/// Options as Python gave them; nothing given means every field's default.
pub struct Options<'py> {
    class: &'static str,
    object: Option<Bound<'py, PyAny>>,
    /// The fields of an instance of the class itself, which has them all there.
    fields: Option<Bound<'py, PyDict>>,
}

impl<'py> Options<'py> {
    /// Accepts an instance of `class`, a dictionary of its fields, or nothing.
    ///
    /// A dictionary is made into an instance, so that wrong keys are the class's own `TypeError`.
    ///
    /// # Errors
    ///
    /// `TypeError` for anything else, with the name of the function.
    #[inline]
    pub fn accept(
        function: &str,
        class: &OptionClass,
        given: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Options<'py>> {
        let (mut object, mut fields) = (None, None);
        if let Some(given) = given.filter(|given| !given.is_none()) {
            let wanted = class.get(given.py())?;
            if std::ptr::eq(given.get_type_ptr().cast(), wanted.as_ptr()) {
                fields = Options::fields_of(given);
                object = Some(given.clone());
            } else {
                object = Some(Options::convert(function, class, wanted, given)?);
            }
        }
        Ok(Options {
            class: class.name,
            object,
            fields,
        })
    }

    /// Fields that are True, False or None (which counts as false) of an instance of `class` itself; `None` where any of that
    /// is not so, and the fields have to be read one by one.
    #[inline]
    pub fn flags<const N: usize>(
        class: &OptionClass,
        given: &Bound<'py, PyAny>,
        names: [&Bound<'py, PyString>; N],
    ) -> Option<[bool; N]> {
        let py = given.py();
        let wanted = class.class.get(py)?;
        if !std::ptr::eq(given.get_type_ptr().cast(), wanted.as_ptr()) {
            return None;
        }
        let fields = Options::fields_of(given)?;
        if cfg!(Py_GIL_DISABLED) {
            // Another thread could change the dictionary meanwhile.
            return None;
        }
        let names = names.map(|name| name.as_ptr());
        // As many different names as there are fields are all of them.
        // SAFETY: a live dictionary.
        if unsafe { ffi::PyDict_Size(fields.as_ptr()) } != N.cast_signed() {
            return None;
        }
        // SAFETY: only the addresses of the singletons are taken.
        let (yes, no, none) = unsafe { (ffi::Py_True(), ffi::Py_False(), ffi::Py_None()) };
        let (mut flags, mut place) = ([false; N], 0);
        let (mut name, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        for number in 0..N {
            // SAFETY: the dictionary has as many items, and nobody changes it meanwhile, for nothing of Python's runs. Names
            // and values are borrowed, and only their addresses are looked at.
            unsafe {
                ffi::PyDict_Next(
                    fields.as_ptr(),
                    &raw mut place,
                    &raw mut name,
                    &raw mut value,
                )
            };
            // Names in programs are interned as these are, and the fields are in their order, unless somebody changed that.
            let which = if std::ptr::eq(names[number], name) {
                number
            } else {
                names.iter().position(|known| std::ptr::eq(*known, name))?
            };
            flags[which] = if std::ptr::eq(value, yes) {
                true
            } else if std::ptr::eq(value, no) || std::ptr::eq(value, none) {
                false
            } else {
                return None;
            };
        }
        Some(flags)
    }

    /// The dictionary of an instance; reading it takes half the time that reading attributes does.
    #[inline]
    pub fn fields_of(given: &Bound<'py, PyAny>) -> Option<Bound<'py, PyDict>> {
        let py = given.py();
        // SAFETY: a live object; a new reference or null with an exception.
        let dict = unsafe {
            let dict = ffi::PyObject_GenericGetDict(given.as_ptr(), std::ptr::null_mut());
            Bound::from_owned_ptr_or_opt(py, dict)
        };
        let Some(dict) = dict else {
            PyErr::take(py);
            return None;
        };
        dict.cast_into_exact().ok()
    }

    #[cold]
    fn convert(
        function: &str,
        class: &OptionClass,
        wanted: &Bound<'py, PyAny>,
        given: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(fields) = given.cast::<PyDict>() {
            return wanted.call((), Some(fields));
        }
        // Where the module was loaded again, its instances are of another class than before.
        if given.is_instance(wanted)? || given.is_instance(&class.find(given.py())?)? {
            return Ok(given.clone());
        }
        Err(PyTypeError::new_err(format!(
            "{function}() argument 'options' is of type {}; expected {}, a dict of its fields, or None",
            given.get_type().name()?,
            class.name
        )))
    }

    /// A field's value, whatever it is; `None` where nothing was given or the field holds None.
    ///
    /// # Errors
    ///
    /// What reading the attribute raises.
    #[inline]
    pub fn value(&self, field: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(object) = &self.object else {
            return Ok(None);
        };
        let known = match &self.fields {
            Some(fields) => fields.get_item(field)?,
            None => None,
        };
        let value = match known {
            Some(value) => value,
            None => object.getattr(field)?,
        };
        Ok((!value.is_none()).then_some(value))
    }

    /// A field's value; `None` where nothing was given or the field holds None.
    ///
    /// # Errors
    ///
    /// `TypeError` or `ValueError`, which name the class, the field, what it holds and what is right.
    #[inline]
    pub fn get<T: Value>(&self, field: &Bound<'py, PyString>) -> PyResult<Option<T>> {
        match self.value(field)? {
            None => Ok(None),
            Some(value) => match value.extract::<T>() {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(self.wrong(field, &value, T::EXPECTED, error.into())),
            },
        }
    }

    /// The error for a field that holds something else than is `expected`, whose conversion raised `cause`.
    #[cold]
    pub fn wrong(
        &self,
        field: &Bound<'py, PyString>,
        value: &Bound<'py, PyAny>,
        expected: &str,
        cause: PyErr,
    ) -> PyErr {
        let py = value.py();
        let shown = shown(value);
        let text = format!("{}.{field} is {shown}; expected {expected}", self.class);
        if cause.is_instance_of::<PyOverflowError>(py) || cause.is_instance_of::<PyValueError>(py) {
            PyValueError::new_err(text)
        } else {
            PyTypeError::new_err(text)
        }
    }

    /// Whether a field is true as Python sees it; `default` where nothing was given or the field holds None.
    ///
    /// # Errors
    ///
    /// Whatever the value's truth raises.
    pub fn flag(&self, field: &Bound<'py, PyString>, default: bool) -> PyResult<bool> {
        match self.value(field)? {
            None => Ok(default),
            Some(value) => value.is_truthy(),
        }
    }
}
