//! Exports: the structures given to consumers, and the owners of their memory.

use std::ffi::{CStr, c_void};

use cupyrite::dlpack::{
    DataType, DlDevice, ManagedTensor, ManagedTensorVersioned, READ_ONLY, Tensor, VERSION,
};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyTuple};

use crate::core::dlpack::buffer::{
    NAME, NAME_VERSIONED, device_of, dl_extent, synchronize_consumer,
};
use crate::core::memory::buffer::PyBuffer;
use crate::core::numbers;
use crate::core::numbers::{as_i64, int_pair};
use crate::core::view::state::PyView;
use crate::cpython;

/// Owner of exported memory; lives as long as the export.
enum Owner {
    /// A pinned buffer.
    Buffer(Py<PyBuffer>),
    /// A view, which owns its source.
    View(Py<PyView>),
}

/// One export: the structure given to the consumer, and the data it points to.
struct Export<M> {
    managed: M,
    shape: i64,
    stride: i64,
    owner: Owner,
}

/// An exported structure that contains a tensor.
trait ManagedStruct: Sized {
    const NAME: &'static CStr;
    fn wrap(tensor: Tensor, readonly: bool) -> Self;
    fn tensor(&mut self) -> &mut Tensor;
    fn set_context(&mut self, context: *mut c_void);
    fn context(&self) -> *mut c_void;
}

impl ManagedStruct for ManagedTensor {
    const NAME: &'static CStr = NAME;

    fn wrap(tensor: Tensor, _readonly: bool) -> Self {
        ManagedTensor {
            tensor,
            context: std::ptr::null_mut(),
            deleter: Some(delete::<Self>),
        }
    }
    fn tensor(&mut self) -> &mut Tensor {
        &mut self.tensor
    }
    fn set_context(&mut self, context: *mut c_void) {
        self.context = context;
    }
    fn context(&self) -> *mut c_void {
        self.context
    }
}

impl ManagedStruct for ManagedTensorVersioned {
    const NAME: &'static CStr = NAME_VERSIONED;

    fn wrap(tensor: Tensor, readonly: bool) -> Self {
        ManagedTensorVersioned {
            version: VERSION,
            context: std::ptr::null_mut(),
            deleter: Some(delete::<Self>),
            flags: if readonly { READ_ONLY } else { 0 },
            tensor,
        }
    }
    fn tensor(&mut self) -> &mut Tensor {
        &mut self.tensor
    }
    fn set_context(&mut self, context: *mut c_void) {
        self.context = context;
    }
    fn context(&self) -> *mut c_void {
        self.context
    }
}

/// Deleter of an export, called by the consumer.
///
/// # Safety
///
/// Called once with the exported structure, from any thread, as DLPack specifies.
unsafe extern "C" fn delete<M: ManagedStruct>(managed: *mut M) {
    if managed.is_null() {
        return;
    }
    // SAFETY: an export of this module, returned by its consumer.
    let export = unsafe { Box::from_raw((*managed).context().cast::<Export<M>>()) };
    // Not `Python::try_attach`: a destructor that the driver runs within `cpython::detached` may call the deleter.
    // Attaching fails during interpreter shutdown; the export is then leaked.
    let mut export = Some(export);
    cpython::attached(|py| {
        if let Some(export) = export.take() {
            release(py, *export);
        }
    });
    std::mem::forget(export);
}

/// Releases the owner immediately: PyO3 would defer dropping a `Py` in a capsule destructor, which Python calls without
/// PyO3.
fn release<M>(py: Python<'_>, export: Export<M>) {
    match export.owner {
        Owner::Buffer(buffer) => {
            let buffer = buffer.into_bound(py);
            buffer.get().unpin(py);
        }
        Owner::View(view) => drop(view.into_bound(py)),
    }
}

/// Destructor of capsules that were not consumed; a consumer renames the capsule.
unsafe extern "C" fn destroy_capsule<M: ManagedStruct>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python passes the capsule; an unconsumed capsule holds a pointer under this name.
    unsafe {
        // The name's address identifies a capsule that was never renamed; a capsule renamed back has another address.
        if !std::ptr::eq(ffi::PyCapsule_GetName(capsule), M::NAME.as_ptr())
            && ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) == 0
        {
            return;
        }
        let managed = ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()).cast::<M>();
        if managed.is_null() {
            return;
        }
        // Only exports of this module have this destructor, which runs attached.
        let export = Box::from_raw((*managed).context().cast::<Export<M>>());
        release(Python::assume_attached(), *export);
    }
}

