//! Node payloads: validated descriptions of work, with copies of all data that the caller passed by address.

use std::collections::BTreeMap;
use std::sync::Arc;

use cupyrite_sys::driver::{
    CUgraphNodeType as NodeType, CUlaunchAttributeID as Attribute, CUmemorytype,
};

use super::conditional::Conditional;
use super::{Graph, memory};
use crate::driver::context::{self, Context};
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::memory::copy_job;
use crate::driver::memory::fill::Fill;
use crate::driver::module::function::FUNCTIONS;
use crate::driver::module::launch::{Launch, LaunchConfig, RawAttribute};
use crate::driver::stream::event::{self, Event};
use crate::driver::stream::host_call::HostCall;
use crate::driver::stream::memory_operations::Batch;

/// The work of a node.
pub(in crate::driver) enum Payload {
    Kernel(Kernel),
    Memcpy(Memcpy),
    Memset(Memset),
    Host(HostCall),
    /// An embedded graph.
    Graph(Arc<Graph>),
    Empty,
    EventWait(EventNode),
    EventRecord(EventNode),
    MemAlloc(memory::Allocate),
    MemFree(memory::Free),
    MemOps(MemOps),
    Conditional(Conditional),
}

impl Payload {
    /// `CUgraphNodeType`.
    pub(super) fn kind(&self) -> NodeType {
        match self {
            Payload::Kernel(_) => NodeType::CU_GRAPH_NODE_TYPE_KERNEL,
            Payload::Memcpy(_) => NodeType::CU_GRAPH_NODE_TYPE_MEMCPY,
            Payload::Memset(_) => NodeType::CU_GRAPH_NODE_TYPE_MEMSET,
            Payload::Host(_) => NodeType::CU_GRAPH_NODE_TYPE_HOST,
            Payload::Graph(_) => NodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            Payload::Empty => NodeType::CU_GRAPH_NODE_TYPE_EMPTY,
            Payload::EventWait(_) => NodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            Payload::EventRecord(_) => NodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD,
            Payload::MemAlloc(_) => NodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC,
            Payload::MemFree(_) => NodeType::CU_GRAPH_NODE_TYPE_MEM_FREE,
            Payload::MemOps(_) => NodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
            Payload::Conditional(_) => NodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
        }
    }

    /// The embedded graph of a child graph node.
    pub(super) fn inner(&self) -> Option<&Arc<Graph>> {
        match self {
            Payload::Graph(inner) => Some(inner),
            _ => None,
        }
    }

    /// The embedded graph of a child graph node, or the bodies of a conditional node.
    pub(super) fn graphs(&self) -> &[Arc<Graph>] {
        match self {
            Payload::Graph(inner) => std::slice::from_ref(inner),
            Payload::Conditional(c) => &c.bodies,
            _ => &[],
        }
    }

    /// Number of memory nodes, here and in embedded graphs.
    pub(super) fn memory_nodes(&self) -> usize {
        match self {
            Payload::MemAlloc(_) | Payload::MemFree(_) => 1,
            Payload::Graph(inner) => inner.lock().memory_nodes,
            _ => 0,
        }
    }

    /// The context in which the node runs and which a failure affects; `None` for the context of the launch's stream.
    pub(super) fn context(&self) -> Option<&Arc<Context>> {
        match self {
            Payload::Kernel(k) => Some(&k.launch.function.context),
            Payload::Memcpy(m) => Some(&m.context),
            Payload::Memset(m) => Some(&m.context),
            Payload::MemOps(m) => Some(&m.context),
            Payload::Conditional(c) => Some(c.context()),
            _ => None,
        }
    }

    /// Whether the node can be disabled in an executable graph.
    pub(super) fn can_be_disabled(&self) -> bool {
        matches!(
            self,
            Payload::Kernel(_) | Payload::Memcpy(_) | Payload::Memset(_)
        )
    }

