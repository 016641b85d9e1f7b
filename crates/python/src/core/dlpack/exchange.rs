//! The DLPack C exchange API: a table of C functions in the attribute `__dlpack_c_exchange_api__` of an array class.
//! The functions run no Python code; an export costs a tenth of a call of `__dlpack__`.

use std::ffi::{c_int, c_void};

use cupyrite::dlpack::{
    DlDevice, EXCHANGE_API, ExchangeApi, ExchangeApiHeader, ManagedTensorVersioned, VERSION,
};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::core::dlpack::managed::Managed;

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
        let managed = unsafe { Managed::from_raw(managed) };
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
        // SAFETY: the functions live as long as the class; `stream` has room for the handle.
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
