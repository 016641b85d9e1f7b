//! `StridedMemoryView`: address, shape, strides and element type of any library's array.

pub mod argument;
pub mod buffer_protocol;
pub mod class;
pub mod copy;
pub mod cupy;
pub mod dlpack;
pub mod dtype;
pub mod import;
pub mod layout;
pub mod method;
pub mod parts;
pub mod state;

use std::ffi::c_int;
use std::sync::PoisonError;

use cupyrite::StridedLayout;
use cupyrite::dlpack::{DeviceType, DlDevice};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyDeprecationWarning, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};

use crate::core::errors::OrRaise;
use crate::core::notebook;
use crate::core::tensor_map::PyTensorMap;
use crate::core::view::dtype::Dtype;
use crate::core::view::import::Protocol;
use crate::core::view::layout::{PyLayout, tuple};
use crate::core::view::state::{Consumer, MemoryOwner, PendingView, PyView, ViewState, make_of};

/// Qualified class name for messages.
fn class_name(of: &Bound<'_, PyAny>) -> PyResult<String> {
    let class = of.get_type();
    let module = class.module()?;
    Ok(if module.to_string_lossy() == "builtins" {
        class.qualname()?.to_string()
    } else {
        format!("{module}.{}", class.qualname()?)
    })
}

#[pymethods]
impl PyView {
    #[new]
    #[pyo3(signature = (obj=None, stream_ptr=None))]
    fn new(
        py: Python<'_>,
        obj: Option<&Bound<'_, PyAny>>,
        stream_ptr: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyView> {
        let Some(obj) = obj else {
            PyErr::warn(
                py,
                &py.get_type::<PyDeprecationWarning>(),
                c"StridedMemoryView() without arguments is deprecated; use StridedMemoryView.from_any_interface() or another class method",
                1,
            )?;
            return Ok(PyView::of(ViewState {
                base: 0,
                layout: StridedLayout::new(&[0], None, 1).or_raise(py)?,
                dtype: Dtype::Unknown,
                device: DlDevice {
                    kind: DeviceType::CPU,
                    number: 0,
                },
                device_id: 0,
                readonly: false,
                known_bytes: None,
                exporting: None,
                owner: MemoryOwner::Viewed,
            }));
        };
        if let Ok(adopted) = obj.cast::<PendingView>() {
            let parts = adopted
                .get()
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            return parts
                .map(PyView::of)
                .ok_or_else(|| PyTypeError::new_err("the view state was already used"));
        }
        let protocol = Protocol::of(obj)?;
        if !matches!(protocol, Protocol::DlPack | Protocol::CudaArrayInterface) {
            return Err(PyBufferError::new_err(format!(
                "StridedMemoryView() requires an array with DLPack or __cuda_array_interface__, got {}; use \
                 StridedMemoryView.from_any_interface()",
                obj.get_type().name()?
            )));
        }
        // Raises a type error before the deprecation warning; a missing stream raises after it.
        let consumer = match Consumer::accept(stream_ptr) {
            Err(error) if error.is_instance_of::<PyTypeError>(py) => return Err(error),
            accepted => accepted,
        };
        PyErr::warn(
            py,
            &py.get_type::<PyDeprecationWarning>(),
            c"calling StridedMemoryView() is deprecated; use StridedMemoryView.from_any_interface() or another class method",
            1,
        )?;
        Ok(PyView::of(protocol.view(obj, consumer?)?))
    }

    /// Creates a view of an array by DLPack.
    ///
    /// Parameters
    /// ----------
    /// obj : object
    ///     An array whose class has ``__dlpack_c_exchange_api__``, or ``__dlpack__`` and ``__dlpack_device__``.
    /// stream_ptr : int
    ///     Handle of the stream on which the view will be used (or a Stream), which waits for the array's work; 0: the
    ///     default stream; -1: no synchronization. Ignored for host memory.
    ///
    /// Raises
    /// ------
    /// BufferError
    ///     `stream_ptr` is missing; an unsupported device type; an invalid export.
    #[doc = example!("cuda.core.utils.StridedMemoryView.from_dlpack")]
    #[classmethod]
    #[pyo3(signature = (obj, stream_ptr=None))]
    fn from_dlpack<'py>(
        cls: &Bound<'py, PyType>,
        obj: &Bound<'py, PyAny>,
        stream_ptr: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let consumer = Consumer::accept(stream_ptr)?;
        make_of(cls, dlpack::from_dlpack(obj, consumer)?)
    }

