//! Creation of streams from `StreamOptions`.

use cupyrite::{Context, Device, Error, Stream, StreamOptions};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use crate::core::errors::OrRaise;
use crate::core::numbers;
use crate::core::options::{OptionClass, Options};

static OPTIONS: OptionClass = OptionClass::new("cuda.core._stream", "StreamOptions");

/// Creates a stream of a device with `StreamOptions` given to `function`.
///
/// # Errors
///
/// `TypeError` or `ValueError` for invalid options; driver errors.
pub fn create(
    device: Device,
    function: &str,
    given: Option<&Bound<'_, PyAny>>,
    py: Python<'_>,
) -> PyResult<Stream> {
    let chosen = accept_options(function, given, py)?;
    let created = py.detach(|| device.create_stream_with(&chosen.options));
    chosen.finish(created, py, || device.active_context())
}

/// As [`create`], of a green context.
///
/// # Errors
///
/// As [`create`]; `ValueError` for a blocking stream.
pub fn create_in_green(
    context: &Context,
    given: Option<&Bound<'_, PyAny>>,
    py: Python<'_>,
) -> PyResult<Stream> {
    let chosen = accept_options("Context.create_stream", given, py)?;
    if !chosen.options.nonblocking {
        return Err(PyValueError::new_err(
            "StreamOptions.nonblocking is False; streams of green contexts are non-blocking",
        ));
    }
    let created = py.detach(|| context.create_green_stream(&chosen.options));
    chosen.finish(created, py, || Ok(context.clone()))
}

/// `StreamOptions`, and the priority as it was given.
struct Chosen<'py> {
    options: StreamOptions,
    priority: Option<Bound<'py, PyAny>>,
}

fn accept_options<'py>(
    function: &str,
    given: Option<&Bound<'py, PyAny>>,
    py: Python<'py>,
) -> PyResult<Chosen<'py>> {
    let options = Options::accept(function, &OPTIONS, given)?;
    let field = intern!(py, "priority");
    let given_priority = options.value(field)?;
    let priority = match &given_priority {
        None => None,
        Some(value) => Some(match value.extract::<i32>() {
            Ok(priority) => priority,
            // An invalid priority; the error below lists the valid ones.
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => i32::MAX,
            Err(error) => return Err(options.type_error(field, value, "an int or None", error)),
        }),
    };
    let chosen = StreamOptions {
        // None has always counted as false.
        nonblocking: match given {
            Some(given) if !given.is_none() => options.flag(intern!(py, "nonblocking"), false)?,
            _ => true,
        },
        priority,
    };
    Ok(Chosen {
        options: chosen,
        priority: given_priority,
    })
}

impl Chosen<'_> {
    /// The created stream; the error for an invalid priority lists the valid ones.
    fn finish(
        &self,
        created: cupyrite::Result<Stream>,
        py: Python<'_>,
        context: impl FnOnce() -> cupyrite::Result<Context> + Send,
    ) -> PyResult<Stream> {
        if let (Err(Error::InvalidArgument { parameter, .. }), Some(value)) =
            (&created, &self.priority)
            && parameter == "priority"
        {
            let (least, greatest) = py
                .detach(|| Stream::priority_range(&context()?))
                .or_raise(py)?;
            return Err(PyValueError::new_err(format!(
                "StreamOptions.priority is {}; this device has priorities from {greatest} (highest) to {least} (lowest)",
                numbers::short_repr(value)
            )));
        }
        created.or_raise(py)
    }
}
