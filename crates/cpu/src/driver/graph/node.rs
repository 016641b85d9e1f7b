//! Node payloads: validated descriptions of work, with copies of all data that the caller passed by address.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

use cupyrite_engine::memory::Access;
use cupyrite_sys::driver::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS, CUcontext,
    CUfunction, CUgraphNodeType as NodeType, CUkernel, CUlaunchAttribute,
    CUlaunchAttributeID as Attribute, CUlaunchAttributeValue, CUmemorytype,
};

use super::conditional::Conditional;
use super::{Graph, SemaphoreNode, memory};
use crate::driver::context::{self, Context};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::Kept;
use crate::driver::entry::errors::Code;
use crate::driver::memory::copy_job::{ARRAY, CopyDescription, CopyOperand, HOST, Job};
use crate::driver::memory::fill::Fill;
use crate::driver::memory::rights;
use crate::driver::module::function::FUNCTIONS;
use crate::driver::module::launch::{Given, Launch, LaunchConfig};
use crate::driver::module::launch_kernel::cluster_dimensions;
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
    SignalSemaphores(SemaphoreNode),
    WaitSemaphores(SemaphoreNode),
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
            Payload::SignalSemaphores(_) => NodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL,
            Payload::WaitSemaphores(_) => NodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT,
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
            Payload::SignalSemaphores(s) | Payload::WaitSemaphores(s) => Some(s.context()),
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

    /// Runs the work on this thread. Embedded graphs, conditions, events and waits for semaphores are structure, not work:
    /// the plan of a launch resolves them.
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
            Payload::SignalSemaphores(s) => s.operations().signal(),
            Payload::Graph(_)
            | Payload::Conditional(_)
            | Payload::Empty
            | Payload::EventWait(_)
            | Payload::EventRecord(_)
            | Payload::WaitSemaphores(_) => Ok(()),
        }
    }
}

const PRIORITY: u32 = Attribute::CU_LAUNCH_ATTRIBUTE_PRIORITY.0;
/// Stored in the launch rather than among the attributes.
pub(super) const COOPERATIVE: u32 = Attribute::CU_LAUNCH_ATTRIBUTE_COOPERATIVE.0;

/// In the launch as well.
const CLUSTER: u32 = Attribute::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION.0;

/// A kernel launch in a graph.
#[derive(Clone)]
pub(in crate::driver) struct Kernel {
    pub(super) launch: Launch,
    /// By `CUlaunchAttributeID`; cooperation is part of the launch.
    pub(super) attributes: BTreeMap<u32, Kept<CUlaunchAttributeValue>>,
}

impl Kernel {
    /// The node of a captured launch.
    pub(in crate::driver) fn captured(launch: Launch, raw: &[CUlaunchAttribute]) -> Kernel {
        let mut attributes = BTreeMap::new();
        for &CUlaunchAttribute { id, value, .. } in raw {
            match id {
                // Events become dependencies; cooperation is part of the launch.
                Attribute::CU_LAUNCH_ATTRIBUTE_IGNORE
                | Attribute::CU_LAUNCH_ATTRIBUTE_COOPERATIVE
                | Attribute::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT
                | Attribute::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT => {}
                Attribute(id) => {
                    attributes.insert(id, Kept(value));
                }
            }
        }
        Kernel { launch, attributes }
    }

    /// Validates the caller's parameters. `cooperative` and `cluster` are the node's previous settings.
    pub(super) fn read(
        given: &CUDA_KERNEL_NODE_PARAMS,
        cooperative: bool,
        cluster: Option<[u32; 3]>,
    ) -> Res<Kernel> {
        let handle = match given.func.addr() {
            0 => given.kern.addr(),
            function => function,
        } as u64;
        let context_handle = given.ctx.addr() as u64;
        if handle == 0 {
            return Err(Code::INVALID_HANDLE);
        }
        let context = match FUNCTIONS.find(handle) {
            _ if context_handle != 0 => context::by_handle_or_current(context_handle)?,
            Some(function) => function.context.clone(),
            None => context::current()?,
        };
        let (arguments, extra) = (given.kernelParams.addr(), given.extra.addr());
        let config = LaunchConfig {
            grid: [given.gridDimX, given.gridDimY, given.gridDimZ],
            block: [given.blockDimX, given.blockDimY, given.blockDimZ],
            dynamic_shared: given.sharedMemBytes,
            cooperative,
            cluster,
        };
        Ok(Kernel {
            launch: Launch::prepare(
                handle,
                &context,
                config,
                Given::Caller(arguments as u64, extra as u64),
            )?,
            attributes: BTreeMap::new(),
        })
    }

