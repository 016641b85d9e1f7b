//! `ManagedBuffer` and `ManagedMemoryResource`: memory that moves to whoever uses it.

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
use crate::core::memory::buffer::{Backing, Pinned, PyBuffer};
use crate::core::memory::location;
use crate::core::memory::resource::{PyMemPool, stream_or_default};
use crate::core::numbers::{shown, size_argument};
use crate::core::options::{OptionClass, Options};
use crate::core::stream;

/// A buffer of managed memory: it moves to whoever uses it, the host or a device.
///
/// What is said about a range holds for its pages. Buffers of this kind come from :class:`ManagedMemoryResource`, and from
/// :meth:`from_handle` for managed memory that exists.
///
/// See `Unified memory <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__UNIFIED.html>`_.
#[pyclass(
    frozen,
    dict,
    subclass,
    extends = PyBuffer,
    module = "cuda.core._memory._managed_buffer",
    name = "ManagedBuffer"
)]
pub struct PyManagedBuffer;

/// What an object that is being made will hold: the only argument that the class's `__new__` takes, so that only this module
/// makes objects, and derived classes get theirs.
#[pyclass(frozen, module = "cupyrite._native.core", name = "_Making")]
struct Making(Mutex<Option<PyBuffer>>);

impl PyManagedBuffer {
    /// The object of a buffer.
    ///
    /// # Errors
    ///
    /// Memory.
    pub fn make(py: Python<'_>, shell: PyBuffer) -> PyResult<Py<PyManagedBuffer>> {
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

    /// The range of memory that is managed, as it has to be.
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

    /// Runs something on the range in the order of a stream.
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

/// Runs something on a buffer's memory in the order of a stream, which is noted.
///
/// # Errors
///
/// What the driver says.
pub fn run(
    py: Python<'_>,
    buffer: &PyBuffer,
    stream: &Stream,
    body: impl FnOnce(&Stream) -> cupyrite::Result<()> + Send,
) -> PyResult<()> {
    buffer.used_by(py, stream);
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

/// What is raised for memory that is not managed.
pub fn not_managed(what: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{what} is for managed memory, and this buffer's is not: allocate it from a ManagedMemoryResource"
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
        let made = args
            .get_item(0)
            .ok()
            .and_then(|first| first.cast_into::<Making>().ok())
            .and_then(|making| making.get().0.lock().ok()?.take());
        match made {
            Some(shell) => Ok(PyClassInitializer::from(shell).add_subclass(PyManagedBuffer)),
            None => Err(PyRuntimeError::new_err(
                "a ManagedBuffer is not made by its class: allocate one from a ManagedMemoryResource, or take existing memory \
                 with ManagedBuffer.from_handle()",
            )),
        }
    }

    /// A buffer of managed memory that exists; as :meth:`Buffer.from_handle`. Whether it is managed is looked at when it
    /// matters.
    ///
    /// Returns
    /// -------
    /// ManagedBuffer
    ///     An object of the class that it is called on.
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
        let making = Making(Mutex::new(Some(PyBuffer::of_handle(
            ptr, size, mr, owner, stream,
        )?)));
        // This class's own, so that what a derived class wants to be called with does not matter.
        py.get_type::<PyManagedBuffer>()
            .getattr(intern!(py, "__new__"))?
            .call1((cls, Bound::new(py, making)?))
    }

    /// Whether the memory is read far more often than written, so that every reader may have a copy of its own. Can be set.
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

    /// Where the memory should rather stay: a :class:`Device`, a :class:`Host`, or None for nowhere in particular. Can be set.
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

    /// Who will use the memory and should have it mapped at all times: a set of :class:`Device` and :class:`Host` that can be
    /// changed, and assigned to as a whole.
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
        // All are looked at before anything is changed.
        let wanted = value
            .try_iter()?
            .map(|place| user(&place?, what))
            .collect::<PyResult<Vec<MemoryLocation>>>()?;
        let (_pinned, range) = Self::managed(slf, what)?;
        slf.py()
            .detach(|| {
                let now = managed::accessed_by(range)?;
                let gone = now
                    .iter()
                    .filter(|place| !wanted.contains(place))
                    .map(|&place| Advice::AccessedBy(place, false));
                let new = wanted
                    .iter()
                    .filter(|place| !now.contains(place))
                    .map(|&place| Advice::AccessedBy(place, true));
                new.chain(gone).try_for_each(|a| managed::advise(range, a))
            })
            .or_raise(slf.py())
    }

