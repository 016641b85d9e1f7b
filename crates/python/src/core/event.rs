//! `Event` and what other processes open one with.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use cupyrite::{Context, Error, Event, EventOptions, IpcEventHandle, UniqueEvent};
use pyo3::exceptions::{PyDeprecationWarning, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};

use crate::core::closable::{Detached, Lent, Slot, closed, drop_detached};
use crate::core::context::{PyContext, handle_object};
use crate::core::device;
use crate::core::device::PyDevice;
use crate::core::errors::{OrRaise, to_python};
use crate::core::options::flags::FlagPlaces;
use crate::core::options::{OptionClass, Options};
use crate::cpython::freelist::{Fresh, Parts, Recycled};
use crate::cpython::method;
use crate::cpython::method::Method;
use crate::generated::ids::class::driver as class;

/// A point in a stream that can be waited for and, where it was made for that, timed.
///
/// Events come from :meth:`Stream.record` and :meth:`Device.create_event`. ``end - start`` is the time between two
/// recorded events in milliseconds.
///
/// See `Event management <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EVENT.html>`_.
#[pyclass(frozen, weakref, subclass, module = "cuda.core._event", name = "Event")]
pub struct PyEvent {
    slot: Slot<Owned>,
    /// What other processes open it with, once somebody asked; what it was opened with, if it is another process's.
    descriptor: PyOnceLock<Py<PyIpcEventDescriptor>>,
    /// Whether it was recorded, or is another process's: counts for events that other processes open, whose meaning must
    /// not change behind their backs.
    recorded: AtomicBool,
}

/// What an event's shell has: the event itself until somebody else needs it, too.
enum Owned {
    Alone(UniqueEvent),
    Shared(Event),
    /// Nothing, while the one is made the other.
    Neither,
}

impl Owned {
    #[inline]
    fn handle(&self) -> usize {
        match self {
            Owned::Alone(event) => event.handle().addr(),
            Owned::Shared(event) => event.handle().addr(),
            Owned::Neither => 0,
        }
    }

    #[inline]
    fn options(&self) -> EventOptions {
        match self {
            Owned::Alone(event) => event.options(),
            Owned::Shared(event) => event.options(),
            Owned::Neither => EventOptions::default(),
        }
    }

    /// A clone of the event, which is shared from then on.
    #[inline]
    fn share(&mut self) -> Option<Event> {
        if matches!(self, Owned::Alone(_))
            && let Owned::Alone(event) = std::mem::replace(self, Owned::Neither)
        {
            *self = Owned::Shared(event.share());
        }
        match self {
            Owned::Shared(event) => Some(event.clone()),
            _ => None,
        }
    }
}

static OBJECTS: Fresh<PyEvent> = Fresh::new();

// SAFETY: a closed slot and a cell that nothing was put into own nothing. The objects refer to their class alone, which stays,
// and to a descriptor that refers to nothing. (A program may give an event another class, by `__class__`, and have that one
// refer to the event: such a class stays, too.)
unsafe impl Recycled for PyEvent {
    #[inline(always)]
    fn fresh() -> &'static Fresh<PyEvent> {
        &OBJECTS
    }

    #[inline(always)]
    fn is_tracked(&self) -> bool {
        false
    }

    #[inline(always)]
    fn is_spent(&mut self) -> bool {
        self.slot.is_over() && self.descriptor.get_mut().is_none()
    }
}

/// What the shell of an event is made of.
struct Shell {
    event: Owned,
    recorded: bool,
}

// SAFETY: plain moves.
unsafe impl Parts<PyEvent> for Shell {
    #[inline(always)]
    fn value(self) -> PyEvent {
        PyEvent {
            slot: Slot::new(self.event),
            descriptor: PyOnceLock::new(),
            recorded: AtomicBool::new(self.recorded),
        }
    }
}

/// The record of an event, which is its first one where that matters.
pub struct FirstRecord<'a>(Option<&'a AtomicBool>);

impl FirstRecord<'_> {
    /// It was recorded.
    pub fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for FirstRecord<'_> {
    fn drop(&mut self) {
        if let Some(recorded) = self.0 {
            // The driver refused.
            recorded.store(false, Ordering::Relaxed);
        }
    }
}

impl PyEvent {
    /// The shell of an event.
    ///
    /// # Errors
    ///
    /// Memory.
    #[inline]
    pub fn wrap(py: Python<'_>, event: Event) -> PyResult<Py<PyEvent>> {
        PyEvent::wrap_as(py, event.options().ipc, true, Owned::Shared(event))
    }

    /// The shell of an event that is yet to be recorded.
    ///
    /// # Errors
    ///
    /// Memory.
    #[inline]
    pub fn wrap_unrecorded(py: Python<'_>, event: UniqueEvent) -> PyResult<Py<PyEvent>> {
        PyEvent::wrap_as(py, event.options().ipc, false, Owned::Alone(event))
    }

