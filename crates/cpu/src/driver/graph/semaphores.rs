//! Nodes that signal external semaphores or wait for them.

use std::sync::Arc;

use cupyrite_sys::driver::{
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2,
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_st_anon0, CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2, CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_st_anon0, CUcontext,
};

use super::build::{add, plain};
use super::params::{WRONG_NODE_TYPE, replace};
use super::{Payload, payload_of, update};
use crate::driver::context::{self, Context};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put_with};
use crate::driver::entry::driver_entry_points;
use crate::driver::external::semaphore::Operations;

/// Signals of external semaphores, or waits for them.
#[derive(Clone)]
pub(in crate::driver) struct SemaphoreNode {
    operations: Arc<Operations>,
    context: Arc<Context>,
}

/// Reads the fields that all versions of the parameters have.
macro_rules! read {
    ($given:expr, $context:expr) => {{
        let given = $given;
        SemaphoreNode::read(
            given.extSemArray.addr() as u64,
            given.paramsArray.addr() as u64,
            given.numExtSems,
            $context,
        )
    }};
}

/// Sets the fields of an old version of the parameters.
macro_rules! write {
    ($node:expr, $out:expr) => {{
        let (handles, params) = $node.operations.addresses();
        $out.extSemArray = handles as *mut _;
        $out.paramsArray = params as *const _;
        $out.numExtSems = $node.operations.len() as u32;
    }};
}

impl SemaphoreNode {
    pub(in crate::driver) fn new(operations: Operations, context: Arc<Context>) -> SemaphoreNode {
        SemaphoreNode {
            operations: Arc::new(operations),
            context,
        }
    }

    fn read(handles: u64, params: u64, count: u32, context: u64) -> Res<SemaphoreNode> {
        let context = context::by_handle_or_current(context)?;
        Ok(Self::new(
            Operations::read(handles, params, count)?,
            context,
        ))
    }

    /// Reads the parameters in `CUgraphNodeParams`.
    pub(super) fn of_signal(given: &CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2) -> Res<SemaphoreNode> {
        // SAFETY: a handle, for which any bits are valid.
        read!(given, unsafe { given.anon0.ctx }.addr() as u64)
    }

    /// Reads the parameters in `CUgraphNodeParams`.
    pub(super) fn of_wait(given: &CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2) -> Res<SemaphoreNode> {
        // SAFETY: a handle, for which any bits are valid.
        read!(given, unsafe { given.anon0.ctx }.addr() as u64)
    }

    pub(super) fn operations(&self) -> &Operations {
        &self.operations
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The parameters in `CUgraphNodeParams`, with the addresses of the node's copies.
    pub(super) fn signal_v2(&self) -> CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2 {
        let (handles, params) = self.operations.addresses();
        CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2 {
            extSemArray: handles as *mut _,
            paramsArray: params as *const _,
            numExtSems: self.operations.len() as u32,
            anon0: CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_st_anon0 {
                ctx: self.context.handle as CUcontext,
            },
        }
    }

    /// As [`Self::signal_v2`], for a wait.
    pub(super) fn wait_v2(&self) -> CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2 {
        let (handles, params) = self.operations.addresses();
        CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2 {
            extSemArray: handles as *mut _,
            paramsArray: params as *const _,
            numExtSems: self.operations.len() as u32,
            anon0: CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_st_anon0 {
                ctx: self.context.handle as CUcontext,
            },
        }
    }

    /// A line for each operation, for the description of a graph.
    pub(super) fn lines(&self) -> Vec<String> {
        self.operations.lines()
    }
}

fn signal_at(params: u64) -> Res<Payload> {
    non_null(params)?;
    let given = get::<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS>(params)?;
    read!(given, 0).map(Payload::SignalSemaphores)
}

fn wait_at(params: u64) -> Res<Payload> {
    non_null(params)?;
    let given = get::<CUDA_EXT_SEM_WAIT_NODE_PARAMS>(params)?;
    read!(given, 0).map(Payload::WaitSemaphores)
}

/// New parameters for a node that signals.
fn new_signal(old: &Payload, params: u64) -> Res<Payload> {
    match old {
        Payload::SignalSemaphores(_) => signal_at(params),
        _ => Err(WRONG_NODE_TYPE),
    }
}

/// New parameters for a node that waits.
fn new_wait(old: &Payload, params: u64) -> Res<Payload> {
    match old {
        Payload::WaitSemaphores(_) => wait_at(params),
        _ => Err(WRONG_NODE_TYPE),
    }
}

driver_entry_points! {
    fn add_signal "cuGraphAddExternalSemaphoresSignalNode" (out: u64, graph: u64, nodes: u64, count: u64, params: u64) {
        add(out, graph, (nodes, 0, count), || signal_at(params).map(plain))
    }
    fn add_wait "cuGraphAddExternalSemaphoresWaitNode" (out: u64, graph: u64, nodes: u64, count: u64, params: u64) {
        add(out, graph, (nodes, 0, count), || wait_at(params).map(plain))
    }
    fn get_signal "cuGraphExternalSemaphoresSignalNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        match &*payload_of(node)? {
            Payload::SignalSemaphores(s) => {
                put_with(out, |told: &mut CUDA_EXT_SEM_SIGNAL_NODE_PARAMS| write!(s, told))
            }
            _ => Err(WRONG_NODE_TYPE),
        }
    }
    fn get_wait "cuGraphExternalSemaphoresWaitNodeGetParams" (node: u64, out: u64) {
        non_null(out)?;
        match &*payload_of(node)? {
            Payload::WaitSemaphores(s) => {
                put_with(out, |told: &mut CUDA_EXT_SEM_WAIT_NODE_PARAMS| write!(s, told))
            }
            _ => Err(WRONG_NODE_TYPE),
        }
    }
    fn set_signal "cuGraphExternalSemaphoresSignalNodeSetParams" (node: u64, params: u64) {
        non_null(params)?;
        replace(node, |old| new_signal(old, params))
    }
    fn set_wait "cuGraphExternalSemaphoresWaitNodeSetParams" (node: u64, params: u64) {
        non_null(params)?;
        replace(node, |old| new_wait(old, params))
    }
    fn exec_set_signal "cuGraphExecExternalSemaphoresSignalNodeSetParams" (exec: u64, node: u64, params: u64) {
        non_null(params)?;
        update::set(exec, node, |old| new_signal(old, params))
    }
    fn exec_set_wait "cuGraphExecExternalSemaphoresWaitNodeSetParams" (exec: u64, node: u64, params: u64) {
        non_null(params)?;
        update::set(exec, node, |old| new_wait(old, params))
    }
}
