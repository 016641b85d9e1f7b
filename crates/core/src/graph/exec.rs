//! Instantiated graphs: ownership and launches.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::destroyed::OwnedKind;
use cupyrite_sys::driver::{CUgraphExec, CUresult};
use cupyrite_sys::waits;
use parking_lot::Mutex;

use crate::context::Context;
use crate::error::{Error, Result, driver, report};
use crate::fork::ForkGeneration;
use crate::graph::deferred_destruction::{drop_after, drop_released, drop_with_context};
use crate::graph::definition::GraphDefinition;
use crate::graph::launches::{Launches, PendingLaunches};
use crate::graph::lock::HierarchyMutex;
use crate::graph::retained::{Abandoned, Retained, is_of_this_process};
use crate::stream::Stream;

/// An instantiated graph: a definition as it was, ready to be launched. Cheap to clone.
///
/// It may be launched in any number of streams; its launches run one after the other. It does not need its definition.
#[derive(Clone)]
pub struct Graph {
    pub(super) inner: Arc<GraphExec>,
}

pub(super) struct GraphExec {
    pub(super) handle: CUgraphExec,
    /// Of the definition from which it was instantiated, whose nodes name its nodes.
    pub(super) source: Arc<HierarchyMutex>,
    /// [`OwnedKind::epoch`] when it was created.
    pub(super) created: u32,
    pub(super) context: Context,
    pub(super) generation: ForkGeneration,
    /// What the nodes retain since the instantiation.
    pub(super) content: Option<Retained>,
    /// Whether the driver holds `content` as well, until the last launch is done.
    pub(super) held_by_driver: bool,
    /// Whether the program has the handle, so that it may launch the graph with calls of the driver.
    pub(super) handed_out: AtomicBool,
    /// Serialises launches and updates: the driver does not synchronise access to an instantiated graph. Taken after the
    /// locks of definitions.
    pub(super) state: Mutex<LaunchState>,
}

/// Whether a program uses handles of instantiated graphs. The driver holds the content of graphs that are instantiated from
/// then on.
pub(super) static HANDLES_IN_USE: AtomicBool = AtomicBool::new(false);

/// Changed under the lock that serialises calls.
#[derive(Default)]
pub(super) struct LaunchState {
    /// Whether launches are noted: they use something that the driver does not hold.
    pub(super) noted: bool,
    pub(super) launches: Launches,
    /// The content of the last update of all nodes.
    pub(super) whole: Option<Retained>,
    /// The content of updates of nodes.
    pub(super) nodes: HashMap<usize, Retained>,
}

// SAFETY: all calls that change the graph are made under the lock of `state`.
unsafe impl Send for GraphExec {}
// SAFETY: calls that change the graph take the lock of `state`; the other fields do not change or are atomic.
unsafe impl Sync for GraphExec {}

impl GraphExec {
    /// Refuses a graph that the program has destroyed, by its handle or with its context, and one of the parent process.
    #[inline(always)]
    pub(super) fn check_live(&self) -> Result<()> {
        // In a forked child another thread of the parent may have held the lock of `state`.
        if self.is_destroyed() || !is_of_this_process(self.generation) {
            return Err(destroyed());
        }
        Ok(())
    }

    #[inline(always)]
    fn is_destroyed(&self) -> bool {
        OwnedKind::GraphExec.is_destroyed(self.handle, self.context.handle(), self.created)
    }

    fn is_destroyed_by_handle(&self) -> bool {
        OwnedKind::GraphExec.is_destroyed(self.handle, std::ptr::null_mut(), self.created)
    }

    /// The launches to wait for before content is dropped that they may use.
    pub(super) fn pending_launches(&self, state: &LaunchState) -> PendingLaunches {
        let mut pending = state.launches.pending();
        if self.handed_out.load(Ordering::Relaxed) {
            pending.add_unknown();
        }
        pending
    }
}

#[cold]
fn destroyed() -> Error {
    Error::Driver {
        call: "Graph",
        status: CUresult::CUDA_ERROR_INVALID_HANDLE,
        log: "the graph was destroyed by the program, with cuGraphExecDestroy or cudaGraphExecDestroy, or with its context; or it \
              belongs to the parent process"
            .to_owned(),
    }
}

