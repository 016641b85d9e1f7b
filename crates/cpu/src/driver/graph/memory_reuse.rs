//! Reuse of addresses within a graph.
//!
//! An allocation node takes over the address of an earlier allocation of the same graph that is free at this point of
//! the graph's order: the new node depends on the node that frees it. As in NVIDIA's driver (H200, driver 580),
//! consecutive nodes then share an address and its memory. The allocations of different branches have different
//! addresses.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::memory::{Allocation, AllocationRequest};
use super::{Edge, GraphState, Payload};

/// Memory that the nodes of a graph allocate and free.
#[derive(Default)]
pub(super) struct GraphMemory {
    /// Numbers of allocations and frees in this graph, by address.
    counts: HashMap<u64, (u32, u32)>,
    /// Memory that this graph allocates and frees, by the node that frees it, unless a later node has taken it over.
    freed: Vec<(u64, Arc<Allocation>)>,
}

impl GraphMemory {
    /// Whether the graph may have another node that frees the address: one for each allocation, or one for an allocation of
    /// another graph.
    pub(super) fn can_free(&self, address: u64) -> bool {
        let (allocations, frees) = self.counts.get(&address).copied().unwrap_or_default();
        frees < allocations.max(1)
    }

    /// Records a node.
    pub(super) fn add(&mut self, node: u64, payload: &Payload) {
        match payload {
            Payload::MemAlloc(a) => self.counts.entry(a.address()).or_default().0 += 1,
            Payload::MemFree(f) => {
                let (allocations, frees) = self.counts.entry(f.address()).or_default();
                *frees += 1;
                if *frees <= *allocations {
                    self.freed.push((node, f.allocation().clone()));
                }
            }
            _ => {}
        }
    }

    /// Removes the record of a node that could not be reported to the caller.
    pub(super) fn remove(&mut self, node: u64, payload: &Payload) {
        match payload {
            Payload::MemAlloc(a) => self.counts.entry(a.address()).or_default().0 -= 1,
            Payload::MemFree(f) => {
                self.counts.entry(f.address()).or_default().1 -= 1;
                self.freed.retain(|(by, _)| *by != node);
            }
            _ => {}
        }
    }
}

/// Memory taken over for a new node.
pub(in crate::driver) struct Claim {
    /// The node that frees it.
    by: u64,
    pub(super) allocation: Arc<Allocation>,
}

impl GraphState {
    /// Takes freed memory for a new node with those dependencies: the smallest block that is large enough, and of equal
    /// ones the block that the newest node frees.
    pub(super) fn claim(&mut self, request: &AllocationRequest, before: &[Edge]) -> Option<Claim> {
        let freed = self.memory.freed.iter().enumerate();
        let mut fitting: Vec<(u64, Reverse<u64>, usize)> = freed
            .filter(|(_, (_, allocation))| request.fits(allocation))
            .map(|(at, (node, allocation))| (allocation.size(), Reverse(*node), at))
            .collect();
        fitting.sort_unstable();
        let best = self.first_before(fitting.iter().map(|(_, Reverse(node), _)| *node), before)?;
        let (by, allocation) = self.memory.freed.swap_remove(fitting[best].2);
        Some(Claim { by, allocation })
    }

    /// The position of the first of these nodes that is a dependency, direct or not, of a node with dependencies `before`.
    fn first_before(&self, nodes: impl Iterator<Item = u64>, before: &[Edge]) -> Option<usize> {
        let rank: HashMap<u64, usize> = nodes.enumerate().map(|(at, node)| (node, at)).collect();
        if rank.is_empty() {
            return None;
        }
        let mut best = None;
        let mut seen = HashSet::new();
        let mut open: Vec<u64> = before.iter().map(|e| e.node).collect();
        while let Some(node) = open.pop() {
            if !seen.insert(node) {
                continue;
            }
            if let Some(&at) = rank.get(&node) {
                if at == 0 {
                    return Some(0);
                }
                best = Some(best.map_or(at, |b: usize| b.min(at)));
            }
            if let Some(found) = self.nodes.get(&node) {
                open.extend(found.before.iter().map(|e| e.node));
            }
        }
        best
    }

    /// Returns memory for which no node was added.
    pub(super) fn return_claim(&mut self, claim: Claim) {
        self.memory.freed.push((claim.by, claim.allocation));
    }
}
