//! `ManagedBuffer` and `ManagedMemoryResource`: managed (unified) memory.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use cupyrite::managed::{self, Advice, MemoryRange};
use cupyrite::sys::driver::CUdevice_attribute;
use cupyrite::{
    Device, MemoryLocation, MemoryPool, PoolKind, PoolOptions, Stream, enter_for_default_stream,
};
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

use crate::core::errors::OrRaise;
use crate::core::keyword_only::KeywordOnly;
use crate::core::memory::buffer::{Backing, Pinned, PyBuffer};
use crate::core::memory::location;
use crate::core::memory::resource::base::stream_or_default;
use crate::core::memory::resource::pool::PyMemPool;
use crate::core::numbers::{elements_of, short_repr, size_argument};
use crate::core::options::{OptionClass, Options};
use crate::core::stream;

/// A buffer of managed memory, which migrates between the host and devices.
///
/// Advice applies to the pages of the buffer's range. Managed buffers come from :class:`ManagedMemoryResource`, and
/// from :meth:`from_handle` for existing managed memory.
///
/// See `Unified memory <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__UNIFIED.html>`_.
#[doc = example!("cuda.core.ManagedBuffer")]
#[pyclass(
    frozen,
    dict,
    subclass,
    extends = PyBuffer,
    module = "cuda.core._memory._managed_buffer",
    name = "ManagedBuffer"
)]
pub struct PyManagedBuffer;

/// Argument of the class's `__new__` that carries the value of a new object. Only this module can create one; it
/// supports subclasses.
#[pyclass(frozen, module = "cupyrite._native.core", name = "_PendingBuffer")]
struct PendingBuffer(Mutex<Option<PyBuffer>>);

impl PyManagedBuffer {
    /// Creates the Python object of a managed buffer.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn create(py: Python<'_>, shell: PyBuffer) -> PyResult<Py<PyManagedBuffer>> {
        Py::new(
            py,
            PyClassInitializer::from(shell).add_subclass(PyManagedBuffer),
        )
    }

    fn range<'a>(slf: &'a Bound<'a, Self>) -> PyResult<(Pinned<'a>, MemoryRange)> {
        let pinned = slf.as_super().get().pin(slf.py())?;
        let range = (pinned.address, pinned.size);
        Ok((pinned, range))
    }

    /// Pins the memory and checks that it is managed.
    fn managed<'a>(slf: &'a Bound<'a, Self>, what: &str) -> PyResult<(Pinned<'a>, MemoryRange)> {
        let (pinned, range) = Self::range(slf)?;
        let (_, _, managed) = slf.as_super().get().accessible(slf.py())?;
        if managed {
            Ok((pinned, range))
        } else {
            Err(not_managed(what))
        }
    }

    fn advise(slf: &Bound<'_, Self>, what: &str, advice: Advice) -> PyResult<()> {
        let (_pinned, range) = Self::managed(slf, what)?;
        let place = match advice {
            Advice::PreferredLocation(place) => place,
            Advice::AccessedBy(place, _) => Some(place),
            _ => None,
        };
        slf.py()
            .detach(|| managed::advise(range, advice))
            .map_err(|error| location::explain(error, place.as_slice(), what))
            .or_raise(slf.py())
    }

    /// Runs a stream-ordered operation on the range.
    fn queue(
        slf: &Bound<'_, Self>,
        what: &str,
        given: &Bound<'_, PyAny>,
        body: impl FnOnce(MemoryRange, &Stream) -> cupyrite::Result<()> + Send,
    ) -> PyResult<()> {
        let stream = stream::lend(given, what, "stream", false)?;
        let (_pinned, range) = Self::managed(slf, what)?;
        run(slf.py(), slf.as_super().get(), &stream, |stream| {
            body(range, stream)
        })
    }
}

/// Runs a stream-ordered operation on a buffer's memory and records the stream as a user.
///
/// # Errors
///
/// Driver errors.
pub fn run(
    py: Python<'_>,
    buffer: &PyBuffer,
    stream: &Stream,
    body: impl FnOnce(&Stream) -> cupyrite::Result<()> + Send,
) -> PyResult<()> {
    buffer.note_use(py, stream);
    let device = match (stream.is_default(), buffer.device(py)) {
        (false, _) => None,
        (true, Some(device)) => Some(device),
        (true, None) => Some(crate::core::device::current(py)?),
    };
    py.detach(|| {
        let _entered = device
            .map(|device| enter_for_default_stream(stream, device))
            .transpose()?;
        body(stream)
    })
    .or_raise(py)
}

