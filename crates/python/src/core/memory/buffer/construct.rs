//! Construction of buffers: from existing memory, as slices, and by growing.

use std::sync::atomic::Ordering;

use cupyrite::{DeviceBuffer, ForkGeneration, StreamUsage};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PySlice;

use crate::core::closable::closed;
use crate::core::errors::{ExceptionClass, OrRaise};
use crate::core::memory::buffer::{Backing, PyBuffer, ResourceDeallocation};
use crate::core::memory::managed::PyManagedBuffer;
use crate::core::memory::resource::PyMemoryResource;
use crate::core::numbers::{address_argument, size_argument};
use crate::core::stream;

/// Start, length for step 1, and step of a slice of a sequence of `bytes` bytes.
fn slice_bounds(slice: &Bound<'_, PySlice>, bytes: usize) -> PyResult<(usize, usize, i128)> {
    if let Ok(bytes) = isize::try_from(bytes) {
        let part = slice.indices(bytes)?;
        let start = part.start.cast_unsigned();
        return Ok((start, part.slicelength, part.step as i128));
    }
    // `Py_ssize_t` is smaller than the address range; Python ints are not.
    let (start, stop, step): (i128, i128, i128) = slice
        .call_method1(intern!(slice.py(), "indices"), (bytes,))?
        .extract()?;
    let unsigned = |number: i128| usize::try_from(number).unwrap_or(0);
    Ok((unsigned(start), unsigned(stop - start), step))
}

impl PyBuffer {
    /// Implements `from_handle`.
    ///
    /// # Errors
    ///
    /// As the method.
    pub fn from_arguments(
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
                    "Buffer.from_handle() argument 'stream' requires 'mr', which frees the memory on it",
                ));
            }
            return Ok(PyBuffer::new_value(
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
        let accepted = stream::accept_or_default(resource.py(), stream, "Buffer.from_handle")?;
        let backing = Backing::Resource(ResourceDeallocation {
            object: stream.map(|given| given.clone().unbind()),
            users: StreamUsage::new(accepted),
            generation: ForkGeneration::current(),
        });
        let resource = Some(resource.clone().unbind());
        Ok(PyBuffer::new_value(backing, address, size, resource, None))
    }

    /// Grows the memory in place, or returns the value of a new buffer object at another address and closes this one.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a closed or pinned buffer, `CUDAError` for memory not owned by a resource of this crate, the
    /// errors of `grow`.
    pub fn resize(
        &self,
        py: Python<'_>,
        grow: impl FnOnce(&mut DeviceBuffer) -> cupyrite::Result<bool> + Send,
    ) -> PyResult<Option<PyBuffer>> {
        let mut memory = {
            let mut state = self.lock(py);
            if !self.extent().open {
                return Err(self.closed_error());
            }
            if !matches!(state.backing, Backing::Pool(_)) {
                let text = "CUDA_ERROR_INVALID_VALUE: the memory of this Buffer was not allocated by this resource";
                return Err(ExceptionClass::Cuda.error(py, text.to_owned()));
            }
            // Other threads see the buffer as closed until `reopen`.
            if !self.pins.close_if_unpinned(py) {
                return Err(PyRuntimeError::new_err(
                    "this Buffer cannot grow while slices, exported arrays or calls use its memory",
                ));
            }
            match std::mem::take(&mut state.backing) {
                Backing::Pool(memory) => memory,
                other => {
                    // Unreachable: checked above.
                    state.backing = other;
                    self.pins.reopen(py);
                    return Err(closed("Buffer"));
                }
            }
        };
        let done = py.detach(|| grow(&mut memory));
        let (address, size) = (memory.address(), memory.size());
        let mut state = self.lock(py);
        if matches!(done, Ok(true)) {
            let previous = std::mem::take(&mut *state);
            drop(state);
            let shell = PyBuffer::new_value(
                Backing::Pool(memory),
                address,
                size,
                previous.resource,
                previous.owner,
            );
            return Ok(Some(shell));
        }
        state.backing = Backing::Pool(memory);
        state.size = size;
        self.size.store(size, Ordering::Relaxed);
        self.pins.reopen(py);
        drop(state);
        done.map(|_| None).or_raise(py)
    }

    /// Implements `__getitem__`.
    ///
    /// # Errors
    ///
    /// `TypeError` and `ValueError` for keys other than contiguous slices, `RuntimeError` for a closed buffer.
    pub(super) fn slice<'py>(
        slf: &Bound<'py, PyBuffer>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let Ok(slice) = key.cast::<PySlice>() else {
            return Err(PyTypeError::new_err(format!(
                "Buffer indices must be slices, such as buffer[:16], not {}",
                key.get_type().name()?
            )));
        };
        let pinned = slf.get().pin(py)?;
        let (start, length, step) = slice_bounds(slice, pinned.size)?;
        if step != 1 {
            return Err(PyValueError::new_err(format!(
                "Buffer slices must have step 1, not {step}"
            )));
        }
        // Wrapping: externally described memory may end at the end of the address space.
        let address = pinned.address.wrapping_add(start as u64);
        let resource = pinned.resource();
        // A slice of a slice refers to the whole buffer, so that queries do not follow a chain.
        let whole = match &slf.get().lock(py).backing {
            Backing::Slice(whole) => Some(whole.clone_ref(py)),
            _ => None,
        };
        let whole = match whole {
            Some(whole) => {
                whole.get().pins.pin_again(py);
                drop(pinned);
                whole
            }
            None => {
                // Released by the slice.
                std::mem::forget(pinned);
                slf.clone().unbind()
            }
        };
        let owner = slf.clone().into_any().unbind();
        let shell = PyBuffer::new_value(
            Backing::Slice(whole),
            address,
            length,
            resource,
            Some(owner),
        );
        if slf.cast::<PyManagedBuffer>().is_ok() {
            Ok(PyManagedBuffer::create(py, shell)?
                .into_bound(py)
                .into_any())
        } else {
            Ok(Bound::new(py, shell)?.into_any())
        }
    }
}
