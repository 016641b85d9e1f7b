//! Edges: reading them from the caller, adding and removing them, and queries of a graph's structure.

use std::collections::HashSet;

use super::{Code, Edge, EdgeData, check_edge, find, graph_of};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, get_array, non_null, put, put_bytes};
use crate::driver::entry::driver_entry_points;

/// Reads `count` nodes and their edge data; without `data`, the edges have default data.
///
/// # Errors
/// `INVALID_VALUE` if `count` is not zero and the nodes are unreadable.
pub(super) fn read(nodes: u64, data: u64, count: u64) -> Res<Vec<Edge>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    non_null(nodes)?;
    let count = usize::try_from(count).map_err(|_| Code::INVALID_VALUE)?;
    let nodes = get_array::<u64>(nodes, count)?;
    let data = if data == 0 {
        vec![[0; 8]; count]
    } else {
        get_array::<EdgeData>(data, count)?
    };
    let edges = nodes.into_iter().zip(data);
    Ok(edges.map(|(node, data)| Edge { node, data }).collect())
}

/// Writes a list as graph queries do: into an array with room for `*count` entries, the rest of which is zeroed, and
/// the number of entries written to `*count`. A null array is not written.
fn fill(array: u64, room: u64, entries: impl Iterator<Item = u64>) -> Res {
    if array == 0 {
        return Ok(());
    }
    let room = usize::try_from(room).map_err(|_| Code::INVALID_VALUE)?;
    let mut bytes: Vec<u8> = entries.take(room).flat_map(u64::to_ne_bytes).collect();
    let mut at = array;
    let mut left = room.checked_mul(8).ok_or(Code::INVALID_VALUE)? - bytes.len();
    const PIECE: usize = 64 << 10;
    loop {
        let more = left.min(PIECE);
        bytes.resize(bytes.len() + more, 0);
        left -= more;
        if bytes.is_empty() {
            return Ok(());
        }
        put_bytes(at, &bytes)?;
        at += bytes.len() as u64;
        bytes.clear();
    }
}

/// Writes a list of edges to parallel arrays (`first` and, if requested, `second` and `data`), or its length if there
/// is no array.
fn put_edges(first: u64, second: Option<u64>, data: u64, count: u64, edges: &[(u64, Edge)]) -> Res {
    non_null(count)?;
    if first == 0 {
        if second.is_some_and(|a| a != 0) || data != 0 {
            return Err(Code::INVALID_VALUE);
        }
        return put(count, edges.len() as u64);
    }
    if second == Some(0) {
        return Err(Code::INVALID_VALUE);
    }
    let room = get::<u64>(count)?;
    let told = room.min(edges.len() as u64) as usize;
    if data == 0 && edges[..told].iter().any(|(_, e)| e.data != [0; 8]) {
        return Err(Code::LOSSY_QUERY);
    }
    match second {
        Some(second) => {
            fill(first, room, edges.iter().map(|(from, _)| *from))?;
            fill(second, room, edges.iter().map(|(_, e)| e.node))?;
        }
        None => fill(first, room, edges.iter().map(|(_, e)| e.node))?,
    }
    fill(
        data,
        room,
        edges.iter().map(|(_, e)| u64::from_ne_bytes(e.data)),
    )?;
    put(count, told as u64)
}

/// Writes a list of nodes.
fn put_nodes(nodes: u64, count: u64, list: impl Iterator<Item = u64>) -> Res {
    let list: Vec<(u64, Edge)> = list.map(|n| (0, Edge::plain(n))).collect();
    put_edges(nodes, None, 0, count, &list)
}

fn graph_edges(graph: u64, from: u64, to: u64, data: u64, count: u64) -> Res {
    let graph = find(graph)?;
    let edges: Vec<(u64, Edge)> = {
        let state = graph.lock();
        let nodes = state.nodes.iter();
        nodes
            .flat_map(|(&n, node)| node.after.iter().map(move |&e| (n, e)))
            .collect()
    };
    put_edges(from, Some(to), data, count, &edges)
}

fn node_edges(node: u64, before: bool, nodes: u64, data: u64, count: u64) -> Res {
    let graph = graph_of(node)?;
    let edges: Vec<(u64, Edge)> = {
        let state = graph.lock();
        let found = state.nodes.get(&node).ok_or(Code::INVALID_VALUE)?;
        let edges = if before { &found.before } else { &found.after };
        edges.iter().map(|&e| (node, e)).collect()
    };
    put_edges(nodes, None, data, count, &edges)
}

