//! What a definition's lock guards: what the graph retains, and which nodes were destroyed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::destroyed::OwnedKind;
use cupyrite_sys::driver::{CUgraphConditionalHandle, CUgraphNode};

use crate::graph::condition::{Condition, ConditionalKind};
use crate::graph::retained::Retention;

/// Guarded by the lock that serialises calls on a definition.
#[derive(Default)]
pub(crate) struct DefinitionState {
    pub(crate) retention: Retention,
    /// Conditions and their bodies, by conditional node: older drivers do not report them.
    pub(crate) conditionals: HashMap<usize, ConditionalRecord>,
    /// The handles that [`create_condition`](super::GraphDefinition::create_condition) returned.
    pub(crate) conditions: HashSet<CUgraphConditionalHandle>,
    /// By node: whether the graphs that belong to it exist.
    pub(crate) owners: HashMap<usize, Arc<AtomicBool>>,
    /// The number of nodes that [`destroy_node`](super::GraphDefinition::destroy_node) has destroyed.
    destroys: u64,
    /// By node: that number after the node was destroyed. Tells references to it from those to a later node with the same
    /// handle.
    destroyed: HashMap<usize, u64>,
}

/// When a node was named, to find out later whether it was destroyed since: see
/// [`DefinitionLock::check_node`](super::DefinitionLock::check_node).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeStamp {
    destroys: u64,
    /// [`OwnedKind::epoch`].
    created: u32,
}

impl NodeStamp {
    /// Whether the program has destroyed the node by its handle since then. Destructions by this crate are checked under
    /// the lock only.
    pub fn is_destroyed_by_program(self, node: CUgraphNode) -> bool {
        OwnedKind::GraphNode.is_destroyed(node, std::ptr::null_mut(), self.created)
    }
}

impl DefinitionState {
    /// The stamp of a node that the driver names now.
    pub(crate) fn stamp(&self) -> NodeStamp {
        NodeStamp {
            destroys: self.destroys,
            created: OwnedKind::GraphNode.epoch(),
        }
    }

    /// Whether this crate has destroyed a node since it was named.
    pub(crate) fn is_destroyed(&self, node: CUgraphNode, stamp: NodeStamp) -> bool {
        self.destroys != stamp.destroys
            && self
                .destroyed
                .get(&node.addr())
                .is_some_and(|destroyed| *destroyed > stamp.destroys)
    }

    /// Notes that this crate has destroyed a node.
    pub(crate) fn note_destroyed(&mut self, node: CUgraphNode) {
        self.invalidate_graphs_of(node);
        self.destroys += 1;
        self.destroyed.insert(node.addr(), self.destroys);
    }

    /// Whether a graph that belongs to the node was named.
    pub(crate) fn has_graphs_of(&self, node: CUgraphNode) -> bool {
        self.owners.contains_key(&node.addr())
    }

    /// Notes that the graphs of a node no longer exist.
    pub(crate) fn invalidate_graphs_of(&mut self, node: CUgraphNode) {
        self.conditionals.remove(&node.addr());
        if let Some(alive) = self.owners.remove(&node.addr()) {
            alive.store(false, Ordering::Relaxed);
        }
    }
}

/// A conditional node as it was added.
#[derive(Clone)]
pub(crate) struct ConditionalRecord {
    pub(crate) condition: Condition,
    pub(crate) kind: ConditionalKind,
    pub(crate) bodies: Vec<usize>,
}
