//! Node parameters: reading, reporting and changing them.

use std::sync::Arc;

use cupyrite_sys::driver::{self as sys, CUgraphNodeType as NodeType};

use super::build::node_context;
use super::node::{AttributeValue, KernelWords, MemOps, MemOpsWords, MemsetWords};
use super::{
    Code, EventNode, Graph, Kernel, Memcpy, Memset, Payload, conditional, find, graph_of, memory,
    payload_of,
};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::logs::refuse;
use crate::driver::memory::copy_job;
use crate::driver::stream::host_call::HostCall;

/// `CUgraphNodeParams` as 64-bit words: the type and reserved words, 29 words for the type's parameters, one reserved.
pub(super) type GenericWords = [u64; 32];

/// The parameters of a node to be added.
pub(super) enum NodeParams {
    Payload(Box<Payload>),
    /// An allocation, whose address depends on the node's dependencies.
    Allocation(memory::AllocationRequest),
    /// A graph to be cloned into the node.
    Clone(Arc<Graph>),
    /// A graph that the node takes over.
    Move(Arc<Graph>),
    /// A conditional node, whose bodies are created with it.
    Conditional(conditional::Request),
}

/// The first `N` words of a type's parameters.
fn part<const N: usize>(w: &GenericWords, at: usize) -> [u64; N] {
    std::array::from_fn(|i| w[2 + at + i])
}

/// `CUDA_KERNEL_NODE_PARAMS_v1`, which lacks the kernel and the context.
pub(super) fn kernel_v1(params: u64) -> Res<KernelWords> {
    let [a, b, c, d, e, f, g] = get::<[u64; 7]>(params)?;
    Ok([a, b, c, d, e, f, g, 0, 0])
}

/// Validates `CUgraphNodeParams`.
///
/// # Errors
/// `INVALID_VALUE` for non-zero reserved words and unknown types, `NOT_SUPPORTED` for types that this device lacks, and
/// the errors of the type.
pub(super) fn read_generic(w: &GenericWords) -> Res<NodeParams> {
    if w[0] >> 32 != 0 || w[1] != 0 || w[31] != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let payload = match NodeType(w[0] as u32) {
        NodeType::CU_GRAPH_NODE_TYPE_KERNEL => Payload::Kernel(Kernel::read(&part(w, 0), false)?),
        NodeType::CU_GRAPH_NODE_TYPE_MEMCPY => {
            if w[2] != 0 {
                return Err(Code::INVALID_VALUE);
            }
            Payload::Memcpy(Memcpy::prepare(part(w, 2), node_context(w[3])?)?)
        }
        NodeType::CU_GRAPH_NODE_TYPE_MEMSET => {
            Payload::Memset(Memset::read(&part(w, 0), node_context(w[7])?)?)
        }
        NodeType::CU_GRAPH_NODE_TYPE_HOST => {
            Payload::Host(HostCall::prepare(w[2], w[3], w[4] as u32)?)
        }
        NodeType::CU_GRAPH_NODE_TYPE_GRAPH => {
            let graph = find(w[2])?;
            return match sys::CUgraphChildGraphNodeOwnership(w[3] as _) {
                sys::CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE => {
                    Ok(NodeParams::Clone(graph))
                }
                sys::CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE => {
                    Ok(NodeParams::Move(graph))
                }
                _ => Err(Code::INVALID_VALUE),
            };
        }
        NodeType::CU_GRAPH_NODE_TYPE_EMPTY => Payload::Empty,
        NodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT => Payload::EventWait(EventNode::find(w[2])?),
        NodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD => Payload::EventRecord(EventNode::find(w[2])?),
        NodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC => {
            let request = memory::AllocationRequest::read(&part(w, 0))?;
            return Ok(NodeParams::Allocation(request));
        }
        NodeType::CU_GRAPH_NODE_TYPE_MEM_FREE => Payload::MemFree(memory::Free::read(w[2])?),
        NodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => Payload::MemOps(MemOps::read(&part(w, 0))?),
        NodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => {
            return conditional::Request::read(w).map(NodeParams::Conditional);
        }
        NodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL
        | NodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT
        | NodeType::CU_GRAPH_NODE_TYPE_MEMCPY_BATCH
        | NodeType::CU_GRAPH_NODE_TYPE_EXTERNAL_ENGINE
        | NodeType::CU_GRAPH_NODE_TYPE_FABRIC_CPY_BATCH => return Err(Code::NOT_SUPPORTED),
        _ => return Err(Code::INVALID_VALUE),
    };
    Ok(NodeParams::Payload(Box::new(payload)))
}

