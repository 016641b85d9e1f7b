//! The lock of a definition, its child graphs and its conditional bodies.
//!
//! "Graph objects (`CUgraph`, `CUgraphNode`) are not internally synchronized and must not be accessed concurrently from
//! multiple threads" ([Graph management](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html)). A
//! hierarchy of graphs has one lock, which is taken for every call that reads or changes one of them, or that records into
//! one of them by stream capture. An instantiated graph has a lock of its own, which is taken after those of definitions.
//!
//! A clone and its original refer to each other: destroying a clone while another thread clones the original crashes the
//! driver (observed on an H200, driver 13.0). Hierarchies that are linked by a child graph therefore share a lock from then
//! on; the sets of such hierarchies are kept by union-find.
//!
//! No destructor of retained content runs under such a lock, because it may call anything: what is released meanwhile is
//! dropped after the lock.

use std::cell::{RefCell, RefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use cupyrite_sys::driver::CUgraphNode;
use parking_lot::{ReentrantMutex, ReentrantMutexGuard};

use crate::deferred_drops::DropsDeferred;
use crate::error::{Error, Result};
use crate::fork::ForkGeneration;
use crate::graph::deferred_destruction::drop_released;
use crate::graph::definition_state::{DefinitionState, NodeStamp};
use crate::graph::retained::is_of_this_process;

/// The mutex of a hierarchy. Reentrant, so that several calls can be made without another thread's calls between them.
///
/// Instantiated graphs share it, also after the definition is dropped: the driver uses the definition when they are destroyed.
pub(crate) struct HierarchyMutex {
    /// The set that it was created with; [`HierarchyMutex::linked`] is the present one.
    own: Arc<Linked>,
    state: RefCell<DefinitionState>,
    generation: ForkGeneration,
}

// SAFETY: `state` is used under the lock only.
unsafe impl Sync for HierarchyMutex {}

/// Hierarchies that share a mutex.
struct Linked {
    mutex: ReentrantMutex<()>,
    /// Number of hierarchies.
    size: AtomicUsize,
    /// The set into which this one was merged. Set under `mutex`, which is not used from then on.
    merged_into: OnceLock<Arc<Linked>>,
}

impl Linked {
    /// Locks the mutex; `None` if the set was merged into another one meanwhile.
    fn lock(&self) -> Option<ReentrantMutexGuard<'_, ()>> {
        let guard = self.mutex.lock();
        self.merged_into.get().is_none().then_some(guard)
    }
}

impl HierarchyMutex {
    pub(crate) fn new(state: DefinitionState) -> Arc<HierarchyMutex> {
        Arc::new(HierarchyMutex {
            own: Arc::new(Linked {
                mutex: ReentrantMutex::default(),
                size: AtomicUsize::new(1),
                merged_into: OnceLock::new(),
            }),
            state: RefCell::new(state),
            generation: ForkGeneration::current(),
        })
    }

    /// The set to which the hierarchy belongs. Sets are merged into larger ones, so the path is short.
    fn linked(&self) -> &Arc<Linked> {
        let mut linked = &self.own;
        while let Some(larger) = linked.merged_into.get() {
            linked = larger;
        }
        linked
    }

    /// Waits for other threads; `None` in a forked child, where they do not exist.
    pub(crate) fn lock(&self) -> Option<DefinitionLock<'_>> {
        if !is_of_this_process(self.generation) {
            return None;
        }
        loop {
            if let Some(lock) = self.lock_in(self.linked()) {
                return Some(lock);
            }
        }
    }

    /// Locks the set to which the hierarchy belongs; `None` if it belongs to another one meanwhile.
    fn lock_in<'a>(&'a self, set: &'a Linked) -> Option<DefinitionLock<'a>> {
        // First: it is counted before this thread may release anything under the lock.
        let after = DropAfter(Some(DropsDeferred::begin()));
        Some(DefinitionLock {
            hierarchy: self,
            _guard: set.lock()?,
            _after: after,
        })
    }
}

