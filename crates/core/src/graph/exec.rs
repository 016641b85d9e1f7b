//! Instantiated graphs.

use std::collections::HashMap;
use std::ffi::{c_uint, c_void};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::destroyed::OwnedKind;
use cupyrite_sys::driver::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUgraphExec, CUgraphExecUpdateResult as UpdateResult,
    CUgraphExecUpdateResultInfo, CUgraphInstantiate_flags as Flags,
    CUgraphInstantiateResult as InstantiateResult, CUgraphNode, CUgraphNodeType, CUresult,
};
use cupyrite_sys::waits;
use parking_lot::Mutex;

use crate::context::{Context, current_handle};
use crate::error::{Error, Result, driver, report};
use crate::fork::ForkGeneration;
use crate::graph::callback::HostCallback;
use crate::graph::definition::GraphDefinition;
use crate::graph::in_use::{Launches, Waits, drop_after, drop_released, drop_with_context};
use crate::graph::lock::{HierarchyMutex, lock_both};
use crate::graph::params::{MemcpyParams, MemsetParams, kernel_params};
use crate::graph::read::{is_kernel_alone, with_kernel};
use crate::graph::retained::{Abandoned, Pending, Retained, is_of_this_process};
use crate::module::{Kernel, LaunchConfig};
use crate::stream::{Event, Stream};

/// Options of [`GraphDefinition::instantiate`].
#[derive(Clone, Debug, Default)]
pub struct InstantiateOptions {
    /// Frees memory that the graph allocated and did not free before each further launch.
    pub auto_free_on_launch: bool,
    /// Uploads the graph in this stream.
    pub upload_stream: Option<Stream>,
    /// Lets device code launch the graph.
    pub device_launch: bool,
    /// Runs the nodes with their own priorities, not with that of the stream.
    pub use_node_priority: bool,
}

/// An instantiated graph: a definition as it was, ready to be launched. Cheap to clone.
///
/// It may be launched in any number of streams; its launches run one after the other. It does not need its definition.
#[derive(Clone)]
pub struct Graph {
    inner: Arc<Inner>,
}

struct Inner {
    handle: CUgraphExec,
    /// Of the definition from which it was instantiated, whose nodes name its nodes.
    source: Arc<HierarchyMutex>,
    /// [`OwnedKind::epoch`] when it was created.
    created: u32,
    context: Context,
    generation: ForkGeneration,
    /// What the nodes retain since the instantiation.
    content: Option<Retained>,
    /// Whether the driver holds `content` as well, until the last launch is done.
    held_by_driver: bool,
    /// Whether the program has the handle, so that it may launch the graph with calls of the driver.
    handed_out: AtomicBool,
    /// Serialises launches and updates: the driver does not synchronise access to an instantiated graph. Taken after the
    /// locks of definitions.
    state: Mutex<State>,
}

/// Whether a program uses handles of instantiated graphs. The driver holds the content of graphs that are instantiated from
/// then on.
static HANDLES_IN_USE: AtomicBool = AtomicBool::new(false);

/// Changed under the lock that serialises calls.
#[derive(Default)]
struct State {
    /// Whether launches are noted: they use something that the driver does not hold.
    noted: bool,
    launches: Launches,
    /// The content of the last update of all nodes.
    whole: Option<Retained>,
    /// The content of updates of nodes.
    nodes: HashMap<usize, Retained>,
}

// SAFETY: all calls that change the graph are made under the lock of `state`.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Inner {
    /// Refuses a graph that the program has destroyed, by its handle or with its context, and one of the parent process.
    #[inline(always)]
    fn check_live(&self) -> Result<()> {
        // In a forked child another thread of the parent may have held the lock of `state`.
        if self.is_destroyed() || !is_of_this_process(self.generation) {
            return Err(destroyed());
        }
        Ok(())
    }

    #[inline(always)]
    fn is_destroyed(&self) -> bool {
        OwnedKind::GraphExec.is_destroyed(self.handle, self.context.handle(), self.created)
    }

    fn is_destroyed_by_handle(&self) -> bool {
        OwnedKind::GraphExec.is_destroyed(self.handle, std::ptr::null_mut(), self.created)
    }

    /// What to wait for before content is dropped that launches may use.
    fn waits(&self, state: &State) -> Waits {
        let mut waits = state.launches.waits();
        if self.handed_out.load(Ordering::Relaxed) {
            waits.add_unknown();
        }
        waits
    }
}

