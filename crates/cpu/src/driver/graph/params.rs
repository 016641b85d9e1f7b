//! Node parameters: reading, reporting and changing them.

use std::mem::offset_of;
use std::ptr::null_mut;
use std::sync::Arc;

use cupyrite_sys::driver::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_CONDITIONAL_NODE_PARAMS, CUDA_HOST_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEM_ALLOC_NODE_PARAMS,
    CUDA_MEM_ALLOC_NODE_PARAMS_v2, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
    CUDA_MEMSET_NODE_PARAMS_v2, CUcontext, CUevent, CUgraph,
    CUgraphChildGraphNodeOwnership as Ownership, CUgraphNodeParams, CUgraphNodeType as NodeType,
    CUlaunchAttributeValue,
};

use super::build::node_context;
use super::node::MemOps;
use super::{
    Code, EventNode, Graph, Kernel, Memcpy, Memset, Payload, SemaphoreNode, conditional, find,
    graph_of, memory, payload_of,
};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put, put_with};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::logs::refuse;
use crate::driver::memory::copy_job::CopyDescription;
use crate::driver::module::launch::LaunchConfig;
use crate::driver::stream::host_call::HostCall;

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

/// A member of the union in `CUgraphNodeParams`; the type of the node selects it.
macro_rules! member {
    ($params:expr, $name:ident) => {{
        // SAFETY: a struct of integers, handles and pointers, for which any bits are valid.
        unsafe { $params.anon0.$name }
    }};
}

/// Copies the fields that the versions of a structure have in common.
macro_rules! convert {
    ($given:expr => $target:ident { $($same:ident),* } $($field:ident: $value:expr),*) => {
        $target { $($same: $given.$same,)* $($field: $value),* }
    };
}

macro_rules! convert_kernel {
    ($given:expr => $target:ident, $($field:ident: $value:expr),*) => {
        convert!($given => $target {
            gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, kernelParams, extra
        } $($field: $value),*)
    };
}

/// Sets fields one by one, which leaves the bytes between them as they are.
macro_rules! assign {
    ($target:expr, $source:expr; $($field:ident),*) => {{
        let source = $source;
        $($target.$field = source.$field;)*
    }};
}

/// [`assign!`] for the fields that all versions of a kernel's parameters have.
macro_rules! assign_kernel {
    ($target:expr, $source:expr) => {
        assign!($target, $source;
            func, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, kernelParams, extra)
    };
}

/// `CUDA_KERNEL_NODE_PARAMS_v1`, which lacks the kernel and the context.
pub(super) fn kernel_v1(params: u64) -> Res<CUDA_KERNEL_NODE_PARAMS> {
    let given = get::<CUDA_KERNEL_NODE_PARAMS_v1>(params)?;
    Ok(convert_kernel!(given => CUDA_KERNEL_NODE_PARAMS,
        func: given.func, kern: null_mut(), ctx: null_mut()))
}

/// The kernel's parameters in `CUgraphNodeParams`.
fn kernel_of(params: &CUgraphNodeParams) -> CUDA_KERNEL_NODE_PARAMS {
    let given = member!(params, kernel);
    convert_kernel!(given => CUDA_KERNEL_NODE_PARAMS, func: given.func, kern: given.kern, ctx: given.ctx)
}

/// The fill's parameters and context in `CUgraphNodeParams`.
fn memset_of(params: &CUgraphNodeParams) -> (CUDA_MEMSET_NODE_PARAMS, u64) {
    let given = member!(params, memset);
    let fill = convert!(given => CUDA_MEMSET_NODE_PARAMS { dst, pitch, value, elementSize, width, height });
    (fill, given.ctx.addr() as u64)
}

/// The copy and its context in `CUgraphNodeParams`.
///
/// # Errors
/// `INVALID_VALUE` for non-zero flags and reserved words.
fn memcpy_of(params: &CUgraphNodeParams) -> Res<(CopyDescription, u64)> {
    let given = member!(params, memcpy);
    if given.flags != 0 || given.reserved != 0 {
        return Err(Code::INVALID_VALUE);
    }
    Ok((given.copyParams.into(), given.copyCtx.addr() as u64))
}

/// The operations in `CUgraphNodeParams`.
fn mem_ops_of(params: &CUgraphNodeParams) -> CUDA_BATCH_MEM_OP_NODE_PARAMS {
    let given = member!(params, memOp);
    convert!(given => CUDA_BATCH_MEM_OP_NODE_PARAMS { ctx, count, paramArray, flags })
}

