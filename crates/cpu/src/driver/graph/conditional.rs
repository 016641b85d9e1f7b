//! Conditional nodes: their handles, their parameters, and the rules for the graphs in them.
//!
//! A condition handle belongs to the graph it was created for and is used by one conditional node, of that graph or of a
//! graph in it. Its value belongs to the handle: kernels set it by handle, and conditional nodes read it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use cupyrite_engine::conditions::Condition;
use cupyrite_sys::driver::{self as sys, CUDA_CONDITIONAL_NODE_PARAMS, CUcontext};

use super::{Code, Graph, Payload, find};
use crate::driver::context::{self, Context};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id, handle_of};
use crate::driver::entry::logs::{because, refuse};

static VARIABLES: HandleTable<Weak<Variable>> = HandleTable::new(HandleKind::Condition);

/// The value is set to the default at the beginning of each launch.
const ASSIGN_DEFAULT: u32 = sys::CU_GRAPH_COND_ASSIGN_DEFAULT;

const IF: u32 = sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF.0;
const WHILE: u32 = sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE.0;
const SWITCH: u32 = sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_SWITCH.0;

/// Maximum number of bodies of a node.
const MAX_BODIES: u32 = 1 << 16;

/// The variable of a condition handle.
pub(in crate::driver) struct Variable {
    pub(super) condition: Arc<Condition>,
    /// Handle of the graph it was created for.
    graph: u64,
    context: Arc<Context>,
    /// The value at the beginning of each launch.
    default: Option<u32>,
    /// The conditional node that uses it, or zero; [`RESERVED`] while the node is being created.
    node: AtomicU64,
}

/// Value of [`Variable::node`] during the creation of the node.
const RESERVED: u64 = u64::MAX;

impl Variable {
    fn find(handle: u64) -> Res<Arc<Variable>> {
        let found = VARIABLES.find(handle).and_then(|v| v.upgrade());
        found.ok_or_else(|| {
            because(Code::INVALID_VALUE, || {
                format!("{handle:#x} is not a live condition handle")
            })
        })
    }

    /// Whether a conditional node uses it.
    pub(super) fn is_used(&self) -> bool {
        self.node.load(Ordering::Acquire) != 0
    }

    /// Condition and default value, for variables with a default.
    pub(super) fn default(&self) -> Option<(Arc<Condition>, u32)> {
        Some((self.condition.clone(), self.default?))
    }

    /// Ends the use by a node.
    pub(super) fn release(&self) {
        self.node.store(0, Ordering::Release);
    }
}

impl Drop for Variable {
    fn drop(&mut self) {
        let _ = VARIABLES.remove(self.condition.handle());
    }
}

/// The context of a handle or of a node; null does not stand for the current one.
fn context_of(handle: u64) -> Res<Arc<Context>> {
    match handle {
        0 => refuse(Code::INVALID_CONTEXT, || "ctx is null".into()),
        _ => context::by_handle_or_current(handle),
    }
}

/// Validated parameters of a conditional node to be created.
pub(super) struct Request {
    variable: Arc<Variable>,
    kind: u32,
    size: u32,
}

impl Request {
    /// Validates the caller's parameters. `phGraph_out` is an output.
    ///
    /// # Errors
    /// `INVALID_CONTEXT` for a null context; `INVALID_VALUE` for an invalid handle, an unknown type, a size that the type does
    /// not allow, and a context other than the handle's; `OUT_OF_MEMORY` for more than 65,536 bodies.
    pub(super) fn read(given: &CUDA_CONDITIONAL_NODE_PARAMS) -> Res<Request> {
        let context = context_of(given.ctx.addr() as u64)?;
        let variable = Variable::find(given.handle)?;
        let (kind, size) = (given.r#type.0, given.size);
        let (name, fits) = match kind {
            IF => ("an if node; allowed are 1 and 2", matches!(size, 1 | 2)),
            WHILE => ("a while node; allowed is 1", size == 1),
            SWITCH => ("a switch node; it needs at least 1", size > 0),
            _ => {
                return refuse(Code::INVALID_VALUE, || {
                    format!("{kind} is not a CUgraphConditionalNodeType")
                });
            }
        };
        if !fits {
            return refuse(Code::INVALID_VALUE, || format!("size is {size} for {name}"));
        }
        if size > MAX_BODIES {
            return Err(Code::OUT_OF_MEMORY);
        }
        if context.id != variable.context.id {
            return refuse(Code::INVALID_VALUE, || {
                "the node's context differs from the context of its condition handle".into()
            });
        }
        Ok(Request {
            variable,
            kind,
            size,
        })
    }

    /// Adds the node with its empty bodies.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the handle belongs to another graph or to another node, and those of [`Graph::add`].
    pub(super) fn add_to(self, graph: &Arc<Graph>, before: &[super::Edge]) -> Res<u64> {
        let variable = self.variable;
        let owner = find(variable.graph)?;
        if !graph.lies_in(&owner) {
            return refuse(Code::INVALID_VALUE, || {
                "the condition handle was created for another graph".into()
            });
        }
        graph.check_nesting(1)?;
        let claim = (Ordering::AcqRel, Ordering::Acquire);
        let claimed = variable
            .node
            .compare_exchange(0, RESERVED, claim.0, claim.1);
        if claimed.is_err() {
            return refuse(Code::INVALID_VALUE, || {
                "another conditional node uses the condition handle".into()
            });
        }
        let bodies: Box<[Arc<Graph>]> = (0..self.size).map(|_| Graph::create_body()).collect();
        let payload = Payload::Conditional(Conditional {
            variable: variable.clone(),
            kind: self.kind,
            handles: bodies.iter().map(|b| b.handle).collect(),
            bodies: bodies.clone(),
        });
        match graph.add(payload, before) {
            Ok(node) => {
                for body in &bodies {
                    body.embedded_in.store(node, Ordering::Release);
                }
                variable.node.store(node, Ordering::Release);
                Ok(node)
            }
            Err(code) => {
                variable.release();
                bodies.iter().for_each(|b| b.retire());
                Err(code)
            }
        }
    }
}

/// A conditional node.
pub(in crate::driver) struct Conditional {
    pub(super) variable: Arc<Variable>,
    kind: u32,
    pub(super) bodies: Box<[Arc<Graph>]>,
    /// Handles of the bodies: the array that the caller gets.
    handles: Box<[u64]>,
}

impl Conditional {
    /// The same node with other bodies.
    pub(super) fn with_bodies(&self, bodies: Box<[Arc<Graph>]>) -> Conditional {
        Conditional {
            variable: self.variable.clone(),
            kind: self.kind,
            handles: bodies.iter().map(|b| b.handle).collect(),
            bodies,
        }
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.variable.context
    }

