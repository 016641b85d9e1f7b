//! `Event` and its IPC descriptor.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use cupyrite::{Context, Error, Event, EventOptions, IpcEventHandle, UniqueEvent};
use pyo3::exceptions::{PyDeprecationWarning, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyString, PyTuple, PyType};

use crate::bindings::symbols;
use crate::core::closable::{Closable, Lent, closed, drop_detached};
use crate::core::context::{PyContext, handle_object};
use crate::core::device;
use crate::core::device::PyDevice;
use crate::core::errors::{OrRaise, to_python};
use crate::core::options::{OptionClass, Options};
use crate::core::wait;
use crate::cpython;
use crate::cpython::method;
use crate::cpython::method::Method;
use crate::generated::driver_types::class;

/// A point in a stream that can be waited for and, with ``timing_enabled``, timed.
///
/// Events come from :meth:`Stream.record` and :meth:`Device.create_event`. ``end - start`` is the time between two
/// recorded events in milliseconds.
///
/// See `Event management <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EVENT.html>`_.
#[doc = example!("cuda.core.Event")]
#[pyclass(frozen, weakref, subclass, module = "cuda.core._event", name = "Event")]
pub struct PyEvent {
    cell: Closable<EventHandle>,
    /// Created on first use; for an imported event, the descriptor with which it was imported.
    descriptor: PyOnceLock<Py<PyIpcEventDescriptor>>,
    /// Whether the event was recorded or imported. IPC events are recorded once, since other processes wait for the
    /// recorded work.
    recorded: AtomicBool,
}

/// Handle of an event: unique until another owner needs it.
enum EventHandle {
    Unique(UniqueEvent),
    Shared(Event),
    /// Transient, during conversion.
    Transient,
}

impl EventHandle {
    #[inline]
    fn handle(&self) -> usize {
        match self {
            EventHandle::Unique(event) => event.handle().addr(),
            EventHandle::Shared(event) => event.handle().addr(),
            EventHandle::Transient => 0,
        }
    }

    #[inline]
    fn options(&self) -> EventOptions {
        match self {
            EventHandle::Unique(event) => event.options(),
            EventHandle::Shared(event) => event.options(),
            EventHandle::Transient => EventOptions::default(),
        }
    }

    /// Converts the event to a shared one and returns a clone.
    #[inline]
    fn share(&mut self) -> Option<Event> {
        if matches!(self, EventHandle::Unique(_))
            && let EventHandle::Unique(event) = std::mem::replace(self, EventHandle::Transient)
        {
            *self = EventHandle::Shared(event.share());
        }
        match self {
            EventHandle::Shared(event) => Some(event.clone()),
            _ => None,
        }
    }
}

/// Guard of the first record of an IPC event; no-op for other events.
pub struct FirstRecord<'a>(Option<&'a AtomicBool>);

impl FirstRecord<'_> {
    /// Confirms that the event was recorded.
    pub fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for FirstRecord<'_> {
    fn drop(&mut self) {
        if let Some(recorded) = self.0 {
            // The driver refused the record.
            recorded.store(false, Ordering::Relaxed);
        }
    }
}

impl PyEvent {
    /// Creates the Python object of an event.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    #[inline]
    pub fn wrap(py: Python<'_>, event: Event) -> PyResult<Py<PyEvent>> {
        PyEvent::wrap_as(py, event.options().ipc, true, EventHandle::Shared(event))
    }

    /// Creates the Python object of an event that is not yet recorded.
    ///
    /// # Errors
    ///
    /// `MemoryError`.
    #[inline]
    pub fn wrap_unrecorded(py: Python<'_>, event: UniqueEvent) -> PyResult<Py<PyEvent>> {
        PyEvent::wrap_as(py, event.options().ipc, false, EventHandle::Unique(event))
    }

    #[inline(always)]
    fn wrap_as(
        py: Python<'_>,
        ipc: bool,
        recorded: bool,
        event: EventHandle,
    ) -> PyResult<Py<PyEvent>> {
        if ipc {
            // Registers the multiprocessing reducers.
            crate::core::memory::ipc_handles::module(py)?;
        }
        let created = Py::new(
            py,
            PyEvent {
                cell: Closable::new(event),
                descriptor: PyOnceLock::new(),
                recorded: AtomicBool::new(recorded),
            },
        )?;
        // Refers only to its class, which is static, and to a descriptor that refers to nothing. (A program may assign
        // another `__class__` that refers to the event; such a cycle is not collected.)
        cpython::untrack(created.bind(py));
        Ok(created)
    }

