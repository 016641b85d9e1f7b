//! Nodes of a definition, and the edges between them.

use cupyrite_sys::driver::{CUgraphEdgeData, CUgraphNode, CUresult};

use crate::error::{Error, Result, driver};
use crate::graph::definition::GraphDefinition;

/// An edge: the node that runs first, and the one that waits for it.
pub type Edge = (CUgraphNode, CUgraphNode);

/// The result of `newer`, or that of `older` for a driver that lacks edge data (before CUDA 12.3).
fn with_edge_data(newer: Result<()>, older: impl FnOnce() -> Result<()>) -> Result<()> {
    match newer {
        Err(Error::Load(_)) => older(),
        other => other,
    }
}

/// Asks for a number of handles, and then for the handles.
fn list<const N: usize>(
    mut ask: impl FnMut([*mut CUgraphNode; N], *mut CUgraphEdgeData, &mut usize) -> Result<()>,
) -> Result<[Vec<CUgraphNode>; N]> {
    let mut count = 0;
    ask([std::ptr::null_mut(); N], std::ptr::null_mut(), &mut count)?;
    let mut found = [const { Vec::new() }; N];
    if count == 0 {
        return Ok(found);
    }
    let mut data = vec![CUgraphEdgeData::default(); count];
    let places = found.each_mut().map(|nodes| {
        nodes.resize(count, std::ptr::null_mut());
        nodes.as_mut_ptr()
    });
    ask(places, data.as_mut_ptr(), &mut count)?;
    for nodes in &mut found {
        nodes.truncate(count);
    }
    Ok(found)
}

impl GraphDefinition {
    /// All nodes.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphGetNodes`.
    pub fn node_handles(&self) -> Result<Vec<CUgraphNode>> {
        let entered = self.enter("GraphDefinition::nodes")?;
        let graph = entered.handle;
        // SAFETY: the graph is live; `list` provides room for `count` nodes, or asks for the count.
        let [nodes] =
            list(|[nodes], _, count| unsafe { driver!(cuGraphGetNodes(graph, nodes, count)) })?;
        Ok(nodes)
    }

    /// All edges.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphGetEdges`.
    pub fn edge_handles(&self) -> Result<Vec<Edge>> {
        let entered = self.enter("GraphDefinition::edges")?;
        let graph = entered.handle;
        // SAFETY: the graph is live; `list` provides room for `count` edges, or asks for the count.
        let [from, to] = list(|[from, to], data, count| unsafe {
            with_edge_data(
                driver!(cuGraphGetEdges(graph, from, to, data, count)),
                || driver!(cuGraphGetEdges_cuda12(graph, from, to, count)),
            )
        })?;
        Ok(from.into_iter().zip(to).collect())
    }

    /// The nodes that `node` waits for.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphNodeGetDependencies`.
    ///
    /// # Safety
    ///
    /// `node` is a live node of this definition.
    pub unsafe fn predecessors_of(&self, node: CUgraphNode) -> Result<Vec<CUgraphNode>> {
        let _entered = self.enter("Node::predecessors")?;
        // SAFETY: the node is live; `list` provides room for `count` nodes, or asks for the count.
        let [nodes] = list(|[nodes], data, count| unsafe {
            with_edge_data(
                driver!(cuGraphNodeGetDependencies(node, nodes, data, count)),
                || driver!(cuGraphNodeGetDependencies_cuda12(node, nodes, count)),
            )
        })?;
        Ok(nodes)
    }

    /// The nodes that wait for `node`.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphNodeGetDependentNodes`.
    ///
    /// # Safety
    ///
    /// `node` is a live node of this definition.
    pub unsafe fn successors_of(&self, node: CUgraphNode) -> Result<Vec<CUgraphNode>> {
        let _entered = self.enter("Node::successors")?;
        // SAFETY: the node is live; `list` provides room for `count` nodes, or asks for the count.
        let [nodes] = list(|[nodes], data, count| unsafe {
            with_edge_data(
                driver!(cuGraphNodeGetDependentNodes(node, nodes, data, count)),
                || driver!(cuGraphNodeGetDependentNodes_cuda12(node, nodes, count)),
            )
        })?;
        Ok(nodes)
    }

    /// Adds edges; all of them or none.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an edge from a node to itself; the driver's error for edges that exist. Source:
    /// `cuGraphAddDependencies`.
    ///
    /// # Safety
    ///
    /// The nodes are live nodes of this definition.
    pub unsafe fn add_edges(&self, edges: &[Edge]) -> Result<()> {
        if edges.iter().any(|(from, to)| from == to) {
            return Err(Error::argument(
                "GraphDefinition::add_edges",
                "edges",
                "contains an edge from a node to itself",
            ));
        }
        let entered = self.enter("GraphDefinition::add_edges")?;
        let (from, to): (Vec<_>, Vec<_>) = edges.iter().copied().unzip();
        let (graph, count) = (entered.handle, edges.len());
        // SAFETY: the graph and, by the caller's contract, the nodes are live; both lists have `count` entries.
        unsafe {
            with_edge_data(
                driver!(cuGraphAddDependencies(
                    graph,
                    from.as_ptr(),
                    to.as_ptr(),
                    std::ptr::null(),
                    count
                )),
                || {
                    driver!(cuGraphAddDependencies_cuda12(
                        graph,
                        from.as_ptr(),
                        to.as_ptr(),
                        count
                    ))
                },
            )
        }
    }

    /// Removes edges; edges that do not exist are ignored.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphRemoveDependencies`.
    ///
    /// # Safety
    ///
    /// The nodes are live nodes of this definition.
    pub unsafe fn remove_edges(&self, edges: &[Edge]) -> Result<()> {
        let entered = self.enter("GraphDefinition::remove_edges")?;
        let graph = entered.handle;
        for (from, to) in edges {
            // SAFETY: the graph and, by the caller's contract, the nodes are live.
            let removed = unsafe {
                with_edge_data(
                    driver!(cuGraphRemoveDependencies(
                        graph,
                        from,
                        to,
                        std::ptr::null(),
                        1
                    )),
                    || driver!(cuGraphRemoveDependencies_cuda12(graph, from, to, 1)),
                )
            };
            match removed {
                Err(Error::Driver {
                    status: CUresult::CUDA_ERROR_INVALID_VALUE,
                    ..
                }) => {}
                other => other?,
            }
        }
        Ok(())
    }
}
