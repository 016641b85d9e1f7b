//! Execution contexts and device resources.
//!
//! An execution context is the primary context of a device, or a green context that [`create`] made. The structures of
//! resources are the driver's.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use cupyrite_sys::driver::{
    CU_DEV_SM_RESOURCE_GROUP_PARAMS, CUcontext, CUdevResource, CUdevResourceDesc,
    CUdevResourceType, CUdevice, CUevent, CUgreenCtx, CUstream,
};

use crate::checked::{non_null, put};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::graph::array;
use crate::stream;

static GREEN: LazyLock<Mutex<HashSet<u64>>> = LazyLock::new(Mutex::default);

/// The handles of the green contexts.
fn green_contexts() -> MutexGuard<'static, HashSet<u64>> {
    // A panic cannot leave the set half-changed.
    GREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An execution context.
#[derive(Clone, Copy)]
enum ExecutionContext {
    Green(CUgreenCtx),
    /// A primary context.
    Primary(CUcontext),
}

/// The execution context of a handle.
///
/// # Errors
/// `INVALID_RESOURCE_HANDLE` for any other value.
fn find(handle: u64) -> Res<ExecutionContext> {
    context::ready()?;
    if green_contexts().contains(&handle) {
        return Ok(ExecutionContext::Green(handle as CUgreenCtx));
    }
    if handle != 0 && context::is_primary(handle as usize) {
        return Ok(ExecutionContext::Primary(handle as CUcontext));
    }
    Err(Error::INVALID_RESOURCE_HANDLE)
}

/// The driver's context of an execution context.
pub(crate) fn driver_context(handle: u64) -> Res<CUcontext> {
    match find(handle)? {
        ExecutionContext::Primary(context) => Ok(context),
        ExecutionContext::Green(green) => {
            let mut context: CUcontext = std::ptr::null_mut();
            cu!(cuCtxFromGreenCtx(&mut context, green))?;
            Ok(context)
        }
    }
}

/// Runs `f` while the driver's context of an execution context is current.
fn within(handle: u64, f: impl FnOnce() -> Res) -> Res {
    cu!(cuCtxPushCurrent(driver_context(handle)?))?;
    let outcome = f();
    let mut popped: CUcontext = std::ptr::null_mut();
    cu!(cuCtxPopCurrent(&mut popped))?;
    outcome
}

fn create(out: u64, descriptor: u64, ordinal: i32, flags: u32) -> Res {
    /// The driver's green contexts get a default stream with this flag.
    const DEFAULT_STREAM: u32 = 1;
    non_null(out)?;
    if flags != 0 {
        return Err(Error::INVALID_VALUE);
    }
    let device = context::device(ordinal)?;
    context::primary(device)?;
    let mut green: CUgreenCtx = std::ptr::null_mut();
    let descriptor = descriptor as CUdevResourceDesc;
    cu!(cuGreenCtxCreate(
        &mut green,
        descriptor,
        device,
        DEFAULT_STREAM
    ))?;
    green_contexts().insert(green as u64);
    put(out, green as u64).inspect_err(|_| {
        let _ = destroy(green as u64);
    })
}

fn destroy(handle: u64) -> Res {
    if !green_contexts().remove(&handle) {
        return Err(Error::INVALID_RESOURCE_HANDLE);
    }
    cu!(cuGreenCtxDestroy(handle as CUgreenCtx))
}

fn create_stream(out: u64, handle: u64, flags: u32, priority: i32) -> Res {
    non_null(out)?;
    let mut stream: CUstream = std::ptr::null_mut();
    match find(handle)? {
        ExecutionContext::Green(green) => {
            cu!(cuGreenCtxStreamCreate(&mut stream, green, flags, priority))?;
        }
        ExecutionContext::Primary(_) => within(handle, || {
            cu!(cuStreamCreateWithPriority(&mut stream, flags, priority))
        })?,
    }
    put(out, stream as u64).inspect_err(|_| {
        let _ = cu!(cuStreamDestroy(stream));
    })
}

