//! `StridedMemoryView`: everyone's arrays as address, shape, strides and type.

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

use std::ffi::c_int;
use std::sync::{Mutex, OnceLock, PoisonError};

use cupyrite::StridedLayout;
use cupyrite::dlpack::{DataType, DeviceType, DlDevice};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyDeprecationWarning, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{PyTraverseError, PyTypeInfo, PyVisit};

use crate::core::dlpack::exchange;
use crate::core::errors::OrRaise;
use crate::core::memory::buffer::PyBuffer;
use crate::core::view::dtype::Dtype;
use crate::core::view::import::{Consumer, Keep, Parts, Protocol};
use crate::core::view::layout::{PyLayout, tuple};
use crate::cpython::trashcan;

/// Memory of an array, of any library, as address, shape, strides and type. It copies nothing and keeps the array alive.
///
/// Views are made by :meth:`from_any_interface` and the other class methods, or in a function's arguments by
/// :func:`args_viewable_as_strided_memory`. A view of device memory is in order with the stream that it was made for.
///
/// A view can be handed on: it has ``__dlpack__``, ``__cuda_array_interface__`` where a device can use the memory,
/// ``__array_interface__`` and the buffer protocol where the host can.
///
/// Parameters
/// ----------
/// obj : object, optional
///     Deprecated: an array with DLPack or ``__cuda_array_interface__``.
/// stream_ptr : int, optional
///     As in :meth:`from_any_interface`.
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._memoryview",
    name = "StridedMemoryView"
)]
pub struct PyView {
    parts: Parts,
    shape: PyOnceLock<Py<PyTuple>>,
    strides: PyOnceLock<Option<Py<PyTuple>>>,
    dtype: PyOnceLock<Option<Py<PyAny>>>,
    layout: PyOnceLock<Py<PyLayout>>,
    data_type: OnceLock<DataType>,
    /// Where the memory is, if that has to be asked first.
    place: OnceLock<DlDevice>,
}

impl Drop for PyView {
    fn drop(&mut self) {
        // An array that was viewed may be a view itself, and so on: a long row of them must not end one inside of the other.
        let exporting = self.parts.exporting.take();
        if exporting.is_some() {
            let keep = std::mem::replace(&mut self.parts.keep, Keep::Object);
            trashcan::end(exporting, keep);
        }
    }
}

/// A view that is on its way into an object of a derived class.
#[pyclass(frozen, module = "cuda.core._memoryview", name = "_Parts")]
struct Adopted(Mutex<Option<Parts>>);

/// The view with these parts.
///
/// # Errors
///
/// Memory.
pub fn make(py: Python<'_>, parts: Parts) -> PyResult<Bound<'_, PyAny>> {
    Ok(Bound::new(py, PyView::of(parts))?.into_any())
}

/// The same as an object of `class`, which is `StridedMemoryView` or derived from it.
///
/// # Errors
///
/// What the derived class raises.
pub fn make_of<'py>(class: &Bound<'py, PyType>, parts: Parts) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    if std::ptr::eq(class.as_type_ptr(), PyView::type_object_raw(py)) {
        return make(py, parts);
    }
    let own = py.get_type::<PyView>();
    let adopted = Bound::new(py, Adopted(Mutex::new(Some(parts))))?;
    own.call_method1(intern!(py, "__new__"), (class, adopted))
}

impl PyView {
    fn of(parts: Parts) -> PyView {
        PyView {
            parts,
            shape: PyOnceLock::new(),
            strides: PyOnceLock::new(),
            dtype: PyOnceLock::new(),
            layout: PyOnceLock::new(),
            data_type: OnceLock::new(),
            place: OnceLock::new(),
        }
    }

    /// What it holds.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Whether nobody said what the elements are.
    pub fn has_unknown_type(&self) -> bool {
        self.parts.dtype.is_unknown()
    }

    /// The view that keeps the memory: this one, unless it was made from another.
    pub fn root(slf: &Bound<'_, PyView>) -> Py<PyView> {
        match &slf.get().parts.keep {
            Keep::Parent(root) => root.clone_ref(slf.py()),
            _ => slf.clone().unbind(),
        }
    }

    /// Where the memory is, as DLPack numbers it.
    pub fn device(&self) -> DlDevice {
        match &self.parts.keep {
            Keep::Asked => *self
                .place
                .get_or_init(|| cupy::device(self.parts.base, self.parts.device)),
            Keep::Parent(root) => root.get().device(),
            _ => self.parts.device,
        }
    }