/// The host function and its synchronization mode in `CUgraphNodeParams`.
fn host_of(params: &CUgraphNodeParams) -> (CUDA_HOST_NODE_PARAMS, u32) {
    let given = member!(params, host);
    let call = convert!(given => CUDA_HOST_NODE_PARAMS { r#fn, userData });
    (call, given.syncMode)
}

/// The handle of the child graph in `CUgraphNodeParams`.
pub(super) fn child_of(params: &CUgraphNodeParams) -> u64 {
    member!(params, graph).graph.addr() as u64
}

/// Validates a host function.
pub(super) fn host_call(given: &CUDA_HOST_NODE_PARAMS, mode: u32) -> Res<HostCall> {
    let function = given.r#fn.map_or(0, |function| function as usize as u64);
    HostCall::prepare(function, given.userData.addr() as u64, mode)
}

/// Refuses non-zero reserved words.
fn check_reserved(params: &CUgraphNodeParams) -> Res {
    if params.reserved0 != [0; 3] || params.reserved2 != 0 {
        return Err(Code::INVALID_VALUE);
    }
    Ok(())
}

/// Validates `CUgraphNodeParams`.
///
/// # Errors
/// `INVALID_VALUE` for non-zero reserved words and unknown types, `NOT_SUPPORTED` for types that this device lacks, and
/// the errors of the type.
pub(super) fn read_generic(params: &CUgraphNodeParams) -> Res<NodeParams> {
    check_reserved(params)?;
    let payload = match params.r#type {
        NodeType::CU_GRAPH_NODE_TYPE_KERNEL => {
            Payload::Kernel(Kernel::read(&kernel_of(params), false, None)?)
        }
        NodeType::CU_GRAPH_NODE_TYPE_MEMCPY => {
            let (copy, context) = memcpy_of(params)?;
            Payload::Memcpy(Memcpy::in_context(copy, node_context(context)?)?)
        }
        NodeType::CU_GRAPH_NODE_TYPE_MEMSET => {
            let (fill, context) = memset_of(params);
            Payload::Memset(Memset::read(&fill, node_context(context)?)?)
        }
        NodeType::CU_GRAPH_NODE_TYPE_HOST => {
            let (call, mode) = host_of(params);
            Payload::Host(host_call(&call, mode)?)
        }
        NodeType::CU_GRAPH_NODE_TYPE_GRAPH => {
            let graph = find(child_of(params))?;
            return match member!(params, graph).ownership {
                Ownership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE => Ok(NodeParams::Clone(graph)),
                Ownership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE => Ok(NodeParams::Move(graph)),
                _ => Err(Code::INVALID_VALUE),
            };
        }
        NodeType::CU_GRAPH_NODE_TYPE_EMPTY => Payload::Empty,
        NodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT => {
            let event = member!(params, eventWait).event;
            Payload::EventWait(EventNode::find(event.addr() as u64)?)
        }
        NodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
            let event = member!(params, eventRecord).event;
            Payload::EventRecord(EventNode::find(event.addr() as u64)?)
        }
        NodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC => {
            let given = member!(params, alloc);
            let request =
                memory::AllocationRequest::read(&convert!(given => CUDA_MEM_ALLOC_NODE_PARAMS {
                    poolProps, accessDescs, accessDescCount, bytesize, dptr
                }))?;
            return Ok(NodeParams::Allocation(request));
        }
        NodeType::CU_GRAPH_NODE_TYPE_MEM_FREE => {
            Payload::MemFree(memory::Free::read(member!(params, free).dptr)?)
        }
        NodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => {
            Payload::MemOps(MemOps::read(&mem_ops_of(params))?)
        }
        NodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => {
            let request = conditional::Request::read(&member!(params, conditional))?;
            return Ok(NodeParams::Conditional(request));
        }
        NodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL => {
            Payload::SignalSemaphores(SemaphoreNode::of_signal(&member!(params, extSemSignal))?)
        }
        NodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => {
            Payload::WaitSemaphores(SemaphoreNode::of_wait(&member!(params, extSemWait))?)
        }
        NodeType::CU_GRAPH_NODE_TYPE_MEMCPY_BATCH
        | NodeType::CU_GRAPH_NODE_TYPE_EXTERNAL_ENGINE
        | NodeType::CU_GRAPH_NODE_TYPE_FABRIC_CPY_BATCH => return Err(Code::NOT_SUPPORTED),
        _ => return Err(Code::INVALID_VALUE),
    };
    Ok(NodeParams::Payload(Box::new(payload)))
}

/// Byte offset of an allocation's address in `CUgraphNodeParams`.
const ALLOCATED_AT: u64 =
    (offset_of!(CUgraphNodeParams, anon0) + offset_of!(CUDA_MEM_ALLOC_NODE_PARAMS_v2, dptr)) as u64;

/// Byte offset of a conditional node's bodies in `CUgraphNodeParams`.
const BODIES_AT: u64 = (offset_of!(CUgraphNodeParams, anon0)
    + offset_of!(CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out)) as u64;

