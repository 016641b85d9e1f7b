//! `VirtualMemoryResource`: growable memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cupyrite::sys::driver::CUdevice_attribute;
use cupyrite::{
    Device, DeviceBuffer, Granularity, MemoryAccess, MemoryLocation, MemoryResource,
    ShareableHandleKind, VirtualAllocationKind, VirtualMemoryOptions, VirtualMemoryResource,
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
use crate::core::numbers::{
    address_argument, bytes_argument, elements_of, short_repr, size_argument,
};
use crate::core::options::{OptionClass, Options};
use crate::core::stream;

/// Memory with separately managed addresses and physical allocations, so that it can grow.
///
/// Sizes are rounded up to the mapping granularity, 2 MiB on most devices; ``Buffer.size`` is the actual size.
/// Allocation is synchronous; deallocation waits for the streams that use the memory.
///
/// Parameters
/// ----------
/// device_id : int or Device
///     The device.
/// config : VirtualMemoryResourceOptions or dict, optional
///     Options of the memory.
///
/// See `Virtual memory management <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__VA.html>`_.
#[doc = example!("cuda.core.VirtualMemoryResource")]
#[pyclass(
    frozen,
    dict,
    subclass,
    extends = PyMemoryResource,
    module = "cuda.core._memory._virtual_memory_resource",
    name = "VirtualMemoryResource"
)]
pub struct PyVirtualMemoryResource {
    state: Mutex<Option<ResourceState>>,
}

struct ResourceState {
    memory: Arc<VirtualMemoryResource>,
    device: Device,
    config: Py<PyAny>,
}

const CLASS: &str = "VirtualMemoryResource";
const MODULE: &str = "cuda.core._memory._virtual_memory_resource";
const OPTIONS: &str = "VirtualMemoryResourceOptions";

static OPTION_CLASS: OptionClass = OptionClass::new(MODULE, OPTIONS);

/// Reads an option with a fixed set of values.
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
                short_repr(&given),
                names.join(", ")
            )))
        }
    }
}

/// Reads an address or alignment; 0 if None.
fn number<'py>(py: Python<'py>, options: &Options<'py>, field: &str) -> PyResult<u64> {
    let field = PyString::intern(py, field);
    match options.value(&field)? {
        None => Ok(0),
        Some(given) => given.extract().map_err(|error| {
            options.type_error(&field, &given, "an int from 0 to 2**64 - 1, or None", error)
        }),
    }
}

#[derive(Clone, Copy)]
enum LocationType {
    Device,
    Host,
    HostNuma,
    HostNumaCurrent,
}

/// Converts the options.
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
            ("device", LocationType::Device),
            ("host", LocationType::Host),
            ("host_numa", LocationType::HostNuma),
            ("host_numa_current", LocationType::HostNumaCurrent),
        ],
    )?;
    let location = match place.unwrap_or(LocationType::Device) {
        LocationType::Device => MemoryLocation::Device(device.ordinal()),
        LocationType::Host => MemoryLocation::Host,
        LocationType::HostNuma => MemoryLocation::HostNuma(nearest_node(
            py,
            "the node for VirtualMemoryResourceOptions.location_type='host_numa'",
        )?),
        LocationType::HostNumaCurrent => MemoryLocation::HostNumaCurrent,
    };
    let mut created = VirtualMemoryOptions::at(location);
    let kinds = [
        ("pinned", VirtualAllocationKind::Pinned),
        ("managed", VirtualAllocationKind::Managed),
    ];
    created.allocation = choice(py, &options, "allocation_type", &kinds)?.unwrap_or_default();
    let handles = [
        ("posix_fd", ShareableHandleKind::PosixFd),
        ("win32_kmt", ShareableHandleKind::Win32Kmt),
        ("fabric", ShareableHandleKind::Fabric),
    ];
    created.share =
        choice(py, &options, "handle_type", &handles)?.unwrap_or(ShareableHandleKind::None);
    let units = [
        ("minimum", Granularity::Minimum),
        ("recommended", Granularity::Recommended),
    ];
    created.granularity = choice(py, &options, "granularity", &units)?.unwrap_or_default();
    created.gpu_direct_rdma = options.flag(intern!(py, "gpu_direct_rdma"), false)?;
    created.address_hint = number(py, &options, "addr_hint")?;
    created.alignment = usize::try_from(number(py, &options, "addr_align")?).unwrap_or(usize::MAX);
    if created.alignment != 0 && !created.alignment.is_power_of_two() {
        return Err(PyValueError::new_err(format!(
            "{OPTIONS}.addr_align is {}; expected a power of two, or None",
            created.alignment
        )));
    }
    // Access rights apply to the host as a whole.
    let own = match location {
        MemoryLocation::HostNumaCurrent => MemoryLocation::Host,
        other => other,
    };
    created.access = Vec::new();
    if let Some(access) = choice(py, &options, "self_access", &rights)? {
        created.access.push((own, access));
    }
    let peer_access = choice(py, &options, "peer_access", &rights)?;
    if let Some(peers) = options.value(intern!(py, "peers"))? {
        let what = || format!("{OPTIONS}.peers");
        let peers = elements_of(
            &peers,
            what,
            "a sequence of Device objects or device numbers",
        )?;
        for (index, peer) in peers.enumerate() {
            let peer = device::accept(&peer?, OPTIONS, &format!("peers[{index}]"))?.ordinal();
            let place = MemoryLocation::Device(peer);
            if place != own
                && let Some(access) = peer_access
            {
                created.access.push((place, access));
            }
        }
    }
    let rdma = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED;
    if created.gpu_direct_rdma && device.attribute(rdma).or_raise(py)? == 0 {
        return Err(PyRuntimeError::new_err(format!(
            "{OPTIONS}.gpu_direct_rdma is true, but device {} does not support GPUDirect RDMA",
            device.ordinal()
        )));
    }
    Ok(created)
}

