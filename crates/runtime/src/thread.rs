//! Per-thread state of the runtime: device, last error, bound context.

use std::cell::{Cell, RefCell};

use crate::errors::Error;

thread_local! {
    static LAST_ERROR: Cell<Error> = const { Cell::new(Error::SUCCESS) };
    static DEVICE: Cell<Option<i32>> = const { Cell::new(None) };
    static VALID_DEVICES: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
    static BOUND: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

/// Sets the error that `cudaGetLastError` returns. Ignored while the thread's locals are destroyed.
pub(crate) fn set_last_error(error: Error) {
    let _ = LAST_ERROR.try_with(|e| e.set(error));
}

/// The code of the last failed call on this thread.
pub(crate) fn last_error() -> Error {
    LAST_ERROR.try_with(Cell::get).unwrap_or(Error::SUCCESS)
}

/// Returns and clears [`last_error`].
pub(crate) fn take_last_error() -> Error {
    LAST_ERROR
        .try_with(|e| e.replace(Error::SUCCESS))
        .unwrap_or(Error::SUCCESS)
}

/// The device selected with `cudaSetDevice`.
pub(crate) fn device() -> Option<i32> {
    DEVICE.try_with(Cell::get).unwrap_or(None)
}

/// Sets the selected device.
pub(crate) fn set_device(device: i32) {
    let _ = DEVICE.try_with(|d| d.set(Some(device)));
}

/// Devices to use if none is selected, in order of preference; empty for all.
pub(crate) fn valid_devices() -> Vec<i32> {
    VALID_DEVICES
        .try_with(|v| v.try_borrow().map(|v| v.clone()).unwrap_or_default())
        .unwrap_or_default()
}

/// Sets [`valid_devices`].
pub(crate) fn set_valid_devices(devices: Vec<i32>) {
    let _ = VALID_DEVICES.try_with(|v| v.replace(devices));
}

/// The context last validated on this thread, and the epoch (`context::epoch`) of the validation.
pub(crate) fn bound() -> (usize, u64) {
    BOUND.try_with(Cell::get).unwrap_or((0, 0))
}

/// Sets [`bound`].
pub(crate) fn set_bound(context: usize, epoch: u64) {
    let _ = BOUND.try_with(|b| b.set((context, epoch)));
}
