//! Deallocation of a buffer's memory.

use std::ffi::CStr;

use cupyrite::{DeviceBuffer, RelaxedCapture, SimpleAllocation, Stream};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

use crate::core::closable::Lent;
use crate::core::errors::{OrRaise, is_context_error, is_context_error_known, to_python};
use crate::core::memory::buffer::{Backing, BufferState, PyBuffer, ResourceDeallocation};
use crate::core::stream;
use crate::core::stream::PyStream;
use crate::cpython;
use crate::cpython::method::Method;
use crate::cpython::trashcan;

/// Sets the deallocation stream; returns the previous stream object.
pub(super) fn set_stream(
    state: &mut BufferState,
    given: &Bound<'_, PyAny>,
    accepted: &Stream,
) -> cupyrite::Result<Option<Py<PyAny>>> {
    match &mut state.backing {
        Backing::Pool(memory) => memory.set_deallocation_stream(accepted)?,
        Backing::Resource(back) => {
            let previous = back.object.replace(given.clone().unbind());
            match &previous {
                Some(_) => back.users.set_deallocation_stream(accepted),
                None => back.users.replace_deallocation_stream(accepted),
            }
            return Ok(previous);
        }
        // The whole buffer is freed after that stream's current work.
        Backing::Slice(whole) => whole.get().note_use(given.py(), accepted),
        Backing::Foreign | Backing::Synchronous(_) => {}
    }
    Ok(None)
}

/// Frees the memory. In a destructor, failures that have a known reason are no errors: the context was reset, or is unusable
/// and an exception has said so.
pub(super) fn release(py: Python<'_>, state: BufferState, in_destructor: bool) -> PyResult<()> {
    let BufferState {
        backing,
        address,
        size,
        resource,
        owner,
        ..
    } = state;
    let result = match backing {
        Backing::Foreign => Ok(()),
        Backing::Pool(memory) if in_destructor => {
            match py.detach(|| memory.close_in_destructor()) {
                Err(error) if error.leaves_context_unusable() && is_context_error_known() => Ok(()),
                done => done.or_raise(py),
            }
        }
        Backing::Pool(memory) => py.detach(|| memory.close(None)).or_raise(py),
        Backing::Synchronous(memory) => {
            // Waits for the device.
            py.detach(|| drop(memory));
            Ok(())
        }
        Backing::Slice(whole) => {
            whole.get().unpin(py);
            Ok(())
        }
        Backing::Resource(back) => match &resource {
            Some(resource) if back.generation.is_current() => {
                deallocate(py, resource.bind(py), address, size, back)
            }
            _ => Ok(()),
        },
    };
    drop(resource);
    // The owner may be a buffer whose owner is a buffer, and so on.
    trashcan::drop_bounded(owner);
    result
}

fn deallocate(
    py: Python<'_>,
    resource: &Bound<'_, PyAny>,
    address: u64,
    size: usize,
    mut back: ResourceDeallocation,
) -> PyResult<()> {
    let stream = back.users.deallocation_stream().clone();
    if back.users.has_other_streams() {
        // May destroy some of the streams.
        py.detach(|| back.users.order_free_after_others(address));
    }
    let ResourceDeallocation { object, users, .. } = back;
    // The memory may hold the last references to them.
    let _streams: Vec<Lent<'_, Stream>> = users
        .into_streams()
        .into_iter()
        .map(|stream| Lent::new(py, stream))
        .collect();
    let stream = match object {
        // If the program closed the stream object, a new object for the same stream.
        Some(object) => match stream::accept(object.bind(py), "", "", false) {
            Ok(_) => object,
            Err(_) => PyStream::wrap(py, stream)?.into_any(),
        },
        None => stream::default_object(py)?.into_any(),
    };
    let keywords = PyDict::new(py);
    keywords.set_item(intern!(py, "stream"), stream)?;
    let is_known = is_context_error_known();
    // User code of the resource does not choose when the buffer is released, possibly during a capture.
    let relaxed = RelaxedCapture::enter();
    let done = resource.call_method(intern!(py, "deallocate"), (address, size), Some(&keywords));
    drop(relaxed);
    if let Err(error) = done
        && !(is_known && is_context_error(py, &error))
    {
        // The buffer is released regardless, and the caller is not responsible for the resource's error.
        error.write_unraisable(py, Some(resource));
    }
    Ok(())
}

