//! How the memory of a buffer is given back.

use std::ffi::CStr;

use cupyrite::{DeviceBuffer, RelaxedCapture, SimpleAllocation, Stream};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

use crate::core::closable::{Detached, Lent};
use crate::core::errors::{OrRaise, to_python};
use crate::core::memory::buffer::{Backing, GivenBack, PyBuffer, State};
use crate::core::stream;
use crate::core::stream::PyStream;
use crate::core::view::import::Keep;
use crate::cpython::method::Method;
use crate::cpython::trashcan;

/// Sets where the memory will be freed; gives the stream object that it had before.
pub(super) fn set_stream(
    state: &mut State,
    given: &Bound<'_, PyAny>,
    accepted: &Stream,
) -> cupyrite::Result<Option<Py<PyAny>>> {
    match &mut state.backing {
        Backing::Pool(memory) => memory.set_deallocation_stream(accepted)?,
        Backing::Resource(back) => {
            let former = back.object.replace(given.clone().unbind());
            match &former {
                Some(_) => back.users.set_deallocation_stream(accepted),
                None => back.users.replace_deallocation_stream(accepted),
            }
            return Ok(former);
        }
        // The whole is freed after what that stream holds then.
        Backing::View(whole) => whole.get().used_by(given.py(), accepted),
        Backing::Foreign | Backing::Plain(_) => {}
    }
    Ok(None)
}

