//! Updates of executable graphs: single nodes, or all nodes from another graph of the same structure.

use std::collections::HashMap;
use std::sync::Arc;

use cupyrite_sys::driver::{self as sys, CUDA_HOST_NODE_PARAMS, CUDA_MEMCPY3D, CUgraphNodeParams};

use super::exec::{Exec, find_exec, is_structure};
use super::params;
use super::plan::Plan;
use super::{Code, Graph, Payload, find, graph_of};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put, put_optional};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::logs::refuse;

/// `CUgraphExecUpdateResult`.
const SUCCESS: u32 = sys::CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS.0;
const TOPOLOGY_CHANGED: u32 =
    sys::CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED.0;
const NODE_TYPE_CHANGED: u32 =
    sys::CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED.0;
const PARAMETERS_CHANGED: u32 =
    sys::CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED.0;
const NOT_SUPPORTED: u32 = sys::CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED.0;
const UNSUPPORTED_FUNCTION_CHANGE: u32 =
    sys::CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE.0;
const ATTRIBUTES_CHANGED: u32 =
    sys::CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED.0;

/// Why a node of an executable graph rejects a new payload, as `CUgraphExecUpdateResult`.
fn rejection(old: &Payload, new: &Payload, exec: &Exec) -> Option<u32> {
    match (old, new) {
        (Payload::Kernel(a), Payload::Kernel(b)) => {
            let other_context = a.launch.function.context.id != b.launch.function.context.id;
            // An H200 accepts the second change in graphs that the device can launch.
            let newly_launches = !a.launches_graphs() && b.launches_graphs();
            // CUDA Driver API, `cuGraphExecUpdate`: no function with dynamic parallelism takes the place of one without.
            let newly_parallel = !a.launches_kernels() && b.launches_kernels();
            if other_context || newly_parallel || newly_launches && !exec.is_device_launchable() {
                return Some(UNSUPPORTED_FUNCTION_CHANGE);
            }
            let priority_changed = exec.uses_node_priority() && a.priority() != b.priority();
            let other_mode = a.launch.config.cooperative != b.launch.config.cooperative;
            (other_mode || priority_changed).then_some(ATTRIBUTES_CHANGED)
        }
        (Payload::Memcpy(a), Payload::Memcpy(b)) => {
            let changed = a.copy != b.copy && !(a.is_linear() && b.is_linear());
            let other = a.memory_types() != b.memory_types() || a.context.id != b.context.id;
            (changed || other).then_some(PARAMETERS_CHANGED)
        }
        (Payload::Memset(a), Payload::Memset(b)) => {
            let changed = a.fill != b.fill && (a.fill.height > 1 || b.fill.height > 1);
            (changed || a.context.id != b.context.id).then_some(PARAMETERS_CHANGED)
        }
        (Payload::MemOps(a), Payload::MemOps(b)) => {
            (a.context.id != b.context.id).then_some(PARAMETERS_CHANGED)
        }
        // The number of semaphores cannot change.
        (Payload::SignalSemaphores(a), Payload::SignalSemaphores(b))
        | (Payload::WaitSemaphores(a), Payload::WaitSemaphores(b)) => {
            let other = a.operations().len() != b.operations().len();
            (other || a.context().id != b.context().id).then_some(PARAMETERS_CHANGED)
        }
        (Payload::MemAlloc(a), Payload::MemAlloc(b)) => {
            (a.address() != b.address()).then_some(NOT_SUPPORTED)
        }
        (Payload::MemFree(a), Payload::MemFree(b)) => {
            (a.address() != b.address()).then_some(NOT_SUPPORTED)
        }
        _ => None,
    }
}

/// Replaces the payload of a node of an executable graph; `change` derives the new one from the old.
pub(super) fn set(exec: u64, node: u64, change: impl FnOnce(&Payload) -> Res<Payload>) -> Res {
    let exec = find_exec(exec)?;
    graph_of(node)?;
    let old = {
        let state = exec.lock();
        let at = state.plan.locate(node).ok_or(Code::INVALID_VALUE)?;
        state.plan.payload(at).clone()
    };
    // Outside the lock, because reading caller memory may fail.
    let new = change(&old)?;
    if rejection(&old, &new, &exec).is_some() {
        return Err(Code::INVALID_VALUE);
    }
    let mut state = exec.lock();
    apply(Arc::make_mut(&mut state.plan), node, Arc::new(new));
    Ok(())
}

/// Replaces a payload in the plan and in the executable graph's copy.
fn apply(plan: &mut Plan, node: u64, new: Arc<Payload>) {
    let Some(at) = plan.locate(node).cloned() else {
        return;
    };
    if let Some(node) = at.graph.lock().nodes.get_mut(&at.node) {
        node.payload = new.clone();
    }
    plan.set_payload(&at, new);
}

/// Why a graph does not match an executable graph.
struct UpdateMismatch {
    result: u32,
    /// The node at fault in the new graph, and its dependency, if any.
    node: u64,
    from: u64,
}