/// Byte offset of `CUDA_MEM_ALLOC_NODE_PARAMS`'s address in `CUgraphNodeParams`.
const ALLOCATED_AT: u64 = 8 * (2 + 14);

/// Byte offset of `CUDA_CONDITIONAL_NODE_PARAMS`'s bodies in `CUgraphNodeParams`.
const BODIES_AT: u64 = 8 * (2 + 2);

/// Writes outputs of adding a node.
pub(super) fn put_outputs(payload: &Payload, params: u64) -> Res {
    match payload {
        Payload::MemAlloc(a) => put(params + ALLOCATED_AT, a.address()),
        Payload::Conditional(c) => put(params + BODIES_AT, c.address()),
        _ => Ok(()),
    }
}

/// A node's parameters as words.
fn generic_words(payload: &Payload) -> GenericWords {
    let mut w = [0u64; 32];
    w[0] = payload.kind().0.into();
    match payload {
        Payload::Kernel(k) => w[2..11].copy_from_slice(&k.words()),
        Payload::Memcpy(m) => {
            w[3] = m.context.handle;
            w[4..29].copy_from_slice(&m.words);
        }
        Payload::Memset(m) => {
            w[2..7].copy_from_slice(&m.words());
            w[7] = m.context.handle;
        }
        Payload::Host(call) => {
            w[2..5].copy_from_slice(&[call.address(), call.data, call.mode.into()])
        }
        Payload::Graph(inner) => w[2] = inner.handle,
        Payload::EventWait(e) | Payload::EventRecord(e) => w[2] = e.handle,
        Payload::MemAlloc(a) => w[2..17].copy_from_slice(&a.words()),
        Payload::MemFree(f) => w[2] = f.address(),
        Payload::MemOps(m) => w[2..6].copy_from_slice(&m.words()),
        Payload::Conditional(c) => w[2..6].copy_from_slice(&c.words()),
        Payload::Empty => {}
    }
    w
}

/// Error for a node of the wrong type.
const WRONG_NODE_TYPE: Code = Code::INVALID_VALUE;

/// Changes a node's parameters; `change` derives the new ones from the old.
fn replace(node: u64, change: impl FnOnce(&Payload) -> Res<Payload>) -> Res {
    let graph = graph_of(node)?;
    let old = payload_of(node)?;
    // Outside the graph's lock, because reading caller memory may fail.
    let new = change(&old)?;
    let mut state = graph.lock();
    let node = state.nodes.get_mut(&node).ok_or(Code::INVALID_VALUE)?;
    node.payload = Arc::new(new);
    Ok(())
}

/// A kernel node with new parameters; its attributes are kept.
pub(super) fn new_kernel(old: &Payload, words: &KernelWords) -> Res<Payload> {
    let Payload::Kernel(old) = old else {
        return Err(WRONG_NODE_TYPE);
    };
    let mut new = Kernel::read(words, old.launch.config.cooperative)?;
    new.attributes = old.attributes.clone();
    Ok(Payload::Kernel(new))
}

/// A copy node with new parameters; a null context keeps the old one.
pub(super) fn new_memcpy(old: &Payload, words: copy_job::Words3, context: u64) -> Res<Payload> {
    let Payload::Memcpy(old) = old else {
        return Err(WRONG_NODE_TYPE);
    };
    let context = match context {
        0 => old.context.clone(),
        handle => node_context(handle)?,
    };
    Memcpy::prepare(words, context).map(Payload::Memcpy)
}

/// A fill node with new parameters; a null context keeps the old one.
pub(super) fn new_memset(old: &Payload, words: &MemsetWords, context: u64) -> Res<Payload> {
    let Payload::Memset(old) = old else {
        return Err(WRONG_NODE_TYPE);
    };
    let context = match context {
        0 => old.context.clone(),
        handle => node_context(handle)?,
    };
    Memset::read(words, context).map(Payload::Memset)
}

pub(super) fn new_host(old: &Payload, function: u64, data: u64, mode: u32) -> Res<Payload> {
    let Payload::Host(_) = old else {
        return Err(WRONG_NODE_TYPE);
    };
    HostCall::prepare(function, data, mode).map(Payload::Host)
}

pub(super) fn new_mem_ops(old: &Payload, words: &MemOpsWords) -> Res<Payload> {
    let Payload::MemOps(_) = old else {
        return Err(WRONG_NODE_TYPE);
    };
    MemOps::read(words).map(Payload::MemOps)
}

