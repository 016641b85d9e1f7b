//! The attributes of memory pools.

use cupyrite::{MemoryPool, PoolAttribute};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::core::closable::closed;
use crate::core::errors::OrRaise;

/// Lets go of a pool, which may wait for other threads.
pub fn drop_pool(pool: Option<MemoryPool>) {
    // SAFETY: contents of Python objects are dropped by their deallocation, which runs attached.
    let py = unsafe { Python::assume_attached() };
    py.detach(|| drop(pool));
}

/// The attributes of a memory pool, as they are when they are read.
#[pyclass(
    frozen,
    module = "cuda.core._memory._memory_pool",
    name = "_MemPoolAttributes"
)]
pub struct PyMemPoolAttributes {
    /// There until the object goes.
    pool: Option<MemoryPool>,
}

impl PyMemPoolAttributes {
    /// The attributes of a pool.
    pub fn new_of(pool: MemoryPool) -> PyMemPoolAttributes {
        PyMemPoolAttributes { pool: Some(pool) }
    }

    fn number(&self, py: Python<'_>, attribute: PoolAttribute) -> PyResult<u64> {
        let Some(pool) = &self.pool else {
            return Err(closed("DeviceMemoryResource"));
        };
        pool.attribute(attribute).or_raise(py)
    }

    fn flag(&self, py: Python<'_>, attribute: PoolAttribute) -> PyResult<bool> {
        Ok(self.number(py, attribute)? != 0)
    }
}

#[pymethods]
impl PyMemPoolAttributes {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyMemPoolAttributes> {
        Err(PyRuntimeError::new_err(
            "the attributes of a pool come from its memory resource: mr.attributes",
        ))
    }

    /// Whether memory freed in one stream is given to another one that waited for it by an event.
    #[getter]
    fn reuse_follow_event_dependencies(&self, py: Python<'_>) -> PyResult<bool> {
        self.flag(py, PoolAttribute::ReuseFollowEventDependencies)
    }

    /// Whether memory is reused across streams where the free happens to be done already.
    #[getter]
    fn reuse_allow_opportunistic(&self, py: Python<'_>) -> PyResult<bool> {
        self.flag(py, PoolAttribute::ReuseAllowOpportunistic)
    }

    /// Whether the driver may make a stream wait for another one so that memory can be reused.
    #[getter]
    fn reuse_allow_internal_dependencies(&self, py: Python<'_>) -> PyResult<bool> {
        self.flag(py, PoolAttribute::ReuseAllowInternalDependencies)
    }

    /// Bytes that the pool keeps, though unused, when a stream, event or context is waited for.
    #[getter]
    fn release_threshold(&self, py: Python<'_>) -> PyResult<u64> {
        self.number(py, PoolAttribute::ReleaseThreshold)
    }

    /// Bytes of the device's memory that the pool holds.
    #[getter]
    fn reserved_mem_current(&self, py: Python<'_>) -> PyResult<u64> {
        self.number(py, PoolAttribute::ReservedCurrent)
    }

    /// The most bytes that the pool ever held.
    #[getter]
    fn reserved_mem_high(&self, py: Python<'_>) -> PyResult<u64> {
        self.number(py, PoolAttribute::ReservedHigh)
    }

    /// Bytes that are allocated from the pool.
    #[getter]
    fn used_mem_current(&self, py: Python<'_>) -> PyResult<u64> {
        self.number(py, PoolAttribute::UsedCurrent)
    }

    /// The most bytes that were ever allocated from the pool.
    #[getter]
    fn used_mem_high(&self, py: Python<'_>) -> PyResult<u64> {
        self.number(py, PoolAttribute::UsedHigh)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let truth = |value: bool| if value { "True" } else { "False" };
        Ok(format!(
            "_MemPoolAttributes(release_threshold={}, reserved_mem_current={}, reserved_mem_high={}, \
             reuse_allow_internal_dependencies={}, reuse_allow_opportunistic={}, reuse_follow_event_dependencies={}, \
             used_mem_current={}, used_mem_high={})",
            self.release_threshold(py)?,
            self.reserved_mem_current(py)?,
            self.reserved_mem_high(py)?,
            truth(self.reuse_allow_internal_dependencies(py)?),
            truth(self.reuse_allow_opportunistic(py)?),
            truth(self.reuse_follow_event_dependencies(py)?),
            self.used_mem_current(py)?,
            self.used_mem_high(py)?,
        ))
    }
}

impl Drop for PyMemPoolAttributes {
    fn drop(&mut self) {
        drop_pool(self.pool.take());
    }
}