fn mismatch<T>(result: u32, node: u64, from: u64) -> Result<T, UpdateMismatch> {
    Err(UpdateMismatch { result, node, from })
}

/// The new payload of each node, by handle in the instantiated graph.
type Changes = Vec<(u64, Arc<Payload>)>;

/// Pairs the nodes of two graphs, backwards from the nodes without dependents, in dependency order, and
/// collects the changes. The recursion depth is limited by the nesting depth of graphs.
fn compare(
    ours: &Arc<Graph>,
    theirs: &Arc<Graph>,
    changes: &mut Changes,
    exec: &Exec,
) -> Result<(), UpdateMismatch> {
    let ours = ours.lock();
    let theirs = theirs.lock();
    if ours.nodes.len() != theirs.nodes.len() {
        return mismatch(TOPOLOGY_CHANGED, 0, 0);
    }
    let ends = |s: &super::GraphState| -> Vec<u64> {
        let ends = s.nodes.iter().filter(|(_, n)| n.after.is_empty());
        ends.map(|(&h, _)| h).collect()
    };
    let (our_ends, their_ends) = (ends(&ours), ends(&theirs));
    if their_ends.len() != our_ends.len() {
        let extra = their_ends.get(our_ends.len()).copied().unwrap_or(0);
        return mismatch(TOPOLOGY_CHANGED, extra, 0);
    }
    // Both directions, so that no node has two partners.
    let (mut partner, mut taken) = (HashMap::new(), HashMap::new());
    let mut open: Vec<(u64, u64)> = their_ends.into_iter().zip(our_ends).collect();
    for &(their, our) in &open {
        partner.insert(their, our);
        taken.insert(our, their);
    }
    while let Some((their, our)) = open.pop() {
        let (new, old) = (&theirs.nodes[&their], &ours.nodes[&our]);
        if new.before.len() != old.before.len() {
            return mismatch(TOPOLOGY_CHANGED, their, 0);
        }
        if new.payload.kind() != old.payload.kind() {
            return mismatch(NODE_TYPE_CHANGED, their, 0);
        }
        for (a, b) in new.before.iter().zip(&old.before) {
            match (partner.get(&a.node), taken.get(&b.node)) {
                (None, None) => {
                    partner.insert(a.node, b.node);
                    taken.insert(b.node, a.node);
                    open.push((a.node, b.node));
                }
                (Some(&our), Some(&their)) if our == b.node && their == a.node => {}
                _ => return mismatch(TOPOLOGY_CHANGED, their, a.node),
            }
            if a.data != b.data {
                return mismatch(TOPOLOGY_CHANGED, their, a.node);
            }
        }
        match (&*old.payload, &*new.payload) {
            (Payload::Graph(a), Payload::Graph(b)) => compare(a, b, changes, exec)?,
            (Payload::Conditional(a), Payload::Conditional(b)) => {
                if !a.is_like(b) {
                    return mismatch(PARAMETERS_CHANGED, their, 0);
                }
                for (a, b) in a.bodies.iter().zip(&b.bodies) {
                    compare(a, b, changes, exec)?;
                }
                // The new kernels set the new graph's condition.
                let node = b.with_bodies(a.bodies.clone());
                changes.push((old.origin, Arc::new(Payload::Conditional(node))));
            }
            _ => {
                if let Some(result) = rejection(&old.payload, &new.payload, exec) {
                    return mismatch(result, their, 0);
                }
                changes.push((old.origin, new.payload.clone()));
            }
        }
    }
    Ok(())
}

/// Updates the nodes of an executable graph, or of one embedded in it, from `graph`; returns the first mismatch.
///
/// # Errors
/// `INVALID_VALUE` if the node is not in the executable graph or embeds no graph, or for a captured fill of memory to which its
/// device has no access.
fn update(exec: &Exec, within: Option<u64>, graph: &Arc<Graph>) -> Res<Result<(), UpdateMismatch>> {
    let mut state = exec.lock();
    let ours = match within {
        None => state.graph.clone(),
        Some(node) => {
            let at = state.plan.locate(node);
            let payload = at.and_then(|at| {
                let state = at.graph.lock();
                state.nodes.get(&at.node).map(|n| n.payload.clone())
            });
            let inner = payload.as_deref().and_then(Payload::inner);
            inner.cloned().ok_or(Code::INVALID_VALUE)?
        }
    };
    let mut changes = Changes::new();
    if let Err(misfit) = compare(&ours, graph, &mut changes, exec) {
        return Ok(Err(misfit));
    }
    for (_, payload) in &changes {
        if let Payload::Memset(fill) = &**payload {
            fill.check_captured()?;
        }
    }
    let objects = graph.lock().objects.clone();
    let before = std::mem::replace(&mut ours.lock().objects, objects);
    // Running launches may need them.
    state.retire(before);
    let plan = Arc::make_mut(&mut state.plan);
    for (node, payload) in changes {
        apply(plan, node, payload);
    }
    if within.is_none() {
        plan.set_defaults(graph);
    }
    Ok(Ok(()))
}

