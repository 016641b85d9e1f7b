//! Reading option objects: instances of the option classes of `cuda.core`, or dictionaries with the same keys.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// Options as Python gave them; nothing given means every field's default.
pub struct Options<'py> {
    class: &'static str,
    object: Option<Bound<'py, PyAny>>,
}

impl<'py> Options<'py> {
    /// Accepts an instance of `class` (of the Python module `module`), a dictionary of its fields, or nothing.
    ///
    /// A dictionary is made into an instance, so that wrong keys are the class's own `TypeError`.
    ///
    /// # Errors
    ///
    /// `TypeError` for anything else, with the name of the function.
    pub fn accept(
        function: &str,
        module: &str,
        class: &'static str,
        given: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Options<'py>> {
        let Some(given) = given.filter(|given| !given.is_none()) else {
            return Ok(Options {
                class,
                object: None,
            });
        };
        let wanted = PyModule::import(given.py(), module)?.getattr(class)?;
        let object = if let Ok(fields) = given.cast::<PyDict>() {
            wanted.call((), Some(fields))?
        } else if given.is_instance(&wanted)? {
            given.clone()
        } else {
            return Err(PyTypeError::new_err(format!(
                "{function}() argument 'options' is of type {}; expected {class}, a dict of its fields, or None",
                given.get_type().name()?
            )));
        };
        Ok(Options {
            class,
            object: Some(object),
        })
    }

    /// A field's value; `None` where nothing was given or the field holds None.
    ///
    /// # Errors
    ///
    /// An exception of the same kind as the conversion's, naming class and field.
    pub fn get<T>(&self, field: &str) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        let Some(object) = &self.object else {
            return Ok(None);
        };
        let value = object.getattr(PyString::intern(object.py(), field))?;
        if value.is_none() {
            return Ok(None);
        }
        value.extract::<T>().map(Some).map_err(|error| {
            let error: PyErr = error.into();
            let py = value.py();
            let shown = value
                .repr()
                .map_or_else(|_| "?".to_owned(), |text| text.to_string());
            let text = format!("{}.{field} is {shown}: {}", self.class, error.value(py));
            if error.is_instance_of::<PyOverflowError>(py)
                || error.is_instance_of::<PyValueError>(py)
            {
                PyValueError::new_err(text)
            } else {
                PyTypeError::new_err(text)
            }
        })
    }

    /// Whether a field is true as Python sees it; `default` where nothing was given or the field holds None.
    ///
    /// # Errors
    ///
    /// Whatever the value's truth raises.
    pub fn flag(&self, field: &str, default: bool) -> PyResult<bool> {
        let Some(object) = &self.object else {
            return Ok(default);
        };
        let value = object.getattr(PyString::intern(object.py(), field))?;
        if value.is_none() {
            Ok(default)
        } else {
            value.is_truthy()
        }
    }
}
