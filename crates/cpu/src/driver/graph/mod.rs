//! Graphs: work that is described once and launched any number of times.
//!
//! Belongs here: graphs and their nodes, stream capture, executable graphs, user objects. The work of a node is defined
//! where the same work is defined for streams (`launch`, `fill`, `copy_job`, ...); a node holds a validated copy of its
//! description. The entry points that enqueue or capture such work are above this folder.
//!
//! * `mod.rs`, `edge_data.rs`: the structure of graphs; `node.rs`: the payload of nodes.
//! * `build.rs`, `edges.rs`, `params.rs`: the entry points that create and change graphs.
//! * `conditional.rs`: conditional nodes and their handles.
//! * `device_launch.rs`: graphs that kernels launch.
//! * `exec.rs`, `plan.rs`, `update.rs`: executable graphs: instantiation, launch, updates.
//! * `capture.rs`: the graphs of stream captures; which streams are capturing is in `stream::capture_state`.
//! * `memory.rs`, `memory_reuse.rs`: graph-allocated memory. `objects.rs`: user objects.
//! * `dot.rs`: DOT output.
//!
//! Lock order: captures, executable graph, graph, embedded graph, handle tables.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};

use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id, handle_of};
use crate::driver::entry::logs::refuse;

pub(super) mod build;
pub(super) mod capture;
pub(super) mod conditional;
mod device_launch;
pub(super) mod dot;
pub(super) mod edge_data;
pub(super) mod edges;
pub(super) mod exec;
pub(super) mod memory;
pub(super) mod memory_reuse;
mod node;
pub(super) mod objects;
pub(super) mod params;
mod plan;
pub(super) mod semaphores;
pub(super) mod update;

pub(super) use edge_data::{Edge, EdgeData};
pub(super) use node::{EventNode, Kernel, MemOps, Memcpy, Memset, Payload};
use objects::Objects;
pub(super) use semaphores::SemaphoreNode;

static GRAPHS: HandleTable<Graph> = HandleTable::new(HandleKind::Graph);
static NODES: HandleTable<Weak<Graph>> = HandleTable::new(HandleKind::Node);

/// Maximum nesting depth of graphs.
const MAX_NESTING: usize = 128;
/// Maximum number of nodes of a graph, including embedded graphs.
const MAX_NODES: usize = 1 << 22;

/// A node of a graph. Its key is its handle.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) payload: Arc<Payload>,
    /// The node this was cloned from, or zero.
    pub(super) origin: u64,
    /// Number in the graph and in its clones.
    pub(super) local: u32,
    /// Its dependencies.
    pub(super) before: Vec<Edge>,
    /// Its dependents.
    pub(super) after: Vec<Edge>,
}

/// A graph.
pub(super) struct Graph {
    pub(super) id: u64,
    pub(super) handle: u64,
    /// Whether callers have handles of the graph and its nodes. The copy of an executable graph is private.
    public: bool,
    /// Whether it is a body of a conditional node.
    is_body: bool,
    /// The node that embeds it, or zero.
    embedded_in: AtomicU64,
    state: Mutex<GraphState>,
}

/// State of a graph that its lock guards.
#[derive(Default)]
pub(super) struct GraphState {
    /// By handle, that is, in order of creation.
    pub(super) nodes: BTreeMap<u64, Node>,
    /// Handle of the graph this was cloned from, or zero.
    pub(super) cloned_from: u64,
    pub(super) objects: Objects,
    /// Number of nodes that allocate or free memory, including embedded graphs.
    pub(super) memory_nodes: usize,
    /// What its own nodes allocate and free. The copies of a graph do not need it.
    memory: memory_reuse::GraphMemory,
    /// The condition handles that were created for this graph.
    pub(super) variables: Vec<Arc<conditional::Variable>>,
    /// The executable graph; a graph with memory nodes or conditional nodes can have only one.
    pub(super) executable: Weak<exec::Exec>,
    /// Number of the next node.
    next_local: u32,
    /// Number of captures that add nodes here; meanwhile the graph cannot be instantiated.
    pub(super) capturing: usize,
}

impl Graph {
    fn make(public: bool, is_body: bool, embedded_in: u64, state: GraphState) -> Arc<Graph> {
        let id = fresh_id();
        let graph = Arc::new(Graph {
            id,
            handle: handle_of(HandleKind::Graph, id),
            public,
            is_body,
            embedded_in: AtomicU64::new(embedded_in),
            state: Mutex::new(state),
        });
        if public {
            for &node in graph.lock().nodes.keys() {
                NODES.insert_handle(node, Arc::new(Arc::downgrade(&graph)));
            }
        }
        graph
    }