/// Error for memory that is not managed.
pub fn not_managed(what: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{what} requires managed memory; allocate the buffer from a ManagedMemoryResource"
    ))
}

#[pymethods]
impl PyManagedBuffer {
    #[new]
    #[pyo3(signature = (*args, **_kwargs), text_signature = None)]
    fn new(
        args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyClassInitializer<PyManagedBuffer>> {
        let created = args
            .get_item(0)
            .ok()
            .and_then(|first| first.cast_into::<PendingBuffer>().ok())
            .and_then(|pending| pending.get().0.lock().ok()?.take());
        match created {
            Some(shell) => Ok(PyClassInitializer::from(shell).add_subclass(PyManagedBuffer)),
            None => Err(PyRuntimeError::new_err(
                "ManagedBuffer cannot be instantiated; allocate from a ManagedMemoryResource or wrap existing memory with \
                 ManagedBuffer.from_handle()",
            )),
        }
    }

    /// Wraps existing managed memory; see :meth:`Buffer.from_handle`. Operations that require managed memory check for
    /// it.
    ///
    /// Returns
    /// -------
    /// ManagedBuffer
    ///     An instance of the class on which the method is called.
    #[doc = example!("cuda.core.ManagedBuffer.from_handle")]
    #[classmethod]
    #[pyo3(signature = (ptr, size, mr=None, owner=None, *, stream=None))]
    fn from_handle<'py>(
        cls: &Bound<'py, PyType>,
        ptr: &Bound<'py, PyAny>,
        size: &Bound<'py, PyAny>,
        mr: Option<&Bound<'py, PyAny>>,
        owner: Option<Py<PyAny>>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        let pending = PendingBuffer(Mutex::new(Some(PyBuffer::from_arguments(
            ptr, size, mr, owner, stream,
        )?)));
        // Calls this class's own `__new__`, so that the signature of a subclass does not matter.
        py.get_type::<PyManagedBuffer>()
            .getattr(intern!(py, "__new__"))?
            .call1((cls, Bound::new(py, pending)?))
    }

    /// Read-mostly advice: readers get copies of their own. Settable.
    #[getter]
    fn read_mostly(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let (_pinned, range) = Self::range(slf)?;
        slf.py()
            .detach(|| managed::is_read_mostly(range))
            .or_raise(slf.py())
    }

    #[setter]
    fn set_read_mostly(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let advice = Advice::ReadMostly(value.is_truthy()?);
        Self::advise(slf, "ManagedBuffer.read_mostly", advice)
    }

