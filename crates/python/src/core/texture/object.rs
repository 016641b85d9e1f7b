//! `TextureObject` and `SurfaceObject`.

use cupyrite::{Device, Stream, SurfaceObject, TextureObject};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::core::closable::{Closable, drop_detached};
use crate::core::device;
use crate::core::device::PyDevice;
use crate::core::errors::OrRaise;
use crate::core::memory::buffer::PyBuffer;
use crate::core::texture::options;
use crate::core::texture::resource;
use crate::core::texture::resource::PyResourceDescriptor;
use crate::core::view::state::PinnedBuffer;
use crate::cpython::gil_lock::GilLock;

/// What a texture or surface keeps alive, until it is closed.
struct Held {
    resource: Py<PyResourceDescriptor>,
    /// Released after the driver's object is destroyed.
    pin: Option<PinnedBuffer>,
}

type Cell = GilLock<Option<Held>>;

fn held_resource(cell: &Cell, py: Python<'_>) -> Option<Py<PyResourceDescriptor>> {
    let held = cell.lock(py);
    held.as_ref().map(|held| held.resource.clone_ref(py))
}

fn traverse(cell: &Cell, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    // SAFETY: the collector runs on an attached thread.
    let py = unsafe { Python::assume_attached() };
    // A held lock belongs to a thread that the collector has suspended, so the object is alive.
    match cell.try_lock(py).as_deref() {
        Some(Some(held)) => {
            visit.call(&held.resource)?;
            match &held.pin {
                Some(pin) => visit.call(&pin.0),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// A texture: sampled reads in kernels.
///
/// Textures come from :meth:`Device.create_texture_object`. Pass the object, or its :attr:`handle`, to a kernel parameter
/// of type ``cudaTextureObject_t``. A texture keeps its array or buffer alive. Keep it open until the kernels that use it
/// are done. A ``with`` statement closes it.
///
/// See `cuTexObjectCreate
/// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TEXOBJECT.html>`_.
#[doc = example!("cuda.core.texture.TextureObject")]
#[pyclass(
    frozen,
    weakref,
    module = "cuda.core.texture._texture",
    name = "TextureObject"
)]
pub struct PyTextureObject {
    cell: Closable<TextureObject>,
    device: Device,
    options: Py<PyAny>,
    held: Cell,
}

/// Creates a texture for `Device.create_texture_object`.
///
/// # Errors
///
/// `TypeError` and `ValueError` for invalid arguments, `RuntimeError` for a closed resource; driver errors.
pub fn create_texture(
    device: Device,
    resource: &Bound<'_, PyAny>,
    options: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTextureObject> {
    let py = resource.py();
    let given = resource::accept(resource, "Device.create_texture_object")?;
    let (sampling, options) = options::texture(py, options)?;
    let bound = given.get().bind(py)?;
    let texture = py
        .detach(|| TextureObject::new(device, &bound.resource, &sampling))
        .or_raise(py)?;
    drop_detached(bound.resource);
    Ok(PyTextureObject {
        cell: Closable::new(texture),
        device,
        options: options.unbind(),
        held: GilLock::new(Some(Held {
            resource: given.clone().unbind(),
            pin: bound.pin,
        })),
    })
}

impl PyTextureObject {
    /// The handle, for a launch on `stream`: the texture's buffer is then freed after that launch. `None` for a closed
    /// texture, or one that the program has destroyed.
    pub fn use_on(&self, py: Python<'_>, stream: Option<&Stream>) -> Option<u64> {
        let live = |texture: &TextureObject| (!texture.is_destroyed()).then(|| texture.handle());
        let handle = self.cell.read(py, live)??;
        let buffer = {
            let held = self.held.lock(py);
            held.as_ref()
                .and_then(|held| held.pin.as_ref())
                .map(|pin| pin.0.clone_ref(py))
        };
        if let (Some(buffer), Some(stream)) = (buffer, stream) {
            buffer.get().note_use_on(py, stream, Some(self.device));
        }
        Some(handle)
    }

    /// What a graph retains so that the texture stays usable after it is closed: the driver's object and its buffer.
    pub fn for_graph(&self, py: Python<'_>) -> Option<(TextureObject, Option<Py<PyBuffer>>)> {
        let texture = self.cell.read(py, Clone::clone)?;
        let held = self.held.lock(py);
        let pin = held.as_ref().and_then(|held| held.pin.as_ref());
        Some((texture, pin.map(|pin| pin.0.clone_ref(py))))
    }

    fn close_now(&self, py: Python<'_>) {
        if let Some(texture) = self.cell.close(py) {
            drop_detached(texture);
        }
        let held = self.held.lock(py).take();
        drop(held);
    }
}

impl Drop for PyTextureObject {
    fn drop(&mut self) {
        // The texture first, then the memory.
        if let Some(texture) = self.cell.take() {
            drop_detached(texture);
        }
    }
}

#[pymethods]
impl PyTextureObject {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Err(PyRuntimeError::new_err(
            "TextureObject cannot be instantiated; use Device.create_texture_object()",
        ))
    }

    /// Driver handle (``CUtexObject``), a 64-bit kernel argument; 0 if the texture was closed.
    #[getter]
    fn handle(&self, py: Python<'_>) -> u64 {
        self.cell.read(py, TextureObject::handle).unwrap_or(0)
    }

    /// The device of the texture.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<Py<PyDevice>> {
        device::object(py, self.device)
    }

    /// Whether :meth:`close` was called.
    #[getter]
    pub fn is_closed(&self, py: Python<'_>) -> bool {
        self.cell.is_closed(py)
    }

    /// The resource that the texture was created from; None if the texture was closed.
    #[getter]
    fn resource(&self, py: Python<'_>) -> Option<Py<PyResourceDescriptor>> {
        held_resource(&self.held, py)
    }

    /// The options that the texture was created with.
    #[getter]
    fn options(&self, py: Python<'_>) -> Py<PyAny> {
        self.options.clone_ref(py)
    }

    /// Destroys the texture and releases its array or buffer.
    fn close(&self, py: Python<'_>) {
        self.close_now(py);
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) {
        self.close_now(py);
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("TextureObject(handle={:#x})", self.handle(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.options)?;
        traverse(&self.held, &visit)
    }
}

/// A surface: reads and writes of an array in kernels, by position.
///
/// Surfaces come from :meth:`Device.create_surface_object`. Pass the object, or its :attr:`handle`, to a kernel parameter
/// of type ``cudaSurfaceObject_t``. A surface keeps its array alive. Keep it open until the kernels that use it are done.
/// A ``with`` statement closes it.
///
/// See `cuSurfObjectCreate
/// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__SURFOBJECT.html>`_.
#[doc = example!("cuda.core.texture.SurfaceObject")]
#[pyclass(
    frozen,
    weakref,
    module = "cuda.core.texture._surface",
    name = "SurfaceObject"
)]
pub struct PySurfaceObject {
    cell: Closable<SurfaceObject>,
    device: Device,
    held: Cell,
}

