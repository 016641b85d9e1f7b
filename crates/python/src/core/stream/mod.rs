//! `Stream`, the default streams, and the `__cuda_stream__` protocol.

use std::sync::atomic::{AtomicPtr, Ordering};

use cupyrite::Stream;
use pyo3::exceptions::{
    PyDeprecationWarning, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::bindings::symbols;
use crate::core::closable::{Closable, Lent, closed, drop_detached};
use crate::core::context::{PyContext, handle_object};
use crate::core::device;
use crate::core::device::PyDevice;
use crate::core::device_resources::PyDeviceResources;
use crate::core::errors::OrRaise;
use crate::core::event::PyEvent;
use crate::core::graph::builder::PyGraphBuilder;
use crate::core::memory::keep_alive;
use crate::core::wait;
use crate::cpython::Raised;
use crate::cpython::method;
use crate::cpython::{DropAttached, Obj};
use crate::generated::driver_types::class;

mod creation;
mod record;

pub use self::creation::{create, create_in_green};

/// A CUDA stream: work queued in a stream runs in order, and independently of other streams.
///
/// Streams come from :meth:`Device.create_stream`, from ``Stream()``, which creates one on the current device, and from
/// :meth:`Stream.from_handle`. A stream is destroyed when it is closed or garbage-collected and no other object uses
/// it; queued work still completes. ``with Stream() as stream:`` closes the stream.
///
/// Parameters
/// ----------
/// obj : object, optional
///     An object with ``__cuda_stream__``: wraps the object's stream and keeps the object alive.
/// options : StreamOptions or dict, optional
///     Options of a new stream. Excludes `obj`.
///
/// See `Stream management <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__STREAM.html>`_.
#[doc = example!("cuda.core.Stream")]
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._stream",
    name = "Stream"
)]
pub struct PyStream {
    cell: Closable<StreamContents>,
}

/// Contents of a stream object.
///
/// Pool memory owns a clone of its stream, and is mostly freed on that stream: the clone is then kept as a spare for
/// the next allocation. Counting clones costs two atomic operations, more than the rest of an allocation apart from the
/// driver call. The spare is dropped with the stream, so it does not extend the stream's lifetime.
#[derive(Debug)]
struct StreamContents {
    stream: Stream,
    /// A spare clone of the stream.
    spare: Option<Stream>,
}

impl StreamContents {
    #[inline]
    fn new(stream: Stream) -> StreamContents {
        StreamContents {
            stream,
            spare: None,
        }
    }

    /// Returns the stream without the spare clone.
    fn into_stream(self) -> Stream {
        // Not the last clone: that is returned.
        drop(self.spare);
        self.stream
    }
}

impl PyStream {
    /// Creates the Python object of a stream.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    pub fn wrap(py: Python<'_>, stream: Stream) -> PyResult<Py<PyStream>> {
        Py::new(
            py,
            PyStream {
                cell: Closable::new(StreamContents::new(stream)),
            },
        )
    }

    /// The stream.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a closed stream.
    #[inline]
    pub fn get(&self, py: Python<'_>) -> PyResult<Stream> {
        match self.cell.read(py, |contents| contents.stream.clone()) {
            Some(stream) => Ok(stream),
            None => Err(closed("Stream")),
        }
    }

    /// The stream, lent for a call.
    ///
    /// # Errors
    ///
    /// As [`PyStream::get`].
    #[inline]
    pub fn lend<'py>(&self, py: Python<'py>) -> PyResult<Lent<'py, Stream>> {
        Ok(Lent::new(py, self.get(py)?))
    }

    /// Whether the stream is open and satisfies a predicate, which is short and calls no foreign code.
    #[inline(always)]
    pub fn is(&self, py: Python<'_>, is: impl FnOnce(&Stream) -> bool) -> bool {
        self.cell
            .read(py, |contents| is(&contents.stream))
            .unwrap_or(false)
    }

    /// A clone for an allocation, preferably the spare one; `None` for a closed stream.
    #[inline(always)]
    fn clone_for_memory(&self, py: Python<'_>) -> Option<Stream> {
        self.cell
            .read_mut(py, |contents| match contents.spare.take() {
                Some(spare) => spare,
                None => contents.stream.clone(),
            })
    }

    /// Returns a clone obtained from [`accept_for_memory`] after the memory was freed. Kept as the spare clone if it
    /// belongs to this stream, which is open.
    #[inline(always)]
    pub fn give_back(&self, py: Python<'_>, clone: Stream) {
        let mut clone = Some(clone);
        self.cell.read_mut(py, |contents| {
            if contents.spare.is_none()
                && let Some(given) = &clone
                && given.is_clone_of(&contents.stream)
            {
                contents.spare = clone.take();
            }
        });
        if let Some(other) = clone {
            cupyrite::hint::cold_path();
            drop_clone(py, other);
        }
    }

    fn address(&self, py: Python<'_>) -> usize {
        self.cell
            .read(py, |contents| contents.stream.handle().addr())
            .unwrap_or(0)
    }
}

