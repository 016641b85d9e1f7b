//! Interprocess sharing of memory: allocation handles of pools and descriptors of buffers.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use cupyrite::{BufferDescriptor, MemoryPool, PoolKind};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};

use crate::core::closable::{Closable, Lent};
use crate::core::errors::OrRaise;
use crate::core::memory::resource::PyMemPool;
use crate::core::numbers::{short_repr, size_argument, whole_number};

/// The Python module with the registry of memory resources and the ``multiprocessing`` reducers.
///
/// # Errors
///
/// Errors of the import.
pub fn module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    PyModule::import(py, intern!(py, "cuda.core._memory._ipc"))
}

/// Exports a new pool: an allocation handle and a UUID.
///
/// # Errors
///
/// Driver errors.
pub fn share(py: Python<'_>, pool: &MemoryPool) -> PyResult<(Py<PyAllocationHandle>, Py<PyAny>)> {
    let uuid = module(py)?.call_method0(intern!(py, "_fresh_uuid"))?;
    let file = py.detach(|| pool.export()).or_raise(py)?;
    let named = Some(uuid.clone().unbind());
    let handle = Py::new(py, PyAllocationHandle::new_of(file, named))?;
    Ok((handle, uuid.unbind()))
}

/// Implements `register` of memory resources.
///
/// # Errors
///
/// `RuntimeError` for a closed resource or one that is not IPC-enabled; `TypeError` for an invalid UUID, `ValueError`
/// for the UUID of another pool.
pub fn register<'py>(
    resource: &Bound<'py, PyMemPool>,
    uuid: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    resource.get().shared_pool(resource.py())?;
    let py = resource.py();
    module(py)?.call_method1(intern!(py, "_register"), (resource, uuid))
}

/// Implements `from_registry` of memory resource classes.
///
/// # Errors
///
/// `RuntimeError` if no resource is registered.
pub fn from_registry<'py>(uuid: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = uuid.py();
    module(py)?.call_method1(intern!(py, "_from_registry"), (uuid,))
}

/// Implements `__reduce__` of memory resources: pickles the UUID, under which the unpickling process must have
/// registered the pool. `class` unpickles it.
///
/// # Errors
///
/// As [`register`].
pub fn reduce<'py>(
    resource: &Bound<'py, PyMemPool>,
    class: &Bound<'py, PyType>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = resource.py();
    resource.get().shared_pool(py)?;
    let find = class.getattr(intern!(py, "from_registry"))?;
    Ok((find, (resource.get().uuid(py),))
        .into_pyobject(py)?
        .into_any())
}

/// Implements `from_allocation_handle` of `class`, which is `base` or a subclass: returns the resource registered for
/// the handle's pool, or a new one. `name` is the name of the base class in messages.
///
/// # Errors
///
/// `TypeError` if the pool is registered with another class; the errors of [`accept_handle`]; driver errors.
pub fn import<'py>(
    class: &Bound<'py, PyType>,
    base: &Bound<'py, PyType>,
    name: &'static str,
    kind: PoolKind,
    given: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    if let Some(known) = registered(given, class)? {
        return Ok(known);
    }
    let handle = accept_handle(given, &format!("{name}.from_allocation_handle"))?;
    let make = || {
        let file = handle.get().file(py)?;
        let pool = py
            .detach(|| MemoryPool::import_with_kind(kind, file.as_fd()))
            .or_raise(py)?;
        let pool = Lent::new(py, pool);
        let created = class.call_method1(intern!(py, "__new__"), (class,))?;
        if !created.is_instance(base)? {
            return Err(PyTypeError::new_err(format!(
                "{}.__new__() returned a {}; expected a {name}",
                class.name()?,
                created.get_type().name()?
            )));
        }
        let uuid = handle.get().uuid_of(py);
        let shared = Some(handle.clone().unbind());
        created
            .cast::<PyMemPool>()?
            .get()
            .fill(py, pool.clone(), name, shared, uuid);
        Ok(created)
    };
    let Some(uuid) = handle.get().uuid_of(py) else {
        return make();
    };
    // Serializes imports of the same handle: the driver may return one pool handle for several imports, and dropping
    // the second resource would then destroy the pool of the first.
    let lock = module(py)?.getattr(intern!(py, "_lock"))?;
    lock.call_method0(intern!(py, "acquire"))?;
    let created = match registered(given, class) {
        Ok(None) => {
            make().and_then(|created| register(created.cast::<PyMemPool>()?, uuid.bind(py)))
        }
        Ok(Some(known)) => Ok(known),
        Err(error) => Err(error),
    };
    lock.call_method0(intern!(py, "release"))?;
    created
}

/// Whether a resource is IPC-enabled.
pub fn is_shared(py: Python<'_>, resource: Option<&Py<PyAny>>) -> bool {
    resource.is_some_and(|r| {
        r.bind(py)
            .cast::<PyMemPool>()
            .is_ok_and(|pool| pool.get().shared_pool(py).is_ok())
    })
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

/// The resource registered for a handle's pool.
///
/// # Errors
///
/// `TypeError` if its class differs; `RuntimeError` for a closed handle.
fn registered<'py>(
    handle: &Bound<'py, PyAny>,
    class: &Bound<'py, PyType>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = handle.py();
    let Ok(handle) = handle.cast::<PyAllocationHandle>() else {
        return Ok(None);
    };
    handle.get().file(py)?;
    let Some(uuid) = handle.get().uuid_of(py) else {
        return Ok(None);
    };
    let known = module(py)?.call_method1(intern!(py, "_find"), (uuid,))?;
    if known.is_none() {
        return Ok(None);
    }
    if !known.is_instance(class)? {
        return Err(PyTypeError::new_err(format!(
            "the pool of the handle is registered as a {}, not as a {}",
            known.get_type().name()?,
            class.name()?
        )));
    }
    Ok(Some(known))
}

/// Converts an argument to a handle; duplicates a file descriptor given as an int.
///
/// # Errors
///
/// `TypeError` and `ValueError` for arguments of the wrong type, `OSError` for an invalid file descriptor.
fn accept_handle<'py>(
    given: &Bound<'py, PyAny>,
    function: &str,
) -> PyResult<Bound<'py, PyAllocationHandle>> {
    let py = given.py();
    if let Ok(handle) = given.cast::<PyAllocationHandle>() {
        return Ok(handle.clone());
    }
    let bad = || {
        PyOSError::new_err((
            libc::EBADF,
            format!("{} is not a file descriptor", short_repr(given)),
        ))
    };
    if given.is_none() {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument 'alloc_handle' is None; expected an IPCAllocationHandle or a file descriptor"
        )));
    }
    let Some(number) = whole_number(given)? else {
        let text = format!(
            "{function}() argument 'alloc_handle' is of type {}; expected an IPCAllocationHandle or a file descriptor",
            given.get_type().name()?
        );
        // Text could be parsed as a number.
        return Err(if given.is_instance_of::<PyString>() {
            PyValueError::new_err(text)
        } else {
            PyTypeError::new_err(text)
        });
    };
    let number: i32 = number.extract().map_err(|_| bad())?;
    // SAFETY: queries flags; the system reports an invalid descriptor.
    if number < 0 || unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(bad());
    }
    // SAFETY: open as checked above; if the caller closes it concurrently, duplication fails.
    let theirs = unsafe { BorrowedFd::borrow_raw(number) };
    let file = theirs.try_clone_to_owned()?;
    Bound::new(py, PyAllocationHandle::new_of(file, None))
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