    /// Creates an empty public graph.
    pub(super) fn create() -> Arc<Graph> {
        Self::create_empty(false)
    }

    /// Creates an empty public graph for a conditional node.
    fn create_body() -> Arc<Graph> {
        Self::create_empty(true)
    }

    fn create_empty(is_body: bool) -> Arc<Graph> {
        let graph = Self::make(true, is_body, 0, GraphState::default());
        GRAPHS.insert(graph.id, graph.clone());
        graph
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, GraphState> {
        self.state.lock()
    }

    /// Copies the graph with all nodes, edges, user object references and embedded graphs. `level` is the nesting level
    /// of the copy.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` for a graph with memory nodes or conditional nodes, unless `for_execution`; `INVALID_VALUE` if the
    /// nesting becomes too deep.
    pub(super) fn copy(
        self: &Arc<Graph>,
        public: bool,
        embedded_in: u64,
        level: usize,
        for_execution: bool,
    ) -> Res<Arc<Graph>> {
        if level >= MAX_NESTING {
            return Err(Code::INVALID_VALUE);
        }
        let state = self.lock();
        if !for_execution && (state.memory_nodes > 0 || state.has_conditionals()) {
            return refuse(Code::NOT_SUPPORTED, || {
                "graphs with memory nodes or conditional nodes cannot be cloned".into()
            });
        }
        let fresh: HashMap<u64, u64> = state.nodes.keys().map(|&n| (n, new_node())).collect();
        // Handles increase, so the order of creation is preserved.
        let moved = |edges: &[Edge]| -> Vec<Edge> {
            let edges = edges.iter();
            edges
                .map(|e| Edge {
                    node: fresh[&e.node],
                    data: e.data,
                })
                .collect()
        };
        let mut nodes = BTreeMap::new();
        for (&handle, node) in &state.nodes {
            let copy_inner =
                |inner: &Arc<Graph>| inner.copy(public, fresh[&handle], level + 1, for_execution);
            let payload = match &*node.payload {
                Payload::Graph(inner) => Arc::new(Payload::Graph(copy_inner(inner)?)),
                Payload::Conditional(c) => {
                    let bodies: Res<Box<[_]>> = c.bodies.iter().map(copy_inner).collect();
                    Arc::new(Payload::Conditional(c.with_bodies(bodies?)))
                }
                _ => node.payload.clone(),
            };
            let copy = Node {
                payload,
                origin: handle,
                local: node.local,
                before: moved(&node.before),
                after: moved(&node.after),
            };
            nodes.insert(fresh[&handle], copy);
        }
        let state = GraphState {
            nodes,
            cloned_from: self.handle,
            objects: state.objects.clone(),
            memory_nodes: state.memory_nodes,
            variables: if for_execution {
                state.variables.clone()
            } else {
                Vec::new()
            },
            next_local: state.next_local,
            ..GraphState::default()
        };
        let copy = Self::make(public, self.is_body, embedded_in, state);
        if public {
            GRAPHS.insert(copy.id, copy.clone());
        }
        Ok(copy)
    }

    /// Number of nodes, including embedded graphs.
    pub(super) fn size(&self) -> usize {
        let state = self.lock();
        let inner = state.nodes.values().flat_map(|n| n.payload.graphs());
        inner
            .map(|g| g.size())
            .fold(state.nodes.len(), usize::saturating_add)
    }

    /// Nesting height, counting this graph.
    pub(super) fn height(&self) -> usize {
        let state = self.lock();
        let inner = state.nodes.values().flat_map(|n| n.payload.graphs());
        1 + inner.map(|g| g.height()).max().unwrap_or(0)
    }

    /// Nesting level: zero for a top-level graph.
    pub(super) fn level(&self) -> usize {
        let mut level = 0;
        let mut node = self.embedded_in();
        while node != 0 && level < MAX_NESTING {
            level += 1;
            node = graph_of(node).map_or(0, |g| g.embedded_in());
        }
        level
    }

    /// The node that embeds it, or zero.
    pub(super) fn embedded_in(&self) -> u64 {
        self.embedded_in.load(Ordering::Acquire)
    }

    /// Whether this graph is `other` or is embedded in it.
    pub(super) fn lies_in(&self, other: &Graph) -> bool {
        if self.id == other.id {
            return true;
        }
        let mut node = self.embedded_in();
        for _ in 0..MAX_NESTING {
            match graph_of(node) {
                Ok(graph) if graph.id == other.id => return true,
                Ok(graph) => node = graph.embedded_in(),
                Err(_) => return false,
            }
        }
        false
    }

    /// Adds a node that embeds `inner`, which no other node embeds.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the nesting becomes too deep, `OUT_OF_MEMORY` for too many nodes, and those of
    /// [`Graph::add`].
    pub(super) fn embed(self: &Arc<Graph>, inner: Arc<Graph>, before: &[Edge]) -> Res<u64> {
        self.check_nesting(inner.height())?;
        if self.size().saturating_add(inner.size()) > MAX_NODES {
            return Err(Code::OUT_OF_MEMORY);
        }
        let node = self.add(Payload::Graph(inner.clone()), before)?;
        inner.embedded_in.store(node, Ordering::Release);
        Ok(node)
    }

    /// Replaces the graph of a child graph node by `inner`, which no other node embeds.
    ///
    /// # Errors
    /// As [`Graph::embed`]; `INVALID_VALUE` if the node is not a child graph node of this graph.
    pub(super) fn replace_embedded(self: &Arc<Graph>, node: u64, inner: Arc<Graph>) -> Res {
        self.check_nesting(inner.height())?;
        if self.size().saturating_add(inner.size()) > MAX_NODES {
            return Err(Code::OUT_OF_MEMORY);
        }
        let payload = Arc::new(Payload::Graph(inner.clone()));
        let former = {
            let mut state = self.lock();
            let found = state.nodes.get_mut(&node).ok_or(Code::INVALID_VALUE)?;
            if found.payload.inner().is_none() {
                return Err(Code::INVALID_VALUE);
            }
            let former = std::mem::replace(&mut found.payload, payload.clone());
            state.memory_nodes =
                state.memory_nodes + payload.memory_nodes() - former.memory_nodes();
            inner.embedded_in.store(node, Ordering::Release);
            former
        };
        former.graphs().iter().for_each(|graph| graph.retire());
        Ok(())
    }

    /// Checks that a node of this graph can embed a graph of nesting height `height`.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the nesting becomes too deep.
    fn check_nesting(&self, height: usize) -> Res {
        if self.level() + 1 + height > MAX_NESTING {
            return refuse(Code::INVALID_VALUE, || {
                format!("graphs can be nested {MAX_NESTING} deep")
            });
        }
        Ok(())
    }

    /// Adds a node that depends on `before`, which has passed [`GraphState::check_dependencies`].
    pub(super) fn add(self: &Arc<Graph>, payload: Payload, before: &[Edge]) -> Res<u64> {
        let mut state = self.lock();
        state.check_dependencies(before, &payload)?;
        Ok(self.add_checked(&mut state, payload, before))
    }

    /// [`Graph::add`] under a lock already held, for checked dependencies.
    fn add_checked(
        self: &Arc<Graph>,
        state: &mut GraphState,
        payload: Payload,
        before: &[Edge],
    ) -> u64 {
        let handle = new_node();
        state.memory_nodes += payload.memory_nodes();
        state.memory.add(handle, &payload);
        let node = Node {
            payload: Arc::new(payload),
            origin: 0,
            local: state.next_local,
            before: Vec::new(),
            after: Vec::new(),
        };
        state.next_local += 1;
        state.nodes.insert(handle, node);
        for edge in before {
            state.connect(edge.node, handle, edge.data);
        }
        if self.public {
            NODES.insert_handle(handle, Arc::new(Arc::downgrade(self)));
        }
        handle
    }

    /// Invalidates the handles of the graph and its contents. Executable graphs made from it stay valid.
    fn retire(self: &Arc<Graph>) {
        let _ = GRAPHS.remove(self.handle);
        let inner: Vec<Arc<Graph>> = {
            let state = self.lock();
            for (&node, found) in &state.nodes {
                let _ = NODES.remove(node);
                if let Payload::Conditional(c) = &*found.payload {
                    c.variable.release();
                }
            }
            let inner = state.nodes.values().flat_map(|n| n.payload.graphs());
            inner.cloned().collect()
        };
        for graph in inner {
            graph.retire();
        }
    }
}

impl GraphState {
    /// Whether there are conditional nodes, here or in child graphs. The recursion depth is limited by the nesting depth of
    /// graphs.
    pub(super) fn has_conditionals(&self) -> bool {
        self.nodes.values().any(|n| match &*n.payload {
            Payload::Conditional(_) => true,
            Payload::Graph(inner) => inner.lock().has_conditionals(),
            _ => false,
        })
    }

