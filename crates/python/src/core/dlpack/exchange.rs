//! The DLPack C exchange API: a table of C functions in the attribute `__dlpack_c_exchange_api__` of an array class.
//! The functions run no Python code; an export costs a tenth of a call of `__dlpack__`.

use std::ffi::{c_char, c_int, c_void};

use cupyrite::dlpack::{
    DeviceType, DlDevice, EXCHANGE_API, ExchangeApi, ExchangeApiHeader, ManagedTensorVersioned,
    SetError, Tensor, VERSION,
};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::core::dlpack;
use crate::core::view;
use crate::core::view::PyView;
use crate::core::view::dlpack::{Managed, of_versioned};
use crate::cpython;

/// Exchange API of a class; valid as long as the class.
#[derive(Clone, Copy)]
pub struct Api(*const ExchangeApi);

// SAFETY: DLPack guarantees that the functions live as long as the class and can be called by any attached thread.
unsafe impl Send for Api {}

/// The exchange API in a capsule, if its major version is supported.
pub fn find_supported(capsule: &Bound<'_, PyAny>) -> Option<Api> {
    // SAFETY: a live object and a NUL-terminated name.
    let mut header = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), EXCHANGE_API.as_ptr()) == 0 {
            return None;
        }
        ffi::PyCapsule_GetPointer(capsule.as_ptr(), EXCHANGE_API.as_ptr())
            .cast::<ExchangeApiHeader>()
            .cast_const()
    };
    while !header.is_null() && header.is_aligned() {
        // SAFETY: the header has the same layout in all versions, and lives as long as the class.
        let ExchangeApiHeader { version, previous } = unsafe { &*header };
        if version.major == VERSION.major {
            let api = header.cast::<ExchangeApi>();
            // SAFETY: the table has this version.
            return unsafe { (*api).export }.map(|_| Api(api));
        }
        header = previous.cast_const();
    }
    None
}

impl Api {
    /// Exports an object of the class.
    ///
    /// # Errors
    ///
    /// Errors of the exporter.
    pub fn export(self, obj: &Bound<'_, PyAny>) -> PyResult<Managed<ManagedTensorVersioned>> {
        let py = obj.py();
        let mut managed: *mut ManagedTensorVersioned = std::ptr::null_mut();
        // SAFETY: the functions live as long as the class, of which `obj` is an instance.
        let status = unsafe {
            match (*self.0).export {
                Some(export) => export(obj.as_ptr().cast(), &raw mut managed),
                None => -1,
            }
        };
        if status != 0 || managed.is_null() {
            return Err(api_error(py, "export"));
        }
        // SAFETY: exported for the caller; released if an exception is pending nevertheless.
        let managed = unsafe { Managed::own(managed) };
        check_result(py, status, "export")?;
        Ok(managed)
    }

    /// Handle of the library's current stream.
    ///
    /// # Errors
    ///
    /// Errors of the exporter.
    pub fn current_stream(self, py: Python<'_>, device: DlDevice) -> PyResult<usize> {
        let mut stream: *mut c_void = std::ptr::null_mut();
        // SAFETY: as above.
        let status = unsafe {
            match (*self.0).current_stream {
                Some(current) => current(device.kind, device.number, &raw mut stream),
                // Without the function, synchronize with the legacy default stream.
                None => 0,
            }
        };
        check_result(py, status, "current_work_stream")?;
        Ok(stream.expose_provenance())
    }
}

/// Result of an API function: a pending exception is an error, regardless of the status.
fn check_result(py: Python<'_>, status: c_int, what: &str) -> PyResult<()> {
    // SAFETY: attached.
    if status != 0 || !unsafe { ffi::PyErr_Occurred() }.is_null() {
        return Err(api_error(py, what));
    }
    Ok(())
}

#[cold]
fn api_error(py: Python<'_>, what: &str) -> PyErr {
    PyErr::take(py).unwrap_or_else(|| {
        PyBufferError::new_err(format!(
            "__dlpack_c_exchange_api__: {what} failed without an exception"
        ))
    })
}

