//! Definitions of graphs.

use std::ffi::{CString, c_uint};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::destroyed::OwnedKind;
use cupyrite_sys::driver::{
    CU_GRAPH_COND_ASSIGN_DEFAULT, CUcontext, CUgraph, CUgraphConditionalHandle,
    CUgraphDebugDot_flags, CUgraphNode,
};

use crate::context::{Context, ContextGuard, Device, current_handle};
use crate::error::{Error, Result, driver, report};
use crate::fork::ForkGeneration;
use crate::graph::condition::Condition;
use crate::graph::deferred_destruction::{drop_released, drop_with_context};
use crate::graph::definition_state::DefinitionState;
use crate::graph::lock::{DefinitionLock, HierarchyMutex, link, lock_both};
use crate::graph::retained::{Retained, Retention, is_of_this_process};

/// Nodes and their dependencies, from which graphs are instantiated.
///
/// The driver does not synchronise access to a definition; this type does, also with the bodies of its conditional nodes,
/// its child graphs, and captures into it. See [`GraphDefinition::lock`].
///
/// A node cannot outlive its definition:
///
/// ```compile_fail,E0597
/// # fn f() -> cupyrite::Result<()> {
/// use cupyrite::graph::GraphDefinition;
/// let node = {
///     let definition = GraphDefinition::new()?;
///     definition.empty(&[])?
/// };
/// node.kind()?;
/// # Ok(()) }
/// ```
pub struct GraphDefinition {
    pub(crate) inner: Arc<DefinitionInner>,
}

pub(crate) struct DefinitionInner {
    handle: CUgraph,
    root: Arc<Root>,
    /// The node of another definition to which this graph belongs; `None` for a root.
    parent: Option<Parent>,
}

/// The node to which a child graph or a conditional body belongs.
struct Parent {
    definition: Arc<DefinitionInner>,
    node: usize,
    /// [`OwnedKind::epoch`] of the node when this graph was named.
    created: u32,
    /// False once the node is destroyed, or has another graph.
    alive: Arc<AtomicBool>,
}

impl Parent {
    /// Whether the program has destroyed the node.
    fn is_destroyed(&self) -> bool {
        let node: CUgraphNode = std::ptr::without_provenance_mut(self.node);
        OwnedKind::GraphNode.is_destroyed(node, std::ptr::null_mut(), self.created)
    }
}

/// What a definition shares with its child graphs and conditional bodies.
pub(crate) struct Root {
    handle: CUgraph,
    /// [`OwnedKind::epoch`] when it was created.
    created: u32,
    /// Whether dropping this destroys the graph. A capture in progress owns its graph.
    owned: AtomicBool,
    /// Whether the graph exists: a failed capture destroys its graph.
    exists: AtomicBool,
    /// Whether the program has a handle of the graph.
    handed_out: AtomicBool,
    /// Whether a capture created the graph: the program may have asked the driver for the handle.
    captured: bool,
    /// The context of nodes that are added while no context is current.
    context: Context,
    generation: ForkGeneration,
    /// Serialises all calls that use the graph, its child graphs and its bodies.
    mutex: Arc<HierarchyMutex>,
}

// SAFETY: all calls that use the handle are made under the lock of `mutex`.
unsafe impl Send for Root {}
// SAFETY: all calls that use the handle are made under the lock of `mutex`; the flags are atomic.
unsafe impl Sync for Root {}
// SAFETY: all calls that use the handle are made under the lock of `root.mutex`.
unsafe impl Send for DefinitionInner {}
// SAFETY: all calls that use the handle are made under the lock of `root.mutex`; the fields do not change.
unsafe impl Sync for DefinitionInner {}

impl DefinitionInner {
    pub(crate) fn handle(&self) -> CUgraph {
        self.handle
    }

    pub(crate) fn handle_address(&self) -> usize {
        self.handle.addr()
    }
}

impl Root {
    /// Whether the program has destroyed the graph, or destroyed or reset its context, whose objects the nodes use.
    fn is_destroyed(&self) -> bool {
        OwnedKind::Graph.is_destroyed(self.handle, self.context.handle(), self.created)
    }

