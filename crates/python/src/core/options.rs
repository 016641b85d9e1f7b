//! Reading of option objects: instances of the option classes of `cuda.core`, or dicts of their fields.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

use crate::core::numbers::short_repr;

/// An option class, imported once.
pub struct OptionClass {
    module: &'static str,
    name: &'static str,
    class: PyOnceLock<Py<PyAny>>,
}

impl OptionClass {
    /// The class `name` of the Python module `module`, imported on first use.
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

    /// The class object.
    ///
    /// # Errors
    ///
    /// Errors of the import.
    #[inline]
    pub fn get<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        self.class
            .get_or_try_init(py, || self.find(py).map(Bound::unbind))
            .map(|class| class.bind(py))
    }

    /// Converts an argument to an instance of the class: an instance, or a dict of its fields.
    ///
    /// # Errors
    ///
    /// `TypeError` for other types; errors of the class for unknown fields.
    #[cold]
    pub fn convert<'py>(
        &self,
        function: &str,
        parameter: &str,
        given: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let expected = format!("{}, a dict of its fields, or None", self.name);
        self.convert_or(function, parameter, given, &expected)
    }

    /// As [`OptionClass::convert`]; `expected` says in the message what is accepted.
    fn convert_or<'py>(
        &self,
        function: &str,
        parameter: &str,
        given: &Bound<'py, PyAny>,
        expected: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = given.py();
        let class = self.get(py)?;
        if let Ok(fields) = given.cast::<PyDict>() {
            return class.call((), Some(fields));
        }
        // After a module reload, instances belong to a new class.
        if given.is_instance(class)? || given.is_instance(&self.find(py)?)? {
            return Ok(given.clone());
        }
        Err(PyTypeError::new_err(format!(
            "{function}() argument '{parameter}' is of type {}; expected {expected}",
            given.get_type().name()?
        )))
    }
}

/// The fields of an option object, for functions that read all of them.
pub struct Fields<'a, 'py> {
    object: &'a Bound<'py, PyAny>,
    /// The instance dictionary of an instance of exactly the class.
    known: Option<Bound<'py, PyDict>>,
}

impl<'a, 'py> Fields<'a, 'py> {
    /// The fields of an instance of `class`, or of one that behaves like it.
    pub fn of(class: &OptionClass, object: &'a Bound<'py, PyAny>) -> Fields<'a, 'py> {
        let exact = class
            .class
            .get(object.py())
            .is_some_and(|class| std::ptr::eq(object.get_type_ptr().cast(), class.as_ptr()));
        Fields {
            object,
            known: exact.then(|| Options::fields_of(object)).flatten(),
        }
    }

    /// The value of a field.
    ///
    /// # Errors
    ///
    /// Errors of the attribute access.
    #[inline]
    pub fn get(&self, field: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(known) = &self.known
            && let Some(value) = known.get_item(field)?
        {
            return Ok(value);
        }
        self.object.getattr(field)
    }
}

/// Type of a field.
pub trait Value: for<'a, 'py> FromPyObject<'a, 'py> {
    /// Description of valid values, for messages.
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

/// Options given by a program; absent options select the defaults of all fields.
pub struct Options<'py> {
    class: &'static str,
    object: Option<Bound<'py, PyAny>>,
    /// Instance dictionary of an instance of exactly the class, which contains all fields.
    fields: Option<Bound<'py, PyDict>>,
}

impl<'py> Options<'py> {
    /// Accepts an instance of `class`, a dict of its fields, or None.
    ///
    /// A dict is converted to an instance, so that unknown keys raise the class's own `TypeError`.
    ///
    /// # Errors
    ///
    /// `TypeError` for other types.
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
                object = Some(class.convert(function, "options", given)?);
            }
        }
        Ok(Options {
            class: class.name,
            object,
            fields,
        })
    }

    /// As [`Options::accept`], for a function that requires options.
    ///
    /// # Errors
    ///
    /// `TypeError` for None and other types.
    pub fn require(
        function: &str,
        class: &OptionClass,
        given: &Bound<'py, PyAny>,
    ) -> PyResult<Options<'py>> {
        let expected = format!("{} or a dict of its fields", class.name);
        let object = class.convert_or(function, "options", given, &expected)?;
        Ok(Options {
            class: class.name,
            fields: None,
            object: Some(object),
        })
    }

    /// Fields that are True, False or None (false) of an instance of exactly `class`; otherwise `None`.
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
            // Another thread could modify the dictionary concurrently.
            return None;
        }
        let names = names.map(|name| name.as_ptr());
        // A dictionary of N entries with N distinct known names contains all fields.
        // SAFETY: a live dictionary.
        if unsafe { ffi::PyDict_Size(fields.as_ptr()) } != N.cast_signed() {
            return None;
        }
        // SAFETY: takes the addresses of singletons.
        let (yes, no, none) = unsafe { (ffi::Py_True(), ffi::Py_False(), ffi::Py_None()) };
        let (mut flags, mut place) = ([false; N], 0);
        let (mut name, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        for number in 0..N {
            // SAFETY: the dictionary has this many items and is not modified, since no Python code runs. Names and
            // values are borrowed, and only their addresses are compared.
            unsafe {
                ffi::PyDict_Next(
                    fields.as_ptr(),
                    &raw mut place,
                    &raw mut name,
                    &raw mut value,
                )
            };
            // Attribute names are interned, and fields are normally in declaration order.
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

    /// Instance dictionary. Reading it takes half the time of reading attributes.
    #[inline]
    pub fn fields_of(given: &Bound<'py, PyAny>) -> Option<Bound<'py, PyDict>> {
        let py = given.py();
        // SAFETY: a live object; a new reference, or null with an exception.
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

    /// Value of a field; `None` if no options were given or the field is None.
    ///
    /// # Errors
    ///
    /// Errors of the attribute access.
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

    /// Converted value of a field; `None` if no options were given or the field is None.
    ///
    /// # Errors
    ///
    /// `TypeError` or `ValueError` that names the class, the field, its value and the expected type.
    #[inline]
    pub fn get<T: Value>(&self, field: &Bound<'py, PyString>) -> PyResult<Option<T>> {
        match self.value(field)? {
            None => Ok(None),
            Some(value) => match value.extract::<T>() {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(self.type_error(field, &value, T::EXPECTED, error.into())),
            },
        }
    }

    /// Error for an invalid field value, whose conversion raised `cause`.
    #[cold]
    pub fn type_error(
        &self,
        field: &Bound<'py, PyString>,
        value: &Bound<'py, PyAny>,
        expected: &str,
        cause: PyErr,
    ) -> PyErr {
        let py = value.py();
        let displayed = short_repr(value);
        let text = format!("{}.{field} is {displayed}; expected {expected}", self.class);
        if cause.is_instance_of::<PyOverflowError>(py) || cause.is_instance_of::<PyValueError>(py) {
            PyValueError::new_err(text)
        } else {
            PyTypeError::new_err(text)
        }
    }

    /// Truth value of a field; `default` if no options were given or the field is None.
    ///
    /// # Errors
    ///
    /// Errors of the truth test.
    pub fn flag(&self, field: &Bound<'py, PyString>, default: bool) -> PyResult<bool> {
        match self.value(field)? {
            None => Ok(default),
            Some(value) => value.is_truthy(),
        }
    }
}
