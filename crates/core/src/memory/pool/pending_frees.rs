//! Where in their streams the frees of imported memory are, so that it is known when they are done.
//!
//! Of an imported pool the driver does not tell what is yet to be freed: [`pool_end`](crate::memory::pool::deferred_destroy) has it from here.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cupyrite_sys::driver::CUresult;

use crate::error::{Error, Result, report};
use crate::stream::Stream;
use crate::stream::event::{Event, EventOptions};

/// An event for each free of a pool's memory, but for those that are long done.
#[derive(Debug)]
pub(crate) struct Frees(Mutex<List>);

#[derive(Debug)]
struct List {
    events: Vec<Event>,
    /// How many there may be before those that are done are looked for.
    limit: usize,
}

/// As many events are never looked through.
const FEW: usize = 8;

impl Default for Frees {
    fn default() -> Frees {
        Frees(Mutex::new(List {
            events: Vec::new(),
            limit: FEW,
        }))
    }
}

impl Frees {
    // Held for a few instructions that leave the list whole: the driver is asked, and events end, without it.
    fn lock(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that memory was freed in the order of `stream`, which is not captured, just now. In `RelaxedCapture` mode, since it may
    /// ask for events. What fails goes to `log`: nothing is known of that free then, and nothing waits for it.
    pub(crate) fn note(&self, stream: &Stream) {
        match mark(stream) {
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
        // Those that come meanwhile begin a list of their own. The pool is still there when both are put together: who is here
        // has memory of it.
        let mut events = std::mem::take(&mut list.events);
        drop(list);
        events.retain(|event| !is_done(event));
        let mut list = self.lock();
        list.events.append(&mut events);
        list.limit = FEW.max(2 * list.events.len());
    }

    /// The events, for [`all_done`]; no memory is left to be noted.
    pub(crate) fn into_events(self) -> Vec<Event> {
        let list = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        list.events
    }
}

/// Whether the memory of all these is free; lets go of some that are done. In `RelaxedCapture` mode.
pub(crate) fn all_done(events: &mut Vec<Event>) -> bool {
    // The last one is probably done last.
    while let Some(event) = events.last() {
        if !is_done(event) {
            return false;
        }
        events.pop();
    }
    true
}

/// Marks the stream's current end; `None` where the event might outlive its context.
fn mark(stream: &Stream) -> Result<Option<Event>> {
    if stream.context()?.lasts()? {
        stream.record_with(&EventOptions::default()).map(Some)
    } else {
        Ok(None)
    }
}

/// Whether what was freed before the event is free, and the driver knows that the host knows it.
fn is_done(event: &Event) -> bool {
    type C = CUresult;
    match event.is_waited_for() {
        Ok(done) => done,
        // What it was to tell is over, with the driver or with its context, or is a capture's by now.
        Err(Error::Driver {
            status:
                C::CUDA_ERROR_DEINITIALIZED
                | C::CUDA_ERROR_CONTEXT_IS_DESTROYED
                | C::CUDA_ERROR_INVALID_HANDLE
                | C::CUDA_ERROR_CAPTURED_EVENT,
            ..
        }) => true,
        // A kernel has failed, for one: what is yet to be freed may never be.
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
    use crate::context::Context;
    use crate::context::device::Device;
    use crate::stream::StreamOptions;

    const OK: CUresult = CUresult::CUDA_SUCCESS;

    unsafe extern "C" fn wait_here(gate: *mut c_void) {
        // SAFETY: given away for this call.
        let gate = unsafe { Box::from_raw(gate.cast::<Receiver<()>>()) };
        let _ = gate.recv();
    }

    #[test]
    fn what_is_done_is_not_kept() {
        let device = Device::new(0).unwrap();
        let (busy, idle) = (
            device.create_stream().unwrap(),
            device.create_stream().unwrap(),
        );
        let frees = Frees::default();
        let note_many = |most: usize| {
            for _ in 0..500 {
                frees.note(&idle);
                idle.synchronize().unwrap();
                assert!(frees.lock().events.len() <= most);
            }
        };
        note_many(FEW);

        let (opens, gate) = channel();
        let gate: *mut Receiver<()> = Box::into_raw(Box::new(gate));
        // SAFETY: the function takes what it is given, once.
        let status = unsafe { cuLaunchHostFunc(busy.handle(), Some(wait_here), gate.cast()) };
        assert_eq!(status.unwrap(), OK);
        for _ in 0..100 {
            frees.note(&busy);
        }
        note_many(2 * 101);
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
                let frees = Frees::default();
                for _ in 0..50 {
                    frees.note(&stream);
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
        // SAFETY: a place for the result; the context is destroyed after everything in it.
        unsafe {
            assert_eq!(
                cuCtxCreate(&mut handle, std::ptr::null_mut(), 0, device.handle()).unwrap(),
                OK
            );
            {
                let context = Context::from_handle(handle).unwrap();
                let stream = Stream::new(&context, &StreamOptions::default()).unwrap();
                let frees = Frees::default();
                frees.note(&stream);
                assert!(!context.lasts().unwrap() && frees.into_events().is_empty());
            }
            assert_eq!(cuCtxDestroy(handle).unwrap(), OK);
        }
        assert!(device.context().unwrap().lasts().unwrap());
    }
}
