//! `VirtualMemoryResource`: memory that can grow.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cupyrite::sys::driver::CUdevice_attribute;
use cupyrite::{
    Device, DeviceBuffer, Granularity, MemoryAccess, MemoryLocation, MemoryResource,
    ShareableHandleKind, Stream, VirtualAllocationKind, VirtualMemoryOptions,
    VirtualMemoryResource,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::core::device;
use crate::core::errors::OrRaise;
use crate::core::memory::buffer::{Backing, PyBuffer};
use crate::core::memory::managed::nearest_node;
use crate::core::memory::resource::PyMemoryResource;
use crate::core::numbers::{address_argument, bytes_argument, shown, size_argument};
use crate::core::options::{OptionClass, Options};
use crate::core::stream;

/// Memory whose addresses and physical pieces are managed apart, so that an allocation can grow.
///
/// Sizes are rounded up to what the driver can map, 2 MiB on most devices; ``Buffer.size`` says what there is. Allocating is
/// immediate; freeing waits for the streams that use the memory.
///
/// Parameters
/// ----------
/// device_id : int or Device
///     The device.
/// config : VirtualMemoryResourceOptions or dict, optional
///     How memory is created and mapped.
///
/// See `Virtual memory management <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__VA.html>`_.
#[pyclass(
    frozen,
    dict,
    subclass,
    extends = PyMemoryResource,
    module = "cuda.core._memory._virtual_memory_resource",
    name = "VirtualMemoryResource"
)]
pub struct PyVirtualMemoryResource {
    state: Mutex<Option<State>>,
}

struct State {
    memory: Arc<VirtualMemoryResource>,
    device: Device,
    config: Py<PyAny>,
}

const CLASS: &str = "VirtualMemoryResource";
const MODULE: &str = "cuda.core._memory._virtual_memory_resource";
const OPTIONS: &str = "VirtualMemoryResourceOptions";

static OPTION_CLASS: OptionClass = OptionClass::new(MODULE, OPTIONS);

/// One of the words that an option can be.
fn choice<'py, T: Copy>(
    py: Python<'py>,
    options: &Options<'py>,
    field: &str,
    choices: &[(&str, T)],
) -> PyResult<Option<T>> {
    let Some(given) = options.value(&PyString::intern(py, field))? else {
        return Ok(None);
    };
    let known = given
        .extract::<String>()
        .ok()
        .and_then(|word| choices.iter().find(|(name, _)| *name == word));
    match known {
        Some(&(_, value)) => Ok(Some(value)),
        None => {
            let names: Vec<String> = choices
                .iter()
                .map(|(name, _)| format!("{name:?}"))
                .collect();
            Err(PyValueError::new_err(format!(
                "{OPTIONS}.{field} is {}; expected one of {}",
                shown(&given),
                names.join(", ")
            )))
        }
    }
}

/// An address or an alignment; 0 where there is none.
fn number<'py>(py: Python<'py>, options: &Options<'py>, field: &str) -> PyResult<u64> {
    let field = PyString::intern(py, field);
    match options.value(&field)? {
        None => Ok(0),
        Some(given) => given.extract().map_err(|error| {
            options.wrong(&field, &given, "an int from 0 to 2**64 - 1, or None", error)
        }),
    }
}

#[derive(Clone, Copy)]
enum Where {
    Device,
    Host,
    HostNuma,
    HostNumaCurrent,
}

