//! The lock of a definition, its child graphs and its conditional bodies.
//!
//! "Graph objects (`CUgraph`, `CUgraphNode`) are not internally synchronized and must not be accessed concurrently from
//! multiple threads" ([Graph management](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html)). A
//! hierarchy of graphs has one lock, which is taken for every call that reads or changes one of them, or that records into
//! one of them by stream capture. An instantiated graph has a lock of its own, which is taken after those of definitions.
//!
//! No destructor of retained content runs under such a lock, because it may call anything: what is released meanwhile is
//! dropped after the lock.

use std::cell::{RefCell, RefMut};
use std::sync::Arc;

use cupyrite_sys::driver::CUgraphNode;
use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

use crate::after_wait::DropsDeferred;
use crate::error::{Error, Result};
use crate::fork::ForkGeneration;
use crate::graph::definition::{GraphDefinition, NodeStamp, State, not_existing};
use crate::graph::in_use::drop_released;
use crate::graph::retained::is_of_this_process;

/// The mutex of a hierarchy. Reentrant, so that several calls can be made without another thread's calls between them.
///
/// Instantiated graphs share it, also after the definition is gone: the driver uses the definition when they are destroyed.
pub(crate) struct HierarchyMutex {
    mutex: ReentrantMutex<RefCell<State>>,
    generation: ForkGeneration,
}

impl HierarchyMutex {
    pub(crate) fn new() -> Arc<HierarchyMutex> {
        Arc::new(HierarchyMutex {
            mutex: ReentrantMutex::default(),
            generation: ForkGeneration::current(),
        })
    }

    /// Waits for other threads; `None` in a forked child, where they do not exist.
    pub(crate) fn lock(&self) -> Option<DefinitionLock<'_>> {
        if !is_of_this_process(self.generation) {
            return None;
        }
        // First: it is counted before this thread may release anything under the lock.
        let after = DropAfter(Some(DropsDeferred::begin()));
        Some(DefinitionLock {
            guard: self.mutex.lock(),
            _after: after,
        })
    }
}

/// Keeps other threads from a definition, its child graphs and its conditional bodies. See [`GraphDefinition::lock`].
#[must_use = "dropping it unlocks the definition"]
pub struct DefinitionLock<'a> {
    guard: ReentrantMutexGuard<'a, RefCell<State>>,
    /// Dropped after the guard.
    _after: DropAfter,
}

/// Drops what was released under the last lock of the thread.
struct DropAfter(Option<DropsDeferred>);

impl Drop for DropAfter {
    fn drop(&mut self) {
        drop(self.0.take());
        drop_released();
    }
}

impl std::fmt::Debug for DefinitionLock<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DefinitionLock")
    }
}

impl DefinitionLock<'_> {
    /// The state. The borrow ends before the next call of this crate.
    pub(crate) fn state(&self) -> RefMut<'_, State> {
        self.guard.borrow_mut()
    }

    /// The stamp of a node that the driver has named, or will name, under this lock.
    pub fn stamp(&self) -> NodeStamp {
        self.state().stamp()
    }

    /// Refuses a node that was destroyed after it was named.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`].
    pub fn check_node(
        &self,
        call: &'static str,
        node: CUgraphNode,
        stamp: NodeStamp,
    ) -> Result<()> {
        if self.state().is_destroyed(node, stamp) || stamp.is_destroyed_by_program(node) {
            return Err(Error::argument(call, "node", "was destroyed"));
        }
        Ok(())
    }
}

impl GraphDefinition {
    /// Keeps other threads from this definition, its child graphs, its conditional bodies, and captures into them, until the
    /// result is dropped. All methods take this lock; it is reentrant. Between methods, other threads may change the
    /// definition and destroy its nodes.
    ///
    /// A thread that holds it must not lock another definition: see [`GraphDefinition::lock_with`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] in a forked child of the process that created the definition.
    pub fn lock(&self) -> Result<DefinitionLock<'_>> {
        let lock = self.mutex().lock();
        lock.ok_or_else(|| not_existing("GraphDefinition::lock"))
    }

    /// [`GraphDefinition::lock`] for two definitions. All threads lock two definitions in the same order.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::lock`].
    pub fn lock_with<'a>(&'a self, other: &'a GraphDefinition) -> Result<[DefinitionLock<'a>; 2]> {
        match lock_both(self.mutex(), other.mutex()) {
            [Some(mine), Some(theirs)] => Ok([mine, theirs]),
            _ => Err(not_existing("GraphDefinition::lock")),
        }
    }
}

/// Locks two hierarchies in the order that all threads use; `None` for one that belongs to the parent process.
pub(crate) fn lock_both<'a>(
    first: &'a HierarchyMutex,
    second: &'a HierarchyMutex,
) -> [Option<DefinitionLock<'a>>; 2] {
    let address = |mutex| std::ptr::from_ref::<HierarchyMutex>(mutex).addr();
    if address(first) <= address(second) {
        let first = first.lock();
        [first, second.lock()]
    } else {
        let second = second.lock();
        [first.lock(), second]
    }
}
