//! What a graph owns besides the driver's objects: kernels, buffers, events, callbacks.
//!
//! A definition holds a set of it, and so does each graph that is instantiated from the definition. A program that has the
//! handle of the definition can clone and instantiate it with calls of the driver. From then on, a user object of the
//! driver (`cuUserObjectCreate`) holds the set as well: the driver releases the object after the last of the definition, its
//! clones, its instantiated graphs and their running launches. Its destructor runs on a thread of the driver that must not
//! call CUDA, so it only moves the content to a list, which [`drop_released`](super::deferred_destruction::drop_released) empties.
//!
//! While a capture builds the graph, a user object holds the set, too: the program may end the capture by itself.

use std::any::Any;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

use cupyrite_sys::driver::{CUgraph, CUuserObject, CUuserObject_flags, CUuserObjectRetain_flags};
use parking_lot::Mutex;

use crate::deferred_drops;
use crate::error::{Result, driver, report};
use crate::fork::ForkGeneration;

/// Something that lives as long as a graph that uses it.
pub type Retained = Arc<dyn Any + Send + Sync>;

/// Owned content of a definition: by node, or of the whole definition.
#[derive(Clone, Default)]
struct Content {
    nodes: HashMap<usize, Retained>,
    whole: Vec<Retained>,
}

/// The content of a definition at one time.
pub(crate) struct RetainedSet(Mutex<Content>);

/// What [`Retention::seal`] returned, of a graph that is no longer used and whose user object the driver does not release.
/// Dropping this drops the content, unless another graph uses it.
pub(crate) struct Abandoned(pub(crate) Retained);

impl Drop for Abandoned {
    fn drop(&mut self) {
        clear_unshared(&self.0);
    }
}

fn clear_unshared(content: &Retained) {
    /// The driver's reference, and that of the caller.
    const OWN: usize = 2;
    if Arc::strong_count(content) <= OWN
        && let Some(set) = content.downcast_ref::<RetainedSet>()
    {
        let content = std::mem::take(&mut *set.0.lock());
        // Those of child graphs.
        content.nodes.values().for_each(clear_unshared);
        deferred_drops::drop_later(Box::new(content));
    }
}

/// What a definition retains. Its methods are called under the definition's lock.
#[derive(Default)]
pub(crate) struct Retention {
    set: Option<Arc<RetainedSet>>,
    /// Whether something else, such as an instantiated graph, refers to the set as well. Its content does not change then: a
    /// change creates another set.
    sealed: bool,
    /// Whether the driver has to hold the set.
    by_driver: bool,
    /// The user object of the graph that holds the set.
    object: Option<UserObject>,
}

struct UserObject(CUuserObject);

// SAFETY: user objects may be used from any thread.
unsafe impl Send for UserObject {}

/// The user object's destructor.
unsafe extern "C" fn release_set(set: *mut c_void) {
    // SAFETY: `attach` made the pointer from an `Arc`; the driver calls this once.
    let set = unsafe { Arc::from_raw(set.cast_const().cast::<RetainedSet>()) };
    deferred_drops::drop_later(Box::new(set));
}

/// Creates a user object that holds `set` and belongs to `graph`.
fn attach(graph: CUgraph, set: &Arc<RetainedSet>) -> Result<CUuserObject> {
    let mut object: CUuserObject = std::ptr::null_mut();
    let content = Arc::into_raw(set.clone());
    let flags = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC.0;
    // SAFETY: `object` is valid for writes; the destructor takes over the reference in `content`.
    let created = unsafe {
        driver!(cuUserObjectCreate(
            &mut object,
            content.cast_mut().cast(),
            Some(release_set),
            1,
            flags
        ))
    };
    if let Err(error) = created {
        // SAFETY: the driver refused the call and does not use the pointer.
        drop(unsafe { Arc::from_raw(content) });
        return Err(error);
    }
    let flags = CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE.0;
    // SAFETY: both handles are live. The graph takes over the only reference.
    let moved = unsafe { driver!(cuGraphRetainUserObject(graph, object, 1, flags)) };
    if let Err(error) = moved {
        // SAFETY: the reference is still this function's; releasing it destroys the object.
        report(unsafe { driver!(cuUserObjectRelease(object, 1)) });
        return Err(error);
    }
    Ok(object)
}

impl Retention {
    /// Without content, for a graph of which the program may have a handle.
    pub(crate) fn by_driver() -> Retention {
        Retention {
            by_driver: true,
            ..Retention::default()
        }
    }