    /// The caller's parameters, with the addresses of the node's copies of the arguments.
    pub(super) fn params(&self) -> CUDA_KERNEL_NODE_PARAMS {
        let config = &self.launch.config;
        let is_function = FUNCTIONS.find(self.launch.handle).is_some();
        let (function, kernel) = if is_function {
            (self.launch.handle, 0)
        } else {
            (0, self.launch.handle)
        };
        let ([gx, gy, gz], [bx, by, bz]) = (config.grid, config.block);
        CUDA_KERNEL_NODE_PARAMS {
            func: function as CUfunction,
            gridDimX: gx,
            gridDimY: gy,
            gridDimZ: gz,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: config.dynamic_shared,
            kernelParams: self.launch.arguments.pointers() as *mut *mut c_void,
            extra: std::ptr::null_mut(),
            kern: kernel as CUkernel,
            ctx: self.launch.function.context.handle as CUcontext,
        }
    }

    /// Whether the kernel launches graphs.
    pub(super) fn launches_graphs(&self) -> bool {
        self.launch.function.kernel.launches_graphs()
    }

    /// Whether the kernel launches kernels, copies or fills.
    pub(super) fn launches_kernels(&self) -> bool {
        self.launch.function.kernel.launches_kernels()
    }

    /// The priority; zero if it was never set.
    pub(super) fn priority(&self) -> i32 {
        let set = self.attributes.get(&PRIORITY);
        // SAFETY: an integer, for which any bits are valid.
        set.map_or(0, |value| unsafe { value.0.priority })
    }

    /// The value of an attribute; zeros if it was never set.
    ///
    /// # Errors
    /// `INVALID_VALUE` for an attribute that kernel nodes do not have.
    pub(super) fn attribute(&self, id: u32) -> Res<CUlaunchAttributeValue> {
        check_attribute(id)?;
        let mut value = CUlaunchAttributeValue::default();
        if id == COOPERATIVE {
            value.cooperative = self.launch.config.cooperative.into();
        } else if let Some(set) = self.attributes.get(&id) {
            value = set.0;
        }
        Ok(value)
    }

    /// A copy of the node with an attribute set.
    ///
    /// # Errors
    /// `INVALID_VALUE` for an attribute that kernel nodes do not have, or that makes the launch invalid.
    pub(super) fn with_attribute(&self, id: u32, value: CUlaunchAttributeValue) -> Res<Kernel> {
        check_attribute(id)?;
        let mut kernel = self.clone();
        if id == COOPERATIVE {
            // SAFETY: an integer, for which any bits are valid.
            let cooperative = unsafe { value.cooperative } != 0;
            kernel.launch = self.launch.with_config(LaunchConfig {
                cooperative,
                ..self.launch.config
            })?;
            return Ok(kernel);
        }
        // Nodes updated from the device.
        if id == Attribute::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE.0
            // SAFETY: an integer, for which any bits are valid.
            && unsafe { value.deviceUpdatableKernelNode.deviceUpdatable } != 0
        {
            return Err(Code::NOT_SUPPORTED);
        }
        if id == CLUSTER {
            kernel.launch = self.launch.with_config(LaunchConfig {
                cluster: cluster_dimensions(&value)?,
                ..self.launch.config
            })?;
        }
        kernel.attributes.insert(id, Kept(value));
        Ok(kernel)
    }

