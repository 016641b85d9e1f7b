//! `GraphicsResource`: OpenGL buffers and textures that kernels access.

use cupyrite::{GraphicsAccess, GraphicsOptions, GraphicsResource};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple, PyType, PyWeakrefReference};
use pyo3::{PyTraverseError, PyVisit};

use crate::core::closable::{Closable, closed, drop_detached};
use crate::core::errors::OrRaise;
use crate::core::keyword_only::KeywordOnly;
use crate::core::memory::buffer::{Backing, PyBuffer};
use crate::core::numbers;
use crate::core::stream;
use crate::cpython::gil_lock::GilLock;

/// Names of registration flags.
const FLAGS: [&str; 5] = [
    "none",
    "read_only",
    "write_discard",
    "surface_load_store",
    "texture_gather",
];

/// An OpenGL buffer or texture that CUDA can access, without a copy.
///
/// Resources come from :meth:`from_gl_buffer` and :meth:`from_gl_image`. :meth:`map` makes the memory available as a
/// :class:`Buffer`; closing that buffer unmaps it. While it is mapped, OpenGL must not use the object. All methods need the
/// OpenGL context of the object to be current in the calling thread.
///
/// A ``with`` statement closes the resource. If it was created with a `stream`, entering maps it and returns the buffer.
///
/// See `Graphics Interoperability
/// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPHICS.html>`_.
#[doc = example!("cuda.core.GraphicsResource")]
#[pyclass(
    frozen,
    weakref,
    module = "cuda.core._graphics",
    name = "GraphicsResource"
)]
pub struct PyGraphicsResource {
    cell: Closable<GraphicsResource>,
    /// The stream on which a `with` statement maps the resource.
    stream: Option<Py<PyAny>>,
    /// Weak reference to the buffer of the current mapping.
    buffer: GilLock<Option<Py<PyWeakrefReference>>>,
}

/// Converts the argument 'flags'.
fn options(given: Option<&Bound<'_, PyAny>>, function: &str) -> PyResult<GraphicsOptions> {
    let mut options = GraphicsOptions::default();
    let Some(given) = given else {
        return Ok(options);
    };
    let invalid = |given: &Bound<'_, PyAny>| -> PyResult<PyErr> {
        Ok(PyTypeError::new_err(format!(
            "{function}() argument 'flags' is of type {}; expected a str, a tuple or a list of str",
            given.get_type().name()?
        )))
    };
    let mut add = |name: &Bound<'_, PyAny>| -> PyResult<()> {
        let Ok(text) = name.cast::<PyString>() else {
            return Err(invalid(name)?);
        };
        let access = match text.to_string_lossy().as_ref() {
            "none" => return Ok(()),
            "read_only" => GraphicsAccess::ReadOnly,
            "write_discard" => GraphicsAccess::WriteDiscard,
            "surface_load_store" => {
                options.surface_load_store = true;
                return Ok(());
            }
            "texture_gather" => {
                options.texture_gather = true;
                return Ok(());
            }
            other => {
                return Err(PyValueError::new_err(format!(
                    "{function}() argument 'flags' has the invalid value {other:?}; expected {}",
                    FLAGS.join(", ")
                )));
            }
        };
        if options.access != GraphicsAccess::ReadWrite && options.access != access {
            return Err(PyValueError::new_err(format!(
                "{function}() argument 'flags' has read_only and write_discard, which exclude each other"
            )));
        }
        options.access = access;
        Ok(())
    };
    if given.cast::<PyString>().is_ok() {
        add(given)?;
    } else if given.cast::<PyTuple>().is_ok() || given.cast::<PyList>().is_ok() {
        for name in given.try_iter()? {
            add(&name?)?;
        }
    } else {
        return Err(invalid(given)?);
    }
    Ok(options)
}

/// Converts an OpenGL name or target.
fn gl_number(given: &Bound<'_, PyAny>, function: &str, parameter: &str) -> PyResult<u32> {
    let number = numbers::bytes_argument(given, function, parameter)?;
    u32::try_from(number).map_err(|_| {
        PyValueError::new_err(format!(
            "{function}() argument '{parameter}' is {number}; OpenGL's numbers have 32 bits"
        ))
    })
}

impl PyGraphicsResource {
    fn of(resource: GraphicsResource, stream: Option<Py<PyAny>>) -> PyGraphicsResource {
        PyGraphicsResource {
            cell: Closable::new(resource),
            stream,
            buffer: GilLock::new(None),
        }
    }

