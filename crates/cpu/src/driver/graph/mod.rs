//! Graphs: work that is described first and launched later, as often as wanted.
//!
//! Belongs here: graphs and their nodes, stream capture, executable graphs, user objects. What a node does is defined
//! where the same work is defined for streams (`launch`, `memset`, `copy`, ...): a node holds a validated, copied
//! description of it.
//!
//! * `mod.rs`: the graph as a structure; `node.rs`: what nodes hold.
//! * `build.rs`, `edges.rs`, `params.rs`: the entry points that make and change graphs.
//! * `exec.rs`, `plan.rs`, `update.rs`: executable graphs: instantiation, launch, updates.
//! * `capture.rs`: streams whose work becomes nodes. `memory.rs`: memory that graphs allocate. `objects.rs`: user objects.
//! * `dot.rs`: graphs for the eye.
//!
//! Locks are taken in this order: captures, executable graph, graph, embedded graph, handle tables.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};

use crate::driver::entry::Entry;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, Table, fresh_id, handle_of};

mod build;
pub(super) mod capture;
mod dot;
mod edges;
mod exec;
pub(super) mod memory;
mod node;
mod objects;
mod params;
mod plan;
mod update;

pub(super) use node::{EventNode, Kernel, MemOps, Memcpy, Memset, Payload};
use objects::Objects;

static GRAPHS: Table<Graph> = Table::new(HandleKind::Graph);
static NODES: Table<Weak<Graph>> = Table::new(HandleKind::Node);

/// The entry points of graphs.
pub(super) fn entry_points() -> impl Iterator<Item = &'static Entry> {
    [
        build::ENTRIES,
        capture::ENTRIES,
        dot::ENTRIES,
        edges::ENTRIES,
        exec::ENTRIES,
        memory::ENTRIES,
        objects::ENTRIES,
        params::ENTRIES,
        update::ENTRIES,
    ]
    .into_iter()
    .flatten()
}

/// Graphs may be embedded in graphs this deep.
const MOST_LEVELS: usize = 128;
/// Most nodes of a graph, those of embedded graphs included.
const MOST_NODES: usize = 1 << 22;

/// `CUgraphEdgeData`: the port of the node before, the port of the node after, the type; the rest is zero.
pub(super) type EdgeData = [u8; 8];

/// One end of an edge: the node at the other end, and what the edge carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) node: u64,
    pub(super) data: EdgeData,
}

impl Edge {
    /// An edge that carries nothing: the whole of `node` comes first.
    pub(super) fn plain(node: u64) -> Edge {
        Edge { node, data: [0; 8] }
    }
}

/// A node in its graph. It has the number its handle is made of.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) payload: Arc<Payload>,
    /// The node this was cloned from, zero if it was not.
    pub(super) origin: u64,
    /// Number in the graph, and in its clones.
    pub(super) local: u32,
    /// What it depends on.
    pub(super) before: Vec<Edge>,
    /// What depends on it.
    pub(super) after: Vec<Edge>,
}

/// A graph.
pub(super) struct Graph {
    pub(super) id: u64,
    pub(super) handle: u64,
    /// Whether callers know it and its nodes by handles. An executable graph's own copy is not known.
    public: bool,
    /// The node that embeds it, zero for a graph that stands for itself.
    embedded_in: AtomicU64,
    state: Mutex<State>,
}

/// What a graph's lock protects.
#[derive(Default)]
pub(super) struct State {
    /// By handle, which is the order in which they were made.
    pub(super) nodes: BTreeMap<u64, Node>,
    /// Handle of the graph this was cloned from, zero if it was not.
    pub(super) cloned_from: u64,
    pub(super) objects: Objects,
    /// Nodes that allocate or free memory, in embedded graphs too.
    pub(super) memory_nodes: usize,
    /// The one executable graph that a graph with such nodes may have.
    pub(super) executable: Weak<exec::Exec>,
    /// Number of the next node.
    next_local: u32,
    /// Number of captures that place nodes here; a graph is not instantiated meanwhile.
    pub(super) capturing: usize,
}

