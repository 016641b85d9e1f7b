//! Graphs: structure, nodes without runtime-specific parameters, user objects. Handles, edges, types and flags are the
//! driver's.

use std::ffi::{c_char, c_void};

use cupyrite_sys::driver::{
    CUevent, CUgraph, CUgraphEdgeData, CUgraphNode, CUgraphNodeType, CUhostFn, CUuserObject,
};

use crate::checked::{non_null, put};
use crate::context;
use crate::entry::{cu, runtime_entry_points};
use crate::errors::Res;

/// The address of an array that the driver reads or writes.
pub(crate) fn array<T>(address: u64) -> *mut T {
    address as *mut T
}

/// Calls `add` with storage for the new node and writes its handle to the caller.
pub(crate) fn added(out: u64, add: impl FnOnce(&mut CUgraphNode) -> Res) -> Res {
    non_null(out)?;
    context::current()?;
    let mut node: CUgraphNode = std::ptr::null_mut();
    add(&mut node)?;
    put(out, node as u64)
}

/// A code address or null; the driver validates it before calling it.
pub(crate) fn host_function(address: u64) -> CUhostFn {
    // SAFETY: a nullable function pointer has the size of an address, and every address is a valid value as long as it
    // is not called; only the driver calls it, as the caller requested.
    unsafe { std::mem::transmute::<usize, CUhostFn>(address as usize) }
}