impl Drop for PyStream {
    fn drop(&mut self) {
        if let Some(contents) = self.cell.take()
            && contents.stream.is_owned()
        {
            drop_detached(contents);
        }
    }
}

#[pymethods]
impl PyStream {
    #[new]
    #[pyo3(signature = (obj=None, options=None))]
    fn new(
        py: Python<'_>,
        obj: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyStream> {
        if let Some(obj) = obj.filter(|obj| !obj.is_none()) {
            if options.is_some_and(|options| !options.is_none()) {
                return Err(PyValueError::new_err(
                    "Stream() takes 'obj', whose stream exists, or 'options' for a new one, not both",
                ));
            }
            return Ok(PyStream {
                cell: Closable::new(StreamContents::new(accept(obj, "Stream", "obj", true)?)),
            });
        }
        let stream = create(device::current(py)?, "Stream", options, py)?;
        Ok(PyStream {
            cell: Closable::new(StreamContents::new(stream)),
        })
    }

    /// Driver handle, a ``cuda.bindings.driver.CUstream``; 0 if the stream was closed.
    #[doc = example!("cuda.core.Stream.handle")]
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        handle_object(py, class::CUstream, self.address(py))
    }

    /// Whether :meth:`close` was called. Default streams cannot be closed.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.cell.is_closed(py)
    }

    /// Whether the stream does not synchronize with the legacy default stream.
    #[getter]
    fn is_nonblocking(&self, py: Python<'_>) -> PyResult<bool> {
        self.lend(py)?.is_nonblocking().or_raise(py)
    }

    /// Priority of the stream; lower numbers have higher priority.
    #[getter]
    fn priority(&self, py: Python<'_>) -> PyResult<i32> {
        self.lend(py)?.priority().or_raise(py)
    }

    /// Device of the stream; for a default stream, the device of the current context.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<Py<PyDevice>> {
        let context = self.lend(py)?.context().or_raise(py)?;
        device::object(py, context.device())
    }

    /// Context of the stream; for a default stream, the current context.
    #[doc = example!("cuda.core.Stream.context")]
    #[getter]
    fn context(&self, py: Python<'_>) -> PyResult<Py<PyContext>> {
        let context = self.lend(py)?.context().or_raise(py)?;
        PyContext::wrap(py, context)
    }

    /// The resources of the stream's context, a :class:`DeviceResources`. For a default stream, each query is about the
    /// context that is current then.
    #[doc = example!("cuda.core.Stream.resources")]
    #[getter]
    fn resources(&self, py: Python<'_>) -> PyResult<Py<PyDeviceResources>> {
        let stream = self.lend(py)?;
        PyDeviceResources::of_stream(py, (*stream).clone())
    }

    /// ``(0, handle)``: the protocol by which libraries exchange streams.
    fn __cuda_stream__(&self, py: Python<'_>) -> PyResult<(u32, u64)> {
        Ok((0, self.lend(py)?.handle().addr() as u64))
    }

    /// Waits for all queued work.
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     Error of the completed work.
    /// KeyboardInterrupt
    ///     Ctrl-C ends the wait, on the main thread; the work goes on. Any exception of a signal handler does.
    #[doc = example!("cuda.core.Stream.sync")]
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let stream = self.lend(py)?;
        wait::for_stream(py, &stream)?;
        keep_alive::drop_completed(py);
        Ok(())
    }

    /// Makes the stream's later work wait on the device; returns at once.
    ///
    /// Parameters
    /// ----------
    /// event_or_stream : Event or Stream
    ///     An event, or a stream whose queued work to wait for, which may be any object with ``__cuda_stream__``.
    #[doc = example!("cuda.core.Stream.wait")]
    fn wait(&self, py: Python<'_>, event_or_stream: &Bound<'_, PyAny>) -> PyResult<()> {
        let stream = self.lend(py)?;
        if let Ok(event) = event_or_stream.cast::<PyEvent>() {
            let event = event.get().lend(py)?;
            return py.detach(|| stream.wait(&event)).or_raise(py);
        }
        let other = if let Ok(other) = event_or_stream.cast::<PyStream>() {
            other.get().lend(py)?
        } else if event_or_stream.hasattr("__cuda_stream__")? {
            Lent::new(py, stream_from_protocol(event_or_stream)?)
        } else {
            return Err(PyValueError::new_err(format!(
                "Stream.wait() argument 'event_or_stream' is of type {}; expected an Event, a Stream, or an object \
                 with __cuda_stream__",
                event_or_stream.get_type().name()?
            )));
        };
        py.detach(|| stream.wait_for_stream(&other)).or_raise(py)
    }

    /// Creates a graph builder that captures this stream.
    ///
    /// Returns
    /// -------
    /// GraphBuilder
    #[doc = example!("cuda.core.Stream.create_graph_builder")]
    fn create_graph_builder(&self, py: Python<'_>) -> PyResult<Py<PyGraphBuilder>> {
        PyGraphBuilder::of_stream(py, self.get(py)?)
    }

    /// Releases the stream: it is destroyed when its queued work has completed and no other object uses it. A foreign
    /// stream is not destroyed; closing a default stream has no effect.
    fn close(&self, py: Python<'_>) {
        if self.cell.read(py, |contents| contents.stream.is_default()) == Some(false)
            && let Some(contents) = self.cell.close(py)
            && contents.stream.is_owned()
        {
            py.detach(|| drop(contents));
        }
    }

    fn __enter__(slf: Py<PyStream>) -> Py<PyStream> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    /// Wraps a stream owned by other code.
    ///
    /// Parameters
    /// ----------
    /// handle : int or cuda.bindings.driver.CUstream
    ///     The ``cudaStream_t`` or ``CUstream``. It must stay valid while the stream is used.
    #[doc = example!("cuda.core.Stream.from_handle")]
    #[staticmethod]
    fn from_handle(py: Python<'_>, handle: &Bound<'_, PyAny>) -> PyResult<Py<PyStream>> {
        let address = address_of(handle, "Stream.from_handle() argument 'handle'")?;
        // SAFETY: the caller guarantees a valid handle.
        let stream = unsafe { Stream::from_handle(std::ptr::with_exposed_provenance_mut(address)) };
        PyStream::wrap(py, stream)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let py = other.py();
        other
            .cast::<PyStream>()
            .is_ok_and(|other| self.address(py) == other.get().address(py))
    }

    fn __hash__(&self, py: Python<'_>) -> u64 {
        self.address(py) as u64
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // SAFETY: the collector runs on an attached thread. The token only reads.
        let py = unsafe { Python::assume_attached() };
        // The owner of a foreign stream is traversed only if this object is its sole owner; otherwise the collector
        // could take it for garbage. A locked cell belongs to an object in use.
        if let Some(Some(owner)) = self.cell.peek(|contents| {
            contents
                .stream
                .unique_owner()
                .and_then(|owner| owner.downcast_ref::<DropAttached<Py<PyAny>>>())
                .map(|owner| owner.get(py))
                .map(std::ptr::from_ref)
        }) {
            // SAFETY: the cell keeps stream and owner alive: other threads are suspended during collection.
            visit.call(unsafe { &*owner })?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        // SAFETY: the collector runs on an attached thread.
        let py = unsafe { Python::assume_attached() };
        drop(
            self.cell
                .close(py)
                .map(|contents| Lent::new(py, contents.into_stream())),
        );
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let Ok(stream) = self.lend(py) else {
            return "<Stream handle=0x0 context=0x0>".to_owned();
        };
        // A repr does not raise: an unavailable context is shown as 0.
        let context = stream
            .context()
            .map_or(0, |context| context.handle().addr());
        format!(
            "<Stream handle={:#x} context={context:#x}>",
            stream.handle().addr()
        )
    }
}