    /// Preferred location: a :class:`Device`, a :class:`Host`, or None. Settable.
    #[getter]
    fn preferred_location<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let (_pinned, range) = Self::range(slf)?;
        let place = py
            .detach(|| managed::preferred_location(range))
            .or_raise(py)?;
        location::object(py, place)
    }

    #[setter]
    fn set_preferred_location(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let what = "ManagedBuffer.preferred_location";
        let place = location::accept(value, || what.to_owned())?;
        Self::advise(slf, what, Advice::PreferredLocation(place))
    }

    /// Locations with the accessed-by advice: a mutable set of :class:`Device` and :class:`Host`, which can also be
    /// assigned.
    #[doc = example!("cuda.core.ManagedBuffer.accessed_by")]
    #[getter]
    fn accessed_by<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        Self::range(slf)?;
        PyModule::import(py, intern!(py, "cuda.core._memory._managed_buffer"))?
            .getattr(intern!(py, "AccessedBySetProxy"))?
            .call1((slf,))
    }

    #[setter]
    fn set_accessed_by(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let what = "ManagedBuffer.accessed_by";
        // All elements are converted before anything changes.
        let expected = "an iterable of Device and Host objects";
        let wanted = elements_of(value, || what.to_owned(), expected)?
            .map(|place| accessed_by_location(&place?, what))
            .collect::<PyResult<Vec<MemoryLocation>>>()?;
        let (_pinned, range) = Self::managed(slf, what)?;
        slf.py()
            .detach(|| {
                let now = managed::accessed_by(range)?;
                let removed = now
                    .iter()
                    .filter(|place| !wanted.contains(place))
                    .map(|&place| Advice::AccessedBy(place, false));
                let new = wanted
                    .iter()
                    .filter(|place| !now.contains(place))
                    .map(|&place| Advice::AccessedBy(place, true));
                new.chain(removed)
                    .try_for_each(|a| managed::advise(range, a))
            })
            .or_raise(slf.py())
    }

    /// Locations with the accessed-by advice.
    fn _accessed_by<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyList>> {
        let py = slf.py();
        let (_pinned, range) = Self::range(slf)?;
        let places = py.detach(|| managed::accessed_by(range)).or_raise(py)?;
        let objects = places
            .into_iter()
            .map(|place| location::object(py, Some(place)))
            .collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, objects)
    }

    /// Sets or removes the accessed-by advice for a location.
    fn _set_accessed_by(
        slf: &Bound<'_, Self>,
        place: &Bound<'_, PyAny>,
        used: bool,
    ) -> PyResult<()> {
        let what = "ManagedBuffer.accessed_by";
        let place = accessed_by_location(place, what)?;
        Self::advise(slf, what, Advice::AccessedBy(place, used))
    }

    /// Prefetches the memory, stream-ordered.
    ///
    /// Parameters
    /// ----------
    /// location : Device or Host
    ///     The target location.
    /// stream : Stream
    ///     The stream.
    #[doc = example!("cuda.core.ManagedBuffer.prefetch")]
    #[pyo3(
        signature = (location, *, stream=KeywordOnly(None)),
        text_signature = "($self, location, *, stream)"
    )]
    fn prefetch(
        slf: &Bound<'_, Self>,
        location: &Bound<'_, PyAny>,
        stream: KeywordOnly<'_, '_>,
    ) -> PyResult<()> {
        let stream = stream.get("ManagedBuffer.prefetch", "stream")?;
        let what = "ManagedBuffer.prefetch() argument 'location'";
        let place = location::required(location, || what.to_owned())?;
        Self::queue(slf, "ManagedBuffer.prefetch", stream, |range, stream| {
            managed::prefetch_async(&[range], &[place], stream)
                .map_err(|error| location::explain(error, &[place], what))
        })
    }

    /// Discards the contents, stream-ordered: they are undefined until written again, and need not be migrated. The
    /// legacy default stream is not supported (``CUDA_ERROR_INVALID_VALUE``).
    ///
    /// Parameters
    /// ----------
    /// stream : Stream
    ///     The stream.
    #[doc = example!("cuda.core.ManagedBuffer.discard")]
    #[pyo3(
        signature = (*, stream=KeywordOnly(None)),
        text_signature = "($self, *, stream)"
    )]
    fn discard(slf: &Bound<'_, Self>, stream: KeywordOnly<'_, '_>) -> PyResult<()> {
        let stream = stream.get("ManagedBuffer.discard", "stream")?;
        Self::queue(slf, "ManagedBuffer.discard", stream, |range, stream| {
            // SAFETY: the documentation tells the caller that the contents become undefined.
            unsafe { managed::discard_async(&[range], stream) }
        })
    }

    /// Combines :meth:`discard` and :meth:`prefetch`, for memory that is about to be overwritten at the target.
    ///
    /// Parameters
    /// ----------
    /// location : Device or Host
    ///     The target location.
    /// stream : Stream
    ///     The stream.
    #[doc = example!("cuda.core.ManagedBuffer.discard_prefetch")]
    #[pyo3(
        signature = (location, *, stream=KeywordOnly(None)),
        text_signature = "($self, location, *, stream)"
    )]
    fn discard_prefetch(
        slf: &Bound<'_, Self>,
        location: &Bound<'_, PyAny>,
        stream: KeywordOnly<'_, '_>,
    ) -> PyResult<()> {
        let stream = stream.get("ManagedBuffer.discard_prefetch", "stream")?;
        let what = "ManagedBuffer.discard_prefetch() argument 'location'";
        let place = location::required(location, || what.to_owned())?;
        Self::queue(
            slf,
            "ManagedBuffer.discard_prefetch",
            stream,
            // SAFETY: as in `discard`.
            |range, stream| unsafe {
                managed::discard_and_prefetch_async(&[range], &[place], stream)
                    .map_err(|error| location::explain(error, &[place], what))
            },
        )
    }
}

/// Converts a location for `accessed_by`: a device, or the host as a whole.
fn accessed_by_location(given: &Bound<'_, PyAny>, what: &str) -> PyResult<MemoryLocation> {
    let place = location::accept(given, || format!("an element of {what}"))?;
    match place {
        Some(MemoryLocation::Device(_) | MemoryLocation::Host) => {}
        Some(_) => {
            return Err(PyValueError::new_err(format!(
                "{what}: {} is a NUMA node; expected a Device or the host as a whole, Host()",
                given.repr()?
            )));
        }
        None => {
            return Err(PyTypeError::new_err(format!(
                "an element of {what} is None; expected a Device or a Host"
            )));
        }
    }
    // Unreachable: checked above.
    place.ok_or_else(|| PyTypeError::new_err("expected a location"))
}

