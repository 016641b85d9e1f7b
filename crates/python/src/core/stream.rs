//! `Stream`, the default streams, and the protocol `__cuda_stream__`.

use std::sync::atomic::{AtomicPtr, Ordering};

use cupyrite::{Device, Error, Stream, StreamOptions};
use pyo3::exceptions::{
    PyDeprecationWarning, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::core::closable::{Lent, Slot, closed, drop_detached};
use crate::core::context::{PyContext, handle_object};
use crate::core::device;
use crate::core::device::PyDevice;
use crate::core::errors::OrRaise;
use crate::core::event;
use crate::core::event::PyEvent;
use crate::core::memory::copy_operand;
use crate::core::numbers;
use crate::core::options::{OptionClass, Options};
use crate::generated::ids::class::driver as class;

/// A queue of work on a device: what is queued runs in order, and independently of other streams.
///
/// Streams come from :meth:`Device.create_stream`, from ``Stream()``, which is the same for the current device, and from
/// :meth:`Stream.from_handle`. A stream is destroyed when it was closed, or forgotten, and nothing else uses it any more;
/// work that is already queued still completes. ``with Stream() as stream:`` closes it at the end.
///
/// Parameters
/// ----------
/// obj : object, optional
///     An object with ``__cuda_stream__``: the stream is that object's, which is kept for as long as it is used.
/// options : StreamOptions or dict, optional
///     How a new stream is made; not together with `obj`.
///
/// See `Stream management <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__STREAM.html>`_.
#[pyclass(
    frozen,
    weakref,
    subclass,
    module = "cuda.core._stream",
    name = "Stream"
)]
pub struct PyStream {
    slot: Slot<Kept>,
}

/// What a stream's shell has.
///
/// Memory from a pool owns a clone of its stream, and most of it is freed on that very stream: that clone is kept for the next
/// memory then. Counting clones takes two atomic steps, which cost more than all else that allocating does beside the
/// driver's call. The spare clone goes with the one in the shell, so that the stream ends when it would without it.
#[derive(Debug)]
struct Kept {
    stream: Stream,
    /// Another clone of the same stream.
    spare: Option<Stream>,
}

impl Kept {
    #[inline]
    fn new(stream: Stream) -> Kept {
        Kept {
            stream,
            spare: None,
        }
    }

    /// The stream alone.
    fn into_stream(self) -> Stream {
        // Not the last one: that is returned.
        drop(self.spare);
        self.stream
    }
}

impl PyStream {
    /// The shell of a stream.
    ///
    /// # Errors
    ///
    /// Memory.
    pub fn wrap(py: Python<'_>, stream: Stream) -> PyResult<Py<PyStream>> {
        Py::new(
            py,
            PyStream {
                slot: Slot::new(Kept::new(stream)),
            },
        )
    }

    /// The stream.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where it was closed.
    #[inline]
    pub fn get(&self, py: Python<'_>) -> PyResult<Stream> {
        match self.slot.read(py, |kept| kept.stream.clone()) {
            Some(stream) => Ok(stream),
            None => Err(closed("Stream")),
        }
    }

    /// The stream, for the time of a call.
    ///
    /// # Errors
    ///
    /// As [`PyStream::get`].
    #[inline]
    pub fn lend<'py>(&self, py: Python<'py>) -> PyResult<Lent<'py, Stream>> {
        Ok(Lent::new(py, self.get(py)?))
    }

    /// Whether it is open, and `is` holds for it, which is short and calls nobody.
    #[inline(always)]
    pub fn is(&self, py: Python<'_>, is: impl FnOnce(&Stream) -> bool) -> bool {
        self.slot.read(py, |kept| is(&kept.stream)).unwrap_or(false)
    }

    /// A clone for memory, the spare one where there is one; `None` where the stream was closed.
    #[inline(always)]
    fn take(&self, py: Python<'_>) -> Option<Stream> {
        self.slot.change(py, |kept| match kept.spare.take() {
            Some(spare) => spare,
            None => kept.stream.clone(),
        })
    }

    /// Lets go of a clone that [`accept_for_memory`] gave, once the memory is gone: it is kept as the spare one, where it is
    /// one of this stream, which is open.
    #[inline(always)]
    pub fn give_back(&self, py: Python<'_>, clone: Stream) {
        let mut clone = Some(clone);
        self.slot.change(py, |kept| {
            if kept.spare.is_none()
                && let Some(given) = &clone
                && given.is_clone_of(&kept.stream)
            {
                kept.spare = clone.take();
            }
        });
        if let Some(other) = clone {
            cupyrite::hint::cold_path();
            let_go(py, other);
        }
    }

    fn address(&self, py: Python<'_>) -> usize {
        self.slot
            .read(py, |kept| kept.stream.handle().addr())
            .unwrap_or(0)
    }
}