    /// Whether the program has destroyed the graph.
    fn is_destroyed_by_handle(&self) -> bool {
        OwnedKind::Graph.is_destroyed(self.handle, std::ptr::null_mut(), self.created)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if !self.owned.load(Ordering::Relaxed) || !is_of_this_process(self.generation) {
            return;
        }
        // Instantiated graphs may be destroyed at the same time.
        let lock = self.mutex.lock();
        let mut abandoned = None;
        if !self.is_destroyed() {
            // SAFETY: the program has not destroyed the graph; this is the owner, and its only call.
            report(unsafe { driver!(owned cuGraphDestroy(self.handle)) });
        } else if !self.is_destroyed_by_handle()
            && let Some(lock) = &lock
        {
            // With its context. The driver does not release what the graph retains.
            abandoned = lock.state().retention.abandon();
        }
        // Instantiated graphs keep the mutex, not the state.
        let state = lock.as_ref().map(|lock| std::mem::take(&mut *lock.state()));
        drop(lock);
        drop(state);
        if let Some(abandoned) = abandoned {
            drop_with_context(vec![Arc::new(abandoned)]);
        }
        drop_released();
    }
}

impl fmt::Debug for GraphDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GraphDefinition({:#x})", self.inner.handle.addr())
    }
}

/// What [`GraphDefinition::write_dot`] writes about each node: flags of `CUgraphDebugDot_flags`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DotOptions {
    /// The flags.
    pub flags: u32,
}

impl DotOptions {
    /// Everything.
    pub const VERBOSE: DotOptions = DotOptions {
        flags: CUgraphDebugDot_flags::CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE.0,
    };
}

/// The lock of a definition during calls that use it.
pub(crate) struct Entered<'a> {
    pub(crate) handle: CUgraph,
    /// The context of new nodes.
    pub(crate) context: CUcontext,
    pub(crate) lock: DefinitionLock<'a>,
    root: &'a Root,
    _current: Option<ContextGuard>,
}

impl Entered<'_> {
    /// Makes sure that [`Entered::set_node`] can retain something.
    pub(crate) fn prepare(&self) -> Result<()> {
        self.lock.state().retention.prepare(self.root.handle)
    }

    /// Retains a value for a node.
    pub(crate) fn set_node(&self, node: CUgraphNode, value: Retained) -> Result<()> {
        let retention = &mut self.lock.state().retention;
        retention.set_node(self.root.handle, node.addr(), value)
    }

    /// Notes that a node was destroyed, and gives up what is retained for it.
    pub(crate) fn note_destroyed(&self, node: CUgraphNode) {
        let state = &mut *self.lock.state();
        state.note_destroyed(node);
        report(state.retention.remove_node(self.root.handle, node.addr()));
    }

    /// Retains a value for the whole definition.
    fn retain(&self, value: Retained) -> Result<()> {
        self.lock.state().retention.add(self.root.handle, value)
    }
}

impl GraphDefinition {
    /// An empty definition. Nodes that are added while no context is current belong to the current device.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphCreate`.
    pub fn new() -> Result<GraphDefinition> {
        let context = match Context::current()? {
            Some(context) => context,
            None => Device::current()?.context()?.clone(),
        };
        let mut handle: CUgraph = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes.
        unsafe { driver!(cuGraphCreate(&mut handle, 0))? };
        Ok(GraphDefinition::root(handle, context, true))
    }

    /// The definition of a graph that the caller created, or that a capture is creating.
    pub(crate) fn root(handle: CUgraph, context: Context, owned: bool) -> GraphDefinition {
        let mut state = DefinitionState::default();
        if !owned {
            // The program may end the capture by itself, and has the graph then.
            state.retention = Retention::by_driver();
        }
        let root = Root {
            handle,
            created: OwnedKind::Graph.epoch(),
            owned: AtomicBool::new(owned),
            exists: AtomicBool::new(true),
            handed_out: AtomicBool::new(false),
            captured: !owned,
            context,
            generation: ForkGeneration::current(),
            mutex: HierarchyMutex::new(state),
        };
        GraphDefinition {
            inner: Arc::new(DefinitionInner {
                handle,
                root: Arc::new(root),
                parent: None,
            }),
        }
    }

    /// A graph that belongs to a node of this definition.
    pub(crate) fn child(
        &self,
        state: &mut DefinitionState,
        node: CUgraphNode,
        handle: CUgraph,
    ) -> GraphDefinition {
        let alive = state
            .owners
            .entry(node.addr())
            .or_insert_with(|| Arc::new(AtomicBool::new(true)));
        GraphDefinition {
            inner: Arc::new(DefinitionInner {
                handle,
                root: self.inner.root.clone(),
                parent: Some(Parent {
                    definition: self.inner.clone(),
                    node: node.addr(),
                    created: OwnedKind::GraphNode.epoch(),
                    alive: alive.clone(),
                }),
            }),
        }
    }