/// Exchange API of `StridedMemoryView`.
static VIEW_API: StaticApi = StaticApi(ExchangeApi {
    header: ExchangeApiHeader {
        version: VERSION,
        previous: std::ptr::null_mut(),
    },
    allocate: Some(allocate),
    export: Some(export),
    import: Some(import),
    describe: Some(describe),
    current_stream: Some(current_stream),
});

struct StaticApi(ExchangeApi);

// SAFETY: never written; the pointer in it is null.
unsafe impl Sync for StaticApi {}

/// Capsule of the exchange API of `StridedMemoryView`.
///
/// # Errors
///
/// `MemoryError`.
pub fn view_api_capsule(py: Python<'_>) -> PyResult<Py<PyAny>> {
    static CAPSULE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let created = || {
        let table = (&raw const VIEW_API.0).cast_mut().cast();
        // SAFETY: table and name are static.
        unsafe {
            let capsule = ffi::PyCapsule_New(table, EXCHANGE_API.as_ptr(), None);
            Bound::from_owned_ptr_or_err(py, capsule).map(Bound::unbind)
        }
    };
    Ok(CAPSULE.get_or_try_init(py, created)?.clone_ref(py))
}

/// Runs an API function: sets an exception on failure.
///
/// # Safety
///
/// The thread is attached, as DLPack requires of the caller.
unsafe fn run_api(body: impl FnOnce(Python<'_>) -> PyResult<()>) -> c_int {
    // SAFETY: the caller's.
    let py = unsafe { Python::assume_attached() };
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(py)));
    let error = match done {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => error,
        Err(_) => {
            PyBufferError::new_err("internal error in the DLPack exchange API; please report it")
        }
    };
    cpython::set(error);
    -1
}

/// The view passed by a C caller.
///
/// # Safety
///
/// A live object or null.
unsafe fn view_of<'py>(py: Python<'py>, obj: *mut c_void) -> PyResult<Bound<'py, PyView>> {
    // SAFETY: the caller's.
    let obj = unsafe { Bound::from_borrowed_ptr_or_opt(py, obj.cast()) };
    obj.and_then(|obj| obj.cast_into::<PyView>().ok())
        .ok_or_else(|| PyTypeError::new_err("expected a StridedMemoryView"))
}

unsafe extern "C" fn export(obj: *mut c_void, out: *mut *mut ManagedTensorVersioned) -> c_int {
    // SAFETY: the caller guarantees an attached thread, a live object and a valid `out`.
    unsafe {
        run_api(|py| {
            *out = dlpack::export_managed(&view_of(py, obj)?)?;
            Ok(())
        })
    }
}

unsafe extern "C" fn describe(obj: *mut c_void, out: *mut Tensor) -> c_int {
    // SAFETY: as above.
    unsafe {
        run_api(|py| {
            out.write(dlpack::view_tensor(&view_of(py, obj)?)?);
            Ok(())
        })
    }
}

unsafe extern "C" fn import(managed: *mut ManagedTensorVersioned, out: *mut *mut c_void) -> c_int {
    // SAFETY: the caller guarantees an attached thread and a valid `out`, and transfers ownership of the export.
    unsafe {
        run_api(|py| {
            if managed.is_null() {
                return Err(PyTypeError::new_err("expected a DLPack tensor, got null"));
            }
            let owned = Managed::own(managed);
            let none = py.None().into_bound(py);
            let view = view::make(py, of_versioned(&none, owned, None)?)?;
            *out = view.into_ptr().cast();
            Ok(())
        })
    }
}

/// Not supported: a view owns no memory.
unsafe extern "C" fn allocate(
    _prototype: *mut Tensor,
    _out: *mut *mut ManagedTensorVersioned,
    context: *mut c_void,
    set_error: Option<SetError>,
) -> c_int {
    const TEXT: *const c_char =
        c"StridedMemoryView cannot allocate; allocate with a memory resource and export that buffer"
            .as_ptr();
    if let Some(set_error) = set_error {
        // SAFETY: `set_error` is called with its own context.
        unsafe { set_error(context, c"NotImplementedError".as_ptr(), TEXT) };
    }
    -1
}

/// A view has no current stream; null is the legacy default stream.
unsafe extern "C" fn current_stream(
    _kind: DeviceType,
    _number: i32,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller guarantees a valid `out`.
    unsafe { *out = std::ptr::null_mut() };
    0
}
