//! Green contexts: parts of a device's multiprocessors, with streams of their own.
//!
//! A green context is not a separate context: its `CUcontext` stands for the primary context, and objects created while
//! it is current belong to the primary context. Only streams belong to the green context; their kernels run on its
//! multiprocessors, which are shares of the thread pool.
//!
//! Belongs here: green contexts and their resources. The rules for splitting multiprocessors are in `split`, the
//! structures and entry points of resources in `resource`, the entry points of green contexts in `entries`.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::Context;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id, handle_of};
use crate::driver::stream::{Stream, StreamKind};

pub(crate) mod entries;
pub(crate) mod resource;
mod split;

use resource::Descriptor;

/// By `CUgreenCtx`.
static GREEN_CONTEXTS: HandleTable<Green> = HandleTable::new(HandleKind::GreenContext);
/// By `CUcontext`.
static BY_CONTEXT: HandleTable<Green> = HandleTable::new(HandleKind::Context);

/// A green context.
pub(crate) struct Green {
    pub(crate) id: u64,
    /// The `CUgreenCtx`.
    pub(crate) handle: u64,
    /// The `CUcontext`.
    pub(crate) context_handle: u64,
    pub(crate) primary: Arc<Context>,
    resources: Descriptor,
    /// The numbers of its multiprocessors.
    sms: Arc<[u32]>,
    active: AtomicBool,
    /// Created on first use. Taken out when the green context is destroyed, because the stream owns a reference.
    default_stream: Mutex<Option<Arc<Stream>>>,
}

impl Green {
    /// Creates a green context of a retained primary context.
    fn create(primary: Arc<Context>, resources: Descriptor) -> Arc<Green> {
        let id = fresh_id();
        let green = Arc::new(Green {
            id,
            handle: handle_of(HandleKind::GreenContext, id),
            context_handle: handle_of(HandleKind::Context, fresh_id()),
            primary,
            sms: resources.sms.numbers().collect(),
            resources,
            active: AtomicBool::new(true),
            default_stream: Mutex::new(None),
        });
        GREEN_CONTEXTS.insert_handle(green.handle, green.clone());
        BY_CONTEXT.insert_handle(green.context_handle, green.clone());
        green
    }

    /// Whether it is not destroyed.
    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::SeqCst) && self.primary.is_active()
    }

    /// Its default stream.
    pub(crate) fn default_stream(self: &Arc<Self>) -> Arc<Stream> {
        let mut stream = self.default_stream.lock();
        // The streams of a primary context that was reset are removed.
        if let Some(stream) = stream.as_ref().filter(|s| !s.is_abandoned()) {
            return stream.clone();
        }
        let made = Stream::of_green(self, StreamKind::Legacy, 0);
        stream.insert(made).clone()
    }

    /// The streams that belong to it.
    fn streams(&self) -> Vec<Arc<Stream>> {
        let streams = self.primary.streams.lock();
        let own = |s: &&Arc<Stream>| s.green().is_some_and(|g| g.id == self.id);
        streams.iter().filter(own).cloned().collect()
    }
}

/// The green context that a `CUcontext` stands for.
pub(super) fn by_context_handle(handle: u64) -> Option<Arc<Green>> {
    BY_CONTEXT.find(handle)
}

thread_local! {
    /// The multiprocessors for the work that this thread runs; `None` for all.
    static SHARE: RefCell<Option<Arc<[u32]>>> = const { RefCell::new(None) };
}

/// Restores the former share.
pub(crate) struct ShareGuard(Option<Arc<[u32]>>);

impl Drop for ShareGuard {
    fn drop(&mut self) {
        let former = self.0.take();
        let _ = SHARE.try_with(|share| share.replace(former));
    }
}

/// Limits kernels that this thread runs to the multiprocessors of a green context, until the guard is dropped.
pub(crate) fn enter_share(green: Option<&Arc<Green>>) -> ShareGuard {
    let share = green.map(|g| g.sms.clone());
    ShareGuard(SHARE.try_with(|s| s.replace(share)).unwrap_or(None))
}

/// The multiprocessors for a kernel that this thread runs; `None` for all.
pub(crate) fn share() -> Option<Arc<[u32]>> {
    SHARE
        .try_with(|share| share.borrow().clone())
        .ok()
        .flatten()
}