    /// Checks that `edges` name distinct nodes of this graph and that their data fits a dependent with that payload.
    ///
    /// # Errors
    /// `INVALID_VALUE` if a check fails, `OUT_OF_MEMORY` if there are too many nodes.
    pub(super) fn check_dependencies(&self, edges: &[Edge], payload: &Payload) -> Res {
        if self.nodes.len() >= MAX_NODES {
            return Err(Code::OUT_OF_MEMORY);
        }
        let mut seen = std::collections::HashSet::new();
        for edge in edges {
            let from = self.nodes.get(&edge.node).ok_or(Code::INVALID_VALUE)?;
            if !seen.insert(edge.node) {
                return Err(Code::INVALID_VALUE);
            }
            check_edge(edge.data, &from.payload, payload)?;
        }
        // A graph frees an allocation at most once.
        match payload {
            Payload::MemFree(f) if !self.memory.can_free(f.address()) => Err(Code::INVALID_VALUE),
            _ => Ok(()),
        }
    }

    /// Adds an edge between existing nodes.
    pub(super) fn connect(&mut self, from: u64, to: u64, data: EdgeData) {
        if let Some(node) = self.nodes.get_mut(&from) {
            node.after.push(Edge { node: to, data });
        }
        if let Some(node) = self.nodes.get_mut(&to) {
            node.before.push(Edge { node: from, data });
        }
    }

