//! What processes tell each other about memory: handles of pools and descriptors of buffers.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use cupyrite::{BufferDescriptor, MemoryPool, PoolKind};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};

use crate::core::closable::{Lent, Slot};
use crate::core::errors::OrRaise;
use crate::core::memory::resource::PyMemPool;
use crate::core::numbers::{shown, size_argument, whole_number};

/// Python's part of this: the registry of memory resources, and how ``multiprocessing`` pickles.
///
/// # Errors
///
/// What importing it raises.
pub fn module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    PyModule::import(py, intern!(py, "cuda.core._memory._ipc"))
}

/// What other processes know a new pool by: the handle to import it with, and its UUID.
///
/// # Errors
///
/// What the driver says.
pub fn share(py: Python<'_>, pool: &MemoryPool) -> PyResult<(Py<PyAllocationHandle>, Py<PyAny>)> {
    let uuid = module(py)?.call_method0(intern!(py, "_fresh_uuid"))?;
    let file = py.detach(|| pool.export()).or_raise(py)?;
    let named = Some(uuid.clone().unbind());
    let handle = Py::new(py, PyAllocationHandle::new_of(file, named))?;
    Ok((handle, uuid.unbind()))
}

/// `register` of a memory resource.
///
/// # Errors
///
/// `RuntimeError` where other processes cannot use it, or it was closed; `TypeError` for what is no UUID, `ValueError` for
/// that of another pool.
pub fn register<'py>(
    resource: &Bound<'py, PyMemPool>,
    uuid: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    resource.get().shared_pool(resource.py())?;
    let py = resource.py();
    module(py)?.call_method1(intern!(py, "_register"), (resource, uuid))
}

/// `from_registry` of the classes of memory resources.
///
/// # Errors
///
/// `RuntimeError` where there is none.
pub fn from_registry<'py>(uuid: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = uuid.py();
    module(py)?.call_method1(intern!(py, "_from_registry"), (uuid,))
}

/// `__reduce__` of memory resources: the UUID, by which the process that loads it has to know the pool. `class` is what
/// unpickles it.
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

/// `from_allocation_handle` of `class`, which is `base` or derived from it: the resource that is registered for the pool of
/// the handle, or a new one. `name` is what the base is called in messages.
///
/// # Errors
///
/// `TypeError` where the pool is known as a resource of another class; what [`accept_handle`] raises; what the driver says.
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
        let made = class.call_method1(intern!(py, "__new__"), (class,))?;
        if !made.is_instance(base)? {
            return Err(PyTypeError::new_err(format!(
                "{}.__new__() returned a {}; expected a {name}",
                class.name()?,
                made.get_type().name()?
            )));
        }
        let uuid = handle.get().uuid_of(py);
        let shared = Some(handle.clone().unbind());
        made.cast::<PyMemPool>()?
            .get()
            .fill(py, pool.clone(), name, shared, uuid);
        Ok(made)
    };
    let Some(uuid) = handle.get().uuid_of(py) else {
        return make();
    };
    // Threads to which the same handle came import it one after the other: drivers may give a pool one handle however often
    // it is imported, and then the second resource would destroy the first one's.
    let lock = module(py)?.getattr(intern!(py, "_lock"))?;
    lock.call_method0(intern!(py, "acquire"))?;
    let made = match registered(given, class) {
        Ok(None) => make().and_then(|made| register(made.cast::<PyMemPool>()?, uuid.bind(py))),
        Ok(Some(known)) => Ok(known),
        Err(error) => Err(error),
    };
    lock.call_method0(intern!(py, "release"))?;
    made
}

/// Whether a resource is one over a pool that other processes can use.
pub fn is_shared(py: Python<'_>, resource: Option<&Py<PyAny>>) -> bool {
    resource.is_some_and(|r| {
        r.bind(py)
            .cast::<PyMemPool>()
            .is_ok_and(|pool| pool.get().shared_pool(py).is_ok())
    })
}

/// What another process needs to use a memory pool: a file descriptor, and a UUID to know the pool by.
///
/// It is the ``allocation_handle`` of a memory resource. ``multiprocessing`` can send it, plain pickling cannot: a
/// descriptor means nothing in another process.
#[pyclass(
    frozen,
    module = "cuda.core._memory._ipc",
    name = "IPCAllocationHandle"
)]
pub struct PyAllocationHandle {
    file: Slot<Arc<OwnedFd>>,
    uuid: Option<Py<PyAny>>,
}