/// An event node with another event; `record` selects the expected node type.
pub(super) fn new_event(old: &Payload, record: bool, event: u64) -> Res<Payload> {
    match old {
        Payload::EventRecord(_) if record => EventNode::find(event).map(Payload::EventRecord),
        Payload::EventWait(_) if !record => EventNode::find(event).map(Payload::EventWait),
        _ => Err(WRONG_NODE_TYPE),
    }
}

/// New parameters from `CUgraphNodeParams`.
///
/// # Errors
/// `INVALID_VALUE` if the type differs from the node's, `NOT_SUPPORTED` for types with fixed parameters.
pub(super) fn new_generic(old: &Payload, w: &GenericWords) -> Res<Payload> {
    if w[0] != u64::from(old.kind().0) || w[1] != 0 || w[31] != 0 {
        return Err(Code::INVALID_VALUE);
    }
    match old {
        Payload::Kernel(_) => new_kernel(old, &part(w, 0)),
        Payload::Memcpy(_) if w[2] != 0 => Err(Code::INVALID_VALUE),
        Payload::Memcpy(_) => new_memcpy(old, part(w, 2), w[3]),
        Payload::Memset(_) => new_memset(old, &part(w, 0), w[7]),
        Payload::Host(_) => new_host(old, w[2], w[3], w[4] as u32),
        Payload::EventRecord(_) => new_event(old, true, w[2]),
        Payload::EventWait(_) => new_event(old, false, w[2]),
        Payload::Empty => Ok(Payload::Empty),
        Payload::MemOps(_) => new_mem_ops(old, &part(w, 0)),
        // Child graphs are replaced in `replace_child`.
        Payload::Graph(_)
        | Payload::MemAlloc(_)
        | Payload::MemFree(_)
        | Payload::Conditional(_) => Err(Code::NOT_SUPPORTED),
    }
}

/// Replaces the graph of a child graph node by a clone of another one, or by that one itself.
fn replace_child(node: u64, w: &GenericWords) -> Res {
    let graph = graph_of(node)?;
    let (inner, moved) = match read_generic(w)? {
        NodeParams::Clone(inner) => (inner, false),
        NodeParams::Move(inner) => (inner, true),
        _ => return Err(Code::INVALID_VALUE),
    };
    if inner.embedded_in() != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    if inner.lock().has_conditionals() {
        return refuse(Code::NOT_SUPPORTED, || {
            "graphs with conditional nodes cannot become child graphs".into()
        });
    }
    if !moved {
        let copy = inner.copy(true, 0, 0, false)?;
        let replaced = graph.replace_embedded(node, copy.clone());
        return replaced.inspect_err(|_| copy.retire());
    }
    if graph.lies_in(&inner) {
        return Err(Code::INVALID_VALUE);
    }
    graph.replace_embedded(node, inner)
}

/// `cuGraphNodeSetParams` in its versions.
fn set_generic(node: u64, params: u64) -> Res {
    non_null(params)?;
    let w = get::<GenericWords>(params)?;
    match &*payload_of(node)? {
        Payload::Graph(_) if w[0] as u32 == NodeType::CU_GRAPH_NODE_TYPE_GRAPH.0 => {
            replace_child(node, &w)
        }
        _ => replace(node, |old| new_generic(old, &w)),
    }
}

/// Reads the value of a kernel node attribute.
fn attribute_value(address: u64) -> Res<AttributeValue> {
    non_null(address)?;
    get::<AttributeValue>(address)
}

/// Runs `f` on a kernel node's payload.
fn with_kernel<R>(node: u64, f: impl FnOnce(&Kernel) -> Res<R>) -> Res<R> {
    match &*payload_of(node)? {
        Payload::Kernel(k) => f(k),
        _ => Err(WRONG_NODE_TYPE),
    }
}

/// The event of a node; `record` selects the expected node type.
fn event_of(node: u64, record: bool) -> Res<u64> {
    match &*payload_of(node)? {
        Payload::EventRecord(e) if record => Ok(e.handle),
        Payload::EventWait(e) if !record => Ok(e.handle),
        _ => Err(WRONG_NODE_TYPE),
    }
}

