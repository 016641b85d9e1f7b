//! Connects descriptors to libraries: symbol lookup, statuses, initialisation on first use, Ctrl-C.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use cupyrite_sys::driver;
use cupyrite_sys::loader::cpu_library::Interrupt;
use cupyrite_sys::loader::{self, CudaLibrary, LoadError, LoadErrorKind};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::bindings::descriptor::Function;
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::last_error;
use crate::cpython;
use crate::cpython::{Obj, Owned, R, Raised};
use crate::generated::{driver_types, nvrtc_types, runtime_types};
use crate::pathfinder;
use crate::site_packages;
use crate::types;
use crate::types::EnumId;

/// The address of a function's symbol, or of the function called instead ([`last_error`]).
///
/// # Errors
///
/// `DynamicLibNotFoundError` for a missing library, `RuntimeError` for a broken one or a missing symbol, `ValueError` for an
/// environment variable with an invalid value.
#[inline]
pub fn symbol(f: &'static Function) -> R<*const c_void> {
    let address = symbol_at(f.library(), f.symbol as usize, f.name)?;
    Ok(last_error::replacement(f).unwrap_or(address))
}

/// The address of the symbol with this index in a library's table. `name` is the name used in messages.
///
/// # Errors
///
/// As [`symbol`].
#[inline]
pub fn symbol_at(library: CudaLibrary, index: usize, name: &str) -> R<*const c_void> {
    if library == CudaLibrary::Driver {
        if !PREPARED.load(Ordering::Acquire) {
            prepare()?;
        }
    } else if !LOADED[library as usize].load(Ordering::Acquire) {
        match library {
            CudaLibrary::Runtime => prepare_runtime()?,
            library => try_load(library)?,
        }
    }
    match cupyrite_sys::table(library).get(index) {
        Ok(address) => Ok(address),
        Err(error) => Err(raise_load_error(error, name)),
    }
}

static PREPARED: AtomicBool = AtomicBool::new(false);
/// Whether each library other than the driver is loaded.
static LOADED: [AtomicBool; CudaLibrary::COUNT] =
    [const { AtomicBool::new(false) }; CudaLibrary::COUNT];
static WARNED: AtomicBool = AtomicBool::new(false);

/// Selects and loads the driver before its first use.
#[cold]
pub fn prepare() -> R<()> {
    loader::set_per_thread_default_stream(per_thread_default_stream()?);
    // SAFETY: called on a thread that is attached to the interpreter.
    let py = unsafe { Python::assume_attached() };
    site_packages::refresh(py);
    // Loading is slow; other Python threads run meanwhile.
    if let Err(error) = py.detach(loader::driver_backend) {
        return Err(raise_load_error(&error, "the CUDA driver"));
    }
    PREPARED.store(true, Ordering::Release);
    warn_of_cpu_device()
}

/// Loads the runtime before its first use. The runtime itself reports a missing driver.
#[cold]
fn prepare_runtime() -> R<()> {
    loader::set_per_thread_default_stream(per_thread_default_stream()?);
    // SAFETY: called on a thread that is attached to the interpreter.
    let py = unsafe { Python::assume_attached() };
    site_packages::refresh(py);
    if let Err(error) = py.detach(loader::runtime_source) {
        return Err(raise_load_error(&error, "the CUDA runtime"));
    }
    LOADED[CudaLibrary::Runtime as usize].store(true, Ordering::Release);
    warn_of_cpu_device()
}

/// Warns once that the CPU device is in use because there is no GPU, whichever library is loaded first.
///
/// # Errors
///
/// The warning itself, where the user turned warnings into errors.
pub fn warn_of_cpu_device() -> R<()> {
    if loader::is_cpu_fallback() && !WARNED.swap(true, Ordering::AcqRel) {
        let reason = loader::backend_reason().unwrap_or_default();
        let text = format!(
            "{reason}. It runs CUDA programs on this machine's processor, for development and tests; \
             set CUPYRITE_DEVICE=cpu to choose it without this warning, or CUPYRITE_DEVICE=gpu to insist on a GPU."
        );
        let text = std::ffi::CString::new(text).unwrap_or_default();
        // SAFETY: the category is immortal; `text` is a `CString`.
        let status = unsafe { ffi::PyErr_WarnEx(ffi::PyExc_RuntimeWarning, text.as_ptr(), 1) };
        if status != 0 {
            return Err(Raised);
        }
    }
    Ok(())
}

