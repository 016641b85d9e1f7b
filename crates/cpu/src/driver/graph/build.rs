//! Graph creation, cloning and destruction, and node insertion and removal.

use std::mem::offset_of;
use std::sync::Arc;

use cupyrite_sys::driver::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D,
    CUgraphNodeParams,
};

use super::memory::{AllocationRequest, Free};
use super::params::{self, NodeParams};
use super::{
    Code, EventNode, Graph, Kernel, MemOps, Memcpy, Memset, Payload, edges, find, graph_of,
};
use crate::driver::context::{self, Context};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::logs::refuse;

/// Adds a node to a graph and writes its handle to the caller.
pub(super) fn add(
    out: u64,
    graph: u64,
    (nodes, data, count): (u64, u64, u64),
    payload: impl FnOnce() -> Res<NodeParams>,
) -> Res {
    non_null(out)?;
    let graph = find(graph)?;
    let before = edges::read(nodes, data, count)?;
    {
        // Rejects dependencies outside the graph before processing the parameters.
        let state = graph.lock();
        if before.iter().any(|e| !state.nodes.contains_key(&e.node)) {
            return Err(Code::INVALID_VALUE);
        }
    }
    let node = match payload()? {
        NodeParams::Payload(payload) => {
            if payload.memory_nodes() > 0 {
                check_memory_node(&graph)?;
            }
            graph.add(*payload, &before)?
        }
        NodeParams::Allocation(request) => {
            check_memory_node(&graph)?;
            let claim = graph.lock().claim(&request, &before);
            let added = request
                .place(claim.as_ref())
                .and_then(|node| graph.add(Payload::MemAlloc(node), &before));
            if let (Err(_), Some(claim)) = (&added, claim) {
                graph.lock().return_claim(claim);
            }
            added?
        }
        NodeParams::Conditional(request) => request.add_to(&graph, &before)?,
        NodeParams::Clone(inner) | NodeParams::Move(inner) if inner.lock().has_conditionals() => {
            return refuse(Code::NOT_SUPPORTED, || {
                "graphs with conditional nodes cannot become child graphs; nodes can be added to a child graph".into()
            });
        }
        NodeParams::Clone(inner) if inner.embedded_in() != 0 => return Err(Code::NOT_SUPPORTED),
        NodeParams::Clone(inner) => {
            let copy = inner.copy(true, 0, 0, false)?;
            graph
                .embed(copy.clone(), &before)
                .inspect_err(|_| copy.retire())?
        }
        NodeParams::Move(inner) => {
            if inner.embedded_in() != 0 {
                return Err(Code::NOT_SUPPORTED);
            }
            if graph.lies_in(&inner) {
                return Err(Code::INVALID_VALUE);
            }
            graph.embed(inner, &before)?
        }
    };
    put(out, node).inspect_err(|_| {
        let _ = remove(&graph, node);
    })
}

/// Checks that a graph may have nodes that allocate or free memory: a child graph may not. A body of a conditional node may
/// until the graph is instantiated.
fn check_memory_node(graph: &Graph) -> Res {
    if graph.embedded_in() != 0 && !graph.is_body {
        return Err(Code::NOT_SUPPORTED);
    }
    Ok(())
}

/// Removes a node from its graph, with its edges and its embedded graphs.
fn remove(graph: &Arc<Graph>, node: u64) -> Res {
    let removed = {
        let mut state = graph.lock();
        let found = state.nodes.get(&node).ok_or(Code::INVALID_VALUE)?;
        let (before, after) = (found.before.clone(), found.after.clone());
        for edge in before {
            state.disconnect(edge.node, node);
        }
        for edge in after {
            state.disconnect(node, edge.node);
        }
        let removed = state.nodes.remove(&node);
        if let Some(removed) = &removed {
            state.memory_nodes -= removed.payload.memory_nodes();
            state.memory.remove(node, &removed.payload);
        }
        removed
    };
    let _ = super::NODES.remove(node);
    if let Some(removed) = removed {
        removed.payload.graphs().iter().for_each(|g| g.retire());
        if let Payload::Conditional(c) = &*removed.payload {
            c.variable.release();
        }
    }
    Ok(())
}

