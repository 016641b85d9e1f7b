//! Attributes of memory pools.

use cupyrite::{MemoryPool, PoolAttribute};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::core::closable::closed;
use crate::core::errors::OrRaise;

/// Drops a pool detached, since that may wait for other threads.
pub fn drop_pool(pool: Option<MemoryPool>) {
    // SAFETY: the contents of Python objects are dropped by their deallocator, which runs attached.
    let py = unsafe { Python::assume_attached() };
    py.detach(|| drop(pool));
}

/// Attributes of a memory pool, read from the driver on each access.
#[pyclass(
    frozen,
    module = "cuda.core._memory._memory_pool",
    name = "_MemPoolAttributes"
)]
pub struct PyMemPoolAttributes {
    /// `Some` until the object is dropped.
    pool: Option<MemoryPool>,
}

impl PyMemPoolAttributes {
    /// Creates the attributes object of a pool.
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
            "_MemPoolAttributes cannot be instantiated; use mr.attributes of a memory resource",
        ))
    }

    /// Whether memory freed in one stream is reused in another stream that waited for it by an event.
    #[getter]
    fn reuse_follow_event_dependencies(&self, py: Python<'_>) -> PyResult<bool> {
        self.flag(py, PoolAttribute::ReuseFollowEventDependencies)
    }

    /// Whether memory is reused across streams if its deallocation has already completed.
    #[getter]
    fn reuse_allow_opportunistic(&self, py: Python<'_>) -> PyResult<bool> {
        self.flag(py, PoolAttribute::ReuseAllowOpportunistic)
    }

    /// Whether the driver may insert dependencies between streams to reuse memory.
    #[getter]
    fn reuse_allow_internal_dependencies(&self, py: Python<'_>) -> PyResult<bool> {
        self.flag(py, PoolAttribute::ReuseAllowInternalDependencies)
    }

    /// Bytes of unused memory that the pool retains at synchronization.
    #[getter]
    fn release_threshold(&self, py: Python<'_>) -> PyResult<u64> {
        self.number(py, PoolAttribute::ReleaseThreshold)
    }

    /// Bytes of memory reserved by the pool.
    #[getter]
    fn reserved_mem_current(&self, py: Python<'_>) -> PyResult<u64> {
        self.number(py, PoolAttribute::ReservedCurrent)
    }

    /// High watermark of reserved bytes.
    #[getter]
    fn reserved_mem_high(&self, py: Python<'_>) -> PyResult<u64> {
        self.number(py, PoolAttribute::ReservedHigh)
    }

    /// Bytes allocated from the pool.
    #[getter]
    fn used_mem_current(&self, py: Python<'_>) -> PyResult<u64> {
        self.number(py, PoolAttribute::UsedCurrent)
    }

    /// High watermark of allocated bytes.
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
