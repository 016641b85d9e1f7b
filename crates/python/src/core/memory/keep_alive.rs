//! Objects kept alive until the copies that use them complete.

use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use cupyrite::{
    Device, Event, EventOptions, ForkGeneration, RelaxedCapture, Stream, enter_for_default_stream,
};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::core::errors::OrRaise;

/// A buffer-protocol view; dropped where Python may be called.
pub struct BufferView(Box<ffi::Py_buffer>);

// SAFETY: any attached thread may release a view (Python/C API, "Buffer Protocol"), and views are dropped on attached
// threads only.
unsafe impl Send for BufferView {}
// SAFETY: shared references only read what the exporter filled in.
unsafe impl Sync for BufferView {}

impl Drop for BufferView {
    fn drop(&mut self) {
        // SAFETY: filled by `PyObject_GetBuffer`, released once, attached.
        unsafe { ffi::PyBuffer_Release(&raw mut *self.0) };
    }
}

impl BufferView {
    /// Requests a view of an object with these flags.
    ///
    /// # Errors
    ///
    /// Errors of the exporter.
    pub fn take(given: &Bound<'_, PyAny>, flags: c_int) -> PyResult<BufferView> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: a live object and a valid view with a stable address.
        if unsafe { ffi::PyObject_GetBuffer(given.as_ptr(), &raw mut *view, flags) } != 0 {
            return Err(PyErr::fetch(given.py()));
        }
        Ok(BufferView(view))
    }

    /// Reports the exporter to the garbage collector.
    ///
    /// # Errors
    ///
    /// Errors of the collector.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // SAFETY: a filled view owns a reference to its exporter, or none. The temporary is never dropped, so the
        // reference stays with the view.
        let obj = unsafe {
            let py = Python::assume_attached();
            Bound::<PyAny>::from_owned_ptr_or_opt(py, self.0.obj)
                .map(|obj| ManuallyDrop::new(obj.unbind()))
        };
        match obj {
            Some(obj) => visit.call(&*obj),
            None => Ok(()),
        }
    }

    /// Address of the first element.
    pub fn address(&self) -> usize {
        self.0.buf.expose_provenance()
    }

    /// Pointer to the first element.
    pub fn pointer(&self) -> *const c_void {
        self.0.buf
    }

    /// Whether the memory is C-contiguous.
    pub fn is_contiguous(&self) -> bool {
        // SAFETY: a filled view.
        unsafe { ffi::PyBuffer_IsContiguous(&raw const *self.0, b'C' as _) != 0 }
    }

    /// Whether the memory is read-only.
    pub fn readonly(&self) -> bool {
        self.0.readonly != 0
    }

    /// Shape, strides in bytes if present, and element size.
    ///
    /// # Errors
    ///
    /// `BufferError` for memory with suboffsets.
    pub fn extents(&self) -> PyResult<(Vec<i64>, Option<Vec<i64>>, usize)> {
        if !self.0.suboffsets.is_null() {
            return Err(PyBufferError::new_err(
                "the buffer has suboffsets, which views do not support",
            ));
        }
        let item = self.0.itemsize.max(1).cast_unsigned();
        let dims = usize::try_from(self.0.ndim).unwrap_or(0);
        if dims == 0 {
            return Ok((Vec::new(), None, item));
        }
        if self.0.shape.is_null() {
            return Ok((vec![(self.len() / item) as i64], None, item));
        }
        // SAFETY: the exporter filled in one number per dimension.
        let numbers = |from: *mut ffi::Py_ssize_t| unsafe {
            std::slice::from_raw_parts(from, dims)
                .iter()
                .map(|&n| n as i64)
                .collect::<Vec<i64>>()
        };
        let strides = (!self.0.strides.is_null()).then(|| numbers(self.0.strides));
        Ok((numbers(self.0.shape), strides, item))
    }

    /// Element format in the syntax of module `struct`.
    pub fn format(&self) -> &[u8] {
        if self.0.format.is_null() {
            return b"B";
        }
        // SAFETY: a string of the exporter that lives as long as the view.
        unsafe { std::ffi::CStr::from_ptr(self.0.format) }.to_bytes()
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.0.len.max(0).cast_unsigned()
    }
}

/// What an operand needs until its copy completes.
#[expect(dead_code, reason = "held for its destructor")]
pub enum KeepAlive {
    View(BufferView),
    Object(Py<PyAny>),
}

struct Pending {
    done: Event,
    generation: ForkGeneration,
    hold: KeepAlive,
}

/// Queued copies and the objects they need.
static PENDING: Mutex<Vec<Pending>> = Mutex::new(Vec::new());
/// Number of queued copies; avoids locking if there are none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Drops the objects of completed copies.
///
/// Called wherever copies are queued or waited for. A stream callback cannot do this: it would need the GIL on a driver
/// thread, while a program that waits for the driver may hold it.
pub fn drop_completed(py: Python<'_>) {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    let lock = || PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    let pending = std::mem::take(&mut *lock());
    // Detached: driver calls may wait for other threads. A failed copy counts as completed. A forked child cannot
    // query, and keeps the objects of its parent's copies.
    let (done, waiting) = py.detach(|| {
        // These queries are implicit: they must not invalidate a capture. A query refused during a capture counts as
        // pending.
        let _relaxed = RelaxedCapture::enter();
        let (done, waiting): (Vec<Pending>, Vec<Pending>) = pending
            .into_iter()
            .partition(|copy| copy.generation.is_current() && copy.done.is_done().unwrap_or(true));
        let done: Vec<KeepAlive> = done.into_iter().map(|copy| copy.hold).collect();
        (done, waiting)
    });
    COUNT.fetch_sub(done.len(), Ordering::Relaxed);
    lock().extend(waiting);
    drop(done);
}

/// Keeps objects alive until the stream has completed its current work.
///
/// # Errors
///
/// Driver errors; the stream is then idle.
pub fn keep_until_done(
    py: Python<'_>,
    device: Option<Device>,
    stream: &Stream,
    objects: Vec<Py<PyAny>>,
) -> PyResult<()> {
    drop_completed(py);
    register_pending(
        py,
        device,
        stream,
        objects.into_iter().map(KeepAlive::Object).collect(),
    )
}

/// As [`keep_until_done`], for operands.
///
/// # Errors
///
/// As [`keep_until_done`].
pub fn register_pending(
    py: Python<'_>,
    device: Option<Device>,
    stream: &Stream,
    kept: Vec<KeepAlive>,
) -> PyResult<()> {
    let count = kept.len();
    let marks = py.detach(|| {
        let _entered = device
            .map(|device| enter_for_default_stream(stream, device))
            .transpose()?;
        let mark = || stream.record_with(&EventOptions::default());
        let marks: cupyrite::Result<Vec<Event>> = (0..count).map(|_| mark()).collect();
        // Without an event the completion is unknown, so wait for the stream. If that fails too, the work has ended.
        marks.or_else(|_| stream.synchronize().map(|()| Vec::new()))
    });
    let marks = marks.or_raise(py)?;
    if !marks.is_empty() {
        COUNT.fetch_add(marks.len(), Ordering::Relaxed);
        PENDING
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(marks.into_iter().zip(kept).map(|(done, hold)| Pending {
                done,
                generation: ForkGeneration::current(),
                hold,
            }));
    }
    Ok(())
}