/// Writes outputs of adding a node.
pub(super) fn put_outputs(payload: &Payload, params: u64) -> Res {
    match payload {
        Payload::MemAlloc(a) => put(params + ALLOCATED_AT, a.address()),
        Payload::Conditional(c) => put(params + BODIES_AT, c.address()),
        _ => Ok(()),
    }
}

/// Sets a node's parameters in a zeroed structure.
fn write_generic(payload: &Payload, params: &mut CUgraphNodeParams) {
    params.r#type = payload.kind();
    let told = &mut params.anon0;
    match payload {
        Payload::Kernel(k) => {
            let kernel = k.params();
            assign_kernel!(told.kernel, kernel);
            (told.kernel.kern, told.kernel.ctx) = (kernel.kern, kernel.ctx);
        }
        Payload::Memcpy(m) => {
            told.memcpy.copyCtx = m.context.handle as CUcontext;
            // SAFETY: a struct of integers, handles and pointers, for which any bits are valid.
            m.copy.write_to(unsafe { &mut told.memcpy.copyParams });
        }
        Payload::Memset(m) => {
            let fill = m.params();
            told.memset = convert!(fill => CUDA_MEMSET_NODE_PARAMS_v2 {
                dst, pitch, value, elementSize, width, height
            } ctx: m.context.handle as CUcontext);
        }
        Payload::Host(call) => {
            told.host.r#fn = call.function();
            told.host.userData = call.data as *mut _;
            told.host.syncMode = call.mode;
        }
        Payload::Graph(inner) => told.graph.graph = inner.handle as CUgraph,
        Payload::EventWait(e) => told.eventWait.event = e.handle as CUevent,
        Payload::EventRecord(e) => told.eventRecord.event = e.handle as CUevent,
        Payload::MemAlloc(a) => {
            let allocation = a.params();
            told.alloc = convert!(allocation => CUDA_MEM_ALLOC_NODE_PARAMS_v2 {
                poolProps, accessDescs, accessDescCount, bytesize, dptr
            });
        }
        Payload::MemFree(f) => told.free.dptr = f.address(),
        Payload::MemOps(m) => {
            assign!(told.memOp, m.params(); ctx, count, paramArray, flags);
        }
        Payload::SignalSemaphores(s) => told.extSemSignal = s.signal_v2(),
        Payload::WaitSemaphores(s) => told.extSemWait = s.wait_v2(),
        Payload::Conditional(c) => told.conditional = c.params(),
        Payload::Empty => {}
    }
}

/// Error for a node of the wrong type.
pub(super) const WRONG_NODE_TYPE: Code = Code::INVALID_VALUE;