/// The crate's options for those of Python.
fn read<'py>(
    py: Python<'py>,
    device: Device,
    given: &Bound<'py, PyAny>,
) -> PyResult<VirtualMemoryOptions> {
    let options = Options::accept(CLASS, &OPTION_CLASS, Some(given))?;
    let rights = [("rw", MemoryAccess::ReadWrite), ("r", MemoryAccess::Read)];
    let place = choice(
        py,
        &options,
        "location_type",
        &[
            ("device", Where::Device),
            ("host", Where::Host),
            ("host_numa", Where::HostNuma),
            ("host_numa_current", Where::HostNumaCurrent),
        ],
    )?;
    let location = match place.unwrap_or(Where::Device) {
        Where::Device => MemoryLocation::Device(device.ordinal()),
        Where::Host => MemoryLocation::Host,
        Where::HostNuma => MemoryLocation::HostNuma(nearest_node(
            py,
            "the node of VirtualMemoryResourceOptions.location_type='host_numa'",
        )?),
        Where::HostNumaCurrent => MemoryLocation::HostNumaCurrent,
    };
    let mut made = VirtualMemoryOptions::at(location);
    let kinds = [
        ("pinned", VirtualAllocationKind::Pinned),
        ("managed", VirtualAllocationKind::Managed),
    ];
    made.allocation = choice(py, &options, "allocation_type", &kinds)?.unwrap_or_default();
    let handles = [
        ("posix_fd", ShareableHandleKind::PosixFd),
        ("win32_kmt", ShareableHandleKind::Win32Kmt),
        ("fabric", ShareableHandleKind::Fabric),
    ];
    made.share =
        choice(py, &options, "handle_type", &handles)?.unwrap_or(ShareableHandleKind::None);
    let units = [
        ("minimum", Granularity::Minimum),
        ("recommended", Granularity::Recommended),
    ];
    made.granularity = choice(py, &options, "granularity", &units)?.unwrap_or_default();
    made.gpu_direct_rdma = options.flag(intern!(py, "gpu_direct_rdma"), false)?;
    made.address_hint = number(py, &options, "addr_hint")?;
    made.alignment = usize::try_from(number(py, &options, "addr_align")?).unwrap_or(usize::MAX);
    if made.alignment != 0 && !made.alignment.is_power_of_two() {
        return Err(PyValueError::new_err(format!(
            "{OPTIONS}.addr_align is {}; expected a power of two, or None",
            made.alignment
        )));
    }
    // Rights on the host are those on all of it.
    let own = match location {
        MemoryLocation::HostNumaCurrent => MemoryLocation::Host,
        other => other,
    };
    made.access = Vec::new();
    if let Some(access) = choice(py, &options, "self_access", &rights)? {
        made.access.push((own, access));
    }
    let peer_access = choice(py, &options, "peer_access", &rights)?;
    if let Some(peers) = options.value(intern!(py, "peers"))? {
        for peer in peers.try_iter()? {
            let peer = device::accept(&peer?, OPTIONS, "peers")?.ordinal();
            let place = MemoryLocation::Device(peer);
            if place != own
                && let Some(access) = peer_access
            {
                made.access.push((place, access));
            }
        }
    }
    let rdma = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED;
    if made.gpu_direct_rdma && device.attribute(rdma).or_raise(py)? == 0 {
        return Err(PyRuntimeError::new_err(format!(
            "{OPTIONS}.gpu_direct_rdma is true, and device {} does not support GPUDirect RDMA",
            device.ordinal()
        )));
    }
    Ok(made)
}

impl PyVirtualMemoryResource {
    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        // Held for a few instructions that neither panic nor call Python.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, read: impl FnOnce(&State) -> T) -> PyResult<T> {
        match &*self.lock() {
            Some(state) => Ok(read(state)),
            None => Err(PyRuntimeError::new_err(
                "this memory resource was not made: its class's __init__() was not called",
            )),
        }
    }

    fn memory(&self) -> PyResult<Arc<VirtualMemoryResource>> {
        self.with(|state| state.memory.clone())
    }
}

impl Drop for PyVirtualMemoryResource {
    fn drop(&mut self) {
        let state = self
            .state
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(state) = state {
            drop(state.config);
            crate::core::closable::drop_detached(state.memory);
        }
    }
}