/// Converts an int or a handle of the bindings to an address.
fn address_of(given: &Bound<'_, PyAny>, what: &str) -> PyResult<usize> {
    if given.is_instance_of::<PyStream>() {
        return Err(PyTypeError::new_err(format!(
            "{what} is a Stream; expected an int or a CUstream"
        )));
    }
    if let Some(value) = crate::types::handle_value(Obj::of(given)) {
        return usize::try_from(value).map_err(Into::into);
    }
    given.extract::<usize>().map_err(|error| {
        let error: PyErr = error;
        if error.is_instance_of::<PyOverflowError>(given.py()) {
            return PyOverflowError::new_err(format!(
                "{what} is not a stream handle: it exceeds 64 bits"
            ));
        }
        PyTypeError::new_err(format!(
            "{what} is of type {}; expected an int or a CUstream",
            given
                .get_type()
                .name()
                .map_or_else(|_| "?".to_owned(), |name| name.to_string())
        ))
    })
}

/// The stream of an object with `__cuda_stream__`, which it keeps alive.
fn stream_from_protocol(given: &Bound<'_, PyAny>) -> PyResult<Stream> {
    let py = given.py();
    let class = || -> PyResult<String> { Ok(given.get_type().name()?.to_string()) };
    let method = given.getattr("__cuda_stream__")?;
    let answer = if method.is_callable() {
        method.call0()?
    } else {
        let category = py.get_type::<PyDeprecationWarning>();
        PyErr::warn(
            py,
            &category,
            c"__cuda_stream__ of this object is an attribute, which is deprecated; it should be a method",
            2,
        )?;
        method
    };
    let pair: Vec<Bound<'_, PyAny>> = if let Ok(tuple) = answer.cast::<PyTuple>() {
        tuple.iter().collect()
    } else if let Ok(list) = answer.cast::<PyList>() {
        list.iter().collect()
    } else {
        return Err(PyRuntimeError::new_err(format!(
            "{}.__cuda_stream__() returned an object of type {}; expected (0, handle)",
            class()?,
            answer.get_type().name()?
        )));
    };
    let [version, handle] = pair.as_slice() else {
        return Err(PyRuntimeError::new_err(format!(
            "{}.__cuda_stream__() returned {} values; expected (0, handle)",
            class()?,
            pair.len()
        )));
    };
    if !version.extract::<i64>().is_ok_and(|version| version == 0) {
        return Err(PyRuntimeError::new_err(format!(
            "{}.__cuda_stream__() implements protocol version {}; expected version 0",
            class()?,
            version.repr()?
        )));
    }
    let what = format!("the handle that {}.__cuda_stream__() returned", class()?);
    let address = address_of(handle, &what)?;
    // SAFETY: the protocol guarantees a stream that lives as long as its object, which is kept alive.
    Ok(unsafe {
        Stream::from_handle_with_owner(
            std::ptr::with_exposed_provenance_mut(address),
            // The last clone may be dropped within `cpython::detached`, as part of memory that the stream uses.
            DropAttached::new(given.clone().unbind()),
        )
    })
}