    fn resource(&self, py: Python<'_>) -> PyResult<GraphicsResource> {
        self.cell
            .read(py, GraphicsResource::clone)
            .ok_or_else(|| closed("GraphicsResource"))
    }

    fn map_on<'py>(
        &self,
        stream: &Bound<'py, PyAny>,
        function: &str,
    ) -> PyResult<Bound<'py, PyBuffer>> {
        let py = stream.py();
        let resource = self.resource(py)?;
        let accepted = stream::lend(stream, function, "stream", false)?;
        if resource.is_mapped() {
            return Err(PyRuntimeError::new_err(
                "this GraphicsResource is mapped; close the Buffer that map() returned, or call unmap()",
            ));
        }
        let memory = py.detach(|| resource.map(&accepted));
        drop_detached(resource);
        let memory = memory.or_raise(py)?;
        let (address, size) = (memory.address(), memory.size());
        let buffer = PyBuffer::new_value(Backing::Pool(memory), address, size, None, None);
        let buffer = Bound::new(py, buffer)?;
        let weak = PyWeakrefReference::new(&buffer)?.unbind();
        *self.buffer.lock(py) = Some(weak);
        Ok(buffer)
    }

    /// Closes the buffer of the current mapping. False if the resource is not mapped, or the buffer is being destroyed.
    fn unmap_now(
        &self,
        py: Python<'_>,
        resource: &GraphicsResource,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let weak = self.buffer.lock(py).take();
        let Some(buffer) = weak.and_then(|weak| weak.bind(py).upgrade()) else {
            return Ok(false);
        };
        let was_open = buffer.cast::<PyBuffer>()?.get().extent().open;
        buffer.call_method1("close", (stream,))?;
        if was_open && resource.is_mapped() {
            return Err(PyRuntimeError::new_err(
                "this GraphicsResource stays mapped as long as slices, views, graphs or calls use the memory of its Buffer, \
                 which is closed now",
            ));
        }
        Ok(was_open)
    }

    fn close_now(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let Some(resource) = self.cell.close(py) else {
            return Ok(());
        };
        let unmapped = self.unmap_now(py, &resource, stream);
        drop_detached(resource);
        unmapped.map(|_| ())
    }
}

impl Drop for PyGraphicsResource {
    fn drop(&mut self) {
        // A mapped buffer keeps the registration.
        if let Some(resource) = self.cell.take() {
            drop_detached(resource);
        }
    }
}

#[pymethods]
impl PyGraphicsResource {
    #[new]
    fn new() -> PyResult<Self> {
        Err(PyRuntimeError::new_err(
            "GraphicsResource cannot be instantiated; use GraphicsResource.from_gl_buffer() or \
             GraphicsResource.from_gl_image()",
        ))
    }

    /// Registers an OpenGL buffer.
    ///
    /// Parameters
    /// ----------
    /// gl_buffer : int
    ///     Name of the buffer (``GLuint``).
    /// flags : str or sequence of str, optional
    ///     Intended use: ``"none"``, ``"read_only"``, ``"write_discard"``.
    /// stream : Stream, optional
    ///     Stream on which a ``with`` statement maps the buffer.
    ///
    /// Returns
    /// -------
    /// GraphicsResource
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     No OpenGL context is current, or it has no such buffer.
    /// ValueError
    ///     An unknown flag.
    #[doc = example!("cuda.core.GraphicsResource.from_gl_buffer")]
    #[classmethod]
    #[pyo3(signature = (gl_buffer, *, flags=None, stream=None))]
    fn from_gl_buffer(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        gl_buffer: &Bound<'_, PyAny>,
        flags: Option<&Bound<'_, PyAny>>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        const NAME: &str = "GraphicsResource.from_gl_buffer";
        let buffer = gl_number(gl_buffer, NAME, "gl_buffer")?;
        let options = options(flags, NAME)?;
        if let Some(stream) = stream {
            stream::lend(stream, NAME, "stream", false)?;
        }
        let resource = py
            .detach(|| GraphicsResource::from_gl_buffer(buffer, options))
            .or_raise(py)?;
        Ok(Self::of(resource, stream.map(|s| s.clone().unbind())))
    }

