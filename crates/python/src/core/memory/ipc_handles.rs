//! Allocation handles of pools and descriptors of buffers for interprocess sharing.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use cupyrite::BufferDescriptor;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};

use crate::core::closable::Closable;
use crate::core::numbers::size_argument;

/// The Python module with the registry of memory resources and the ``multiprocessing`` reducers.
///
/// # Errors
///
/// Errors of the import.
pub fn module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    PyModule::import(py, intern!(py, "cuda.core._memory._ipc"))
}

/// Handle with which another process imports a memory pool: a file descriptor and the pool's UUID.
///
/// It is the ``allocation_handle`` of a memory resource. ``multiprocessing`` can send it; plain pickling cannot, since
/// a file descriptor is local to its process.
#[pyclass(
    frozen,
    module = "cuda.core._memory._ipc",
    name = "IPCAllocationHandle"
)]
pub struct PyAllocationHandle {
    file: Closable<Arc<OwnedFd>>,
    uuid: Option<Py<PyAny>>,
}

impl PyAllocationHandle {
    /// Creates a handle that owns its file descriptor.
    pub fn new_of(file: OwnedFd, uuid: Option<Py<PyAny>>) -> PyAllocationHandle {
        PyAllocationHandle {
            file: Closable::new(Arc::new(file)),
            uuid,
        }
    }

    /// The file descriptor, which stays open while the result is alive.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a closed handle.
    pub fn file(&self, py: Python<'_>) -> PyResult<Arc<OwnedFd>> {
        self.file.get(py, "IPCAllocationHandle")
    }

    /// UUID of the pool.
    pub fn uuid_of(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.uuid.as_ref().map(|uuid| uuid.clone_ref(py))
    }
}

#[pymethods]
impl PyAllocationHandle {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyAllocationHandle> {
        Err(PyRuntimeError::new_err(
            "IPCAllocationHandle cannot be instantiated; use the allocation_handle of an IPC-enabled memory resource",
        ))
    }

    /// Creates a handle that owns this file descriptor; called by ``multiprocessing``.
    #[classmethod]
    fn _restore(
        _class: &Bound<'_, PyType>,
        fd: &Bound<'_, PyAny>,
        uuid: Option<Py<PyAny>>,
    ) -> PyResult<PyAllocationHandle> {
        use std::os::fd::FromRawFd;
        let number: i32 = fd.extract()?;
        // SAFETY: queries flags; the system reports an invalid descriptor.
        if number < 0 || unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
            return Err(PyOSError::new_err((
                libc::EBADF,
                format!("{number} is not a file descriptor"),
            )));
        }
        // SAFETY: `multiprocessing` duplicated the descriptor for this process and transfers ownership.
        let file = unsafe { OwnedFd::from_raw_fd(number) };
        Ok(PyAllocationHandle::new_of(file, uuid))
    }

    /// File descriptor; -1 if the handle was closed.
    #[getter]
    fn handle(&self, py: Python<'_>) -> i32 {
        self.file.read(py, |file| file.as_raw_fd()).unwrap_or(-1)
    }

    /// UUID of the pool; None if unknown.
    #[getter]
    fn uuid(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.uuid_of(py)
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.file.is_closed(py)
    }

    /// Closes the file descriptor. Pools imported with it stay valid; the memory resource of this handle can no longer
    /// be sent to other processes. Further calls do nothing.
    fn close(&self, py: Python<'_>) {
        drop(self.file.close(py));
    }

    fn __int__(&self, py: Python<'_>) -> PyResult<i32> {
        let number = self.file.read(py, |file| file.as_raw_fd());
        number.ok_or_else(|| {
            PyValueError::new_err("this IPCAllocationHandle was closed and has no file descriptor")
        })
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "IPCAllocationHandle cannot be pickled; send it to another process with multiprocessing",
        ))
    }
}

/// Descriptor with which another process imports a :class:`Buffer` of an IPC-enabled memory resource. It comes from
/// :attr:`Buffer.ipc_descriptor` and can be pickled.
#[pyclass(
    frozen,
    module = "cuda.core._memory._ipc",
    name = "IPCBufferDescriptor"
)]
pub struct PyBufferDescriptor {
    bytes: Vec<u8>,
    size: usize,
}

impl PyBufferDescriptor {
    /// Creates the Python object of a descriptor.
    pub fn new_of(descriptor: BufferDescriptor) -> PyBufferDescriptor {
        PyBufferDescriptor {
            bytes: descriptor.bytes.to_vec(),
            size: descriptor.size,
        }
    }

    /// The descriptor.
    ///
    /// # Errors
    ///
    /// `ValueError` if it is incomplete.
    pub fn described(&self) -> PyResult<BufferDescriptor> {
        let Some(bytes) = self.bytes.first_chunk::<64>() else {
            return Err(PyValueError::new_err(format!(
                "IPCBufferDescriptor is corrupt: expected 64 bytes, got {}",
                self.bytes.len()
            )));
        };
        Ok(BufferDescriptor {
            bytes: *bytes,
            size: self.size,
        })
    }
}

#[pymethods]
impl PyBufferDescriptor {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyBufferDescriptor> {
        Err(PyRuntimeError::new_err(
            "IPCBufferDescriptor cannot be instantiated; use Buffer.ipc_descriptor",
        ))
    }

    /// Unpickles a descriptor.
    #[classmethod]
    fn _init(
        _class: &Bound<'_, PyType>,
        reserved: &Bound<'_, PyBytes>,
        size: &Bound<'_, PyAny>,
    ) -> PyResult<PyBufferDescriptor> {
        Ok(PyBufferDescriptor {
            bytes: reserved.as_bytes().to_vec(),
            size: size_argument(size, "IPCBufferDescriptor._init")?,
        })
    }

    /// Size of the buffer in bytes.
    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let make = py
            .get_type::<PyBufferDescriptor>()
            .getattr(intern!(py, "_init"))?;
        let arguments = (PyBytes::new(py, &slf.get().bytes), slf.get().size);
        Ok((make, arguments).into_pyobject(py)?.into_any())
    }
}

/// Adds the classes.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyAllocationHandle>()?;
    core.add_class::<PyBufferDescriptor>()
}