    #[inline(always)]
    fn wrap_as(py: Python<'_>, ipc: bool, recorded: bool, event: Owned) -> PyResult<Py<PyEvent>> {
        if ipc {
            // Teaches the picklers of multiprocessing.
            crate::core::memory::ipc::module(py)?;
        }
        OBJECTS.make(py, Shell { event, recorded })
    }

    /// The event.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where it was closed.
    #[inline]
    pub fn event(&self, py: Python<'_>) -> PyResult<Event> {
        match self.slot.change(py, Owned::share) {
            Some(Some(event)) => Ok(event),
            _ => Err(closed("Event")),
        }
    }

    /// The event, for the time of a call.
    ///
    /// # Errors
    ///
    /// As [`PyEvent::event`].
    #[inline]
    pub fn lend<'py>(&self, py: Python<'py>) -> PyResult<Lent<'py, Event>> {
        Ok(Lent::new(py, self.event(py)?))
    }

    /// What recording it begins with.
    ///
    /// # Errors
    ///
    /// `TypeError` for an event that other processes open and that was recorded before.
    #[inline]
    pub fn first_record(&self, py: Python<'_>) -> PyResult<FirstRecord<'_>> {
        if self.slot.read(py, |event| event.options().ipc) != Some(true) {
            return Ok(FirstRecord(None));
        }
        if self.recorded.swap(true, Ordering::Relaxed) {
            return Err(PyTypeError::new_err(
                "Stream.record() argument 'event' was made with ipc_enabled and is recorded: what other processes wait for \
                 does not change; make another one by Stream.record(options=EventOptions(ipc_enabled=True))",
            ));
        }
        Ok(FirstRecord(Some(&self.recorded)))
    }

    /// How it was made.
    fn options(&self, py: Python<'_>) -> PyResult<EventOptions> {
        self.slot
            .read(py, Owned::options)
            .ok_or_else(|| closed("Event"))
    }

    fn address(&self, py: Python<'_>) -> usize {
        self.slot.read(py, Owned::handle).unwrap_or(0)
    }
}

impl Drop for PyEvent {
    fn drop(&mut self) {
        if let Some(event) = self.slot.end() {
            drop_detached(event);
        }
    }
}

/// An `Event` argument.
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
static PLACES: FlagPlaces<3> = FlagPlaces::new();

