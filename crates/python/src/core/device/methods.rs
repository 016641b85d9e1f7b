//! Methods of `Device`.

use std::ffi::CStr;

use cupyrite::{Context, Device};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::core::context::PyContext;
use crate::core::device;
use crate::core::device::properties::PyDeviceProperties;
use crate::core::device::{PyDevice, accept, current};
use crate::core::device_resources;
use crate::core::device_resources::PyDeviceResources;
use crate::core::errors::OrRaise;
use crate::core::event;
use crate::core::event::PyEvent;
use crate::core::graph::builder::PyGraphBuilder;
use crate::core::keyword_only::KeywordOnly;
use crate::core::memory::keep_alive;
use crate::core::memory::resource;
use crate::core::memory::resource::PyMemoryResource;
use crate::core::notebook;
use crate::core::numbers;
use crate::core::options::{OptionClass, Options};
use crate::core::stream;
use crate::core::stream::PyStream;
use crate::core::texture::array;
use crate::core::texture::array::{PyMipmappedArray, PyOpaqueArray};
use crate::core::texture::object;
use crate::core::texture::object::{PySurfaceObject, PyTextureObject};
use crate::core::wait;
use crate::cpython;
use crate::cpython::method;
use crate::cpython::method::Method;

impl PyDevice {
    fn name_text(&self, py: Python<'_>) -> PyResult<&str> {
        self.name
            .get_or_try_init(py, || self.device.name().or_raise(py))
            .map(String::as_str)
    }