    /// The event.
    ///
    /// # Errors
    ///
    /// `RuntimeError` for a closed event.
    #[inline]
    pub fn event(&self, py: Python<'_>) -> PyResult<Event> {
        match self.cell.read_mut(py, EventHandle::share) {
            Some(Some(event)) => Ok(event),
            _ => Err(closed("Event")),
        }
    }

    /// The event, lent for a call.
    ///
    /// # Errors
    ///
    /// As [`PyEvent::event`].
    #[inline]
    pub fn lend<'py>(&self, py: Python<'py>) -> PyResult<Lent<'py, Event>> {
        Ok(Lent::new(py, self.event(py)?))
    }

    /// Begins recording the event.
    ///
    /// # Errors
    ///
    /// `TypeError` for an IPC event that was already recorded.
    #[inline]
    pub fn first_record(&self, py: Python<'_>) -> PyResult<FirstRecord<'_>> {
        if self.cell.read(py, |event| event.options().ipc) != Some(true) {
            return Ok(FirstRecord(None));
        }
        if self.recorded.swap(true, Ordering::Relaxed) {
            return Err(PyTypeError::new_err(
                "Stream.record() argument 'event' was created with ipc_enabled and is already recorded; such an event is \
                 recorded once: create another with Stream.record(options=EventOptions(ipc_enabled=True))",
            ));
        }
        Ok(FirstRecord(Some(&self.recorded)))
    }

    /// Options of the event.
    fn options(&self, py: Python<'_>) -> PyResult<EventOptions> {
        self.cell
            .read(py, EventHandle::options)
            .ok_or_else(|| closed("Event"))
    }

    fn address(&self, py: Python<'_>) -> usize {
        self.cell.read(py, EventHandle::handle).unwrap_or(0)
    }
}

impl Drop for PyEvent {
    fn drop(&mut self) {
        if let Some(event) = self.cell.take() {
            drop_detached(event);
        }
    }
}

/// Converts an `Event` argument.
///
/// # Errors
///
/// `TypeError`.
pub fn accept<'a, 'py>(
    given: &'a Bound<'py, PyAny>,
    function: &str,
    parameter: &str,
) -> PyResult<&'a Bound<'py, PyEvent>> {
    match given.cast::<PyEvent>() {
        Ok(event) => Ok(event),
        Err(_) => Err(PyTypeError::new_err(format!(
            "{function}() argument '{parameter}' is of type {}; expected an Event",
            given.get_type().name()?
        ))),
    }
}

static OPTIONS: OptionClass = OptionClass::new("cuda.core._event", "EventOptions");

