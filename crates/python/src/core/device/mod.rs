//! `Device`: one object a device and thread.

pub mod properties;

use std::cell::Cell;
use std::ffi::CStr;

use cupyrite::{Context, Device};
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::core::closable::Detached;
use crate::core::context::PyContext;
use crate::core::device::properties::PyDeviceProperties;
use crate::core::errors::OrRaise;
use crate::core::event;
use crate::core::event::PyEvent;
use crate::core::memory::copy_operand;
use crate::core::memory::resource;
use crate::core::memory::resource::PyMemoryResource;
use crate::core::numbers;
use crate::core::options::{OptionClass, Options};
use crate::core::stream;
use crate::core::stream::PyStream;
use crate::cpython::gil_lock::Held;
use crate::cpython::method;
use crate::cpython::method::Method;

/// A device of this machine.
///
/// Within a thread there is one object a device: ``Device(0) is Device(0)``. ``Device()`` is the device of the thread's
/// current context, or device 0 where it has none. Making one initialises the driver and nothing else.
///
/// A device needs no preparation: whatever needs a context takes the thread's current one if it is of this device, and
/// the device's primary context otherwise. :meth:`set_current` and ``with device:`` are for work that goes by the current
/// context: default streams, and other libraries.
///
/// Parameters
/// ----------
/// device_id : int or Device, optional
///     The device's number, counted from 0; the current device by default.
///
/// See `Device management <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__DEVICE.html>`_.
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._device",
    name = "Device"
)]
pub struct PyDevice {
    device: Device,
    context: Held<Option<Py<PyContext>>>,
    properties: PyOnceLock<Py<PyDeviceProperties>>,
    capability: PyOnceLock<Py<PyAny>>,
    name: PyOnceLock<String>,
    memory_resource: Held<Option<Py<PyAny>>>,
}

impl PyDevice {
    fn make(device: Device) -> PyDevice {
        PyDevice {
            device,
            context: Held::new(None),
            properties: PyOnceLock::new(),
            capability: PyOnceLock::new(),
            name: PyOnceLock::new(),
            memory_resource: Held::new(None),
        }
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> Device {
        self.device
    }

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
        let made = resource::default_for(py, slf)?;
        // Another thread may have been first: then that one stays. This one goes when the lock is free, for it lets go of the
        // interpreter, and whoever has that then may want the lock.
        let kept = self
            .memory_resource
            .lock(py)
            .get_or_insert_with(|| made.clone_ref(py))
            .clone_ref(py);
        drop(made);
        Ok(kept)
    }
}

// ---------------------------------------------------------------------------------------------------------
// One object a device and thread

/// The devices of a thread. The dictionary of the thread's state owns it, so that it goes when the interpreter lets go
/// of the thread, and never later: nothing of Python's hangs on the operating system's own thread-local destructors.
#[pyclass(frozen, module = "cupyrite._native.core", name = "_ThreadDevices")]
struct ThreadDevices {
    devices: Box<[PyOnceLock<Py<PyDevice>>]>,
}

impl Drop for ThreadDevices {
    fn drop(&mut self) {
        // What else the dictionary held may still ask for a device while it is cleared.
        let _ = MINE.try_with(|mine| {
            if std::ptr::eq(mine.devices.get(), self) {
                mine.thread.set(-1);
                mine.devices.set(std::ptr::null());
            }
        });
    }
}

struct Mine {
    /// The number of the interpreter's thread that `devices` belongs to. Numbers are never used twice.
    thread: Cell<i64>,
    devices: Cell<*const ThreadDevices>,
}

thread_local! {
    static MINE: Mine = const {
        Mine {
            thread: Cell::new(-1),
            devices: Cell::new(std::ptr::null()),
        }
    };
}