    pub(super) fn disconnect(&mut self, from: u64, to: u64) {
        if let Some(node) = self.nodes.get_mut(&from) {
            node.after.retain(|e| e.node != to);
        }
        if let Some(node) = self.nodes.get_mut(&to) {
            node.before.retain(|e| e.node != from);
        }
    }

    /// The data of the edge between two nodes, if there is one.
    pub(super) fn edge(&self, from: u64, to: u64) -> Option<EdgeData> {
        let (a, b) = (self.nodes.get(&from)?, self.nodes.get(&to)?);
        let found = if a.after.len() < b.before.len() {
            a.after.iter().find(|e| e.node == to)
        } else {
            b.before.iter().find(|e| e.node == from)
        };
        found.map(|e| e.data)
    }
}

/// Checks an edge's data against the payloads of its nodes.
fn check_edge(data: EdgeData, from: &Payload, to: &Payload) -> Res {
    const PROGRAMMATIC: u8 = 1;
    let [from_port, to_port, kind, rest @ ..] = data;
    if rest != [0; 5] || to_port != 0 || kind > PROGRAMMATIC {
        return Err(Code::INVALID_VALUE);
    }
    let kernel = |p: &Payload| matches!(p, Payload::Kernel(_));
    // A programmatic edge connects kernels and starts at a non-default port; all other edges use the default port.
    let fits = match (kind, from_port) {
        (PROGRAMMATIC, 1 | 2) => kernel(from) && kernel(to),
        (_, from_port) => kind == 0 && from_port == 0,
    };
    if fits {
        Ok(())
    } else {
        Err(Code::INVALID_VALUE)
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // Removes the handles of a graph that a capture or a node has released.
        if self.public {
            for &node in self.lock().nodes.keys() {
                let _ = NODES.remove(node);
            }
        }
    }
}

/// Returns a handle for a new node.
fn new_node() -> u64 {
    handle_of(HandleKind::Node, fresh_id())
}

/// The graph of a handle.
///
/// # Errors
/// `INVALID_VALUE` for an invalid handle.
pub(super) fn find(handle: u64) -> Res<Arc<Graph>> {
    GRAPHS.find(handle).ok_or(Code::INVALID_VALUE)
}

/// The graph that contains a node.
///
/// # Errors
/// `INVALID_VALUE` for an invalid handle.
pub(super) fn graph_of(node: u64) -> Res<Arc<Graph>> {
    let graph = NODES.find(node).ok_or(Code::INVALID_VALUE)?;
    graph.upgrade().ok_or(Code::INVALID_VALUE)
}

/// The payload of a node.
pub(super) fn payload_of(node: u64) -> Res<Arc<Payload>> {
    let graph = graph_of(node)?;
    let state = graph.lock();
    let node = state.nodes.get(&node).ok_or(Code::INVALID_VALUE)?;
    Ok(node.payload.clone())
}
