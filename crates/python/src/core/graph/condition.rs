//! `GraphCondition`: the values that conditional nodes test.

use cupyrite::graph::Condition;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;

use crate::core::context::handle_object;
use crate::core::numbers::short_repr;
use crate::generated::driver_types::class;

/// Converts the default value of a condition.
///
/// # Errors
///
/// `TypeError` or `OverflowError`.
pub fn condition_default(
    given: Option<&Bound<'_, PyAny>>,
    function: &str,
) -> PyResult<Option<u32>> {
    let Some(given) = given.filter(|given| !given.is_none()) else {
        return Ok(None);
    };
    given.extract::<u32>().map(Some).map_err(|error: PyErr| {
        let text = format!(
            "{function}() argument 'default_value' is {}; expected an int from 0 to 2**32-1, or None",
            short_repr(given)
        );
        if error.is_instance_of::<PyOverflowError>(given.py()) {
            PyOverflowError::new_err(text)
        } else {
            PyTypeError::new_err(text)
        }
    })
}

/// A value that device code sets with ``cudaGraphSetConditional`` and that conditional nodes test.
///
/// Conditions come from :meth:`GraphBuilder.create_condition` and :meth:`GraphDefinition.create_condition`. As a kernel
/// argument, a condition is its handle.
#[doc = example!("cuda.core.graph.GraphCondition")]
#[pyclass(
    frozen,
    weakref,
    module = "cuda.core.graph._graph_definition",
    name = "GraphCondition"
)]
pub struct PyGraphCondition {
    /// The condition.
    pub condition: Condition,
}

#[pymethods]
impl PyGraphCondition {
    #[new]
    fn new() -> PyGraphCondition {
        PyGraphCondition {
            condition: Condition::from_handle(0),
        }
    }

    /// Driver handle, a ``cuda.bindings.driver.CUgraphConditionalHandle``.
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let handle = usize::try_from(self.condition.handle())?;
        handle_object(py, class::CUgraphConditionalHandle, handle)
    }

    fn __int__(&self) -> u64 {
        self.condition.handle()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<PyGraphCondition>()
            .is_ok_and(|other| other.get().condition == self.condition)
    }

    fn __hash__(&self) -> u64 {
        self.condition.handle()
    }

    fn __repr__(&self) -> String {
        format!("<GraphCondition handle={:#x}>", self.condition.handle())
    }
}

/// Converts an argument to a condition.
///
/// # Errors
///
/// `TypeError`.
pub fn accept_condition(given: &Bound<'_, PyAny>, function: &str) -> PyResult<Condition> {
    match given.cast::<PyGraphCondition>() {
        Ok(condition) => Ok(condition.get().condition),
        Err(_) => Err(PyTypeError::new_err(format!(
            "{function}() argument 'condition' is of type {}; expected a GraphCondition from create_condition()",
            given.get_type().name()?
        ))),
    }
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyGraphCondition>()
}
