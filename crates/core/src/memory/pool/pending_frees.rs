//! Pending frees of imported memory.
//!
//! The driver does not report pending frees for imported pools;
//! [`deferred_destroy`](crate::memory::pool::deferred_destroy) uses these events instead.

use cupyrite_sys::driver::CUresult;
use parking_lot::{Mutex, MutexGuard};

use crate::error::{Error, Result, report};
use crate::stream::Stream;
use crate::stream::event::{Event, EventOptions};

/// An event after each pending free of a pool.
#[derive(Debug)]
pub(crate) struct PendingFrees(Mutex<List>);

#[derive(Debug)]
struct List {
    events: Vec<Event>,
    /// Length at which completed events are pruned.
    limit: usize,
}

/// Smallest length at which completed events are pruned.
const PRUNE_THRESHOLD: usize = 8;

impl Default for PendingFrees {
    fn default() -> PendingFrees {
        PendingFrees(Mutex::new(List {
            events: Vec::new(),
            limit: PRUNE_THRESHOLD,
        }))
    }
}

impl PendingFrees {
    // Held for a few instructions that do not panic; the driver is called, and events are dropped, without it.
    fn lock(&self) -> MutexGuard<'_, List> {
        self.0.lock()
    }

    /// Records that memory was just freed on `stream`, which is not captured. Requires relaxed capture mode: it may
    /// query events. Errors are logged; the free then counts as done.
    pub(crate) fn record(&self, stream: &Stream) {
        match record_event(stream) {
            Ok(Some(event)) => self.add(event),
            Ok(None) => {
                log::debug!("imported memory is freed in a context that may end before its pool");
            }
            Err(error) => report(Err(error)),
        }
    }

    fn add(&self, event: Event) {
        let mut list = self.lock();
        list.events.push(event);
        if list.events.len() <= list.limit {
            return;
        }
        // Events added meanwhile start a new list. The pool outlives the merge: the caller holds memory of it.
        let mut events = std::mem::take(&mut list.events);
        drop(list);
        events.retain(|event| !is_done(event));
        let mut list = self.lock();
        list.events.append(&mut events);
        list.limit = PRUNE_THRESHOLD.max(2 * list.events.len());
    }

    /// The events, for [`all_done`]; there are no more frees to record.
    pub(crate) fn into_events(self) -> Vec<Event> {
        let list = self.0.into_inner();
        list.events
    }
}

/// Whether all these frees are done; drops completed events. Requires relaxed capture mode.
pub(crate) fn all_done(events: &mut Vec<Event>) -> bool {
    // The last one is probably the last to complete.
    while let Some(event) = events.last() {
        if !is_done(event) {
            return false;
        }
        events.pop();
    }
    true
}

/// Records an event at the stream's current end; `None` if it might outlive its context.
fn record_event(stream: &Stream) -> Result<Option<Event>> {
    if stream.context()?.is_permanent()? {
        stream.record_with(&EventOptions::default()).map(Some)
    } else {
        Ok(None)
    }
}

/// Whether the frees before the event are done, and the host has waited for them.
fn is_done(event: &Event) -> bool {
    type C = CUresult;
    match event.synchronize_if_done() {
        Ok(done) => done,
        // The driver is deinitialized, the context is destroyed, or a capture has reused the event: the frees count
        // as completed.
        Err(Error::Driver {
            status:
                C::CUDA_ERROR_DEINITIALIZED
                | C::CUDA_ERROR_CONTEXT_IS_DESTROYED
                | C::CUDA_ERROR_INVALID_HANDLE
                | C::CUDA_ERROR_CAPTURED_EVENT,
            ..
        }) => true,
        // For example, a kernel has failed: the pending frees may never be done.
        Err(error) => {
            log::debug!("whether imported memory is free is not known: {error}");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;

    use cupyrite_sys::driver::{CUcontext, cuCtxCreate, cuCtxDestroy, cuLaunchHostFunc};

    use super::*;
    use crate::context::{Context, Device};
    use crate::stream::StreamOptions;

    const OK: CUresult = CUresult::CUDA_SUCCESS;

    unsafe extern "C" fn wait_here(gate: *mut c_void) {
        // SAFETY: ownership was passed to this call.
        let gate = unsafe { Box::from_raw(gate.cast::<Receiver<()>>()) };
        let _ = gate.recv();
    }

    #[test]
    fn completed_frees_are_pruned() {
        let device = Device::new(0).unwrap();
        let (busy, idle) = (
            device.create_stream().unwrap(),
            device.create_stream().unwrap(),
        );
        let frees = PendingFrees::default();
        let record_many = |most: usize| {
            for _ in 0..500 {
                frees.record(&idle);
                idle.synchronize().unwrap();
                assert!(frees.lock().events.len() <= most);
            }
        };
        record_many(PRUNE_THRESHOLD);

        let (opens, gate) = channel();
        let gate: *mut Receiver<()> = Box::into_raw(Box::new(gate));
        // SAFETY: the callback takes ownership of the gate, once.
        let status = unsafe { cuLaunchHostFunc(busy.handle(), Some(wait_here), gate.cast()) };
        assert_eq!(status.unwrap(), OK);
        for _ in 0..100 {
            frees.record(&busy);
        }
        record_many(2 * 101);
        let mut events = frees.into_events();
        assert!(events.len() >= 100);
        assert!(!all_done(&mut events) && !events.is_empty());
        opens.send(()).unwrap();
        busy.synchronize().unwrap();
        assert!(all_done(&mut events) && events.is_empty());
    }

    #[test]
    fn a_thread_needs_no_current_context() {
        let device = Device::new(0).unwrap();
        let stream = device.create_stream().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let frees = PendingFrees::default();
                for _ in 0..50 {
                    frees.record(&stream);
                }
                stream.synchronize().unwrap();
                let mut events = frees.into_events();
                assert!(!events.is_empty() && all_done(&mut events));
            });
        });
    }

    #[test]
    fn events_do_not_outlive_their_context() {
        let device = Device::new(0).unwrap();
        let mut handle: CUcontext = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes; the context is destroyed after everything in it.
        unsafe {
            assert_eq!(
                cuCtxCreate(&mut handle, std::ptr::null_mut(), 0, device.handle()).unwrap(),
                OK
            );
            {
                let context = Context::from_handle(handle).unwrap();
                let stream = Stream::new(&context, &StreamOptions::default()).unwrap();
                let frees = PendingFrees::default();
                frees.record(&stream);
                assert!(!context.is_permanent().unwrap() && frees.into_events().is_empty());
            }
            assert_eq!(cuCtxDestroy(handle).unwrap(), OK);
        }
        assert!(device.context().unwrap().is_permanent().unwrap());
    }
}
