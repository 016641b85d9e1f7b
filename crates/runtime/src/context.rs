//! Selection of the context in which a call works.
//!
//! The runtime has no contexts of its own: it works in the driver's current context, also if the program created it
//! with the driver API. On a thread without one, it retains the primary context of the thread's device, once per
//! process and device, and makes it current (CUDA runtime API, "Initialization" and "Interactions between the CUDA
//! Runtime and Driver API").

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cupyrite_sys::driver::{CUcontext, CUdevice};
use parking_lot::{Mutex, MutexGuard};

use crate::checked::{get_array, put};
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::thread;

/// A primary context that this runtime has used.
struct Primary {
    handle: usize,
    device: CUdevice,
    /// Whether this runtime retains it. After `cudaDeviceReset` it may still be current on threads; the next call
    /// retains it again.
    retained: bool,
}

static PRIMARIES: Mutex<Vec<Primary>> = Mutex::new(Vec::new());

/// Counts resets. A thread's cached context is valid only for the epoch in which it was checked.
static EPOCH: AtomicU64 = AtomicU64::new(1);

fn primaries() -> MutexGuard<'static, Vec<Primary>> {
    PRIMARIES.lock()
}

/// Initialises the driver once. In a child forked afterwards, every call fails.
pub(crate) fn ready() -> Res {
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.load(Ordering::Relaxed) {
        cu!(cuInit(0))?;
        DONE.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// Number of devices; at least one.
pub(crate) fn device_count() -> Res<i32> {
    ready()?;
    let mut count = 0;
    cu!(cuDeviceGetCount(&mut count))?;
    if count == 0 {
        Err(Error::NO_DEVICE)
    } else {
        Ok(count)
    }
}

/// The driver's device of that ordinal.
pub(crate) fn device(ordinal: i32) -> Res<CUdevice> {
    ready()?;
    let mut device = CUdevice::default();
    cu!(cuDeviceGet(&mut device, ordinal))?;
    Ok(device)
}

/// The driver's current context as a number; 0 if no context is current.
fn driver_current() -> Res<usize> {
    ready()?;
    let mut context: CUcontext = std::ptr::null_mut();
    cu!(cuCtxGetCurrent(&mut context))?;
    Ok(context as usize)
}

/// The calling thread's device: that of its context, else the selected one, else the first valid one.
pub(crate) fn current_device() -> Res<i32> {
    if driver_current()? != 0 {
        let mut device = CUdevice::default();
        cu!(cuCtxGetDevice(&mut device))?;
        return Ok(device);
    }
    match thread::device() {
        Some(device) => Ok(device),
        None => {
            device_count()?;
            Ok(thread::valid_devices().first().copied().unwrap_or(0))
        }
    }
}

/// Ensures that a context is current, as every call that uses a device does.
pub(crate) fn current() -> Res {
    let epoch = EPOCH.load(Ordering::Acquire);
    let context = driver_current()?;
    if context != 0 {
        if thread::bound() == (context, epoch) {
            return Ok(());
        }
        let lost = primaries()
            .iter()
            .find(|p| p.handle == context && !p.retained)
            .map(|p| p.device);
        let Some(device) = lost else {
            thread::set_bound(context, epoch);
            return Ok(());
        };
        return bind(device);
    }
    if let Some(device) = thread::device() {
        return bind(device);
    }
    device_count()?;
    let valid = thread::valid_devices();
    let mut outcome = Err(Error::DEVICES_UNAVAILABLE);
    for &ordinal in if valid.is_empty() { &[0][..] } else { &valid } {
        outcome = device(ordinal).and_then(bind);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// The primary context of `device`, retained if necessary.
pub(crate) fn primary(device: CUdevice) -> Res<usize> {
    let held = |primaries: &[Primary]| {
        let primary = primaries.iter().find(|p| p.device == device && p.retained);
        primary.map(|p| p.handle)
    };
    if let Some(handle) = held(&primaries()) {
        return Ok(handle);
    }
    // Outside the lock: creating a context is slow, and threads may create those of different devices in parallel.
    let mut context: CUcontext = std::ptr::null_mut();
    cu!(cuDevicePrimaryCtxRetain(&mut context, device))?;
    let handle = context as usize;
    let mut primaries = primaries();
    if let Some(handle) = held(&primaries) {
        // Another thread has retained it in the meantime; one reference is enough.
        drop(primaries);
        cu!(cuDevicePrimaryCtxRelease(device))?;
        return Ok(handle);
    }
    primaries.retain(|p| p.handle != handle);
    primaries.push(Primary {
        handle,
        device,
        retained: true,
    });
    Ok(handle)
}

/// Whether the current context was created with the driver API.
pub(crate) fn is_foreign() -> Res<bool> {
    let context = driver_current()?;
    Ok(context != 0 && primaries().iter().all(|p| p.handle != context))
}

/// Whether the driver's context is a retained primary context.
pub(crate) fn is_primary(context: usize) -> bool {
    primaries()
        .iter()
        .any(|p| p.handle == context && p.retained)
}

/// Makes the primary context of `device` current on this thread.
pub(crate) fn bind(device: CUdevice) -> Res {
    let epoch = EPOCH.load(Ordering::Acquire);
    let handle = primary(device)?;
    cu!(cuCtxSetCurrent(handle as CUcontext))?;
    thread::set_bound(handle, epoch);
    Ok(())
}

/// Resets the primary context of `device`; the next call recreates it.
pub(crate) fn reset(device: CUdevice) -> Res {
    let held = {
        let mut primaries = primaries();
        let held = primaries
            .iter_mut()
            .find(|p| p.device == device && p.retained);
        held.map(|p| p.retained = false).is_some()
    };
    EPOCH.fetch_add(1, Ordering::AcqRel);
    if held {
        cu!(cuDevicePrimaryCtxRelease(device))?;
    }
    cu!(cuDevicePrimaryCtxReset(device))
}

runtime_entry_points! {
    fn get_device_count "cudaGetDeviceCount" (out: u64) {
        crate::checked::non_null(out)?;
        put(out, device_count()?)
    }
    fn get_device "cudaGetDevice" (out: u64) {
        crate::checked::non_null(out)?;
        put(out, current_device()?)
    }
    fn set_device "cudaSetDevice" (ordinal: i32) {
        let device = device(ordinal)?;
        thread::set_device(ordinal);
        bind(device)
    }
    fn set_valid_devices "cudaSetValidDevices" (list: u64, len: i32) {
        let count = device_count()?;
        if len < 0 || len > count || (len > 0 && list == 0) {
            return Err(Error::INVALID_VALUE);
        }
        let devices = get_array::<i32>(list, len as usize)?;
        if devices.iter().any(|d| !(0..count).contains(d)) {
            return Err(Error::INVALID_DEVICE);
        }
        thread::set_valid_devices(devices);
        Ok(())
    }
    fn device_reset "cudaDeviceReset" () {
        reset(current_device()?)
    }
    fn device_synchronize "cudaDeviceSynchronize" () {
        current()?;
        cu!(cuCtxSynchronize())
    }
}