/// `EventOptions` as given to `function`.
///
/// # Errors
///
/// `TypeError`, which names what is wrong.
#[inline(always)]
pub fn event_options(function: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<EventOptions> {
    let Some(given) = given else {
        return Ok(EventOptions::default());
    };
    match PLACES.read(given) {
        Some([timing, blocking_sync, ipc]) if !(timing && ipc) => Ok(EventOptions {
            timing,
            blocking_sync,
            ipc,
        }),
        _ => plain_options(function, given),
    }
}

/// The same where the fields have to be looked up.
#[inline(never)]
fn plain_options(function: &str, given: &Bound<'_, PyAny>) -> PyResult<EventOptions> {
    let py = given.py();
    let names = [
        intern!(py, "timing_enabled"),
        intern!(py, "blocking_sync"),
        intern!(py, "ipc_enabled"),
    ];
    PLACES.find(&OPTIONS, names);
    match Options::flags(&OPTIONS, given, names) {
        Some([timing, blocking_sync, ipc]) if !(timing && ipc) => Ok(EventOptions {
            timing,
            blocking_sync,
            ipc,
        }),
        _ => read_options(function, given, names),
    }
}

/// The same for options that are not plain, or wrong.
#[cold]
#[inline(never)]
fn read_options(
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
            "{function}() argument 'options' asks for ipc_enabled and timing_enabled; an event that other processes \
             open cannot be timed"
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
            "an Event is not made directly: use Stream.record() or Device.create_event()",
        ))
    }

    /// The driver's handle, a ``cuda.bindings.driver.CUevent``; 0 once the event was closed.
    #[getter]
    fn handle(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        handle_object(py, class::CUevent, self.address(py))
    }

    /// Whether :meth:`close` was called.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.slot.is_closed(py)
    }

    /// Whether everything before the event is done. An event that was never recorded is done.
    #[getter]
    fn is_done(&self, py: Python<'_>) -> PyResult<bool> {
        let event = self.lend(py)?;
        py.detach(|| event.is_done()).or_raise(py)
    }

    /// Whether the event can be timed.
    #[getter]
    fn is_timing_enabled(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.options(py)?.timing)
    }

    /// Whether a thread that waits for the event sleeps instead of spinning.
    #[getter]
    fn is_blocking_sync(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.options(py)?.blocking_sync)
    }

    /// Whether other processes can open the event.
    #[getter]
    fn is_ipc_enabled(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.options(py)?.ipc)
    }

    /// The older name of :attr:`is_blocking_sync`.
    #[getter]
    fn is_sync_busy_waited(&self, py: Python<'_>) -> PyResult<bool> {
        deprecated(
            py,
            c"Event.is_sync_busy_waited is deprecated; use Event.is_blocking_sync",
        )?;
        self.is_blocking_sync(py)
    }

    /// What another process opens the event with, by :meth:`from_ipc_descriptor`. It can be pickled.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The event was made without ``ipc_enabled``.
    #[getter(ipc_descriptor)]
    fn descriptor(&self, py: Python<'_>) -> PyResult<Py<PyIpcEventDescriptor>> {
        let event = self.lend(py)?;
        if !event.options().ipc {
            return Err(PyRuntimeError::new_err(
                "this Event was made without ipc_enabled; other processes cannot open it",
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

    /// The older spelling of :attr:`ipc_descriptor`.
    #[pyo3(name = "get_ipc_descriptor")]
    fn older_descriptor(&self, py: Python<'_>) -> PyResult<Py<PyIpcEventDescriptor>> {
        deprecated(
            py,
            c"Event.get_ipc_descriptor() is deprecated; use Event.ipc_descriptor",
        )?;
        self.descriptor(py)
    }

    /// Opens an event that another process made with ``ipc_enabled``.
    ///
    /// Parameters
    /// ----------
    /// ipc_descriptor : IPCEventDescriptor
    ///     The other process's :attr:`ipc_descriptor`.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     The driver refuses it: the event is this process's own, or its maker has destroyed it or has ended.
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
                    "the event of the other process could not be opened: {error}"
                ));
                raised.set_cause(py, Some(to_python(py, &error)));
                raised
            })?;
        let event = PyEvent::wrap(py, opened)?;
        // It is new: nobody has set it before.
        let _ = event.get().descriptor.set(py, given.clone().unbind());
        Ok(event)
    }

    /// The device that the event belongs to.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<Py<PyDevice>> {
        device::object(py, self.lend(py)?.context().device())
    }

    /// The context that the event belongs to.
    #[getter]
    fn context(&self, py: Python<'_>) -> PyResult<Py<PyContext>> {
        PyContext::wrap(py, Context::clone(self.lend(py)?.context()))
    }

    /// Waits until everything before the event is done. An event that was never recorded is done.
    ///
    /// Raises
    /// ------
    /// CUDAError
    ///     What the work raised.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let event = self.lend(py)?;
        py.detach(|| event.synchronize()).or_raise(py)
    }

    /// Milliseconds between two recorded events.
    fn __sub__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<f64> {
        let later = self.lend(py)?;
        let earlier = accept(other, "Event.__sub__", "other")?.get().lend(py)?;
        match py.detach(|| later.milliseconds_since(&earlier)) {
            Ok(ms) => Ok(f64::from(ms)),
            Err(Error::InvalidArgument {
                parameter, problem, ..
            }) => {
                let which = match parameter.as_str() {
                    "self" => "the later event",
                    "earlier" => "the earlier event",
                    _ => "one of the events",
                };
                let hint = if problem.contains("timing") {
                    "; make both with EventOptions(timing_enabled=True)"
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
    const FUNCTION: &'static str = "Event.close";
    const NAME: &'static CStr = c"close";
    const TEXT: &'static CStr = c"close($self, /)
--

Lets go of the event: it is destroyed when nothing uses it any more.";
    const NAMES: [&'static str; 0] = [];

    fn known() -> &'static PyOnceLock<[Py<PyString>; 0]> {
        static KNOWN: PyOnceLock<[Py<PyString>; 0]> = PyOnceLock::new();
        &KNOWN
    }

    #[inline]
    fn call(slf: &Bound<'_, PyEvent>, []: [Option<&Bound<'_, PyAny>>; 0]) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        match slf.get().slot.close(py) {
            // Most events: as `drop_detached` does it, in fewer steps.
            Some(Owned::Alone(event)) => {
                // SAFETY: nothing but the driver is called.
                let _detached = unsafe { Detached::new(py) };
                event.destroy();
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

/// What another process opens an :class:`Event` with. It comes from :attr:`Event.ipc_descriptor` and can be pickled.
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
            "an IPCEventDescriptor is not made directly: take Event.ipc_descriptor",
        ))
    }

    /// The descriptor with these bytes: what pickling calls.
    #[classmethod]
    fn _restore(
        _class: &Bound<'_, PyType>,
        reserved: &[u8],
        blocking_sync: bool,
    ) -> PyResult<PyIpcEventDescriptor> {
        let bytes = reserved.try_into().map_err(|_| {
            PyValueError::new_err(format!(
                "an IPCEventDescriptor has 64 bytes, not {}",
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
    // `a -= b` makes a float of `a`. What is written as `__isub__` could only change the event itself.
    let class = core.py().get_type::<PyEvent>();
    class.setattr("__isub__", class.getattr("__sub__")?)?;
    core.add_class::<PyIpcEventDescriptor>()
}