impl Drop for GraphExec {
    fn drop(&mut self) {
        if !is_of_this_process(self.generation) {
            return;
        }
        let destroy = || -> Result<()> {
            let _entered = self.context.enter()?;
            // The driver notes in the definition that an instantiated graph with memory nodes is destroyed.
            let _lock = self.source.lock();
            // SAFETY: the program has not destroyed the graph; this is the owner, and its only call. The driver completes
            // running launches.
            unsafe { driver!(owned cuGraphExecDestroy(self.handle)) }
        };
        let mut is_destroyed_with_context = false;
        if !self.is_destroyed() {
            report(destroy());
        } else {
            is_destroyed_with_context = !self.is_destroyed_by_handle();
        }
        let state = std::mem::take(self.state.get_mut());
        let launches = self.pending_launches(&state);
        let mut content: Vec<Retained> = state.nodes.into_values().collect();
        content.extend(state.whole);
        match self.content.take() {
            Some(set) if !self.held_by_driver => content.push(set),
            // The driver does not release what the graph retains.
            Some(set) if is_destroyed_with_context => content.push(Arc::new(Abandoned(set))),
            _ => {}
        }
        if is_destroyed_with_context {
            drop_with_context(content);
        } else if !content.is_empty() {
            drop_after(launches, &self.context, content);
        }
        drop_released();
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({:#x})", self.inner.handle.addr())
    }
}

impl Graph {
    /// The driver's handle; valid while a clone of this graph lives.
    ///
    /// The program may launch the graph with calls of the driver from then on. What the graph retains is dropped after the
    /// host has waited for the context ([`Context::synchronize`]) because the streams of such launches are unknown. The
    /// driver itself keeps track of graphs that are instantiated later; their launches cost 1.25 us more.
    pub fn handle(&self) -> CUgraphExec {
        self.inner.handed_out.store(true, Ordering::Relaxed);
        HANDLES_IN_USE.store(true, Ordering::Relaxed);
        self.inner.handle
    }

    /// The address in the handle, to compare and to print.
    pub fn address(&self) -> usize {
        self.inner.handle.addr()
    }

    /// Launches the graph. Drivers up to 13.0 refuse it for a stream that is being captured: use
    /// [`GraphBuilder::embed`](crate::graph::GraphBuilder::embed).
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphLaunch`.
    #[inline]
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        stream.check_live()?;
        self.inner.check_live()?;
        if stream.is_of_builder() {
            return self.record(stream);
        }
        let mut state = self.inner.state.lock();
        let (graph, handle) = (self.inner.handle, stream.handle());
        // SAFETY: both handles are live.
        stream.call(|| unsafe { driver!(cuGraphLaunch(graph, handle)) })?;
        // Its kernels may print.
        waits::note();
        if state.noted {
            state.launches.note(stream);
        }
        Ok(())
    }

    /// Launches the graph in a stream of a builder, which retains it.
    #[cold]
    fn record(&self, stream: &Stream) -> Result<()> {
        stream.queue(|| {
            let _locked = self.inner.state.lock();
            // SAFETY: both handles are live.
            unsafe { driver!(cuGraphLaunch(self.inner.handle, stream.handle())) }
        })?;
        stream.retain_recorded(Arc::new(self.clone()))
    }

    /// Prepares the first launch in `stream`.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphUpload`.
    pub fn upload(&self, stream: &Stream) -> Result<()> {
        stream.check_live()?;
        self.inner.check_live()?;
        let _locked = self.inner.state.lock();
        // SAFETY: both handles are live.
        stream.call(|| unsafe { driver!(cuGraphUpload(self.inner.handle, stream.handle())) })
    }

    /// Whether the graph was instantiated from this definition, or from one of the same hierarchy.
    pub fn is_instance_of(&self, definition: &GraphDefinition) -> bool {
        Arc::ptr_eq(&self.inner.source, definition.mutex())
    }

    /// Drops this clone; the last one destroys the graph. Launches complete.
    pub fn close(self) {
        drop(self);
    }
}