/// The context that a node's parameters name; null is the current one.
pub(super) fn node_context(handle: u64) -> Res<Arc<Context>> {
    context::by_handle_or_current(handle)
}

pub(super) fn plain(payload: Payload) -> NodeParams {
    NodeParams::Payload(Box::new(payload))
}

/// `cuGraphAddNode` in all its variants.
fn add_generic(out: u64, graph: u64, dependencies: (u64, u64, u64), params: u64) -> Res {
    non_null(params)?;
    let given = get::<CUgraphNodeParams>(params)?;
    add(out, graph, dependencies, || params::read_generic(&given))?;
    // The second output of the call: the address of an allocation, or the bodies of a conditional node.
    let added = super::payload_of(get::<u64>(out)?)?;
    params::put_outputs(&added, params)
}

driver_entry_points! {
    fn graph_create "cuGraphCreate" (out: u64, flags: u32) {
        non_null(out)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let graph = Graph::create();
        put(out, graph.handle).inspect_err(|_| graph.retire())
    }
    fn graph_destroy "cuGraphDestroy" (graph: u64) {
        let graph = find(graph)?;
        // An embedded graph is destroyed with its node.
        if graph.embedded_in() != 0 {
            return Err(Code::INVALID_VALUE);
        }
        graph.retire();
        Ok(())
    }
    fn graph_clone "cuGraphClone" (out: u64, original: u64) {
        non_null(out)?;
        let copy = find(original)?.copy(true, 0, 0, false)?;
        put(out, copy.handle).inspect_err(|_| copy.retire())
    }
    fn find_in_clone "cuGraphNodeFindInClone" (out: u64, original: u64, clone: u64) {
        non_null(out)?;
        let clone = find(clone)?;
        let graph = graph_of(original)?;
        let state = clone.lock();
        if state.cloned_from != graph.handle {
            return Err(Code::INVALID_VALUE);
        }
        let found = state.nodes.iter().find(|(_, n)| n.origin == original);
        put(out, *found.ok_or(Code::INVALID_VALUE)?.0)
    }
    fn add_kernel "cuGraphAddKernelNode_v2" (out: u64, graph: u64, nodes: u64, count: u64, params: u64) {
        non_null(params)?;
        add(out, graph, (nodes, 0, count), || {
            Kernel::read(&get::<CUDA_KERNEL_NODE_PARAMS>(params)?, false, None).map(Payload::Kernel).map(plain)
        })
    }
    fn add_kernel_v1 "cuGraphAddKernelNode" (out: u64, graph: u64, nodes: u64, count: u64, params: u64) {
        non_null(params)?;
        add(out, graph, (nodes, 0, count), || {
            Kernel::read(&params::kernel_v1(params)?, false, None).map(Payload::Kernel).map(plain)
        })
    }
    fn add_memcpy "cuGraphAddMemcpyNode" (out: u64, graph: u64, nodes: u64, count: u64, params: u64, context: u64) {
        non_null(params)?;
        add(out, graph, (nodes, 0, count), || {
            let copy = get::<CUDA_MEMCPY3D>(params)?;
            Memcpy::in_context(copy.into(), node_context(context)?).map(Payload::Memcpy).map(plain)
        })
    }
    fn add_memset "cuGraphAddMemsetNode" (out: u64, graph: u64, nodes: u64, count: u64, params: u64, context: u64) {
        non_null(params)?;
        add(out, graph, (nodes, 0, count), || {
            Memset::read(&get(params)?, node_context(context)?).map(Payload::Memset).map(plain)
        })
    }
    fn add_host "cuGraphAddHostNode" (out: u64, graph: u64, nodes: u64, count: u64, params: u64) {
        non_null(params)?;
        add(out, graph, (nodes, 0, count), || {
            params::host_call(&get::<CUDA_HOST_NODE_PARAMS>(params)?, 0).map(Payload::Host).map(plain)
        })
    }
    fn add_child "cuGraphAddChildGraphNode" (out: u64, graph: u64, nodes: u64, count: u64, child: u64) {
        add(out, graph, (nodes, 0, count), || find(child).map(NodeParams::Clone))
    }
    fn add_empty "cuGraphAddEmptyNode" (out: u64, graph: u64, nodes: u64, count: u64) {
        add(out, graph, (nodes, 0, count), || Ok(plain(Payload::Empty)))
    }
    fn add_event_record "cuGraphAddEventRecordNode" (out: u64, graph: u64, nodes: u64, count: u64, event: u64) {
        add(out, graph, (nodes, 0, count), || EventNode::find(event).map(Payload::EventRecord).map(plain))
    }
    fn add_event_wait "cuGraphAddEventWaitNode" (out: u64, graph: u64, nodes: u64, count: u64, event: u64) {
        add(out, graph, (nodes, 0, count), || EventNode::find(event).map(Payload::EventWait).map(plain))
    }
    fn add_node "cuGraphAddNode" (out: u64, graph: u64, nodes: u64, count: u64, params: u64) {
        add_generic(out, graph, (nodes, 0, count), params)
    }
    fn add_node_v2 "cuGraphAddNode_v2" (out: u64, graph: u64, nodes: u64, data: u64, count: u64, params: u64) {
        add_generic(out, graph, (nodes, data, count), params)
    }
    fn add_node_v3 "cuGraphAddNode_v3" (out: u64, graph: u64, nodes: u64, data: u64, count: u64, params: u64) {
        add_generic(out, graph, (nodes, data, count), params)
    }
    fn add_mem_alloc "cuGraphAddMemAllocNode" (out: u64, graph: u64, nodes: u64, count: u64, params: u64) {
        non_null(params)?;
        let given = get::<CUDA_MEM_ALLOC_NODE_PARAMS>(params)?;
        add(out, graph, (nodes, 0, count), || AllocationRequest::read(&given).map(NodeParams::Allocation))?;
        match &*super::payload_of(get::<u64>(out)?)? {
            Payload::MemAlloc(a) => {
                put(params + offset_of!(CUDA_MEM_ALLOC_NODE_PARAMS, dptr) as u64, a.address())
            },
            _ => Err(Code::UNKNOWN),
        }
    }
    fn add_mem_free "cuGraphAddMemFreeNode" (out: u64, graph: u64, nodes: u64, count: u64, address: u64) {
        add(out, graph, (nodes, 0, count), || Free::read(address).map(Payload::MemFree).map(plain))
    }
    fn add_mem_ops "cuGraphAddBatchMemOpNode" (out: u64, graph: u64, nodes: u64, count: u64, params: u64) {
        non_null(params)?;
        add(out, graph, (nodes, 0, count), || {
            MemOps::read(&get(params)?).map(Payload::MemOps).map(plain)
        })
    }
    fn destroy_node "cuGraphDestroyNode" (node: u64) {
        let graph = graph_of(node)?;
        if graph.lock().memory_nodes > 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        remove(&graph, node)
    }
    fn node_type "cuGraphNodeGetType" (node: u64, out: u64) {
        non_null(out)?;
        put(out, super::payload_of(node)?.kind().0)
    }
    fn child_graph "cuGraphChildGraphNodeGetGraph" (node: u64, out: u64) {
        non_null(out)?;
        let payload = super::payload_of(node)?;
        put(out, payload.inner().ok_or(Code::INVALID_VALUE)?.handle)
    }
    fn containing_graph "cuGraphNodeGetContainingGraph" (node: u64, out: u64) {
        non_null(out)?;
        put(out, graph_of(node)?.handle)
    }
    fn local_id "cuGraphNodeGetLocalId" (node: u64, out: u64) {
        non_null(out)?;
        let graph = graph_of(node)?;
        let local = graph.lock().nodes.get(&node).map(|n| n.local);
        put(out, local.ok_or(Code::INVALID_VALUE)?)
    }
    fn tools_id "cuGraphNodeGetToolsId" (node: u64, out: u64) {
        non_null(out)?;
        // The handle serves as id: it is unique over the life of the process.
        graph_of(node)?;
        put(out, node)
    }
    fn graph_id "cuGraphGetId" (graph: u64, out: u64) {
        non_null(out)?;
        put(out, find(graph)?.id as u32)
    }
}
