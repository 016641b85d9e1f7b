//! Reading the parameters of nodes, by handle.

use std::ffi::c_void;
use std::sync::Arc;

use cupyrite_sys::driver::{
    CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D,
    CUDA_MEMSET_NODE_PARAMS, CUdeviceptr, CUevent, CUgraph, CUgraphNode, CUgraphNodeParams,
    CUgraphNodeType, CUlaunchAttributeID,
};

use crate::error::{Error, Result, driver};
use crate::graph::attributes::attribute_of;
use crate::graph::condition::{Condition, ConditionalKind};
use crate::graph::definition::GraphDefinition;
use crate::graph::node::NodeKind;
use crate::graph::params::{
    AllocationParams, ConditionalParams, KernelNodeParams, MemcpyParams, MemsetParams,
};
use crate::graph::retained::Retained;
use crate::module::{Kernel, LaunchConfig};
use crate::stream::Event;

impl GraphDefinition {
    /// A node's type.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphNodeGetType`.
    ///
    /// # Safety
    ///
    /// `node` is a live node of this definition. This holds for all functions with this parameter.
    pub unsafe fn kind_of(&self, node: CUgraphNode) -> Result<NodeKind> {
        let _entered = self.enter("Node::kind")?;
        let mut kind = CUgraphNodeType(0);
        // SAFETY: the caller keeps the node live; `kind` is valid for writes.
        unsafe { driver!(cuGraphNodeGetType(node, &mut kind))? };
        Ok(kind)
    }

    /// The parameters of a kernel node.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphKernelNodeGetParams`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::kind_of`].
    pub unsafe fn kernel_params_of(&self, node: CUgraphNode) -> Result<KernelNodeParams> {
        let _entered = self.enter("Node::kernel_params")?;
        let mut raw = CUDA_KERNEL_NODE_PARAMS::default();
        // SAFETY: the caller keeps the node live; `raw` is valid for writes.
        unsafe { driver!(cuGraphKernelNodeGetParams(node, &mut raw))? };
        let mut config = LaunchConfig::new(
            [raw.gridDimX, raw.gridDimY, raw.gridDimZ],
            [raw.blockDimX, raw.blockDimY, raw.blockDimZ],
        );
        config.shared_bytes = raw.sharedMemBytes;
        // SAFETY: the caller keeps the node live. Attributes that the driver does not know are absent.
        unsafe {
            let get = |id| attribute_of(node, id);
            if let Ok(value) = get(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
                config.cooperative = value.cooperative != 0;
            }
            if let Ok(value) = get(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
                let cluster = [value.clusterDim.x, value.clusterDim.y, value.clusterDim.z];
                if cluster.iter().all(|n| *n != 0) && cluster != [1; 3] {
                    config.cluster = Some(cluster);
                    for (blocks, size) in config.grid.iter_mut().zip(cluster) {
                        *blocks /= size;
                    }
                }
            }
        }
        Ok(KernelNodeParams { raw, config })
    }

    /// The parameters of a copy; `None` for a copy with rows, offsets or arrays.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphMemcpyNodeGetParams`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::kind_of`].
    pub unsafe fn memcpy_params_of(&self, node: CUgraphNode) -> Result<Option<MemcpyParams>> {
        let _entered = self.enter("Node::memcpy_params")?;
        let mut raw = CUDA_MEMCPY3D::default();
        // SAFETY: the caller keeps the node live; `raw` is valid for writes.
        unsafe { driver!(cuGraphMemcpyNodeGetParams(node, &mut raw))? };
        Ok(MemcpyParams::from_raw(&raw))
    }

    /// The parameters of a fill.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphMemsetNodeGetParams`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::kind_of`].
    pub unsafe fn memset_params_of(&self, node: CUgraphNode) -> Result<MemsetParams> {
        let _entered = self.enter("Node::memset_params")?;
        let mut raw = CUDA_MEMSET_NODE_PARAMS::default();
        // SAFETY: the caller keeps the node live; `raw` is valid for writes.
        unsafe { driver!(cuGraphMemsetNodeGetParams(node, &mut raw))? };
        Ok(MemsetParams::from_raw(&raw))
    }

    /// The function and the data of a host function node, as addresses.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphHostNodeGetParams`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::kind_of`].
    pub unsafe fn callback_params_of(&self, node: CUgraphNode) -> Result<(usize, usize)> {
        let _entered = self.enter("Node::callback_params")?;
        let mut raw = CUDA_HOST_NODE_PARAMS::default();
        // SAFETY: the caller keeps the node live; `raw` is valid for writes.
        unsafe { driver!(cuGraphHostNodeGetParams(node, &mut raw))? };
        let function = raw
            .r#fn
            .map_or(0, |function| (function as *const c_void).addr());
        Ok((function, raw.userData.addr()))
    }

    /// The event of a node that records it (`recorded`) or waits for it.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphEventRecordNodeGetEvent`, `cuGraphEventWaitNodeGetEvent`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::kind_of`].
    pub unsafe fn event_of(&self, node: CUgraphNode, recorded: bool) -> Result<CUevent> {
        let _entered = self.enter("Node::event")?;
        let mut event: CUevent = std::ptr::null_mut();
        // SAFETY: the caller keeps the node live; `event` is valid for writes.
        unsafe {
            if recorded {
                driver!(cuGraphEventRecordNodeGetEvent(node, &mut event))?;
            } else {
                driver!(cuGraphEventWaitNodeGetEvent(node, &mut event))?;
            }
        }
        Ok(event)
    }