runtime_entry_points! {
    fn graph_create "cudaGraphCreate" (out: u64, flags: u32) {
        non_null(out)?;
        context::current()?;
        let mut graph: CUgraph = std::ptr::null_mut();
        cu!(cuGraphCreate(&mut graph, flags))?;
        put(out, graph as u64)
    }
    fn graph_destroy "cudaGraphDestroy" (graph: u64) {
        cu!(cuGraphDestroy(graph as CUgraph))
    }
    fn graph_clone "cudaGraphClone" (out: u64, original: u64) {
        non_null(out)?;
        context::current()?;
        let mut graph: CUgraph = std::ptr::null_mut();
        cu!(cuGraphClone(&mut graph, original as CUgraph))?;
        put(out, graph as u64)
    }
    fn find_in_clone "cudaGraphNodeFindInClone" (out: u64, original: u64, clone: u64) {
        added(out, |node| cu!(cuGraphNodeFindInClone(node, original as CUgraphNode, clone as CUgraph)))
    }
    fn add_empty "cudaGraphAddEmptyNode" (out: u64, graph: u64, before: u64, count: usize) {
        added(out, |node| cu!(cuGraphAddEmptyNode(node, graph as CUgraph, array(before), count)))
    }
    fn add_child "cudaGraphAddChildGraphNode" (out: u64, graph: u64, before: u64, count: usize, child: u64) {
        added(out, |node| {
            cu!(cuGraphAddChildGraphNode(node, graph as CUgraph, array(before), count, child as CUgraph))
        })
    }
    fn add_event_record "cudaGraphAddEventRecordNode" (out: u64, graph: u64, before: u64, count: usize, event: u64) {
        added(out, |node| {
            cu!(cuGraphAddEventRecordNode(node, graph as CUgraph, array(before), count, event as CUevent))
        })
    }
    fn add_event_wait "cudaGraphAddEventWaitNode" (out: u64, graph: u64, before: u64, count: usize, event: u64) {
        added(out, |node| {
            cu!(cuGraphAddEventWaitNode(node, graph as CUgraph, array(before), count, event as CUevent))
        })
    }
    fn child_graph "cudaGraphChildGraphNodeGetGraph" (node: u64, out: u64) {
        non_null(out)?;
        let mut graph: CUgraph = std::ptr::null_mut();
        cu!(cuGraphChildGraphNodeGetGraph(node as CUgraphNode, &mut graph))?;
        put(out, graph as u64)
    }
    fn event_record_get "cudaGraphEventRecordNodeGetEvent" (node: u64, out: u64) {
        non_null(out)?;
        let mut event: CUevent = std::ptr::null_mut();
        cu!(cuGraphEventRecordNodeGetEvent(node as CUgraphNode, &mut event))?;
        put(out, event as u64)
    }
    fn event_record_set "cudaGraphEventRecordNodeSetEvent" (node: u64, event: u64) {
        cu!(cuGraphEventRecordNodeSetEvent(node as CUgraphNode, event as CUevent))
    }
    fn event_wait_get "cudaGraphEventWaitNodeGetEvent" (node: u64, out: u64) {
        non_null(out)?;
        let mut event: CUevent = std::ptr::null_mut();
        cu!(cuGraphEventWaitNodeGetEvent(node as CUgraphNode, &mut event))?;
        put(out, event as u64)
    }
    fn event_wait_set "cudaGraphEventWaitNodeSetEvent" (node: u64, event: u64) {
        cu!(cuGraphEventWaitNodeSetEvent(node as CUgraphNode, event as CUevent))
    }
    fn node_type "cudaGraphNodeGetType" (node: u64, out: u64) {
        non_null(out)?;
        let mut kind = CUgraphNodeType::default();
        cu!(cuGraphNodeGetType(node as CUgraphNode, &mut kind))?;
        // The types have the driver's values.
        put(out, kind)
    }
    fn containing_graph "cudaGraphNodeGetContainingGraph" (node: u64, out: u64) {
        non_null(out)?;
        let mut graph: CUgraph = std::ptr::null_mut();
        cu!(cuGraphNodeGetContainingGraph(node as CUgraphNode, &mut graph))?;
        put(out, graph as u64)
    }
    fn local_id "cudaGraphNodeGetLocalId" (node: u64, out: u64) {
        non_null(out)?;
        let mut id = 0;
        cu!(cuGraphNodeGetLocalId(node as CUgraphNode, &mut id))?;
        put(out, id)
    }
    fn tools_id "cudaGraphNodeGetToolsId" (node: u64, out: u64) {
        non_null(out)?;
        let mut id = 0;
        cu!(cuGraphNodeGetToolsId(node as CUgraphNode, &mut id))?;
        put(out, id)
    }
    fn graph_id "cudaGraphGetId" (graph: u64, out: u64) {
        non_null(out)?;
        let mut id = 0;
        cu!(cuGraphGetId(graph as CUgraph, &mut id))?;
        put(out, id)
    }
    fn destroy_node "cudaGraphDestroyNode" (node: u64) {
        cu!(cuGraphDestroyNode(node as CUgraphNode))
    }
    fn get_nodes "cudaGraphGetNodes" (graph: u64, nodes: u64, count: u64) {
        cu!(cuGraphGetNodes(graph as CUgraph, array(nodes), array(count)))
    }
    fn get_root_nodes "cudaGraphGetRootNodes" (graph: u64, nodes: u64, count: u64) {
        cu!(cuGraphGetRootNodes(graph as CUgraph, array(nodes), array(count)))
    }
    fn get_edges "cudaGraphGetEdges" (graph: u64, from: u64, to: u64, data: u64, count: u64) {
        edges(graph, from, to, data, count)
    }
    fn get_edges_v2 "cudaGraphGetEdges_v2" (graph: u64, from: u64, to: u64, data: u64, count: u64) {
        edges(graph, from, to, data, count)
    }
    fn get_dependencies "cudaGraphNodeGetDependencies" (node: u64, nodes: u64, data: u64, count: u64) {
        dependencies(node, nodes, data, count)
    }
    fn get_dependencies_v2 "cudaGraphNodeGetDependencies_v2" (node: u64, nodes: u64, data: u64, count: u64) {
        dependencies(node, nodes, data, count)
    }
    fn get_dependent_nodes "cudaGraphNodeGetDependentNodes" (node: u64, nodes: u64, data: u64, count: u64) {
        dependent_nodes(node, nodes, data, count)
    }
    fn get_dependent_nodes_v2 "cudaGraphNodeGetDependentNodes_v2" (node: u64, nodes: u64, data: u64, count: u64) {
        dependent_nodes(node, nodes, data, count)
    }
    fn add_dependencies "cudaGraphAddDependencies" (graph: u64, from: u64, to: u64, data: u64, count: usize) {
        cu!(cuGraphAddDependencies(graph as CUgraph, array(from), array(to), array(data), count))
    }
    fn add_dependencies_v2 "cudaGraphAddDependencies_v2" (graph: u64, from: u64, to: u64, data: u64, count: usize) {
        cu!(cuGraphAddDependencies(graph as CUgraph, array(from), array(to), array(data), count))
    }
    fn remove_dependencies "cudaGraphRemoveDependencies" (graph: u64, from: u64, to: u64, data: u64, count: usize) {
        cu!(cuGraphRemoveDependencies(graph as CUgraph, array(from), array(to), array(data), count))
    }
    fn remove_dependencies_v2 "cudaGraphRemoveDependencies_v2" (graph: u64, from: u64, to: u64, data: u64, count: usize) {
        cu!(cuGraphRemoveDependencies(graph as CUgraph, array(from), array(to), array(data), count))
    }
    fn debug_dot_print "cudaGraphDebugDotPrint" (graph: u64, path: u64, flags: u32) {
        cu!(cuGraphDebugDotPrint(graph as CUgraph, path as *const c_char, flags))
    }
    fn user_object_create "cudaUserObjectCreate" (out: u64, data: u64, destroy: u64, count: u32, flags: u32) {
        non_null(out)?;
        context::ready()?;
        let mut object: CUuserObject = std::ptr::null_mut();
        cu!(cuUserObjectCreate(&mut object, data as *mut c_void, host_function(destroy), count, flags))?;
        put(out, object as u64)
    }
    fn user_object_retain "cudaUserObjectRetain" (object: u64, count: u32) {
        cu!(cuUserObjectRetain(object as CUuserObject, count))
    }
    fn user_object_release "cudaUserObjectRelease" (object: u64, count: u32) {
        cu!(cuUserObjectRelease(object as CUuserObject, count))
    }
    fn graph_retain "cudaGraphRetainUserObject" (graph: u64, object: u64, count: u32, flags: u32) {
        cu!(cuGraphRetainUserObject(graph as CUgraph, object as CUuserObject, count, flags))
    }
    fn graph_release "cudaGraphReleaseUserObject" (graph: u64, object: u64, count: u32) {
        cu!(cuGraphReleaseUserObject(graph as CUgraph, object as CUuserObject, count))
    }
}

fn edges(graph: u64, from: u64, to: u64, data: u64, count: u64) -> Res {
    let data = array::<CUgraphEdgeData>(data);
    cu!(cuGraphGetEdges(
        graph as CUgraph,
        array(from),
        array(to),
        data,
        array(count)
    ))
}

fn dependencies(node: u64, nodes: u64, data: u64, count: u64) -> Res {
    let node = node as CUgraphNode;
    cu!(cuGraphNodeGetDependencies(
        node,
        array(nodes),
        array(data),
        array(count)
    ))
}

fn dependent_nodes(node: u64, nodes: u64, data: u64, count: u64) -> Res {
    let node = node as CUgraphNode;
    cu!(cuGraphNodeGetDependentNodes(
        node,
        array(nodes),
        array(data),
        array(count)
    ))
}
