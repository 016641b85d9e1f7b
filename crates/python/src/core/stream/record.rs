//! `Stream.record`.

use std::ffi::CStr;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

use super::PyStream;
use crate::core::errors::OrRaise;
use crate::core::event;
use crate::core::event::PyEvent;
use crate::cpython;
use crate::cpython::method::Method;

/// `Stream.record(event=None, options=None)`.
pub struct Record;

impl Method<2> for Record {
    type Class = PyStream;
    type Receiver = Self::Class;
    const FUNCTION: &'static str = "Stream.record";
    const NAME: &'static CStr = c"record";
    const TEXT: &'static CStr = with_example!(
        "record($self, /, event=None, options=None)
--

Records an event after the queued work.

Parameters
----------
event : Event, optional
    The event to record. Default: a new event.
options : EventOptions or dict, optional
    Options of a new event; ignored with `event`.

Returns
-------
Event
    `event`, or the new event.",
        "cuda.core.Stream.record"
    );
    const NAMES: [&'static str; 2] = ["event", "options"];

    fn known() -> &'static PyOnceLock<[Py<PyString>; 2]> {
        static KNOWN: PyOnceLock<[Py<PyString>; 2]> = PyOnceLock::new();
        &KNOWN
    }

    #[inline]
    fn call(
        slf: &Bound<'_, PyStream>,
        [event, options]: [Option<&Bound<'_, PyAny>>; 2],
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let stream = slf.get().lend(py)?;
        if let Some(given) = event {
            let given = event::accept(given, "Stream.record", "event")?;
            let event = given.get().lend(py)?;
            let first = given.get().first_record(py)?;
            // SAFETY: recording touches no Python objects.
            unsafe { cpython::detached(|| event.record(&stream)) }.or_raise(py)?;
            first.done();
            return Ok(given.clone().into_any().unbind());
        }
        let options = event::event_options("Stream.record", options)?;
        let created = py.detach(|| stream.record_with(&options)).or_raise(py)?;
        Ok(PyEvent::wrap(py, created)?.into_any())
    }
}
