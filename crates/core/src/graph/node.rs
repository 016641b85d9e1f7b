//! Nodes that borrow their definition: the safe interface.

use std::ffi::c_void;

use cupyrite_sys::driver::{CUdeviceptr, CUgraphNode};

use crate::context::Device;
use crate::error::{Error, Result};
use crate::graph::callback::HostCallback;
use crate::graph::condition::{Condition, ConditionalKind};
use crate::graph::definition::GraphDefinition;
use crate::graph::definition_state::NodeStamp;
use crate::graph::lock::DefinitionLock;
use crate::graph::params::{AllocationParams, GraphMemoryKind, MemcpyParams, MemsetParams};
use crate::graph::retained::Retained;
use crate::memory::FillPattern;
use crate::module::{Kernel, KernelArgs, LaunchConfig};
use crate::stream::Event;

/// The types of nodes, as the driver names them.
pub use cupyrite_sys::driver::CUgraphNodeType as NodeKind;

/// Names a node. Unlike a [`Node`], it does not keep the definition borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(usize);

/// A node of a definition. Using it after the program has destroyed it by its handle is an error.
#[derive(Clone, Copy, Debug)]
pub struct Node<'g> {
    definition: &'g GraphDefinition,
    handle: CUgraphNode,
    stamp: NodeStamp,
}

impl<'g> Node<'g> {
    /// The driver's handle. As [`GraphDefinition::handle`].
    pub fn handle(self) -> CUgraphNode {
        self.definition.hand_out();
        self.handle
    }

    /// Names the node without borrowing the definition, for [`GraphDefinition::destroy`].
    pub fn id(self) -> NodeId {
        NodeId(self.handle.expose_provenance())
    }

    /// Its definition.
    pub fn definition(self) -> &'g GraphDefinition {
        self.definition
    }

    /// Locks the definition; an error if the node was destroyed.
    fn lock(self, call: &'static str) -> Result<DefinitionLock<'g>> {
        let lock = self.definition.lock()?;
        lock.check_node(call, self.handle, self.stamp)?;
        Ok(lock)
    }

    /// Its type.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn kind(self) -> Result<NodeKind> {
        let _lock = self.lock("Node::kind")?;
        // SAFETY: the node is live, and the lock keeps others from destroying it.
        unsafe { self.definition.kind_of(self.handle) }
    }

    /// The nodes that it waits for.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn predecessors(self) -> Result<Vec<Node<'g>>> {
        let lock = self.lock("Node::predecessors")?;
        // SAFETY: `lock` has checked that the node is live, and keeps other threads from destroying it.
        let found = unsafe { self.definition.predecessors_of(self.handle)? };
        Ok(self.definition.nodes_of(&lock, found))
    }

    /// The nodes that wait for it.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn successors(self) -> Result<Vec<Node<'g>>> {
        let lock = self.lock("Node::successors")?;
        // SAFETY: `lock` has checked that the node is live, and keeps other threads from destroying it.
        let found = unsafe { self.definition.successors_of(self.handle)? };
        Ok(self.definition.nodes_of(&lock, found))
    }
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.handle == other.handle
    }
}
impl Eq for Node<'_> {}

