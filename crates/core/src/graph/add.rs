//! Adding and destroying nodes, by handle.

use std::ffi::c_void;
use std::sync::Arc;

use cupyrite_sys::driver::{
    CUDA_CONDITIONAL_NODE_PARAMS, CUdeviceptr, CUgraph, CUgraphNode, CUgraphNodeParams,
    CUgraphNodeType,
};

use crate::error::{Error, Result, driver, report};
use crate::graph::attributes::set_attributes;
use crate::graph::callback::HostCallback;
use crate::graph::condition::{Condition, ConditionalKind};
use crate::graph::definition::{Entered, GraphDefinition};
use crate::graph::definition_state::ConditionalRecord;
use crate::graph::node::NodeKind;
use crate::graph::params::{
    AllocationParams, MemcpyParams, MemsetParams, explain_free, kernel_params,
};
use crate::graph::read::with_kernel;
use crate::graph::retained::{Pending, Retained};
use crate::module::{Kernel, LaunchConfig};
use crate::stream::Event;

/// The list as the driver takes it.
fn pointer(after: &[CUgraphNode]) -> *const CUgraphNode {
    if after.is_empty() {
        std::ptr::null()
    } else {
        after.as_ptr()
    }
}

impl GraphDefinition {
    /// Adds a node that `add` creates, and retains `value` for it.
    fn add_with(
        &self,
        call: &'static str,
        value: Option<Retained>,
        add: impl FnOnce(&mut Entered<'_>, &mut CUgraphNode) -> Result<()>,
    ) -> Result<CUgraphNode> {
        let mut value = Pending::new(value);
        let mut entered = self.enter(call)?;
        if value.is_some() {
            // First: what can fail must not leave a node behind that retains nothing.
            entered.prepare()?;
        }
        let mut node: CUgraphNode = std::ptr::null_mut();
        add(&mut entered, &mut node)?;
        if let Some(value) = value.take() {
            entered.set_node(node, value)?;
        }
        Ok(node)
    }

    /// Adds a node without work.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphAddEmptyNode`.
    ///
    /// # Safety
    ///
    /// `after` are live nodes of this definition. This holds for all functions with this parameter.
    pub unsafe fn add_empty(&self, after: &[CUgraphNode]) -> Result<CUgraphNode> {
        self.add_with("GraphDefinition::empty", None, |entered, node| {
            // SAFETY: `entered` keeps the graph live, and the caller the nodes of `after`; `node` is valid for writes.
            unsafe {
                driver!(cuGraphAddEmptyNode(
                    node,
                    entered.handle,
                    pointer(after),
                    after.len()
                ))
            }
        })
    }

    /// Adds a kernel node. It retains the kernel and `value`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an attribute of the launch that graphs do not have; the driver's error. Source:
    /// `cuGraphAddKernelNode`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::add_empty`], and as [`Kernel::launch_raw`] for each launch of the graph.
    pub unsafe fn add_kernel(
        &self,
        after: &[CUgraphNode],
        kernel: &Kernel,
        config: &LaunchConfig,
        params: *mut *mut c_void,
        value: Option<Retained>,
    ) -> Result<CUgraphNode> {
        kernel.check_loaded("cuGraphAddKernelNode")?;
        let retained = with_kernel(kernel, value);
        self.add_with(
            "GraphDefinition::launch",
            Some(retained),
            |entered, node| {
                let raw = kernel_params(kernel, config, params, entered.context)?;
                // SAFETY: `entered` keeps the graph live, and the caller the nodes of `after`; `node` is valid for writes.
                // The driver copies the parameters.
                unsafe {
                    driver!(cuGraphAddKernelNode(
                        node,
                        entered.handle,
                        pointer(after),
                        after.len(),
                        &raw const raw
                    ))?;
                }
                // SAFETY: the node is live.
                let set = unsafe { set_attributes(*node, config, false) };
                if set.is_err() {
                    // SAFETY: the driver has just added the node, and no other code has its handle.
                    report(unsafe { driver!(owned cuGraphDestroyNode(*node)) });
                }
                set
            },
        )
    }

    /// Adds a copy. It retains `value`.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphAddMemcpyNode`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::add_empty`]. The memory is valid, and not used in a conflicting way, in each launch.
    pub unsafe fn add_memcpy(
        &self,
        after: &[CUgraphNode],
        params: MemcpyParams,
        value: Option<Retained>,
    ) -> Result<CUgraphNode> {
        self.add_with("GraphDefinition::memcpy", value, |entered, node| {
            let raw = params.raw();
            // SAFETY: `entered` keeps the graph live, and the caller the nodes of `after`; `node` is valid for writes.
            // The driver copies the parameters.
            unsafe {
                driver!(cuGraphAddMemcpyNode(
                    node,
                    entered.handle,
                    pointer(after),
                    after.len(),
                    &raw const raw,
                    entered.context
                ))
            }
            .map_err(|error| params.explain(error))
        })
    }

    /// Adds a fill. It retains `value`.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphAddMemsetNode`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::add_memcpy`].
    pub unsafe fn add_memset(
        &self,
        after: &[CUgraphNode],
        params: MemsetParams,
        value: Option<Retained>,
    ) -> Result<CUgraphNode> {
        self.add_with("GraphDefinition::memset", value, |entered, node| {
            let raw = params.raw();
            // SAFETY: `entered` keeps the graph live, and the caller the nodes of `after`; `node` is valid for writes.
            // The driver copies the parameters.
            unsafe {
                driver!(cuGraphAddMemsetNode(
                    node,
                    entered.handle,
                    pointer(after),
                    after.len(),
                    &raw const raw,
                    entered.context
                ))
            }
            .map_err(|error| params.explain(error))
        })
    }

    /// Adds a call of a host function, which the node retains.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphAddHostNode`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::add_empty`].
    pub unsafe fn add_callback(
        &self,
        after: &[CUgraphNode],
        callback: &HostCallback,
    ) -> Result<CUgraphNode> {
        let retained = callback.retained();
        self.add_with(
            "GraphDefinition::callback",
            Some(retained),
            |entered, node| {
                let raw = callback.params();
                // SAFETY: `entered` keeps the graph live, and the caller the nodes of `after`; `node` is valid for writes.
                // The driver copies the parameters.
                unsafe {
                    driver!(cuGraphAddHostNode(
                        node,
                        entered.handle,
                        pointer(after),
                        after.len(),
                        &raw const raw
                    ))
                }
            },
        )
    }

    /// Adds a record of an event, which the node retains.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphAddEventRecordNode`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::add_empty`].
    pub unsafe fn add_record(&self, after: &[CUgraphNode], event: &Event) -> Result<CUgraphNode> {
        event.check_live()?;
        let retained: Retained = Arc::new(event.clone());
        self.add_with(
            "GraphDefinition::record",
            Some(retained),
            |entered, node| {
                // SAFETY: `entered` keeps the graph live, and the caller the nodes of `after`; `node` is valid for writes.
                // The event is live.
                unsafe {
                    driver!(cuGraphAddEventRecordNode(
                        node,
                        entered.handle,
                        pointer(after),
                        after.len(),
                        event.handle()
                    ))
                }
            },
        )
    }

    /// Adds a wait for an event, which the node retains.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphAddEventWaitNode`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::add_empty`].
    pub unsafe fn add_wait(&self, after: &[CUgraphNode], event: &Event) -> Result<CUgraphNode> {
        event.check_live()?;
        let retained: Retained = Arc::new(event.clone());
        self.add_with("GraphDefinition::wait", Some(retained), |entered, node| {
            // SAFETY: `entered` keeps the graph live, and the caller the nodes of `after`; `node` is valid for writes.
            // The event is live.
            unsafe {
                driver!(cuGraphAddEventWaitNode(
                    node,
                    entered.handle,
                    pointer(after),
                    after.len(),
                    event.handle()
                ))
            }
        })
    }

    /// Adds a clone of another definition. It retains what the other one retains.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a definition of the same hierarchy; the driver's error. Source:
    /// `cuGraphAddChildGraphNode`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::add_empty`].
    pub unsafe fn add_child(
        &self,
        after: &[CUgraphNode],
        child: &GraphDefinition,
    ) -> Result<CUgraphNode> {
        let _locks = self.lock_and_link(child)?;
        let content = self.check_child("GraphDefinition::embed", child)?;
        self.add_with("GraphDefinition::embed", content, |entered, node| {
            // SAFETY: `entered` keeps the graph live, and the caller the nodes of `after`; `node` is valid for writes.
            // The locks keep the child live.
            unsafe {
                driver!(cuGraphAddChildGraphNode(
                    node,
                    entered.handle,
                    pointer(after),
                    after.len(),
                    child.inner.handle()
                ))
            }
        })
    }

    /// What `child` retains, if it can be embedded.
    pub(crate) fn check_child(
        &self,
        call: &'static str,
        child: &GraphDefinition,
    ) -> Result<Option<Retained>> {
        if self.shares_root_with(child) {
            return Err(Error::argument(
                call,
                "child",
                "belongs to the same graph; expected an independent definition",
            ));
        }
        if !child.exists() {
            return Err(Error::argument(
                call,
                "child",
                "is a definition that no longer exists: its capture failed",
            ));
        }
        Ok(child.seal())
    }

    /// Adds an allocation; returns the node and the address.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphAddMemAllocNode`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::add_empty`].
    pub unsafe fn add_allocation(
        &self,
        after: &[CUgraphNode],
        params: &AllocationParams,
    ) -> Result<(CUgraphNode, CUdeviceptr)> {
        let access = params.access();
        let mut raw = params.raw(&access);
        let place = &raw mut raw;
        let node = self.add_with("GraphDefinition::allocate", None, |entered, node| {
            // SAFETY: `entered` keeps the graph live, and the caller the nodes of `after`; `node` is valid for writes.
            // The parameters are valid for reads and writes.
            unsafe {
                driver!(cuGraphAddMemAllocNode(
                    node,
                    entered.handle,
                    pointer(after),
                    after.len(),
                    place
                ))
            }
            .map_err(|error| params.explain(error))
        })?;
        Ok((node, raw.dptr))
    }

    /// Adds the release of memory that a graph has allocated.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphAddMemFreeNode`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::add_empty`]. No other work uses the memory after this node.
    pub unsafe fn add_free(
        &self,
        after: &[CUgraphNode],
        address: CUdeviceptr,
    ) -> Result<CUgraphNode> {
        self.add_with("GraphDefinition::deallocate", None, |entered, node| {
            // SAFETY: `entered` keeps the graph live, and the caller the nodes of `after`; `node` is valid for writes.
            // The driver checks the address.
            unsafe {
                driver!(cuGraphAddMemFreeNode(
                    node,
                    entered.handle,
                    pointer(after),
                    after.len(),
                    address
                ))
            }
            .map_err(|error| explain_free(address, error))
        })
    }

    /// Adds a conditional node; returns it and its bodies, which are empty.
    ///
    /// # Errors
    ///
    /// The driver's error. Source: `cuGraphAddNode`.
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::add_empty`].
    pub unsafe fn add_conditional(
        &self,
        after: &[CUgraphNode],
        condition: Condition,
        kind: ConditionalKind,
        bodies: u32,
    ) -> Result<(CUgraphNode, Vec<GraphDefinition>)> {
        let mut nested = Vec::new();
        let call = "GraphDefinition::conditional";
        let node = self.add_with(call, None, |entered, node| {
            // The driver may dereference the handle, and that of another graph may be destroyed with it.
            if !entered
                .lock
                .state()
                .conditions
                .contains(&condition.handle())
            {
                let problem =
                    "belongs to another graph; create one with create_condition() of this graph";
                return Err(Error::argument(call, "condition", problem));
            }
            let mut graphs: Vec<CUgraph> = Vec::new();
            let mut raw = CUgraphNodeParams {
                r#type: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
                ..CUgraphNodeParams::default()
            };
            raw.anon0.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
                handle: condition.handle(),
                r#type: kind.raw(),
                size: bodies,
                phGraph_out: std::ptr::null_mut(),
                ctx: entered.context,
            };
            let (graph, list) = (entered.handle, pointer(after));
            // SAFETY: `entered` keeps the graph live, and the caller the nodes of `after`; `node` is valid for writes.
            // The driver assigns an array of `size` graphs, which lives as long as the node.
            unsafe {
                let added = match driver!(cuGraphAddNode(
                    node,
                    graph,
                    list,
                    std::ptr::null(),
                    after.len(),
                    &raw mut raw
                )) {
                    Err(Error::Load(_)) => driver!(cuGraphAddNode_cuda12(
                        node,
                        graph,
                        list,
                        after.len(),
                        &raw mut raw
                    )),
                    other => other,
                };
                added?;
                let out = raw.anon0.conditional.phGraph_out;
                if !out.is_null() {
                    graphs = std::slice::from_raw_parts(out, bodies as usize).to_vec();
                }
            }
            let record = ConditionalRecord {
                condition,
                kind,
                bodies: graphs
                    .iter()
                    .map(|graph| graph.expose_provenance())
                    .collect(),
            };
            let mut state = entered.lock.state();
            state.conditionals.insert(node.addr(), record);
            nested.extend(
                graphs
                    .into_iter()
                    .map(|graph| self.child(&mut state, *node, graph)),
            );
            Ok(())
        })?;
        Ok((node, nested))
    }

    /// The nodes of the graphs that belong to a node: a child graph or conditional bodies, and theirs. None of them
    /// retains something if the graphs were never named.
    ///
    /// # Safety
    ///
    /// `node` is a live node of this definition.
    pub(super) unsafe fn nested_nodes(
        &self,
        entered: &Entered<'_>,
        node: CUgraphNode,
    ) -> Result<Vec<CUgraphNode>> {
        if !entered.lock.state().has_graphs_of(node) {
            return Ok(Vec::new());
        }
        // SAFETY: the caller's contract.
        let graphs = match unsafe { self.kind_of(node)? } {
            // SAFETY: the caller keeps the node live, and it is a child graph node.
            NodeKind::CU_GRAPH_NODE_TYPE_GRAPH => vec![unsafe { self.child_of(node)? }],
            NodeKind::CU_GRAPH_NODE_TYPE_CONDITIONAL => {
                // SAFETY: the caller keeps the node live, and it is a conditional node.
                let found = unsafe { self.conditional_params_of(node)? };
                found.map_or_else(Vec::new, |found| found.bodies)
            }
            _ => Vec::new(),
        };
        let mut all = Vec::new();
        for graph in graphs {
            for inner in graph.node_handles()? {
                all.push(inner);
                // SAFETY: the driver has just named the node, and the definition is locked.
                all.extend(unsafe { graph.nested_nodes(entered, inner)? });
            }
        }
        Ok(all)
    }

    /// Destroys a node with its edges and the graphs that belong to it, and gives up what they retain.
    ///
    /// # Errors
    ///
    /// The driver's error; allocation and free nodes cannot be destroyed. Source: `cuGraphDestroyNode`.
    ///
    /// # Safety
    ///
    /// `node` is a live node of this definition, and this is its last use.
    pub unsafe fn destroy_node(&self, node: CUgraphNode) -> Result<()> {
        let entered = self.enter("Node::destroy")?;
        // SAFETY: the caller's contract.
        let nested = unsafe { self.nested_nodes(&entered, node) }.unwrap_or_default();
        // SAFETY: the caller's contract.
        unsafe { driver!(owned cuGraphDestroyNode(node))? };
        for node in nested.into_iter().chain([node]) {
            entered.note_destroyed(node);
        }
        Ok(())
    }
}