impl PyAllocationHandle {
    /// A handle that owns its descriptor.
    pub fn new_of(file: OwnedFd, uuid: Option<Py<PyAny>>) -> PyAllocationHandle {
        PyAllocationHandle {
            file: Slot::new(Arc::new(file)),
            uuid,
        }
    }

    /// The descriptor, which stays open for as long as somebody has this.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where it was closed.
    pub fn file(&self, py: Python<'_>) -> PyResult<Arc<OwnedFd>> {
        self.file.get(py, "IPCAllocationHandle")
    }

    /// The UUID of the pool.
    pub fn uuid_of(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.uuid.as_ref().map(|uuid| uuid.clone_ref(py))
    }
}

/// The resource that is registered for the pool of a handle.
///
/// # Errors
///
/// `TypeError` where that is one of another class; `RuntimeError` for a closed handle.
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
            "the pool of the handle is known as a {}, not as a {}",
            known.get_type().name()?,
            class.name()?
        )));
    }
    Ok(Some(known))
}

/// A handle, or a descriptor's number, of which a copy is made.
///
/// # Errors
///
/// `TypeError` and `ValueError` for what is no number, `OSError` for one that is no descriptor.
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
            format!("{} is no file descriptor", shown(given)),
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
        // A text might have been a number's.
        return Err(if given.is_instance_of::<PyString>() {
            PyValueError::new_err(text)
        } else {
            PyTypeError::new_err(text)
        });
    };
    let number: i32 = number.extract().map_err(|_| bad())?;
    // SAFETY: asks for the flags of a number that may be no descriptor, which the system says.
    if number < 0 || unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(bad());
    }
    // SAFETY: it was open a moment ago; if the caller closes it meanwhile the copy fails.
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
            "an IPCAllocationHandle is not made directly: it is the allocation_handle of an IPC-enabled memory resource",
        ))
    }

    /// The handle with this descriptor, which it closes: what ``multiprocessing`` calls.
    #[classmethod]
    fn _restore(
        _class: &Bound<'_, PyType>,
        fd: &Bound<'_, PyAny>,
        uuid: Option<Py<PyAny>>,
    ) -> PyResult<PyAllocationHandle> {
        use std::os::fd::FromRawFd;
        let number: i32 = fd.extract()?;
        // SAFETY: asks for the flags of a number that may be no descriptor, which the system says.
        if number < 0 || unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
            return Err(PyOSError::new_err((
                libc::EBADF,
                format!("{number} is no file descriptor"),
            )));
        }
        // SAFETY: `multiprocessing` has made the descriptor for this process and leaves it to its receiver.
        let file = unsafe { OwnedFd::from_raw_fd(number) };
        Ok(PyAllocationHandle::new_of(file, uuid))
    }

    /// The file descriptor; -1 once the handle was closed.
    #[getter]
    fn handle(&self, py: Python<'_>) -> i32 {
        self.file.read(py, |file| file.as_raw_fd()).unwrap_or(-1)
    }

    /// What identifies the pool among processes; None where that is not known.
    #[getter]
    fn uuid(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.uuid_of(py)
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.file.is_closed(py)
    }

    /// Closes the descriptor. Pools that were imported by it stay; the memory resource whose handle this is can no longer be
    /// sent to other processes. Later calls do nothing.
    fn close(&self, py: Python<'_>) {
        drop(self.file.close(py));
    }

    fn __int__(&self, py: Python<'_>) -> PyResult<i32> {
        let number = self.file.read(py, |file| file.as_raw_fd());
        number.ok_or_else(|| {
            PyValueError::new_err("this IPCAllocationHandle was closed: it has no file descriptor")
        })
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "an IPCAllocationHandle cannot be pickled: its file descriptor goes to other processes by multiprocessing only",
        ))
    }
}

/// What another process needs to use a :class:`Buffer` of an IPC-enabled memory resource. It comes from
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
    /// The object of a descriptor.
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
    /// `ValueError` where it came without all its bytes.
    pub fn described(&self) -> PyResult<BufferDescriptor> {
        let Some(bytes) = self.bytes.first_chunk::<64>() else {
            return Err(PyValueError::new_err(format!(
                "the IPCBufferDescriptor is damaged: it has {} bytes, expected 64",
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
            "an IPCBufferDescriptor is not made directly: take Buffer.ipc_descriptor",
        ))
    }

    /// The descriptor with these bytes: what unpickling calls.
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

    /// Bytes of the buffer.
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
