//! Buffers made of something else: of memory that exists, of another buffer, of one that grew.

use std::sync::atomic::Ordering;

use cupyrite::{DeviceBuffer, ForkGeneration, Stream, StreamUsage};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PySlice;

use crate::core::closable::closed;
use crate::core::errors::{Class, OrRaise};
use crate::core::memory::buffer::{Backing, GivenBack, PyBuffer};
use crate::core::memory::managed::PyManagedBuffer;
use crate::core::memory::resource::PyMemoryResource;
use crate::core::numbers::{address_argument, size_argument};
use crate::core::stream;

/// Where a slice of so many bytes begins, how many it has where its step is 1, and the step.
fn bounds(slice: &Bound<'_, PySlice>, bytes: usize) -> PyResult<(usize, usize, i128)> {
    if let Ok(bytes) = isize::try_from(bytes) {
        let part = slice.indices(bytes)?;
        let start = part.start.cast_unsigned();
        return Ok((start, part.slicelength, part.step as i128));
    }
    // C's lengths end earlier than addresses do; Python's numbers do not.
    let (start, stop, step): (i128, i128, i128) = slice
        .call_method1(intern!(slice.py(), "indices"), (bytes,))?
        .extract()?;
    let unsigned = |number: i128| usize::try_from(number).unwrap_or(0);
    Ok((unsigned(start), unsigned(stop - start), step))
}

impl PyBuffer {
    /// What `from_handle` makes of its arguments.
    ///
    /// # Errors
    ///
    /// As the method.
    pub fn of_handle(
        ptr: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        mr: Option<&Bound<'_, PyAny>>,
        owner: Option<Py<PyAny>>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyBuffer> {
        let address = address_argument(ptr, "Buffer.from_handle")?;
        let size = size_argument(size, "Buffer.from_handle")?;
        let Some(resource) = mr else {
            if stream.is_some() {
                return Err(PyValueError::new_err(
                    "Buffer.from_handle() argument 'stream' says where 'mr' frees the memory; without 'mr' nobody frees it",
                ));
            }
            return Ok(PyBuffer::shell(
                Backing::Foreign,
                address,
                size,
                None,
                owner,
            ));
        };
        if resource.cast::<PyMemoryResource>().is_err() {
            return Err(PyTypeError::new_err(format!(
                "Buffer.from_handle() argument 'mr' is of type {}; expected a MemoryResource",
                resource.get_type().name()?
            )));
        }
        if owner.is_some() {
            return Err(PyValueError::new_err(
                "Buffer.from_handle() takes 'mr', which frees the memory, or 'owner', which owns it, not both",
            ));
        }
        let accepted = match stream {
            Some(given) => stream::accept(given, "Buffer.from_handle", "stream", false)?,
            None => Stream::default_stream(),
        };
        let backing = Backing::Resource(GivenBack {
            object: stream.map(|given| given.clone().unbind()),
            users: StreamUsage::new(accepted),
            generation: ForkGeneration::current(),
        });
        let resource = Some(resource.clone().unbind());
        Ok(PyBuffer::shell(backing, address, size, resource, None))
    }

    /// Has the memory grow in place, or gives what an object for it at its new address holds: this one is closed then.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where it was closed or is in use, `CUDAError` for memory that no resource of the crate's owns, what
    /// `grow` says.
    pub fn resize(
        &self,
        py: Python<'_>,
        grow: impl FnOnce(&mut DeviceBuffer) -> cupyrite::Result<bool> + Send,
    ) -> PyResult<Option<PyBuffer>> {
        let mut memory = {
            let mut state = self.lock(py);
            if !self.place().open {
                return Err(closed("Buffer"));
            }
            if !matches!(state.backing, Backing::Pool(_)) {
                let text = "CUDA_ERROR_INVALID_VALUE: the memory of this buffer was not allocated by this resource";
                return Err(Class::Cuda.error(py, text.to_owned()));
            }
            // For as long as this takes, others find it closed.
            if !self.uses.suspend(py) {
                return Err(PyRuntimeError::new_err(
                    "this buffer cannot grow while parts of it, arrays made from it or calls use its memory",
                ));
            }
            match std::mem::take(&mut state.backing) {
                Backing::Pool(memory) => memory,
                other => {
                    // It was looked at above.
                    state.backing = other;
                    self.uses.resume(py);
                    return Err(closed("Buffer"));
                }
            }
        };
        let done = py.detach(|| grow(&mut memory));
        let (address, size) = (memory.address(), memory.size());
        let mut state = self.lock(py);
        if matches!(done, Ok(true)) {
            let former = std::mem::take(&mut *state);
            drop(state);
            let shell = PyBuffer::shell(
                Backing::Pool(memory),
                address,
                size,
                former.resource,
                former.owner,
            );
            return Ok(Some(shell));
        }
        state.backing = Backing::Pool(memory);
        state.size = size;
        self.size.store(size, Ordering::Relaxed);
        self.uses.resume(py);
        drop(state);
        done.map(|_| None).or_raise(py)
    }

    /// A part of the buffer, for `__getitem__`.
    ///
    /// # Errors
    ///
    /// `TypeError` and `ValueError` for what is no slice of bytes that follow each other, `RuntimeError` where it was closed.
    pub(super) fn part<'py>(
        slf: &Bound<'py, PyBuffer>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let Ok(slice) = key.cast::<PySlice>() else {
            return Err(PyTypeError::new_err(format!(
                "a Buffer has no elements: it is cut by slices, as in buffer[:16], not by an object of type {}",
                key.get_type().name()?
            )));
        };
        let pinned = slf.get().pin(py)?;
        let (start, length, step) = bounds(slice, pinned.size)?;
        if step != 1 {
            return Err(PyValueError::new_err(format!(
                "the slice of a Buffer has the step {step}; its bytes are one after the other, so expected 1"
            )));
        }
        // Of memory that somebody else describes nobody knows whether it ends where addresses do.
        let address = pinned.address.wrapping_add(start as u64);
        let resource = pinned.resource();
        // Parts of parts hold the whole: nothing that is asked of them goes through a long row of others.
        let whole = match &slf.get().lock(py).backing {
            Backing::View(whole) => Some(whole.clone_ref(py)),
            _ => None,
        };
        let whole = match whole {
            Some(whole) => {
                whole.get().uses.share(py);
                drop(pinned);
                whole
            }
            None => {
                // Undone by the part.
                std::mem::forget(pinned);
                slf.clone().unbind()
            }
        };
        let owner = slf.clone().into_any().unbind();
        let shell = PyBuffer::shell(Backing::View(whole), address, length, resource, Some(owner));
        if slf.cast::<PyManagedBuffer>().is_ok() {
            Ok(PyManagedBuffer::make(py, shell)?.into_bound(py).into_any())
        } else {
            Ok(Bound::new(py, shell)?.into_any())
        }
    }
}
