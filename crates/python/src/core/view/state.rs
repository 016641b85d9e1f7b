//! State of views: the memory and its owner, the Python object, and the stream on which a view is used. Creating views
//! from other objects belongs in the modules that import this one.

use std::sync::{Mutex, OnceLock};

use cupyrite::dlpack::{DataType, DeviceType, DlDevice, ManagedTensor, ManagedTensorVersioned};
use cupyrite::{Device, MemoryKind, Stream, StridedLayout, pointer_info};
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyTuple, PyType};

use crate::core::dlpack::managed::Managed;
use crate::core::errors::OrRaise;
use crate::core::memory::buffer::PyBuffer;
use crate::core::memory::keep_alive::BufferView;
use crate::core::numbers::{as_i64, short_repr};
use crate::core::stream::PyStream;
use crate::core::view::dtype;
use crate::core::view::dtype::Dtype;
use crate::core::view::layout::{PyLayout, tuple};
use crate::cpython::Obj;
use crate::cpython::trashcan;

/// State of a view.
pub struct ViewState {
    /// Base address of the layout.
    pub base: u64,
    /// Layout of the elements.
    pub layout: StridedLayout,
    /// Element type.
    pub dtype: Dtype,
    /// Device of the memory.
    pub device: DlDevice,
    /// Value of the property `device_id`: -1 for host memory.
    pub device_id: i32,
    /// Whether the memory is read-only.
    pub readonly: bool,
    /// Byte range of the known memory, relative to `base`; `None`: the span of the layout, computed on demand.
    pub known_bytes: Option<(i64, i64)>,
    /// The viewed object.
    pub exporting: Option<Py<PyAny>>,
    /// Owner of the memory.
    pub owner: MemoryOwner,
}

impl ViewState {
    /// Byte range of the known memory, relative to `base`.
    pub fn known_bytes(&self) -> (i64, i64) {
        self.known_bytes.unwrap_or_else(|| byte_span(&self.layout))
    }
}

/// Owner of a view's memory, besides the viewed object.
pub enum MemoryOwner {
    /// None.
    Viewed,
    /// None; device memory that may be managed or page-locked, which is queried on demand.
    Cupy,
    /// An unversioned DLPack export.
    DlPack(Managed<ManagedTensor>),
    /// A versioned DLPack export.
    DlPackVersioned(Managed<ManagedTensorVersioned>),
    /// A pinned buffer.
    Buffer(PinnedBuffer),
    /// A buffer-protocol view.
    BufferProtocol(BufferView),
    /// The root of the views from which this one was derived.
    RootView(Py<PyView>),
}

/// A pin of a buffer, released on drop; requires an attached thread.
pub struct PinnedBuffer(pub Py<PyBuffer>);

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        // SAFETY: part of a Python object, dropped on an attached thread.
        let py = unsafe { Python::assume_attached() };
        self.0.get().unpin(py);
    }
}

/// Stream on which a view will be used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Consumer {
    /// No synchronization.
    Ignore,
    /// Handle of the stream; 0 is the legacy default stream.
    Stream(usize),
}

impl Consumer {
    /// Converts `stream_ptr`.
    ///
    /// # Errors
    ///
    /// `BufferError` if it is missing, `TypeError` for other types, `ValueError` for negative numbers except -1.
    pub fn accept(given: Option<&Bound<'_, PyAny>>) -> PyResult<Consumer> {
        let Some(given) = given else {
            return Err(PyBufferError::new_err(
                "argument 'stream_ptr' is required: the handle of the stream on which the view will be used, 0 for the \
                 default stream, or -1 for no synchronization",
            ));
        };
        let number = if let Ok(number) = given.cast::<PyInt>() {
            as_i64(number)
        } else if let Ok(stream) = given.cast::<PyStream>() {
            return Ok(Consumer::Stream(
                stream.get().get(given.py())?.handle().addr(),
            ));
        } else if let Some(handle) = crate::types::handle_value(Obj::of(given)) {
            i64::try_from(handle).ok()
        } else {
            return Err(PyTypeError::new_err(format!(
                "argument 'stream_ptr' is of type {}; expected an int (a stream handle, 0 or -1) or a Stream",
                given.get_type().name()?
            )));
        };
        match number {
            Some(-1) => Ok(Consumer::Ignore),
            Some(address) if address >= 0 => Ok(Consumer::Stream(address as usize)),
            _ => Err(PyValueError::new_err(format!(
                "argument 'stream_ptr' is {}; expected a stream handle, 0 or -1",
                short_repr(given)
            ))),
        }
    }

    /// The value of the argument `stream` of `__dlpack__`; the legacy default stream is 1.
    pub fn as_number(self) -> i64 {
        match self {
            Consumer::Ignore => -1,
            Consumer::Stream(address) => address.max(1) as i64,
        }
    }

