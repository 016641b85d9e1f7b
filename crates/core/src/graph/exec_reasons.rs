//! Reasons that the driver gives for refusing to instantiate or to update a graph.

use cupyrite_sys::driver::{
    CUgraphExecUpdateResult as UpdateResult, CUgraphInstantiateResult as InstantiateResult,
    CUgraphNode, CUgraphNodeType,
};

use crate::error::driver;

/// What a result of `cuGraphInstantiateWithParams` means.
pub(super) fn instantiate_problem(result: InstantiateResult) -> &'static str {
    match result {
        InstantiateResult::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE => {
            "the structure is invalid, for example a cycle"
        }
        InstantiateResult::CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED => {
            "a graph for launches by device code contains an operation that is not supported there"
        }
        InstantiateResult::CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED => {
            "a graph for launches by device code contains nodes of several contexts"
        }
        InstantiateResult::CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED => {
            "a condition is used by no conditional node"
        }
        _ => "the driver names no reason",
    }
}

/// What a result of `cuGraphExecUpdate` means.
pub(super) fn update_problem(result: UpdateResult) -> &'static str {
    match result {
        UpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED => {
            "the nodes or edges differ from those of the instantiated graph"
        }
        UpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED => "a node has another type",
        UpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED
        | UpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE => {
            "a node's kernel changed in a way that cannot be updated"
        }
        UpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED => {
            "a node's parameters changed in a way that cannot be updated"
        }
        UpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED => "a node cannot be updated",
        UpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED => {
            "a node's attributes changed in a way that cannot be updated"
        }
        _ => "the driver names no reason",
    }
}

/// The type of a node, for messages.
fn kind_name(kind: CUgraphNodeType) -> &'static str {
    match kind {
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => "a kernel node",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY => "a memcpy node",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET => "a memset node",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST => "a host callback node",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH => "a child graph node",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY => "an empty node",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT => "an event wait node",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD => "an event record node",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC => "an allocation node",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE => "a free node",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => "a conditional node",
        _ => "a node",
    }
}

/// The type of a node that the driver has just named in an error.
pub(super) fn describe_node(node: CUgraphNode) -> String {
    if node.is_null() {
        return String::new();
    }
    let mut kind = CUgraphNodeType(u32::MAX);
    // SAFETY: the driver named the node, and the definition is locked; `kind` is valid for writes.
    match unsafe { driver!(cuGraphNodeGetType(node, &mut kind)) } {
        Ok(()) => format!(" (at {})", kind_name(kind)),
        Err(_) => String::new(),
    }
}