    /// Who is in `accessed_by`.
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

    /// Puts a place into `accessed_by`, or takes it out.
    fn _set_accessed_by(
        slf: &Bound<'_, Self>,
        place: &Bound<'_, PyAny>,
        used: bool,
    ) -> PyResult<()> {
        let what = "ManagedBuffer.accessed_by";
        let place = user(place, what)?;
        Self::advise(slf, what, Advice::AccessedBy(place, used))
    }

    /// Moves the memory, in the order of a stream.
    ///
    /// Parameters
    /// ----------
    /// location : Device or Host
    ///     Where to.
    /// stream : Stream
    ///     In whose order.
    #[pyo3(signature = (location, *, stream))]
    fn prefetch(
        slf: &Bound<'_, Self>,
        location: &Bound<'_, PyAny>,
        stream: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let what = "ManagedBuffer.prefetch() argument 'location'";
        let place = location::required(location, || what.to_owned())?;
        Self::queue(slf, "ManagedBuffer.prefetch", stream, |range, stream| {
            managed::prefetch_async(&[range], &[place], stream)
                .map_err(|error| location::explain(error, &[place], what))
        })
    }

    /// Gives up the contents, in the order of a stream: they are undefined until they are written again, and nothing has to
    /// be moved for them. The legacy default stream cannot do it (``CUDA_ERROR_INVALID_VALUE``).
    ///
    /// Parameters
    /// ----------
    /// stream : Stream
    ///     In whose order.
    #[pyo3(signature = (*, stream))]
    fn discard(slf: &Bound<'_, Self>, stream: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::queue(slf, "ManagedBuffer.discard", stream, |range, stream| {
            // SAFETY: the caller has been told that the contents are gone.
            unsafe { managed::discard_async(&[range], stream) }
        })
    }

    /// :meth:`discard` and :meth:`prefetch` in one, for memory that is about to be written somewhere.
    ///
    /// Parameters
    /// ----------
    /// location : Device or Host
    ///     Where to.
    /// stream : Stream
    ///     In whose order.
    #[pyo3(signature = (location, *, stream))]
    fn discard_prefetch(
        slf: &Bound<'_, Self>,
        location: &Bound<'_, PyAny>,
        stream: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
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

/// Who can be in `accessed_by`: devices, and the host as a whole.
fn user(given: &Bound<'_, PyAny>, what: &str) -> PyResult<MemoryLocation> {
    let place = location::accept(given, || format!("an element of {what}"))?;
    match place {
        Some(MemoryLocation::Device(_) | MemoryLocation::Host) => {}
        Some(_) => {
            return Err(PyValueError::new_err(format!(
                "{what}: {} is a NUMA node; the driver knows only the host as a whole here, Host()",
                given.repr()?
            )));
        }
        None => {
            return Err(PyTypeError::new_err(format!(
                "an element of {what} is None; expected a Device or a Host"
            )));
        }
    }
    // Checked above.
    place.ok_or_else(|| PyTypeError::new_err("no place"))
}

/// Managed memory, from a pool of the driver's (CUDA 13), allocated and freed in the order of streams.
///
/// Parameters
/// ----------
/// options : ManagedMemoryResourceOptions or dict, optional
///     How a pool of the resource's own is made. Without options the resource uses the driver's pool for managed memory that
///     has no preferred place.
///
/// See `Stream-ordered memory allocator <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MALLOC__ASYNC.html>`_.
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

/// Whether a program was told about devices that do not share managed memory with the host.
static WARNED: AtomicBool = AtomicBool::new(false);

/// Has the warning about devices without concurrent access to managed memory given once more.
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
                c"a device of this system cannot use managed memory while the host does: wait for its work before the host \
                  touches the memory",
                1,
            );
        }
    }
    Ok(())
}

/// The node of the host's memory that is nearest to the current device.
///
/// # Errors
///
/// `RuntimeError` where the driver names none.
pub fn nearest_node(py: Python<'_>, option: &str) -> PyResult<i32> {
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID;
    let device = crate::core::device::current(py)?;
    match device.attribute(attribute).or_raise(py)? {
        node if node >= 0 => Ok(node),
        _ => Err(PyRuntimeError::new_err(format!(
            "{option} is None, and the driver does not say which NUMA node is the nearest to device {}; give its number",
            device.ordinal()
        ))),
    }
}