/// Converts `EventOptions` given to `function`.
///
/// # Errors
///
/// `TypeError` that names the invalid field.
#[inline]
pub fn event_options(function: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<EventOptions> {
    let Some(given) = given else {
        return Ok(EventOptions::default());
    };
    let py = given.py();
    let names = [
        intern!(py, "timing_enabled"),
        intern!(py, "blocking_sync"),
        intern!(py, "ipc_enabled"),
    ];
    match Options::flags(&OPTIONS, given, names) {
        Some([timing, blocking_sync, ipc]) if !(timing && ipc) => Ok(EventOptions {
            timing,
            blocking_sync,
            ipc,
        }),
        _ => options_general(function, given, names),
    }
}

/// As [`event_options`], for subclasses, dicts and invalid options.
#[cold]
#[inline(never)]
fn options_general(
    function: &str,
    given: &Bound<'_, PyAny>,
    names: [&Bound<'_, PyString>; 3],
) -> PyResult<EventOptions> {
    let options = Options::accept(function, &OPTIONS, Some(given))?;
    let mut flags = [false; 3];
    for (flag, name) in flags.iter_mut().zip(names) {
        *flag = options.get(name)?.unwrap_or(false);
    }
    let [timing, blocking_sync, ipc] = flags;
    if ipc && timing {
        return Err(PyTypeError::new_err(format!(
            "{function}() argument 'options' has both ipc_enabled and timing_enabled; an IPC event \
             cannot be timed"
        )));
    }
    Ok(EventOptions {
        timing,
        blocking_sync,
        ipc,
    })
}

#[pymethods]
impl PyEvent {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<PyEvent> {
        Err(PyRuntimeError::new_err(
            "Event cannot be instantiated; use Stream.record() or Device.create_event()",
        ))
    }

    /// Driver handle, a ``cuda.bindings.driver.CUevent``; 0 if the event was closed.
    #[doc = example!("cuda.core.Event.handle")]
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        handle_object(py, class::CUevent, self.address(py))
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.cell.is_closed(py)
    }

    /// Whether all work before the event is complete. True for an event that was never recorded.
    #[getter]
    fn is_done(&self, py: Python<'_>) -> PyResult<bool> {
        let event = self.lend(py)?;
        if symbols::keeps_gil() {
            return event.is_done().or_raise(py);
        }
        // SAFETY: the query touches no Python objects.
        unsafe { cpython::detached(|| event.is_done()) }.or_raise(py)
    }

    /// Whether the event records a timestamp.
    #[getter]
    fn is_timing_enabled(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.options(py)?.timing)
    }

    /// Whether :meth:`sync` blocks the thread instead of spinning.
    #[doc = example!("cuda.core.Event.is_blocking_sync")]
    #[getter]
    fn is_blocking_sync(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.options(py)?.blocking_sync)
    }

    /// Whether other processes can open the event.
    #[getter]
    fn is_ipc_enabled(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.options(py)?.ipc)
    }

    /// Deprecated alias of :attr:`is_blocking_sync`.
    #[getter]
    fn is_sync_busy_waited(&self, py: Python<'_>) -> PyResult<bool> {
        deprecated(
            py,
            c"Event.is_sync_busy_waited is deprecated; use Event.is_blocking_sync",
        )?;
        self.is_blocking_sync(py)
    }

    /// Descriptor with which another process opens the event by :meth:`from_ipc_descriptor`. It can be pickled.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The event was created without ``ipc_enabled``.
    #[doc = example!("cuda.core.Event.ipc_descriptor")]
    #[getter(ipc_descriptor)]
    fn descriptor(&self, py: Python<'_>) -> PyResult<Py<PyIpcEventDescriptor>> {
        let event = self.lend(py)?;
        if !event.options().ipc {
            return Err(PyRuntimeError::new_err(
                "this Event was created without ipc_enabled; other processes cannot open it",
            ));
        }
        let make = || {
            let handle = event.ipc_handle().or_raise(py)?;
            let blocking_sync = event.options().blocking_sync;
            Py::new(
                py,
                PyIpcEventDescriptor {
                    handle,
                    blocking_sync,
                },
            )
        };
        Ok(self.descriptor.get_or_try_init(py, make)?.clone_ref(py))
    }

    /// Deprecated alias of :attr:`ipc_descriptor`.
    #[pyo3(name = "get_ipc_descriptor")]
    fn older_descriptor(&self, py: Python<'_>) -> PyResult<Py<PyIpcEventDescriptor>> {
        deprecated(
            py,
            c"Event.get_ipc_descriptor() is deprecated; use Event.ipc_descriptor",
        )?;
        self.descriptor(py)
    }

    /// Opens an event that another process created with ``ipc_enabled``.
    ///
    /// Parameters
    /// ----------
    /// ipc_descriptor : IPCEventDescriptor
    ///     The other process's :attr:`ipc_descriptor`.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The driver refuses the descriptor: the event belongs to this process, or its creator destroyed it or exited.
    #[doc = example!("cuda.core.Event.from_ipc_descriptor")]
    #[classmethod]
    fn from_ipc_descriptor(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        ipc_descriptor: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyEvent>> {
        let Ok(given) = ipc_descriptor.cast::<PyIpcEventDescriptor>() else {
            return Err(PyTypeError::new_err(format!(
                "Event.from_ipc_descriptor() argument 'ipc_descriptor' is of type {}; expected an IPCEventDescriptor",
                ipc_descriptor.get_type().name()?
            )));
        };
        let descriptor = given.get();
        let device = device::current(py)?;
        let opened = py
            .detach(|| {
                let (_entered, context) = device.enter()?;
                Event::open(&context, &descriptor.handle, descriptor.blocking_sync)
            })
            .map_err(|error| {
                let raised = PyRuntimeError::new_err(format!(
                    "the event of another process could not be opened: {error}"
                ));
                raised.set_cause(py, Some(to_python(py, &error)));
                raised
            })?;
        let event = PyEvent::wrap(py, opened)?;
        // A new object: the cell is empty.
        let _ = event.get().descriptor.set(py, given.clone().unbind());
        Ok(event)
    }

    /// The device of the event.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<Py<PyDevice>> {
        device::object(py, self.lend(py)?.context().device())
    }

    /// The context of the event.
    #[getter]
    fn context(&self, py: Python<'_>) -> PyResult<Py<PyContext>> {
        PyContext::wrap(py, Context::clone(self.lend(py)?.context()))
    }

    /// Waits for all work before the event. Returns at once for an event that was never recorded.
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     Error of the completed work.
    /// KeyboardInterrupt
    ///     Ctrl-C ends the wait, on the main thread; the work goes on.
    #[doc = example!("cuda.core.Event.sync")]
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let event = self.lend(py)?;
        wait::for_event(py, &event)
    }

    /// Milliseconds between two recorded events.
    fn __sub__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        // Other classes may define the difference.
        let Ok(other) = other.cast::<PyEvent>() else {
            return Ok(py.NotImplemented());
        };
        let later = self.lend(py)?;
        let earlier = other.get().lend(py)?;
        match py.detach(|| later.milliseconds_since(&earlier)) {
            Ok(ms) => Ok(PyFloat::new(py, f64::from(ms)).into_any().unbind()),
            Err(Error::InvalidArgument {
                parameter, problem, ..
            }) => {
                let which = match parameter.as_str() {
                    "self" => "the later event",
                    "earlier" => "the earlier event",
                    _ => "one of the events",
                };
                let hint = if problem.contains("timing") {
                    "; create both with EventOptions(timing_enabled=True)"
                } else {
                    ""
                };
                Err(PyRuntimeError::new_err(format!(
                    "events cannot be subtracted: {which} {problem}{hint}"
                )))
            }
            Err(error) => Err(to_python(py, &error)),
        }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let py = other.py();
        other
            .cast::<PyEvent>()
            .is_ok_and(|other| self.address(py) == other.get().address(py))
    }

    fn __hash__(&self, py: Python<'_>) -> u64 {
        self.address(py) as u64
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<Event handle={:#x}>", self.address(py))
    }
}