    fn resource(&self, slf: &Bound<'_, PyDevice>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        if let Some(known) = &*self.memory_resource.lock(py) {
            return Ok(known.clone_ref(py));
        }
        let created = resource::default_for(py, slf)?;
        // Another thread may have been faster; its resource stays. This one is dropped after the lock is released,
        // since dropping it detaches the thread and another thread may then wait for the lock.
        let kept = self
            .memory_resource
            .lock(py)
            .get_or_insert_with(|| created.clone_ref(py))
            .clone_ref(py);
        drop(created);
        Ok(kept)
    }
}

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (device_id=None))]
    fn new(py: Python<'_>, device_id: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyDevice>> {
        let device = match device_id {
            Some(given) if !given.is_none() => accept(given, "Device", "device_id")?,
            _ => current(py)?,
        };
        device::object(py, device)
    }

    /// All devices, ordered by number.
    #[doc = example!("cuda.core.Device.get_all_devices")]
    #[classmethod]
    fn get_all_devices(_class: &Bound<'_, PyType>, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let devices = Device::all()
            .or_raise(py)?
            .into_iter()
            .map(|device| device::object(py, device))
            .collect::<PyResult<Vec<_>>>()?;
        device::warn_of_cpu_device(py)?;
        PyTuple::new(py, devices).map(Bound::unbind)
    }

    /// Device number, counted from 0.
    #[getter]
    fn device_id(&self) -> usize {
        self.device.ordinal()
    }

    /// PCI bus ID, ``domain:bus:device.function`` in hexadecimal.
    #[getter]
    fn pci_bus_id(&self, py: Python<'_>) -> PyResult<String> {
        self.device.pci_bus_id().or_raise(py)
    }

    /// UUID: 32 hexadecimal digits in five groups, without the prefix ``GPU-``.
    #[getter]
    fn uuid(&self, py: Python<'_>) -> PyResult<String> {
        let bytes = self.device.uuid().or_raise(py)?;
        let mut text = String::with_capacity(36);
        for (index, byte) in bytes.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            text.push_str(&format!("{byte:02x}"));
        }
        Ok(text)
    }

    /// Device name; the CPU device's name begins with ``CPU``.
    #[doc = example!("cuda.core.Device.name")]
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<&str> {
        self.name_text(py)
    }

    /// Total memory in bytes.
    #[getter]
    fn total_memory(&self, py: Python<'_>) -> PyResult<usize> {
        self.device.total_memory().or_raise(py)
    }

    /// Compute capability without the point, as in compiler options: ``'90'``.
    #[getter]
    fn arch(&self, py: Python<'_>) -> PyResult<String> {
        let capability = self.device.compute_capability().or_raise(py)?;
        Ok(format!("{}{}", capability.major, capability.minor))
    }

    /// Compute capability, a named tuple ``(major, minor)``.
    #[getter]
    fn compute_capability(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.capability
            .get_or_try_init(py, || {
                let capability = self.device.compute_capability().or_raise(py)?;
                PyModule::import(py, intern!(py, "cuda.core._utils.cuda_utils"))?
                    .getattr(intern!(py, "ComputeCapability"))?
                    .call1((capability.major, capability.minor))
                    .map(Bound::unbind)
            })
            .map(|value| value.clone_ref(py))
    }

    /// Attributes of the device.
    #[doc = example!("cuda.core.Device.properties")]
    #[getter]
    fn properties(&self, py: Python<'_>) -> PyResult<Py<PyDeviceProperties>> {
        self.properties
            .get_or_try_init(py, || PyDeviceProperties::wrap(py, self.device))
            .map(|value| value.clone_ref(py))
    }

    /// The context used for this device on the calling thread: the current context if it belongs to this device, else
    /// the primary context.
    #[doc = example!("cuda.core.Device.context")]
    #[getter]
    fn context(&self, py: Python<'_>) -> PyResult<Py<PyContext>> {
        let context = py.detach(|| self.device.active_context()).or_raise(py)?;
        self.context_object(py, context)
    }

    /// The default stream: :data:`LEGACY_DEFAULT_STREAM`, or :data:`PER_THREAD_DEFAULT_STREAM` if the environment
    /// variable ``CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM`` selects it.
    #[doc = example!("cuda.core.Device.default_stream")]
    #[getter]
    fn default_stream(&self, py: Python<'_>) -> PyResult<Py<PyStream>> {
        stream::default_object(py)
    }

    /// Memory resource of :meth:`allocate`. Default: a :class:`DeviceMemoryResource` of this device.
    #[doc = example!("cuda.core.Device.memory_resource")]
    #[getter]
    fn memory_resource(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        slf.get().resource(slf)
    }

    #[setter]
    fn set_memory_resource(&self, mr: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = mr.py();
        if mr.cast::<PyMemoryResource>().is_err() {
            return Err(PyTypeError::new_err(format!(
                "Device.memory_resource is set to an object of type {}; expected a MemoryResource",
                mr.get_type().name()?
            )));
        }
        let previous = self.memory_resource.lock(py).replace(mr.clone().unbind());
        drop(previous);
        Ok(())
    }

    /// The :class:`cuda.core.system.Device` with the same UUID: the device as NVML sees it.
    ///
    /// Raises
    /// ------
    /// NvmlError
    ///     If NVML cannot be initialised or does not have the device.
    #[doc = example!("cuda.core.Device.to_system_device")]
    fn to_system_device(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let class = PyModule::import(py, intern!(py, "cuda.core.system"))?
            .getattr(intern!(py, "Device"))?;
        let keywords = PyDict::new(py);
        keywords.set_item(intern!(py, "uuid"), self.uuid(py)?)?;
        class.call((), Some(&keywords)).map(Bound::unbind)
    }

    /// Whether kernels of this device can access the memory of another device.
    ///
    /// Parameters
    /// ----------
    /// peer : Device or int
    ///     The other device. A device can access its own memory.
    #[doc = example!("cuda.core.Device.can_access_peer")]
    fn can_access_peer(&self, py: Python<'_>, peer: &Bound<'_, PyAny>) -> PyResult<bool> {
        let peer = accept(peer, "Device.can_access_peer", "peer")?;
        if peer == self.device {
            return Ok(true);
        }
        self.device.can_access_peer(peer).or_raise(py)
    }

    /// Makes the device current on the calling thread, for default streams and other libraries.
    ///
    /// Parameters
    /// ----------
    /// ctx : Context, optional
    ///     A context of this device. Default: the primary context.
    ///
    /// Returns
    /// -------
    /// Context or None
    ///     If `ctx` was given, the previously current context, if any.
    #[doc = example!("cuda.core.Device.set_current")]
    #[pyo3(signature = (ctx=None))]
    fn set_current(
        &self,
        py: Python<'_>,
        ctx: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<PyContext>>> {
        let Some(given) = ctx.filter(|ctx| !ctx.is_none()) else {
            let context = py
                .detach(|| {
                    let context = self.device.context()?;
                    context.set_current()?;
                    Ok(context.clone())
                })
                .or_raise(py)?;
            self.context_object(py, context)?;
            return Ok(None);
        };
        let Ok(given) = given.cast::<PyContext>() else {
            return Err(PyTypeError::new_err(format!(
                "Device.set_current() argument 'ctx' is of type {}; expected a Context",
                given.get_type().name()?
            )));
        };
        let context = given.get().get(py)?;
        if context.device() != self.device {
            return Err(PyRuntimeError::new_err(format!(
                "Device.set_current() argument 'ctx' is a context of device {}, not of device {}",
                context.device().ordinal(),
                self.device.ordinal()
            )));
        }
        let previous = py
            .detach(|| {
                let previous = Context::current()?;
                context.set_current()?;
                Ok(previous)
            })
            .or_raise(py)?;
        let replaced = self.context.lock(py).replace(given.clone().unbind());
        drop(replaced);
        previous
            .map(|previous| PyContext::wrap(py, previous))
            .transpose()
    }

    /// Makes the device current within the ``with`` statement; the previous context is restored at its end.
    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let py = slf.py();
        let device = slf.get().device;
        py.detach(|| device.context()?.push()).or_raise(py)?;
        Ok(slf)
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        py.detach(Context::pop).or_raise(py).map(drop)
    }

    /// Creates a green context, which owns a part of the device. It does not become current.
    ///
    /// Parameters
    /// ----------
    /// options : ContextOptions or dict
    ///     The resources of the context.
    ///
    /// Returns
    /// -------
    /// Context
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     No resources are given, or one is the result of a dry run. The primary context needs none; use :attr:`context`.
    /// CUDAError
    ///     The resources cannot be combined.
    /// TypeError
    ///     An object is not a device resource.
    #[doc = example!("cuda.core.Device.create_context")]
    #[pyo3(signature = (options=None))]
    fn create_context(
        &self,
        py: Python<'_>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyContext>> {
        const NONE: &str = "Device.create_context() creates a green context, which requires resources \
                            (ContextOptions.resources); the device's primary context is Device.context";
        static OPTIONS: OptionClass = OptionClass::new("cuda.core._context", "ContextOptions");
        let accepted = Options::accept("Device.create_context", &OPTIONS, options)?;
        let Some(resources) = accepted.value(intern!(py, "resources"))? else {
            return Err(PyValueError::new_err(NONE));
        };
        if device_resources::resource_list(&resources)?
            .next()
            .is_none()
        {
            return Err(PyValueError::new_err(NONE));
        }
        PyContext::wrap(
            py,
            device_resources::create_context(py, self.device, &resources)?,
        )
    }

    /// The resources of the device, a :class:`DeviceResources`: all multiprocessors and work queues.
    #[doc = example!("cuda.core.Device.resources")]
    #[getter]
    fn resources(&self, py: Python<'_>) -> PyResult<Py<PyDeviceResources>> {
        self.resources
            .get_or_try_init(py, || PyDeviceResources::of_device(py, self.device))
            .map(|resources| resources.clone_ref(py))
    }

    /// Creates a stream.
    ///
    /// Parameters
    /// ----------
    /// obj : object, optional
    ///     An object with ``__cuda_stream__``: wraps the object's stream and keeps the object alive.
    /// options : StreamOptions or dict, optional
    ///     Options of a new stream. Excludes `obj`.
    ///
    /// Returns
    /// -------
    /// Stream
    #[doc = example!("cuda.core.Device.create_stream")]
    #[pyo3(signature = (obj=None, options=None))]
    fn create_stream(
        &self,
        py: Python<'_>,
        obj: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyStream>> {
        if let Some(obj) = obj.filter(|obj| !obj.is_none()) {
            if options.is_some_and(|options| !options.is_none()) {
                return Err(PyValueError::new_err(
                    "Device.create_stream() takes 'obj' (wrap its stream) or 'options' (create a stream), not both",
                ));
            }
            let stream = stream::accept(obj, "Device.create_stream", "obj", true)?;
            return PyStream::wrap(py, stream);
        }
        let created = stream::create(self.device, "Device.create_stream", options, py)?;
        PyStream::wrap(py, created)
    }

    /// Creates an array for textures and surfaces.
    ///
    /// Parameters
    /// ----------
    /// options : OpaqueArrayOptions or dict
    ///     Shape, format, channels and uses.
    ///
    /// Returns
    /// -------
    /// cuda.core.texture.OpaqueArray
    #[doc = example!("cuda.core.Device.create_opaque_array")]
    fn create_opaque_array(&self, options: &Bound<'_, PyAny>) -> PyResult<PyOpaqueArray> {
        array::create(self.device, options)
    }

    /// Creates an array with levels of detail.
    ///
    /// Parameters
    /// ----------
    /// options : MipmappedArrayOptions or dict
    ///     Shape of level 0, format, channels, levels and uses.
    ///
    /// Returns
    /// -------
    /// cuda.core.texture.MipmappedArray
    #[doc = example!("cuda.core.Device.create_mipmapped_array")]
    fn create_mipmapped_array(&self, options: &Bound<'_, PyAny>) -> PyResult<PyMipmappedArray> {
        array::create_mipmapped(self.device, options)
    }

    /// Creates a texture, for sampled reads in kernels.
    ///
    /// Parameters
    /// ----------
    /// resource : ResourceDescriptor
    ///     The array or buffer.
    /// options : TextureObjectOptions or dict, optional
    ///     Sampling state.
    ///
    /// Returns
    /// -------
    /// cuda.core.texture.TextureObject
    #[doc = example!("cuda.core.Device.create_texture_object")]
    #[pyo3(
        signature = (*, resource=KeywordOnly(None), options=None),
        text_signature = "($self, *, resource, options=None)"
    )]
    fn create_texture_object(
        &self,
        resource: KeywordOnly<'_, '_>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTextureObject> {
        let resource = resource.get("Device.create_texture_object", "resource")?;
        object::create_texture(self.device, resource, options)
    }

    /// Creates a surface, for reads and writes of an array in kernels.
    ///
    /// Parameters
    /// ----------
    /// resource : ResourceDescriptor
    ///     An array created with ``is_surface_load_store=True``.
    ///
    /// Returns
    /// -------
    /// cuda.core.texture.SurfaceObject
    #[doc = example!("cuda.core.Device.create_surface_object")]
    #[pyo3(
        signature = (*, resource=KeywordOnly(None)),
        text_signature = "($self, *, resource)"
    )]
    fn create_surface_object(&self, resource: KeywordOnly<'_, '_>) -> PyResult<PySurfaceObject> {
        let resource = resource.get("Device.create_surface_object", "resource")?;
        object::create_surface(self.device, resource)
    }

    /// Creates a graph builder with a stream of its own.
    ///
    /// Returns
    /// -------
    /// GraphBuilder
    #[doc = example!("cuda.core.Device.create_graph_builder")]
    fn create_graph_builder(&self, py: Python<'_>) -> PyResult<Py<PyGraphBuilder>> {
        PyGraphBuilder::of_device(py, self.device)
    }

    /// Waits for all work of the device.
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     Error of the completed work.
    /// KeyboardInterrupt
    ///     Ctrl-C ends the wait, on the main thread; the work goes on.
    #[doc = example!("cuda.core.Device.sync")]
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        wait::for_device(py, self.device)?;
        keep_alive::drop_completed(py);
        Ok(())
    }

    fn __int__(&self) -> usize {
        self.device.ordinal()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<PyDevice>()
            .is_ok_and(|other| self.device == other.get().device)
    }

    fn __hash__(&self) -> u64 {
        self.device.ordinal() as u64
    }

    /// HTML for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        notebook::html(slf.py(), "device", (slf,))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "<Device {} ({})>",
            self.device.ordinal(),
            self.name_text(py)?
        ))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let arguments = PyTuple::new(py, [self.device.ordinal()])?;
        (py.get_type::<PyDevice>(), arguments).into_pyobject(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // SAFETY: the collector runs on an attached thread.
        let py = unsafe { Python::assume_attached() };
        // A held lock belongs to a thread that the collector has suspended, so the object is alive.
        if let Some(resource) = self.memory_resource.try_lock(py) {
            visit.call(&*resource)?;
        }
        if let Some(context) = self.context.try_lock(py) {
            visit.call(&*context)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        // SAFETY: the collector runs on an attached thread.
        let py = unsafe { Python::assume_attached() };
        let resource = self.memory_resource.lock(py).take();
        drop(resource);
    }
}