/// Managed memory from a driver memory pool (CUDA 13); stream-ordered allocation and deallocation.
///
/// Parameters
/// ----------
/// options : ManagedMemoryResourceOptions or dict, optional
///     Options of a new pool. Without options, the resource uses the driver's current pool for managed memory without
///     preferred location.
///
/// See `Stream-ordered memory allocator <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MALLOC__ASYNC.html>`_.
#[doc = example!("cuda.core.ManagedMemoryResource")]
#[pyclass(
    frozen,
    subclass,
    extends = PyMemPool,
    module = "cuda.core._memory._managed_memory_resource",
    name = "ManagedMemoryResource"
)]
pub struct PyManagedMemoryResource;

const CLASS: &str = "ManagedMemoryResource";

static OPTIONS: OptionClass = OptionClass::new(
    "cuda.core._memory._managed_memory_resource",
    "ManagedMemoryResourceOptions",
);

/// Whether the warning about devices without concurrent managed access was issued.
static WARNED: AtomicBool = AtomicBool::new(false);

/// Re-arms the warning about devices without concurrent managed access.
#[pyfunction]
fn reset_concurrent_access_warning() {
    WARNED.store(false, Ordering::Relaxed);
}

fn warn_about_access(py: Python<'_>) -> PyResult<()> {
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
    for device in Device::all().or_raise(py)? {
        if device.attribute(attribute).or_raise(py)? == 0 && !WARNED.swap(true, Ordering::Relaxed) {
            return PyErr::warn(
                py,
                &py.get_type::<PyUserWarning>(),
                c"a device of this system cannot access managed memory concurrently with the host: synchronize before the host \
                  accesses the memory",
                1,
            );
        }
    }
    Ok(())
}

/// NUMA node of the host nearest to the current device.
///
/// # Errors
///
/// `RuntimeError` if the driver reports none.
pub fn nearest_node(py: Python<'_>, option: &str) -> PyResult<i32> {
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID;
    let device = crate::core::device::current(py)?;
    match device.attribute(attribute).or_raise(py)? {
        node if node >= 0 => Ok(node),
        _ => Err(PyRuntimeError::new_err(format!(
            "{option} is None, and the driver does not report the NUMA node nearest to device {}; specify a node",
            device.ordinal()
        ))),
    }
}

/// The preferred location given in the options.
fn preferred(py: Python<'_>, options: &Options<'_>) -> PyResult<Option<MemoryLocation>> {
    let name = "ManagedMemoryResourceOptions.preferred_location";
    let number: Option<i32> = match options.value(intern!(py, "preferred_location"))? {
        None => None,
        Some(number) => Some(number.extract().map_err(|_| {
            PyOverflowError::new_err(format!(
                "{name} is {}; expected the number of a device or NUMA node, -1 or None",
                short_repr(&number)
            ))
        })?),
    };
    let kind: Option<String> = match options.value(intern!(py, "preferred_location_type"))? {
        None => None,
        Some(kind) => Some(match kind.extract() {
            Ok(kind) => kind,
            Err(_) => kind.repr()?.to_string(),
        }),
    };
    let invalid = |wanted: &str| {
        let displayed = number.map_or("None".to_owned(), |n| n.to_string());
        Err(PyValueError::new_err(format!(
            "{name} is {displayed}; expected {wanted}"
        )))
    };
    let device = |number: i32| {
        Ok(Some(MemoryLocation::Device(
            usize::try_from(number).unwrap_or_default(),
        )))
    };
    match (kind.as_deref(), number) {
        (None, None) => Ok(None),
        (None, Some(-1)) => Ok(Some(MemoryLocation::Host)),
        (None, Some(n)) if n >= 0 => device(n),
        (None, Some(_)) => invalid("the number of a device, -1 for the host, or None"),
        (Some("device"), Some(n)) if n >= 0 => device(n),
        (Some("device"), _) => {
            invalid("the number of a device where preferred_location_type is 'device'")
        }
        (Some("host"), None) => Ok(Some(MemoryLocation::Host)),
        (Some("host"), Some(_)) => invalid("None where preferred_location_type is 'host'"),
        (Some("host_numa"), Some(n)) if n >= 0 => Ok(Some(MemoryLocation::HostNuma(n))),
        (Some("host_numa"), None) => Ok(Some(MemoryLocation::HostNuma(nearest_node(py, name)?))),
        (Some("host_numa"), _) => invalid(
            "the number of a NUMA node, or None, where preferred_location_type is 'host_numa'",
        ),
        (Some(other), _) => Err(PyValueError::new_err(format!(
            "{name}_type is {other:?}; expected 'device', 'host', 'host_numa' or None"
        ))),
    }
}