/// Arguments of `__dlpack__`.
pub struct ExportRequest<'a, 'py> {
    /// Name of the exporting class, for messages.
    pub class: &'static str,
    /// As in `__dlpack__`.
    pub stream: Option<&'a Bound<'py, PyAny>>,
    /// As in `__dlpack__`.
    pub max_version: Option<&'a Bound<'py, PyAny>>,
    /// As in `__dlpack__`.
    pub dl_device: Option<&'a Bound<'py, PyAny>>,
    /// As in `__dlpack__`.
    pub copy: Option<&'a Bound<'py, PyAny>>,
}

impl ExportRequest<'_, '_> {
    /// Returns whether to export a versioned capsule, and the consumer's stream; -1: no synchronization.
    ///
    /// # Errors
    ///
    /// `BufferError` for an unsupported request, `TypeError` for arguments of the wrong type.
    fn check(&self, here: DlDevice) -> PyResult<(bool, i64)> {
        let class = self.class;
        if let Some(wanted) = self.dl_device {
            let Ok(pair) = wanted.cast::<PyTuple>() else {
                return Err(PyTypeError::new_err(format!(
                    "{class}.__dlpack__() argument 'dl_device' is of type {}; expected a tuple of two ints or None",
                    wanted.get_type().name()?
                )));
            };
            if int_pair(pair) != Some((here.kind.0.into(), here.number.into())) {
                return Err(PyBufferError::new_err(format!(
                    "{class}.__dlpack__() argument 'dl_device' is {}; the memory is on ({}, {}), and the export does not copy it",
                    numbers::short_repr(wanted),
                    here.kind.0,
                    here.number
                )));
            }
        }
        if let Some(copy) = self.copy
            && copy.cast::<PyBool>().is_err()
        {
            return Err(PyTypeError::new_err(format!(
                "{class}.__dlpack__() argument 'copy' is of type {}; expected a bool or None",
                copy.get_type().name()?
            )));
        }
        if self.copy.map_or(Ok(false), Bound::is_truthy)? {
            return Err(PyBufferError::new_err(format!(
                "{class}.__dlpack__() argument 'copy' is true; a {class} exports its own memory without copying"
            )));
        }
        let versioned = match self.max_version {
            None => false,
            Some(given) => {
                let Ok(pair) = given.cast::<PyTuple>() else {
                    return Err(PyTypeError::new_err(format!(
                        "{class}.__dlpack__() argument 'max_version' is of type {}; expected a tuple of two ints or None",
                        given.get_type().name()?
                    )));
                };
                let Some((major, _)) = int_pair(pair) else {
                    return Err(PyBufferError::new_err(format!(
                        "{class}.__dlpack__() argument 'max_version' is {}; expected (major, minor)",
                        numbers::short_repr(given)
                    )));
                };
                major >= 1
            }
        };
        let stream = match self.stream {
            // The array API standard specifies the legacy default stream for a missing `stream`.
            None => 1,
            Some(given) => {
                let number = given.cast::<PyInt>().ok().and_then(as_i64);
                let Some(number) = number.filter(|&n| n >= -1) else {
                    return Err(PyTypeError::new_err(format!(
                        "{class}.__dlpack__() argument 'stream' is {}; expected a stream handle, 1 or 2 for the default \
                         streams, -1 for no synchronization, or None",
                        numbers::short_repr(given)
                    )));
                };
                number
            }
        };
        Ok((versioned, stream))
    }
}

/// Exports a buffer as a capsule; see `Buffer.__dlpack__`.
///
/// # Errors
///
/// `BufferError` for an unsupported request, `TypeError` for arguments of the wrong type.
pub fn export<'py>(
    buffer: &Bound<'py, PyBuffer>,
    request: &ExportRequest<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = buffer.py();
    let here = device_of(buffer.get(), py)?;
    let (versioned, stream) = request.check(here)?;
    synchronize_consumer(buffer.get(), py, stream, here.kind)?;
    if versioned {
        capsule(py, of_buffer::<ManagedTensorVersioned>(buffer, here)?)
    } else {
        capsule(py, of_buffer::<ManagedTensor>(buffer, here)?)
    }
}

