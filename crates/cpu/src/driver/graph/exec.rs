//! Executable graphs: instantiation and launch.

use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cupyrite_sys::driver::{self as sys, CUDA_GRAPH_INSTANTIATE_PARAMS};
use parking_lot::{Mutex, MutexGuard};

use super::device_launch::{self, Obstacle};
use super::objects::Objects;
use super::plan::Plan;
use super::{Code, Graph, Payload, conditional, find, graph_of, memory};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put, put_bytes, put_optional};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id, handle_of};
use crate::driver::entry::logs::because;
use crate::driver::stream::capture_state::reject_if_capturing;
use crate::driver::stream::queue::Op;
use crate::driver::stream::resolve;

static EXECS: HandleTable<Exec> = HandleTable::new(HandleKind::Exec);

/// Flags of `CUgraphInstantiate_flags`.
pub(super) const AUTO_FREE_ON_LAUNCH: u64 = 1;
const UPLOAD: u64 = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD.0 as u64;
const DEVICE_LAUNCH: u64 =
    sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH.0 as u64;
const USE_NODE_PRIORITY: u64 =
    sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY.0 as u64;

/// Values of `CUgraphInstantiateResult`.
const RESULT_SUCCESS: u32 = sys::CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_SUCCESS.0;
const RESULT_ERROR: u32 = sys::CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_ERROR.0;
const RESULT_HANDLE_UNUSED: u32 =
    sys::CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED.0;
const RESULT_OPERATION_NOT_SUPPORTED: u32 =
    sys::CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED.0;
const RESULT_MULTIPLE_CONTEXTS: u32 =
    sys::CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED.0;
const RESULT_INVALID_STRUCTURE: u32 =
    sys::CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE.0;

/// An executable graph.
pub(in crate::driver) struct Exec {
    id: u64,
    flags: u64,
    /// Whether a launch by a kernel is pending or runs.
    pub(super) launched_by_device: AtomicBool,
    state: Mutex<ExecState>,
}

/// State of an executable graph that its lock guards.
pub(super) struct ExecState {
    /// The copy of the graph made at instantiation, updated with each change.
    pub(super) graph: Arc<Graph>,
    pub(super) plan: Arc<Plan>,
    /// The plan that kernels launch: that of the last upload. Updates do not change it.
    uploaded: Option<Arc<Plan>>,
    /// The final op of the last launch: launches of one executable graph are serialised.
    last: Option<Arc<Op>>,
}

impl Exec {
    pub(super) fn lock(&self) -> MutexGuard<'_, ExecState> {
        self.state.lock()
    }

    pub(super) fn handle(&self) -> u64 {
        handle_of(HandleKind::Exec, self.id)
    }

    /// Whether kernels may launch it.
    pub(super) fn is_device_launchable(&self) -> bool {
        self.flags & DEVICE_LAUNCH != 0
    }

    /// Uploads the graph: kernels launch it as it is now.
    fn upload(&self, state: &mut ExecState) {
        if self.is_device_launchable() {
            state.uploaded = Some(state.plan.clone());
        }
    }

    /// The plan that kernels launch; `None` if the graph was not uploaded.
    pub(super) fn uploaded(&self) -> Option<Arc<Plan>> {
        self.lock().uploaded.clone()
    }

    /// Whether the priorities of its nodes count.
    pub(super) fn uses_node_priority(&self) -> bool {
        self.flags & USE_NODE_PRIORITY != 0
    }
}

impl ExecState {
    /// Releases user objects once the launches that may use them are done.
    pub(super) fn retire(&self, objects: Objects) {
        if let Some(last) = &self.last {
            let op = Op::new(Some(Box::new(move || drop(objects))));
            op.after(last);
            op.release();
        }
    }
}

/// The executable graph of a handle.
///
/// # Errors
/// `INVALID_VALUE` for an invalid handle.
pub(super) fn find_exec(handle: u64) -> Res<Arc<Exec>> {
    EXECS.find(handle).ok_or(Code::INVALID_VALUE)
}

/// Why a graph cannot be instantiated: the code, the `CUgraphInstantiateResult`, and the node at fault.
struct InstantiationError {
    code: Code,
    result: u32,
    node: u64,
}

impl From<Code> for InstantiationError {
    fn from(code: Code) -> Self {
        let (result, node) = (RESULT_ERROR, 0);
        InstantiationError { code, result, node }
    }
}

