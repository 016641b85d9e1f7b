//! The edge of a graph as plain data. Streams in a capture hold the edges of their next node.

/// `CUgraphEdgeData`: source port, destination port, type; the rest is zero.
pub(in crate::driver) type EdgeData = [u8; 8];

/// One end of an edge: the node at the other end and the edge's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::driver) struct Edge {
    pub(in crate::driver) node: u64,
    pub(in crate::driver) data: EdgeData,
}

impl Edge {
    /// An edge without data: it waits for the whole of `node`.
    pub(in crate::driver) fn plain(node: u64) -> Edge {
        Edge { node, data: [0; 8] }
    }
}