impl Graph {
    fn make(public: bool, embedded_in: u64, state: State) -> Arc<Graph> {
        let id = fresh_id();
        let graph = Arc::new(Graph {
            id,
            handle: handle_of(HandleKind::Graph, id),
            public,
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

    /// An empty graph whose handle is known.
    pub(super) fn create() -> Arc<Graph> {
        let graph = Self::make(true, 0, State::default());
        GRAPHS.insert(graph.id, graph.clone());
        graph
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// A copy with all nodes, edges and references to user objects, graphs within included. `level` says how deep the
    /// copy will be embedded.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` for a graph with nodes that allocate or free memory, unless `with_memory`; `INVALID_VALUE` if
    /// graphs lie too deep in one another.
    pub(super) fn copy(
        self: &Arc<Graph>,
        public: bool,
        embedded_in: u64,
        level: usize,
        with_memory: bool,
    ) -> Res<Arc<Graph>> {
        if level >= MOST_LEVELS {
            return Err(Code::INVALID_VALUE);
        }
        let state = self.lock();
        if state.memory_nodes > 0 && !with_memory {
            return Err(Code::NOT_SUPPORTED);
        }
        let fresh: HashMap<u64, u64> = state.nodes.keys().map(|&n| (n, new_node())).collect();
        // Handles grow, so the order of creation stays.
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
            let payload = match &*node.payload {
                Payload::Graph(inner) => Arc::new(Payload::Graph(inner.copy(
                    public,
                    fresh[&handle],
                    level + 1,
                    with_memory,
                )?)),
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
        let state = State {
            nodes,
            cloned_from: self.handle,
            objects: state.objects.clone(),
            memory_nodes: state.memory_nodes,
            next_local: state.next_local,
            ..State::default()
        };
        let copy = Self::make(public, embedded_in, state);
        if public {
            GRAPHS.insert(copy.id, copy.clone());
        }
        Ok(copy)
    }

    /// Nodes here and in embedded graphs.
    pub(super) fn size(&self) -> usize {
        let state = self.lock();
        let inner = state.nodes.values().map(|n| match &*n.payload {
            Payload::Graph(inner) => inner.size(),
            _ => 0,
        });
        inner.fold(state.nodes.len(), usize::saturating_add)
    }

    /// How many graphs lie in one another here, this one included.
    pub(super) fn height(&self) -> usize {
        let state = self.lock();
        let inner = state.nodes.values().map(|n| match &*n.payload {
            Payload::Graph(inner) => inner.height(),
            _ => 0,
        });
        1 + inner.max().unwrap_or(0)
    }

    /// How deep this graph is embedded: zero if it stands for itself.
    pub(super) fn level(&self) -> usize {
        let mut level = 0;
        let mut node = self.embedded_in();
        while node != 0 && level < MOST_LEVELS {
            level += 1;
            node = graph_of(node).map_or(0, |g| g.embedded_in());
        }
        level
    }

    /// The node that embeds it, zero for a graph that stands for itself.
    pub(super) fn embedded_in(&self) -> u64 {
        self.embedded_in.load(Ordering::Acquire)
    }

    /// Whether this graph is `other` or lies in it.
    pub(super) fn lies_in(&self, other: &Graph) -> bool {
        if self.id == other.id {
            return true;
        }
        let mut node = self.embedded_in();
        for _ in 0..MOST_LEVELS {
            match graph_of(node) {
                Ok(graph) if graph.id == other.id => return true,
                Ok(graph) => node = graph.embedded_in(),
                Err(_) => return false,
            }
        }
        false
    }

    /// Adds a node that holds `inner`, a graph nobody else embeds.
    ///
    /// # Errors
    /// `INVALID_VALUE` if graphs would lie too deep in one another, `OUT_OF_MEMORY` for too many nodes, and those of
    /// [`Graph::add`].
    pub(super) fn embed(self: &Arc<Graph>, inner: Arc<Graph>, before: &[Edge]) -> Res<u64> {
        if self.level() + 1 + inner.height() > MOST_LEVELS {
            return Err(Code::INVALID_VALUE);
        }
        if self.size().saturating_add(inner.size()) > MOST_NODES {
            return Err(Code::OUT_OF_MEMORY);
        }
        let node = self.add(Payload::Graph(inner.clone()), before)?;
        inner.embedded_in.store(node, Ordering::Release);
        Ok(node)
    }

    /// Adds a node that depends on `before`, which [`State::check_dependencies`] has seen.
    pub(super) fn add(self: &Arc<Graph>, payload: Payload, before: &[Edge]) -> Res<u64> {
        let mut state = self.lock();
        state.check_dependencies(before, &payload)?;
        Ok(self.add_checked(&mut state, payload, before))
    }

    /// [`Graph::add`] under a lock already held, for dependencies that are known to be good.
    fn add_checked(self: &Arc<Graph>, state: &mut State, payload: Payload, before: &[Edge]) -> u64 {
        let handle = new_node();
        state.memory_nodes += payload.memory_nodes();
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

    /// Makes the handles of the graph and of all in it unknown. Executable graphs made from it live on.
    fn retire(self: &Arc<Graph>) {
        let _ = GRAPHS.remove(self.handle);
        let inner: Vec<Arc<Graph>> = {
            let state = self.lock();
            for &node in state.nodes.keys() {
                let _ = NODES.remove(node);
            }
            let inner = state.nodes.values().filter_map(|n| n.payload.inner());
            inner.cloned().collect()
        };
        for graph in inner {
            graph.retire();
        }
    }
}

impl State {
    /// Whether `edges` name nodes of this graph, each once, and what they carry fits a node with that payload after them.
    ///
    /// # Errors
    /// `INVALID_VALUE` if not; `OUT_OF_MEMORY` if there are too many nodes.
    pub(super) fn check_dependencies(&self, edges: &[Edge], payload: &Payload) -> Res {
        if self.nodes.len() >= MOST_NODES {
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
        // What a graph frees it frees once.
        if let Payload::MemFree(f) = payload {
            let mut nodes = self.nodes.values();
            let frees =
                |n: &Node| matches!(&*n.payload, Payload::MemFree(o) if o.address() == f.address());
            if nodes.any(frees) {
                return Err(Code::INVALID_VALUE);
            }
        }
        Ok(())
    }

    /// Draws an edge between nodes that exist.
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

    /// What the edge between two nodes carries, if there is one.
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

/// Whether an edge may carry `data` between nodes with those payloads.
fn check_edge(data: EdgeData, from: &Payload, to: &Payload) -> Res {
    const PROGRAMMATIC: u8 = 1;
    let [from_port, to_port, kind, rest @ ..] = data;
    if rest != [0; 5] || to_port != 0 || kind > PROGRAMMATIC {
        return Err(Code::INVALID_VALUE);
    }
    let kernel = |p: &Payload| matches!(p, Payload::Kernel(_));
    // A programmatic edge lies between kernels and begins at a port other than the default one, which is all others' only.
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
        // The handles of a graph that a capture or a node gave up.
        if self.public {
            for &node in self.lock().nodes.keys() {
                let _ = NODES.remove(node);
            }
        }
    }
}

/// A handle for a new node.
fn new_node() -> u64 {
    handle_of(HandleKind::Node, fresh_id())
}

/// The graph a handle names.
///
/// # Errors
/// `INVALID_VALUE` for a handle of nothing.
pub(super) fn find(handle: u64) -> Res<Arc<Graph>> {
    GRAPHS.find(handle).ok_or(Code::INVALID_VALUE)
}

/// The graph in which the node with that handle is.
///
/// # Errors
/// `INVALID_VALUE` for a handle of nothing.
pub(super) fn graph_of(node: u64) -> Res<Arc<Graph>> {
    let graph = NODES.find(node).ok_or(Code::INVALID_VALUE)?;
    graph.upgrade().ok_or(Code::INVALID_VALUE)
}

/// What the node with that handle holds.
pub(super) fn payload_of(node: u64) -> Res<Arc<Payload>> {
    let graph = graph_of(node)?;
    let state = graph.lock();
    let node = state.nodes.get(&node).ok_or(Code::INVALID_VALUE)?;
    Ok(node.payload.clone())
}
