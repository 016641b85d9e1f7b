//! The primary context of each device.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::Context;
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;

/// A device's primary context and its retain count.
pub(super) struct Primary {
    pub(super) context: Arc<Context>,
    pub(super) retained: u64,
    pub(super) flags: u32,
}

/// The primary context of a device, initially inactive.
///
/// # Errors
/// `INVALID_DEVICE` if there is no such device.
pub(super) fn of(ordinal: i32) -> Res<&'static Mutex<Primary>> {
    static PRIMARIES: OnceLock<Vec<Mutex<Primary>>> = OnceLock::new();
    let new = |ordinal| {
        Mutex::new(Primary {
            context: Context::new_primary(ordinal),
            retained: 0,
            flags: 0,
        })
    };
    let devices = device::all()?;
    let primaries =
        PRIMARIES.get_or_init(|| devices.iter().map(|device| new(device.ordinal)).collect());
    usize::try_from(ordinal)
        .ok()
        .and_then(|index| primaries.get(index))
        .ok_or(Code::INVALID_DEVICE)
}