impl PyDevice {
    /// The Python object of a context; reuses the most recent object if it has the same context.
    fn context_object(&self, py: Python<'_>, context: Context) -> PyResult<Py<PyContext>> {
        let known = self
            .context
            .lock(py)
            .as_ref()
            .map(|known| known.clone_ref(py));
        // Compared without the lock, since the comparison may switch threads.
        if let Some(known) = known
            && known.get().get(py).is_ok_and(|known| known == context)
        {
            return Ok(known);
        }
        let created = PyContext::wrap(py, context)?;
        let previous = self.context.lock(py).replace(created.clone_ref(py));
        drop(previous);
        Ok(created)
    }
}

/// `Device.create_event(options=None)`.
struct CreateEvent;

impl Method<1> for CreateEvent {
    type Class = PyDevice;
    type Receiver = Self::Class;
    const FUNCTION: &'static str = "Device.create_event";
    const NAME: &'static CStr = c"create_event";
    const TEXT: &'static CStr = with_example!(
        "create_event($self, /, options=None)
--

Creates an event, not yet recorded.

Parameters
----------
options : EventOptions or dict, optional
    Options of the event.

Returns
-------
Event",
        "cuda.core.Device.create_event"
    );
    const NAMES: [&'static str; 1] = ["options"];

    fn known() -> &'static PyOnceLock<[Py<PyString>; 1]> {
        static KNOWN: PyOnceLock<[Py<PyString>; 1]> = PyOnceLock::new();
        &KNOWN
    }

    #[inline]
    fn call(
        slf: &Bound<'_, PyDevice>,
        [options]: [Option<&Bound<'_, PyAny>>; 1],
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let device = slf.get().device;
        let options = event::event_options(Self::FUNCTION, options)?;
        // SAFETY: calls only the driver.
        let created = unsafe { cpython::detached(|| device.create_unique_event(&options)) };
        PyEvent::wrap_unrecorded(py, created.or_raise(py)?).map(Py::into_any)
    }
}

