//! Events: a kernel that fails is an Xid error, as on a GPU. Events of other processes are not seen, because each process
//! has devices of its own.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use cupyrite_sys::nvml::{nvmlDevice_t, nvmlEventData_st, nvmlReturn_t};
use parking_lot::Mutex;

use super::device::{all, by_handle, handle_of};
use super::{Res, nvml_entry_points, put};
use crate::driver::{Code, faults};

const INVALID: nvmlReturn_t = nvmlReturn_t::NVML_ERROR_INVALID_ARGUMENT;

/// `nvmlEventTypeXidCriticalError`, the only type of this device.
const XID_CRITICAL_ERROR: u64 = 8;

/// Xid 31, an MMU fault, and Xid 13, any other exception of a kernel.
const XID_MMU_FAULT: u64 = 31;
const XID_EXCEPTION: u64 = 13;

/// The instance id that means "no instance": the device is not partitioned.
const NO_INSTANCE: u32 = u32::MAX;

/// The high bits of every handle of a set; no mapped address has them.
const TAG: u64 = 0x00C0_4E56_4553_0000;

/// One registration: events of that device that are newer than the fault of that number.
struct Registration {
    device: u8,
    seen: u64,
}

/// Event sets by handle.
type EventSets = HashMap<u64, Vec<Registration>>;

/// The sets, and the number of sets created so far.
static SETS: Mutex<Option<(EventSets, u64)>> = Mutex::new(None);

fn with_sets<T>(f: impl FnOnce(&mut EventSets, &mut u64) -> T) -> T {
    let mut sets = SETS.lock();
    let (sets, created) = sets.get_or_insert_default();
    f(sets, created)
}

fn create(out: u64) -> Res {
    if out == 0 {
        return Err(INVALID);
    }
    let handle = with_sets(|sets, created| {
        *created += 1;
        sets.insert(TAG + *created, Vec::new());
        TAG + *created
    });
    put(out, handle).inspect_err(|_| {
        with_sets(|sets, _| sets.remove(&handle));
    })
}

fn register(device: u64, types: u64, set: u64) -> Res {
    let device = by_handle(device)?.index;
    // Read before the sets are locked: `wait` locks them while it holds the faults.
    let seen = faults::newest();
    with_sets(|sets, _| {
        let registrations = sets.get_mut(&set).ok_or(INVALID)?;
        if types & !XID_CRITICAL_ERROR != 0 {
            return Err(nvmlReturn_t::NVML_ERROR_NOT_SUPPORTED);
        }
        if types != 0 && registrations.iter().all(|r| r.device != device) {
            registrations.push(Registration { device, seen });
        }
        Ok(())
    })
}

fn xid(code: Code) -> u64 {
    match code {
        Code::ILLEGAL_ADDRESS => XID_MMU_FAULT,
        _ => XID_EXCEPTION,
    }
}

fn wait(set: u64, out: u64, timeout: u32) -> Res {
    if out == 0 {
        return Err(INVALID);
    }
    let known = with_sets(|sets, _| sets.contains_key(&set));
    if !known {
        return Err(INVALID);
    }
    let deadline = Instant::now() + Duration::from_millis(timeout.into());
    let devices = all()?;
    let of =
        |fault: &faults::DeviceFault| devices.iter().find(|device| device.ordinal == fault.device);
    // A fault is delivered once per set, also to waits of several threads.
    let fault = faults::wait(Some(deadline), |fault| {
        with_sets(|sets, _| {
            let index = of(fault)?.index;
            let of_device = sets.get_mut(&set)?.iter_mut();
            let registration = of_device
                .filter(|r| r.device == index)
                .find(|r| r.seen < fault.number)?;
            registration.seen = fault.number;
            Some(())
        })
        .is_some()
    })
    .ok_or(nvmlReturn_t::NVML_ERROR_TIMEOUT)?;
    let device = of(&fault).ok_or(nvmlReturn_t::NVML_ERROR_UNKNOWN)?;
    put(
        out,
        nvmlEventData_st {
            device: handle_of(device) as nvmlDevice_t,
            eventType: XID_CRITICAL_ERROR,
            eventData: xid(fault.code),
            gpuInstanceId: NO_INSTANCE,
            computeInstanceId: NO_INSTANCE,
        },
    )
}

nvml_entry_points! {
    fn set_create "nvmlEventSetCreate" (out: u64) { create(out) }
    fn set_free "nvmlEventSetFree" (set: u64) {
        with_sets(|sets, _| sets.remove(&set)).map(|_| ()).ok_or(INVALID)
    }
    fn supported_types "nvmlDeviceGetSupportedEventTypes" (device: u64, out: u64) {
        by_handle(device)?;
        put(out, XID_CRITICAL_ERROR)
    }
    fn register_events "nvmlDeviceRegisterEvents" (device: u64, types: u64, set: u64) { register(device, types, set) }
    fn set_wait "nvmlEventSetWait" (set: u64, out: u64, timeout: u32) { wait(set, out, timeout) }
    fn set_wait_v2 "nvmlEventSetWait_v2" (set: u64, out: u64, timeout: u32) { wait(set, out, timeout) }
}