impl GraphDefinition {
    /// Nodes that the driver has named under the lock.
    fn nodes_of(&self, lock: &DefinitionLock<'_>, handles: Vec<CUgraphNode>) -> Vec<Node<'_>> {
        let stamp = lock.stamp();
        let node = |handle| Node {
            definition: self,
            handle,
            stamp,
        };
        handles.into_iter().map(node).collect()
    }

    /// Adds a node with `add`, which gets the handles of the nodes on which it depends. Returns its other result as well.
    fn add_after<T>(
        &self,
        function: &'static str,
        after: &[Node<'_>],
        add: impl FnOnce(&[CUgraphNode]) -> Result<(CUgraphNode, T)>,
    ) -> Result<(Node<'_>, T)> {
        let lock = self.lock()?;
        let mut handles = Vec::with_capacity(after.len());
        for node in after {
            if node.definition.inner.handle_address() != self.inner.handle_address() {
                let problem = "contains a node of another definition";
                return Err(Error::argument(function, "after", problem));
            }
            if lock.check_node(function, node.handle, node.stamp).is_err() {
                let problem = "contains a node that was destroyed";
                return Err(Error::argument(function, "after", problem));
            }
            handles.push(node.handle);
        }
        let (handle, other) = add(&handles)?;
        let node = Node {
            definition: self,
            handle,
            stamp: lock.stamp(),
        };
        Ok((node, other))
    }

    /// [`GraphDefinition::add_after`] without another result.
    fn add_node(
        &self,
        function: &'static str,
        after: &[Node<'_>],
        add: impl FnOnce(&[CUgraphNode]) -> Result<CUgraphNode>,
    ) -> Result<Node<'_>> {
        let added = self.add_after(function, after, |after| Ok((add(after)?, ())));
        added.map(|(node, ())| node)
    }

    /// All nodes.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn nodes(&self) -> Result<Vec<Node<'_>>> {
        let lock = self.lock()?;
        Ok(self.nodes_of(&lock, self.node_handles()?))
    }

    /// Adds a node without work.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a node of another definition in `after`; the driver's error. This holds for all
    /// functions that add nodes.
    pub fn empty(&self, after: &[Node<'_>]) -> Result<Node<'_>> {
        self.add_node("GraphDefinition::empty", after, |after| {
            // SAFETY: the nodes are live, and the lock keeps others from destroying them.
            unsafe { self.add_empty(after) }
        })
    }

    /// Adds a kernel launch. It retains the kernel and `memory`, the owners of what the kernel uses.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::empty`] and [`Kernel::launch`].
    ///
    /// # Safety
    ///
    /// As [`Kernel::launch`], for each launch of the graph. What `memory` contains is valid as long.
    pub unsafe fn launch<A: KernelArgs + ?Sized>(
        &self,
        after: &[Node<'_>],
        kernel: &Kernel,
        config: &LaunchConfig,
        args: &A,
        memory: Option<Retained>,
    ) -> Result<Node<'_>> {
        args.with(|addresses, sizes| {
            kernel.check_sizes("GraphDefinition::launch", sizes)?;
            let params = addresses.as_ptr().cast_mut().cast::<*mut c_void>();
            self.add_node("GraphDefinition::launch", after, |after| {
                // SAFETY: the nodes are live, and the lock keeps others from destroying them; `check_sizes` has compared
                // the arguments with the parameters. The rest is the caller's contract.
                unsafe { self.add_kernel(after, kernel, config, params, memory) }
            })
        })
    }

    /// Adds a copy. It retains `memory`, the owners of source and destination.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::empty`].
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::add_memcpy`].
    pub unsafe fn memcpy(
        &self,
        after: &[Node<'_>],
        params: MemcpyParams,
        memory: Option<Retained>,
    ) -> Result<Node<'_>> {
        self.add_node("GraphDefinition::memcpy", after, |after| {
            // SAFETY: the nodes are live, and the lock keeps others from destroying them. The rest is the caller's
            // contract.
            unsafe { self.add_memcpy(after, params, memory) }
        })
    }

    /// Adds a fill of `width` elements. It retains `memory`, the owner of the destination.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::empty`].
    ///
    /// # Safety
    ///
    /// As [`GraphDefinition::add_memset`].
    pub unsafe fn memset(
        &self,
        after: &[Node<'_>],
        destination: CUdeviceptr,
        value: FillPattern,
        width: usize,
        memory: Option<Retained>,
    ) -> Result<Node<'_>> {
        let params = MemsetParams {
            destination,
            value,
            width,
            height: 1,
            pitch: 0,
        };
        self.add_node("GraphDefinition::memset", after, |after| {
            // SAFETY: the nodes are live, and the lock keeps others from destroying them. The rest is the caller's
            // contract.
            unsafe { self.add_memset(after, params, memory) }
        })
    }

    /// Adds a call of a closure, which the graph owns. It must not call CUDA.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::empty`].
    pub fn callback(
        &self,
        after: &[Node<'_>],
        closure: impl Fn() + Send + Sync + 'static,
    ) -> Result<Node<'_>> {
        self.add_node("GraphDefinition::callback", after, |after| {
            // SAFETY: the nodes are live, and the lock keeps others from destroying them.
            unsafe { self.add_callback(after, &HostCallback::new(closure)) }
        })
    }

    /// Adds a record of an event.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::empty`].
    pub fn record(&self, after: &[Node<'_>], event: &Event) -> Result<Node<'_>> {
        self.add_node("GraphDefinition::record", after, |after| {
            // SAFETY: the nodes are live, and the lock keeps others from destroying them.
            unsafe { self.add_record(after, event) }
        })
    }

    /// Adds a wait for an event.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::empty`].
    pub fn wait(&self, after: &[Node<'_>], event: &Event) -> Result<Node<'_>> {
        self.add_node("GraphDefinition::wait", after, |after| {
            // SAFETY: the nodes are live, and the lock keeps others from destroying them.
            unsafe { self.add_wait(after, event) }
        })
    }

    /// Adds a clone of another definition.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::empty`] and [`GraphDefinition::add_child`].
    pub fn embed(&self, after: &[Node<'_>], child: &GraphDefinition) -> Result<Node<'_>> {
        let _locks = self.lock_and_link(child)?;
        self.add_node("GraphDefinition::embed", after, |after| {
            // SAFETY: the nodes are live, and the lock keeps others from destroying them.
            unsafe { self.add_child(after, child) }
        })
    }

    /// Adds an allocation of device memory; returns the node and the address, which is valid in nodes that run after it.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::empty`].
    pub fn allocate(
        &self,
        after: &[Node<'_>],
        device: Device,
        bytes: usize,
    ) -> Result<(Node<'_>, CUdeviceptr)> {
        let params = AllocationParams {
            bytes,
            device,
            kind: GraphMemoryKind::Device,
            peers: Vec::new(),
            address: 0,
        };
        self.add_after("GraphDefinition::allocate", after, |after| {
            // SAFETY: the nodes are live, and the lock keeps others from destroying them.
            unsafe { self.add_allocation(after, &params) }
        })
    }

    /// Adds a conditional node with empty bodies.
    ///
    /// # Errors
    ///
    /// As [`GraphDefinition::empty`].
    pub fn conditional(
        &self,
        after: &[Node<'_>],
        condition: Condition,
        kind: ConditionalKind,
        bodies: u32,
    ) -> Result<(Node<'_>, Vec<GraphDefinition>)> {
        self.add_after("GraphDefinition::conditional", after, |after| {
            // SAFETY: the nodes are live, and the lock keeps others from destroying them.
            unsafe { self.add_conditional(after, condition, kind, bodies) }
        })
    }

    /// Destroys a node. This borrows the definition exclusively, so that no [`Node`] of it is used afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a node that is not one of this definition; the driver's error.
    pub fn destroy(&mut self, node: NodeId) -> Result<()> {
        let node: CUgraphNode = std::ptr::with_exposed_provenance_mut(node.0);
        let _lock = self.lock()?;
        if !self.node_handles()?.contains(&node) {
            return Err(Error::argument(
                "GraphDefinition::destroy",
                "node",
                "is not a node of this definition",
            ));
        }
        // SAFETY: just checked; the exclusive borrow excludes other uses.
        unsafe { self.destroy_node(node) }
    }
}