/// Checks the conditional nodes and captured fills of a graph to be instantiated.
fn check_nodes(graph: &Arc<Graph>) -> Result<(), InstantiationError> {
    if conditional::variables(graph).iter().any(|v| !v.is_used()) {
        let code = because(Code::INVALID_VALUE, || {
            "a condition handle of the graph belongs to no conditional node".into()
        });
        let (result, node) = (RESULT_HANDLE_UNUSED, 0);
        return Err(InstantiationError { code, result, node });
    }
    let mut open = vec![graph.clone()];
    while let Some(graph) = open.pop() {
        for node in graph.lock().nodes.values() {
            let c = match &*node.payload {
                Payload::Conditional(c) => c,
                Payload::Graph(inner) => {
                    open.push(inner.clone());
                    continue;
                }
                Payload::Memset(fill) => {
                    fill.check_captured()?;
                    continue;
                }
                _ => continue,
            };
            for body in &c.bodies {
                conditional::check_body(body, c.context()).map_err(|node| InstantiationError {
                    code: because(Code::INVALID_VALUE, || {
                        "the body of a conditional node can contain kernel, memcpy, memset, empty, child graph and \
                         conditional nodes of its context; copies must be between device memory and page-locked memory"
                            .into()
                    }),
                    result: RESULT_OPERATION_NOT_SUPPORTED,
                    node,
                })?;
                open.push(body.clone());
            }
        }
    }
    Ok(())
}

/// Checks that a graph can be launched from the device.
fn check_device_launch(graph: &Arc<Graph>) -> Result<(), InstantiationError> {
    let (code, result, node, text) = match device_launch::check(graph) {
        Ok(()) => return Ok(()),
        Err(Obstacle::Unsupported(node)) => (
            Code::INVALID_VALUE,
            RESULT_OPERATION_NOT_SUPPORTED,
            node,
            "graphs for launch from the device contain kernel, memcpy, memset and child graph nodes; copies are between \
             device memory and page-locked memory",
        ),
        Err(Obstacle::OtherContext(node)) => (
            Code::INVALID_VALUE,
            RESULT_MULTIPLE_CONTEXTS,
            node,
            "all nodes of a graph for launch from the device must belong to one context",
        ),
        Err(Obstacle::Empty) => (
            Code::INVALID_VALUE,
            RESULT_ERROR,
            0,
            "a graph for launch from the device must have at least one kernel, memcpy or memset node",
        ),
    };
    let code = because(code, || text.into());
    Err(InstantiationError { code, result, node })
}

fn instantiate(graph: u64, flags: u64) -> Result<(u64, Arc<Exec>), InstantiationError> {
    if flags & !(AUTO_FREE_ON_LAUNCH | UPLOAD | DEVICE_LAUNCH | USE_NODE_PRIORITY) != 0 {
        return Err(Code::INVALID_VALUE.into());
    }
    if flags & DEVICE_LAUNCH != 0 && flags & AUTO_FREE_ON_LAUNCH != 0 {
        return Err(because(Code::INVALID_VALUE, || {
            "graphs for launch from the device cannot free memory on launch".into()
        })
        .into());
    }
    let original = find(graph)?;
    if original.embedded_in() != 0 {
        return Err(Code::NOT_SUPPORTED.into());
    }
    {
        let state = original.lock();
        let single = state.memory_nodes > 0 || state.has_conditionals();
        if single && state.executable.strong_count() > 0 {
            return Err(because(Code::NOT_SUPPORTED, || {
                "a graph with memory nodes or conditional nodes can have one executable graph at a time".into()
            })
            .into());
        }
        if state.capturing > 0 {
            return Err(Code::INVALID_VALUE.into());
        }
    }
    let graph = original.copy(false, 0, 0, true)?;
    check_nodes(&graph)?;
    if flags & DEVICE_LAUNCH != 0 {
        check_device_launch(&graph)?;
    }
    let plan = Plan::new(&graph).map_err(|cycle| InstantiationError {
        code: Code::INVALID_VALUE,
        result: RESULT_INVALID_STRUCTURE,
        node: cycle.0,
    })?;
    let id = fresh_id();
    let exec = Arc::new(Exec {
        id,
        flags,
        launched_by_device: AtomicBool::new(false),
        state: Mutex::new(ExecState {
            graph,
            plan: Arc::new(plan),
            uploaded: None,
            last: None,
        }),
    });
    original.lock().executable = Arc::downgrade(&exec);
    Ok((EXECS.insert(id, exec.clone()), exec))
}

/// Instantiates a graph and writes the handle.
fn instantiate_to(out: u64, graph: u64, flags: u64) -> Result<Arc<Exec>, InstantiationError> {
    non_null(out)?;
    reject_if_capturing()?;
    let (handle, exec) = instantiate(graph, flags)?;
    put(out, handle).inspect_err(|_| {
        let _ = EXECS.remove(handle);
    })?;
    Ok(exec)
}

/// The first version of instantiation, which reports the node at fault and a message.
fn instantiate_v1(out: u64, graph: u64, node: u64, text: u64, size: u64) -> Res {
    let done = instantiate_to(out, graph, 0).map(|_| ());
    let blamed = done.as_ref().err().map_or(0, |r| r.node);
    put_optional(node, blamed)?;
    if text != 0 && size > 0 {
        // The message is empty: there is no detail beyond the code.
        put_bytes(text, &[0])?;
    }
    done.map_err(|r| r.code)
}