/// Updates one embedded graph.
fn update_child(exec: u64, node: u64, child: u64) -> Res {
    let (exec, child) = (find_exec(exec)?, find(child)?);
    graph_of(node)?;
    if child.lock().has_conditionals() {
        return refuse(Code::NOT_SUPPORTED, || {
            "childGraph has conditional nodes; cuGraphExecUpdate updates them".into()
        });
    }
    let done = update(&exec, Some(node), &child)?;
    done.map_err(|_| Code::GRAPH_EXEC_UPDATE_FAILURE)
}

/// `cuGraphExecUpdate` in its two versions: the result that both report.
fn update_with(exec: u64, graph: u64) -> Res<UpdateMismatch> {
    let exec = find_exec(exec)?;
    let graph = find(graph)?;
    Ok(match update(&exec, None, &graph)? {
        Ok(()) => UpdateMismatch {
            result: SUCCESS,
            node: 0,
            from: 0,
        },
        Err(misfit) => misfit,
    })
}

fn result_code(result: u32) -> Res {
    if result == SUCCESS {
        Ok(())
    } else {
        Err(Code::GRAPH_EXEC_UPDATE_FAILURE)
    }
}

driver_entry_points! {
    fn exec_update "cuGraphExecUpdate_v2" (exec: u64, graph: u64, out: u64) {
        non_null(out)?;
        let told = update_with(exec, graph)?;
        // `CUgraphExecUpdateResultInfo`: result, node, the node it depends on.
        put(out, [u64::from(told.result), told.node, told.from])?;
        result_code(told.result)
    }
    fn exec_update_v1 "cuGraphExecUpdate" (exec: u64, graph: u64, node: u64, result: u64) {
        non_null(result)?;
        let told = update_with(exec, graph)?;
        put_optional(node, told.node)?;
        put(result, told.result)?;
        result_code(told.result)
    }
    fn exec_kernel "cuGraphExecKernelNodeSetParams_v2" (exec: u64, node: u64, params_at: u64) {
        non_null(params_at)?;
        set(exec, node, |old| params::new_kernel(old, &get(params_at)?))
    }
    fn exec_kernel_v1 "cuGraphExecKernelNodeSetParams" (exec: u64, node: u64, params_at: u64) {
        non_null(params_at)?;
        set(exec, node, |old| params::new_kernel(old, &params::kernel_v1(params_at)?))
    }
    fn exec_memcpy "cuGraphExecMemcpyNodeSetParams" (exec: u64, node: u64, params_at: u64, context: u64) {
        non_null(params_at)?;
        set(exec, node, |old| {
            let new = params::new_memcpy(old, get::<CUDA_MEMCPY3D>(params_at)?.into(), context)?;
            match (old, &new) {
                (Payload::Memcpy(a), Payload::Memcpy(b)) if a.is_linear() && b.is_linear() => Ok(new),
                _ => Err(Code::INVALID_VALUE),
            }
        })
    }
    fn exec_memset "cuGraphExecMemsetNodeSetParams" (exec: u64, node: u64, params_at: u64, context: u64) {
        non_null(params_at)?;
        set(exec, node, |old| params::new_memset(old, &get(params_at)?, context))
    }
    fn exec_host "cuGraphExecHostNodeSetParams" (exec: u64, node: u64, params_at: u64) {
        non_null(params_at)?;
        let given = get::<CUDA_HOST_NODE_PARAMS>(params_at)?;
        set(exec, node, |old| params::new_host(old, &given, 0))
    }
    fn exec_child "cuGraphExecChildGraphNodeSetParams" (exec: u64, node: u64, child: u64) {
        update_child(exec, node, child)
    }
    fn exec_mem_ops "cuGraphExecBatchMemOpNodeSetParams" (exec: u64, node: u64, params_at: u64) {
        non_null(params_at)?;
        set(exec, node, |old| params::new_mem_ops(old, &get(params_at)?))
    }
    fn exec_event_record "cuGraphExecEventRecordNodeSetEvent" (exec: u64, node: u64, event: u64) {
        set(exec, node, |old| params::new_event(old, true, event))
    }
    fn exec_event_wait "cuGraphExecEventWaitNodeSetEvent" (exec: u64, node: u64, event: u64) {
        set(exec, node, |old| params::new_event(old, false, event))
    }
    fn exec_node "cuGraphExecNodeSetParams" (exec: u64, node: u64, params_at: u64) {
        non_null(params_at)?;
        let given = get::<CUgraphNodeParams>(params_at)?;
        if given.r#type == sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH {
            return update_child(exec, node, params::child_of(&given));
        }
        set(exec, node, |old| {
            if is_structure(old) { Err(Code::INVALID_VALUE) } else { params::new_generic(old, &given) }
        })
    }
}