/// `Device.allocate(size, *, stream=None)`. `stream` is also accepted by position.
struct Allocate;

impl Method<2> for Allocate {
    type Class = PyDevice;
    type Receiver = Self::Class;
    const FUNCTION: &'static str = "Device.allocate";
    const NAME: &'static CStr = c"allocate";
    const TEXT: &'static CStr = with_example!(
        "allocate($self, size, *, stream=None)
--

Allocates device memory.

Parameters
----------
size : int
    Size in bytes.
stream : Stream, optional
    Stream of the stream-ordered allocation. Default: the default stream.

Returns
-------
Buffer",
        "cuda.core.Device.allocate"
    );
    const NAMES: [&'static str; 2] = ["size", "stream"];
    const REQUIRED: usize = 1;

    fn known() -> &'static PyOnceLock<[Py<PyString>; 2]> {
        static KNOWN: PyOnceLock<[Py<PyString>; 2]> = PyOnceLock::new();
        &KNOWN
    }

    #[inline]
    fn call<'py>(
        slf: &Bound<'py, PyDevice>,
        [size, stream]: [Option<&Bound<'py, PyAny>>; 2],
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let this = slf.get();
        // `Bound`, as all references on this path: PyO3 would defer the drop of a `Py` unless it is attached
        // explicitly.
        let resource = this.resource(slf)?.into_bound(py);
        let size = numbers::size_or_none(py, size, Self::FUNCTION)?;
        let created;
        let stream = match stream {
            Some(stream) => stream,
            None => {
                created = stream::default_object(py)?.into_bound(py).into_any();
                &created
            }
        };
        resource::allocate(&resource, size, stream, this.device).map(Bound::unbind)
    }
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = core.py();
    core.add_class::<PyDevice>()?;
    method::add::<CreateEvent, 1>(py)?;
    method::add::<Allocate, 2>(py)
}