    /// A copy of the node with the attributes of `other`.
    pub(super) fn with_attributes_of(&self, other: &Kernel) -> Res<Kernel> {
        let LaunchConfig {
            cooperative,
            cluster,
            ..
        } = other.launch.config;
        Ok(Kernel {
            launch: self.launch.with_config(LaunchConfig {
                cooperative,
                cluster,
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
    pub(super) copy: CopyDescription,
    pub(super) context: Arc<Context>,
    pub(super) job: Job,
}

impl Memcpy {
    /// Validates a copy; its memory may be memory that a graph allocates later.
    pub(in crate::driver) fn prepare(copy: CopyDescription, context: Arc<Context>) -> Res<Memcpy> {
        if copy.extent.contains(&0) {
            return Err(Code::INVALID_VALUE);
        }
        Ok(Memcpy {
            copy,
            context,
            job: Job::for_later(&copy, memory::covers)?,
        })
    }

    /// [`Memcpy::prepare`] for a node that names its context, whose device must have access to the memory.
    pub(super) fn in_context(copy: CopyDescription, context: Arc<Context>) -> Res<Memcpy> {
        let node = Self::prepare(copy, context)?;
        rights::check_copy(node.context.device, node.uses())?;
        Ok(node)
    }

    /// The memory outside arrays that the copy uses.
    pub(in crate::driver) fn uses(&self) -> impl Iterator<Item = rights::Use> {
        self.job.uses()
    }

    /// A copy of `len` bytes; the memory types are the `CUmemorytype` of destination and source.
    pub(in crate::driver) fn linear(
        to: (CUmemorytype, u64),
        from: (CUmemorytype, u64),
        len: u64,
        context: Arc<Context>,
    ) -> Res<Memcpy> {
        let operand = |(kind, address)| {
            let mut operand = CopyOperand {
                kind,
                ..CopyOperand::default()
            };
            if kind == HOST {
                operand.host = address;
            } else {
                operand.device = address;
            }
            operand
        };
        let copy = CopyDescription {
            to: operand(to),
            from: operand(from),
            extent: [len, 1, 1],
        };
        Self::prepare(copy, context)
    }

    /// Performs the copy on this thread.
    fn run(&self) -> Res {
        // The memory may have been freed since; that fails as a kernel's access would.
        self.job.is_pageable().map_err(|_| Code::ILLEGAL_ADDRESS)?;
        self.job.run().map_err(|_| Code::ILLEGAL_ADDRESS)
    }

    /// Whether the copy is a single row.
    pub(super) fn is_linear(&self) -> bool {
        let [_, height, depth] = self.copy.extent;
        height <= 1 && depth <= 1
    }

    /// Whether a side is an array.
    fn uses_arrays(&self) -> bool {
        let (from, to) = self.memory_types();
        from == ARRAY || to == ARRAY
    }

    /// Whether the copy is between device memory and page-locked memory only.
    pub(super) fn is_internal(&self) -> bool {
        !self.uses_arrays() && !self.job.is_pageable().unwrap_or(false)
    }

    /// Memory types of source and destination.
    pub(super) fn memory_types(&self) -> (CUmemorytype, CUmemorytype) {
        (self.copy.from.kind, self.copy.to.kind)
    }
}

/// A memory fill in a graph.
#[derive(Clone)]
pub(in crate::driver) struct Memset {
    pub(in crate::driver) fill: Fill,
    pub(in crate::driver) context: Arc<Context>,
    captured: bool,
}

impl Memset {
    /// Validates a captured fill; its memory may be memory that a graph allocates later.
    pub(in crate::driver) fn captured(fill: Fill, context: Arc<Context>) -> Res<Memset> {
        fill.check(memory::covers)?;
        Ok(Memset {
            fill,
            context,
            captured: true,
        })
    }

    /// Refuses a captured fill of memory that the context's kernels could not write to. As with NVIDIA's driver, other
    /// fills are checked as copies are, when the node gets its parameters.
    pub(super) fn check_captured(&self) -> Res {
        if !self.captured {
            return Ok(());
        }
        // A fill of memory that has been freed since then fails when it runs.
        let Ok(span) = self.fill.check(memory::covers) else {
            return Ok(());
        };
        rights::check_fill(&self.context, self.fill.to, span)
    }

    pub(super) fn read(given: &CUDA_MEMSET_NODE_PARAMS, context: Arc<Context>) -> Res<Memset> {
        let fill = Fill {
            to: given.dst,
            pitch: given.pitch as u64,
            value: given.value,
            unit: given.elementSize.into(),
            width: given.width as u64,
            height: given.height as u64,
        };
        if fill.is_empty() {
            return Err(Code::INVALID_VALUE);
        }
        let span = fill.check(memory::covers)?;
        rights::check_copy(context.device, [(fill.to, span, Access::ReadWrite)])?;
        Ok(Memset {
            fill,
            context,
            captured: false,
        })
    }

    pub(super) fn params(&self) -> CUDA_MEMSET_NODE_PARAMS {
        let f = &self.fill;
        CUDA_MEMSET_NODE_PARAMS {
            dst: f.to,
            pitch: f.pitch as usize,
            value: f.value,
            elementSize: f.unit as u32,
            width: f.width as usize,
            height: f.height as usize,
        }
    }
}

/// Stream memory operations in a graph.
#[derive(Clone)]
pub(in crate::driver) struct MemOps {
    batch: Arc<Batch>,
    pub(super) context: Arc<Context>,
}

impl MemOps {
    pub(in crate::driver) fn new(batch: Batch, context: Arc<Context>) -> MemOps {
        let batch = Arc::new(batch);
        MemOps { batch, context }
    }

    pub(super) fn read(given: &CUDA_BATCH_MEM_OP_NODE_PARAMS) -> Res<MemOps> {
        let context = context::by_handle_or_current(given.ctx.addr() as u64)?;
        let batch = Batch::read(given.paramArray.addr() as u64, given.count, given.flags)?;
        if batch.len() == 0 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(Self::new(batch, context))
    }

    /// Number of operations.
    pub(super) fn len(&self) -> usize {
        self.batch.len()
    }

    pub(super) fn params(&self) -> CUDA_BATCH_MEM_OP_NODE_PARAMS {
        CUDA_BATCH_MEM_OP_NODE_PARAMS {
            ctx: self.context.handle as CUcontext,
            // At most `MAX_OPERATIONS`.
            count: self.len() as u32,
            paramArray: self.batch.address() as *mut _,
            flags: 0,
        }
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