/// Gives the memory back to where it came from.
pub(super) fn release(py: Python<'_>, state: State) -> PyResult<()> {
    let State {
        backing,
        address,
        size,
        resource,
        owner,
        ..
    } = state;
    let result = match backing {
        Backing::Foreign => Ok(()),
        Backing::Pool(memory) => py.detach(|| memory.close(None)).or_raise(py),
        Backing::Plain(memory) => {
            // It waits for the device.
            py.detach(|| drop(memory));
            Ok(())
        }
        Backing::View(whole) => {
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
    // An owner may be a buffer itself, and so on.
    trashcan::end(owner, Keep::Object);
    result
}

fn deallocate(
    py: Python<'_>,
    resource: &Bound<'_, PyAny>,
    address: u64,
    size: usize,
    mut back: GivenBack,
) -> PyResult<()> {
    let stream = back.users.deallocation_stream().clone();
    if back.users.has_other_streams() {
        // May destroy some of them, too.
        py.detach(|| back.users.order_free_after_others(address));
    }
    let GivenBack { object, users, .. } = back;
    // The memory may be the last that has them.
    let _streams: Vec<Lent<'_, Stream>> = users
        .into_streams()
        .into_iter()
        .map(|stream| Lent::new(py, stream))
        .collect();
    let stream = match object {
        // Where the object was closed meanwhile, another one has the stream that it had.
        Some(object) => match stream::accept(object.bind(py), "", "", false) {
            Ok(_) => object,
            Err(_) => PyStream::wrap(py, stream)?.into_any(),
        },
        None => stream::default_object(py)?.into_any(),
    };
    let keywords = PyDict::new(py);
    keywords.set_item(intern!(py, "stream"), stream)?;
    // Whoever wrote the resource has no say in when the buffer ends.
    let relaxed = RelaxedCapture::enter();
    let done = resource.call_method(intern!(py, "deallocate"), (address, size), Some(&keywords));
    drop(relaxed);
    if let Err(error) = done {
        // The buffer is gone all the same, and whoever lets go of it has nothing to do with the resource's error.
        error.write_unraisable(py, Some(resource));
    }
    Ok(())
}

impl PyBuffer {
    /// The memory and its resource, of a buffer that is closed herewith, where nothing but one driver call frees it: nobody
    /// holds it, its memory came from a pool, and the stream given is the one that frees it. Nothing is done, and `None`
    /// returned, where that is not so.
    #[inline(always)]
    fn close_simply(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> Option<(SimpleAllocation, Option<Py<PyAny>>)> {
        let mut state = self.lock(py);
        let State {
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
            // A stream of the crate's: its handle is no other stream's.
            let handle = memory.stream().handle();
            if !stream::exact(given)?.is(py, |stream| stream.handle() == handle) {
                return None;
            }
        }
        if !self.uses.suspend(py) {
            return None;
        }
        // Closed from here on, and never resumed.
        // SAFETY: that it is simple was asked above, and the state is locked; what is left of it is written over, and not
        // dropped.
        let memory = unsafe {
            let simple = memory.read_simple();
            (&raw mut state.backing).write(Backing::Foreign);
            simple
        };
        Some((memory, state.resource.take()))
    }

    /// As [`PyBuffer::close_simply`], with streams of any kind; and frees the memory.
    #[inline(never)]
    fn close_plainly(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> Option<PyResult<()>> {
        let (memory, resource) = {
            let mut state = self.lock(py);
            let State {
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
            if !self.uses.suspend(py) {
                return None;
            }
            // Closed from here on, and never resumed.
            (std::mem::take(&mut state.backing), state.resource.take())
        };
        let done = match memory {
            Backing::Pool(memory) => {
                // SAFETY: the memory, its pool and its stream are the driver's alone.
                let _detached = unsafe { Detached::new(py) };
                memory.close(None)
            }
            // It was looked at above.
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
    const FUNCTION: &'static str = "Buffer.close";
    const NAME: &'static CStr = c"close";
    const TEXT: &'static CStr = c"close($self, /, stream=None)
--

Frees the memory in the order of a stream: after what the stream holds now. Later calls do nothing.

While arrays made from the buffer by DLPack are alive the memory stays. What other threads queue just now, a launch
or a copy with the buffer, comes first.

Parameters
----------
stream : Stream, optional
    By default the stream that the memory was allocated on, or that :meth:`set_deallocation_stream` was given.";
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
        let Some((memory, resource)) = this.close_simply(py, stream) else {
            cupyrite::hint::cold_path();
            return close_otherwise(slf, stream);
        };
        let (done, clone) = {
            // SAFETY: the memory, its pool and its stream are the driver's alone.
            let _detached = unsafe { Detached::new(py) };
            memory.free_and_keep_stream()
        };
        match stream.and_then(stream::exact) {
            // Most memory is allocated on the stream that it is freed on.
            Some(shell) => shell.give_back(py, clone),
            None => stream::let_go(py, clone),
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
fn close_otherwise(
    slf: &Bound<'_, PyBuffer>,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let (py, this) = (slf.py(), slf.get());
    if let Some(done) = this.close_plainly(py, stream) {
        done?;
        return Ok(py.None());
    }
    // PyO3 would put off giving references back if it were not told that the thread is attached. When the interpreter
    // ends it cannot be told any more, and nothing needs to be.
    match Python::try_attach(|py| this.close_on(py, stream)) {
        Some(done) => done?,
        None => this.close_on(py, stream)?,
    }
    Ok(py.None())
}

/// As [`release`], for places that cannot raise; an exception that is on its way stays.
pub(super) fn release_quietly(py: Python<'_>, state: State) {
    if matches!(state.backing, Backing::Foreign)
        && state.owner.is_none()
        && state.resource.is_none()
    {
        return;
    }
    // SAFETY: attached; the three references are given back below.
    let raised = unsafe {
        let (mut kind, mut value, mut trace) = (
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        );
        ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut trace);
        (kind, value, trace)
    };
    if let Err(error) = release(py, state) {
        error.write_unraisable(py, None);
    }
    // SAFETY: what was fetched above, once.
    unsafe { ffi::PyErr_Restore(raised.0, raised.1, raised.2) };
}

impl Drop for PyBuffer {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if let State {
            backing: Backing::Foreign,
            resource: None,
            owner: None,
            ..
        } = state
        {
            return;
        }
        let state = std::mem::take(state);
        // SAFETY: contents of Python objects are dropped by their deallocation, which runs attached; as does what fails
        // to become one.
        let py = unsafe { Python::assume_attached() };
        release_quietly(py, state);
    }
}
