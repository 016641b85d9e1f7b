//! When what graphs retained is dropped.
//!
//! Content that an update of an instantiated graph has replaced may still be in use by launches before the update. The
//! driver does not retain it, so events tell when those launches are done.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::after_wait;
use crate::fork::ForkGeneration;
use crate::graph::retained::Retained;
use crate::stream::{Event, EventOptions, Stream};

/// Content of a graph that launches may still use.
struct InUse {
    launches: Vec<Event>,
    generation: ForkGeneration,
    content: Vec<Retained>,
}

static IN_USE: Mutex<Vec<InUse>> = Mutex::new(Vec::new());
/// Length of the list; avoids the lock if it is empty.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Drops content once the work that the streams hold now is done.
pub(crate) fn drop_after(streams: &[Stream], content: Vec<Retained>) {
    let mut launches = Vec::new();
    for stream in streams {
        if stream.is_destroyed() {
            continue;
        }
        let _relaxed = crate::context::RelaxedCapture::enter();
        match stream.record_with(&EventOptions::default()) {
            Ok(event) => launches.push(event),
            // Without an event the completion is unknown, so wait. If that fails too, the work has ended.
            Err(_) => drop(stream.synchronize()),
        }
    }
    if launches.is_empty() {
        after_wait::drop_later(Box::new(content));
        return;
    }
    let mut list = IN_USE.lock();
    list.push(InUse {
        launches,
        generation: ForkGeneration::current(),
        content,
    });
    COUNT.store(list.len(), Ordering::Release);
}

/// Drops the content of completed launches.
#[cold]
fn drop_completed() {
    let list = {
        let mut list = IN_USE.lock();
        COUNT.store(0, Ordering::Release);
        std::mem::take(&mut *list)
    };
    let _relaxed = crate::context::RelaxedCapture::enter();
    let (done, waiting): (Vec<InUse>, Vec<InUse>) = list.into_iter().partition(|entry| {
        entry.generation.is_current()
            && entry
                .launches
                .iter()
                .all(|event| event.is_done().unwrap_or(true))
    });
    if !waiting.is_empty() {
        let mut list = IN_USE.lock();
        list.extend(waiting);
        COUNT.store(list.len(), Ordering::Release);
    }
    for entry in done {
        drop(entry.content);
    }
}

/// Drops what graphs have released since the last call, and what updates have replaced and no launch uses any more.
/// Called without locks, after everything that may destroy a graph.
#[inline]
pub fn drop_released() {
    after_wait::drop_pending();
    if COUNT.load(Ordering::Acquire) != 0 && !after_wait::are_drops_deferred() {
        drop_completed();
    }
}