/// Converts an argument to a stream: a `Stream`, or with `protocol` any object with `__cuda_stream__`.
///
/// # Errors
///
/// `TypeError` for other objects, `RuntimeError` for a closed stream or a protocol violation.
#[inline(always)]
pub fn accept(
    given: &Bound<'_, PyAny>,
    function: &str,
    parameter: &str,
    protocol: bool,
) -> PyResult<Stream> {
    if let Some(stream) = cast_exact(given)
        && let Some(stream) = stream
            .cell
            .read(given.py(), |contents| contents.stream.clone())
    {
        return Ok(stream);
    }
    accept_any(given, function, parameter, protocol)
}

/// Converts an optional argument 'stream'; `None` selects the default stream.
///
/// # Errors
///
/// As [`accept`].
pub fn accept_or_default(
    py: Python<'_>,
    given: Option<&Bound<'_, PyAny>>,
    function: &str,
) -> PyResult<Stream> {
    match given {
        Some(given) => accept(given, function, "stream", false),
        None => selected_default(py),
    }
}

/// As [`accept`], without the protocol, for memory that owns the stream and returns it with [`PyStream::give_back`].
///
/// # Errors
///
/// As [`accept`].
#[inline(always)]
pub fn accept_for_memory(
    given: &Bound<'_, PyAny>,
    function: &str,
    parameter: &str,
) -> PyResult<Stream> {
    if let Some(stream) = cast_exact(given)
        && let Some(stream) = stream.clone_for_memory(given.py())
    {
        return Ok(stream);
    }
    cupyrite::hint::cold_path();
    accept_any(given, function, parameter, false)
}

/// Drops a clone of a stream; the last clone destroys the stream without the GIL.
#[inline]
pub fn drop_clone(py: Python<'_>, clone: Stream) {
    drop(Lent::new(py, clone));
}

static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());

/// An instance of exactly `Stream`.
#[inline(always)]
pub fn cast_exact<'a>(given: &'a Bound<'_, PyAny>) -> Option<&'a PyStream> {
    if !std::ptr::eq(given.get_type_ptr(), CLASS.load(Ordering::Relaxed)) {
        return None;
    }
    // SAFETY: the static class of `PyStream`, stored by `init`.
    Some(unsafe { given.cast_unchecked::<PyStream>() }.get())
}

