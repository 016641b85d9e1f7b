//! Access to the driver through the runtime: its entry points, tables, log, and interprocess handles.

use std::ffi::c_void;

use cupyrite_sys::driver::{
    CUasyncCallback, CUdeviceptr, CUdriverProcAddressQueryResult, CUevent, CUipcEventHandle,
    CUipcMemHandle, CUlogsCallback, CUuuid,
};
use cupyrite_sys::loader::per_thread_default_stream;
use cupyrite_sys::runtime::{cudaIpcEventHandle_t, cudaIpcMemHandle_t};

use crate::checked::{get, get_text, non_null, put, put_optional};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::managed::same_layout;
use crate::version::VERSION;

/// The driver's values for `cudaEnableLegacyStream` and `cudaEnablePerThreadDefaultStream`.
const LEGACY_STREAM: u64 = 1;
const PER_THREAD_STREAM: u64 = 2;

/// The result of `cudaGetDriverEntryPoint`: the address, and the status in `status_out`.
fn entry_point(
    name: u64,
    out: u64,
    version: i32,
    flags: u64,
    status_out: u64,
    per_thread: bool,
) -> Res {
    non_null(out)?;
    let name = get_text(name)?;
    let flags = match flags {
        // The default is the variant that the program was built for.
        0 if per_thread || per_thread_default_stream() => PER_THREAD_STREAM,
        0 => LEGACY_STREAM,
        LEGACY_STREAM | PER_THREAD_STREAM => flags,
        _ => return Err(Error::INVALID_VALUE),
    };
    context::ready()?;
    let mut address: *mut c_void = std::ptr::null_mut();
    let mut status = CUdriverProcAddressQueryResult::default();
    let outcome = cu!(cuGetProcAddress(
        name.as_ptr(),
        &mut address,
        version,
        flags,
        &mut status
    ));
    put(out, address as u64)?;
    put_optional(status_out, status)?;
    // A missing entry point is reported in `status_out` only.
    match outcome {
        Err(Error::SYMBOL_NOT_FOUND) if status_out != 0 => Ok(()),
        outcome => outcome,
    }
}

/// The result of `cudaGetDriverEntryPoint` of the runtime with this version.
pub(crate) fn newest_entry_point(
    name: u64,
    out: u64,
    version: i32,
    flags: u64,
    status_out: u64,
    per_thread: bool,
) -> Res {
    // The driver refuses versions newer than its own.
    let mut newest = 0;
    cu!(cuDriverGetVersion(&mut newest))?;
    let version = version.min(newest);
    entry_point(name, out, version, flags, status_out, per_thread)
}

runtime_entry_points! {
    fn get_entry_point "cudaGetDriverEntryPoint" | "cudaGetDriverEntryPoint_ptsz"
        (name: u64, out: u64, flags: u64, status: u64) {
        newest_entry_point(name, out, VERSION, flags, status, PER_THREAD)
    }
    fn get_entry_point_by_version "cudaGetDriverEntryPointByVersion" | "cudaGetDriverEntryPointByVersion_ptsz"
        (name: u64, out: u64, version: u32, flags: u64, status: u64) {
        let version = i32::try_from(version).map_err(|_| Error::INVALID_VALUE)?;
        entry_point(name, out, version, flags, status, PER_THREAD)
    }
    fn get_export_table "cudaGetExportTable" (out: u64, id: u64) {
        non_null(out)?;
        let id = get::<CUuuid>(id)?;
        context::ready()?;
        let mut table = std::ptr::null();
        cu!(cuGetExportTable(&mut table, &id))?;
        put(out, table as u64)
    }
    fn logs_register "cudaLogsRegisterCallback" (callback: u64, data: u64, out: u64) {
        non_null(callback)?;
        context::ready()?;
        // SAFETY: a nullable function pointer has the size of an address, and every address is a valid value as long as
        // it is not called; only the driver calls it, as the caller requested.
        let callback = unsafe { std::mem::transmute::<usize, CUlogsCallback>(callback as usize) };
        cu!(cuLogsRegisterCallback(callback, data as *mut c_void, out as *mut _))
    }
    fn logs_unregister "cudaLogsUnregisterCallback" (callback: u64) {
        context::ready()?;
        cu!(cuLogsUnregisterCallback(callback as *mut _))
    }
    fn logs_current "cudaLogsCurrent" (out: u64, flags: u32) {
        non_null(out)?;
        context::ready()?;
        cu!(cuLogsCurrent(out as *mut _, flags))
    }
    fn logs_dump_to_file "cudaLogsDumpToFile" (iterator: u64, path: u64, flags: u32) {
        let path = get_text(path)?;
        context::ready()?;
        cu!(cuLogsDumpToFile(iterator as *mut _, path.as_ptr(), flags))
    }
    fn logs_dump_to_memory "cudaLogsDumpToMemory" (iterator: u64, buffer: u64, size: u64, flags: u32) {
        non_null(buffer)?;
        non_null(size)?;
        context::ready()?;
        cu!(cuLogsDumpToMemory(iterator as *mut _, buffer as *mut _, size as *mut usize, flags))
    }
    fn async_notification_register "cudaDeviceRegisterAsyncNotification"
        (ordinal: i32, callback: u64, data: u64, out: u64) {
        non_null(callback)?;
        non_null(out)?;
        let device = context::device(ordinal)?;
        // SAFETY: a nullable function pointer has the size of an address, and every address is a valid value as long as
        // it is not called; only the driver calls it, as the caller requested. The structure passed to it has the same
        // layout in both libraries.
        let callback = unsafe { std::mem::transmute::<usize, CUasyncCallback>(callback as usize) };
        cu!(cuDeviceRegisterAsyncNotification(device, callback, data as *mut c_void, out as *mut _))
    }
    fn async_notification_unregister "cudaDeviceUnregisterAsyncNotification" (ordinal: i32, callback: u64) {
        let device = context::device(ordinal)?;
        cu!(cuDeviceUnregisterAsyncNotification(device, callback as *mut _))
    }
    fn ipc_get_event "cudaIpcGetEventHandle" (out: u64, event: u64) {
        non_null(out)?;
        context::current()?;
        let mut handle = CUipcEventHandle::default();
        cu!(cuIpcGetEventHandle(&mut handle, event as CUevent))?;
        put(out, handle)
    }
    fn ipc_open_event "cudaIpcOpenEventHandle" (out: u64, handle: cudaIpcEventHandle_t) {
        non_null(out)?;
        context::current()?;
        let mut event: CUevent = std::ptr::null_mut();
        cu!(cuIpcOpenEventHandle(&mut event, same_layout(handle)))?;
        put(out, event as u64)
    }
    fn ipc_get_memory "cudaIpcGetMemHandle" (out: u64, address: u64) {
        non_null(out)?;
        context::current()?;
        let mut handle = CUipcMemHandle::default();
        cu!(cuIpcGetMemHandle(&mut handle, address))?;
        put(out, handle)
    }
    fn ipc_open_memory "cudaIpcOpenMemHandle" (out: u64, handle: cudaIpcMemHandle_t, flags: u32) {
        non_null(out)?;
        context::current()?;
        let mut address: CUdeviceptr = 0;
        cu!(cuIpcOpenMemHandle(&mut address, same_layout(handle), flags))?;
        put(out, address)
    }
    fn ipc_close_memory "cudaIpcCloseMemHandle" (address: u64) {
        context::current()?;
        cu!(cuIpcCloseMemHandle(address))
    }
}
