//! `Device`: one object per device and thread.

pub mod methods;
pub mod properties;

use std::cell::Cell;

use cupyrite::Device;
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::bindings::symbols;
use crate::core::context::PyContext;
use crate::core::device::properties::PyDeviceProperties;
use crate::core::device_resources::PyDeviceResources;
use crate::core::errors::OrRaise;
use crate::core::numbers;
use crate::cpython::Raised;
use crate::cpython::gil_lock::GilLock;

/// A CUDA device.
///
/// Each thread has one object per device: ``Device(0) is Device(0)``. ``Device()`` is the device of the thread's
/// current context, or device 0 if there is none. Creating a device object initializes the driver and nothing else.
///
/// A device needs no setup: operations that need a context use the thread's current context if it belongs to this
/// device, and the device's primary context otherwise. :meth:`set_current` and ``with device:`` are for code that
/// depends on the current context: default streams, and other libraries.
///
/// Parameters
/// ----------
/// device_id : int or Device, optional
///     Device number, counted from 0. Default: the current device.
///
/// See `Device management <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__DEVICE.html>`_.
#[doc = example!("cuda.core.Device")]
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._device",
    name = "Device"
)]
pub struct PyDevice {
    device: Device,
    context: GilLock<Option<Py<PyContext>>>,
    properties: PyOnceLock<Py<PyDeviceProperties>>,
    capability: PyOnceLock<Py<PyAny>>,
    name: PyOnceLock<String>,
    memory_resource: GilLock<Option<Py<PyAny>>>,
    resources: PyOnceLock<Py<PyDeviceResources>>,
}

impl PyDevice {
    fn make(device: Device) -> PyDevice {
        PyDevice {
            device,
            context: GilLock::new(None),
            properties: PyOnceLock::new(),
            capability: PyOnceLock::new(),
            name: PyOnceLock::new(),
            memory_resource: GilLock::new(None),
            resources: PyOnceLock::new(),
        }
    }

    /// The device.
    #[inline]
    pub fn device(&self) -> Device {
        self.device
    }
}

// ---------------------------------------------------------------------------------------------------------
// One object a device and thread

/// The device objects of a thread. Owned by the thread state's dictionary, which CPython clears when it deletes the
/// thread state. Native thread-local destructors never touch Python objects.
#[pyclass(frozen, module = "cupyrite._native.core", name = "_ThreadDevices")]
struct ThreadDevices {
    devices: Box<[PyOnceLock<Py<PyDevice>>]>,
}

impl Drop for ThreadDevices {
    fn drop(&mut self) {
        // Other objects of the dictionary may use a device while it is cleared.
        let _ = THREAD_CACHE.try_with(|cache| {
            if std::ptr::eq(cache.devices.get(), self) {
                cache.thread.set(-1);
                cache.devices.set(std::ptr::null());
            }
        });
    }
}

struct ThreadCache {
    /// ID of the Python thread state that owns `devices`. IDs are not reused.
    thread: Cell<i64>,
    devices: Cell<*const ThreadDevices>,
}

thread_local! {
    static THREAD_CACHE: ThreadCache = const {
        ThreadCache {
            thread: Cell::new(-1),
            devices: Cell::new(std::ptr::null()),
        }
    };
}

/// The calling thread's object of a device.
///
/// # Errors
///
/// `MemoryError`.
#[inline]
pub fn object(py: Python<'_>, device: Device) -> PyResult<Py<PyDevice>> {
    // SAFETY: attached, so the thread has a state.
    let thread = unsafe { ffi::PyThreadState_GetID(ffi::PyThreadState_Get()) };
    let devices = THREAD_CACHE.with(|cache| {
        if cache.thread.get() == thread {
            Ok(cache.devices.get())
        } else {
            thread_devices(py, cache, thread)
        }
    })?;
    // SAFETY: owned by the dictionary of this thread's state, which lives while the thread is attached.
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
fn thread_devices(
    py: Python<'_>,
    cache: &ThreadCache,
    thread: i64,
) -> PyResult<*const ThreadDevices> {
    // SAFETY: attached; a borrowed reference, or null if the thread state has no dictionary.
    let Some(dict) = (unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyThreadState_GetDict()) })
    else {
        return Err(PyRuntimeError::new_err("this thread is shutting down"));
    };
    let dict = dict.cast_into::<PyDict>()?;
    let key = intern!(py, "cuda.core.devices");
    let created = match dict.get_item(key)? {
        Some(known) => known.cast_into::<ThreadDevices>()?.unbind(),
        None => {
            let count = Device::count().or_raise(py)?;
            let created = Py::new(
                py,
                ThreadDevices {
                    devices: (0..count).map(|_| PyOnceLock::new()).collect(),
                },
            )?;
            dict.set_item(key, &created)?;
            created
        }
    };
    // The class is frozen: its contents do not move.
    let devices: *const ThreadDevices = created.get();
    cache.devices.set(devices);
    cache.thread.set(thread);
    Ok(devices)
}

/// The current device of the calling thread.
///
/// # Errors
///
/// Errors of the driver's initialization.
#[inline]
pub fn current(py: Python<'_>) -> PyResult<Device> {
    match Device::current() {
        Ok(device) => warn_of_cpu_device(py).map(|()| device),
        Err(error) => Err(crate::core::errors::to_python(py, &error)),
    }
}

/// Warns once if the CPU device is in use because there is no GPU.
///
/// # Errors
///
/// The warning itself, where the user turned warnings into errors.
pub fn warn_of_cpu_device(py: Python<'_>) -> PyResult<()> {
    symbols::warn_of_cpu_device().map_err(|Raised| PyErr::fetch(py))
}

/// Converts an argument to a device: a `Device` or a device number.
///
/// # Errors
///
/// `TypeError`; `ValueError` or `OverflowError` for a number without a device.
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
            "{function}() argument '{parameter}' is {}, which is not a device number",
            numbers::short_repr(&index)
        )));
    };
    let count = Device::count().or_raise(py)?;
    warn_of_cpu_device(py)?;
    match usize::try_from(ordinal) {
        Ok(ordinal) if ordinal < count => Device::new(ordinal).or_raise(py),
        _ => Err(PyValueError::new_err(format!(
            "{function}() argument '{parameter}' is {ordinal}; {}",
            match count {
                0 => "there are no devices".to_owned(),
                1 => "there is one device, number 0".to_owned(),
                n => format!("there are {n} devices, numbers 0 to {}", n - 1),
            }
        ))),
    }
}

/// As [`accept`], where None selects the current device.
///
/// # Errors
///
/// As [`accept`]; errors of the driver's initialization.
pub fn accept_or_current(
    given: &Bound<'_, PyAny>,
    function: &str,
    parameter: &str,
) -> PyResult<Device> {
    if given.is_none() {
        current(given.py())
    } else {
        accept(given, function, parameter)
    }
}