    /// How the elements lie.
    pub fn layout(&self) -> &StridedLayout {
        &self.parts.layout
    }

    /// The address of the element with all indices zero.
    #[inline]
    pub fn address(&self) -> u64 {
        self.parts
            .base
            .wrapping_add_signed(self.parts.layout.offset_in_bytes())
    }

    /// Whether the memory must not be written.
    pub fn is_readonly(&self) -> bool {
        self.parts.readonly
    }

    /// The type of the elements for DLPack.
    ///
    /// # Errors
    ///
    /// `BufferError` where it has none.
    pub fn data_type(&self, py: Python<'_>) -> PyResult<DataType> {
        if let Some(known) = self.data_type.get() {
            return Ok(*known);
        }
        let found = self.parts.dtype.data_type(py)?;
        Ok(*self.data_type.get_or_init(|| found))
    }

    /// The address that the layout counts from.
    pub fn base(&self) -> u64 {
        self.parts.base
    }

    /// The buffer whose memory this is, where it is one's.
    pub fn buffer<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBuffer>> {
        match &self.parts.keep {
            Keep::Buffer(pinned) => Some(pinned.0.bind(py).clone()),
            Keep::Parent(parent) => parent.get().buffer(py),
            _ => None,
        }
    }

    /// The `numpy.dtype`; None where the type is not known.
    ///
    /// # Errors
    ///
    /// As [`Dtype::numpy`].
    pub fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let made = || -> PyResult<Option<Py<PyAny>>> {
            Ok(self.parts.dtype.numpy(py)?.map(Bound::unbind))
        };
        let known = self.dtype.get_or_try_init(py, made)?;
        Ok(known.as_ref().map(|dtype| dtype.bind(py).clone()))
    }

    /// `typestr`, and `descr` for structured types.
    fn typestr<'py>(&self, py: Python<'py>) -> PyResult<(String, Option<Bound<'py, PyAny>>)> {
        if let Dtype::DlPack(dtype) = &self.parts.dtype
            && let Some(text) = dtype::typestr_of(*dtype)
        {
            return Ok((text, None));
        }
        let Some(dtype) = self.numpy(py)? else {
            return Err(PyAttributeError::new_err(
                "the type of the elements is not known, which an array interface needs; see view(dtype=...)",
            ));
        };
        let text = dtype.getattr(intern!(py, "str"))?.extract()?;
        let structured = !dtype.getattr(intern!(py, "names"))?.is_none();
        let descr = structured
            .then(|| dtype.getattr(intern!(py, "descr")))
            .transpose()?;
        Ok((text, descr))
    }

    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (text, descr) = self.typestr(py)?;
        let layout = &self.parts.layout;
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "shape"), self.shape(py)?)?;
        dict.set_item(intern!(py, "typestr"), text)?;
        let data = (self.address(), self.parts.readonly);
        dict.set_item(intern!(py, "data"), data)?;
        dict.set_item(intern!(py, "version"), 3)?;
        // The buffer protocol and NumPy know the dense case by None.
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