#[pymethods]
impl PyManagedMemoryResource {
    // `__init__` takes the parameters, so that subclasses can have others.
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(options=None)")]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PyManagedMemoryResource> {
        PyMemPool::uninitialized().add_subclass(PyManagedMemoryResource)
    }

    #[pyo3(signature = (options=None))]
    fn __init__(slf: &Bound<'_, Self>, options: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let py = slf.py();
        let created = match options.filter(|options| !options.is_none()) {
            None => py.detach(|| MemoryPool::current_for_kind(PoolKind::Managed(None))),
            given => {
                let options = Options::accept(CLASS, &OPTIONS, given)?;
                let place = preferred(py, &options)?;
                let what = "ManagedMemoryResourceOptions.preferred_location";
                py.detach(|| {
                    MemoryPool::with_kind(PoolKind::Managed(place), &PoolOptions::default())
                })
                .map_err(|error| location::explain(error, place.as_slice(), what))
            }
        };
        slf.as_super().get().initialize(py, created, CLASS, false)?;
        warn_about_access(py)
    }

    /// Allocates managed memory, stream-ordered.
    ///
    /// Parameters
    /// ----------
    /// size : int
    ///     Size in bytes; 0 yields a buffer with address 0.
    /// stream : Stream
    ///     Stream of the allocation and, by default, of the deallocation.
    ///
    /// Returns
    /// -------
    /// ManagedBuffer
    #[doc = example!("cuda.core.ManagedMemoryResource.allocate")]
    #[pyo3(signature = (size, stream=None), text_signature = "($self, size, *, stream)")]
    fn allocate<'py>(
        slf: &Bound<'py, Self>,
        size: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Py<PyManagedBuffer>> {
        let py = slf.py();
        let size = size_argument(size, "allocate")?;
        let stream = stream_or_default(py, stream, "allocate")?;
        let memory = slf.as_super().get().allocate_memory(py, size, stream)?;
        let address = memory.address();
        let resource = Some(slf.clone().into_any().unbind());
        let shell = PyBuffer::new_value(Backing::Pool(memory), address, size, resource, None);
        PyManagedBuffer::create(py, shell)
    }

    /// Device number of the preferred location; -1 if it is not a device.
    #[getter]
    fn device_id(slf: &Bound<'_, Self>) -> PyResult<i64> {
        match slf.as_super().get().kind(slf.py())? {
            PoolKind::Managed(Some(MemoryLocation::Device(ordinal))) => Ok(ordinal as i64),
            _ => Ok(-1),
        }
    }

    /// True: the memory is device-accessible.
    #[getter]
    fn is_device_accessible(&self) -> bool {
        true
    }

    /// True: the memory is host-accessible.
    #[getter]
    fn is_host_accessible(&self) -> bool {
        true
    }

    /// True: the memory is managed.
    #[getter]
    fn is_managed(&self) -> bool {
        true
    }

    /// Preferred location: None, or a :class:`~cuda.core.typing.ManagedMemoryLocationType` and the number of the device
    /// or NUMA node (None for the host as a whole).
    #[doc = example!("cuda.core.ManagedMemoryResource.preferred_location")]
    #[getter]
    fn preferred_location<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let py = slf.py();
        let (kind, id) = match slf.as_super().get().kind(py)? {
            PoolKind::Managed(Some(MemoryLocation::Device(ordinal))) => {
                ("DEVICE", Some(ordinal as i64))
            }
            PoolKind::Managed(Some(MemoryLocation::HostNuma(node))) => {
                ("HOST_NUMA", Some(i64::from(node)))
            }
            PoolKind::Managed(Some(_)) => ("HOST", None),
            _ => return Ok(None),
        };
        let kind = PyModule::import(py, intern!(py, "cuda.core.typing"))?
            .getattr(intern!(py, "ManagedMemoryLocationType"))?
            .getattr(kind)?;
        (kind, id).into_pyobject(py).map(Some)
    }
}

/// Adds the classes.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyManagedBuffer>()?;
    core.add_class::<PyManagedMemoryResource>()?;
    core.add_function(wrap_pyfunction!(reset_concurrent_access_warning, core)?)
}