    /// Another reference to the definition, for Python objects.
    ///
    /// # Safety
    ///
    /// The definition can then be changed through both; nodes that one of them has destroyed are not used through the
    /// other.
    pub unsafe fn share(&self) -> GraphDefinition {
        GraphDefinition {
            inner: self.inner.clone(),
        }
    }

    pub(crate) fn share_internally(&self) -> GraphDefinition {
        GraphDefinition {
            inner: self.inner.clone(),
        }
    }

    /// The end of a capture: the graph now belongs to this definition, or no longer exists.
    pub(crate) fn captured(&self, exists: bool) {
        self.inner.root.owned.store(exists, Ordering::Relaxed);
        self.inner.root.exists.store(exists, Ordering::Relaxed);
    }

    /// Makes a captured graph unusable, as the driver does if a capture fails. It is destroyed with the definition.
    pub(crate) fn discard(&self) {
        self.inner.root.owned.store(true, Ordering::Relaxed);
        self.inner.root.exists.store(false, Ordering::Relaxed);
    }

    /// The driver's handle; valid while the definition lives.
    ///
    /// From then on a user object of the driver holds what the graph retains, for graphs that the program makes from it by
    /// handle. Launches of graphs that are instantiated later cost 1.25 us more.
    pub fn handle(&self) -> CUgraph {
        self.hand_out();
        self.inner.handle
    }

    /// The address in the handle, to compare and to print.
    pub fn address(&self) -> usize {
        self.inner.handle.addr()
    }

    /// Notes that the program has a handle of the graph or of one of its nodes: see [`GraphDefinition::handle`].
    pub fn hand_out(&self) {
        let root = &*self.inner.root;
        if root.handed_out.load(Ordering::Relaxed) {
            return;
        }
        if let Some(lock) = root.mutex.lock()
            && self.exists()
        {
            let retention = &mut lock.state().retention;
            retention.give_to_driver_or_leak(root.handle);
            root.handed_out.store(true, Ordering::Relaxed);
        }
    }

    /// Decides who holds what the next instantiated graph retains: the driver if the program has handles, else that graph.
    /// Returns whether the driver does.
    pub(crate) fn prepare_to_instantiate(
        &self,
        entered: &Entered<'_>,
        handles_deferred_destruction: bool,
    ) -> Result<bool> {
        let root = &*self.inner.root;
        let retention = &mut entered.lock.state().retention;
        if handles_deferred_destruction || root.handed_out.load(Ordering::Relaxed) {
            retention.give_to_driver(root.handle)?;
        } else if root.owned.load(Ordering::Relaxed) {
            retention.take_from_driver(root.handle);
        }
        // The user object belongs to the root.
        Ok(retention.is_held_by_driver() && !self.is_nested())
    }

    /// Whether the definition belongs to a node of another one.
    pub fn is_nested(&self) -> bool {
        self.inner.parent.is_some()
    }

    /// The node to which it belongs, if it belongs to one.
    pub fn parent_node(&self) -> Option<CUgraphNode> {
        let parent = self.inner.parent.as_ref()?;
        Some(std::ptr::with_exposed_provenance_mut(parent.node))
    }

    /// Whether both belong to the same hierarchy: a definition, its child graphs and conditional bodies.
    pub fn shares_root_with(&self, other: &GraphDefinition) -> bool {
        Arc::ptr_eq(&self.inner.root, &other.inner.root)
    }

    /// Whether the driver's graph exists and can be used: false after a failed capture, after the node to which it belongs
    /// was destroyed, and after the program has destroyed its root by handle, or destroyed or reset its context.
    pub fn exists(&self) -> bool {
        let root = &self.inner.root;
        !self.belongs_to_destroyed_node()
            && root.exists.load(Ordering::Relaxed)
            && !root.is_destroyed()
    }

    /// Whether the node to which the graph belongs was destroyed, or has another graph now.
    pub fn belongs_to_destroyed_node(&self) -> bool {
        let mut inner = &*self.inner;
        while let Some(parent) = &inner.parent {
            if !parent.alive.load(Ordering::Relaxed) || parent.is_destroyed() {
                return true;
            }
            inner = &parent.definition;
        }
        false
    }

    /// The mutex of its hierarchy.
    pub(crate) fn mutex(&self) -> &Arc<HierarchyMutex> {
        &self.inner.root.mutex
    }

