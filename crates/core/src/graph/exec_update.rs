//! Updates of instantiated graphs: parameters of nodes, for later launches.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use cupyrite_sys::driver::{CUgraphExecUpdateResultInfo, CUgraphNode};

use crate::context::current_handle;
use crate::error::{Error, Result, driver};
use crate::graph::callback::HostCallback;
use crate::graph::deferred_destruction::{drop_after, drop_released};
use crate::graph::definition::GraphDefinition;
use crate::graph::exec::Graph;
use crate::graph::exec_reasons::{describe_node, update_problem};
use crate::graph::lock::lock_both;
use crate::graph::params::{MemcpyParams, MemsetParams, kernel_params};
use crate::graph::read::{is_kernel_alone, with_kernel};
use crate::graph::retained::{Pending, Retained};
use crate::module::{Kernel, LaunchConfig};
use crate::stream::Event;

impl Graph {
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
        let (former, launches) = {
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
            let launches = (!former.is_empty()).then(|| self.inner.pending_launches(&state));
            (former, launches)
        };
        if let Some(launches) = launches {
            drop_after(launches, &self.inner.context, former);
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
}

/// An update without content replaces the content of a former one.
fn or_nothing(value: Option<Retained>) -> Option<Retained> {
    Some(value.unwrap_or_else(|| Arc::new(())))
}