impl Drop for PyStream {
    fn drop(&mut self) {
        if let Some(kept) = self.slot.end()
            && kept.stream.is_owned()
        {
            drop_detached(kept);
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
                slot: Slot::new(Kept::new(accept(obj, "Stream", "obj", true)?)),
            });
        }
        let stream = create(device::current(py)?, "Stream", options, py)?;
        Ok(PyStream {
            slot: Slot::new(Kept::new(stream)),
        })
    }

    /// The driver's handle, a ``cuda.bindings.driver.CUstream``; 0 once the stream was closed.
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        handle_object(py, class::CUstream, self.address(py))
    }

    /// Whether :meth:`close` was called. Default streams are never closed.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.slot.is_closed(py)
    }

    /// Whether the stream's work runs without waiting for the legacy default stream.
    #[getter]
    fn is_nonblocking(&self, py: Python<'_>) -> PyResult<bool> {
        self.lend(py)?.is_nonblocking().or_raise(py)
    }

    /// The stream's priority; lower numbers run first.
    #[getter]
    fn priority(&self, py: Python<'_>) -> PyResult<i32> {
        self.lend(py)?.priority().or_raise(py)
    }

    /// The device that the stream's work runs on. For a default stream, the device of the current context.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<Py<PyDevice>> {
        let context = self.lend(py)?.context().or_raise(py)?;
        device::object(py, context.device())
    }

    /// The context that the stream belongs to. For a default stream, the current one.
    #[getter]
    fn context(&self, py: Python<'_>) -> PyResult<Py<PyContext>> {
        let context = self.lend(py)?.context().or_raise(py)?;
        PyContext::wrap(py, context)
    }

    /// ``(0, handle)``: the protocol by which libraries take each other's streams.
    fn __cuda_stream__(&self, py: Python<'_>) -> PyResult<(u32, u64)> {
        Ok((0, self.lend(py)?.handle().addr() as u64))
    }

    /// Waits until everything queued so far is done.
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     What the queued work raised.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let stream = self.lend(py)?;
        py.detach(|| stream.synchronize()).or_raise(py)?;
        copy_operand::reap(py);
        Ok(())
    }

    /// Marks the stream's present end with an event.
    ///
    /// Parameters
    /// ----------
    /// event : Event, optional
    ///     The event to record; a new one by default.
    /// options : EventOptions or dict, optional
    ///     How a new event is made; of no use with `event`.
    ///
    /// Returns
    /// -------
    /// Event
    ///     `event`, or the new one.
    #[pyo3(signature = (event=None, options=None))]
    fn record(
        &self,
        py: Python<'_>,
        event: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyEvent>> {
        let stream = self.lend(py)?;
        if let Some(given) = event.filter(|event| !event.is_none()) {
            let given = event::accept(given, "Stream.record", "event")?;
            let event = given.get().lend(py)?;
            let first = given.get().first_record(py)?;
            py.detach(|| event.record(&stream)).or_raise(py)?;
            first.done();
            return Ok(given.clone().unbind());
        }
        let options = event::event_options("Stream.record", options)?;
        let made = py.detach(|| stream.record_with(&options)).or_raise(py)?;
        PyEvent::wrap(py, made)
    }

    /// Makes the stream's later work wait, on the device: this call returns at once.
    ///
    /// Parameters
    /// ----------
    /// event_or_stream : Event or Stream
    ///     What to wait for: an event, or everything queued so far in another stream, which may be any object with
    ///     ``__cuda_stream__``.
    fn wait(&self, py: Python<'_>, event_or_stream: &Bound<'_, PyAny>) -> PyResult<()> {
        let stream = self.lend(py)?;
        if let Ok(event) = event_or_stream.cast::<PyEvent>() {
            let event = event.get().lend(py)?;
            return py.detach(|| stream.wait(&event)).or_raise(py);
        }
        let other = if let Ok(other) = event_or_stream.cast::<PyStream>() {
            other.get().lend(py)?
        } else if event_or_stream.hasattr("__cuda_stream__")? {
            Lent::new(py, foreign(event_or_stream)?)
        } else {
            return Err(PyValueError::new_err(format!(
                "Stream.wait() argument 'event_or_stream' is of type {}; expected an Event, a Stream, or an object \
                 with __cuda_stream__",
                event_or_stream.get_type().name()?
            )));
        };
        py.detach(|| stream.wait_for_stream(&other)).or_raise(py)
    }

    /// Lets go of the stream: it is destroyed when its queued work is done and nothing else uses it. A stream that came
    /// from elsewhere is not destroyed, and closing a default stream changes nothing.
    fn close(&self, py: Python<'_>) {
        if self.slot.read(py, |kept| kept.stream.is_default()) == Some(false)
            && let Some(kept) = self.slot.close(py)
            && kept.stream.is_owned()
        {
            py.detach(|| drop(kept));
        }
    }

    fn __enter__(slf: Py<PyStream>) -> Py<PyStream> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    /// A stream that somebody else made and will destroy.
    ///
    /// Parameters
    /// ----------
    /// handle : int or cuda.bindings.driver.CUstream
    ///     The ``cudaStream_t`` or ``CUstream``. It must stay valid for as long as the stream is used.
    #[staticmethod]
    fn from_handle(py: Python<'_>, handle: &Bound<'_, PyAny>) -> PyResult<Py<PyStream>> {
        let address = address_of(handle, "Stream.from_handle() argument 'handle'")?;
        // SAFETY: that the handle is valid is what this method asks of its caller.
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
        // The owner of a foreign stream belongs to the stream, which others may hold as well: then it is theirs too, and
        // the collector must not take it for garbage. A slot that is busy belongs to an object in use.
        if let Some(Some(owner)) = self.slot.peek(|kept| {
            kept.stream
                .unique_owner()
                .and_then(|owner| owner.downcast_ref::<Py<PyAny>>())
                .map(std::ptr::from_ref)
        }) {
            // SAFETY: the stream is in the slot and so is its owner: nobody runs while the collector does.
            visit.call(unsafe { &*owner })?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        // SAFETY: the collector runs on an attached thread.
        let py = unsafe { Python::assume_attached() };
        drop(
            self.slot
                .close(py)
                .map(|kept| Lent::new(py, kept.into_stream())),
        );
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let Ok(stream) = self.lend(py) else {
            return "<Stream handle=0x0 context=0x0>".to_owned();
        };
        // Showing an object never fails: where the driver does not tell the context, it is not shown.
        let context = stream
            .context()
            .map_or(0, |context| context.handle().addr());
        format!(
            "<Stream handle={:#x} context={context:#x}>",
            stream.handle().addr()
        )
    }
}

/// An address from an int or a handle of the bindings.
fn address_of(given: &Bound<'_, PyAny>, what: &str) -> PyResult<usize> {
    if given.is_instance_of::<PyStream>() {
        return Err(PyTypeError::new_err(format!(
            "{what} is a Stream; expected an int or a CUstream"
        )));
    }
    if let Some(value) = crate::types::handle_value(given.as_ptr()) {
        return usize::try_from(value).map_err(Into::into);
    }
    given.extract::<usize>().map_err(|error| {
        let error: PyErr = error;
        if error.is_instance_of::<PyOverflowError>(given.py()) {
            return PyOverflowError::new_err(format!(
                "{what} is not the address of a stream: it does not fit 64 bits"
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

/// The stream of an object with `__cuda_stream__`; it keeps the object.
fn foreign(given: &Bound<'_, PyAny>) -> PyResult<Stream> {
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
            c"__cuda_stream__ is an attribute of this object; it should be a method",
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
            "{}.__cuda_stream__() returned an object of type {}; it must return (0, handle)",
            class()?,
            answer.get_type().name()?
        )));
    };
    let [version, handle] = pair.as_slice() else {
        return Err(PyRuntimeError::new_err(format!(
            "{}.__cuda_stream__() returned {} values; it must return (0, handle)",
            class()?,
            pair.len()
        )));
    };
    if !version.extract::<i64>().is_ok_and(|version| version == 0) {
        return Err(PyRuntimeError::new_err(format!(
            "{}.__cuda_stream__() speaks version {} of the protocol; this package speaks version 0",
            class()?,
            version.repr()?
        )));
    }
    let what = format!("the handle that {}.__cuda_stream__() returned", class()?);
    let address = address_of(handle, &what)?;
    // SAFETY: the protocol promises a stream that lives as long as its object, which is kept.
    Ok(unsafe {
        Stream::from_handle_with_owner(
            std::ptr::with_exposed_provenance_mut(address),
            given.clone().unbind(),
        )
    })
}

/// The stream that an argument stands for: a `Stream`, or where `protocol` is true any object with `__cuda_stream__`.
///
/// # Errors
///
/// `TypeError` for anything else, `RuntimeError` for a closed stream or a wrong answer to the protocol.
#[inline(always)]
pub fn accept(
    given: &Bound<'_, PyAny>,
    function: &str,
    parameter: &str,
    protocol: bool,
) -> PyResult<Stream> {
    if let Some(stream) = exact(given)
        && let Some(stream) = stream.slot.read(given.py(), |kept| kept.stream.clone())
    {
        return Ok(stream);
    }
    accept_any(given, function, parameter, protocol)
}

/// As [`accept`], without the protocol, for memory that owns the stream and gives it back: [`PyStream::give_back`].
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
    if let Some(stream) = exact(given)
        && let Some(stream) = stream.take(given.py())
    {
        return Ok(stream);
    }
    cupyrite::hint::cold_path();
    accept_any(given, function, parameter, false)
}

/// Lets go of a clone of a stream, attached: where it is the last one the stream is destroyed without the GIL.
#[inline]
pub fn let_go(py: Python<'_>, clone: Stream) {
    drop(Lent::new(py, clone));
}

static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());

/// A `Stream`, not of a derived class.
#[inline(always)]
pub fn exact<'a>(given: &'a Bound<'_, PyAny>) -> Option<&'a PyStream> {
    if !std::ptr::eq(given.get_type_ptr(), CLASS.load(Ordering::Relaxed)) {
        return None;
    }
    // SAFETY: the class that `init` saw, which is that of `PyStream` and lives for ever.
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
        Err(_) => accept_other(given, function, parameter, protocol),
    }
}

