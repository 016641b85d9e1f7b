//! The DLPack C exchange API of `StridedMemoryView`.

use std::ffi::{c_char, c_int, c_void};

use cupyrite::dlpack::{
    DeviceType, EXCHANGE_API, ExchangeApi, ExchangeApiHeader, ManagedTensorVersioned, SetError,
    Tensor, VERSION,
};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;

use crate::core::dlpack::export::{export_managed, view_tensor};
use crate::core::dlpack::managed::Managed;
use crate::core::view::dlpack::of_versioned;
use crate::core::view::state;
use crate::core::view::state::PyView;
use crate::cpython;

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

/// Adds the exchange API to class `StridedMemoryView`, under its current name and its name in DLPack 1.2.
///
/// # Errors
///
/// `MemoryError`.
pub fn add(py: Python<'_>) -> PyResult<()> {
    let table = (&raw const VIEW_API.0).cast_mut().cast();
    // SAFETY: table and name are static.
    let capsule = unsafe {
        let capsule = ffi::PyCapsule_New(table, EXCHANGE_API.as_ptr(), None);
        Bound::from_owned_ptr_or_err(py, capsule)?
    };
    let class = py.get_type::<PyView>();
    class.setattr(intern!(py, "__dlpack_c_exchange_api__"), &capsule)?;
    class.setattr(intern!(py, "__c_dlpack_exchange_api__"), capsule)
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
            *out = export_managed(&view_of(py, obj)?)?;
            Ok(())
        })
    }
}

unsafe extern "C" fn describe(obj: *mut c_void, out: *mut Tensor) -> c_int {
    // SAFETY: the caller guarantees an attached thread, a live object and a valid `out`.
    unsafe {
        run_api(|py| {
            out.write(view_tensor(&view_of(py, obj)?)?);
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
            let owned = Managed::from_raw(managed);
            let none = py.None().into_bound(py);
            let view = state::make(py, of_versioned(&none, owned, None)?)?;
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