/// The calling thread's object of a device.
///
/// # Errors
///
/// Memory.
#[inline]
pub fn object(py: Python<'_>, device: Device) -> PyResult<Py<PyDevice>> {
    // SAFETY: attached to the interpreter, so the thread has a state.
    let thread = unsafe { ffi::PyThreadState_GetID(ffi::PyThreadState_Get()) };
    let devices = MINE.with(|mine| {
        if mine.thread.get() == thread {
            Ok(mine.devices.get())
        } else {
            thread_devices(py, mine, thread)
        }
    })?;
    // SAFETY: it belongs to the state of this very thread, whose dictionary owns it and lives while the thread is attached.
    let devices = unsafe { &*devices };
    let place = &devices.devices[device.ordinal()];
    if let Some(known) = place.get(py) {
        return Ok(known.clone_ref(py));
    }
    place
        .get_or_try_init(py, || Py::new(py, PyDevice::make(device)))
        .map(|object| object.clone_ref(py))
}

#[cold]
fn thread_devices(py: Python<'_>, mine: &Mine, thread: i64) -> PyResult<*const ThreadDevices> {
    // SAFETY: attached; a borrowed reference, or null where the thread can have no dictionary.
    let Some(dict) = (unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyThreadState_GetDict()) })
    else {
        return Err(PyRuntimeError::new_err("this thread is ending"));
    };
    let dict = dict.cast_into::<PyDict>()?;
    let key = intern!(py, "cuda.core.devices");
    let made = match dict.get_item(key)? {
        Some(known) => known.cast_into::<ThreadDevices>()?.unbind(),
        None => {
            let count = Device::count().or_raise(py)?;
            let made = Py::new(
                py,
                ThreadDevices {
                    devices: (0..count).map(|_| PyOnceLock::new()).collect(),
                },
            )?;
            dict.set_item(key, &made)?;
            made
        }
    };
    // The class is frozen: its contents stay where they are.
    let devices: *const ThreadDevices = made.get();
    mine.devices.set(devices);
    mine.thread.set(thread);
    Ok(devices)
}

/// The current device of the calling thread.
///
/// # Errors
///
/// What the driver's initialisation says.
#[inline]
pub fn current(py: Python<'_>) -> PyResult<Device> {
    match Device::current() {
        Ok(device) => Ok(device),
        Err(error) => Err(crate::core::errors::to_python(py, &error)),
    }
}

/// The device that an argument stands for: a `Device`, or a number.
///
/// # Errors
///
/// `TypeError`, or `ValueError` that says which devices there are.
pub fn accept(given: &Bound<'_, PyAny>, function: &str, parameter: &str) -> PyResult<Device> {
    if let Ok(device) = given.cast::<PyDevice>() {
        return Ok(device.get().device);
    }
    let py = given.py();
    let Some(index) = numbers::index(given)? else {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument '{parameter}' is of type {}; expected an int or a Device",
            given.get_type().name()?
        )));
    };
    let Ok(ordinal) = index.extract::<i32>() else {
        return Err(PyOverflowError::new_err(format!(
            "{function}() argument '{parameter}' is {}, which is the number of no device",
            numbers::shown(&index)
        )));
    };
    let count = Device::count().or_raise(py)?;
    match usize::try_from(ordinal) {
        Ok(ordinal) if ordinal < count => Device::new(ordinal).or_raise(py),
        _ => Err(PyValueError::new_err(format!(
            "{function}() argument '{parameter}' is {ordinal}; {}",
            match count {
                0 => "there is no device".to_owned(),
                1 => "there is one device, number 0".to_owned(),
                n => format!("there are {n} devices, numbers 0 to {}", n - 1),
            }
        ))),
    }
}