/// Whether a library other than the driver was loaded by a call.
pub fn is_loaded(library: CudaLibrary) -> bool {
    LOADED[library as usize].load(Ordering::Acquire)
}

/// Loads a library while other threads run. If it is missing, the caller's table lookup reports it; the next call tries
/// again with the then current `sys.path`.
#[cold]
fn try_load(library: CudaLibrary) -> R<()> {
    // SAFETY: called on a thread that is attached to the interpreter.
    let py = unsafe { Python::assume_attached() };
    site_packages::refresh(py);
    let loaded = py.detach(|| loader::library_handle(library).is_ok());
    LOADED[library as usize].store(loaded, Ordering::Release);
    // NVML and the runtime use the driver's backend, and select it if that has not happened yet.
    warn_of_cpu_device()
}

/// Whether `CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM` selects the per-thread default stream.
///
/// # Errors
///
/// `ValueError` for a value that is not an integer.
pub fn per_thread_default_stream() -> R<bool> {
    loader::requested_per_thread_default_stream()
        .map_err(|error| errors::raise(ExceptionKind::Value, &error.to_string()))
}

/// Sets the exception for a missing library or symbol.
#[cold]
pub fn raise_load_error(error: &LoadError, name: &str) -> Raised {
    let message = error.to_string();
    match error.kind {
        LoadErrorKind::LibraryNotFound | LoadErrorKind::LibraryFailed => {
            let failed = error.kind == LoadErrorKind::LibraryFailed;
            // SAFETY: exceptions are only raised on a thread that is attached to the interpreter.
            let py = unsafe { Python::assume_attached() };
            pathfinder::raise(py, failed, message)
        }
        LoadErrorKind::SymbolNotFound => {
            errors::raise_function_not_found(&format!("{name}() cannot be called: {message}"))
        }
        LoadErrorKind::InvalidSelection => errors::raise(ExceptionKind::Value, &message),
        LoadErrorKind::NoCpuDevice => errors::raise(ExceptionKind::Runtime, &message),
    }
}

// ---------------------------------------------------------------------------------------------------------
// Statuses

/// Cached return values for success, one for each library: the enum member and the tuple that holds only it.
struct Success {
    member: AtomicPtr<ffi::PyObject>,
    tuple: AtomicPtr<ffi::PyObject>,
}

static SUCCESS: [Success; CudaLibrary::COUNT] = [const {
    Success {
        member: AtomicPtr::new(std::ptr::null_mut()),
        tuple: AtomicPtr::new(std::ptr::null_mut()),
    }
}; CudaLibrary::COUNT];

/// The status enum in a library's result tuples. Functions of the other libraries raise instead.
fn status_enum(library: CudaLibrary) -> EnumId {
    match library {
        CudaLibrary::Nvrtc => nvrtc_types::enums::nvrtcResult,
        CudaLibrary::Runtime => runtime_types::enums::cudaError_t,
        _ => driver_types::enums::CUresult,
    }
}

/// A new reference to an object that `make` creates on first use and that is never freed.
fn once(place: &AtomicPtr<ffi::PyObject>, make: impl FnOnce() -> R<Owned>) -> R<Owned> {
    // SAFETY: the reference stored in `place` is never released.
    cpython::once(place, make).map(|known| unsafe { Obj::new(known) }.owned())
}

/// The status as a member of the library's enum.
///
/// # Errors
///
/// `MemoryError`.
#[inline]
pub fn status(library: CudaLibrary, value: i64) -> R<Owned> {
    if value == 0 {
        // SAFETY: the member is never released.
        return success(library).map(|known| unsafe { Obj::new(known) }.owned());
    }
    types::enum_member(status_enum(library), value)
}