/// What the options say about the preferred place.
fn preferred(py: Python<'_>, options: &Options<'_>) -> PyResult<Option<MemoryLocation>> {
    let name = "ManagedMemoryResourceOptions.preferred_location";
    let number: Option<i32> = match options.value(intern!(py, "preferred_location"))? {
        None => None,
        Some(number) => Some(number.extract().map_err(|_| {
            PyOverflowError::new_err(format!(
                "{name} is {}; expected the number of a device or NUMA node, -1 or None",
                shown(&number)
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
    let wrong = |wanted: &str| {
        let shown = number.map_or("None".to_owned(), |n| n.to_string());
        Err(PyValueError::new_err(format!(
            "{name} is {shown}; expected {wanted}"
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
        (None, Some(_)) => wrong("the number of a device, -1 for the host, or None"),
        (Some("device"), Some(n)) if n >= 0 => device(n),
        (Some("device"), _) => {
            wrong("the number of a device where preferred_location_type is 'device'")
        }
        (Some("host"), None) => Ok(Some(MemoryLocation::Host)),
        (Some("host"), Some(_)) => wrong("None where preferred_location_type is 'host'"),
        (Some("host_numa"), Some(n)) if n >= 0 => Ok(Some(MemoryLocation::HostNuma(n))),
        (Some("host_numa"), None) => Ok(Some(MemoryLocation::HostNuma(nearest_node(py, name)?))),
        (Some("host_numa"), _) => wrong(
            "the number of a NUMA node, or None, where preferred_location_type is 'host_numa'",
        ),
        (Some(other), _) => Err(PyValueError::new_err(format!(
            "{name}_type is {other:?}; expected 'device', 'host', 'host_numa' or None"
        ))),
    }
}

#[pymethods]
impl PyManagedMemoryResource {
    // `__init__` has the parameters, so that derived classes may have others.
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(options=None)")]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<PyManagedMemoryResource> {
        PyMemPool::unmade().add_subclass(PyManagedMemoryResource)
    }

    #[pyo3(signature = (options=None))]
    fn __init__(slf: &Bound<'_, Self>, options: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let py = slf.py();
        let made = match options.filter(|options| !options.is_none()) {
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
        slf.as_super().get().set(py, made.or_raise(py)?, CLASS);
        warn_about_access(py)
    }

    /// Allocates managed memory, in the order of a stream.
    ///
    /// Parameters
    /// ----------
    /// size : int
    ///     Bytes; 0 gives a buffer with the address 0.
    /// stream : Stream
    ///     In whose order the memory is there, and by default is freed.
    ///
    /// Returns
    /// -------
    /// ManagedBuffer
    #[pyo3(signature = (size, stream=None), text_signature = "($self, size, *, stream)")]
    fn allocate<'py>(
        slf: &Bound<'py, Self>,
        size: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Py<PyManagedBuffer>> {
        let py = slf.py();
        let size = size_argument(size, "allocate")?;
        let stream = stream_or_default(py, stream, "allocate")?;
        let memory = slf.as_super().get().take(py, size, stream)?;
        let address = memory.address();
        let resource = Some(slf.clone().into_any().unbind());
        let shell = PyBuffer::shell(Backing::Pool(memory), address, size, resource, None);
        PyManagedBuffer::make(py, shell)
    }

    /// The number of the device where the memory should rather be; -1 where that is no device.
    #[getter]
    fn device_id(slf: &Bound<'_, Self>) -> PyResult<i64> {
        match slf.as_super().get().kind(slf.py())? {
            PoolKind::Managed(Some(MemoryLocation::Device(ordinal))) => Ok(ordinal as i64),
            _ => Ok(-1),
        }
    }

    /// True: kernels can use the memory.
    #[getter]
    fn is_device_accessible(&self) -> bool {
        true
    }

    /// True: the host can use the memory.
    #[getter]
    fn is_host_accessible(&self) -> bool {
        true
    }

    /// True: the memory moves to whoever uses it.
    #[getter]
    fn is_managed(&self) -> bool {
        true
    }

    /// Where the memory should rather be: None, or a :class:`~cuda.core.typing.ManagedMemoryLocationType` and the number of
    /// the device or NUMA node, None for the host as a whole.
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