/// How a class is called in messages: module and name.
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
                c"a StridedMemoryView of nothing is deprecated; make one with from_any_interface() or another class method",
                1,
            )?;
            return Ok(PyView::of(Parts {
                base: 0,
                layout: StridedLayout::new(&[0], None, 1).or_raise(py)?,
                dtype: Dtype::Unknown,
                device: DlDevice {
                    kind: DeviceType::CPU,
                    number: 0,
                },
                device_id: 0,
                readonly: false,
                room: None,
                exporting: None,
                keep: Keep::Object,
            }));
        };
        if let Ok(adopted) = obj.cast::<Adopted>() {
            let parts = adopted
                .get()
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            return parts
                .map(PyView::of)
                .ok_or_else(|| PyTypeError::new_err("these parts of a view were used before"));
        }
        let protocol = Protocol::of(obj)?;
        if !matches!(protocol, Protocol::DlPack | Protocol::CudaArrayInterface) {
            return Err(PyBufferError::new_err(format!(
                "StridedMemoryView() takes arrays with DLPack or __cuda_array_interface__; for one of type {} use \
                 StridedMemoryView.from_any_interface()",
                obj.get_type().name()?
            )));
        }
        // What is no stream at all is refused before anything is said; a stream that is missing is deprecated, too.
        let consumer = match Consumer::accept(stream_ptr) {
            Err(error) if error.is_instance_of::<PyTypeError>(py) => return Err(error),
            accepted => accepted,
        };
        PyErr::warn(
            py,
            &py.get_type::<PyDeprecationWarning>(),
            c"calling StridedMemoryView is deprecated; use StridedMemoryView.from_any_interface() or another class method",
            1,
        )?;
        Ok(PyView::of(protocol.view(obj, consumer?)?))
    }

    /// A view of an array by DLPack.
    ///
    /// Parameters
    /// ----------
    /// obj : object
    ///     An array whose class has ``__dlpack_c_exchange_api__``, or ``__dlpack__`` and ``__dlpack_device__``.
    /// stream_ptr : int
    ///     The address of the stream that the view will be used on (or a Stream), which waits for the array's work; 0 for the
    ///     default stream; -1 to wait for nothing. It does not matter for memory of the host.
    ///
    /// Raises
    /// ------
    /// BufferError
    ///     `stream_ptr` is missing; memory of another kind of device; an export that cannot be right.
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

    /// A view of an array by ``__cuda_array_interface__`` (version 3).
    ///
    /// Parameters
    /// ----------
    /// obj : object
    ///     The array.
    /// stream_ptr : int
    ///     As in :meth:`from_dlpack`: it waits for the interface's stream.
    ///
    /// Raises
    /// ------
    /// BufferError
    ///     `stream_ptr` is missing; another version; a mask.
    /// CUDAError
    ///     The address is no memory that a device can use.
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

    /// A view of memory of the host by ``__array_interface__`` (version 3), which NumPy's arrays have.
    ///
    /// Parameters
    /// ----------
    /// obj : object
    ///     The array.
    #[classmethod]
    fn from_array_interface<'py>(
        cls: &Bound<'py, PyType>,
        obj: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        make_of(cls, import::from_array_interface(obj)?)
    }

    /// A view of a buffer's memory as an array. The memory stays while the view lives, also when the buffer is closed.
    ///
    /// Parameters
    /// ----------
    /// buffer : Buffer
    ///     The memory.
    /// shape : tuple of int
    ///     The extents.
    /// strides : tuple of int, optional
    ///     In elements; C order by default. The first element is where the buffer begins.
    /// itemsize : int, optional
    ///     Bytes of an element; needed without `dtype`.
    /// dtype : numpy.dtype, optional
    ///     The type of the elements.
    /// is_readonly : bool, optional
    ///     Whether the memory must not be written.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The buffer is too small, or the arguments contradict each other.
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

    /// The same memory with another layout, another type, or both.
    ///
    /// Parameters
    /// ----------
    /// layout : _StridedLayout, optional
    ///     Made from this view's ``_layout``; it counts from the same base address and must stay inside of the memory that is
    ///     known to be there: a buffer's, or what the array that was viewed spans.
    /// dtype : numpy.dtype, optional
    ///     Anything that ``numpy.dtype()`` takes; its size must be the layout's.
    ///
    /// Returns
    /// -------
    /// StridedMemoryView
    ///     This one if there is nothing to change.
    #[pyo3(signature = (layout=None, dtype=None))]
    fn view<'py>(
        slf: &Bound<'py, Self>,
        layout: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if layout.is_none() && dtype.is_none() {
            return Ok(slf.clone().into_any());
        }
        make_of(&slf.get_type(), parts::changed(slf, layout, dtype)?)
    }

    /// Copies another view's elements into this one's memory, in the order of a stream. Layouts may differ.
    ///
    /// Parameters
    /// ----------
    /// other : StridedMemoryView
    ///     Where from; of the same shape and type of elements. The two must not overlap.
    /// stream : Stream
    ///     In whose order.
    /// allocator : MemoryResource, optional
    ///     Not needed: elements are copied from where they are to where they go.
    /// blocking : bool, optional
    ///     Whether to wait until the elements are there; by default where one side is the host's and the other a device's.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     Other shapes or types, a read-only destination, or one with elements that share memory.
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

    /// Copies this view's elements into another one's memory: as :meth:`copy_from` there.
    ///
    /// Parameters
    /// ----------
    /// other : StridedMemoryView
    ///     Where to.
    /// stream : Stream, optional
    ///     In whose order; the default stream by default.
    /// allocator, blocking : optional
    ///     As there.
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

    /// The address of the element with all indices zero.
    #[getter]
    fn ptr(&self) -> u64 {
        self.address()
    }

    /// The extents.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let made = || tuple(py, self.parts.layout.shape()).map(Bound::unbind);
        Ok(self.shape.get_or_try_init(py, made)?.clone_ref(py))
    }

    /// The strides in elements; None for C order that nobody spelt out.
    #[getter]
    fn strides(&self, py: Python<'_>) -> PyResult<Option<Py<PyTuple>>> {
        let layout = &self.parts.layout;
        let made = || -> PyResult<Option<Py<PyTuple>>> {
            layout
                .has_explicit_strides()
                .then(|| tuple(py, layout.strides()).map(Bound::unbind))
                .transpose()
        };
        let strides = self.strides.get_or_try_init(py, made)?;
        Ok(strides.as_ref().map(|strides| strides.clone_ref(py)))
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> i64 {
        self.parts.layout.volume()
    }

    /// The type of the elements; None where it is not known. This imports NumPy.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.numpy(py)
    }

    /// The number of the memory's device; -1 for memory of the host.
    #[getter]
    fn device_id(&self) -> i32 {
        self.parts.device_id
    }

    /// Whether a device can use the memory.
    #[getter]
    fn is_device_accessible(&self) -> bool {
        self.parts.device.kind.is_device_accessible()
    }

    /// Whether the memory must not be written.
    #[getter]
    fn readonly(&self) -> bool {
        self.parts.readonly
    }

    /// The object that was viewed, which the view keeps alive.
    #[getter]
    fn exporting_obj(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.parts.exporting.as_ref().map(|obj| obj.clone_ref(py))
    }

    /// Shape, strides and element size as an object that can be sliced, reshaped and so on.
    #[getter]
    fn _layout(&self, py: Python<'_>) -> PyResult<Py<PyLayout>> {
        let made = || PyLayout::make(py, self.parts.layout.clone());
        Ok(self.layout.get_or_try_init(py, made)?.clone_ref(py))
    }

    /// ``(device type, device number)`` of the memory, as DLPack numbers them.
    fn __dlpack_device__(&self) -> (i32, i32) {
        let DlDevice { kind, number } = self.device();
        (kind.0, number)
    }

    /// DLPack's functions for C.
    #[classattr]
    fn __dlpack_c_exchange_api__(py: Python<'_>) -> PyResult<Py<PyAny>> {
        exchange::ours(py)
    }

    /// The same under the name that it had in DLPack 1.2.
    #[classattr]
    fn __c_dlpack_exchange_api__(py: Python<'_>) -> PyResult<Py<PyAny>> {
        exchange::ours(py)
    }

    /// Address, shape, strides and type for libraries of device arrays (version 3); where a device can use the memory.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if !self.is_device_accessible() {
            return Err(PyAttributeError::new_err(
                "this view has no __cuda_array_interface__: its memory is the host's",
            ));
        }
        let dict = self.interface(py)?;
        let stream = match self.buffer(py) {
            Some(buffer) => buffer.get().one_stream(py)?,
            None => None,
        };
        dict.set_item(intern!(py, "stream"), stream)?;
        Ok(dict)
    }

    /// Address, shape, strides and type for NumPy (version 3); where the host can use the memory.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if !self.device().kind.is_host_accessible() {
            return Err(PyAttributeError::new_err(
                "this view has no __array_interface__: its memory is a device's",
            ));
        }
        self.interface(py)
    }

    /// The memory by the buffer protocol, where the host can use it.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        out: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        // SAFETY: as Python has it: a place for the answer, or null from those that err.
        unsafe { buffer_protocol::show(&slf, out, flags) }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: made by `buffer_protocol::show`, given back once.
        drop(unsafe { Box::from_raw((*view).internal.cast::<buffer_protocol::Shown>()) });
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (py, view) = (slf.py(), slf.get());
        let strides = match view.strides(py)? {
            Some(strides) => strides.bind(py).repr()?.to_string(),
            None => "None".to_owned(),
        };
        // A repr does not fail for a type that NumPy does not have.
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
        match &self.parts.keep {
            Keep::Buffer(pinned) => visit.call(&pinned.0)?,
            Keep::Parent(parent) => visit.call(parent)?,
            Keep::Shown(shown) => shown.traverse(&visit)?,
            Keep::Object | Keep::Asked | Keep::Tensor(_) | Keep::Versioned(_) => {}
        }
        self.parts.dtype.traverse(&visit)?;
        // SAFETY: the collector runs on an attached thread.
        let py = unsafe { Python::assume_attached() };
        match self.dtype.get(py) {
            Some(dtype) => visit.call(dtype),
            None => Ok(()),
        }
    }

    // No `__clear__`: the memory must stay while somebody can reach the view. Cycles are broken at the array that it is of.
}

/// Adds the classes.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyView>()?;
    crate::core::dlpack::method::add::<PyView>(core.py())?;
    method::add(core.py())?;
    core.add_class::<crate::core::view::argument::Proxy>()
}
