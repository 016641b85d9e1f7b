//! Required keyword-only arguments.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A required keyword-only argument, declared with the default `KeywordOnly(None)`.
///
/// `PyO3` calls a missing one a "keyword argument", as if it could be passed by position.
pub struct KeywordOnly<'a, 'py>(pub Option<Borrowed<'a, 'py, PyAny>>);

impl<'a, 'py> FromPyObject<'a, 'py> for KeywordOnly<'a, 'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<KeywordOnly<'a, 'py>> {
        Ok(KeywordOnly(Some(given)))
    }
}

impl<'py> KeywordOnly<'_, 'py> {
    /// The argument.
    ///
    /// # Errors
    ///
    /// `TypeError` with the text of a Python function if it is missing.
    pub fn get(&self, function: &str, name: &str) -> PyResult<&Bound<'py, PyAny>> {
        match &self.0 {
            Some(given) => Ok(given),
            None => Err(PyTypeError::new_err(format!(
                "{function}() missing 1 required keyword-only argument: '{name}'"
            ))),
        }
    }
}
