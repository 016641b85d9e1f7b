//! Batched operations on buffers: `copy_batch`, `prefetch_batch`, `discard_batch`, `discard_prefetch_batch`.

use cupyrite::managed::{self, MemoryRange};
use cupyrite::{
    CopyOptions, CopyRange, MemoryLocation, Stream, copy_batch_async, enter_for_default_stream,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySequence, PyTuple};

use crate::core::device;
use crate::core::errors::OrRaise;
use crate::core::graph::arguments::retain_buffers;
use crate::core::memory::buffer::PyBuffer;
use crate::core::memory::copy_operand;
use crate::core::memory::copy_operand::Operand;
use crate::core::memory::keep_alive;
use crate::core::memory::location;
use crate::core::memory::managed::not_managed;
use crate::core::stream;

/// The elements of a sequence argument.
fn elements<'py>(
    given: &Bound<'py, PyAny>,
    what: &dyn Fn() -> String,
    of: &str,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if given.cast::<PyList>().is_err()
        && given.cast::<PyTuple>().is_err()
        && given.cast::<PySequence>().is_err()
    {
        return Err(PyTypeError::new_err(format!(
            "{} is of type {}; expected a list, tuple or other sequence of {of}",
            what(),
            given.get_type().name()?
        )));
    }
    given.try_iter()?.collect()
}

/// The buffers of an argument, pinned for the lifetime of the result.
fn buffers<'py>(
    given: &Bound<'py, PyAny>,
    function: &str,
    parameter: &str,
) -> PyResult<Vec<Operand<'py>>> {
    let what = || format!("{function}() argument '{parameter}'");
    let given = elements(given, &what, "Buffers")?;
    if given.is_empty() {
        return Err(PyValueError::new_err(format!(
            "{} is empty; expected at least one Buffer",
            what()
        )));
    }
    let one = |(i, element): (usize, &Bound<'py, PyAny>)| match element.cast::<PyBuffer>() {
        Ok(buffer) => Operand::of_buffer(buffer),
        Err(_) => Err(PyTypeError::new_err(format!(
            "{}: element {i} is of type {}; expected a Buffer",
            what(),
            element.get_type().name()?
        ))),
    };
    given.iter().enumerate().map(one).collect()
}

/// Runs a stream-ordered operation on the memory of buffers and records the stream as a user.
fn run(
    py: Python<'_>,
    operands: &[&Operand<'_>],
    stream: &Stream,
    body: impl FnOnce() -> cupyrite::Result<()> + Send,
) -> PyResult<()> {
    keep_alive::drop_completed(py);
    let device = if stream.is_default() {
        let known = operands
            .iter()
            .filter_map(|operand| operand.buffer()?.device(py));
        match known.into_iter().next() {
            Some(device) => Some(device),
            None => Some(device::current(py)?),
        }
    } else {
        None
    };
    for operand in operands {
        if let Some(buffer) = operand.buffer() {
            buffer.note_use_on(py, stream, device);
        }
    }
    if stream.is_of_builder() {
        let buffers: Vec<&Bound<'_, PyBuffer>> = operands
            .iter()
            .filter_map(|operand| operand.buffer_object())
            .collect();
        retain_buffers(stream, &buffers)?;
    }
    py.detach(|| {
        let _entered = device
            .map(|device| enter_for_default_stream(stream, device))
            .transpose()?;
        body()
    })
    .or_raise(py)
}

/// Copies buffers into buffers, stream-ordered. The copies of one batch are not ordered among themselves.
///
/// Parameters
/// ----------
/// stream : Stream
///     The stream.
/// srcs : sequence of Buffer
///     The sources.
/// dsts : sequence of Buffer
///     The destinations, one of equal size for each source.
/// options : CopyOptions or sequence of CopyOptions, optional
///     Options for all copies, or one per copy.
///
/// See `cuMemcpyBatchAsync <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEM.html>`_. Drivers without this
/// function and default streams copy one buffer at a time.
#[doc = example!("cuda.core.utils.copy_batch")]
#[pyfunction]
#[pyo3(signature = (stream, srcs, dsts, *, options=None))]
fn copy_batch<'py>(
    stream: &Bound<'py, PyAny>,
    srcs: &Bound<'py, PyAny>,
    dsts: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyAny>>,
) -> PyResult<()> {
    const FUNCTION: &str = "copy_batch";
    let py = stream.py();
    let stream = stream::lend(stream, FUNCTION, "stream", false)?;
    let sources = buffers(srcs, FUNCTION, "srcs")?;
    let destinations = buffers(dsts, FUNCTION, "dsts")?;
    if sources.len() != destinations.len() {
        return Err(PyValueError::new_err(format!(
            "copy_batch(): 'srcs' has {} buffers, 'dsts' {}; expected equal numbers",
            sources.len(),
            destinations.len()
        )));
    }
    let pairs = || sources.iter().zip(&destinations);
    let invalid = pairs().position(|(source, destination)| source.size() != destination.size());
    if let Some(i) = invalid {
        return Err(PyValueError::new_err(format!(
            "copy_batch(): at index {i} the source has {} bytes, the destination {}; both must have the same size",
            sources[i].size(),
            destinations[i].size()
        )));
    }
    let options = batch_options(options, sources.len())?;
    let copies: Vec<CopyRange> = pairs()
        .map(|(source, destination)| (destination.address(), source.address(), source.size()))
        .collect();
    let all: Vec<&Operand<'_>> = sources.iter().chain(&destinations).collect();
    run(py, &all, &stream, || {
        // SAFETY: both sides are pinned for the call and freed after this work (`note_use`). The caller of
        // `from_handle` guarantees that its memory is valid; overlapping copies are documented as unordered.
        unsafe { copy_batch_async(&copies, &options, &stream) }
    })
}