impl PyVirtualMemoryResource {
    fn lock(&self) -> MutexGuard<'_, Option<ResourceState>> {
        // Held for a few instructions that neither panic nor call Python.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, read: impl FnOnce(&ResourceState) -> T) -> PyResult<T> {
        match &*self.lock() {
            Some(state) => Ok(read(state)),
            None => Err(PyRuntimeError::new_err(
                "this memory resource was not initialized: its class did not call __init__()",
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
    // `__init__` takes the parameters, so that subclasses can have others.
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
        let device = device::accept_or_current(device_id, CLASS, "device_id")?;
        let config = config_object(py, config)?;
        let memory = Arc::new(VirtualMemoryResource::new(read(py, device, &config)?));
        let previous = slf.get().lock().replace(ResourceState {
            memory,
            device,
            config: config.unbind(),
        });
        drop(previous);
        Ok(())
    }

    /// Allocates memory.
    ///
    /// Parameters
    /// ----------
    /// size : int
    ///     Size in bytes, rounded up; 0 yields a buffer with address 0.
    /// stream : Stream, optional
    ///     Stream that deallocation waits for. Default: the default stream. The allocation is synchronous.
    ///
    /// Returns
    /// -------
    /// Buffer
    #[doc = example!("cuda.core.VirtualMemoryResource.allocate")]
    #[pyo3(signature = (size, *, stream=None))]
    fn allocate(
        slf: &Bound<'_, Self>,
        size: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyBuffer>> {
        let py = slf.py();
        let size = size_argument(size, "allocate")?;
        let stream = stream::accept_or_default(py, stream, "allocate")?;
        let resource = slf.get().memory()?;
        let memory = py
            .detach(|| DeviceBuffer::from_resource(resource, size, &stream))
            .or_raise(py)?;
        let (address, size) = (memory.address(), memory.size());
        let resource = Some(slf.clone().into_any().unbind());
        PyBuffer::create(py, Backing::Pool(memory), address, size, resource, None)
    }

    /// Frees memory by address after the stream's work has completed. Buffers free their memory themselves.
    ///
    /// Parameters
    /// ----------
    /// ptr : int or cuda.bindings.driver.CUdeviceptr
    ///     Address.
    /// size : int
    ///     Size in bytes.
    /// stream : Stream, optional
    ///     Stream to wait for. Default: the default stream.
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
        let stream = stream::accept_or_default(ptr.py(), stream, "deallocate")?;
        let memory = self.memory()?;
        // SAFETY: the caller guarantees that the memory is no longer used; the resource rejects addresses that it did
        // not allocate.
        py.detach(|| unsafe { memory.deallocate(address, size, &stream) })
            .or_raise(py)
    }

    /// Grows a buffer of this resource and preserves its contents. Buffers cannot shrink.
    ///
    /// Parameters
    /// ----------
    /// buf : Buffer
    ///     The buffer; must have no slices and no exported arrays.
    /// new_size : int
    ///     New size in bytes, rounded up. A smaller size has no effect.
    /// config : VirtualMemoryResourceOptions or dict, optional
    ///     Options of the added memory and of later allocations.
    ///
    /// Returns
    /// -------
    /// Buffer
    ///     `buf` itself if the following addresses are free. Otherwise a new buffer with the same memory at other
    ///     addresses; `buf` is closed after its uses have completed.
    #[doc = example!("cuda.core.VirtualMemoryResource.modify_allocation")]
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
                let config = config_object(py, Some(given))?;
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
            let previous = slf
                .get()
                .lock()
                .as_mut()
                .map(|state| std::mem::replace(&mut state.config, config.unbind()));
            drop(previous);
        }
        match moved {
            None => Ok(buffer.clone()),
            Some(shell) => Bound::new(py, shell),
        }
    }

    /// The device, a :class:`Device`; None for host memory.
    #[getter]
    fn device<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let place = slf.get().memory()?.options().location;
        let place = Some(place).filter(|place| matches!(place, MemoryLocation::Device(_)));
        crate::core::memory::location::object(slf.py(), place)
    }

    /// Options of the memory.
    #[getter]
    fn config(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.with(|state| state.config.clone_ref(py))
    }

    /// Device number; -1 for host memory.
    #[getter]
    fn device_id(&self) -> PyResult<i64> {
        Ok(match self.memory()?.options().location {
            MemoryLocation::Device(ordinal) => ordinal as i64,
            _ => -1,
        })
    }

    /// Whether kernels can access the memory.
    #[getter]
    fn is_device_accessible(&self) -> PyResult<bool> {
        Ok(self.memory()?.is_device_accessible())
    }

    /// Whether the host can access the memory.
    #[getter]
    fn is_host_accessible(&self) -> PyResult<bool> {
        Ok(self.memory()?.is_host_accessible())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let device = Self::device(slf)?.repr()?;
        Ok(format!("<VirtualMemoryResource device={device}>"))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A held lock belongs to a thread that the collector has suspended, so the object is alive.
        if let Ok(state) = self.state.try_lock()
            && let Some(state) = &*state
        {
            visit.call(&state.config)?;
        }
        Ok(())
    }
}

/// Converts the options argument: an instance, a dict of fields, or None for the defaults.
fn config_object<'py>(
    py: Python<'py>,
    given: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match given.filter(|given| !given.is_none()) {
        Some(given) => OPTION_CLASS.convert(CLASS, "config", given),
        None => OPTION_CLASS.get(py)?.call0(),
    }
}

/// Adds the class.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyVirtualMemoryResource>()
}
