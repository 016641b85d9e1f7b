//! Streams and their host functions.
//!
//! A `cudaStream_t` is the driver's `CUstream`. Only the null stream needs conversion: it is the legacy default stream
//! in one variant of a function, and the per-thread default stream in the other.

use std::ffi::c_void;

use cupyrite_sys::driver::{CUdevice, CUhostFn, CUlaunchAttributeID, CUstream, CUstreamCallback};
use cupyrite_sys::loader;

use crate::checked::{non_null, put, put_optional};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::Error;

/// `cudaStreamLegacy`.
const LEGACY_HANDLE: u64 = 1;
/// `cudaStreamPerThread`.
const PER_THREAD_HANDLE: u64 = 2;

/// The driver's handle for a stream passed to this variant of a function. The null stream is replaced by an explicit
/// handle if the driver's functions were resolved in the other variant.
pub(crate) fn handle<const PER_THREAD: bool>(stream: u64) -> CUstream {
    let spelled = match (stream, PER_THREAD) {
        (0, _) if PER_THREAD == loader::per_thread_default_stream() => 0,
        (0, true) => PER_THREAD_HANDLE,
        (0, false) => LEGACY_HANDLE,
        (stream, _) => stream,
    };
    spelled as CUstream
}

/// A stream that can be destroyed, which excludes the default streams.
fn owned(stream: u64) -> Result<CUstream, Error> {
    match stream {
        0 | LEGACY_HANDLE | PER_THREAD_HANDLE => Err(Error::INVALID_RESOURCE_HANDLE),
        stream => Ok(stream as CUstream),
    }
}

/// A code address or null; the driver validates it before calling it.
fn host_function(address: u64) -> CUhostFn {
    // SAFETY: a nullable function pointer has the size of an address, and every address is a valid value as long as it
    // is not called; only the driver calls it, in a stream, as the caller requested.
    unsafe { std::mem::transmute::<usize, CUhostFn>(address as usize) }
}

fn create(out: u64, flags: u32, priority: i32) -> crate::errors::Res {
    non_null(out)?;
    context::current()?;
    let mut stream: CUstream = std::ptr::null_mut();
    cu!(cuStreamCreateWithPriority(&mut stream, flags, priority))?;
    put(out, stream as u64).inspect_err(|_| {
        let _ = cu!(cuStreamDestroy(stream));
    })
}