#[cold]
fn destroyed() -> Error {
    Error::Driver {
        call: "Graph",
        status: CUresult::CUDA_ERROR_INVALID_HANDLE,
        log: "the graph was destroyed by the program, with cuGraphExecDestroy or cudaGraphExecDestroy, or with its context; or it \
              belongs to the parent process"
            .to_owned(),
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !is_of_this_process(self.generation) {
            return;
        }
        let destroy = || -> Result<()> {
            let _entered = self.context.enter()?;
            // The driver notes in the definition that an instantiated graph with memory nodes is gone.
            let _lock = self.source.lock();
            // SAFETY: the program has not destroyed the graph; this is the owner, and its only call. The driver completes
            // running launches.
            unsafe { driver!(owned cuGraphExecDestroy(self.handle)) }
        };
        let mut is_gone = false;
        if !self.is_destroyed() {
            report(destroy());
        } else {
            is_gone = !self.is_destroyed_by_handle();
        }
        let state = std::mem::take(self.state.get_mut());
        let waits = self.waits(&state);
        let mut content: Vec<Retained> = state.nodes.into_values().collect();
        content.extend(state.whole);
        match self.content.take() {
            Some(set) if !self.held_by_driver => content.push(set),
            // The driver does not release what the graph retains.
            Some(set) if is_gone => content.push(Arc::new(Abandoned(set))),
            _ => {}
        }
        if is_gone {
            drop_with_context(content);
        } else if !content.is_empty() {
            drop_after(waits, &self.context, content);
        }
        drop_released();
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({:#x})", self.inner.handle.addr())
    }
}

/// What a result of `cuGraphInstantiateWithParams` means.
fn instantiate_problem(result: InstantiateResult) -> &'static str {
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
fn update_problem(result: UpdateResult) -> &'static str {
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
fn describe_node(node: CUgraphNode) -> String {
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

impl GraphDefinition {
    /// Instantiates the graph.
    ///
    /// # Errors
    ///
    /// The driver's error, with its reason. Source: `cuGraphInstantiateWithParams`.
    pub fn instantiate(&self, options: &InstantiateOptions) -> Result<Graph> {
        let mut flags = 0u64;
        let mut set = |on: bool, flag: Flags| {
            if on {
                flags |= u64::from(flag.0);
            }
        };
        set(
            options.auto_free_on_launch,
            Flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
        );
        set(
            options.upload_stream.is_some(),
            Flags::CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
        );
        set(
            options.device_launch,
            Flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH,
        );
        set(
            options.use_node_priority,
            Flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,
        );
        let mut handle: CUgraphExec = std::ptr::null_mut();
        let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS {
            flags,
            hUploadStream: options
                .upload_stream
                .as_ref()
                .map_or(std::ptr::null_mut(), Stream::handle),
            ..CUDA_GRAPH_INSTANTIATE_PARAMS::default()
        };
        if let Some(stream) = &options.upload_stream {
            stream.check_live()?;
        }
        let entered = self.enter("GraphDefinition::instantiate")?;
        let handles_in_use = HANDLES_IN_USE.load(Ordering::Relaxed);
        let held_by_driver = self.prepare_to_instantiate(&entered, handles_in_use)?;
        // SAFETY: the graph and the stream are live; the other two are valid for writes.
        let done = unsafe {
            driver!(cuGraphInstantiateWithParams(
                &mut handle,
                entered.handle,
                &mut params
            ))
        };
        let content = entered.lock.state().retention.seal();
        self.finish_instantiating(&entered);
        let failed = match done {
            Ok(()) => params.result_out != InstantiateResult::CUDA_GRAPH_INSTANTIATE_SUCCESS,
            Err(_) => true,
        };
        if failed {
            let reason = format!(
                "{}{}",
                instantiate_problem(params.result_out),
                describe_node(params.hErrNode_out)
            );
            let error = match done {
                Err(error) => error,
                Ok(()) => Error::driver(
                    "cuGraphInstantiateWithParams",
                    CUresult::CUDA_ERROR_INVALID_VALUE,
                ),
            };
            return Err(error.with_log(&reason));
        }
        // SAFETY: the context is current, or that of the definition.
        let context = unsafe { Context::from_handle(entered.context)? };
        drop(entered);
        Ok(Graph {
            inner: Arc::new(Inner {
                handle,
                source: self.mutex().clone(),
                created: OwnedKind::GraphExec.epoch(),
                context,
                generation: ForkGeneration::current(),
                state: Mutex::new(State {
                    noted: content.is_some() && !held_by_driver,
                    ..State::default()
                }),
                content,
                held_by_driver,
                handed_out: AtomicBool::new(false),
            }),
        })
    }
}

impl Graph {
    /// The driver's handle; valid while a clone of this graph lives.
    ///
    /// The program may launch the graph with calls of the driver from then on. What the graph retains is dropped after the
    /// host has waited for the context ([`Context::synchronize`]) because the streams of such launches are unknown. The
    /// driver itself keeps track of graphs that are instantiated later; their launches cost 1.25 us more.
    pub fn handle(&self) -> CUgraphExec {
        self.inner.handed_out.store(true, Ordering::Relaxed);
        HANDLES_IN_USE.store(true, Ordering::Relaxed);
        self.inner.handle
    }

    /// The address in the handle, to compare and to print.
    pub fn address(&self) -> usize {
        self.inner.handle.addr()
    }

    /// Launches the graph. Drivers up to 13.0 refuse it for a stream that is being captured: use
    /// [`GraphBuilder::embed`](crate::graph::GraphBuilder::embed).
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphLaunch`.
    #[inline]
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        stream.check_live()?;
        self.inner.check_live()?;
        if stream.is_of_builder() {
            return self.record(stream);
        }
        let mut state = self.inner.state.lock();
        let (graph, handle) = (self.inner.handle, stream.handle());
        // SAFETY: both handles are live.
        stream.call(|| unsafe { driver!(cuGraphLaunch(graph, handle)) })?;
        // Its kernels may print.
        waits::note();
        if state.noted {
            state.launches.note(stream);
        }
        Ok(())
    }

    /// Launches the graph in a stream of a builder, which retains it.
    #[cold]
    fn record(&self, stream: &Stream) -> Result<()> {
        stream.queue(|| {
            let _locked = self.inner.state.lock();
            // SAFETY: both handles are live.
            unsafe { driver!(cuGraphLaunch(self.inner.handle, stream.handle())) }
        })?;
        stream.retain_recorded(Arc::new(self.clone()))
    }

    /// Prepares the first launch in `stream`.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphUpload`.
    pub fn upload(&self, stream: &Stream) -> Result<()> {
        stream.check_live()?;
        self.inner.check_live()?;
        let _locked = self.inner.state.lock();
        // SAFETY: both handles are live.
        stream.call(|| unsafe { driver!(cuGraphUpload(self.inner.handle, stream.handle())) })
    }

    /// Makes a call that changes the graph, and retains `content` for it.
    fn change(
        &self,
        node: Option<CUgraphNode>,
        content: Option<Retained>,
        change: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.change_launch(node, None, content, change)
    }

    /// [`Graph::change`] for a node that launches `kernel`, which it retains if there is no `content`.
    fn change_launch(
        &self,
        node: Option<CUgraphNode>,
        kernel: Option<&Kernel>,
        content: Option<Retained>,
        change: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let mut content = Pending::new(content);
        self.inner.check_live()?;
        let _entered = if current_handle()?.is_null() {
            Some(self.inner.context.enter()?)
        } else {
            None
        };
        let (former, waits) = {
            // The driver looks `node` up in the definition.
            let _source = self.inner.source.lock();
            let mut state = self.inner.state.lock();
            change()?;
            if !content.is_some() && kernel.is_none() {
                return Ok(());
            }
            let content = match (content.take(), kernel) {
                (Some(content), _) => content,
                (None, Some(kernel)) => {
                    let known = node.and_then(|node| state.nodes.get(&node.addr()));
                    if known.is_some_and(|known| is_kernel_alone(known, kernel)) {
                        // The usual case: other numbers for the same kernel.
                        return Ok(());
                    }
                    with_kernel(kernel, None)
                }
                (None, None) => return Ok(()),
            };
            let mut former = Vec::new();
            match node {
                Some(node) => former.extend(state.nodes.insert(node.addr(), content)),
                None => {
                    former.extend(state.nodes.drain().map(|(_, value)| value));
                    former.extend(state.whole.replace(content));
                }
            }
            state.noted = true;
            let waits = (!former.is_empty()).then(|| self.inner.waits(&state));
            (former, waits)
        };
        if let Some(waits) = waits {
            drop_after(waits, &self.inner.context, former);
        }
        drop_released();
        Ok(())
    }

    /// Replaces the parameters of all nodes by those of `source`, which has the same nodes and edges. Later launches use
    /// them.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE` with the driver's reason and the node's type; the graph is unchanged then.
    /// Source: `cuGraphExecUpdate`.
    pub fn update(&self, source: &GraphDefinition) -> Result<()> {
        let _locks = lock_both(&self.inner.source, source.mutex());
        let entered = source.enter("Graph::update")?;
        let content = source.seal().unwrap_or_else(|| Arc::new(()));
        self.change(None, Some(content), || {
            let mut info = CUgraphExecUpdateResultInfo::default();
            // SAFETY: both handles are live; `info` is valid for writes.
            let done = unsafe {
                driver!(cuGraphExecUpdate(
                    self.inner.handle,
                    entered.handle,
                    &mut info
                ))
            };
            done.map_err(|error| {
                let node = if info.errorFromNode.is_null() {
                    info.errorNode
                } else {
                    info.errorFromNode
                };
                let reason = format!("{}{}", update_problem(info.result), describe_node(node));
                error.with_log(&reason)
            })
        })
    }

    /// Replaces the parameters of a kernel node. It retains the kernel and `value`.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphExecKernelNodeSetParams`.
    ///
    /// # Safety
    ///
    /// `node` is a live node of the definition from which the graph was instantiated; this holds for all functions with
    /// this parameter. Otherwise as [`GraphDefinition::add_kernel`].
    pub unsafe fn set_kernel(
        &self,
        node: CUgraphNode,
        kernel: &Kernel,
        config: &LaunchConfig,
        params: *mut *mut c_void,
        value: Option<Retained>,
    ) -> Result<()> {
        kernel.check_loaded("cuGraphExecKernelNodeSetParams")?;
        if config.cooperative || config.cluster.is_some() {
            return Err(Error::argument(
                "Graph::set_kernel",
                "config",
                "has a cluster or is cooperative, which an instantiated graph cannot change",
            ));
        }
        let raw = kernel_params(kernel, config, params, std::ptr::null_mut())?;
        let content = value.map(|value| with_kernel(kernel, Some(value)));
        self.change_launch(Some(node), Some(kernel), content, || {
            // SAFETY: the caller's contract; the driver copies the parameters.
            unsafe {
                driver!(cuGraphExecKernelNodeSetParams(
                    self.inner.handle,
                    node,
                    &raw const raw
                ))
            }
        })
    }

    /// Replaces the parameters of a copy. It retains `value`.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphExecMemcpyNodeSetParams`.
    ///
    /// # Safety
    ///
    /// As [`Graph::set_kernel`] and [`GraphDefinition::add_memcpy`].
    pub unsafe fn set_memcpy(
        &self,
        node: CUgraphNode,
        params: MemcpyParams,
        value: Option<Retained>,
    ) -> Result<()> {
        let raw = params.raw();
        self.change(Some(node), or_nothing(value), || {
            let context = current_handle()?;
            // SAFETY: the caller's contract.
            let done = unsafe {
                driver!(cuGraphExecMemcpyNodeSetParams(
                    self.inner.handle,
                    node,
                    &raw const raw,
                    context
                ))
            };
            done.map_err(|error| {
                let hint = "an instantiated graph keeps the memory types and the context of a copy";
                params.explain(error).with_log(hint)
            })
        })
    }

    /// Replaces the parameters of a fill. It retains `value`.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphExecMemsetNodeSetParams`.
    ///
    /// # Safety
    ///
    /// As [`Graph::set_memcpy`].
    pub unsafe fn set_memset(
        &self,
        node: CUgraphNode,
        params: MemsetParams,
        value: Option<Retained>,
    ) -> Result<()> {
        let raw = params.raw();
        self.change(Some(node), or_nothing(value), || {
            let context = current_handle()?;
            // SAFETY: the caller's contract.
            let done = unsafe {
                driver!(cuGraphExecMemsetNodeSetParams(
                    self.inner.handle,
                    node,
                    &raw const raw,
                    context
                ))
            };
            done.map_err(|error| {
                let hint =
                    "an instantiated graph changes fills of one row, in the same context, only";
                params.explain(error).with_log(hint)
            })
        })
    }

    /// Replaces a host function.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphExecHostNodeSetParams`.
    ///
    /// # Safety
    ///
    /// As [`Graph::set_kernel`].
    pub unsafe fn set_callback(&self, node: CUgraphNode, callback: &HostCallback) -> Result<()> {
        let raw = callback.params();
        self.change(Some(node), Some(callback.retained()), || {
            // SAFETY: the caller's contract.
            unsafe {
                driver!(cuGraphExecHostNodeSetParams(
                    self.inner.handle,
                    node,
                    &raw const raw
                ))
            }
        })
    }

    /// Replaces the event of a node that records it (`recorded`) or waits for it.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphExecEventRecordNodeSetEvent`, `cuGraphExecEventWaitNodeSetEvent`.
    ///
    /// # Safety
    ///
    /// As [`Graph::set_kernel`].
    pub unsafe fn set_event(&self, node: CUgraphNode, event: &Event, recorded: bool) -> Result<()> {
        event.check_live()?;
        self.change(Some(node), Some(Arc::new(event.clone())), || {
            let (graph, event) = (self.inner.handle, event.handle());
            // SAFETY: the caller's contract; the event is live.
            unsafe {
                if recorded {
                    driver!(cuGraphExecEventRecordNodeSetEvent(graph, node, event))
                } else {
                    driver!(cuGraphExecEventWaitNodeSetEvent(graph, node, event))
                }
            }
        })
    }

    /// Replaces the graph of a child graph node by one with the same nodes and edges.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphExecChildGraphNodeSetParams`.
    ///
    /// # Safety
    ///
    /// As [`Graph::set_kernel`].
    pub unsafe fn set_child(&self, node: CUgraphNode, child: &GraphDefinition) -> Result<()> {
        let _locks = lock_both(&self.inner.source, child.mutex());
        let entered = child.enter("Graph::set_child")?;
        let content = child.seal().unwrap_or_else(|| Arc::new(()));
        self.change(Some(node), Some(content), || {
            // SAFETY: the caller's contract; the child is live.
            unsafe {
                driver!(cuGraphExecChildGraphNodeSetParams(
                    self.inner.handle,
                    node,
                    entered.handle
                ))
            }
        })
    }

    /// Enables or disables a kernel, copy or fill node for later launches.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphNodeSetEnabled`.
    ///
    /// # Safety
    ///
    /// As [`Graph::set_kernel`].
    pub unsafe fn set_enabled(&self, node: CUgraphNode, enabled: bool) -> Result<()> {
        self.change(None, None, || {
            // SAFETY: the caller's contract.
            unsafe {
                driver!(cuGraphNodeSetEnabled(
                    self.inner.handle,
                    node,
                    c_uint::from(enabled)
                ))
            }
        })
    }

    /// Whether a node is enabled.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphNodeGetEnabled`.
    ///
    /// # Safety
    ///
    /// As [`Graph::set_kernel`].
    pub unsafe fn is_enabled(&self, node: CUgraphNode) -> Result<bool> {
        let mut enabled: c_uint = 0;
        let place = &raw mut enabled;
        self.change(None, None, || {
            // SAFETY: the caller's contract; `place` is valid for writes.
            unsafe { driver!(cuGraphNodeGetEnabled(self.inner.handle, node, place)) }
        })?;
        Ok(enabled != 0)
    }

    /// Whether the graph was instantiated from this definition, or from one of the same hierarchy.
    pub fn is_instance_of(&self, definition: &GraphDefinition) -> bool {
        Arc::ptr_eq(&self.inner.source, definition.mutex())
    }

    /// Drops this clone; the last one destroys the graph. Launches complete.
    pub fn close(self) {
        drop(self);
    }
}

/// An update without content replaces the content of a former one.
fn or_nothing(value: Option<Retained>) -> Option<Retained> {
    Some(value.unwrap_or_else(|| Arc::new(())))
}