#[pymethods]
impl PyVirtualMemoryResource {
    // `__init__` has the parameters, so that derived classes may have others.
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(device_id, config=None)")]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PyVirtualMemoryResource> {
        PyClassInitializer::from(PyMemoryResource).add_subclass(PyVirtualMemoryResource {
            state: Mutex::new(None),
        })
    }

    #[pyo3(signature = (device_id, config=None))]
    fn __init__(
        slf: &Bound<'_, Self>,
        device_id: &Bound<'_, PyAny>,
        config: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let device = if device_id.is_none() {
            device::current(py)?
        } else {
            device::accept(device_id, CLASS, "device_id")?
        };
        let config = made_config(py, config)?;
        let memory = Arc::new(VirtualMemoryResource::new(read(py, device, &config)?));
        let former = slf.get().lock().replace(State {
            memory,
            device,
            config: config.unbind(),
        });
        drop(former);
        Ok(())
    }

    /// Allocates memory.
    ///
    /// Parameters
    /// ----------
    /// size : int
    ///     Bytes, which are rounded up; 0 gives a buffer with the address 0.
    /// stream : Stream, optional
    ///     What freeing waits for; the default stream by default. The memory is there at once.
    ///
    /// Returns
    /// -------
    /// Buffer
    #[pyo3(signature = (size, *, stream=None))]
    fn allocate(
        slf: &Bound<'_, Self>,
        size: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyBuffer>> {
        let py = slf.py();
        let size = size_argument(size, "allocate")?;
        let stream = match stream {
            Some(given) => stream::accept(given, "allocate", "stream", false)?,
            None => Stream::default_stream(),
        };
        let resource = slf.get().memory()?;
        let memory = py
            .detach(|| DeviceBuffer::from_resource(resource, size, &stream))
            .or_raise(py)?;
        let (address, size) = (memory.address(), memory.size());
        let resource = Some(slf.clone().into_any().unbind());
        PyBuffer::make(py, Backing::Pool(memory), address, size, resource, None)
    }

    /// Frees memory by its address, once the stream has done its work. A buffer frees its memory itself.
    ///
    /// Parameters
    /// ----------
    /// ptr : int or cuda.bindings.driver.CUdeviceptr
    ///     The address.
    /// size : int
    ///     Bytes.
    /// stream : Stream, optional
    ///     What to wait for; the default stream by default.
    #[pyo3(signature = (ptr, size, *, stream=None))]
    fn deallocate(
        &self,
        py: Python<'_>,
        ptr: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let address = address_argument(ptr, "deallocate")?;
        let size = size_argument(size, "deallocate")?;
        let stream = match stream {
            Some(given) => stream::accept(given, "deallocate", "stream", false)?,
            None => Stream::default_stream(),
        };
        let memory = self.memory()?;
        // SAFETY: that nothing uses the memory any more is what this method asks of its caller; the resource refuses
        // addresses that it did not give out.
        py.detach(|| unsafe { memory.deallocate(address, size, &stream) })
            .or_raise(py)
    }

    /// Lets a buffer of this resource grow. Its contents stay; there is no shrinking.
    ///
    /// Parameters
    /// ----------
    /// buf : Buffer
    ///     The buffer; no part of it and no array made from it may be alive.
    /// new_size : int
    ///     Bytes that it is to have, which are rounded up. Fewer than it has change nothing.
    /// config : VirtualMemoryResourceOptions or dict, optional
    ///     How the memory that is added, and all that is allocated from now on, is created and mapped.
    ///
    /// Returns
    /// -------
    /// Buffer
    ///     `buf` itself, where the addresses that follow it are free. Otherwise a new buffer with the same memory at other
    ///     addresses: `buf` is closed then, and what it was used for was waited for.
    #[pyo3(signature = (buf, new_size, config=None))]
    fn modify_allocation<'py>(
        slf: &Bound<'py, Self>,
        buf: &Bound<'py, PyAny>,
        new_size: &Bound<'py, PyAny>,
        config: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBuffer>> {
        let py = slf.py();
        let Ok(buffer) = buf.cast::<PyBuffer>() else {
            return Err(PyTypeError::new_err(format!(
                "modify_allocation() argument 'buf' is of type {}; expected a Buffer",
                buf.get_type().name()?
            )));
        };
        let size = bytes_argument(new_size, "modify_allocation", "new_size")?;
        let resource = slf.get().memory()?;
        let device = slf.get().with(|state| state.device)?;
        let config = match config.filter(|config| !config.is_none()) {
            Some(given) => {
                let config = made_config(py, Some(given))?;
                Some((read(py, device, &config)?, config))
            }
            None => None,
        };
        let options = config.as_ref().map(|(options, _)| options);
        let moved = buffer.get().resize(py, |memory| {
            resource.grow(memory, size, options).map(|stayed| !stayed)
        })?;
        if let Some((options, config)) = config {
            resource.set_options(options);
            let former = slf
                .get()
                .lock()
                .as_mut()
                .map(|state| std::mem::replace(&mut state.config, config.unbind()));
            drop(former);
        }
        match moved {
            None => Ok(buffer.clone()),
            Some(shell) => Bound::new(py, shell),
        }
    }

    /// The device, a :class:`Device`; None for memory of the host.
    #[getter]
    fn device<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let place = slf.get().memory()?.options().location;
        let place = Some(place).filter(|place| matches!(place, MemoryLocation::Device(_)));
        crate::core::memory::location::object(slf.py(), place)
    }

    /// How memory is created and mapped.
    #[getter]
    fn config(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.with(|state| state.config.clone_ref(py))
    }

    /// The number of the device; -1 for memory of the host.
    #[getter]
    fn device_id(&self) -> PyResult<i64> {
        Ok(match self.memory()?.options().location {
            MemoryLocation::Device(ordinal) => ordinal as i64,
            _ => -1,
        })
    }

    /// Whether kernels can use the memory.
    #[getter]
    fn is_device_accessible(&self) -> PyResult<bool> {
        Ok(self.memory()?.is_device_accessible())
    }

    /// Whether the host can use the memory.
    #[getter]
    fn is_host_accessible(&self) -> PyResult<bool> {
        Ok(self.memory()?.is_host_accessible())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let device = Self::device(slf)?.repr()?;
        Ok(format!("<VirtualMemoryResource device={device}>"))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A lock that is held now is held by a thread that the collector has stopped: its object is alive.
        if let Ok(state) = self.state.try_lock()
            && let Some(state) = &*state
        {
            visit.call(&state.config)?;
        }
        Ok(())
    }
}

/// The options object that is given, made of a dictionary, or the default one.
fn made_config<'py>(
    py: Python<'py>,
    given: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let class =
        PyModule::import(py, MODULE)?.getattr(intern!(py, "VirtualMemoryResourceOptions"))?;
    let Some(given) = given.filter(|given| !given.is_none()) else {
        return class.call0();
    };
    if let Ok(fields) = given.cast::<PyDict>() {
        return class.call((), Some(fields));
    }
    if given.is_instance(&class)? {
        return Ok(given.clone());
    }
    Err(PyTypeError::new_err(format!(
        "{CLASS}: argument 'config' is of type {}; expected {OPTIONS}, a dict of its fields, or None",
        given.get_type().name()?
    )))
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyVirtualMemoryResource>()
}