fn batch_options(given: Option<&Bound<'_, PyAny>>, count: usize) -> PyResult<Vec<CopyOptions>> {
    let Some(given) = given.filter(|given| !given.is_none()) else {
        return Ok(vec![CopyOptions::default()]);
    };
    let what = || "copy_batch() argument 'options'".to_owned();
    if given.cast::<PySequence>().is_err() {
        return Ok(vec![copy_operand::copy_options("copy_batch", Some(given))?]);
    }
    let given = elements(given, &what, "CopyOptions")?;
    if given.len() != count {
        return Err(PyValueError::new_err(format!(
            "{} has {} elements for {count} buffers; expected one CopyOptions, or one per buffer",
            what(),
            given.len()
        )));
    }
    let one = |element: &Bound<'_, PyAny>| {
        if element.is_none() {
            return Err(PyTypeError::new_err(format!(
                "an element of {} is None; expected CopyOptions",
                what()
            )));
        }
        copy_operand::copy_options("copy_batch", Some(element))
    };
    given.iter().map(one).collect()
}

/// Managed-memory buffers of an argument, and their ranges.
fn managed_buffers<'py>(
    given: &Bound<'py, PyAny>,
    function: &str,
) -> PyResult<(Vec<Operand<'py>>, Vec<MemoryRange>)> {
    let py = given.py();
    let operands = buffers(given, function, "buffers")?;
    for buffer in operands.iter().filter_map(Operand::buffer) {
        let (_, _, managed) = buffer.accessible(py)?;
        if !managed {
            return Err(not_managed(&format!("{function}()")));
        }
    }
    let ranges = operands.iter().map(|o| (o.address(), o.size())).collect();
    Ok((operands, ranges))
}

/// Name of the locations argument in messages.
fn locations_of(function: &str) -> String {
    format!("{function}() argument 'locations'")
}

/// One location for all buffers, or one per buffer.
fn places(given: &Bound<'_, PyAny>, function: &str, count: usize) -> PyResult<Vec<MemoryLocation>> {
    let what = || locations_of(function);
    if given.cast::<PySequence>().is_err() {
        return Ok(vec![location::required(given, what)?]);
    }
    let given = elements(given, &what, "Devices and Hosts")?;
    if given.len() != count {
        return Err(PyValueError::new_err(format!(
            "{} has {} locations for {count} buffers; expected one location, or one per buffer",
            what(),
            given.len()
        )));
    }
    let element = || format!("an element of {}", what());
    given
        .iter()
        .map(|place| location::required(place, element))
        .collect()
}