/// Reads `count` pairs of nodes, all of which must be in the graph.
fn pairs(from: u64, to: u64, data: u64, count: u64) -> Res<Vec<(u64, Edge)>> {
    let from = read(from, 0, count)?;
    let to = read(to, data, count)?;
    let both = from.into_iter().zip(to);
    Ok(both.map(|(f, t)| (f.node, t)).collect())
}

fn add(graph: u64, from: u64, to: u64, data: u64, count: u64) -> Res {
    let graph = find(graph)?;
    let edges = pairs(from, to, data, count)?;
    let mut state = graph.lock();
    // Atomic: all edges are checked before the first one is added.
    let mut new = HashSet::new();
    for (from, edge) in &edges {
        let a = state.nodes.get(from).ok_or(Code::INVALID_VALUE)?;
        let b = state.nodes.get(&edge.node).ok_or(Code::INVALID_VALUE)?;
        let known = state.edge(*from, edge.node).is_some();
        if *from == edge.node || known || !new.insert((*from, edge.node)) {
            return Err(Code::INVALID_VALUE);
        }
        check_edge(edge.data, &a.payload, &b.payload)?;
    }
    for (from, edge) in edges {
        state.connect(from, edge.node, edge.data);
    }
    Ok(())
}

fn remove(graph: u64, from: u64, to: u64, data: u64, count: u64) -> Res {
    let graph = find(graph)?;
    let edges = pairs(from, to, data, count)?;
    let mut state = graph.lock();
    if edges.is_empty() {
        return Ok(());
    }
    if state.memory_nodes > 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    let mut removed = HashSet::new();
    for (from, edge) in &edges {
        state.edge(*from, edge.node).ok_or(Code::INVALID_VALUE)?;
        // Removes the edge without comparing its data: an H200's driver (580) ignores the data of the call.
        if !removed.insert((*from, edge.node)) {
            return Err(Code::INVALID_VALUE);
        }
    }
    for (from, edge) in edges {
        state.disconnect(from, edge.node);
    }
    Ok(())
}

driver_entry_points! {
    fn add_dependencies "cuGraphAddDependencies" (graph: u64, from: u64, to: u64, count: u64) {
        add(graph, from, to, 0, count)
    }
    fn add_dependencies_v2 "cuGraphAddDependencies_v2" (graph: u64, from: u64, to: u64, data: u64, count: u64) {
        add(graph, from, to, data, count)
    }
    fn remove_dependencies "cuGraphRemoveDependencies" (graph: u64, from: u64, to: u64, count: u64) {
        remove(graph, from, to, 0, count)
    }
    fn remove_dependencies_v2 "cuGraphRemoveDependencies_v2" (graph: u64, from: u64, to: u64, data: u64, count: u64) {
        remove(graph, from, to, data, count)
    }
    fn get_nodes "cuGraphGetNodes" (graph: u64, nodes: u64, count: u64) {
        let graph = find(graph)?;
        let list: Vec<u64> = graph.lock().nodes.keys().copied().collect();
        put_nodes(nodes, count, list.into_iter())
    }
    fn get_root_nodes "cuGraphGetRootNodes" (graph: u64, nodes: u64, count: u64) {
        let graph = find(graph)?;
        let list: Vec<u64> = {
            let state = graph.lock();
            let roots = state.nodes.iter().filter(|(_, node)| node.before.is_empty());
            roots.map(|(&n, _)| n).collect()
        };
        put_nodes(nodes, count, list.into_iter())
    }
    fn get_edges "cuGraphGetEdges" (graph: u64, from: u64, to: u64, count: u64) {
        graph_edges(graph, from, to, 0, count)
    }
    fn get_edges_v2 "cuGraphGetEdges_v2" (graph: u64, from: u64, to: u64, data: u64, count: u64) {
        graph_edges(graph, from, to, data, count)
    }
    fn get_dependencies "cuGraphNodeGetDependencies" (node: u64, nodes: u64, count: u64) {
        node_edges(node, true, nodes, 0, count)
    }
    fn get_dependencies_v2 "cuGraphNodeGetDependencies_v2" (node: u64, nodes: u64, data: u64, count: u64) {
        node_edges(node, true, nodes, data, count)
    }
    fn get_dependent_nodes "cuGraphNodeGetDependentNodes" (node: u64, nodes: u64, count: u64) {
        node_edges(node, false, nodes, 0, count)
    }
    fn get_dependent_nodes_v2 "cuGraphNodeGetDependentNodes_v2" (node: u64, nodes: u64, data: u64, count: u64) {
        node_edges(node, false, nodes, data, count)
    }
}
