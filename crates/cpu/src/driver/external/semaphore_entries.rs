//! The entry points of external semaphores.

use super::semaphore::{Operations, SEMAPHORES, import};
use super::{check_handle, take_over, waits};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::fresh_id;
use crate::driver::entry::logs::refuse;
use crate::driver::graph::{self, Payload, SemaphoreNode};
use crate::driver::stream::OpPlacement;
use crate::driver::stream::capture_state;
use crate::driver::stream::resolve;

/// Enqueues or captures operations; `signal` selects their kind.
fn enter(stream: u64, per_thread: bool, list: (u64, u64, u32), signal: bool) -> Res {
    let stream = resolve::resolve_for_capture(stream, per_thread)?;
    let capturing = capture_state::is_capturing(&stream)?;
    let (handles, params, count) = list;
    if count == 0 {
        return refuse(Code::INVALID_VALUE, || {
            "numExtSems=0: must be positive".into()
        });
    }
    let operations = Operations::read(handles, params, count)?;
    if capturing {
        let node = SemaphoreNode::new(operations, stream.context.clone());
        let payload = if signal {
            Payload::SignalSemaphores
        } else {
            Payload::WaitSemaphores
        };
        return graph::capture::record(&stream, payload(node));
    }
    if signal {
        stream.enqueue(&[], OpPlacement::CallerIfIdle, move |_| operations.signal());
    } else {
        waits::enqueue(&stream, &operations);
    }
    Ok(())
}

driver_entry_points! {
    fn import_semaphore "cuImportExternalSemaphore" (out: u64, desc: u64) {
        non_null(out)?;
        non_null(desc)?;
        let (semaphore, descriptor) = import(&get(desc)?)?;
        let handle = SEMAPHORES.insert(fresh_id(), semaphore);
        put(out, handle).inspect_err(|_| { let _ = SEMAPHORES.remove(handle); })?;
        take_over(descriptor);
        Ok(())
    }
    fn signal "cuSignalExternalSemaphoresAsync" | "cuSignalExternalSemaphoresAsync_ptsz"
        (handles: u64, params: u64, count: u32, stream: u64) {
        enter(stream, PER_THREAD, (handles, params, count), true)
    }
    fn wait "cuWaitExternalSemaphoresAsync" | "cuWaitExternalSemaphoresAsync_ptsz"
        (handles: u64, params: u64, count: u32, stream: u64) {
        enter(stream, PER_THREAD, (handles, params, count), false)
    }
    fn destroy_semaphore "cuDestroyExternalSemaphore" (semaphore: u64) {
        check_handle(semaphore, "external semaphore")?;
        capture_state::reject_if_capturing()?;
        // Pending signals and waits keep it.
        SEMAPHORES.remove(semaphore).map(|_| ())
    }
}
