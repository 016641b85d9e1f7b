//! What a kernel launches: grids, copies and fills.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::copies::{Copy, Fill};
use crate::driver::context::Context;
use crate::driver::module::launch::Launch;

/// The work of a child.
pub(super) enum Work {
    Kernel(Box<Launch>),
    Copy(Copy),
    Fill(Fill),
}

/// One of the pending launches of a context: counted from the launch until the child has completed.
pub(super) struct PendingLaunch(Arc<Context>);

impl PendingLaunch {
    /// Counts a launch; `None` if `CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT` launches are pending.
    pub(super) fn take(context: &Arc<Context>) -> Option<PendingLaunch> {
        let limit = context.pending_launch_limit();
        let pending = &context.pending_launches;
        let next = |n: u64| (n < limit).then_some(n + 1);
        let taken = pending.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        taken.ok().map(|_| PendingLaunch(context.clone()))
    }
}

impl Drop for PendingLaunch {
    fn drop(&mut self) {
        self.0.pending_launches.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A launch by a kernel, or by the host.
pub(super) struct Child {
    pub(super) work: Work,
    pub(super) pending: Option<PendingLaunch>,
}

impl Child {
    pub(super) fn of_host(launch: Launch) -> Child {
        let work = Work::Kernel(Box::new(launch));
        Child {
            work,
            pending: None,
        }
    }

    pub(super) fn new(work: Work, pending: PendingLaunch) -> Child {
        Child {
            work,
            pending: Some(pending),
        }
    }
}