    /// Locks the definition for calls of the driver, with a current context.
    pub(crate) fn enter(&self, call: &'static str) -> Result<Entered<'_>> {
        let root = &*self.inner.root;
        let lock = root.mutex.lock();
        // Under the lock: another thread may have destroyed the node to which the definition belongs.
        let Some(lock) = lock.filter(|_| self.exists()) else {
            return Err(not_existing(call));
        };
        let current = current_handle()?;
        let (context, entered) = if current.is_null() {
            (root.context.handle(), Some(root.context.enter()?))
        } else {
            (current, None)
        };
        Ok(Entered {
            handle: self.inner.handle,
            context,
            lock,
            root,
            _current: entered,
        })
    }

    /// Takes back what [`GraphDefinition::prepare_to_instantiate`] did for the instantiation alone.
    pub(crate) fn finish_instantiating(&self, entered: &Entered<'_>) {
        let root = &*self.inner.root;
        if root.captured {
            let retention = &mut entered.lock.state().retention;
            retention.give_to_driver_or_leak(root.handle);
        }
    }

    /// Retains `value` until the definition, its graphs and their launches are done.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphRetainUserObject`.
    pub fn retain(&self, value: Retained) -> Result<()> {
        self.enter("GraphDefinition::retain")?.retain(value)
    }

    /// Makes sure that the next [`GraphDefinition::retain`] or the next node can retain something.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuUserObjectCreate`.
    pub fn prepare_to_retain(&self) -> Result<()> {
        self.enter("GraphDefinition::retain")?.prepare()
    }

    /// What is retained now, for something else that uses the definition's nodes.
    pub(crate) fn seal(&self) -> Option<Retained> {
        self.inner.root.mutex.lock()?.state().retention.seal()
    }

    /// What is retained for a node.
    pub fn retained_for(&self, node: CUgraphNode) -> Option<Retained> {
        self.inner
            .root
            .mutex
            .lock()?
            .state()
            .retention
            .node(node.addr())
    }

    /// A condition for conditional nodes of this definition. With a default, each launch begins with that value; without,
    /// the value is undefined until device code sets it.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphConditionalHandleCreate`.
    pub fn create_condition(&self, default: Option<u32>) -> Result<Condition> {
        let entered = self.enter("GraphDefinition::create_condition")?;
        let mut handle: CUgraphConditionalHandle = 0;
        let flags: c_uint = match default {
            Some(_) => CU_GRAPH_COND_ASSIGN_DEFAULT,
            None => 0,
        };
        // SAFETY: the graph is live, `handle` is valid for writes.
        unsafe {
            driver!(cuGraphConditionalHandleCreate(
                &mut handle,
                entered.handle,
                entered.context,
                default.unwrap_or(0),
                flags
            ))?;
        }
        entered.lock.state().conditions.insert(handle);
        Ok(Condition::from_handle(handle))
    }

    /// Writes the graph in the language DOT of Graphviz.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a path with a NUL; the driver's error, also if the file cannot be written. Source:
    /// `cuGraphDebugDotPrint`.
    pub fn write_dot(&self, path: &Path, options: DotOptions) -> Result<()> {
        let Ok(text) = CString::new(path.as_os_str().as_encoded_bytes()) else {
            let problem = format!("is {path:?}, which contains a NUL");
            return Err(Error::argument(
                "GraphDefinition::write_dot",
                "path",
                problem,
            ));
        };
        let entered = self.enter("GraphDefinition::write_dot")?;
        // SAFETY: the graph is live, the path is NUL-terminated.
        unsafe {
            driver!(cuGraphDebugDotPrint(
                entered.handle,
                text.as_ptr(),
                options.flags
            ))
        }
    }
}

/// The error of calls on a definition whose graph does not exist.
#[cold]
pub(crate) fn not_existing(call: &'static str) -> Error {
    Error::argument(
        call,
        "self",
        "is a graph definition that no longer exists: its capture failed, it, its node or its context was destroyed or reset, \
         or it belongs to the parent process",
    )
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
        let locks = lock_both(self.mutex(), other.mutex());
        locks.ok_or_else(|| not_existing("GraphDefinition::lock"))
    }

    /// [`GraphDefinition::lock_with`] for a definition that a node of this one will clone. They share a lock from now on.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::lock`].
    pub fn lock_and_link<'a>(
        &'a self,
        child: &'a GraphDefinition,
    ) -> Result<[DefinitionLock<'a>; 2]> {
        link(self.mutex(), child.mutex());
        self.lock_with(child)
    }
}

impl PartialEq for GraphDefinition {
    fn eq(&self, other: &Self) -> bool {
        self.inner.handle == other.inner.handle
    }
}
impl Eq for GraphDefinition {}