    /// Registers an OpenGL texture or renderbuffer.
    ///
    /// Parameters
    /// ----------
    /// image : int
    ///     Name of the texture or renderbuffer (``GLuint``).
    /// target : int
    ///     Its target, such as ``GL_TEXTURE_2D``.
    /// flags : str or sequence of str, optional
    ///     Intended use: ``"none"``, ``"read_only"``, ``"write_discard"``, ``"surface_load_store"``, ``"texture_gather"``.
    ///
    /// Returns
    /// -------
    /// GraphicsResource
    ///     Its :attr:`handle` is an argument of ``cuGraphicsMapResources`` and ``cuGraphicsSubResourceGetMappedArray``. Images
    ///     have no linear memory, so :meth:`map` raises.
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     No OpenGL context is current, or it has no such image.
    /// ValueError
    ///     An unknown flag.
    #[doc = example!("cuda.core.GraphicsResource.from_gl_image")]
    #[classmethod]
    #[pyo3(signature = (image, target, *, flags=None))]
    fn from_gl_image(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        image: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        flags: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        const NAME: &str = "GraphicsResource.from_gl_image";
        let image = gl_number(image, NAME, "image")?;
        let target = gl_number(target, NAME, "target")?;
        let options = options(flags, NAME)?;
        let resource = py
            .detach(|| GraphicsResource::from_gl_image(image, target, options))
            .or_raise(py)?;
        Ok(Self::of(resource, None))
    }

    /// Maps the resource for work of a stream.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream
    ///     OpenGL commands issued before take effect before later work of this stream.
    ///
    /// Returns
    /// -------
    /// Buffer
    ///     The memory. Closing it unmaps the resource after the work of its deallocation stream, which is `stream`.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The resource is mapped or closed.
    /// CUDAError
    ///     The driver refuses; images cannot be mapped as linear memory.
    #[doc = example!("cuda.core.GraphicsResource.map")]
    #[pyo3(
        signature = (*, stream=KeywordOnly(None)),
        text_signature = "($self, *, stream)"
    )]
    fn map<'py>(&self, stream: KeywordOnly<'_, 'py>) -> PyResult<Bound<'py, PyBuffer>> {
        let stream = stream.get("GraphicsResource.map", "stream")?;
        self.map_on(stream, "GraphicsResource.map")
    }

    /// Unmaps the resource: closes the buffer of :meth:`map`.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream, optional
    ///     Stream after whose work the resource is unmapped. Default: the buffer's deallocation stream.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The resource is not mapped, or closed; or slices, views or graphs still use the buffer, and unmap it later.
    #[pyo3(signature = (*, stream=None))]
    fn unmap(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let resource = self.resource(py)?;
        if let Some(stream) = stream {
            stream::lend(stream, "GraphicsResource.unmap", "stream", false)?;
        }
        let unmapped = self.unmap_now(py, &resource, stream);
        drop_detached(resource);
        match unmapped? {
            true => Ok(()),
            false => Err(PyRuntimeError::new_err(
                "this GraphicsResource is not mapped; call map() first",
            )),
        }
    }

    /// Unmaps the resource if it is mapped, and unregisters it. Does nothing if it is closed.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream, optional
    ///     Stream after whose work a mapped resource is unmapped.
    #[pyo3(signature = (stream=None))]
    fn close(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        if let Some(stream) = stream {
            stream::lend(stream, "GraphicsResource.close", "stream", false)?;
        }
        self.close_now(py, stream)
    }

    /// Driver handle (``CUgraphicsResource``); 0 if the resource was closed.
    #[getter]
    fn handle(&self, py: Python<'_>) -> usize {
        self.cell
            .read(py, |resource| resource.handle().addr())
            .unwrap_or(0)
    }

    /// The same as :attr:`handle`.
    #[getter]
    fn resource_handle(&self, py: Python<'_>) -> usize {
        self.handle(py)
    }

    /// Whether the resource is mapped.
    #[getter]
    fn is_mapped(&self, py: Python<'_>) -> bool {
        self.cell
            .read(py, GraphicsResource::is_mapped)
            .unwrap_or(false)
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.cell.is_closed(py)
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        match &this.stream {
            Some(stream) => {
                let buffer = this.map_on(stream.bind(py), "GraphicsResource.__enter__")?;
                Ok(buffer.into_any())
            }
            None => {
                drop_detached(this.resource(py)?);
                Ok(slf.clone().into_any())
            }
        }
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.close_now(py, None)?;
        Ok(false)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = match (self.is_closed(py), self.is_mapped(py)) {
            (true, _) => ", closed",
            (_, true) => ", mapped",
            _ => "",
        };
        format!("GraphicsResource(handle={:#x}{state})", self.handle(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.stream {
            Some(stream) => visit.call(stream),
            None => Ok(()),
        }
    }
}

/// Adds the class.
///
/// # Errors
///
/// Python errors.
pub fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyGraphicsResource>()
}