    /// Makes the consumer's stream wait for the current work of `producer`, both on `device`.
    ///
    /// # Errors
    ///
    /// Driver errors.
    pub fn wait_for(self, py: Python<'_>, producer: usize, device: i32) -> PyResult<()> {
        let Consumer::Stream(consumer) = self else {
            return Ok(());
        };
        // 0 and 1 both denote the legacy default stream.
        let (consumer, producer) = (consumer.max(1), producer.max(1));
        if consumer == producer {
            return Ok(());
        }
        py.detach(|| {
            let device = Device::new(usize::try_from(device).unwrap_or(0))?;
            let _entered = device.enter()?;
            let stream = |handle| {
                // SAFETY: producer and consumer guarantee streams that live during this call.
                unsafe { Stream::from_handle(std::ptr::with_exposed_provenance_mut(handle)) }
            };
            stream(consumer).wait_for_stream(&stream(producer))
        })
        .or_raise(py)
    }
}

/// Byte range spanned by a layout, relative to its base address.
pub fn byte_span(layout: &StridedLayout) -> (i64, i64) {
    let (low, high) = layout.bounds();
    let item = layout.item_size() as i64;
    // Cannot overflow: layouts are validated.
    (low * item, (high + 1) * item)
}

/// A strided view of an array of any library: address, shape, strides and element type. Copies nothing and keeps the
/// array alive.
///
/// Views are created by :meth:`from_any_interface` and other class methods, or for function arguments by
/// :func:`args_viewable_as_strided_memory`. A view of device memory is ordered with the stream for which it was
/// created.
///
/// A view can be exported: it has ``__dlpack__``, ``__cuda_array_interface__`` for device-accessible memory, and
/// ``__array_interface__`` and the buffer protocol for host-accessible memory.
///
/// Parameters
/// ----------
/// obj : object, optional
///     Deprecated: an array with DLPack or ``__cuda_array_interface__``.
/// stream_ptr : int, optional
///     As in :meth:`from_any_interface`.
#[doc = example!("cuda.core.utils.StridedMemoryView")]
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._memoryview",
    name = "StridedMemoryView"
)]
pub struct PyView {
    pub(super) parts: ViewState,
    pub(super) shape: PyOnceLock<Py<PyTuple>>,
    pub(super) strides: PyOnceLock<Option<Py<PyTuple>>>,
    pub(super) dtype: PyOnceLock<Option<Py<PyAny>>>,
    pub(super) layout: PyOnceLock<Py<PyLayout>>,
    data_type: OnceLock<DataType>,
    /// Device of the memory, if it must be queried.
    dl_device: OnceLock<DlDevice>,
}

impl Drop for PyView {
    fn drop(&mut self) {
        // The array may be a view of a view, and so on: a long chain must not be deallocated recursively.
        let exporting = self.parts.exporting.take();
        if exporting.is_some() {
            let owner = std::mem::replace(&mut self.parts.owner, MemoryOwner::Viewed);
            trashcan::drop_bounded((exporting, owner));
        }
    }
}

/// A view being constructed as an object of a subclass.
#[pyclass(frozen, module = "cuda.core._memoryview", name = "_PendingView")]
pub(super) struct PendingView(pub(super) Mutex<Option<ViewState>>);

/// Creates a view object.
///
/// # Errors
///
/// `MemoryError`.
pub fn make(py: Python<'_>, parts: ViewState) -> PyResult<Bound<'_, PyAny>> {
    Ok(Bound::new(py, PyView::of(parts))?.into_any())
}

/// Creates a view object of `class`, which is `StridedMemoryView` or a subclass.
///
/// # Errors
///
/// Errors of the subclass.
pub fn make_of<'py>(class: &Bound<'py, PyType>, parts: ViewState) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    if std::ptr::eq(class.as_type_ptr(), PyView::type_object_raw(py)) {
        return make(py, parts);
    }
    let own = py.get_type::<PyView>();
    let adopted = Bound::new(py, PendingView(Mutex::new(Some(parts))))?;
    own.call_method1(intern!(py, "__new__"), (class, adopted))
}

impl PyView {
    /// A view with this state.
    pub fn of(parts: ViewState) -> PyView {
        PyView {
            parts,
            shape: PyOnceLock::new(),
            strides: PyOnceLock::new(),
            dtype: PyOnceLock::new(),
            layout: PyOnceLock::new(),
            data_type: OnceLock::new(),
            dl_device: OnceLock::new(),
        }
    }

    /// The state of the view.
    pub fn parts(&self) -> &ViewState {
        &self.parts
    }

