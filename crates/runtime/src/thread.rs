//! What a host thread of the runtime remembers: its device, its last error, the context it was bound to.

use std::cell::{Cell, RefCell};

use crate::errors::Error;

thread_local! {
    static LAST_ERROR: Cell<Error> = const { Cell::new(Error::SUCCESS) };
    static DEVICE: Cell<Option<i32>> = const { Cell::new(None) };
    static VALID_DEVICES: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
    static BOUND: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

/// Makes `error` what `cudaGetLastError` will say. On a thread that is ending nobody can ask any more.
pub(crate) fn set_last_error(error: Error) {
    let _ = LAST_ERROR.try_with(|e| e.set(error));
}

/// What the last failed call on this thread answered.
pub(crate) fn last_error() -> Error {
    LAST_ERROR.try_with(Cell::get).unwrap_or(Error::SUCCESS)
}

/// [`last_error`], forgotten at once.
pub(crate) fn take_last_error() -> Error {
    LAST_ERROR
        .try_with(|e| e.replace(Error::SUCCESS))
        .unwrap_or(Error::SUCCESS)
}

/// The device this thread chose with `cudaSetDevice`.
pub(crate) fn device() -> Option<i32> {
    DEVICE.try_with(Cell::get).unwrap_or(None)
}

/// Remembers the device this thread chose.
pub(crate) fn set_device(device: i32) {
    let _ = DEVICE.try_with(|d| d.set(Some(device)));
}

/// The devices that may be taken where none was chosen, in order of preference; empty for all.
pub(crate) fn valid_devices() -> Vec<i32> {
    VALID_DEVICES
        .try_with(|v| v.try_borrow().map(|v| v.clone()).unwrap_or_default())
        .unwrap_or_default()
}

/// Replaces [`valid_devices`].
pub(crate) fn set_valid_devices(devices: Vec<i32>) {
    let _ = VALID_DEVICES.try_with(|v| v.replace(devices));
}

/// The context last found good on this thread, and the epoch (`context::epoch`) in which it was.
pub(crate) fn bound() -> (usize, u64) {
    BOUND.try_with(Cell::get).unwrap_or((0, 0))
}

/// Remembers [`bound`].
pub(crate) fn set_bound(context: usize, epoch: u64) {
    let _ = BOUND.try_with(|b| b.set((context, epoch)));
}