    /// Creates a view of an array by ``__cuda_array_interface__`` (version 3).
    ///
    /// Parameters
    /// ----------
    /// obj : object
    ///     The array.
    /// stream_ptr : int
    ///     As in :meth:`from_dlpack`; waits for the interface's stream.
    ///
    /// Raises
    /// ------
    /// BufferError
    ///     `stream_ptr` is missing; an unsupported version; a mask.
    /// CUDAError
    ///     The memory is not device-accessible.
    #[doc = example!("cuda.core.utils.StridedMemoryView.from_cuda_array_interface")]
    #[classmethod]
    #[pyo3(signature = (obj, stream_ptr=None))]
    fn from_cuda_array_interface<'py>(
        cls: &Bound<'py, PyType>,
        obj: &Bound<'py, PyAny>,
        stream_ptr: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let consumer = Consumer::accept(stream_ptr)?;
        make_of(cls, import::from_cuda_array_interface(obj, consumer)?)
    }

    /// Creates a view of host memory by ``__array_interface__`` (version 3), which NumPy arrays have.
    ///
    /// Parameters
    /// ----------
    /// obj : object
    ///     The array.
    #[doc = example!("cuda.core.utils.StridedMemoryView.from_array_interface")]
    #[classmethod]
    fn from_array_interface<'py>(
        cls: &Bound<'py, PyType>,
        obj: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        make_of(cls, import::from_array_interface(obj)?)
    }

    /// Creates a view of a buffer's memory. The memory stays valid while the view lives, even if the buffer is closed.
    ///
    /// Parameters
    /// ----------
    /// buffer : Buffer
    ///     The memory.
    /// shape : tuple of int
    ///     Extents.
    /// strides : tuple of int, optional
    ///     Strides in elements. Default: C order. The first element is at the start of the buffer.
    /// itemsize : int, optional
    ///     Element size in bytes; required without `dtype`.
    /// dtype : numpy.dtype, optional
    ///     Element type.
    /// is_readonly : bool, optional
    ///     Whether the view is read-only.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The buffer is too small, or the arguments are inconsistent.
    #[doc = example!("cuda.core.utils.StridedMemoryView.from_buffer")]
    #[classmethod]
    #[pyo3(signature = (buffer, shape, strides=None, *, itemsize=None, dtype=None, is_readonly=false))]
    fn from_buffer<'py>(
        cls: &Bound<'py, PyType>,
        buffer: &Bound<'py, PyAny>,
        shape: &Bound<'py, PyAny>,
        strides: Option<&Bound<'py, PyAny>>,
        itemsize: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
        is_readonly: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let elements = parts::Elements {
            shape,
            strides,
            itemsize,
            dtype,
        };
        make_of(cls, parts::of_buffer(buffer, &elements, is_readonly)?)
    }

    /// Creates a view of the same memory with another layout, element type, or both.
    ///
    /// Parameters
    /// ----------
    /// layout : _StridedLayout, optional
    ///     A layout derived from this view's ``_layout``. It has the same base address and must stay within the known
    ///     memory: the buffer, or the span of the viewed array.
    /// dtype : numpy.dtype, optional
    ///     Anything that ``numpy.dtype()`` accepts; its size must equal the layout's element size.
    ///
    /// Returns
    /// -------
    /// StridedMemoryView
    ///     This view if nothing changes.
    #[doc = example!("cuda.core.utils.StridedMemoryView.view")]
    #[pyo3(signature = (layout=None, dtype=None))]
    fn view<'py>(
        slf: &Bound<'py, Self>,
        layout: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if layout.is_none() && dtype.is_none() {
            return Ok(slf.clone().into_any());
        }
        let view = make_of(&slf.get_type(), parts::changed(slf, layout, dtype)?)?;
        // A layout that is applied unchanged is one object in both views.
        let shared = match layout.map(Bound::cast::<PyLayout>) {
            Some(given) => given?.clone().unbind(),
            None => slf.get()._layout(slf.py())?,
        };
        if let Ok(made) = view.cast::<PyView>() {
            let _ = made.get().layout.set(slf.py(), shared);
        }
        Ok(view)
    }

    /// Copies the elements of another view into this view, stream-ordered. Layouts may differ.
    ///
    /// Parameters
    /// ----------
    /// other : StridedMemoryView
    ///     Source, of equal shape and element type. The views must not overlap.
    /// stream : Stream
    ///     The stream.
    /// allocator : MemoryResource, optional
    ///     Unused: elements are copied without an intermediate buffer.
    /// blocking : bool, optional
    ///     Whether to wait for the copy. Default: True for copies between host and device.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     Different shapes or types, a read-only destination, or a destination with overlapping elements.
    #[doc = example!("cuda.core.utils.StridedMemoryView.copy_from")]
    #[pyo3(signature = (other, stream, allocator=None, blocking=None))]
    fn copy_from<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        stream: &Bound<'py, PyAny>,
        allocator: Option<&Bound<'py, PyAny>>,
        blocking: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let function = "StridedMemoryView.copy_from";
        let other = copy::accept(function, other)?;
        copy::copy(function, slf, &other, Some(stream), allocator, blocking)
    }

    /// Copies the elements of this view into another view; see :meth:`copy_from`.
    ///
    /// Parameters
    /// ----------
    /// other : StridedMemoryView
    ///     Destination.
    /// stream : Stream, optional
    ///     The stream. Default: the default stream.
    /// allocator, blocking : optional
    ///     As in :meth:`copy_from`.
    #[doc = example!("cuda.core.utils.StridedMemoryView.copy_to")]
    #[pyo3(signature = (other, stream=None, allocator=None, blocking=None))]
    fn copy_to<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
        allocator: Option<&Bound<'py, PyAny>>,
        blocking: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let function = "StridedMemoryView.copy_to";
        let other = copy::accept(function, other)?;
        copy::copy(function, &other, slf, stream, allocator, blocking)
    }

    /// Creates a tensor map of the view, for bulk copies of its boxes (compute capability 9.0).
    ///
    /// Parameters
    /// ----------
    /// box_dim : tuple of int
    ///     Extents of a box in elements, one for each dimension.
    /// options : TensorMapDescriptorOptions or dict, optional
    ///     All options in one object. Excludes the other arguments.
    /// element_strides : tuple of int, optional
    ///     Distances of the elements of a box, one for each dimension. Default: 1.
    /// data_type : numpy.dtype or TensorMapDataType, optional
    ///     Type of the elements. Default: that of the view.
    /// interleave : TensorMapInterleave, optional
    ///     Interleaved layout.
    /// swizzle : TensorMapSwizzle, optional
    ///     Swizzle of shared memory.
    /// l2_promotion : TensorMapL2Promotion, optional
    ///     Promotion of the second-level cache.
    /// oob_fill : TensorMapOOBFill, optional
    ///     What elements outside of the tensor read.
    ///
    /// Returns
    /// -------
    /// TensorMapDescriptor
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     A rule of the driver's manual is broken; the message names the argument.
    #[doc = example!("cuda.core.utils.StridedMemoryView.as_tensor_map")]
    #[pyo3(signature = (box_dim=None, *, options=None, element_strides=None, data_type=None, interleave=None, swizzle=None, l2_promotion=None, oob_fill=None))]
    #[allow(clippy::too_many_arguments)]
    fn as_tensor_map<'py>(
        slf: &Bound<'py, Self>,
        box_dim: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyAny>>,
        element_strides: Option<&Bound<'py, PyAny>>,
        data_type: Option<&Bound<'py, PyAny>>,
        interleave: Option<&Bound<'py, PyAny>>,
        swizzle: Option<&Bound<'py, PyAny>>,
        l2_promotion: Option<&Bound<'py, PyAny>>,
        oob_fill: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let others = [
            options,
            element_strides,
            data_type,
            interleave,
            swizzle,
            l2_promotion,
            oob_fill,
        ];
        if let Some(box_dim) = box_dim
            && others.iter().all(Option::is_none)
            && let Some(map) = PyTensorMap::plain(slf, box_dim)?
        {
            return Ok(map);
        }
        let arguments = (
            slf,
            box_dim,
            options,
            element_strides,
            data_type,
            interleave,
            swizzle,
            l2_promotion,
            oob_fill,
        );
        PyModule::import(py, intern!(py, "cuda.core._tensor_map"))?
            .getattr(intern!(py, "_tiled"))?
            .call1(arguments)
    }

    /// Address of the element with all indices zero.
    #[getter]
    fn ptr(&self) -> u64 {
        self.address()
    }

    /// Extents.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let created = || tuple(py, self.parts.layout.shape()).map(Bound::unbind);
        Ok(self.shape.get_or_try_init(py, created)?.clone_ref(py))
    }

    /// Strides in elements; None for implicit C order.
    #[getter]
    fn strides(&self, py: Python<'_>) -> PyResult<Option<Py<PyTuple>>> {
        let layout = &self.parts.layout;
        let created = || -> PyResult<Option<Py<PyTuple>>> {
            layout
                .has_explicit_strides()
                .then(|| tuple(py, layout.strides()).map(Bound::unbind))
                .transpose()
        };
        let strides = self.strides.get_or_try_init(py, created)?;
        Ok(strides.as_ref().map(|strides| strides.clone_ref(py)))
    }

    /// Number of elements.
    #[getter]
    fn size(&self) -> i64 {
        self.parts.layout.volume()
    }

    /// Element type; None if unknown. Imports NumPy.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.numpy(py)
    }

    /// Device number of the memory; -1 for host memory.
    #[getter]
    fn device_id(&self) -> i32 {
        self.parts.device_id
    }

    /// Whether a device can access the memory.
    #[getter]
    fn is_device_accessible(&self) -> bool {
        self.parts.device.kind.is_device_accessible()
    }

    /// Whether the memory is read-only.
    #[getter]
    fn readonly(&self) -> bool {
        self.parts.readonly
    }

    /// The viewed object, which the view keeps alive.
    #[getter]
    fn exporting_obj(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.parts.exporting.as_ref().map(|obj| obj.clone_ref(py))
    }

    /// Shape, strides and element size as a layout object.
    #[getter]
    fn _layout(&self, py: Python<'_>) -> PyResult<Py<PyLayout>> {
        let created = || PyLayout::make(py, self.parts.layout.clone());
        Ok(self.layout.get_or_try_init(py, created)?.clone_ref(py))
    }

    /// ``(device type, device number)`` as defined by DLPack.
    fn __dlpack_device__(&self) -> (i32, i32) {
        let DlDevice { kind, number } = self.device();
        (kind.0, number)
    }

    /// CUDA array interface (version 3); only for device-accessible memory.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if !self.is_device_accessible() {
            return Err(PyAttributeError::new_err(
                "this view has no __cuda_array_interface__: its memory is host memory",
            ));
        }
        let dict = self.interface(py)?;
        let stream = match self.buffer(py) {
            Some(buffer) => buffer.get().joined_stream(py)?,
            None => None,
        };
        dict.set_item(intern!(py, "stream"), stream)?;
        Ok(dict)
    }

    /// NumPy array interface (version 3); only for host-accessible memory.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if !self.device().kind.is_host_accessible() {
            return Err(PyAttributeError::new_err(
                "this view has no __array_interface__: its memory is device memory",
            ));
        }
        self.interface(py)
    }

    /// Buffer protocol; only for host-accessible memory.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        out: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        // SAFETY: Python passes a valid pointer, or null.
        unsafe { buffer_protocol::export(&slf, out, flags) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: allocated by `buffer_protocol::export`, given back once.
        drop(unsafe { Box::from_raw((*view).internal.cast::<buffer_protocol::BufferData>()) });
    }

    /// HTML for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        notebook::html(slf.py(), "view", (slf,))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (py, view) = (slf.py(), slf.get());
        let strides = match view.strides(py)? {
            Some(strides) => strides.bind(py).repr()?.to_string(),
            None => "None".to_owned(),
        };
        // A repr does not raise for types unknown to NumPy.
        let dtype = match view.numpy(py) {
            Ok(Some(dtype)) => class_name(&dtype)?,
            Ok(None) => "NoneType".to_owned(),
            Err(_) => "?".to_owned(),
        };
        let exporting = match &view.parts.exporting {
            Some(obj) => class_name(obj.bind(py))?,
            None => "NoneType".to_owned(),
        };
        let python = |truth: bool| if truth { "True" } else { "False" };
        let lines = [
            format!("StridedMemoryView(ptr={}", view.address()),
            format!("shape={}", view.shape(py)?.bind(py).repr()?),
            format!("strides={strides}"),
            format!("itemsize={}", view.parts.layout.item_size()),
            format!("dtype={dtype}"),
            format!("device_id={}", view.parts.device_id),
            format!(
                "is_device_accessible={}",
                python(view.is_device_accessible())
            ),
            format!("readonly={}", python(view.parts.readonly)),
            format!("exporting_obj={exporting})"),
        ];
        Ok(lines.join(",\n                  "))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.parts.exporting)?;
        match &self.parts.owner {
            MemoryOwner::Buffer(pinned) => visit.call(&pinned.0)?,
            MemoryOwner::RootView(parent) => visit.call(parent)?,
            MemoryOwner::BufferProtocol(data) => data.traverse(&visit)?,
            MemoryOwner::Viewed
            | MemoryOwner::Cupy
            | MemoryOwner::DlPack(_)
            | MemoryOwner::DlPackVersioned(_) => {}
        }
        self.parts.dtype.traverse(&visit)?;
        // SAFETY: the collector runs on an attached thread.
        let py = unsafe { Python::assume_attached() };
        match self.dtype.get(py) {
            Some(dtype) => visit.call(dtype),
            None => Ok(()),
        }
    }

    // No `__clear__`: the memory must stay valid while the view is reachable. Cycles are broken at the viewed array.
}

/// Adds the classes.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyView>()?;
    method::add(core.py())?;
    core.add_class::<crate::core::view::argument::Proxy>()
}