    /// Whether both nodes have the same type and number of bodies.
    pub(super) fn is_like(&self, other: &Conditional) -> bool {
        self.kind == other.kind && self.bodies.len() == other.bodies.len()
    }

    /// The body that the value selects; `None` for no body.
    pub(super) fn selected(&self) -> Option<usize> {
        let value = self.variable.condition.value();
        let body = match self.kind {
            IF => usize::from(value == 0),
            WHILE if value == 0 => return None,
            WHILE => 0,
            _ => value as usize,
        };
        (body < self.bodies.len()).then_some(body)
    }

    /// Whether the selection is repeated after each run of the body.
    pub(super) fn is_loop(&self) -> bool {
        self.kind == WHILE
    }

    /// Address of the array of the bodies' handles, valid as long as the node.
    pub(super) fn address(&self) -> u64 {
        self.handles.as_ptr() as u64
    }

    pub(super) fn params(&self) -> CUDA_CONDITIONAL_NODE_PARAMS {
        CUDA_CONDITIONAL_NODE_PARAMS {
            handle: self.variable.condition.handle(),
            r#type: sys::CUgraphConditionalNodeType(self.kind),
            // At most `MAX_BODIES`.
            size: self.bodies.len() as u32,
            phGraph_out: self.address() as *mut _,
            ctx: self.context().handle as CUcontext,
        }
    }

    /// Name of the type and the number of bodies, for descriptions.
    pub(super) fn title(&self) -> String {
        let kind = match self.kind {
            IF => "IF",
            WHILE => "WHILE",
            _ => "SWITCH",
        };
        format!("CONDITIONAL {kind}\n{} bodies", self.bodies.len())
    }
}

/// Checks the nodes in the bodies of a conditional node when its graph is instantiated. Returns the handle of the first
/// node at fault, as it is in the instantiated graph.
pub(super) fn check_body(body: &Arc<Graph>, context: &Arc<Context>) -> Result<(), u64> {
    let state = body.lock();
    for node in state.nodes.values() {
        let other = |c: &Arc<Context>| c.id != context.id;
        if !is_permitted(&node.payload) || node.payload.context().is_some_and(other) {
            return Err(node.origin);
        }
        // The bodies of nested nodes are checked with those nodes.
        if let Payload::Graph(inner) = &*node.payload {
            check_body(inner, context)?;
        }
    }
    Ok(())
}

/// Whether a body may contain the node.
fn is_permitted(payload: &Payload) -> bool {
    match payload {
        Payload::Memcpy(m) => m.is_internal(),
        Payload::Kernel(k) => !k.launches_graphs() && !k.launches_kernels(),
        Payload::Memset(_) | Payload::Empty | Payload::Graph(_) | Payload::Conditional(_) => true,
        Payload::Host(_)
        | Payload::EventWait(_)
        | Payload::EventRecord(_)
        | Payload::MemAlloc(_)
        | Payload::MemFree(_)
        | Payload::MemOps(_)
        | Payload::SignalSemaphores(_)
        | Payload::WaitSemaphores(_) => false,
    }
}

/// The variables of a graph and of the graphs in it.
pub(super) fn variables(graph: &Arc<Graph>) -> Vec<Arc<Variable>> {
    let mut found = Vec::new();
    let mut open = vec![graph.clone()];
    while let Some(graph) = open.pop() {
        let state = graph.lock();
        found.extend(state.variables.iter().cloned());
        let inner = state.nodes.values().flat_map(|n| n.payload.graphs());
        open.extend(inner.cloned());
    }
    found
}

driver_entry_points! {
    fn handle_create "cuGraphConditionalHandleCreate" (out: u64, graph: u64, context: u64, default: u32, flags: u32) {
        non_null(out)?;
        let graph = find(graph)?;
        if flags & !ASSIGN_DEFAULT != 0 {
            return refuse(Code::INVALID_VALUE, || {
                format!("flags is {flags:#x}; allowed are 0 and CU_GRAPH_COND_ASSIGN_DEFAULT")
            });
        }
        let context = context_of(context)?;
        let handle = handle_of(HandleKind::Condition, fresh_id());
        put(out, handle)?;
        let variable = Arc::new(Variable {
            condition: Condition::create(handle),
            graph: graph.handle,
            context,
            default: (flags & ASSIGN_DEFAULT != 0).then_some(default),
            node: AtomicU64::new(0),
        });
        VARIABLES.insert_handle(handle, Arc::new(Arc::downgrade(&variable)));
        graph.lock().variables.push(variable);
        Ok(())
    }
}