    /// Runs the work on this thread. Embedded graphs, conditions and events are structure, not work: the plan of a launch
    /// resolves them.
    pub(super) fn run(&self) -> Res {
        match self {
            Payload::Kernel(k) => k.launch.run(),
            Payload::Memcpy(m) => m.run(),
            Payload::Memset(m) => m.fill.run(),
            Payload::Host(call) => {
                call.run();
                Ok(())
            }
            Payload::MemAlloc(a) => a.run(),
            Payload::MemFree(f) => f.run(),
            Payload::MemOps(m) => m.batch.run(&m.context),
            Payload::Graph(_)
            | Payload::Conditional(_)
            | Payload::Empty
            | Payload::EventWait(_)
            | Payload::EventRecord(_) => Ok(()),
        }
    }
}

/// A `CUlaunchAttributeValue`.
pub(super) type AttributeValue = [u64; 8];

/// Stored in the launch rather than among the attributes.
pub(super) const COOPERATIVE: u32 = Attribute::CU_LAUNCH_ATTRIBUTE_COOPERATIVE.0;

/// A kernel launch in a graph.
#[derive(Clone)]
pub(in crate::driver) struct Kernel {
    pub(super) launch: Launch,
    /// By `CUlaunchAttributeID`; cooperation is part of the launch.
    pub(super) attributes: BTreeMap<u32, AttributeValue>,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2` as 64-bit words.
pub(super) type KernelWords = [u64; 9];

impl Kernel {
    /// The node of a captured launch.
    pub(in crate::driver) fn captured(launch: Launch, raw: &[RawAttribute]) -> Kernel {
        let mut attributes = BTreeMap::new();
        for attribute in raw {
            let [id, value @ ..] = *attribute;
            match Attribute(id as u32) {
                // Events become dependencies; cooperation is part of the launch.
                Attribute::CU_LAUNCH_ATTRIBUTE_IGNORE
                | Attribute::CU_LAUNCH_ATTRIBUTE_COOPERATIVE
                | Attribute::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT
                | Attribute::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT => {}
                Attribute(id) => {
                    attributes.insert(id, value);
                }
            }
        }
        Kernel { launch, attributes }
    }

    /// Validates the caller's parameters. `cooperative` is the node's previous setting.
    pub(super) fn read(w: &KernelWords, cooperative: bool) -> Res<Kernel> {
        let handle = if w[0] != 0 { w[0] } else { w[7] };
        if handle == 0 {
            return Err(Code::INVALID_HANDLE);
        }
        let context = match FUNCTIONS.find(handle) {
            _ if w[8] != 0 => context::by_handle_or_current(w[8])?,
            Some(function) => function.context.clone(),
            None => context::current()?,
        };
        let halves = |i: usize| (w[i] as u32, (w[i] >> 32) as u32);
        let ((gx, gy), (gz, bx), (by, bz)) = (halves(1), halves(2), halves(3));
        let config = LaunchConfig {
            grid: [gx, gy, gz],
            block: [bx, by, bz],
            dynamic_shared: w[4] as u32,
            cooperative,
        };
        Ok(Kernel {
            launch: Launch::prepare(handle, &context, config, w[5], w[6])?,
            attributes: BTreeMap::new(),
        })
    }

    /// The caller's parameters, with the addresses of the node's copies of the arguments.
    pub(super) fn words(&self) -> KernelWords {
        let config = &self.launch.config;
        let pair = |a: u32, b: u32| u64::from(a) | u64::from(b) << 32;
        let is_function = FUNCTIONS.find(self.launch.handle).is_some();
        let (function, kernel) = if is_function {
            (self.launch.handle, 0)
        } else {
            (0, self.launch.handle)
        };
        let ([gx, gy, gz], [bx, by, bz]) = (config.grid, config.block);
        [
            function,
            pair(gx, gy),
            pair(gz, bx),
            pair(by, bz),
            config.dynamic_shared.into(),
            self.launch.arguments.pointers(),
            0,
            kernel,
            self.launch.function.context.handle,
        ]
    }

    /// Whether the kernel launches graphs.
    pub(super) fn launches_graphs(&self) -> bool {
        self.launch.function.kernel.launches_graphs()
    }

    /// The value of an attribute; zeros if it was never set.
    ///
    /// # Errors
    /// `INVALID_VALUE` for an attribute that kernel nodes do not have.
    pub(super) fn attribute(&self, id: u32) -> Res<AttributeValue> {
        check_attribute(id)?;
        if id == COOPERATIVE {
            let mut value = [0; 8];
            value[0] = u64::from(self.launch.config.cooperative);
            return Ok(value);
        }
        Ok(self.attributes.get(&id).copied().unwrap_or([0; 8]))
    }

    /// A copy of the node with an attribute set.
    ///
    /// # Errors
    /// `INVALID_VALUE` for an attribute that kernel nodes do not have, or that makes the launch invalid.
    pub(super) fn with_attribute(&self, id: u32, value: AttributeValue) -> Res<Kernel> {
        check_attribute(id)?;
        let mut kernel = self.clone();
        if id == COOPERATIVE {
            let cooperative = value[0] as u32 != 0;
            kernel.launch = self.launch.with_config(LaunchConfig {
                cooperative,
                ..self.launch.config
            })?;
            return Ok(kernel);
        }
        // Nodes updated from the device.
        if id == Attribute::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE.0
            && value[0] as u32 != 0
        {
            return Err(Code::NOT_SUPPORTED);
        }
        // The device has no clusters: the only valid size is one.
        if id == Attribute::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION.0 {
            let dims = [value[0] as u32, (value[0] >> 32) as u32, value[1] as u32];
            if dims.contains(&0) {
                return Err(Code::INVALID_VALUE);
            }
            if dims != [1; 3] {
                return Err(Code::INVALID_CLUSTER_SIZE);
            }
        }
        kernel.attributes.insert(id, value);
        Ok(kernel)
    }

    /// A copy of the node with the attributes of `other`.
    pub(super) fn with_attributes_of(&self, other: &Kernel) -> Res<Kernel> {
        let cooperative = other.launch.config.cooperative;
        Ok(Kernel {
            launch: self.launch.with_config(LaunchConfig {
                cooperative,
                ..self.launch.config
            })?,
            attributes: other.attributes.clone(),
        })
    }
}

/// Validates a kernel node attribute: those of a launch, except for the ones about its position in a stream.
fn check_attribute(id: u32) -> Res {
    match Attribute(id) {
        Attribute::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
        | Attribute::CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        | Attribute::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        | Attribute::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
        | Attribute::CU_LAUNCH_ATTRIBUTE_PRIORITY
        | Attribute::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
        | Attribute::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN
        | Attribute::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
        | Attribute::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => Ok(()),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// A memory copy in a graph.
#[derive(Clone)]
pub(in crate::driver) struct Memcpy {
    /// The caller's `CUDA_MEMCPY3D`.
    pub(super) words: copy_job::Words3,
    pub(super) context: Arc<Context>,
    pub(super) job: copy_job::Job,
}

impl Memcpy {
    /// Validates a copy; its memory may be memory that a graph allocates later.
    pub(in crate::driver) fn prepare(
        words: copy_job::Words3,
        context: Arc<Context>,
    ) -> Res<Memcpy> {
        if words[22..].contains(&0) {
            return Err(Code::INVALID_VALUE);
        }
        Ok(Memcpy {
            words,
            context,
            job: copy_job::Job::for_later(&words, memory::covers)?,
        })
    }

    /// A copy of `len` bytes; the memory types are the `CUmemorytype` of destination and source.
    pub(in crate::driver) fn linear(
        to: (u32, u64),
        from: (u32, u64),
        len: u64,
        context: Arc<Context>,
    ) -> Res<Memcpy> {
        const HOST: u32 = CUmemorytype::CU_MEMORYTYPE_HOST.0;
        let mut words = [0; 25];
        for (at, (kind, address)) in [(0, from), (11, to)] {
            words[at + 4] = kind.into();
            words[at + if kind == HOST { 5 } else { 6 }] = address;
        }
        words[22..].copy_from_slice(&[len, 1, 1]);
        Self::prepare(words, context)
    }

    /// Performs the copy on this thread.
    fn run(&self) -> Res {
        // The memory may have been freed since; that fails as a kernel's access would.
        self.job.is_pageable().map_err(|_| Code::ILLEGAL_ADDRESS)?;
        self.job.run().map_err(|_| Code::ILLEGAL_ADDRESS)
    }

    /// Whether the copy is a single row.
    pub(super) fn is_linear(&self) -> bool {
        self.words[23] <= 1 && self.words[24] <= 1
    }

    /// Whether a side is an array.
    fn uses_arrays(&self) -> bool {
        const ARRAY: u32 = CUmemorytype::CU_MEMORYTYPE_ARRAY.0;
        let (from, to) = self.memory_types();
        from == ARRAY || to == ARRAY
    }

    /// Whether the copy is between device memory and page-locked memory only.
    pub(super) fn is_internal(&self) -> bool {
        !self.uses_arrays() && !self.job.is_pageable().unwrap_or(false)
    }

    /// Memory types of source and destination.
    pub(super) fn memory_types(&self) -> (u32, u32) {
        (self.words[4] as u32, self.words[15] as u32)
    }
}

/// A memory fill in a graph.
#[derive(Clone)]
pub(in crate::driver) struct Memset {
    pub(in crate::driver) fill: Fill,
    pub(in crate::driver) context: Arc<Context>,
}

/// `CUDA_MEMSET_NODE_PARAMS` as 64-bit words.
pub(super) type MemsetWords = [u64; 5];

impl Memset {
    /// Validates a fill; its memory may be memory that a graph allocates later.
    pub(in crate::driver) fn prepare(fill: Fill, context: Arc<Context>) -> Res<Memset> {
        fill.check(memory::covers)?;
        Ok(Memset { fill, context })
    }

    pub(super) fn read(w: &MemsetWords, context: Arc<Context>) -> Res<Memset> {
        let fill = Fill {
            to: w[0],
            pitch: w[1],
            value: w[2] as u32,
            unit: w[2] >> 32,
            width: w[3],
            height: w[4],
        };
        if fill.is_empty() {
            return Err(Code::INVALID_VALUE);
        }
        Self::prepare(fill, context)
    }

    pub(super) fn words(&self) -> MemsetWords {
        let f = &self.fill;
        [
            f.to,
            f.pitch,
            u64::from(f.value) | f.unit << 32,
            f.width,
            f.height,
        ]
    }
}

/// Stream memory operations in a graph.
#[derive(Clone)]
pub(in crate::driver) struct MemOps {
    batch: Arc<Batch>,
    pub(super) context: Arc<Context>,
}

/// `CUDA_BATCH_MEM_OP_NODE_PARAMS` as 64-bit words: context, number of operations, their address, flags.
pub(super) type MemOpsWords = [u64; 4];

impl MemOps {
    pub(in crate::driver) fn new(batch: Batch, context: Arc<Context>) -> MemOps {
        let batch = Arc::new(batch);
        MemOps { batch, context }
    }

    pub(super) fn read(w: &MemOpsWords) -> Res<MemOps> {
        let context = context::by_handle_or_current(w[0])?;
        let batch = Batch::read(w[2], w[1] as u32, w[3] as u32)?;
        if batch.len() == 0 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(Self::new(batch, context))
    }

    pub(super) fn words(&self) -> MemOpsWords {
        let count = self.batch.len() as u64;
        [self.context.handle, count, self.batch.address(), 0]
    }
}

/// An event that a graph records or waits for.
#[derive(Clone)]
pub(in crate::driver) struct EventNode {
    pub(in crate::driver) handle: u64,
    pub(in crate::driver) event: Arc<Event>,
}

impl EventNode {
    pub(super) fn find(handle: u64) -> Res<EventNode> {
        let event = event::find(handle)?;
        Ok(EventNode { handle, event })
    }
}