/// Changes a node's parameters; `change` derives the new ones from the old.
pub(super) fn replace(node: u64, change: impl FnOnce(&Payload) -> Res<Payload>) -> Res {
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
pub(super) fn new_kernel(old: &Payload, given: &CUDA_KERNEL_NODE_PARAMS) -> Res<Payload> {
    let Payload::Kernel(old) = old else {
        return Err(WRONG_NODE_TYPE);
    };
    let LaunchConfig {
        cooperative,
        cluster,
        ..
    } = old.launch.config;
    let mut new = Kernel::read(given, cooperative, cluster)?;
    new.attributes = old.attributes.clone();
    Ok(Payload::Kernel(new))
}

/// A copy node with new parameters; a null context keeps the old one.
pub(super) fn new_memcpy(old: &Payload, copy: CopyDescription, context: u64) -> Res<Payload> {
    let Payload::Memcpy(old) = old else {
        return Err(WRONG_NODE_TYPE);
    };
    let context = match context {
        0 => old.context.clone(),
        handle => node_context(handle)?,
    };
    Memcpy::in_context(copy, context).map(Payload::Memcpy)
}

/// A fill node with new parameters; a null context keeps the old one.
pub(super) fn new_memset(
    old: &Payload,
    given: &CUDA_MEMSET_NODE_PARAMS,
    context: u64,
) -> Res<Payload> {
    let Payload::Memset(old) = old else {
        return Err(WRONG_NODE_TYPE);
    };
    let context = match context {
        0 => old.context.clone(),
        handle => node_context(handle)?,
    };
    Memset::read(given, context).map(Payload::Memset)
}

pub(super) fn new_host(old: &Payload, given: &CUDA_HOST_NODE_PARAMS, mode: u32) -> Res<Payload> {
    let Payload::Host(_) = old else {
        return Err(WRONG_NODE_TYPE);
    };
    host_call(given, mode).map(Payload::Host)
}

pub(super) fn new_mem_ops(old: &Payload, given: &CUDA_BATCH_MEM_OP_NODE_PARAMS) -> Res<Payload> {
    let Payload::MemOps(_) = old else {
        return Err(WRONG_NODE_TYPE);
    };
    MemOps::read(given).map(Payload::MemOps)
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
pub(super) fn new_generic(old: &Payload, params: &CUgraphNodeParams) -> Res<Payload> {
    if params.r#type != old.kind() {
        return Err(Code::INVALID_VALUE);
    }
    check_reserved(params)?;
    match old {
        Payload::Kernel(_) => new_kernel(old, &kernel_of(params)),
        Payload::Memcpy(_) => {
            let (copy, context) = memcpy_of(params)?;
            new_memcpy(old, copy, context)
        }
        Payload::Memset(_) => {
            let (fill, context) = memset_of(params);
            new_memset(old, &fill, context)
        }
        Payload::Host(_) => {
            let (call, mode) = host_of(params);
            new_host(old, &call, mode)
        }
        Payload::EventRecord(_) => {
            new_event(old, true, member!(params, eventRecord).event.addr() as u64)
        }
        Payload::EventWait(_) => {
            new_event(old, false, member!(params, eventWait).event.addr() as u64)
        }
        Payload::Empty => Ok(Payload::Empty),
        Payload::MemOps(_) => new_mem_ops(old, &mem_ops_of(params)),
        Payload::SignalSemaphores(_) => {
            SemaphoreNode::of_signal(&member!(params, extSemSignal)).map(Payload::SignalSemaphores)
        }
        Payload::WaitSemaphores(_) => {
            SemaphoreNode::of_wait(&member!(params, extSemWait)).map(Payload::WaitSemaphores)
        }
        // Child graphs are replaced in `replace_child`.
        Payload::Graph(_)
        | Payload::MemAlloc(_)
        | Payload::MemFree(_)
        | Payload::Conditional(_) => Err(Code::NOT_SUPPORTED),
    }
}

/// Replaces the graph of a child graph node by a clone of another one, or by that one itself.
fn replace_child(node: u64, params: &CUgraphNodeParams) -> Res {
    let graph = graph_of(node)?;
    let (inner, moved) = match read_generic(params)? {
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
fn set_generic(node: u64, params_at: u64) -> Res {
    non_null(params_at)?;
    let params = get::<CUgraphNodeParams>(params_at)?;
    match &*payload_of(node)? {
        Payload::Graph(_) if params.r#type == NodeType::CU_GRAPH_NODE_TYPE_GRAPH => {
            replace_child(node, &params)
        }
        _ => replace(node, |old| new_generic(old, &params)),
    }
}

/// Reads the value of a kernel node attribute.
fn attribute_value(address: u64) -> Res<CUlaunchAttributeValue> {
    non_null(address)?;
    get::<CUlaunchAttributeValue>(address)
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
        with_kernel(node, |k| put_with(out, |told: &mut CUDA_KERNEL_NODE_PARAMS| {
            let params = k.params();
            assign_kernel!(told, params);
            (told.kern, told.ctx) = (params.kern, params.ctx);
        }))
    }
    fn kernel_get_v1 "cuGraphKernelNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        with_kernel(node, |k| put_with(out, |told: &mut CUDA_KERNEL_NODE_PARAMS_v1| {
            let params = k.params();
            assign_kernel!(told, params);
            // The old structure has one field for the function and the kernel.
            if told.func.is_null() {
                told.func = params.kern.cast();
            }
        }))
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
            Payload::Memcpy(m) => put_with(out, |told| m.copy.write_to(told)),
            _ => Err(WRONG_NODE_TYPE),
        }
    }
    fn memcpy_set "cuGraphMemcpyNodeSetParams" (node: u64, params: u64) {
        non_null(params)?;
        replace(node, |old| new_memcpy(old, get::<CUDA_MEMCPY3D>(params)?.into(), 0))
    }
    fn memset_get "cuGraphMemsetNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        match &*payload_of(node)? {
            Payload::Memset(m) => put(out, m.params()),
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
            Payload::Host(call) => put(out, CUDA_HOST_NODE_PARAMS {
                r#fn: call.function(),
                userData: call.data as *mut _,
            }),
            _ => Err(WRONG_NODE_TYPE),
        }
    }
    fn host_set "cuGraphHostNodeSetParams" (node: u64, params: u64) {
        non_null(params)?;
        replace(node, |old| new_host(old, &get(params)?, 0))
    }
    fn mem_ops_get "cuGraphBatchMemOpNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        match &*payload_of(node)? {
            Payload::MemOps(m) => put_with(out, |told: &mut CUDA_BATCH_MEM_OP_NODE_PARAMS| {
                assign!(told, m.params(); ctx, count, paramArray, flags);
            }),
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
        let payload = payload_of(node)?;
        put_with(out, |told| write_generic(&payload, told))
    }
    fn node_set_params "cuGraphNodeSetParams" (node: u64, params: u64) {
        set_generic(node, params)
    }
    fn node_set_params_v2 "cuGraphNodeSetParams_v2" (node: u64, params: u64) {
        set_generic(node, params)
    }
}