impl PyBuffer {
    /// Closes a buffer whose deallocation is a single driver call, and returns its memory and resource: no pins, pool
    /// memory, and `stream` is the deallocation stream. Otherwise changes nothing and returns `None`.
    #[inline(always)]
    fn close_fast(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> Option<(SimpleAllocation, Option<Py<PyAny>>)> {
        let mut state = self.lock(py);
        let BufferState {
            backing: Backing::Pool(memory),
            owner: None,
            descriptor: None,
            ..
        } = &mut *state
        else {
            return None;
        };
        if !memory.is_simple() {
            return None;
        }
        if let Some(given) = stream {
            // A stream created by this crate: its handle is unique.
            let handle = memory.stream().handle();
            if !stream::cast_exact(given)?.is(py, |stream| stream.handle() == handle) {
                return None;
            }
        }
        if !self.pins.close_if_unpinned(py) {
            return None;
        }
        // Closed from here on, and never reopened.
        // SAFETY: `is_simple` holds and the state is locked. The moved-out value is overwritten without being dropped.
        let memory = unsafe {
            let simple = memory.read_simple();
            (&raw mut state.backing).write(Backing::Foreign);
            simple
        };
        Some((memory, state.resource.take()))
    }

    /// As [`PyBuffer::close_fast`], for any kind of stream; also frees the memory.
    #[inline(never)]
    fn close_detached(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> Option<PyResult<()>> {
        let (memory, resource) = {
            let mut state = self.lock(py);
            let BufferState {
                backing: Backing::Pool(memory),
                owner: None,
                descriptor: None,
                ..
            } = &mut *state
            else {
                return None;
            };
            if !memory.has_no_foreign_owner() {
                return None;
            }
            if let Some(given) = stream {
                let memory: &DeviceBuffer = memory;
                let is_same = |stream: &Stream| {
                    memory.stream().handle() == stream.handle() && !stream.is_per_thread()
                };
                if !given.cast::<PyStream>().ok()?.get().is(py, is_same) {
                    return None;
                }
            }
            if !self.pins.close_if_unpinned(py) {
                return None;
            }
            // Closed from here on, and never reopened.
            (std::mem::take(&mut state.backing), state.resource.take())
        };
        let done = match memory {
            Backing::Pool(memory) => {
                // SAFETY: memory, pool and stream contain no Python objects.
                unsafe { cpython::detached(|| memory.close(None)) }
            }
            // Unreachable: checked above.
            _ => Ok(()),
        };
        if let Some(resource) = resource {
            resource.drop_ref(py);
        }
        Some(done.or_raise(py))
    }
}

/// `Buffer.close(stream=None)`.
pub(super) struct Close;

impl Method<1> for Close {
    type Class = PyBuffer;
    type Receiver = Self::Class;
    const FUNCTION: &'static str = "Buffer.close";
    const NAME: &'static CStr = c"close";
    const TEXT: &'static CStr = with_example!(
        "close($self, /, stream=None)
--

Frees the memory, stream-ordered after the stream's current work. Further calls do nothing.

The memory stays valid while arrays exported by DLPack are alive. Work that other threads are queueing with the buffer, such
as a launch or a copy, is ordered before the deallocation.

Parameters
----------
stream : Stream, optional
    Default: the stream of the allocation, or the one given to :meth:`set_deallocation_stream`.",
        "cuda.core.Buffer.close"
    );
    const NAMES: [&'static str; 1] = ["stream"];

    fn known() -> &'static PyOnceLock<[Py<PyString>; 1]> {
        static KNOWN: PyOnceLock<[Py<PyString>; 1]> = PyOnceLock::new();
        &KNOWN
    }

    #[inline]
    fn call(
        slf: &Bound<'_, PyBuffer>,
        [stream]: [Option<&Bound<'_, PyAny>>; 1],
    ) -> PyResult<Py<PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let Some((memory, resource)) = this.close_fast(py, stream) else {
            cupyrite::hint::cold_path();
            return close_general(slf, stream);
        };
        // SAFETY: memory, pool and stream contain no Python objects.
        let (done, clone) = unsafe { cpython::detached(|| memory.free_and_keep_stream()) };
        match stream.and_then(stream::cast_exact) {
            // Most memory is freed on the stream of its allocation.
            Some(shell) => shell.give_back(py, clone),
            None => stream::drop_clone(py, clone),
        }
        if let Some(resource) = resource {
            resource.drop_ref(py);
        }
        match done {
            Ok(()) => Ok(py.None()),
            Err(error) => {
                cupyrite::hint::cold_path();
                Err(to_python(py, &error))
            }
        }
    }
}

#[inline(never)]
fn close_general(
    slf: &Bound<'_, PyBuffer>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let (py, this) = (slf.py(), slf.get());
    if let Some(done) = this.close_detached(py, stream) {
        done?;
        return Ok(py.None());
    }
    // PyO3 would defer reference drops unless it is attached explicitly. Attaching fails during interpreter shutdown,
    // where deferral does not matter.
    match Python::try_attach(|py| this.close_on(py, stream)) {
        Some(done) => done?,
        None => this.close_on(py, stream)?,
    }
    Ok(py.None())
}

/// As [`release`], for contexts that cannot raise; preserves a pending exception.
pub(super) fn release_quietly(py: Python<'_>, state: BufferState) {
    if matches!(state.backing, Backing::Foreign)
        && state.owner.is_none()
        && state.resource.is_none()
    {
        return;
    }
    // SAFETY: attached; the three references are restored below.
    let raised = unsafe {
        let (mut kind, mut value, mut trace) = (
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        );
        ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut trace);
        (kind, value, trace)
    };
    if let Err(error) = release(py, state, true) {
        error.write_unraisable(py, None);
    }
    // SAFETY: restores the references fetched above, once.
    unsafe { ffi::PyErr_Restore(raised.0, raised.1, raised.2) };
}

impl Drop for PyBuffer {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if let BufferState {
            backing: Backing::Foreign,
            resource: None,
            owner: None,
            ..
        } = state
        {
            return;
        }
        let state = std::mem::take(state);
        // SAFETY: the contents of Python objects are dropped by their deallocator, which runs attached. So does a
        // failed construction.
        let py = unsafe { Python::assume_attached() };
        release_quietly(py, state);
    }
}
