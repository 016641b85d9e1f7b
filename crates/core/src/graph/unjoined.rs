//! Finds branches of a capture that were not joined.
//!
//! `cuStreamEndCapture` reports a branch whose last work was queued in its stream. It does not report one whose last node
//! was added with `cuGraphAddNode` and `cuStreamUpdateCaptureDependencies`, as callbacks, embedded graphs and conditional nodes
//! are (observed on an H200, driver 13.0).

use std::collections::{HashMap, HashSet};

use cupyrite_sys::driver::CUgraphNode;

use crate::graph::edges::Edge;

/// Whether a node of `branches` is neither in `end` nor a predecessor of a node there, directly or through others.
pub(crate) fn is_unjoined(edges: &[Edge], end: &[CUgraphNode], branches: &[CUgraphNode]) -> bool {
    let mut predecessors: HashMap<CUgraphNode, Vec<CUgraphNode>> = HashMap::new();
    for &(from, to) in edges {
        predecessors.entry(to).or_default().push(from);
    }
    let mut joined: HashSet<CUgraphNode> = end.iter().copied().collect();
    let mut pending = end.to_vec();
    while let Some(node) = pending.pop() {
        for &before in predecessors.get(&node).into_iter().flatten() {
            if joined.insert(before) {
                pending.push(before);
            }
        }
    }
    branches.iter().any(|node| !joined.contains(node))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: usize) -> CUgraphNode {
        std::ptr::without_provenance_mut(number * 8)
    }

    #[test]
    fn nodes_before_the_end_are_joined() {
        // 1 -> 2 -> 4, 1 -> 3 -> 4, 1 -> 5
        let edges = [(1, 2), (2, 4), (1, 3), (3, 4), (1, 5)].map(|(a, b)| (node(a), node(b)));
        assert!(!is_unjoined(
            &edges,
            &[node(4)],
            &[node(1), node(3), node(4)]
        ));
        assert!(is_unjoined(&edges, &[node(4)], &[node(5)]));
        assert!(!is_unjoined(&edges, &[node(4), node(5)], &[node(5)]));
        assert!(is_unjoined(&edges, &[], &[node(1)]));
        assert!(!is_unjoined(&edges, &[node(4)], &[]));
    }
}