runtime_entry_points! {
    fn stream_create "cudaStreamCreate" (out: u64) {
        create(out, 0, 0)
    }
    fn stream_create_with_flags "cudaStreamCreateWithFlags" (out: u64, flags: u32) {
        create(out, flags, 0)
    }
    fn stream_create_with_priority "cudaStreamCreateWithPriority" (out: u64, flags: u32, priority: i32) {
        create(out, flags, priority)
    }
    fn stream_destroy "cudaStreamDestroy" (stream: u64) {
        context::current()?;
        let stream = owned(stream)?;
        cu!(cuStreamDestroy(stream))
    }
    fn stream_synchronize "cudaStreamSynchronize" | "cudaStreamSynchronize_ptsz" (stream: u64) {
        context::current()?;
        cu!(cuStreamSynchronize(handle::<PER_THREAD>(stream)))
    }
    fn stream_query "cudaStreamQuery" | "cudaStreamQuery_ptsz" (stream: u64) {
        context::current()?;
        cu!(cuStreamQuery(handle::<PER_THREAD>(stream)))
    }
    fn stream_wait_event "cudaStreamWaitEvent" | "cudaStreamWaitEvent_ptsz" (stream: u64, event: u64, flags: u32) {
        context::current()?;
        cu!(cuStreamWaitEvent(handle::<PER_THREAD>(stream), event as *mut _, flags))
    }
    fn stream_get_flags "cudaStreamGetFlags" | "cudaStreamGetFlags_ptsz" (stream: u64, out: u64) {
        non_null(out)?;
        context::current()?;
        let mut flags = 0;
        cu!(cuStreamGetFlags(handle::<PER_THREAD>(stream), &mut flags))?;
        put(out, flags)
    }
    fn stream_get_priority "cudaStreamGetPriority" | "cudaStreamGetPriority_ptsz" (stream: u64, out: u64) {
        non_null(out)?;
        context::current()?;
        let mut priority = 0;
        cu!(cuStreamGetPriority(handle::<PER_THREAD>(stream), &mut priority))?;
        put(out, priority)
    }
    fn stream_get_id "cudaStreamGetId" | "cudaStreamGetId_ptsz" (stream: u64, out: u64) {
        non_null(out)?;
        context::current()?;
        let mut id = 0u64;
        cu!(cuStreamGetId(handle::<PER_THREAD>(stream), &mut id))?;
        put(out, id)
    }
    fn stream_get_device "cudaStreamGetDevice" | "cudaStreamGetDevice_ptsz" (stream: u64, out: u64) {
        non_null(out)?;
        context::current()?;
        let mut device = CUdevice::default();
        cu!(cuStreamGetDevice(handle::<PER_THREAD>(stream), &mut device))?;
        put(out, device)
    }
    fn stream_get_attribute "cudaStreamGetAttribute" | "cudaStreamGetAttribute_ptsz"
        (stream: u64, attribute: u32, out: u64) {
        non_null(out)?;
        context::current()?;
        let attribute = CUlaunchAttributeID(attribute as _);
        cu!(cuStreamGetAttribute(handle::<PER_THREAD>(stream), attribute, out as *mut _))
    }
    fn stream_set_attribute "cudaStreamSetAttribute" | "cudaStreamSetAttribute_ptsz"
        (stream: u64, attribute: u32, value: u64) {
        non_null(value)?;
        context::current()?;
        let attribute = CUlaunchAttributeID(attribute as _);
        cu!(cuStreamSetAttribute(handle::<PER_THREAD>(stream), attribute, value as *const _))
    }
    fn stream_copy_attributes "cudaStreamCopyAttributes" | "cudaStreamCopyAttributes_ptsz" (to: u64, from: u64) {
        context::current()?;
        cu!(cuStreamCopyAttributes(handle::<PER_THREAD>(to), handle::<PER_THREAD>(from)))
    }
    fn stream_attach "cudaStreamAttachMemAsync" | "cudaStreamAttachMemAsync_ptsz"
        (stream: u64, pointer: u64, length: usize, flags: u32) {
        context::current()?;
        cu!(cuStreamAttachMemAsync(handle::<PER_THREAD>(stream), pointer, length, flags))
    }
    fn stream_add_callback "cudaStreamAddCallback" | "cudaStreamAddCallback_ptsz"
        (stream: u64, callback: u64, data: u64, flags: u32) {
        non_null(callback)?;
        context::current()?;
        // The callback types differ only in the name of the status type, and every driver code that can be passed has
        // the same number in the runtime.
        // SAFETY: a nullable function pointer has the size of an address, and every address is a valid value as long as
        // it is not called; only the driver calls it, in a stream, as the caller requested.
        let callback = unsafe { std::mem::transmute::<usize, CUstreamCallback>(callback as usize) };
        cu!(cuStreamAddCallback(handle::<PER_THREAD>(stream), callback, data as *mut c_void, flags))
    }
    fn launch_host_func "cudaLaunchHostFunc" | "cudaLaunchHostFunc_ptsz" (stream: u64, function: u64, data: u64) {
        non_null(function)?;
        context::current()?;
        cu!(cuLaunchHostFunc(handle::<PER_THREAD>(stream), host_function(function), data as *mut c_void))
    }
    fn launch_host_func_v2 "cudaLaunchHostFunc_v2" | "cudaLaunchHostFunc_v2_ptsz"
        (stream: u64, function: u64, data: u64, mode: u32) {
        non_null(function)?;
        context::current()?;
        let function = host_function(function);
        cu!(cuLaunchHostFunc_v2(handle::<PER_THREAD>(stream), function, data as *mut c_void, mode))
    }
    fn stream_priority_range "cudaDeviceGetStreamPriorityRange" (least: u64, greatest: u64) {
        context::current()?;
        let (mut low, mut high) = (0, 0);
        cu!(cuCtxGetStreamPriorityRange(&mut low, &mut high))?;
        put_optional(least, low)?;
        put_optional(greatest, high)
    }
}