    /// The graph of a child graph node.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphChildGraphNodeGetGraph`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::kind_of`].
    pub unsafe fn child_of(&self, node: CUgraphNode) -> Result<GraphDefinition> {
        let entered = self.enter("Node::child")?;
        let mut graph: CUgraph = std::ptr::null_mut();
        // SAFETY: the caller keeps the node live; `graph` is valid for writes.
        unsafe { driver!(cuGraphChildGraphNodeGetGraph(node, &mut graph))? };
        Ok(self.child(&mut entered.lock.state(), node, graph))
    }

    /// The parameters of an allocation.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphMemAllocNodeGetParams`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::kind_of`].
    pub unsafe fn allocation_params_of(&self, node: CUgraphNode) -> Result<AllocationParams> {
        let _entered = self.enter("Node::allocation_params")?;
        let mut raw = CUDA_MEM_ALLOC_NODE_PARAMS::default();
        // SAFETY: the caller keeps the node live; `raw` is valid for writes, and the driver has filled it in when it is read.
        unsafe {
            driver!(cuGraphMemAllocNodeGetParams(node, &mut raw))?;
            AllocationParams::from_raw(&raw)
        }
    }

    /// The address that a node frees.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphMemFreeNodeGetParams`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::kind_of`].
    pub unsafe fn freed_address_of(&self, node: CUgraphNode) -> Result<CUdeviceptr> {
        let _entered = self.enter("Node::freed_address")?;
        let mut address: CUdeviceptr = 0;
        // SAFETY: the caller keeps the node live; `address` is valid for writes.
        unsafe { driver!(cuGraphMemFreeNodeGetParams(node, (&raw mut address).cast()))? };
        Ok(address)
    }

    /// A conditional node's condition and bodies; `None` if neither this crate nor the driver (before CUDA 13.2) can
    /// tell.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphNodeGetParams`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::kind_of`].
    pub unsafe fn conditional_params_of(
        &self,
        node: CUgraphNode,
    ) -> Result<Option<ConditionalParams>> {
        let entered = self.enter("Node::conditional_params")?;
        let state = &mut *entered.lock.state();
        if let Some(known) = state.conditionals.get(&node.addr()).cloned() {
            let graphs = known.bodies.into_iter();
            let graphs = graphs.map(std::ptr::with_exposed_provenance_mut);
            return Ok(Some(ConditionalParams {
                condition: known.condition,
                kind: known.kind,
                bodies: graphs.map(|graph| self.child(state, node, graph)).collect(),
            }));
        }
        let mut raw = CUgraphNodeParams::default();
        // SAFETY: the caller keeps the node live; `raw` is valid for writes.
        match unsafe { driver!(cuGraphNodeGetParams(node, &mut raw)) } {
            Ok(()) => {}
            Err(Error::Load(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
        // SAFETY: the node is a conditional one.
        let found = unsafe { raw.anon0.conditional };
        let Some(kind) = ConditionalKind::from_raw(found.r#type) else {
            return Ok(None);
        };
        let mut bodies = Vec::new();
        if !found.phGraph_out.is_null() {
            for index in 0..found.size as usize {
                // SAFETY: the driver's array has `size` graphs and lives as long as the node.
                let graph = unsafe { *found.phGraph_out.add(index) };
                bodies.push(self.child(state, node, graph));
            }
        }
        Ok(Some(ConditionalParams {
            condition: Condition::from_handle(found.handle),
            kind,
            bodies,
        }))
    }
}

/// What a kernel node retains.
pub(crate) fn with_kernel(kernel: &Kernel, value: Option<Retained>) -> Retained {
    Arc::new((kernel.clone(), value))
}

/// Whether a node retains this kernel and nothing else.
pub(crate) fn is_kernel_alone(retained: &Retained, kernel: &Kernel) -> bool {
    retained
        .downcast_ref::<(Kernel, Option<Retained>)>()
        .is_some_and(|(known, value)| value.is_none() && known.address() == kernel.address())
}

/// The kernel that a node retains, from what [`GraphDefinition::retained_for`] returns.
pub(crate) fn kernel_in(value: &Retained) -> Option<Kernel> {
    value
        .downcast_ref::<(Kernel, Option<Retained>)>()
        .map(|(kernel, _)| kernel.clone())
}

impl GraphDefinition {
    /// The kernel of a node that this crate added.
    pub fn kernel_of(&self, node: CUgraphNode) -> Option<Kernel> {
        kernel_in(&self.retained_for(node)?)
    }

    /// What [`GraphDefinition::add_kernel`] or [`GraphDefinition::set_kernel`] retained for a node besides the kernel.
    pub fn kernel_value_of(&self, node: CUgraphNode) -> Option<Retained> {
        let value = self.retained_for(node)?;
        let (_, value) = value.downcast_ref::<(Kernel, Option<Retained>)>()?;
        value.clone()
    }

    /// The event of a node that this crate added.
    pub fn retained_event_of(&self, node: CUgraphNode) -> Option<Event> {
        self.retained_for(node)?.downcast_ref::<Event>().cloned()
    }
}