    /// Whether the element type is unknown.
    pub fn has_unknown_type(&self) -> bool {
        self.parts.dtype.is_unknown()
    }

    /// The view that owns the memory: this one, unless it was derived from another.
    pub fn root(slf: &Bound<'_, PyView>) -> Py<PyView> {
        match &slf.get().parts.owner {
            MemoryOwner::RootView(root) => root.clone_ref(slf.py()),
            _ => slf.clone().unbind(),
        }
    }

    /// DLPack device of the memory.
    pub fn device(&self) -> DlDevice {
        match &self.parts.owner {
            MemoryOwner::Cupy => *self
                .dl_device
                .get_or_init(|| cupy_device(self.parts.base, self.parts.device)),
            MemoryOwner::RootView(root) => root.get().device(),
            _ => self.parts.device,
        }
    }

    /// Layout of the elements.
    pub fn layout(&self) -> &StridedLayout {
        &self.parts.layout
    }

    /// Address of the element with all indices zero.
    #[inline]
    pub fn address(&self) -> u64 {
        self.parts
            .base
            .wrapping_add_signed(self.parts.layout.offset_in_bytes())
    }

    /// Whether the memory is read-only.
    pub fn is_readonly(&self) -> bool {
        self.parts.readonly
    }

    /// DLPack type of the elements.
    ///
    /// # Errors
    ///
    /// `BufferError` if DLPack has no such type.
    pub fn data_type(&self, py: Python<'_>) -> PyResult<DataType> {
        if let Some(known) = self.data_type.get() {
            return Ok(*known);
        }
        let found = self.parts.dtype.data_type(py)?;
        Ok(*self.data_type.get_or_init(|| found))
    }

    /// Base address of the layout.
    pub fn base(&self) -> u64 {
        self.parts.base
    }

    /// The buffer that owns the memory, if any.
    pub fn buffer<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBuffer>> {
        match &self.parts.owner {
            MemoryOwner::Buffer(pinned) => Some(pinned.0.bind(py).clone()),
            MemoryOwner::RootView(parent) => parent.get().buffer(py),
            _ => None,
        }
    }

    /// The `numpy.dtype`; `None` if the type is unknown.
    ///
    /// # Errors
    ///
    /// As [`Dtype::numpy`].
    pub fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let created = || -> PyResult<Option<Py<PyAny>>> {
            Ok(self.parts.dtype.numpy(py)?.map(Bound::unbind))
        };
        let known = self.dtype.get_or_try_init(py, created)?;
        Ok(known.as_ref().map(|dtype| dtype.bind(py).clone()))
    }

    /// `typestr`, and `descr` for structured types.
    pub(super) fn typestr<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(String, Option<Bound<'py, PyAny>>)> {
        if let Dtype::DlPack(dtype) = &self.parts.dtype
            && let Some(text) = dtype::typestr_of(*dtype)
        {
            return Ok((text, None));
        }
        let Some(dtype) = self.numpy(py)? else {
            return Err(PyAttributeError::new_err(
                "array interfaces require an element type, which is unknown; use view(dtype=...)",
            ));
        };
        let text = dtype.getattr(intern!(py, "str"))?.extract()?;
        let structured = !dtype.getattr(intern!(py, "names"))?.is_none();
        let descr = structured
            .then(|| dtype.getattr(intern!(py, "descr")))
            .transpose()?;
        Ok((text, descr))
    }

    pub(super) fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (text, descr) = self.typestr(py)?;
        let layout = &self.parts.layout;
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "shape"), self.shape(py)?)?;
        dict.set_item(intern!(py, "typestr"), text)?;
        let data = (self.address(), self.parts.readonly);
        dict.set_item(intern!(py, "data"), data)?;
        dict.set_item(intern!(py, "version"), 3)?;
        // The buffer protocol and NumPy represent C order as None.
        if layout.is_contiguous_c() {
            dict.set_item(intern!(py, "strides"), py.None())?;
        } else {
            let strides = tuple(py, &layout.strides_in_bytes())?;
            dict.set_item(intern!(py, "strides"), strides)?;
        }
        if let Some(descr) = descr {
            dict.set_item(intern!(py, "descr"), descr)?;
        }
        Ok(dict)
    }
}

/// DLPack device of memory that CuPy attributes to a device. The driver query takes as long as the rest of a view.
fn cupy_device(base: u64, device: DlDevice) -> DlDevice {
    let kind = match pointer_info(base).map(|info| info.kind) {
        Ok(MemoryKind::Managed) => DeviceType::CUDA_MANAGED,
        Ok(MemoryKind::Host) => DeviceType::CUDA_HOST,
        // Memory unknown to the driver is attributed to the device.
        _ => DeviceType::CUDA,
    };
    DlDevice { kind, ..device }
}