fn launch(exec: u64, stream: u64, per_thread: bool) -> Res {
    let exec = find_exec(exec)?;
    // NVIDIA's driver does not capture graph launches.
    let stream = resolve::resolve(stream, per_thread)?;
    let mut state = exec.lock();
    memory::launch(&state.plan, exec.flags & AUTO_FREE_ON_LAUNCH != 0, &stream)?;
    let before: Vec<Arc<Op>> = state.last.take().into_iter().collect();
    let current = if exec.is_device_launchable() {
        exec.handle()
    } else {
        0
    };
    state.last = Some(state.plan.launch(&stream, &before, current));
    // A launch by the host uploads the graph.
    exec.upload(&mut state);
    Ok(())
}

/// Enables or disables a node, or queries it.
fn enabled(exec: u64, node: u64, wanted: Option<bool>) -> Res<bool> {
    let exec = find_exec(exec)?;
    graph_of(node)?;
    let mut state = exec.lock();
    let at = state.plan.locate(node).ok_or(Code::INVALID_VALUE)?.clone();
    if !state.plan.payload(&at).can_be_disabled() {
        return Err(Code::INVALID_VALUE);
    }
    if let Some(wanted) = wanted {
        Arc::make_mut(&mut state.plan).set_enabled(&at, wanted);
    }
    Ok(state.plan.is_enabled(&at))
}

driver_entry_points! {
    fn instantiate_with_flags "cuGraphInstantiateWithFlags" (out: u64, graph: u64, flags: u64) {
        // Uploading needs a stream, which only the other variant has.
        if flags & UPLOAD != 0 {
            return Err(Code::INVALID_VALUE);
        }
        instantiate_to(out, graph, flags).map(|_| ()).map_err(|r| r.code)
    }
    fn instantiate_first "cuGraphInstantiate" (out: u64, graph: u64, node: u64, text: u64, size: u64) {
        instantiate_v1(out, graph, node, text, size)
    }
    fn instantiate_second "cuGraphInstantiate_v2" (out: u64, graph: u64, node: u64, text: u64, size: u64) {
        instantiate_v1(out, graph, node, text, size)
    }
    fn instantiate_with_params "cuGraphInstantiateWithParams" | "cuGraphInstantiateWithParams_ptsz"
        (out: u64, graph: u64, params: u64) {
        non_null(params)?;
        // `hErrNode_out` and `result_out` are outputs.
        let given = get::<CUDA_GRAPH_INSTANTIATE_PARAMS>(params)?;
        let flags = given.flags;
        if flags & UPLOAD != 0 {
            resolve::resolve(given.hUploadStream.addr() as u64, PER_THREAD)?;
        }
        let done = instantiate_to(out, graph, flags);
        let (node, result) = done.as_ref().err().map_or((0, RESULT_SUCCESS), |r| (r.node, r.result));
        put(params + offset_of!(CUDA_GRAPH_INSTANTIATE_PARAMS, hErrNode_out) as u64, node)?;
        put(params + offset_of!(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out) as u64, result)?;
        let exec = done.map_err(|r| r.code)?;
        if flags & UPLOAD != 0 {
            exec.upload(&mut exec.lock());
        }
        Ok(())
    }
    fn graph_launch "cuGraphLaunch" | "cuGraphLaunch_ptsz" (exec: u64, stream: u64) {
        launch(exec, stream, PER_THREAD)
    }
    fn graph_upload "cuGraphUpload" | "cuGraphUpload_ptsz" (exec: u64, stream: u64) {
        let exec = find_exec(exec)?;
        resolve::resolve(stream, PER_THREAD)?.mark(&[]);
        exec.upload(&mut exec.lock());
        Ok(())
    }
    fn exec_destroy "cuGraphExecDestroy" (exec: u64) {
        find_exec(exec)?;
        reject_if_capturing()?;
        let exec = EXECS.remove(exec).map_err(|_| Code::INVALID_VALUE)?;
        // Running launches keep their resources alive, except for user objects.
        let state = exec.lock();
        let objects = std::mem::take(&mut state.graph.lock().objects);
        state.retire(objects);
        Ok(())
    }
    fn exec_flags "cuGraphExecGetFlags" (exec: u64, out: u64) {
        non_null(out)?;
        // The upload and priority flags are not reported.
        put(out, find_exec(exec)?.flags & (AUTO_FREE_ON_LAUNCH | DEVICE_LAUNCH))
    }
    fn exec_id "cuGraphExecGetId" (exec: u64, out: u64) {
        non_null(out)?;
        put(out, find_exec(exec)?.id as u32)
    }
    fn node_set_enabled "cuGraphNodeSetEnabled" (exec: u64, node: u64, wanted: u32) {
        enabled(exec, node, Some(wanted != 0)).map(|_| ())
    }
    fn node_get_enabled "cuGraphNodeGetEnabled" (exec: u64, node: u64, out: u64) {
        non_null(out)?;
        put(out, u32::from(enabled(exec, node, None)?))
    }
}

/// Whether a payload can only be changed with the whole graph.
pub(super) fn is_structure(payload: &Payload) -> bool {
    matches!(
        payload,
        Payload::Graph(_) | Payload::MemAlloc(_) | Payload::MemFree(_) | Payload::Conditional(_)
    )
}
