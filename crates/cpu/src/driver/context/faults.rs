//! Errors that made a context unusable, for NVML's events.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::driver::entry::errors::Code;

/// Number of faults that are kept for waits that begin later.
const KEPT: usize = 256;

/// One fault. Faults are numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceFault {
    pub(crate) number: u64,
    pub(crate) device: i32,
    pub(crate) code: Code,
}

static FAULTS: Mutex<VecDeque<DeviceFault>> = Mutex::new(VecDeque::new());
static CHANGED: Condvar = Condvar::new();

/// Records that a kernel of a device failed.
pub(crate) fn record(device: i32, code: Code) {
    let mut faults = FAULTS.lock();
    let number = faults.back().map_or(1, |last| last.number + 1);
    if faults.len() == KEPT {
        faults.pop_front();
    }
    faults.push_back(DeviceFault {
        number,
        device,
        code,
    });
    CHANGED.notify_all();
}

/// Number of the newest fault; 0 if there was none.
pub(crate) fn newest() -> u64 {
    FAULTS.lock().back().map_or(0, |last| last.number)
}

/// The first fault that `wanted` selects; waits for it until the deadline.
pub(crate) fn wait(
    deadline: Option<Instant>,
    mut wanted: impl FnMut(&DeviceFault) -> bool,
) -> Option<DeviceFault> {
    let mut faults = FAULTS.lock();
    loop {
        if let Some(fault) = faults.iter().find(|fault| wanted(fault)) {
            return Some(*fault);
        }
        let left = match deadline {
            Some(deadline) => deadline.checked_duration_since(Instant::now())?,
            None => Duration::from_secs(3600),
        };
        CHANGED.wait_for(&mut faults, left);
    }
}