/// Prefetches managed memory, stream-ordered.
///
/// Parameters
/// ----------
/// stream : Stream
///     The stream.
/// buffers : sequence of Buffer
///     Buffers of managed memory.
/// locations : Device, Host or a sequence of them
///     The target: one location for all buffers, or one per buffer.
///
/// See `cuMemPrefetchBatchAsync <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__UNIFIED.html>`_. Drivers
/// without this function and default streams prefetch one buffer at a time.
#[doc = example!("cuda.core.utils.prefetch_batch")]
#[pyfunction]
fn prefetch_batch<'py>(
    stream: &Bound<'py, PyAny>,
    buffers: &Bound<'py, PyAny>,
    locations: &Bound<'py, PyAny>,
) -> PyResult<()> {
    const FUNCTION: &str = "prefetch_batch";
    let py = stream.py();
    let stream = stream::lend(stream, FUNCTION, "stream", false)?;
    let (operands, ranges) = managed_buffers(buffers, FUNCTION)?;
    let places = places(locations, FUNCTION, ranges.len())?;
    let all: Vec<&Operand<'_>> = operands.iter().collect();
    run(py, &all, &stream, || {
        managed::prefetch_async(&ranges, &places, &stream)
            .map_err(|error| location::explain(error, &places, &locations_of(FUNCTION)))
    })
}

/// Discards the contents of managed memory, stream-ordered: they are undefined until written again, and need not be
/// migrated.
///
/// Parameters
/// ----------
/// stream : Stream
///     The stream; not the legacy default stream (``CUDA_ERROR_INVALID_VALUE``).
/// buffers : sequence of Buffer
///     Buffers of managed memory.
///
/// See `cuMemDiscardBatchAsync <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__UNIFIED.html>`_.
#[doc = example!("cuda.core.utils.discard_batch")]
#[pyfunction]
fn discard_batch<'py>(stream: &Bound<'py, PyAny>, buffers: &Bound<'py, PyAny>) -> PyResult<()> {
    const FUNCTION: &str = "discard_batch";
    let py = stream.py();
    let stream = stream::lend(stream, FUNCTION, "stream", false)?;
    let (operands, ranges) = managed_buffers(buffers, FUNCTION)?;
    let all: Vec<&Operand<'_>> = operands.iter().collect();
    run(py, &all, &stream, || {
        // SAFETY: the documentation tells the caller that the contents become undefined.
        unsafe { managed::discard_async(&ranges, &stream) }
    })
}

/// Combines `discard_batch` and `prefetch_batch`, for memory that is about to be overwritten at the target.
///
/// Parameters
/// ----------
/// stream : Stream
///     The stream; not the legacy default stream (``CUDA_ERROR_INVALID_VALUE``).
/// buffers : sequence of Buffer
///     Buffers of managed memory.
/// locations : Device, Host or a sequence of them
///     The target: one location for all buffers, or one per buffer.
///
/// See `cuMemDiscardAndPrefetchBatchAsync <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__UNIFIED.html>`_.
#[doc = example!("cuda.core.utils.discard_prefetch_batch")]
#[pyfunction]
fn discard_prefetch_batch<'py>(
    stream: &Bound<'py, PyAny>,
    buffers: &Bound<'py, PyAny>,
    locations: &Bound<'py, PyAny>,
) -> PyResult<()> {
    const FUNCTION: &str = "discard_prefetch_batch";
    let py = stream.py();
    let stream = stream::lend(stream, FUNCTION, "stream", false)?;
    let (operands, ranges) = managed_buffers(buffers, FUNCTION)?;
    let places = places(locations, FUNCTION, ranges.len())?;
    let all: Vec<&Operand<'_>> = operands.iter().collect();
    run(py, &all, &stream, || {
        // SAFETY: as in `discard_batch`.
        unsafe { managed::discard_and_prefetch_async(&ranges, &places, &stream) }
            .map_err(|error| location::explain(error, &places, &locations_of(FUNCTION)))
    })
}

/// Adds the functions.
///
/// # Errors
///
/// Whatever Python raises.
pub fn init(core: &Bound<'_, PyModule>) -> PyResult<()> {
    core.add_function(wrap_pyfunction!(copy_batch, core)?)?;
    core.add_function(wrap_pyfunction!(prefetch_batch, core)?)?;
    core.add_function(wrap_pyfunction!(discard_batch, core)?)?;
    core.add_function(wrap_pyfunction!(discard_prefetch_batch, core)?)
}