driver_entry_points! {
    fn kernel_get "cuGraphKernelNodeGetParams_v2" (node: u64, out: u64) {
        non_null(out)?;
        with_kernel(node, |k| put(out, k.words()))
    }
    fn kernel_get_v1 "cuGraphKernelNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        with_kernel(node, |k| {
            let [a, b, c, d, e, f, g, kernel, _] = k.words();
            // The old structure has one field for the function and the kernel.
            put(out, [if a != 0 { a } else { kernel }, b, c, d, e, f, g])
        })
    }
    fn kernel_set "cuGraphKernelNodeSetParams_v2" (node: u64, params: u64) {
        non_null(params)?;
        replace(node, |old| new_kernel(old, &get(params)?))
    }
    fn kernel_set_v1 "cuGraphKernelNodeSetParams" (node: u64, params: u64) {
        non_null(params)?;
        replace(node, |old| new_kernel(old, &kernel_v1(params)?))
    }
    fn kernel_get_attribute "cuGraphKernelNodeGetAttribute" (node: u64, id: u32, out: u64) {
        non_null(out)?;
        with_kernel(node, |k| put(out, k.attribute(id)?))
    }
    fn kernel_set_attribute "cuGraphKernelNodeSetAttribute" (node: u64, id: u32, value: u64) {
        let value = attribute_value(value)?;
        replace(node, |old| match old {
            Payload::Kernel(k) => k.with_attribute(id, value).map(Payload::Kernel),
            _ => Err(WRONG_NODE_TYPE),
        })
    }
    fn kernel_copy_attributes "cuGraphKernelNodeCopyAttributes" (to: u64, from: u64) {
        let from = payload_of(from)?;
        replace(to, |old| match (old, &*from) {
            (Payload::Kernel(old), Payload::Kernel(from)) => old.with_attributes_of(from).map(Payload::Kernel),
            _ => Err(WRONG_NODE_TYPE),
        })
    }
    fn memcpy_get "cuGraphMemcpyNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        match &*payload_of(node)? {
            Payload::Memcpy(m) => put(out, m.words),
            _ => Err(WRONG_NODE_TYPE),
        }
    }
    fn memcpy_set "cuGraphMemcpyNodeSetParams" (node: u64, params: u64) {
        non_null(params)?;
        replace(node, |old| new_memcpy(old, get(params)?, 0))
    }
    fn memset_get "cuGraphMemsetNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        match &*payload_of(node)? {
            Payload::Memset(m) => put(out, m.words()),
            _ => Err(WRONG_NODE_TYPE),
        }
    }
    fn memset_set "cuGraphMemsetNodeSetParams" (node: u64, params: u64) {
        non_null(params)?;
        replace(node, |old| new_memset(old, &get(params)?, 0))
    }
    fn host_get "cuGraphHostNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        match &*payload_of(node)? {
            Payload::Host(call) => put(out, [call.address(), call.data]),
            _ => Err(WRONG_NODE_TYPE),
        }
    }
    fn host_set "cuGraphHostNodeSetParams" (node: u64, params: u64) {
        non_null(params)?;
        replace(node, |old| {
            let [function, data] = get::<[u64; 2]>(params)?;
            new_host(old, function, data, 0)
        })
    }
    fn mem_ops_get "cuGraphBatchMemOpNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        match &*payload_of(node)? {
            Payload::MemOps(m) => put(out, m.words()),
            _ => Err(WRONG_NODE_TYPE),
        }
    }
    fn mem_ops_set "cuGraphBatchMemOpNodeSetParams" (node: u64, params: u64) {
        non_null(params)?;
        replace(node, |old| new_mem_ops(old, &get(params)?))
    }
    fn event_record_get "cuGraphEventRecordNodeGetEvent" (node: u64, out: u64) {
        non_null(out)?;
        put(out, event_of(node, true)?)
    }
    fn event_record_set "cuGraphEventRecordNodeSetEvent" (node: u64, event: u64) {
        replace(node, |old| new_event(old, true, event))
    }
    fn event_wait_get "cuGraphEventWaitNodeGetEvent" (node: u64, out: u64) {
        non_null(out)?;
        put(out, event_of(node, false)?)
    }
    fn event_wait_set "cuGraphEventWaitNodeSetEvent" (node: u64, event: u64) {
        replace(node, |old| new_event(old, false, event))
    }
    fn node_get_params "cuGraphNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        put(out, generic_words(&*payload_of(node)?))
    }
    fn node_set_params "cuGraphNodeSetParams" (node: u64, params: u64) {
        set_generic(node, params)
    }
    fn node_set_params_v2 "cuGraphNodeSetParams_v2" (node: u64, params: u64) {
        set_generic(node, params)
    }
}