/// As [`accept`], for the time of a call.
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
fn accept_other(
    given: &Bound<'_, PyAny>,
    function: &str,
    parameter: &str,
    protocol: bool,
) -> PyResult<Stream> {
    if protocol && given.hasattr("__cuda_stream__")? {
        return foreign(given);
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

static OPTIONS: OptionClass = OptionClass::new("cuda.core._stream", "StreamOptions");

/// A new stream of a device, with `StreamOptions` as given to `function`.
///
/// # Errors
///
/// `TypeError` or `ValueError`, which name what is wrong; otherwise what the driver says.
pub fn create(
    device: Device,
    function: &str,
    given: Option<&Bound<'_, PyAny>>,
    py: Python<'_>,
) -> PyResult<Stream> {
    let options = Options::accept(function, &OPTIONS, given)?;
    let field = intern!(py, "priority");
    let given_priority = options.value(field)?;
    let priority = match &given_priority {
        None => None,
        Some(value) => Some(match value.extract::<i32>() {
            Ok(priority) => priority,
            // No device has this priority: what is wrong is said below, with those that it has.
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => i32::MAX,
            Err(error) => return Err(options.wrong(field, value, "an int or None", error)),
        }),
    };
    let chosen = StreamOptions {
        // None has always counted as false here.
        nonblocking: match given {
            Some(given) if !given.is_none() => options.flag(intern!(py, "nonblocking"), false)?,
            _ => true,
        },
        priority,
    };
    let made = py.detach(|| device.create_stream_with(&chosen));
    if let (Err(Error::InvalidArgument { parameter, .. }), Some(value)) = (&made, &given_priority)
        && parameter == "priority"
    {
        let (least, greatest) = py
            .detach(|| Stream::priority_range(&device.active_context()?))
            .or_raise(py)?;
        return Err(PyValueError::new_err(format!(
            "StreamOptions.priority is {}; this device has priorities from {greatest} (first) to {least} (last)",
            numbers::shown(value)
        )));
    }
    made.or_raise(py)
}

/// The default stream objects, one each.
static LEGACY: PyOnceLock<Py<PyStream>> = PyOnceLock::new();
static PER_THREAD: PyOnceLock<Py<PyStream>> = PyOnceLock::new();

/// The object of the default stream that `CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM` chooses.
///
/// # Errors
///
/// Memory.
pub fn default_object(py: Python<'_>) -> PyResult<Py<PyStream>> {
    let chosen = Stream::default_stream();
    let place = if chosen == Stream::per_thread_default() {
        &PER_THREAD
    } else {
        &LEGACY
    };
    place
        .get_or_try_init(py, || PyStream::wrap(py, chosen))
        .map(|object| object.clone_ref(py))
}

/// The default stream: the legacy one, or the calling thread's own where the variable
/// ``CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM`` is a number other than 0 when it is first asked for.
#[pyfunction]
fn default_stream(py: Python<'_>) -> PyResult<Py<PyStream>> {
    default_object(py)
}

/// The stream that `arg` stands for.
///
/// Parameters
/// ----------
/// arg : Stream
///     A stream; with `allow_stream_protocol` also an object with ``__cuda_stream__``.
/// allow_stream_protocol : bool
///     Whether the protocol counts.
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
    // The crate keeps the class for as long as the process lives.
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
