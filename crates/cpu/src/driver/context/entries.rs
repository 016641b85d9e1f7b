//! The entry points of contexts, and the destruction of the objects that a context owns.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cupyrite_engine::memory::AddressSpace;
use cupyrite_sys::driver::{self as sys, CUctxCreateParams, CUlimit as Limit};

use super::green;
use super::{
    API_VERSION, CONTEXTS, Context, StackEntry, by_handle, by_handle_or_current,
    by_handle_or_current_to_wait, current, current_any, current_entry, current_to_wait,
    entry_by_handle, entry_by_handle_or_current, primary, with_stack,
};
use crate::driver::array;
use crate::driver::array::references;
use crate::driver::array::texture;
use crate::driver::coredump;
use crate::driver::device;
use crate::driver::device::peers;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put, put_optional};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::init;
use crate::driver::entry::logs::refuse;
use crate::driver::external;
use crate::driver::graphics;
use crate::driver::memory::host_flags;
use crate::driver::memory::ipc;
use crate::driver::memory::managed;
use crate::driver::memory::pool;
use crate::driver::module;
use crate::driver::module::library;
use crate::driver::stream;
use crate::driver::stream::capture_state;
use crate::driver::stream::event;
use crate::driver::stream::resolve;

/// Bytes owned by the active contexts of a device. `None` if there is no active context, and in a forked child.
pub(crate) fn memory_in_contexts(ordinal: i32) -> Option<u64> {
    if !crate::driver::entry::init::initialised() || crate::driver::entry::init::forked() {
        return None;
    }
    if crate::driver::entry::api_lock::is_checkpointed() {
        return None;
    }
    let contexts = CONTEXTS.pick(|c| c.device == ordinal && c.is_active());
    let ids: Vec<u64> = contexts.iter().map(|c| c.id).collect();
    let space = cupyrite_engine::memory::AddressSpace::global();
    (!ids.is_empty()).then(|| space.used_by(|owner| ids.contains(&owner)) + array::bytes_in(&ids))
}

/// Makes all active contexts unusable.
pub(crate) fn fail_all(code: Code) {
    for context in CONTEXTS.pick(|c| c.is_active()) {
        context.fail(code);
    }
}

/// Waits for the work of all active contexts. Errors stay with their contexts.
pub(crate) fn finish_all_work() {
    for context in CONTEXTS.pick(|c| c.is_active()) {
        let _ = context.synchronize();
    }
}