runtime_entry_points! {
    fn device_context "cudaDeviceGetExecutionCtx" (out: u64, device: i32) {
        non_null(out)?;
        put(out, context::primary(context::device(device)?)? as u64)
    }
    fn green_create "cudaGreenCtxCreate" (out: u64, descriptor: u64, device: i32, flags: u32) {
        create(out, descriptor, device, flags)
    }
    fn context_destroy "cudaExecutionCtxDestroy" (handle: u64) {
        destroy(handle)
    }
    fn context_resource "cudaExecutionCtxGetDevResource" (handle: u64, out: u64, kind: u32) {
        non_null(out)?;
        let out = array::<CUdevResource>(out);
        match find(handle)? {
            ExecutionContext::Green(green) => cu!(cuGreenCtxGetDevResource(green, out, CUdevResourceType(kind))),
            ExecutionContext::Primary(context) => cu!(cuCtxGetDevResource(context, out, CUdevResourceType(kind))),
        }
    }
    fn context_device "cudaExecutionCtxGetDevice" (out: u64, handle: u64) {
        non_null(out)?;
        let mut device = CUdevice::default();
        within(handle, || cu!(cuCtxGetDevice(&mut device)))?;
        put(out, device)
    }
    fn context_id "cudaExecutionCtxGetId" (handle: u64, out: u64) {
        non_null(out)?;
        let mut id = 0u64;
        match find(handle)? {
            ExecutionContext::Green(green) => cu!(cuGreenCtxGetId(green, &mut id))?,
            ExecutionContext::Primary(context) => cu!(cuCtxGetId(context, &mut id))?,
        }
        put(out, id)
    }
    fn context_stream "cudaExecutionCtxStreamCreate" (out: u64, handle: u64, flags: u32, priority: i32) {
        create_stream(out, handle, flags, priority)
    }
    fn context_synchronize "cudaExecutionCtxSynchronize" (handle: u64) {
        within(handle, || cu!(cuCtxSynchronize()))
    }
    fn context_record "cudaExecutionCtxRecordEvent" (handle: u64, event: u64) {
        match find(handle)? {
            ExecutionContext::Green(green) => cu!(cuGreenCtxRecordEvent(green, event as CUevent)),
            ExecutionContext::Primary(context) => cu!(cuCtxRecordEvent(context, event as CUevent)),
        }
    }
    fn context_wait "cudaExecutionCtxWaitEvent" (handle: u64, event: u64) {
        match find(handle)? {
            ExecutionContext::Green(green) => cu!(cuGreenCtxWaitEvent(green, event as CUevent)),
            ExecutionContext::Primary(context) => cu!(cuCtxWaitEvent(context, event as CUevent)),
        }
    }
    fn device_resource "cudaDeviceGetDevResource" (device: i32, out: u64, kind: u32) {
        non_null(out)?;
        let device = context::device(device)?;
        cu!(cuDeviceGetDevResource(device, array::<CUdevResource>(out), CUdevResourceType(kind)))
    }
    fn stream_resource "cudaStreamGetDevResource" | "cudaStreamGetDevResource_ptsz" (stream: u64, out: u64, kind: u32) {
        non_null(out)?;
        context::current()?;
        let stream = stream::handle::<PER_THREAD>(stream);
        cu!(cuStreamGetDevResource(stream, array::<CUdevResource>(out), CUdevResourceType(kind)))
    }
    fn split_count "cudaDevSmResourceSplitByCount"
        (result: u64, count: u64, input: u64, rest: u64, flags: u32, minimum: u32) {
        non_null(count)?;
        non_null(input)?;
        context::ready()?;
        cu!(cuDevSmResourceSplitByCount(
            array::<CUdevResource>(result), array::<u32>(count), array::<CUdevResource>(input),
            array::<CUdevResource>(rest), flags, minimum
        ))
    }
    fn split "cudaDevSmResourceSplit" (result: u64, count: u32, input: u64, rest: u64, flags: u32, params: u64) {
        non_null(input)?;
        non_null(params)?;
        context::ready()?;
        cu!(cuDevSmResourceSplit(
            array::<CUdevResource>(result), count, array::<CUdevResource>(input), array::<CUdevResource>(rest), flags,
            array::<CU_DEV_SM_RESOURCE_GROUP_PARAMS>(params)
        ))
    }
    fn generate_descriptor "cudaDevResourceGenerateDesc" (out: u64, resources: u64, count: u32) {
        non_null(out)?;
        non_null(resources)?;
        context::ready()?;
        let mut descriptor: CUdevResourceDesc = std::ptr::null_mut();
        cu!(cuDevResourceGenerateDesc(&mut descriptor, array::<CUdevResource>(resources), count))?;
        put(out, descriptor as u64)
    }
}