/// Keeps other threads from a definition, its child graphs and its conditional bodies. See
/// [`GraphDefinition::lock`](super::GraphDefinition::lock).
#[must_use = "dropping it unlocks the definition"]
pub struct DefinitionLock<'a> {
    hierarchy: &'a HierarchyMutex,
    _guard: ReentrantMutexGuard<'a, ()>,
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
    pub(crate) fn state(&self) -> RefMut<'_, DefinitionState> {
        self.hierarchy.state.borrow_mut()
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

/// Locks two hierarchies in the order that all threads use; `None` if one belongs to the parent process.
pub(crate) fn lock_both<'a>(
    first: &'a HierarchyMutex,
    second: &'a HierarchyMutex,
) -> Option<[DefinitionLock<'a>; 2]> {
    if !is_of_this_process(first.generation) || !is_of_this_process(second.generation) {
        return None;
    }
    loop {
        let [mine, theirs] = [first.linked(), second.linked()];
        // Both or none: waiting for a set that was merged would break the order.
        let locks = if Arc::as_ptr(mine) <= Arc::as_ptr(theirs) {
            let lock = first.lock_in(mine);
            lock.and_then(|lock| Some([lock, second.lock_in(theirs)?]))
        } else {
            let lock = second.lock_in(theirs);
            lock.and_then(|lock| Some([first.lock_in(mine)?, lock]))
        };
        if locks.is_some() {
            return locks;
        }
    }
}

/// Makes two hierarchies share a lock.
pub(crate) fn link(first: &HierarchyMutex, second: &HierarchyMutex) {
    let Some(locks) = lock_both(first, second) else {
        return;
    };
    let (mut larger, mut smaller) = (first.linked(), second.linked());
    if !Arc::ptr_eq(larger, smaller) {
        let size = |set: &Linked| set.size.load(Ordering::Relaxed);
        if size(larger) < size(smaller) {
            std::mem::swap(&mut larger, &mut smaller);
        }
        larger.size.fetch_add(size(smaller), Ordering::Relaxed);
        // Under the lock of both, so that it is unset.
        let _ = smaller.merged_into.set(larger.clone());
    }
    drop(locks);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn linked_hierarchies_exclude_each_other() {
        let [a, b, c, d] = [(); 4].map(|()| HierarchyMutex::new(DefinitionState::default()));
        link(&a, &b);
        link(&c, &d);
        assert!(!Arc::ptr_eq(a.linked(), d.linked()));
        link(&b, &c);
        link(&a, &d);
        let sets = [&a, &b, &c, &d].map(|mutex| Arc::as_ptr(mutex.linked()));
        assert_eq!(sets, [sets[0]; 4]);
        assert_eq!(a.linked().size.load(Ordering::Relaxed), 4);

        let held = a.lock().unwrap();
        let entered = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _held = d.lock().unwrap();
                entered.store(true, Ordering::SeqCst);
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!entered.load(Ordering::SeqCst));
            drop(held);
        });
        assert!(entered.load(Ordering::SeqCst));
    }

    #[test]
    fn threads_lock_while_others_link() {
        const COUNT: usize = 48;
        for round in 0..20 {
            let mutexes: Vec<_> = (0..COUNT)
                .map(|_| HierarchyMutex::new(DefinitionState::default()))
                .collect();
            let busy: Vec<_> = (0..COUNT).map(|_| AtomicBool::new(false)).collect();
            let work = |seed: usize| {
                let mut random = seed;
                let mut next = || {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (random >> 33) % COUNT
                };
                for step in 0..300 {
                    let (one, other) = (next(), next());
                    if step % 8 == 0 {
                        link(&mutexes[one], &mutexes[other]);
                    }
                    let _locks = lock_both(&mutexes[one], &mutexes[other]).unwrap();
                    let _again = mutexes[one].lock().unwrap();
                    for index in [one, other] {
                        assert!(!busy[index].swap(true, Ordering::SeqCst) || one == other);
                    }
                    for index in [one, other] {
                        busy[index].store(false, Ordering::SeqCst);
                    }
                }
            };
            let work = &work;
            std::thread::scope(|scope| {
                for thread in 0..6 {
                    scope.spawn(move || work(round * 100 + thread));
                }
            });
        }
    }
}