// ---------------------------------------------------------------------------------------------------------

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (device_id=None))]
    fn new(py: Python<'_>, device_id: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyDevice>> {
        let device = match device_id {
            Some(given) if !given.is_none() => accept(given, "Device", "device_id")?,
            _ => current(py)?,
        };
        object(py, device)
    }

    /// All devices, in the order of their numbers.
    #[classmethod]
    fn get_all_devices(_class: &Bound<'_, PyType>, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let devices = Device::all()
            .or_raise(py)?
            .into_iter()
            .map(|device| object(py, device))
            .collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, devices).map(Bound::unbind)
    }

    /// The device's number, counted from 0.
    #[getter]
    fn device_id(&self) -> usize {
        self.device.ordinal()
    }

    /// Where the device is on the PCI bus: ``domain:bus:device.function`` in hexadecimal.
    #[getter]
    fn pci_bus_id(&self, py: Python<'_>) -> PyResult<String> {
        self.device.pci_bus_id().or_raise(py)
    }

    /// The device's UUID: 32 hexadecimal digits in five groups, without the prefix ``GPU-``.
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

    /// The device's name; that of the CPU device begins with ``CPU``.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<&str> {
        self.name_text(py)
    }

    /// Bytes of memory that the device has.
    #[getter]
    fn total_memory(&self, py: Python<'_>) -> PyResult<usize> {
        self.device.total_memory().or_raise(py)
    }

    /// The compute capability without the point, as compilers want it: ``'90'``.
    #[getter]
    fn arch(&self, py: Python<'_>) -> PyResult<String> {
        let capability = self.device.compute_capability().or_raise(py)?;
        Ok(format!("{}{}", capability.major, capability.minor))
    }

    /// The compute capability, a named tuple ``(major, minor)``.
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

    /// What the device can do and how much of everything it has.
    #[getter]
    fn properties(&self, py: Python<'_>) -> PyResult<Py<PyDeviceProperties>> {
        self.properties
            .get_or_try_init(py, || PyDeviceProperties::wrap(py, self.device))
            .map(|value| value.clone_ref(py))
    }

    /// The context that this device's work goes to on the calling thread: the current one if it is of this device, else
    /// the primary one.
    #[getter]
    fn context(&self, py: Python<'_>) -> PyResult<Py<PyContext>> {
        let context = py.detach(|| self.device.active_context()).or_raise(py)?;
        self.context_object(py, context)
    }

    /// The default stream: :data:`LEGACY_DEFAULT_STREAM`, or :data:`PER_THREAD_DEFAULT_STREAM` where the variable
    /// ``CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM`` says so.
    #[getter]
    fn default_stream(&self, py: Python<'_>) -> PyResult<Py<PyStream>> {
        stream::default_object(py)
    }

    /// Where :meth:`allocate` gets its memory. By default a :class:`DeviceMemoryResource` of this device.
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
        let former = self.memory_resource.lock(py).replace(mr.clone().unbind());
        drop(former);
        Ok(())
    }

    /// Whether kernels of this device can reach the memory of another one.
    ///
    /// Parameters
    /// ----------
    /// peer : Device or int
    ///     The other device. A device reaches its own memory.
    fn can_access_peer(&self, py: Python<'_>, peer: &Bound<'_, PyAny>) -> PyResult<bool> {
        let peer = accept(peer, "Device.can_access_peer", "peer")?;
        if peer == self.device {
            return Ok(true);
        }
        self.device.can_access_peer(peer).or_raise(py)
    }

    /// Makes the device current on the calling thread: default streams and other libraries then use it.
    ///
    /// Parameters
    /// ----------
    /// ctx : Context, optional
    ///     A context of this device; its primary one by default.
    ///
    /// Returns
    /// -------
    /// Context or None
    ///     Where `ctx` was given, the context that was current before, if there was one.
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
        let former = py
            .detach(|| {
                let former = Context::current()?;
                context.set_current()?;
                Ok(former)
            })
            .or_raise(py)?;
        let replaced = self.context.lock(py).replace(given.clone().unbind());
        drop(replaced);
        former.map(|former| PyContext::wrap(py, former)).transpose()
    }

    /// Makes the device current until the end of the ``with`` statement; what was current before is restored then.
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

    /// Makes a green context, which owns a part of the device.
    ///
    /// Parameters
    /// ----------
    /// options : ContextOptions or dict
    ///     Which parts.
    ///
    /// Returns
    /// -------
    /// Context
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     No resources are given. The primary context needs none: it is :attr:`context`.
    /// TypeError
    ///     A resource is of a kind that no context is made of.
    #[pyo3(signature = (options=None))]
    fn create_context(
        &self,
        py: Python<'_>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyContext>> {
        const NONE: &str = "Device.create_context() makes a green context, which needs the resources that it is to own \
                            (ContextOptions.resources); the device's primary context is Device.context";
        static OPTIONS: OptionClass = OptionClass::new("cuda.core._context", "ContextOptions");
        let accepted = Options::accept("Device.create_context", &OPTIONS, options)?;
        let Some(resources) = accepted.value(intern!(py, "resources"))? else {
            return Err(PyValueError::new_err(NONE));
        };
        // A single resource is not a sequence of one, as nothing else is.
        match resources.try_iter()?.next() {
            None => Err(PyValueError::new_err(NONE)),
            // This version makes no objects that stand for parts of a device, so none can be given.
            Some(resource) => Err(PyTypeError::new_err(format!(
                "ContextOptions.resources holds an object of type {}, which is no resource of a device",
                resource?.get_type().name()?
            ))),
        }
    }

    /// Makes a stream.
    ///
    /// Parameters
    /// ----------
    /// obj : object, optional
    ///     An object with ``__cuda_stream__``: the stream is that object's, which is kept for as long as it is used.
    /// options : StreamOptions or dict, optional
    ///     How a new stream is made; not together with `obj`.
    ///
    /// Returns
    /// -------
    /// Stream
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
                    "Device.create_stream() takes 'obj', whose stream exists, or 'options' for a new one, not both",
                ));
            }
            let stream = stream::accept(obj, "Device.create_stream", "obj", true)?;
            return PyStream::wrap(py, stream);
        }
        let made = stream::create(self.device, "Device.create_stream", options, py)?;
        PyStream::wrap(py, made)
    }

    /// Waits until all work of the device is done.
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     What the work raised.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.device.synchronize()).or_raise(py)?;
        copy_operand::reap(py);
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
        // A lock that is held now is held by a thread that the collector has stopped: its object is alive.
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
    /// The object of a context: the one that was given out last, where it is of the same context.
    fn context_object(&self, py: Python<'_>, context: Context) -> PyResult<Py<PyContext>> {
        let known = self
            .context
            .lock(py)
            .as_ref()
            .map(|known| known.clone_ref(py));
        // Asked without the lock, since asking may let other threads run.
        if let Some(known) = known
            && known.get().get(py).is_ok_and(|known| known == context)
        {
            return Ok(known);
        }
        let made = PyContext::wrap(py, context)?;
        let former = self.context.lock(py).replace(made.clone_ref(py));
        drop(former);
        Ok(made)
    }
}