/// Creates a surface for `Device.create_surface_object`.
///
/// # Errors
///
/// `TypeError` and `ValueError` for invalid arguments, `RuntimeError` for a closed array; driver errors.
pub fn create_surface(device: Device, resource: &Bound<'_, PyAny>) -> PyResult<PySurfaceObject> {
    let py = resource.py();
    let given = resource::accept(resource, "Device.create_surface_object")?;
    given.get().check_surface()?;
    let bound = given.get().bind(py)?;
    let surface = py
        .detach(|| SurfaceObject::new(device, &bound.resource))
        .or_raise(py)?;
    drop_detached(bound.resource);
    Ok(PySurfaceObject {
        cell: Closable::new(surface),
        device,
        held: GilLock::new(Some(Held {
            resource: given.clone().unbind(),
            pin: None,
        })),
    })
}

impl PySurfaceObject {
    /// The handle, for a launch; `None` for a closed surface, or one that the program has destroyed.
    pub fn use_on(&self, py: Python<'_>) -> Option<u64> {
        let live = |surface: &SurfaceObject| (!surface.is_destroyed()).then(|| surface.handle());
        self.cell.read(py, live)?
    }

    /// What a graph retains so that the surface stays usable after it is closed.
    pub fn for_graph(&self, py: Python<'_>) -> Option<SurfaceObject> {
        self.cell.read(py, Clone::clone)
    }

    fn close_now(&self, py: Python<'_>) {
        if let Some(surface) = self.cell.close(py) {
            drop_detached(surface);
        }
        let held = self.held.lock(py).take();
        drop(held);
    }
}

impl Drop for PySurfaceObject {
    fn drop(&mut self) {
        if let Some(surface) = self.cell.take() {
            drop_detached(surface);
        }
    }
}

#[pymethods]
impl PySurfaceObject {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Err(PyRuntimeError::new_err(
            "SurfaceObject cannot be instantiated; use Device.create_surface_object()",
        ))
    }

    /// Driver handle (``CUsurfObject``), a 64-bit kernel argument; 0 if the surface was closed.
    #[getter]
    fn handle(&self, py: Python<'_>) -> u64 {
        self.cell.read(py, SurfaceObject::handle).unwrap_or(0)
    }

    /// The device of the surface.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<Py<PyDevice>> {
        device::object(py, self.device)
    }

    /// Whether :meth:`close` was called.
    #[getter]
    pub fn is_closed(&self, py: Python<'_>) -> bool {
        self.cell.is_closed(py)
    }

    /// The resource that the surface was created from; None if the surface was closed.
    #[getter]
    fn resource(&self, py: Python<'_>) -> Option<Py<PyResourceDescriptor>> {
        held_resource(&self.held, py)
    }

    /// Destroys the surface and releases its array.
    fn close(&self, py: Python<'_>) {
        self.close_now(py);
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) {
        self.close_now(py);
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("SurfaceObject(handle={:#x})", self.handle(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        traverse(&self.held, &visit)
    }
}