/// The enum member for success (borrowed, never freed).
///
/// # Errors
///
/// `MemoryError`.
#[inline(always)]
pub fn success(library: CudaLibrary) -> R<*mut ffi::PyObject> {
    let known = SUCCESS[library as usize].member.load(Ordering::Acquire);
    if !known.is_null() {
        return Ok(known);
    }
    cpython::once(&SUCCESS[library as usize].member, || {
        types::enum_member(status_enum(library), 0)
    })
}

/// A tuple with only the status.
///
/// # Errors
///
/// `MemoryError`.
#[inline(always)]
pub fn status_tuple(library: CudaLibrary, value: i64) -> R<Owned> {
    if value == 0 {
        let known = SUCCESS[library as usize].tuple.load(Ordering::Acquire);
        if !known.is_null() {
            // SAFETY: the reference stored in `SUCCESS` is never released.
            return Ok(unsafe { Obj::new(known) }.owned());
        }
    }
    new_status_tuple(library, value)
}

#[inline(never)]
fn new_status_tuple(library: CudaLibrary, value: i64) -> R<Owned> {
    let make = || {
        let status = status(library, value)?;
        // SAFETY: the tuple takes its own reference.
        Owned::take(unsafe { ffi::PyTuple_Pack(1, status.ptr()) })
    };
    if value == 0 {
        return once(&SUCCESS[library as usize].tuple, make);
    }
    make()
}

// ---------------------------------------------------------------------------------------------------------
// The GIL

/// Whether a call that neither waits nor takes a lock held across a wait may keep the GIL. False once
/// `cuLogsRegisterCallback` is resolved: a failing call writes to the driver's log and waits there while another thread's
/// failure runs its callback, which is usually Python code and needs the GIL.
#[inline(always)]
pub fn keeps_gil() -> bool {
    !driver::TABLE.is_resolved(driver::Symbol::cuLogsRegisterCallback as usize)
}

// ---------------------------------------------------------------------------------------------------------
// Ctrl-C

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether a [`WorkGoesOn`] of the thread lives.
    static WORK_GOES_ON: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, a signal handler that raises ends the thread's waits on the CPU device and leaves the work alone, as on a
/// GPU. Otherwise kernels are cancelled: the bindings' waits are also used to stop one that never ends.
pub struct WorkGoesOn(bool);

impl WorkGoesOn {
    /// Begins it on this thread.
    pub fn begin() -> WorkGoesOn {
        WorkGoesOn(WORK_GOES_ON.replace(true))
    }
}

impl Drop for WorkGoesOn {
    fn drop(&mut self) {
        WORK_GOES_ON.set(self.0);
    }
}

/// The CPU device's hook of waits.
pub fn interrupt() -> Interrupt {
    match interrupt_requested() {
        false => Interrupt::Continue,
        true if WORK_GOES_ON.get() => Interrupt::EndWait,
        true => Interrupt::CancelWork,
    }
}

/// Whether a waiting call should return because a signal handler raised. The exception is pending then:
/// [`check_interrupt`].
pub fn interrupt_requested() -> bool {
    // SAFETY: the interpreter is initialised, and outlives the calls made from it; `PyGILState_Release` matches
    // `PyGILState_Ensure`. A thread without a thread state receives no signals, so none is created for it.
    unsafe {
        if ffi::Py_IsInitialized() == 0 || ffi::PyGILState_GetThisThreadState().is_null() {
            return false;
        }
        let state = ffi::PyGILState_Ensure();
        let raised = ffi::PyErr_CheckSignals() != 0;
        if raised {
            INTERRUPTED.store(true, Ordering::Release);
        }
        ffi::PyGILState_Release(state);
        raised
    }
}

/// Reports an exception that a signal handler raised during a call.
///
/// # Errors
///
/// The pending exception, if there is one.
#[inline]
pub fn check_interrupt() -> R<()> {
    if INTERRUPTED.load(Ordering::Relaxed) && cpython::raised() {
        INTERRUPTED.store(false, Ordering::Relaxed);
        return Err(Raised);
    }
    Ok(())
}