    /// The set to change: one that nothing else refers to, created if it is missing.
    fn open(&mut self, graph: CUgraph) -> Result<&RetainedSet> {
        if self.set.is_none() || self.sealed {
            let content = match &self.set {
                Some(set) => set.0.lock().clone(),
                None => Content::default(),
            };
            let set = Arc::new(RetainedSet(Mutex::new(content)));
            let object = match self.by_driver {
                true => Some(UserObject(attach(graph, &set)?)),
                false => None,
            };
            self.release_object(graph);
            self.object = object;
            if let Some(former) = self.set.replace(set) {
                drop_outside(Some(former));
            }
            self.sealed = false;
        }
        match &self.set {
            Some(set) => Ok(set),
            None => unreachable!("created above"),
        }
    }

    /// Makes the driver hold the set, and later ones.
    pub(crate) fn give_to_driver(&mut self, graph: CUgraph) -> Result<()> {
        if let (Some(set), None) = (&self.set, &self.object) {
            self.object = Some(UserObject(attach(graph, set)?));
        }
        self.by_driver = true;
        Ok(())
    }

    /// The opposite of [`Retention::give_to_driver`], before a graph is instantiated that the driver should not hold the set
    /// for.
    pub(crate) fn take_from_driver(&mut self, graph: CUgraph) {
        self.by_driver = false;
        self.release_object(graph);
    }

    /// [`Retention::give_to_driver`] that cannot fail: keeps the set for the rest of the process if the driver refuses.
    pub(crate) fn give_to_driver_or_leak(&mut self, graph: CUgraph) {
        if let Err(error) = self.give_to_driver(graph) {
            report(Err(error));
            std::mem::forget(self.set.clone());
        }
    }

    /// Whether the driver holds the set, or would hold one.
    pub(crate) fn is_held_by_driver(&self) -> bool {
        self.by_driver
    }

    fn release_object(&mut self, graph: CUgraph) {
        if let Some(UserObject(object)) = self.object.take() {
            // SAFETY: the graph holds one reference of the object.
            report(unsafe { driver!(cuGraphReleaseUserObject(graph, object, 1)) });
        }
    }

    /// Makes sure that [`Retention::set_node`] and [`Retention::add`] cannot fail before the next
    /// [`Retention::seal`].
    pub(crate) fn prepare(&mut self, graph: CUgraph) -> Result<()> {
        self.open(graph).map(drop)
    }

    /// Retains `value` for a node, in place of what was retained for it.
    pub(crate) fn set_node(&mut self, graph: CUgraph, node: usize, value: Retained) -> Result<()> {
        let mut value = Pending::new(Some(value));
        let set = self.open(graph)?;
        let former = match value.take() {
            Some(value) => set.0.lock().nodes.insert(node, value),
            None => None,
        };
        drop_outside(former);
        Ok(())
    }

    /// What is retained for a node.
    pub(crate) fn node(&self, node: usize) -> Option<Retained> {
        self.set.as_ref()?.0.lock().nodes.get(&node).cloned()
    }

    /// Retains `value` for the whole definition.
    pub(crate) fn add(&mut self, graph: CUgraph, value: Retained) -> Result<()> {
        let mut value = Pending::new(Some(value));
        let set = self.open(graph)?;
        set.0.lock().whole.extend(value.take());
        Ok(())
    }

    /// Gives up what is retained for a node.
    pub(crate) fn remove_node(&mut self, graph: CUgraph, node: usize) -> Result<()> {
        if self.node(node).is_some() {
            let former = self.open(graph)?.0.lock().nodes.remove(&node);
            drop_outside(former);
        }
        Ok(())
    }

    /// The content if the driver's user object holds it, of a graph that is no longer used.
    pub(crate) fn abandon(&mut self) -> Option<Abandoned> {
        self.object.as_ref()?;
        let set: Retained = self.set.take()?;
        Some(Abandoned(set))
    }

    /// The present content as one value, which later changes do not affect; `None` without content.
    pub(crate) fn seal(&mut self) -> Option<Retained> {
        let set = self.set.clone()?;
        self.sealed = true;
        Some(set)
    }
}

/// A value that is retained, or dropped after the locks of the definition are released.
pub(crate) struct Pending(Option<Retained>);

impl Pending {
    pub(crate) fn new(value: Option<Retained>) -> Pending {
        Pending(value)
    }

    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn take(&mut self) -> Option<Retained> {
        self.0.take()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        drop_outside(self.0.take());
    }
}

/// Drops a value after the locks of the definition are released: its destructor may call anything.
fn drop_outside(value: Option<Retained>) {
    if let Some(value) = value {
        deferred_drops::drop_later(Box::new(value));
    }
}

/// Whether `generation` is that of this process: a forked child must not release what belongs to its parent.
pub(crate) fn is_of_this_process(generation: ForkGeneration) -> bool {
    generation.is_current()
}
