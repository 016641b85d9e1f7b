//! DLPack between classes in C: functions that a class of arrays has in a capsule, its attribute
//! `__dlpack_c_exchange_api__`. They make no Python calls, so an export costs a tenth of one by `__dlpack__`.

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

/// The functions of a class, good for as long as the class lives.
#[derive(Clone, Copy)]
pub struct Api(*const ExchangeApi);

// SAFETY: DLPack has the functions live as long as the class and callable by any thread that is attached.
unsafe impl Send for Api {}

/// The functions in a capsule, of the version that we know; `None` for anything else.
pub fn usable(capsule: &Bound<'_, PyAny>) -> Option<Api> {
    // SAFETY: a live object; the name ends with a nul.
    let mut header = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), EXCHANGE_API.as_ptr()) == 0 {
            return None;
        }
        ffi::PyCapsule_GetPointer(capsule.as_ptr(), EXCHANGE_API.as_ptr())
            .cast::<ExchangeApiHeader>()
            .cast_const()
    };
    while !header.is_null() && header.is_aligned() {
        // SAFETY: the header is the same in all versions; it lives as long as the class.
        let ExchangeApiHeader { version, previous } = unsafe { &*header };
        if version.major == VERSION.major {
            let api = header.cast::<ExchangeApi>();
            // SAFETY: functions of this version.
            return unsafe { (*api).export }.map(|_| Api(api));
        }
        header = previous.cast_const();
    }
    None
}

impl Api {
    /// Exports an object of the class that these functions are of.
    ///
    /// # Errors
    ///
    /// What the exporter raised.
    pub fn export(self, obj: &Bound<'_, PyAny>) -> PyResult<Managed<ManagedTensorVersioned>> {
        let py = obj.py();
        let mut managed: *mut ManagedTensorVersioned = std::ptr::null_mut();
        // SAFETY: the functions live as long as the class, of which there is an object.
        let status = unsafe {
            match (*self.0).export {
                Some(export) => export(obj.as_ptr().cast(), &raw mut managed),
                None => -1,
            }
        };
        if status != 0 || managed.is_null() {
            return Err(failed(py, "export"));
        }
        // SAFETY: made for us, and given back should there be an exception all the same.
        let managed = unsafe { Managed::own(managed) };
        answered(py, status, "export")?;
        Ok(managed)
    }

    /// The address of the stream that the library works on.
    ///
    /// # Errors
    ///
    /// What the exporter raised.
    pub fn current_stream(self, py: Python<'_>, device: DlDevice) -> PyResult<usize> {
        let mut stream: *mut c_void = std::ptr::null_mut();
        // SAFETY: as above.
        let status = unsafe {
            match (*self.0).current_stream {
                Some(current) => current(device.kind, device.number, &raw mut stream),
                // Without the function the legacy default stream is the one to be in order with.
                None => 0,
            }
        };
        answered(py, status, "current_work_stream")?;
        Ok(stream.expose_provenance())
    }
}

/// What a function answered: a status, and perhaps an exception, which counts whatever the status.
fn answered(py: Python<'_>, status: c_int, what: &str) -> PyResult<()> {
    // SAFETY: attached.
    if status != 0 || !unsafe { ffi::PyErr_Occurred() }.is_null() {
        return Err(failed(py, what));
    }
    Ok(())
}

#[cold]
fn failed(py: Python<'_>, what: &str) -> PyErr {
    PyErr::take(py).unwrap_or_else(|| {
        PyBufferError::new_err(format!(
            "__dlpack_c_exchange_api__: {what} failed and did not say why"
        ))
    })
}

/// Our own functions, of `StridedMemoryView`.
static OURS: Table = Table(ExchangeApi {
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

struct Table(ExchangeApi);

// SAFETY: nobody writes to it, and the pointer in it is null.
unsafe impl Sync for Table {}

/// The capsule of our functions.
///
/// # Errors
///
/// Memory.
pub fn ours(py: Python<'_>) -> PyResult<Py<PyAny>> {
    static CAPSULE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = || {
        let table = (&raw const OURS.0).cast_mut().cast();
        // SAFETY: table and name live for ever.
        unsafe {
            let capsule = ffi::PyCapsule_New(table, EXCHANGE_API.as_ptr(), None);
            Bound::from_owned_ptr_or_err(py, capsule).map(Bound::unbind)
        }
    };
    Ok(CAPSULE.get_or_try_init(py, made)?.clone_ref(py))
}

/// Runs one of our functions: an exception is set where it fails.
///
/// # Safety
///
/// The thread is attached, as DLPack has it for these functions.
unsafe fn answer(body: impl FnOnce(Python<'_>) -> PyResult<()>) -> c_int {
    // SAFETY: the caller's.
    let py = unsafe { Python::assume_attached() };
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(py)));
    let error = match done {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => error,
        Err(_) => PyBufferError::new_err("an internal error; please report it"),
    };
    cpython::set(error);
    -1
}

/// The view behind a pointer that C passed.
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
    // SAFETY: attached; a live object and a place, says the caller.
    unsafe {
        answer(|py| {
            *out = dlpack::managed(&view_of(py, obj)?)?;
            Ok(())
        })
    }
}

unsafe extern "C" fn describe(obj: *mut c_void, out: *mut Tensor) -> c_int {
    // SAFETY: as above.
    unsafe {
        answer(|py| {
            out.write(dlpack::describe(&view_of(py, obj)?)?);
            Ok(())
        })
    }
}

unsafe extern "C" fn import(managed: *mut ManagedTensorVersioned, out: *mut *mut c_void) -> c_int {
    // SAFETY: attached; an export that becomes ours, and a place, says the caller.
    unsafe {
        answer(|py| {
            if managed.is_null() {
                return Err(PyTypeError::new_err("expected a DLPack tensor, not null"));
            }
            let owned = Managed::own(managed);
            let none = py.None().into_bound(py);
            let view = view::make(py, of_versioned(&none, owned, None)?)?;
            *out = view.into_ptr().cast();
            Ok(())
        })
    }
}

/// Views have no memory of their own to make arrays of.
unsafe extern "C" fn allocate(
    _prototype: *mut Tensor,
    _out: *mut *mut ManagedTensorVersioned,
    context: *mut c_void,
    set_error: Option<SetError>,
) -> c_int {
    const TEXT: *const c_char =
        c"StridedMemoryView does not allocate; allocate with a memory resource and export that buffer"
            .as_ptr();
    if let Some(set_error) = set_error {
        // SAFETY: the function is given for this, with its first argument.
        unsafe { set_error(context, c"NotImplementedError".as_ptr(), TEXT) };
    }
    -1
}

/// A view is used on whatever stream its user chose: there is no current one, which is the legacy default stream for C.
unsafe extern "C" fn current_stream(
    _kind: DeviceType,
    _number: i32,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: a place, says the caller.
    unsafe { *out = std::ptr::null_mut() };
    0
}