/// `Device.create_event(options=None)`.
struct CreateEvent;

impl Method<1> for CreateEvent {
    type Class = PyDevice;
    const FUNCTION: &'static str = "Device.create_event";
    const NAME: &'static CStr = c"create_event";
    const TEXT: &'static CStr = c"create_event($self, /, options=None)
--

Makes an event that is not recorded yet.

Parameters
----------
options : EventOptions or dict, optional
    How it is made.

Returns
-------
Event";
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
        let made = {
            // SAFETY: nothing but the driver is called.
            let _detached = unsafe { Detached::new(py) };
            device.create_unique_event(&options)
        };
        PyEvent::wrap_unrecorded(py, made.or_raise(py)?).map(Py::into_any)
    }
}

/// `Device.allocate(size, *, stream=None)`. The stream may also be given by place.
struct Allocate;

impl Method<2> for Allocate {
    type Class = PyDevice;
    const FUNCTION: &'static str = "Device.allocate";
    const NAME: &'static CStr = c"allocate";
    const TEXT: &'static CStr = c"allocate($self, size, *, stream=None)
--

Allocates memory of the device.

Parameters
----------
size : int
    Bytes.
stream : Stream, optional
    The stream in whose order the memory is there; the default stream by default.

Returns
-------
Buffer";
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
        // Bound, as all of Python's here: PyO3 would put off giving others back, where it was not told that the thread is
        // attached.
        let resource = this.resource(slf)?.into_bound(py);
        let size = numbers::size_or_none(py, size, Self::FUNCTION)?;
        let made;
        let stream = match stream {
            Some(stream) => stream,
            None => {
                made = stream::default_object(py)?.into_bound(py).into_any();
                &made
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