/// `Event.close()`.
struct Close;

impl Method<0> for Close {
    type Class = PyEvent;
    type Receiver = Self::Class;
    const FUNCTION: &'static str = "Event.close";
    const NAME: &'static CStr = c"close";
    const TEXT: &'static CStr = c"close($self, /)
--

Releases the event: it is destroyed when no other object uses it.";
    const NAMES: [&'static str; 0] = [];

    fn known() -> &'static PyOnceLock<[Py<PyString>; 0]> {
        static KNOWN: PyOnceLock<[Py<PyString>; 0]> = PyOnceLock::new();
        &KNOWN
    }

    #[inline]
    fn call(slf: &Bound<'_, PyEvent>, []: [Option<&Bound<'_, PyAny>>; 0]) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        match slf.get().cell.close(py) {
            // Common case: equivalent to `drop_detached`, with fewer steps.
            Some(EventHandle::Unique(event)) => {
                // SAFETY: calls only the driver.
                unsafe { cpython::detached(|| event.destroy()) };
            }
            Some(event) => drop_detached(event),
            None => {}
        }
        Ok(py.None())
    }
}

fn deprecated(py: Python<'_>, text: &CStr) -> PyResult<()> {
    PyErr::warn(py, &py.get_type::<PyDeprecationWarning>(), text, 1)
}

/// Descriptor with which another process opens an :class:`Event`. It comes from :attr:`Event.ipc_descriptor` and can be
/// pickled.
#[pyclass(frozen, module = "cuda.core._event", name = "IPCEventDescriptor")]
pub struct PyIpcEventDescriptor {
    handle: IpcEventHandle,
    blocking_sync: bool,
}

#[pymethods]
impl PyIpcEventDescriptor {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyIpcEventDescriptor> {
        Err(PyRuntimeError::new_err(
            "IPCEventDescriptor cannot be instantiated; use Event.ipc_descriptor",
        ))
    }

    /// Unpickles a descriptor.
    #[classmethod]
    fn _restore(
        _class: &Bound<'_, PyType>,
        reserved: &[u8],
        blocking_sync: bool,
    ) -> PyResult<PyIpcEventDescriptor> {
        let bytes = reserved.try_into().map_err(|_| {
            PyValueError::new_err(format!(
                "IPCEventDescriptor is corrupt: expected 64 bytes, got {}",
                reserved.len()
            ))
        })?;
        Ok(PyIpcEventDescriptor {
            handle: IpcEventHandle { bytes },
            blocking_sync,
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let bytes = PyBytes::new(py, &this.handle.bytes);
        let make = py.get_type::<PyIpcEventDescriptor>().getattr("_restore")?;
        let arguments = (bytes, this.blocking_sync).into_pyobject(py)?;
        Ok((make, arguments).into_pyobject(py)?.into_any())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<PyIpcEventDescriptor>()
            .is_ok_and(|other| self.handle == other.get().handle)
    }
}

/// Adds the classes.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_class::<PyEvent>()?;
    method::add::<Close, 0>(core.py())?;
    // `a -= b` binds a float to `a`. A Rust `__isub__` could only modify the event.
    let class = core.py().get_type::<PyEvent>();
    class.setattr("__isub__", class.getattr("__sub__")?)?;
    core.add_class::<PyIpcEventDescriptor>()
}
