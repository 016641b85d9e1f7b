//! Facts of a buffer that DLPack exports and imports of it share.

use std::ffi::CStr;

use cupyrite::dlpack::{DeviceType, DlDevice};
use cupyrite::{Device, RelaxedCapture, Stream};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use crate::core::errors::OrRaise;
use crate::core::memory::buffer::PyBuffer;

/// Name of an unversioned capsule.
pub const NAME: &CStr = c"dltensor";
/// Name of a versioned capsule.
pub const NAME_VERSIONED: &CStr = c"dltensor_versioned";

/// DLPack device of a buffer's memory.
///
/// # Errors
///
/// `RuntimeError` for a closed buffer, `BufferError` if neither host nor device can access the memory.
pub fn device_of(buffer: &PyBuffer, py: Python<'_>) -> PyResult<DlDevice> {
    buffer.dl_device(|| find_device(buffer, py))
}

fn find_device(buffer: &PyBuffer, py: Python<'_>) -> PyResult<DlDevice> {
    let (on_device, on_host, managed) = buffer.accessible(py)?;
    let (kind, number) = match (on_device, on_host) {
        (true, false) => {
            let number = buffer.device_number(py)?;
            (DeviceType::CUDA, i32::try_from(number).unwrap_or(0))
        }
        (true, true) if managed => (DeviceType::CUDA_MANAGED, 0),
        (true, true) => (DeviceType::CUDA_HOST, 0),
        (false, true) => (DeviceType::CPU, 0),
        (false, false) => {
            return Err(PyBufferError::new_err(
                "this Buffer is neither host-accessible nor device-accessible according to its memory resource",
            ));
        }
    };
    Ok(DlDevice { kind, number })
}

/// Size of a buffer as a DLPack extent.
///
/// # Errors
///
/// `BufferError` for sizes beyond 2**63 - 1.
pub fn dl_extent(bytes: usize) -> PyResult<i64> {
    i64::try_from(bytes).map_err(|_| {
        PyBufferError::new_err(format!(
            "this Buffer has {bytes} bytes; DLPack supports at most 2**63 - 1"
        ))
    })
}

/// Makes the consumer's stream wait for the known uses of the memory; -1: no synchronization.
///
/// # Errors
///
/// Driver errors.
pub fn synchronize_consumer(
    buffer: &PyBuffer,
    py: Python<'_>,
    handle: i64,
    kind: DeviceType,
) -> PyResult<()> {
    if handle == -1 || kind != DeviceType::CUDA {
        return Ok(());
    }
    let Some((device, streams)) = buffer.streams(py) else {
        return Ok(());
    };
    let handle = usize::try_from(handle.max(1)).unwrap_or(1);
    // SAFETY: the consumer guarantees a valid stream handle.
    let consumer = unsafe { Stream::from_handle(std::ptr::with_exposed_provenance_mut(handle)) };
    // Detached: may drop the last reference to a stream, which destroys it.
    let waited = py.detach(move || wait_for_all(device, &consumer, streams));
    waited.or_raise(py)
}

fn wait_for_all(
    device: Device,
    consumer: &Stream,
    mut streams: Vec<Stream>,
) -> cupyrite::Result<()> {
    streams.retain(|stream| stream != consumer);
    if streams.is_empty() {
        return Ok(());
    }
    let relaxed = RelaxedCapture::enter();
    // A query costs less than an event. Capturing streams must not be queried, nor default streams during a capture.
    let is_idle = |stream: &Stream| {
        !stream.is_default()
            && matches!(cupyrite::is_capturing(stream), Ok(false))
            && matches!(stream.is_done(), Ok(true))
    };
    streams.retain(|stream| !is_idle(stream));
    drop(relaxed);
    if streams.is_empty() {
        return Ok(());
    }
    let _entered = device.enter()?;
    cupyrite::wait_for_streams(consumer, &streams)
}