/// Exports a view as a capsule; see `StridedMemoryView.__dlpack__`.
///
/// # Errors
///
/// As [`export`]; `BufferError` for element types unknown to DLPack.
pub fn export_view<'py>(
    view: &Bound<'py, PyView>,
    request: &ExportRequest<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = view.py();
    let here = view.get().device();
    let (versioned, stream) = request.check(here)?;
    if let Some(buffer) = view.get().buffer(py) {
        synchronize_consumer(buffer.get(), py, stream, here.kind)?;
    }
    let tensor = view_tensor(view)?;
    if versioned {
        capsule(py, of_view::<ManagedTensorVersioned>(view, tensor))
    } else {
        capsule(py, of_view::<ManagedTensor>(view, tensor))
    }
}

/// Exports a view through the C exchange API, without synchronization.
///
/// # Errors
///
/// `BufferError` for element types unknown to DLPack.
pub fn export_managed(view: &Bound<'_, PyView>) -> PyResult<*mut ManagedTensorVersioned> {
    Ok(of_view(view, view_tensor(view)?))
}

/// The view as a tensor, which borrows shape and strides from the view.
///
/// # Errors
///
/// As [`export_managed`].
pub fn view_tensor(view: &Bound<'_, PyView>) -> PyResult<Tensor> {
    let py = view.py();
    let view = view.get();
    let layout = view.layout();
    Ok(Tensor {
        data: std::ptr::with_exposed_provenance_mut(view.address() as usize),
        device: view.device(),
        // At most 64.
        ndim: layout.ndim() as i32,
        dtype: view.data_type(py)?,
        // Consumers only read them.
        shape: layout.shape().as_ptr().cast_mut(),
        strides: layout.strides().as_ptr().cast_mut(),
        byte_offset: 0,
    })
}

/// Moves an export to the heap, where it lives until its deleter is called.
fn publish<M: ManagedStruct>(export: Export<M>) -> *mut M {
    let export = Box::into_raw(Box::new(export));
    // SAFETY: newly allocated and not shared yet.
    unsafe {
        (*export).managed.set_context(export.cast());
        &raw mut (*export).managed
    }
}

fn of_view<M: ManagedStruct>(view: &Bound<'_, PyView>, tensor: Tensor) -> *mut M {
    publish(Export {
        managed: M::wrap(tensor, view.get().is_readonly()),
        shape: 0,
        stride: 0,
        owner: Owner::View(view.clone().unbind()),
    })
}

fn of_buffer<M: ManagedStruct>(buffer: &Bound<'_, PyBuffer>, here: DlDevice) -> PyResult<*mut M> {
    let pinned = buffer.get().pin(buffer.py())?;
    let tensor = Tensor {
        data: std::ptr::with_exposed_provenance_mut(pinned.address as usize),
        device: here,
        ndim: 1,
        dtype: DataType::new(DataType::INT, 8),
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let shape = dl_extent(pinned.size)?;
    // The export releases the pin.
    std::mem::forget(pinned);
    let managed = publish(Export {
        managed: M::wrap(tensor, false),
        shape,
        stride: 1,
        owner: Owner::Buffer(buffer.clone().unbind()),
    });
    // SAFETY: allocated above; its address is stable.
    unsafe {
        let export = (*managed).context().cast::<Export<M>>();
        let (shape, stride) = (&raw mut (*export).shape, &raw mut (*export).stride);
        let tensor = (*managed).tensor();
        tensor.shape = shape;
        tensor.strides = stride;
    }
    Ok(managed)
}

fn capsule<M: ManagedStruct>(py: Python<'_>, managed: *mut M) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: the export lives until its deleter is called, by the consumer or the capsule's destructor.
    unsafe {
        let capsule =
            ffi::PyCapsule_New(managed.cast(), M::NAME.as_ptr(), Some(destroy_capsule::<M>));
        if capsule.is_null() {
            let error = PyErr::fetch(py);
            delete::<M>(managed);
            return Err(error);
        }
        Ok(Bound::from_owned_ptr(py, capsule))
    }
}
