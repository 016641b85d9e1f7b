//! Asynchronous notifications (CUDA driver API, `cuDeviceRegisterAsyncNotification`).
//!
//! The only kind reports that a process uses more memory than its budget. An allocation beyond the budget of the CPU device
//! fails, so that it never sends one, as GPUs on Linux.

use std::sync::Arc;

use crate::driver::device;
use crate::driver::entry::caller_memory::{is_executable_address, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id};
use crate::driver::entry::logs::refuse;

/// A registered callback.
struct Registration {
    device: i32,
}

static REGISTERED: HandleTable<Registration> = HandleTable::new(HandleKind::AsyncNotification);

driver_entry_points! {
    fn register "cuDeviceRegisterAsyncNotification" (device: i32, callback: u64, _data: u64, out: u64) {
        non_null(out)?;
        let device = device::by_ordinal(device)?.ordinal;
        if !is_executable_address(callback) {
            return refuse(Code::INVALID_VALUE, || format!("callbackFunc={callback:#x}: not the address of a function"));
        }
        let handle = REGISTERED.insert(fresh_id(), Arc::new(Registration { device }));
        put(out, handle).inspect_err(|_| { let _ = REGISTERED.remove(handle); })
    }
    fn unregister "cuDeviceUnregisterAsyncNotification" (device: i32, callback: u64) {
        let device = device::by_ordinal(device)?.ordinal;
        match REGISTERED.find(callback) {
            Some(known) if known.device == device => REGISTERED.remove(callback).map(|_| ()),
            Some(known) => refuse(Code::INVALID_VALUE, || {
                format!("device={device}: the callback is registered on device {}", known.device)
            }),
            None => refuse(Code::INVALID_VALUE, || format!("callback={callback:#x}: not registered")),
        }
    }
}