/// Waits for the context's work, frees the memory that it owns and invalidates its handles. A primary context can be
/// activated again.
fn tear_down(context: &Arc<Context>) {
    if !context.active.swap(false, Ordering::SeqCst) {
        return;
    }
    // The hook interrupts a kernel that never finishes, so the wait returns.
    if context.synchronize() == Err(Code::LAUNCH_TIMEOUT) {
        for s in context.streams.lock().clone() {
            for _ in 0..100 {
                if s.tail().is_none() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
    }
    context.printf.flush();
    resolve::remove_context(context.id);
    event::remove_context(context.id);
    module::remove_context(context.id);
    library::remove_context(context.id);
    references::remove_context(context.id);
    texture::remove_context(context.id);
    graphics::remove_context(context.id);
    external::remove_context(context.id);
    array::remove_context(context.id);
    peers::remove_context(context.id);
    let streams = std::mem::take(&mut *context.streams.lock());
    // Threads may still refer to their default streams of this context. These become unusable; an unfinished
    // capture would restrict the whole process permanently.
    for stream in &streams {
        capture_state::stream_ends(stream);
        stream.abandon();
    }
    *context.legacy.lock() = None;
    drop(streams);
    for region in AddressSpace::global().free_owned(context.id) {
        host_flags::remove_region(&region);
        ipc::remove_region(&region);
        pool::remove_member(&region);
        managed::remove_region(&region);
    }
}

/// Accepts one scheduling flag and otherwise only known flags.
fn check_flags(flags: u32) -> Res {
    const SCHEDULING: u32 = sys::CUctx_flags::CU_CTX_SCHED_MASK.0;
    const ALL: u32 = sys::CUctx_flags::CU_CTX_FLAGS_MASK.0;
    if flags & !ALL != 0
        || !matches!(
            sys::CUctx_flags(flags & SCHEDULING),
            sys::CUctx_flags::CU_CTX_SCHED_AUTO
                | sys::CUctx_flags::CU_CTX_SCHED_SPIN
                | sys::CUctx_flags::CU_CTX_SCHED_YIELD
                | sys::CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC
        )
    {
        return Err(Code::INVALID_VALUE);
    }
    Ok(())
}

fn create(out: u64, flags: u32, ordinal: i32, api_version: u32) -> Res {
    non_null(out)?;
    check_flags(flags)?;
    device::by_ordinal(ordinal)?;
    /// Enables core dumps on exceptions; the other flag, with a pipe, implies it and is not reported.
    const COREDUMP: u32 = sys::CUctx_flags::CU_CTX_COREDUMP_ENABLE.0;
    const USER_COREDUMP: u32 = sys::CUctx_flags::CU_CTX_USER_COREDUMP_ENABLE.0;
    let user = flags & USER_COREDUMP != 0;
    let flags = if user {
        flags & !USER_COREDUMP | COREDUMP
    } else {
        flags
    };
    if user {
        coredump::enable_user_trigger();
    }
    let context = Context::new(ordinal, false, flags, api_version);
    if flags & COREDUMP != 0 {
        context.coredump.enable();
    }
    let entry = StackEntry {
        context: context.clone(),
        green: None,
    };
    let pushed = put(out, context.handle).and_then(|()| with_stack(|s| s.push(entry)));
    if pushed.is_err() {
        let _ = CONTEXTS.remove(context.handle);
    }
    pushed
}

/// Destroys a context other than a primary one.
fn destroy(handle: u64) -> Res {
    let context = CONTEXTS.find(handle).ok_or(Code::INVALID_CONTEXT)?;
    if context.primary {
        // A primary context is owned by its device; it is released or reset there.
        return Err(Code::INVALID_CONTEXT);
    }
    context.check_may_wait()?;
    CONTEXTS.remove(handle).map_err(|_| Code::INVALID_CONTEXT)?;
    tear_down(&context);
    with_stack(|s| {
        if s.last().is_some_and(|e| e.context.id == context.id) {
            s.pop();
        }
    })
}

/// Activates `device`'s primary context and returns it.
pub(crate) fn retain_primary(ordinal: i32) -> Res<Arc<Context>> {
    let device = device::by_ordinal(ordinal)?;
    let mut primary = primary::of(device.ordinal)?.lock();
    primary.retained += 1;
    primary
        .context
        .flags
        .store(primary.flags, Ordering::Relaxed);
    primary.context.revive();
    Ok(primary.context.clone())
}

pub(super) fn known_limit(limit: u32, readable: bool) -> Res<usize> {
    // `SYNC_DEPTH` applies to the former dynamic parallelism (CDP1), which is absent; so are CIG contexts.
    match Limit(limit) {
        Limit::CU_LIMIT_STACK_SIZE
        | Limit::CU_LIMIT_PRINTF_FIFO_SIZE
        | Limit::CU_LIMIT_MALLOC_HEAP_SIZE
        | Limit::CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH
        | Limit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT
        | Limit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY
        | Limit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE => Ok(limit as usize),
        Limit::CU_LIMIT_SHMEM_SIZE
        | Limit::CU_LIMIT_CIG_ENABLED
        | Limit::CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED
            if readable =>
        {
            Ok(limit as usize)
        }
        Limit::CU_LIMIT_SHMEM_SIZE
        | Limit::CU_LIMIT_CIG_ENABLED
        | Limit::CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED
        | Limit::CU_LIMIT_PER_BLOCK_MEMORY_SIZE => Err(Code::UNSUPPORTED_LIMIT),
        _ => Err(Code::INVALID_VALUE),
    }
}

driver_entry_points! {
    fn ctx_create_v2 "cuCtxCreate_v2" (out: u64, flags: u32, device: i32) {
        create(out, flags, device, API_VERSION)
    }
    fn ctx_create_v3 "cuCtxCreate_v3" (out: u64, affinity: u64, count: i32, flags: u32, device: i32) {
        match count {
            0 => create(out, flags, device, API_VERSION),
            _ if count < 0 || affinity == 0 => Err(Code::INVALID_VALUE),
            _ => Err(Code::UNSUPPORTED_EXEC_AFFINITY),
        }
    }
    fn ctx_create_v4 "cuCtxCreate_v4" (out: u64, params: u64, flags: u32, device: i32) {
        if params != 0 {
            let params = get::<CUctxCreateParams>(params)?;
            if !params.execAffinityParams.is_null() || params.numExecAffinityParams != 0 {
                return Err(Code::UNSUPPORTED_EXEC_AFFINITY);
            }
            if !params.cigParams.is_null() {
                return Err(Code::NOT_SUPPORTED);
            }
        }
        create(out, flags, device, API_VERSION)
    }
    fn ctx_destroy "cuCtxDestroy_v2" (handle: u64) {
        destroy(handle)
    }
    fn ctx_attach "cuCtxAttach" (out: u64, flags: u32) {
        non_null(out)?;
        if flags != 0 {
            return refuse(Code::INVALID_VALUE, || format!("the flags are {flags:#x}; they must be zero"));
        }
        let context = current()?;
        put(out, context.handle)?;
        context.attached.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    fn ctx_detach "cuCtxDetach" (handle: u64) {
        let context = CONTEXTS.find(handle).ok_or(Code::INVALID_CONTEXT)?;
        if current_any()?.is_none_or(|current| current.id != context.id) {
            return refuse(Code::INVALID_CONTEXT, || {
                "the context must be current to the calling thread".to_owned()
            });
        }
        if context.primary {
            // Its device owns a primary context.
            return Ok(());
        }
        let attached = context.attached.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        match attached {
            Ok(1) => destroy(handle).inspect_err(|_| context.attached.store(1, Ordering::SeqCst)),
            Ok(_) => Ok(()),
            Err(_) => Err(Code::INVALID_CONTEXT),
        }
    }
    fn ctx_push "cuCtxPushCurrent_v2" (handle: u64) {
        let entry = entry_by_handle(handle)?;
        with_stack(|s| s.push(entry))
    }
    fn ctx_pop "cuCtxPopCurrent_v2" (out: u64) {
        let top = with_stack(|s| s.pop())?.ok_or(Code::INVALID_CONTEXT)?;
        put_optional(out, top.handle())
    }
    fn ctx_set_current "cuCtxSetCurrent" (handle: u64) {
        if handle == 0 {
            return with_stack(|s| { s.pop(); });
        }
        let entry = entry_by_handle(handle)?;
        with_stack(|s| {
            s.pop();
            s.push(entry);
        })
    }
    fn ctx_get_current "cuCtxGetCurrent" (out: u64) {
        put(out, current_entry()?.map_or(0, |e| e.handle()))
    }
    fn ctx_get_device "cuCtxGetDevice" (out: u64) {
        put(out, current_any()?.ok_or(Code::INVALID_CONTEXT)?.device)
    }
    fn ctx_get_device_v2 "cuCtxGetDevice_v2" (out: u64, handle: u64) {
        non_null(out)?;
        if handle == 0 {
            return put(out, current_any()?.ok_or(Code::INVALID_CONTEXT)?.device);
        }
        put(out, by_handle(handle)?.device)
    }
    fn ctx_get_flags "cuCtxGetFlags" (out: u64) {
        non_null(out)?;
        put(out, current()?.flags.load(Ordering::Relaxed))
    }
    fn ctx_set_flags "cuCtxSetFlags" (flags: u32) {
        check_flags(flags)?;
        current()?.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }
    fn ctx_get_id "cuCtxGetId" (handle: u64, out: u64) {
        non_null(out)?;
        put(out, by_handle_or_current(handle)?.id)
    }
    fn ctx_get_api_version "cuCtxGetApiVersion" (handle: u64, out: u64) {
        non_null(out)?;
        put(out, by_handle_or_current(handle)?.api_version)
    }
    fn ctx_synchronize "cuCtxSynchronize" () {
        let context = current_to_wait()?.context;
        capture_state::refuse_context(context.id)?;
        context.synchronize()
    }
    fn ctx_synchronize_v2 "cuCtxSynchronize_v2" (handle: u64) {
        let context = by_handle_or_current_to_wait(handle)?;
        capture_state::refuse_context(context.id)?;
        context.synchronize()
    }
    fn ctx_get_limit "cuCtxGetLimit" (out: u64, limit: u32) {
        non_null(out)?;
        known_limit(limit, true)?;
        put(out, current()?.limit(limit)?)
    }
    fn ctx_set_limit "cuCtxSetLimit" (limit: u32, value: u64) {
        let index = known_limit(limit, false)?;
        let context = current()?;
        capture_state::reject_if_capturing()?;
        // Rounds and caps as hardware does: at most 512 KiB of stack a thread, L2 fetch granularity up to 128 bytes.
        let value = match Limit(limit) {
            Limit::CU_LIMIT_STACK_SIZE => value.checked_next_multiple_of(16).filter(|&v| v <= 512 << 10).ok_or(Code::INVALID_VALUE)?,
            Limit::CU_LIMIT_PRINTF_FIFO_SIZE | Limit::CU_LIMIT_MALLOC_HEAP_SIZE if value > AddressSpace::global().capacity() => return Err(Code::OUT_OF_MEMORY),
            // As an H100 does.
            Limit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => value.max(32),
            Limit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY => value.min(128),
            Limit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE => 0,
            _ => value,
        };
        context.limits[index].store(value, Ordering::Relaxed);
        Ok(())
    }
    fn ctx_get_cache_config "cuCtxGetCacheConfig" (out: u64) {
        non_null(out)?;
        put(out, current()?.cache_config.load(Ordering::Relaxed))
    }
    fn ctx_set_cache_config "cuCtxSetCacheConfig" (config: u32) {
        if config > sys::CUfunc_cache::CU_FUNC_CACHE_PREFER_EQUAL.0 {
            return Err(Code::INVALID_VALUE);
        }
        current()?.cache_config.store(config, Ordering::Relaxed);
        Ok(())
    }
    fn ctx_get_shared_config "cuCtxGetSharedMemConfig" (out: u64) {
        non_null(out)?;
        put(out, current()?.shared_config.load(Ordering::Relaxed))
    }
    fn ctx_set_shared_config "cuCtxSetSharedMemConfig" (config: u32) {
        if config > sys::CUsharedconfig::CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE.0 {
            return Err(Code::INVALID_VALUE);
        }
        // Devices after Kepler have a fixed bank size of four bytes: accepted without effect.
        current()?;
        Ok(())
    }
    fn ctx_get_priority_range "cuCtxGetStreamPriorityRange" (least: u64, greatest: u64) {
        current()?;
        put_optional(least, stream::LEAST_PRIORITY)?;
        put_optional(greatest, stream::GREATEST_PRIORITY)
    }
    fn ctx_get_exec_affinity "cuCtxGetExecAffinity" (out: u64, _kind: u32) {
        non_null(out)?;
        current()?;
        Err(Code::UNSUPPORTED_EXEC_AFFINITY)
    }
    fn ctx_reset_persisting_l2 "cuCtxResetPersistingL2Cache" () {
        current().map(|_| ())
    }
    fn ctx_record_event "cuCtxRecordEvent" (handle: u64, event: u64) {
        let entry = entry_by_handle_or_current(handle)?;
        match &entry.green {
            Some(green) => green::entries::record(green, event),
            None => event::record_context(&entry.context, event),
        }
    }
    fn ctx_wait_event "cuCtxWaitEvent" (handle: u64, event: u64) {
        let entry = entry_by_handle_or_current(handle)?;
        match &entry.green {
            Some(green) => green::entries::wait(green, event),
            None => event::make_context_wait(&entry.context, event),
        }
    }
    fn ctx_enable_peer "cuCtxEnablePeerAccess" (peer: u64, flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let mine = current()?;
        let peer = by_handle(peer)?;
        if peer.device == mine.device { Err(Code::PEER_ACCESS_UNSUPPORTED) } else { peers::enable(mine.id, peer.id) }
    }
    fn ctx_disable_peer "cuCtxDisablePeerAccess" (peer: u64) {
        let mine = current()?;
        peers::disable(mine.id, by_handle(peer)?.id)
    }
    fn primary_retain "cuDevicePrimaryCtxRetain" (out: u64, device: i32) {
        non_null(out)?;
        let context = retain_primary(device)?;
        put(out, context.handle).inspect_err(|_| { let _ = release_primary(device); })
    }
    fn primary_release "cuDevicePrimaryCtxRelease_v2" (device: i32) {
        release_primary(device)
    }
    fn primary_reset "cuDevicePrimaryCtxReset_v2" (device: i32) {
        let device = device::by_ordinal(device)?;
        let context = primary::of(device.ordinal)?.lock().context.clone();
        context.check_may_wait()?;
        tear_down(&context);
        // A retained context stays valid and returns to its initial state.
        if primary::of(device.ordinal)?.lock().retained > 0 {
            context.revive();
        }
        Ok(())
    }
    fn primary_state "cuDevicePrimaryCtxGetState" (device: i32, flags: u64, active: u64) {
        non_null(flags)?;
        non_null(active)?;
        let device = device::by_ordinal(device)?;
        let primary = primary::of(device.ordinal)?.lock();
        let (f, a) = (primary.flags, i32::from(primary.context.is_active()));
        drop(primary);
        put(flags, f)?;
        put(active, a)
    }
    fn primary_set_flags "cuDevicePrimaryCtxSetFlags_v2" (device: i32, flags: u32) {
        check_flags(flags)?;
        let device = device::by_ordinal(device)?;
        let mut primary = primary::of(device.ordinal)?.lock();
        primary.flags = flags;
        primary.context.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }
    fn profiler_initialize "cuProfilerInitialize" (_config: u64, _output: u64, _mode: u32) {
        // As in NVIDIA's driver since CUDA 11.
        refuse(Code::NOT_SUPPORTED, || "the profiler of the driver was removed in CUDA 11".to_owned())
    }
    fn profiler_start "cuProfilerStart" () {
        init::initialised().then_some(()).ok_or(Code::NOT_INITIALIZED)
    }
    fn profiler_stop "cuProfilerStop" () {
        init::initialised().then_some(()).ok_or(Code::NOT_INITIALIZED)
    }
}

/// Releases a device's primary context.
pub(super) fn release_primary(ordinal: i32) -> Res {
    let device = device::by_ordinal(ordinal)?;
    let mut primary = primary::of(device.ordinal)?.lock();
    if primary.retained == 0 {
        return Err(Code::INVALID_CONTEXT);
    }
    if primary.retained == 1 {
        primary.context.check_may_wait()?;
    }
    primary.retained -= 1;
    if primary.retained == 0 {
        // Released before the wait, because running work may call back into the driver.
        let context = primary.context.clone();
        drop(primary);
        tear_down(&context);
        // Another thread may have retained it in the meantime.
        if primary::of(device.ordinal)?.lock().retained > 0 {
            context.revive();
        }
    }
    Ok(())
}
