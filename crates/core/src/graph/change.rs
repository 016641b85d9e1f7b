//! Changing the parameters of nodes, by handle.

use std::ffi::c_void;
use std::sync::Arc;

use cupyrite_sys::driver::{CUgraphNode, CUgraphNodeParams, CUgraphNodeType};

use crate::error::{Result, driver};
use crate::graph::attributes::replace;
use crate::graph::callback::HostCallback;
use crate::graph::definition::{Entered, GraphDefinition};
use crate::graph::params::{MemcpyParams, MemsetParams, kernel_params};
use crate::graph::read::with_kernel;
use crate::graph::retained::{Pending, Retained};
use crate::module::{Kernel, LaunchConfig};
use crate::stream::Event;

impl GraphDefinition {
    /// Changes a node with `change`, and what is retained for it.
    fn change(
        &self,
        node: CUgraphNode,
        value: Option<Retained>,
        change: impl FnOnce(&mut Entered<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut value = Pending::new(value);
        let mut entered = self.enter("Node::update")?;
        if value.is_some() {
            entered.prepare()?;
        }
        change(&mut entered)?;
        match value.take() {
            Some(value) => entered.set_node(node, value),
            None => Ok(()),
        }
    }

    /// Replaces the parameters of a kernel node, and what is retained for it.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::add_kernel`]. Source: `cuGraphKernelNodeSetParams`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::add_kernel`]; `node` is a live kernel node.
    pub unsafe fn set_kernel(
        &self,
        node: CUgraphNode,
        kernel: &Kernel,
        config: &LaunchConfig,
        params: *mut *mut c_void,
        value: Option<Retained>,
    ) -> Result<()> {
        kernel.check_loaded("cuGraphKernelNodeSetParams")?;
        self.change(node, Some(with_kernel(kernel, value)), |entered| {
            let raw = kernel_params(kernel, config, params, entered.context)?;
            // SAFETY: the node is live; the driver copies the parameters.
            unsafe { replace(node, &raw, config) }
        })
    }

    /// Replaces the launch configuration of a kernel node; kernel and arguments stay.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::set_kernel`].
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::set_kernel`].
    pub unsafe fn set_kernel_config(&self, node: CUgraphNode, config: &LaunchConfig) -> Result<()> {
        let _lock = self.lock()?;
        // SAFETY: the caller's contract.
        let mut raw = unsafe { self.kernel_params_of(node)? }.raw;
        let blocks = config.blocks()?;
        [raw.gridDimX, raw.gridDimY, raw.gridDimZ] = blocks;
        [raw.blockDimX, raw.blockDimY, raw.blockDimZ] = config.block;
        raw.sharedMemBytes = config.shared_bytes;
        self.change(node, None, |_| {
            // SAFETY: the node is live; its own parameter values stay valid until they are replaced.
            unsafe { replace(node, &raw, config) }
        })
    }

    /// Replaces the parameters of a copy, and what is retained for it.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphMemcpyNodeSetParams`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::add_memcpy`]; `node` is a live copy node.
    pub unsafe fn set_memcpy(
        &self,
        node: CUgraphNode,
        params: MemcpyParams,
        value: Option<Retained>,
    ) -> Result<()> {
        let raw = params.raw();
        self.change(node, value, |_| {
            // SAFETY: the node is live.
            let done = unsafe { driver!(cuGraphMemcpyNodeSetParams(node, &raw const raw)) };
            done.map_err(|error| params.explain(error))
        })
    }

    /// Replaces the parameters of a fill, and what is retained for it.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphMemsetNodeSetParams`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::add_memset`]; `node` is a live fill node.
    pub unsafe fn set_memset(
        &self,
        node: CUgraphNode,
        params: MemsetParams,
        value: Option<Retained>,
    ) -> Result<()> {
        let raw = params.raw();
        self.change(node, value, |_| {
            // SAFETY: the node is live.
            let done = unsafe { driver!(cuGraphMemsetNodeSetParams(node, &raw const raw)) };
            done.map_err(|error| params.explain(error))
        })
    }

    /// Replaces the host function of a node.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphHostNodeSetParams`.
    ///
    /// # Safety
    ///
    /// `node` is a live host function node of this definition.
    pub unsafe fn set_callback(&self, node: CUgraphNode, callback: &HostCallback) -> Result<()> {
        let raw = callback.params();
        self.change(node, Some(callback.retained()), |_| {
            // SAFETY: the node is live.
            unsafe { driver!(cuGraphHostNodeSetParams(node, &raw const raw)) }
        })
    }

    /// Replaces the event of a node that records it (`recorded`) or waits for it.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphEventRecordNodeSetEvent`, `cuGraphEventWaitNodeSetEvent`.
    ///
    /// # Safety
    ///
    /// `node` is a live node of this definition and of that kind.
    pub unsafe fn set_event(&self, node: CUgraphNode, event: &Event, recorded: bool) -> Result<()> {
        event.check_live()?;
        self.change(node, Some(Arc::new(event.clone())), |_| {
            // SAFETY: the node and the event are live.
            unsafe {
                if recorded {
                    driver!(cuGraphEventRecordNodeSetEvent(node, event.handle()))
                } else {
                    driver!(cuGraphEventWaitNodeSetEvent(node, event.handle()))
                }
            }
        })
    }

    /// Replaces the graph of a child graph node by a clone of `child`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a definition of the same hierarchy; the driver's error. Source:
    /// `cuGraphNodeSetParams`.
    ///
    /// # Safety
    ///
    /// `node` is a live child graph node of this definition.
    pub unsafe fn set_child(&self, node: CUgraphNode, child: &GraphDefinition) -> Result<()> {
        let _locks = self.lock_and_link(child)?;
        let content = self.check_child("ChildGraphNode::update", child)?;
        let mut raw = CUgraphNodeParams {
            r#type: CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            ..CUgraphNodeParams::default()
        };
        raw.anon0.graph.graph = child.inner.handle();
        let value = content.unwrap_or_else(|| Arc::new(()));
        self.change(node, Some(value), |entered| {
            // SAFETY: the node is live.
            let nested = unsafe { self.nested_nodes(entered, node) }.unwrap_or_default();
            // SAFETY: the node and the child are live.
            unsafe { driver!(cuGraphNodeSetParams(node, &raw mut raw))? };
            entered.lock.state().invalidate_graphs_of(node);
            for node in nested {
                entered.note_destroyed(node);
            }
            Ok(())
        })
    }
}
