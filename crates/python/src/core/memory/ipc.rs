//! Interprocess sharing of memory pools.

use std::os::fd::{AsFd, BorrowedFd};

use cupyrite::{MemoryPool, PoolKind};
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::core::closable::Lent;
use crate::core::errors::OrRaise;
use crate::core::memory::ipc_handles::{PyAllocationHandle, module};
use crate::core::memory::resource::PyMemPool;
use crate::core::numbers::{short_repr, whole_number};

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