#[inline(never)]
fn accept_any(
    given: &Bound<'_, PyAny>,
    function: &str,
    parameter: &str,
    protocol: bool,
) -> PyResult<Stream> {
    match given.cast::<PyStream>() {
        Ok(stream) => stream.get().get(given.py()),
        Err(_) => accept_protocol(given, function, parameter, protocol),
    }
}

/// As [`accept`], lent for a call.
///
/// # Errors
///
/// As [`accept`].
#[inline]
pub fn lend<'py>(
    given: &Bound<'py, PyAny>,
    function: &str,
    parameter: &str,
    protocol: bool,
) -> PyResult<Lent<'py, Stream>> {
    accept(given, function, parameter, protocol).map(|stream| Lent::new(given.py(), stream))
}

#[cold]
fn accept_protocol(
    given: &Bound<'_, PyAny>,
    function: &str,
    parameter: &str,
    protocol: bool,
) -> PyResult<Stream> {
    if let Ok(builder) = given.cast::<PyGraphBuilder>() {
        return builder.get().recording_stream(given.py(), function);
    }
    if protocol && given.hasattr("__cuda_stream__")? {
        return stream_from_protocol(given);
    }
    Err(PyTypeError::new_err(format!(
        "{function}() argument '{parameter}' is of type {}; expected a Stream{}",
        given.get_type().name()?,
        if protocol {
            " or an object with __cuda_stream__"
        } else {
            ""
        }
    )))
}

/// The objects of the default streams.
static LEGACY: PyOnceLock<Py<PyStream>> = PyOnceLock::new();
static PER_THREAD: PyOnceLock<Py<PyStream>> = PyOnceLock::new();

/// The default stream selected by `CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM`.
///
/// # Errors
///
/// `ValueError` for a value of the variable that is no integer.
pub fn selected_default(py: Python<'_>) -> PyResult<Stream> {
    match symbols::per_thread_default_stream() {
        Ok(true) => Ok(Stream::per_thread_default()),
        Ok(false) => Ok(Stream::legacy_default()),
        Err(Raised) => Err(PyErr::fetch(py)),
    }
}

/// The object of the default stream selected by `CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM`.
///
/// # Errors
///
/// `ValueError` if the value of the variable is not an integer; `MemoryError`.
pub fn default_object(py: Python<'_>) -> PyResult<Py<PyStream>> {
    let chosen = selected_default(py)?;
    let place = if chosen == Stream::per_thread_default() {
        &PER_THREAD
    } else {
        &LEGACY
    };
    place
        .get_or_try_init(py, || PyStream::wrap(py, chosen))
        .map(|object| object.clone_ref(py))
}

/// The default stream: the legacy default stream, or the per-thread default stream if the environment variable
/// ``CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM`` selects it on first use.
#[pyfunction]
fn default_stream(py: Python<'_>) -> PyResult<Py<PyStream>> {
    default_object(py)
}

/// Converts an argument to a stream.
///
/// Parameters
/// ----------
/// arg : Stream
///     A stream, or with `allow_stream_protocol` an object with ``__cuda_stream__``.
/// allow_stream_protocol : bool
///     Whether to accept objects with ``__cuda_stream__``.
#[pyfunction]
#[pyo3(name = "Stream_accept", signature = (arg, allow_stream_protocol=false))]
fn stream_accept(arg: &Bound<'_, PyAny>, allow_stream_protocol: bool) -> PyResult<Py<PyStream>> {
    if let Ok(stream) = arg.cast::<PyStream>() {
        return Ok(stream.clone().unbind());
    }
    let stream = accept(arg, "Stream_accept", "arg", allow_stream_protocol)?;
    PyStream::wrap(arg.py(), stream)
}

/// Adds the class and the default streams.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = core.py();
    core.add_class::<PyStream>()?;
    method::add::<record::Record, 2>(core.py())?;
    // The crate keeps the class for the lifetime of the process.
    let class = core.py().get_type::<PyStream>();
    CLASS.store(class.as_type_ptr(), Ordering::Relaxed);
    core.add_function(wrap_pyfunction!(default_stream, core)?)?;
    core.add_function(wrap_pyfunction!(stream_accept, core)?)?;
    let legacy = LEGACY.get_or_try_init(py, || PyStream::wrap(py, Stream::legacy_default()))?;
    core.add("LEGACY_DEFAULT_STREAM", legacy)?;
    let own =
        PER_THREAD.get_or_try_init(py, || PyStream::wrap(py, Stream::per_thread_default()))?;
    core.add("PER_THREAD_DEFAULT_STREAM", own)
}
